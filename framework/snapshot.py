"""Snapshots: a pair of files, the net's weights and the solver's state, from which a training goes on.

``PREFIX_iter_N.caffemodel`` and ``.solverstate`` (or both with ``.h5``) are Caffe's; the state holds besides,
in fields of recaffe's own that Caffe passes over, what an exact continuation needs: random numbers, positions
in the data, carried states.

The weights are written first, then the state with their digest, each file whole or not at all.  So whenever
the program is killed, the newest state whose weights have the digest it names is a whole pair.
"""

import hashlib
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..proto import (
    RecaffeError,
    SolverState,
    array_to_blob,
    atomic_write,
    blob_to_array,
    read_binary,
    read_net_binary,
    write_binary,
)
from .hdf5 import import_h5py, is_hdf5, open_hdf5
from .saved_state import pack, unpack
from .weights import save_weights, starts_as_solver_state

log = logging.getLogger("recaffe")

OWN_GROUP = "recaffe"  # the group in HDF5 states that Caffe does not know
STRUCTURE = "structure"  # the key of the JSON text beside the arrays 0, 1, ...
CHECKSUM = "checksum"  # beside it: over everything in the state
DIGEST = "weights_digest"
WEIGHTS_GIVEN = "these are weights, not a solver state: give them as --weights, or resume from a .solverstate"


@dataclass
class SavedSolver:
    """A solver's state: iteration, file of the weights, histories in Caffe's order, and recaffe's own state.

    ``own`` is None in files that Caffe wrote.
    """

    iter: int
    learned_net: str
    current_step: int
    history: list[np.ndarray]
    own: dict[str, Any] | None


def check_prefix(prefix: str) -> None:
    """Raise RecaffeError unless files that begin with ``prefix`` can be made."""
    if not prefix:
        raise RecaffeError("solver: snapshots are asked for, but snapshot_prefix is missing")
    folder = Path(prefix).parent
    if not folder.is_dir():
        raise RecaffeError(f"solver: snapshot_prefix {prefix!r}: there is no folder {str(folder)!r}; make it first")
    if not os.access(folder, os.W_OK):
        raise RecaffeError(f"solver: snapshot_prefix {prefix!r}: the folder {str(folder)!r} cannot be written to")


def write_snapshot(
    prefix: str, net: Any, saved: SavedSolver, hdf5: bool = False, write_diff: bool = False
) -> tuple[Path, Path]:
    """Write the weights of ``net``, then the state ``saved`` with their name and digest; gives the two paths."""
    check_prefix(prefix)
    ending, form = (".h5", "HDF5") if hdf5 else ("", "binary proto")
    model = Path(f"{prefix}_iter_{saved.iter}.caffemodel{ending}")
    state = Path(f"{prefix}_iter_{saved.iter}.solverstate{ending}")
    _remove_remains(prefix)
    log.info("Snapshotting to %s file %s", form, model)
    save_weights(net, model, write_diff)
    saved.learned_net = str(model)
    saved.own = {**(saved.own or {}), DIGEST: _digest(model)}
    log.info("Snapshotting solver state to %s file %s", form, state)
    if hdf5:
        _write_hdf5_state(state, saved)
    else:
        write_binary(state, _state_message(saved))
    return model, state


def read_snapshot(path: str | os.PathLike) -> SavedSolver:
    """The state in a .solverstate or .solverstate.h5, by recaffe or by Caffe."""
    if is_hdf5(path):
        with open_hdf5(path) as file, _damage_told(path):
            return _from_hdf5(file, path)
    if Path(path).is_file() and not starts_as_solver_state(path):
        _refuse_weights(path)
    with _damage_told(path):
        return _from_message(read_binary(path, SolverState))


def weights_of(saved: SavedSolver, path: str | os.PathLike) -> Path:
    """The file of the weights that the state in ``path`` was written with: at its own place, else beside the state."""
    if not saved.learned_net:
        raise RecaffeError(f"{path}: the state does not say which weights belong to it")
    written = Path(saved.learned_net)
    beside = Path(path).parent / written.name
    found = [candidate for candidate in (beside, written) if candidate.is_file()]
    if not found:
        raise RecaffeError(f"{path}: the weights that belong to it are missing: no file {beside} and no {written}")
    if saved.own is None:
        return found[0]
    for candidate in found:
        if _digest(candidate) == saved.own[DIGEST]:
            return candidate
    raise RecaffeError(f"{found[0]}: these are not the weights that {path} was written with, or they are damaged")


def latest_snapshot(prefix: str) -> Path | None:
    """The state of the newest snapshot under ``prefix`` whose two files are whole, or None."""
    pattern = re.compile(re.escape(Path(prefix).name) + r"_iter_(\d+)\.solverstate(\.h5)?")
    folder = Path(prefix).parent
    paths = folder.iterdir() if folder.is_dir() else ()
    found = [(int(match[1]), path) for path in paths if (match := pattern.fullmatch(path.name))]
    for _, path in sorted(found, reverse=True):
        if _is_whole(path):
            return path
    return None


