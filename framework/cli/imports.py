"""``--import``: modules of the user's, whose layers register themselves when imported."""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from ..errors import RecaffeError


def import_modules(names: Iterable[str]) -> None:
    """Import modules by name, or by the path of a .py file; modules of the current folder are found too."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    for name in filter(None, names):
        try:
            _import_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)
        except RecaffeError as error:
            raise RecaffeError(f"--import {name}: {error}") from None
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise RecaffeError(f"--import {name}: {_place(error)}: {error}") from error
            raise RecaffeError(
                f"--import {name}: there is no module {error.name!r} in the current folder ({folder})"
                " nor on Python's path; a file is given as path/to/file.py"
            ) from None
        except Exception as error:
            raise RecaffeError(f"--import {name}: {_place(error)}: {type(error).__name__}: {error}") from error


def _import_file(path: Path) -> None:
    if not path.is_file():
        raise RecaffeError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise RecaffeError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)


def _place(error: BaseException) -> str:
    """Where in the user's code the error arose."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}"
