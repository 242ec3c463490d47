"""Text files that list other files, one a line."""

from pathlib import Path

from ...framework.errors import RecaffeError


def read_lines(path: str) -> list[tuple[int, str]]:
    """The lines of a list that are not blank, with their numbers.  Raises RecaffeError where there is none."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise RecaffeError(f"{path}: the list cannot be read: {error.strerror}") from None
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not lines:
        raise RecaffeError(f"{path}: the list is empty")
    return lines
