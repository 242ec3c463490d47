"""The errors that are a user's to mend: shown as one message, without a traceback."""

from collections.abc import Iterable


class RecaffeError(Exception):
    """A user's mistake, told in one message: what was found, what was expected, what to do."""


class ParseError(RecaffeError):
    """A mistake in a text file, with its place: `net.prototxt:12:7: ...`."""

    def __init__(self, message: str, path: str, line: int, column: int):
        super().__init__(f"{path}:{line}:{column}: {message}")
        self.path = path
        self.line = line
        self.column = column


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known names most like `name`, best first; at most three, none if nothing is like it."""
    import difflib  # only for a mistake

    by_folded = {candidate.lower(): candidate for candidate in known}
    return [by_folded[folded] for folded in difflib.get_close_matches(name.lower(), by_folded, n=3)]


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of an error about `name`: `; did you mean "num_output"?`, or the known names if few."""
    known = list(known)
    likely = nearest(name, known)
    if likely:
        return "; did you mean " + " or ".join(f'"{candidate}"' for candidate in likely) + "?"
    if 0 < len(known) <= 12:
        return "; known are " + ", ".join(sorted(known))
    return ""