def _is_whole(path: Path) -> bool:
    try:
        weights_of(read_snapshot(path), path)
    except RecaffeError as error:
        log.warning("snapshot %s is passed over: %s", path, error)
        return False
    return True


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def _refuse_weights(path: str | os.PathLike) -> None:
    """Raise a RecaffeError that says so if the file holds weights."""
    try:
        read_net_binary(path)
    except RecaffeError:
        return
    raise RecaffeError(f"{path}: {WEIGHTS_GIVEN}")


def _remove_remains(prefix: str) -> None:
    """Remove the temporary files that a killed run left."""
    path = Path(prefix)
    for file in path.parent.glob(f".{path.name}_iter_*.tmp"):
        file.unlink(missing_ok=True)


def _state_message(saved: SavedSolver) -> SolverState:
    message = SolverState(iter=saved.iter, learned_net=saved.learned_net, current_step=saved.current_step)
    message.history.extend(array_to_blob(array) for array in saved.history)
    text, arrays = pack(saved.own)
    message.state.add(key=STRUCTURE, value=text.encode())
    message.state.add(key=CHECKSUM, value=_checksum(saved, text, arrays).encode())
    for i, array in enumerate(arrays):
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        message.state.add(key=str(i), dtype=little.dtype.str, shape=array.shape, value=little.tobytes())
    return message


def _from_message(message: SolverState) -> SavedSolver:
    history = [blob_to_array(blob) for blob in message.history]
    saved = SavedSolver(message.iter, message.learned_net, message.current_step, history, None)
    entries = {entry.key: entry for entry in message.state}
    if entries:
        arrays = [_entry_array(entries[str(i)]) for i in range(len(entries) - 2)]
        _fill_own(saved, entries[STRUCTURE].value.decode(), arrays, entries[CHECKSUM].value.decode())
    return saved


def _entry_array(entry: Any) -> np.ndarray:
    array = np.frombuffer(entry.value, np.dtype(entry.dtype)).reshape(tuple(entry.shape))
    return array.astype(array.dtype.newbyteorder("="))


@contextmanager
def _damage_told(path: str | os.PathLike) -> Iterator[None]:
    """Errors from missing or unusable parts of a state become a RecaffeError."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise RecaffeError(f"{path}: not a whole solver state, it is corrupt or cut short ({error})") from None


def _write_hdf5_state(path: Path, saved: SavedSolver) -> None:
    with atomic_write(path) as temporary, import_h5py().File(temporary.name, "w") as file:
        file.create_dataset("iter", data=np.array([saved.iter], np.int32))
        learned_net = saved.learned_net.encode()
        file.create_dataset("learned_net", data=learned_net, dtype=f"S{len(learned_net) + 1}")  # ends in a zero
        file.create_dataset("current_step", data=np.array([saved.current_step], np.int32))
        history = file.create_group("history")
        for i, array in enumerate(saved.history):
            history.create_dataset(str(i), data=array)
        text, arrays = pack(saved.own)
        own = file.create_group(OWN_GROUP)
        own.create_dataset(STRUCTURE, data=np.bytes_(text.encode()))
        own.create_dataset(CHECKSUM, data=np.bytes_(_checksum(saved, text, arrays).encode()))
        for i, array in enumerate(arrays):
            own.create_dataset(str(i), data=array)


def _from_hdf5(file: Any, path: str | os.PathLike) -> SavedSolver:
    if "history" not in file:
        raise RecaffeError(f"{path}: {WEIGHTS_GIVEN if 'data' in file else 'an HDF5 file without a solver state'}")
    learned_net = bytes(file["learned_net"][()]).rstrip(b"\0").decode() if "learned_net" in file else ""
    history = [file["history"][str(i)][()] for i in range(len(file["history"]))]
    saved = SavedSolver(int(file["iter"][0]), learned_net, int(file["current_step"][0]), history, None)
    if OWN_GROUP in file:
        group = file[OWN_GROUP]
        arrays = [np.asarray(group[str(i)][()]) for i in range(len(group) - 2)]
        text, checksum = (bytes(group[name][()]).decode() for name in (STRUCTURE, CHECKSUM))
        _fill_own(saved, text, arrays, checksum)
    return saved


def _fill_own(saved: SavedSolver, text: str, arrays: list[np.ndarray], checksum: str) -> None:
    """Set recaffe's own state; raises ValueError where anything in the file is not what was written."""
    if _checksum(saved, text, arrays) != checksum:
        raise ValueError("its checksum is wrong")
    saved.own = unpack(text, arrays)


def _checksum(saved: SavedSolver, text: str, arrays: list[np.ndarray]) -> str:
    digest = hashlib.blake2b(f"{saved.iter} {saved.current_step} {saved.learned_net} {text}".encode())
    for array in (*saved.history, *arrays):
        digest.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
