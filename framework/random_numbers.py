"""Random numbers that are the same on every backend and whose whole state is two integers.

Number i of a stream is a hash of (seed, i): SplitMix64, Steele, Lea and Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014.  It needs no order of evaluation, so threads and GPUs give
the numbers that NumPy gives, and a snapshot stores the seed and the position.
"""

from typing import Any

from .fusable import fusable

GOLDEN_GAMMA = 0x9E3779B97F4A7C15
MASK64 = (1 << 64) - 1


@fusable
def uniform_numbers(backend: Any, out: Any, seed: int, position: int) -> None:
    """out[i] = number ``position + i`` of the stream ``seed``, in [0, 1) with 24 bits; out is contiguous."""
    xp = backend.xp
    z = xp.arange(1, out.size + 1, dtype=xp.uint64)
    z *= xp.uint64(GOLDEN_GAMMA)
    z += xp.uint64((seed + position * GOLDEN_GAMMA) & MASK64)
    z ^= z >> xp.uint64(30)
    z *= xp.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> xp.uint64(27)
    z *= xp.uint64(0x94D049BB133111EB)
    z ^= z >> xp.uint64(31)
    z >>= xp.uint64(40)
    out.reshape(-1)[...] = z
    out *= out.dtype.type(2.0**-24)
