"""V0 layers, of 2013, turned into V1 layers: every type had its options in one message."""

import logging
from typing import Any

from google.protobuf.message import Message

from . import recaffe_pb2 as pb
from .errors import RecaffeError, suggestion

_log = logging.getLogger(__name__)

V1 = pb.V1LayerParameter

_V0_TYPES = {
    "accuracy": V1.ACCURACY,
    "bnll": V1.BNLL,
    "concat": V1.CONCAT,
    "conv": V1.CONVOLUTION,
    "data": V1.DATA,
    "dropout": V1.DROPOUT,
    "euclidean_loss": V1.EUCLIDEAN_LOSS,
    "flatten": V1.FLATTEN,
    "hdf5_data": V1.HDF5_DATA,
    "hdf5_output": V1.HDF5_OUTPUT,
    "im2col": V1.IM2COL,
    "images": V1.IMAGE_DATA,
    "infogain_loss": V1.INFOGAIN_LOSS,
    "innerproduct": V1.INNER_PRODUCT,
    "lrn": V1.LRN,
    "multinomial_logistic_loss": V1.MULTINOMIAL_LOGISTIC_LOSS,
    "pool": V1.POOLING,
    "relu": V1.RELU,
    "sigmoid": V1.SIGMOID,
    "softmax": V1.SOFTMAX,
    "softmax_loss": V1.SOFTMAX_LOSS,
    "split": V1.SPLIT,
    "tanh": V1.TANH,
    "window_data": V1.WINDOW_DATA,
}

# Where each option of a V0 layer of some type goes: {option: {type: (block, field)}}.
_CONV, _IP, _POOL = "convolution_param", "inner_product_param", "pooling_param"
_DATA, _IMAGES, _WINDOWS, _HDF5 = "data_param", "image_data_param", "window_data_param", "hdf5_data_param"
_V0_OPTIONS = {
    "num_output": {"conv": (_CONV, "num_output"), "innerproduct": (_IP, "num_output")},
    "biasterm": {"conv": (_CONV, "bias_term"), "innerproduct": (_IP, "bias_term")},
    "weight_filler": {"conv": (_CONV, "weight_filler"), "innerproduct": (_IP, "weight_filler")},
    "bias_filler": {"conv": (_CONV, "bias_filler"), "innerproduct": (_IP, "bias_filler")},
    "pad": {"conv": (_CONV, "pad"), "pool": (_POOL, "pad")},
    "kernelsize": {"conv": (_CONV, "kernel_size"), "pool": (_POOL, "kernel_size")},
    "group": {"conv": (_CONV, "group")},
    "stride": {"conv": (_CONV, "stride"), "pool": (_POOL, "stride")},
    "pool": {"pool": (_POOL, "pool")},
    "dropout_ratio": {"dropout": ("dropout_param", "dropout_ratio")},
    "local_size": {"lrn": ("lrn_param", "local_size")},
    "alpha": {"lrn": ("lrn_param", "alpha")},
    "beta": {"lrn": ("lrn_param", "beta")},
    "k": {"lrn": ("lrn_param", "k")},
    "source": {
        "data": (_DATA, "source"),
        "hdf5_data": (_HDF5, "source"),
        "images": (_IMAGES, "source"),
        "window_data": (_WINDOWS, "source"),
        "infogain_loss": ("infogain_loss_param", "source"),
    },
    "batchsize": {
        "data": (_DATA, "batch_size"),
        "hdf5_data": (_HDF5, "batch_size"),
        "images": (_IMAGES, "batch_size"),
        "window_data": (_WINDOWS, "batch_size"),
    },
    "rand_skip": {"data": (_DATA, "rand_skip"), "images": (_IMAGES, "rand_skip")},
    "shuffle_images": {"images": (_IMAGES, "shuffle")},
    "new_height": {"images": (_IMAGES, "new_height")},
    "new_width": {"images": (_IMAGES, "new_width")},
    "concat_dim": {"concat": ("concat_param", "concat_dim")},
    "det_fg_threshold": {"window_data": (_WINDOWS, "fg_threshold")},
    "det_bg_threshold": {"window_data": (_WINDOWS, "bg_threshold")},
    "det_fg_fraction": {"window_data": (_WINDOWS, "fg_fraction")},
    "det_context_pad": {"window_data": (_WINDOWS, "context_pad")},
    "det_crop_mode": {"window_data": (_WINDOWS, "crop_mode")},
}
_V0_TRANSFORM = {"scale": "scale", "meanfile": "mean_file", "cropsize": "crop_size", "mirror": "mirror"}


