"""Old nets and solvers turned into today's, as Caffe's upgrade tools do it.

The steps, in order: V0 layers to V1, transformation fields of V1 data layers into transform_param,
V1 layers to `layer`, `input` fields to an Input layer, and BatchNorm's three frozen statistics.
"""

from google.protobuf.message import Message

from . import recaffe_pb2 as pb
from .errors import RecaffeError
from .text import parse_option_block
from .upgrade_v0 import upgrade_v0_layers

V1 = pb.V1LayerParameter

_V1_TYPES = {
    V1.NONE: "",
    V1.ABSVAL: "AbsVal",
    V1.ACCURACY: "Accuracy",
    V1.ARGMAX: "ArgMax",
    V1.BNLL: "BNLL",
    V1.CONCAT: "Concat",
    V1.CONTRASTIVE_LOSS: "ContrastiveLoss",
    V1.CONVOLUTION: "Convolution",
    V1.DATA: "Data",
    V1.DECONVOLUTION: "Deconvolution",
    V1.DROPOUT: "Dropout",
    V1.DUMMY_DATA: "DummyData",
    V1.ELTWISE: "Eltwise",
    V1.EUCLIDEAN_LOSS: "EuclideanLoss",
    V1.EXP: "Exp",
    V1.FLATTEN: "Flatten",
    V1.HDF5_DATA: "HDF5Data",
    V1.HDF5_OUTPUT: "HDF5Output",
    V1.HINGE_LOSS: "HingeLoss",
    V1.IM2COL: "Im2col",
    V1.IMAGE_DATA: "ImageData",
    V1.INFOGAIN_LOSS: "InfogainLoss",
    V1.INNER_PRODUCT: "InnerProduct",
    V1.LRN: "LRN",
    V1.MEMORY_DATA: "MemoryData",
    V1.MULTINOMIAL_LOGISTIC_LOSS: "MultinomialLogisticLoss",
    V1.MVN: "MVN",
    V1.POOLING: "Pooling",
    V1.POWER: "Power",
    V1.RELU: "ReLU",
    V1.SIGMOID: "Sigmoid",
    V1.SIGMOID_CROSS_ENTROPY_LOSS: "SigmoidCrossEntropyLoss",
    V1.SILENCE: "Silence",
    V1.SLICE: "Slice",
    V1.SOFTMAX: "Softmax",
    V1.SOFTMAX_LOSS: "SoftmaxWithLoss",
    V1.SPLIT: "Split",
    V1.TANH: "TanH",
    V1.THRESHOLD: "Threshold",
    V1.WINDOW_DATA: "WindowData",
}

# The forks' V1 types whose name is not just their words in capitals.
_FORK_TYPES = {"BN": "BN", "LSTM": "LSTM", "PRELU": "PReLU", "RELU6": "ReLU6", "ROIPOOLING": "ROIPooling"}

_V1_SPECS = {
    "param": "name",
    "blob_share_mode": "share_mode",
    "blobs_lr": "lr_mult",
    "weight_decay": "decay_mult",
}

_SOLVER_TYPES = {
    pb.SolverParameter.SGD: "SGD",
    pb.SolverParameter.NESTEROV: "Nesterov",
    pb.SolverParameter.ADAGRAD: "AdaGrad",
    pb.SolverParameter.RMSPROP: "RMSProp",
    pb.SolverParameter.ADADELTA: "AdaDelta",
    pb.SolverParameter.ADAM: "Adam",
}

_V1_DATA_BLOCKS = {V1.DATA: "data_param", V1.IMAGE_DATA: "image_data_param", V1.WINDOW_DATA: "window_data_param"}
_OLD_TRANSFORM_FIELDS = ("scale", "mean_file", "crop_size", "mirror")


def net_needs_upgrade(net: pb.NetParameter) -> bool:
    """Whether anything in the net is written in an old form."""
    return bool(net.layers or net.input or any(_has_old_batch_norm(layer) for layer in net.layer))


def upgrade_net(net: pb.NetParameter, path: str) -> pb.NetParameter:
    """The net in today's form: `net` itself if it is, otherwise a new message.

    Raises RecaffeError, which starts with `path`, where an old form makes no sense.
    """
    if not net_needs_upgrade(net):
        return net
    upgraded = pb.NetParameter()
    upgraded.CopyFrom(net)
    if any(layer.HasField("layer") for layer in upgraded.layers):
        upgrade_v0_layers(upgraded, path)
    _upgrade_transformations(upgraded)
    if upgraded.layers:
        _upgrade_v1_layers(upgraded, path)
    if upgraded.input:
        _upgrade_inputs(upgraded, path)
    for layer in upgraded.layer:
        if _has_old_batch_norm(layer):
            for spec in layer.param:
                spec.lr_mult = spec.decay_mult = 0
    return upgraded


