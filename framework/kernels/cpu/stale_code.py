"""Numba's cache looks at a compiled function's own file alone; here, at all whose functions it may have taken in."""

from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

STAMP = "kernels.stamp"


def forget_stale_code(folder: Path, sources: Iterable[Path]) -> None:
    """Remove the compiled code in ``folder``'s __pycache__ if one of the ``sources`` has changed since it was made.

    A folder that cannot be written is left as it is, and so is a cache elsewhere (NUMBA_CACHE_DIR).
    """
    state = [(source.name, source.stat().st_mtime_ns, source.stat().st_size) for source in sorted(sources)]
    stamp, cache = sha256(repr(state).encode()).hexdigest(), folder / "__pycache__"
    with suppress(OSError):
        if (cache / STAMP).is_file() and (cache / STAMP).read_text() == stamp:
            return
        cache.mkdir(exist_ok=True)
        for code in [*cache.glob("*.nbi"), *cache.glob("*.nbc")]:
            code.unlink(missing_ok=True)
        (cache / STAMP).write_text(stamp)
