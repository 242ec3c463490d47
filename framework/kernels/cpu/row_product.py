"""rows += a W for a few rows at a time, with W packed once: the product inside a recurrent step.

A BLAS packs the weights anew at every call, which for a few rows costs as much as the product.  Here W (K x M) is
packed once for all steps, in panels of a few vectors' width, and a tile of some rows x one panel of sums stays in
vector registers over the loop of k.  For one step alone the weights are read as they are.
"""

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .few_rows import add_dots
from .rows import compiled
from .tiles import MANY_REGISTERS, VECTOR_BYTES, _Code

PANEL_VECTORS = 3
MOST_ROWS = 8 if MANY_REGISTERS else 4  # of a tile, so that all its sums have registers


def pack_panels(W: np.ndarray) -> np.ndarray:
    """W (K x M) as panels (M / width x K x width), the last filled up with zeros."""
    K, M = W.shape
    width = PANEL_VECTORS * VECTOR_BYTES // W.itemsize
    whole, left = divmod(M, width)
    panels = np.empty((whole + (left > 0), K, width), W.dtype)
    panels[:whole] = W[:, : M - left].reshape(K, whole, width).transpose(1, 0, 2)
    if left:
        panels[whole] = 0
        panels[whole, :, :left] = W[:, M - left :]
    return panels


def _row_tile(rows):
    """The product of ``rows`` rows with one panel, as LLVM code."""

    @intrinsic
    def tile(typing_context, a, first, a_step, panel, out, place, out_step):
        """out[place + r out_step + j] += sum over k of a[first + r a_step + k] panel[k, j], all flat but panel."""
        signature = types.void(a, first, a_step, panel, out, place, out_step)

        def generate(context, builder, signature, arguments):
            code = _Code(context, builder, signature)
            a, first, a_step, panel, out, place, out_step = code.open(arguments)
            width = PANEL_VECTORS * code.lanes
            starts = [code.place(a, builder.add(first, builder.mul(a_step, code.integer(r)))) for r in range(rows)]
            targets = [code.place(out, builder.add(place, builder.mul(out_step, code.integer(r)))) for r in range(rows)]
            sums = [[code.variable() for _ in range(PANEL_VECTORS)] for _ in range(rows)]
            for r in range(rows):
                for i in range(PANEL_VECTORS):
                    builder.store(code.load_vector(code.place(targets[r], code.integer(i * code.lanes))), sums[r][i])
            with cgutils.for_range(builder, code.length(3)) as loop:
                line = code.place(panel, builder.mul(loop.index, code.integer(width)))
                values = [
                    code.load_vector(code.place(line, code.integer(i * code.lanes))) for i in range(PANEL_VECTORS)
                ]
                for r in range(rows):
                    factor = code.broadcast(builder.load(code.place(starts[r], loop.index)))
                    for i in range(PANEL_VECTORS):
                        code.add_product(sums[r][i], factor, values[i])
            for r in range(rows):
                for i in range(PANEL_VECTORS):
                    target = code.place(targets[r], code.integer(i * code.lanes))
                    code.store_vector(builder.load(sums[r][i]), target)
            return context.get_dummy_value()

        return signature, generate

    return tile


_tile1, _tile2, _tile3, _tile4, _tile5, _tile6, _tile7, _tile8 = (_row_tile(rows) for rows in range(1, 9))


@compiled
def add_row_product(a, panels, out):
    """out += a W; a (n, K) and out (n, M) of any row step, W (K, M) packed by ``pack_panels``, or W^T (M, K)."""
    if panels.ndim == 2:
        add_dots(a, panels, out)
        return
    M, width = out.shape[1], panels.shape[2]
    whole = M // width
    for p in range(whole):
        _add_panel(a, panels[p], out, p * width)
    if whole < len(panels):  # the last panel is wider than what is left of out's rows
        wide = np.zeros((len(a), width), out.dtype)
        _add_panel(a, panels[whole], wide, 0)
        for r in range(len(wide)):
            for j in range(M - whole * width):
                out[r, whole * width + j] += wide[r, j]


@compiled
def _add_panel(a, panel, out, column):
    """out[:, column : column + width] += a panel, in tiles of about as many rows each."""
    n = len(a)
    a_step, out_step = a.strides[0] // a.itemsize, out.strides[0] // out.itemsize
    size = -(-n // -(-n // MOST_ROWS))
    for first in range(0, n, size):
        rows, start, place = min(size, n - first), first * a_step, first * out_step + column
        if rows == 8:
            _tile8(a, start, a_step, panel, out, place, out_step)
        elif rows == 7:
            _tile7(a, start, a_step, panel, out, place, out_step)
        elif rows == 6:
            _tile6(a, start, a_step, panel, out, place, out_step)
        elif rows == 5:
            _tile5(a, start, a_step, panel, out, place, out_step)
        elif rows == 4:
            _tile4(a, start, a_step, panel, out, place, out_step)
        elif rows == 3:
            _tile3(a, start, a_step, panel, out, place, out_step)
        elif rows == 2:
            _tile2(a, start, a_step, panel, out, place, out_step)
        else:
            _tile1(a, start, a_step, panel, out, place, out_step)
