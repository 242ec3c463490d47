"""Log lines in the form of Caffe's: ``I20261129 18:38:53.343462  9334 solver.py:239] Iteration 0, lr = 0.01``."""

import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TextIO

from ..errors import RecaffeError

log = logging.getLogger("recaffe")


class LogFormatter(logging.Formatter):
    """Severity letter and date, time, thread, place in the source, and the message."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created)
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + self.formatException(record.exc_info)
        return (
            f"{record.levelname[0]}{time:%Y%m%d %H:%M:%S.%f} {threading.get_native_id():5d}"
            f" {record.filename}:{record.lineno}] {message}"
        )


class StderrHandler(logging.Handler):
    """Writes every record to what standard error is at that moment; a closed pipe ends the program."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(LogFormatter())
        self.write: Callable[[str], object] = self.write_line

    def emit(self, record: logging.LogRecord) -> None:
        self.write(self.format(record))

    @staticmethod
    def write_line(line: str) -> None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


@contextmanager
def logging_to_stderr(minloglevel: int) -> Iterator[StderrHandler]:
    """Show log lines, and Python's warnings as such; from ``minloglevel`` 1 on only warnings, from 2 on only errors."""
    handler = StderrHandler()
    handler.setLevel(logging.INFO + 10 * minloglevel)
    previous = log.level, log.propagate
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _log_warning
            yield handler
    finally:
        log.removeHandler(handler)
        log.level, log.propagate = previous


def _log_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning as a log line; those that are not of recaffe's own with their place."""
    log.warning("%s%s", "" if category is UserWarning else f"{filename}:{lineno}: {category.__name__}: ", message)


@contextmanager
def logging_to_file(path: Path) -> Iterator[None]:
    """Append the log lines to the file ``path`` too."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise RecaffeError(f"--log-dir: {path} cannot be written: {error.strerror}") from None
    handler.setFormatter(LogFormatter())
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        handler.close()