def upgrade_v0_layers(net: pb.NetParameter, path: str) -> None:
    """Turn the V0 layers of a net into V1 layers, in place.

    An option that means nothing to its layer's type is dropped with a warning, as Caffe does.
    Raises RecaffeError for unknown types and for padding that cannot be folded.
    """
    connections = _without_padding_layers(net, path)
    del net.layers[:]
    for connection in connections:
        if not connection.HasField("layer"):
            raise RecaffeError(
                f'{path}: layer "{connection.name}" stands among V0 layers and is none: '
                "write `layers { layer { ... } }` in all of them or in none"
            )
        _upgrade_v0_layer(connection, net.layers.add(), path)


def _without_padding_layers(net: pb.NetParameter, path: str) -> list[pb.V1LayerParameter]:
    """The layers, each padding layer folded into the `pad` of the convolution or pooling that reads it."""
    maker: dict[str, pb.V1LayerParameter | None] = dict.fromkeys(net.input)
    kept = []
    for connection in net.layers:
        folded = pb.V1LayerParameter()
        folded.CopyFrom(connection)
        for index, blob in enumerate(connection.bottom):
            if blob not in maker:
                raise RecaffeError(f'{path}: layer "{connection.layer.name}": no layer before it has the top "{blob}"')
            source = maker[blob]
            if source is None or source.layer.type != "padding":
                continue
            if (
                connection.layer.type not in ("conv", "pool")
                or len(connection.bottom) != 1
                or len(source.bottom) != 1
                or len(source.top) != 1
            ):
                raise RecaffeError(
                    f'{path}: padding layer "{source.layer.name}" must have one bottom and one top, and be '
                    f'read by conv or pool layers with one bottom; "{connection.layer.name}" is not one'
                )
            folded.layer.pad = source.layer.pad
            folded.bottom[index] = source.bottom[0]
        maker.update(dict.fromkeys(connection.top, connection))
        if connection.layer.type != "padding":
            kept.append(folded)
    return kept


def _upgrade_v0_layer(connection: pb.V1LayerParameter, v1: pb.V1LayerParameter, path: str) -> None:
    v0 = connection.layer
    where = f'{path}: layer "{v0.name}"'
    v1.bottom.extend(connection.bottom)
    v1.top.extend(connection.top)
    for field, value in v0.ListFields():
        name = field.name
        if name == "name":
            v1.name = value
        elif name == "type":
            if value not in _V0_TYPES:
                raise RecaffeError(f'{where}: unknown V0 type "{value}"{suggestion(value, _V0_TYPES)}')
            v1.type = _V0_TYPES[value]
        elif name in ("blobs", "blobs_lr", "weight_decay"):
            getattr(v1, name).extend(value)
        elif name in _V0_TRANSFORM:
            setattr(v1.transform_param, _V0_TRANSFORM[name], value)
        elif name == "hdf5_output_param" and v0.type == "hdf5_output":
            v1.hdf5_output_param.CopyFrom(value)
        elif v0.type in _V0_OPTIONS.get(name, {}):
            block_name, option = _V0_OPTIONS[name][v0.type]
            _set_option(getattr(v1, block_name), option, value)
        elif name not in ("new_num", "new_channels"):  # which no version of Caffe read
            _log.warning('%s: "%s" means nothing to type "%s"; dropped', where, name, v0.type)


def _set_option(block: Message, option: str, value: Any) -> None:
    current = getattr(block, option)
    if isinstance(value, Message):
        current.CopyFrom(value)
    elif hasattr(current, "append"):  # a convolution's pad, kernel_size and stride have become lists
        current.append(value)
    else:
        setattr(block, option, value)
