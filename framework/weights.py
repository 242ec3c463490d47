"""Weights of a net in files: .caffemodel (protobuf) and .caffemodel.h5 (HDF5), matched by layer name."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..proto import (
    BlobProto,
    NetParameter,
    RecaffeError,
    atomic_write,
    blob_shape,
    blob_to_array,
    read_net_binary,
    write_binary,
)
from .blob import Blob
from .checks import shape_text
from .hdf5 import import_h5py, is_hdf5, open_hdf5

log = logging.getLogger("recaffe")

SOLVER_STATE_START = b"\x08"  # a SolverState begins with its iteration: field 1, a varint; a net never does


@dataclass
class WeightsReport:
    """What a file of weights did to a net, by layer names."""

    filled: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # layers of the net with parameters, not in the file
    unused: list[str] = field(default_factory=list)  # layers of the file, not in the net


@dataclass
class StoredBlob:
    """A parameter in a file: its shape (old files give all as four axes) and how to read it."""

    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]
    four_axes: bool = False

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether a parameter of ``shape`` can take these values; four old axes may begin with ones."""
        if self.four_axes and len(shape) <= 4:
            return self.shape == (1,) * (4 - len(shape)) + shape
        return self.shape == shape


StoredLayer = dict[int, StoredBlob]  # parameters by their index in the layer


def load_weights(net: Any, path: str | os.PathLike) -> WeightsReport:
    """Fill the parameters of ``net`` from a .caffemodel or .caffemodel.h5, layer by layer of the same name.

    Everything is compared before anything is filled.  Raises RecaffeError where a layer's parameters differ in
    number or shape, where the file fills nothing, and where it holds something else than weights.
    """
    report = WeightsReport()
    with _stored_layers(path) as layers:
        matches: list[tuple[Blob, StoredBlob, str]] = []
        for name, stored in layers:
            if name not in net.layer_dict:
                log.info("Ignoring source layer %s", name)
                report.unused.append(name)
                continue
            found = _match(net, name, stored, path)
            matches += found
            if found:
                report.filled.append(name)
        report.missing = [name for name in net.params if name not in report.filled]
        if net.params and not report.filled:
            raise RecaffeError(
                f"{path}: no layer of the file fills one of net {net.name!r}; layers are matched by name:"
                f" the file has {_some(report.unused)}, the net {_some(report.missing)}"
            )
        for blob, stored_blob, where in matches:
            try:
                values = np.asarray(stored_blob.read(), blob.dtype).reshape(blob.shape)
            except RecaffeError as error:
                raise RecaffeError(f"{where}: {error}") from None
            blob.data[...] = net.backend.to_device(values)
    if report.missing:
        log.warning("%s: not filled, initial values kept: %s", path, ", ".join(report.missing))
    return report


def save_weights(net: Any, path: str | os.PathLike, write_diff: bool = False) -> None:
    """Write the parameters of ``net`` (and their gradients): in HDF5 where ``path`` ends in .h5, else .caffemodel.

    At any moment ``path`` is the old file or the new one, whole.
    """
    if str(path).endswith(".h5"):
        h5py = import_h5py()
        with atomic_write(path) as temporary, h5py.File(temporary.name, "w") as file:
            _write_hdf5(file, net, write_diff)
    else:
        write_binary(path, net.to_proto(write_diff))


def _match(net: Any, name: str, stored: StoredLayer, path: Any) -> list[tuple[Blob, StoredBlob, str]]:
    """The parameters of layer ``name`` with what the file holds for them; checks number and shapes.

    HDF5 files hold a shared parameter once, at its owner: elsewhere it may be absent.
    """
    blobs = dict(enumerate(net.params.get(name, [])))
    owned = {id(blob) for blob in net.learnable_params}
    where = f"{path}: layer {name!r}"
    advice = f"to learn this layer anew rather than load it, give it another name in the net than {name!r}"
    expected = {i for i, blob in blobs.items() if id(blob) in owned}
    if not expected <= stored.keys() <= blobs.keys():
        raise RecaffeError(f"{where} has {len(stored)} parameter(s) in the file, {len(blobs)} in the net; {advice}")
    for i, one in stored.items():
        if not one.fits(blobs[i].shape):
            raise RecaffeError(
                f"{where}, parameter {i}: the shape is {shape_text(one.shape)} in the file,"
                f" {shape_text(blobs[i].shape)} in the net; {advice}"
            )
    return [(blobs[i], one, f"{where}, parameter {i}") for i, one in stored.items()]


def _some(names: list[str]) -> str:
    return (", ".join(map(str, names[:5])) + (", ..." if len(names) > 5 else "")) or "none"


@contextmanager
def _stored_layers(path: str | os.PathLike) -> Iterator[list[tuple[str, StoredLayer]]]:
    """The layers in a file of weights; what the file is, its contents tell."""
    if is_hdf5(path):
        with open_hdf5(path) as file:
            if "history" in file:
                raise RecaffeError(_state_message(path))
            if "data" not in file:
                raise RecaffeError(f"{path}: an HDF5 file without a group 'data': it holds no weights of a net")
            yield list(_hdf5_layers(file["data"]))
        return
    if starts_as_solver_state(path):
        raise RecaffeError(_state_message(path))
    message: NetParameter = read_net_binary(path)
    yield [(layer.name, {i: _stored_proto(blob) for i, blob in enumerate(layer.blobs)}) for layer in message.layer]


def starts_as_solver_state(path: str | os.PathLike) -> bool:
    """Whether the first byte is that of a binary SolverState."""
    try:
        with Path(path).open("rb") as file:
            return file.read(1) == SOLVER_STATE_START
    except OSError:
        return False


def _state_message(path: str | os.PathLike) -> str:
    return f"{path}: this is a solver state, not weights: resume from it with --snapshot, or load its .caffemodel"


def _stored_proto(blob: BlobProto) -> StoredBlob:
    four_axes = any(blob.HasField(name) for name in ("num", "channels", "height", "width"))  # type: ignore[arg-type]
    return StoredBlob(blob_shape(blob), lambda: blob_to_array(blob), four_axes)


def _hdf5_layers(group: Any, name: str = "") -> Iterator[tuple[str, StoredLayer]]:
    """The layers below a group; a name with slashes (inception_3a/1x1) is a path of groups."""
    for key, member in group.items():
        if member is None:
            raise KeyError(f"{group.name}/{key}")
        if not _is_group(member):
            continue
        layer = f"{name}/{key}" if name else key
        datasets = {int(index): one for index, one in member.items() if index.isdecimal() and not _is_group(one)}
        if datasets or not len(member):
            yield layer, {i: StoredBlob(one.shape, partial(one.__getitem__, ())) for i, one in datasets.items()}
        yield from _hdf5_layers(member, layer)


def _is_group(member: Any) -> bool:
    return not hasattr(member, "shape")


def _write_hdf5(file: Any, net: Any, write_diff: bool) -> None:
    owned = {id(blob) for blob in net.learnable_params}
    for kind in ("data", "diff") if write_diff else ("data",):
        group = file.create_group(kind)
        for layer in net.layers:
            layer_group = group.require_group(layer.name)
            for i, blob in enumerate(layer.blobs):
                if id(blob) in owned:
                    layer_group.create_dataset(str(i), data=net.backend.to_host(getattr(blob, kind)))
