"""Files of nets, solvers, weights and states: read with clear errors, written whole or not at all."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from google.protobuf.message import DecodeError, EncodeError, Message

from . import recaffe_pb2 as pb
from .errors import RecaffeError
from .text import LayerLines, format_text, parse_text_with_lines
from .upgrade import upgrade_net, upgrade_solver

M = TypeVar("M", bound=Message)
StrPath = str | os.PathLike[str]

LARGEST_MESSAGE = 2**31 - 1  # bytes; what protobuf can read back
_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_TEXT_CONTROLS = frozenset(b"\t\n\v\f\r\x1b")

# Bytes of one message often parse as another: what each must hold to be what it is read as.
_KINDS: dict[type[Message], tuple[str, Callable[[Any], bool]]] = {
    pb.NetParameter: ("a net in binary (.caffemodel)", lambda net: bool(net.layer or net.layers)),
    pb.SolverState: (
        "a solver's state in binary (.solverstate)",
        lambda state: state.HasField("iter") and state.HasField("learned_net"),
    ),
    pb.BlobProto: (
        "a blob in binary (such as a mean file)",
        lambda blob: bool(blob.data or blob.double_data or blob.diff or blob.double_diff or blob.raw_data),
    ),
}


def read_net(path: StrPath) -> pb.NetParameter:
    """The net of a prototxt, upgraded."""
    return read_net_with_lines(path)[0]


def read_net_with_lines(path: StrPath) -> tuple[pb.NetParameter, LayerLines]:
    """The net of a prototxt, upgraded, and the lines of its layers."""
    net, lines = parse_text_with_lines(_read_text(path), pb.NetParameter, str(path))
    return upgrade_net(net, str(path)), lines


def parse_net(text: str, path: str = "<text>") -> pb.NetParameter:
    """The net that a text stands for, upgraded."""
    net, _ = parse_text_with_lines(text, pb.NetParameter, path)
    return upgrade_net(net, path)


def read_solver(path: StrPath) -> pb.SolverParameter:
    """The solver of a prototxt, upgraded with the nets in it."""
    return read_solver_with_lines(path)[0]


def read_solver_with_lines(path: StrPath) -> tuple[pb.SolverParameter, LayerLines]:
    """The solver of a prototxt, upgraded, and the lines of the layers of the nets in it."""
    solver, lines = parse_text_with_lines(_read_text(path), pb.SolverParameter, str(path))
    return upgrade_solver(solver, str(path)), lines


def read_net_binary(path: StrPath) -> pb.NetParameter:
    """The net of a .caffemodel, upgraded."""
    return upgrade_net(read_binary(path, pb.NetParameter), str(path))


def read_binary(path: StrPath, message_class: type[M]) -> M:
    """The message in a binary file, as it is."""
    data = _read_bytes(path)
    message = _parse_as(message_class, data)
    if message is not None:
        return message
    wanted, _ = _KINDS.get(message_class, (f"a binary {message_class.DESCRIPTOR.name}", bool))
    if data.startswith(_HDF5_SIGNATURE):
        raise RecaffeError(f"{path}: this is an HDF5 file; expected {wanted}")
    if _looks_like_text(data):
        raise RecaffeError(f"{path}: this is a text file; expected {wanted}")
    for kind, (found, _) in _KINDS.items():
        if kind is not message_class and _parse_as(kind, data) is not None:
            raise RecaffeError(f"{path}: this is {found}; expected {wanted}")
    raise RecaffeError(f"{path}: not {wanted}, or corrupt or cut short: write or fetch it again")


def _parse_as(message_class: type[M], data: bytes) -> M | None:
    """The message that the bytes are, if they hold what such a message must."""
    try:
        message = message_class.FromString(data)
    except DecodeError:
        return None
    _, holds = _KINDS.get(message_class, ("", lambda message: True))
    return message if holds(message) else None


def write_text(path: StrPath, message: Message) -> None:
    """Write a message as prototxt."""
    with atomic_write(path) as file:
        file.write(format_text(message).encode())


def write_binary(path: StrPath, message: Message) -> None:
    """Write a message in binary. Raises RecaffeError beyond 2 GiB, which no reader of protobuf takes."""
    try:
        data = message.SerializeToString()
    except EncodeError as error:
        raise RecaffeError(f"{path}: not written: {error}") from None
    if len(data) > LARGEST_MESSAGE:
        raise RecaffeError(
            f"{path}: not written: {len(data)} bytes, and protobuf reads at most {LARGEST_MESSAGE}; "
            "save in HDF5 instead"
        )
    with atomic_write(path) as file:
        file.write(data)


@contextlib.contextmanager
def atomic_write(path: StrPath, mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path` that takes its place when the block ends well.

    At any moment, and after any crash, `path` is the old file or the new one, whole.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise RecaffeError(f"{path}: cannot be written: it is not a file")
    temporary = target.with_name(f".{target.name}.{os.urandom(4).hex()}.tmp")
    try:
        with temporary.open(mode.replace("w", "x"), encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            raise RecaffeError(f"{path}: cannot be written: {error.strerror or error}") from None
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut, where the system lets a folder be synced."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read_bytes(path: StrPath) -> bytes:
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise RecaffeError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise RecaffeError(f"{path}: this is a folder; expected a file") from None
    except OSError as error:
        raise RecaffeError(f"{path}: cannot be read: {error.strerror}") from None
    if not data:
        raise RecaffeError(f"{path}: the file is empty")
    return data


def _read_text(path: StrPath) -> str:
    data = _read_bytes(path)
    if not _looks_like_text(data):
        raise RecaffeError(f"{path}: this is a binary file; expected text (prototxt)")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # comments in some other encoding must not make a net unreadable


def _looks_like_text(data: bytes) -> bool:
    return all(byte >= 32 or byte in _TEXT_CONTROLS for byte in data[:4096])
