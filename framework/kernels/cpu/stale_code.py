"""Numba's cache looks at a compiled function's own file alone; here, at all whose functions it may have taken in."""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

STAMP = "kernels.stamp"


def forget_stale_code(folder: Path) -> None:
    """Remove the compiled code in ``folder``'s __pycache__ if a source file has changed since it was made."""
    sources = sorted(folder.glob("*.py"))
    state = [(source.name, source.stat().st_mtime_ns, source.stat().st_size) for source in sources]
    stamp, cache = sha256(repr(state).encode()).hexdigest(), folder / "__pycache__"
    with suppress(OSError):  # a folder that cannot be written has no cache to go stale
        if (cache / STAMP).is_file() and (cache / STAMP).read_text() == stamp:
            return
        cache.mkdir(exist_ok=True)
        for code in [*cache.glob("*.nbi"), *cache.glob("*.nbc")]:
            code.unlink(missing_ok=True)
        (cache / STAMP).write_text(stamp)