def upgrade_solver(solver: pb.SolverParameter, path: str) -> pb.SolverParameter:
    """A new message: the solver with its type by name, and the nets written in it upgraded."""
    upgraded = pb.SolverParameter()
    upgraded.CopyFrom(solver)
    if solver.HasField("solver_type"):
        if solver.HasField("type"):
            raise RecaffeError(f"{path}: has both type and solver_type, its old form; remove solver_type")
        upgraded.type = _SOLVER_TYPES[solver.solver_type]
        upgraded.ClearField("solver_type")
    for name in ("net_param", "train_net_param"):
        if upgraded.HasField(name):
            getattr(upgraded, name).CopyFrom(upgrade_net(getattr(solver, name), path))
    for old, new in zip(solver.test_net_param, upgraded.test_net_param, strict=True):
        new.CopyFrom(upgrade_net(old, path))
    return upgraded


def _upgrade_transformations(net: pb.NetParameter) -> None:
    """Once any data layer is old in this, Caffe gives all of them both blocks, empty or not."""
    data_layers = [layer for layer in net.layers if layer.type in _V1_DATA_BLOCKS]
    blocks = [getattr(layer, _V1_DATA_BLOCKS[layer.type]) for layer in data_layers]
    if not any(block.HasField(name) for block in blocks for name in _OLD_TRANSFORM_FIELDS):
        return
    for layer, block in zip(data_layers, blocks, strict=True):
        block.SetInParent()
        layer.transform_param.SetInParent()
        for name in _OLD_TRANSFORM_FIELDS:
            if block.HasField(name):
                setattr(layer.transform_param, name, getattr(block, name))
                block.ClearField(name)


def _upgrade_v1_layers(net: pb.NetParameter, path: str) -> None:
    if net.layer:
        raise RecaffeError(
            f'{path}: has {len(net.layer)} "layer" and {len(net.layers)} "layers" (the old form): use one'
        )
    for v1 in net.layers:
        _upgrade_v1_layer(v1, net.layer.add(), path)
    net.ClearField("layers")


def _upgrade_v1_layer(v1: pb.V1LayerParameter, layer: pb.LayerParameter, path: str) -> None:
    where = f'{path}: layer "{v1.name}"'
    for field, value in v1.ListFields():
        name = field.name
        if name == "type":
            layer.type = _V1_TYPES[value]
        elif name == "type_name":
            layer.type = _FORK_TYPES.get(value, "".join(word.capitalize() for word in value.split("_")))
        elif name in _V1_SPECS:
            for index, item in enumerate(value):
                setattr(_param_spec(layer, index), _V1_SPECS[name], item)
        elif name == "option_block":
            for block in value:
                _upgrade_option_block(block, layer, where)
        elif name == "name":
            layer.name = value
        elif isinstance(value, Message):
            getattr(layer, name).CopyFrom(value)
        else:
            getattr(layer, name).extend(value)


def _param_spec(layer: pb.LayerParameter, index: int) -> pb.ParamSpec:
    while len(layer.param) <= index:
        layer.param.add()
    return layer.param[index]


def _upgrade_option_block(block: pb.OptionBlock, layer: pb.LayerParameter, where: str) -> None:
    """Some blocks that V1 layers lack are known to today's layers: those are read now, others kept."""
    known = pb.LayerParameter.DESCRIPTOR.fields_by_name.get(block.name)
    if known is None:
        layer.option_block.add().CopyFrom(block)
    else:
        message = getattr(layer, block.name)
        message.SetInParent()
        parse_option_block(message, block.text, f"{where}: {block.name}")


def _upgrade_inputs(net: pb.NetParameter, path: str) -> None:
    """`input` with its shapes becomes the first layer; without shapes, as old weights have it, it goes."""
    if net.input_shape or net.input_dim:
        layers = list(net.layer)
        del net.layer[:]
        layer = net.layer.add(name="input", type="Input", top=net.input)
        for shape in _input_shapes(net, path):
            layer.input_param.shape.add(dim=shape)
        net.layer.extend(layers)
    for name in ("input", "input_shape", "input_dim"):
        net.ClearField(name)


def _input_shapes(net: pb.NetParameter, path: str) -> list[list[int]]:
    count = len(net.input)
    if net.input_shape:
        if len(net.input_shape) < count:
            raise RecaffeError(f"{path}: {count} inputs, but {len(net.input_shape)} input_shape")
        return [list(shape.dim) for shape in net.input_shape[:count]]
    if len(net.input_dim) < 4 * count:
        raise RecaffeError(f"{path}: {count} inputs, but {len(net.input_dim)} input_dim; four each are needed")
    return [list(net.input_dim[4 * index : 4 * index + 4]) for index in range(count)]


def _has_old_batch_norm(layer: pb.LayerParameter) -> bool:
    """BatchNorm's three statistics with rates of their own, which would be trained without a gradient."""
    return (
        layer.type == "BatchNorm"
        and len(layer.param) == 3
        and any(spec.lr_mult != 0 or spec.decay_mult != 0 for spec in layer.param)
    )
