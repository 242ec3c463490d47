"""Products of matrices that are in the cache already: no packing, no call into BLAS.

The tile is one of rows x vectors sums that stay in registers, written as LLVM code (see tiles.py).
"""

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .rows import compiled
from .tiles import MANY_REGISTERS, VECTOR_BYTES, _Code

MOST_VECTORS = 4 if MANY_REGISTERS else 2
ROWS = {1: 8, 2: 8, 3: 8, 4: 6} if MANY_REGISTERS else {1: 8, 2: 4}  # of a tile with so many vectors


def _tile(vectors):
    """The product of up to ROWS[vectors] rows with so many vectors' columns, as LLVM code."""

    @intrinsic
    def tile(
        typing_context, a, first, a_row, a_step, rows, b, column, b_step, depth, out, place, out_step,
        old, old_place, old_step, add,
    ):  # fmt: skip
        """out[place + r out_step + j] = sum over k of a[first + r a_row + k a_step] b[column + k b_step + j], all flat.

        r runs over the rows of the tile; beyond the last of ``rows``, the last is done again.  With ``add``, the sums
        are added to those numbers of old.
        """
        signature = types.void(
            a, first, a_row, a_step, rows, b, column, b_step, depth, out, place, out_step, old, old_place, old_step, add
        )

        def generate(context, builder, signature, arguments):
            code = _Code(context, builder, signature)
            (
                a, first, a_row, a_step, rows, b, column, b_step, depth, out, place, out_step,
                old, old_place, old_step, add,
            ) = code.open(arguments)  # fmt: skip
            count = ROWS[vectors]
            sums = [[code.variable() for _ in range(vectors)] for _ in range(count)]
            numbers = [code.at_most(code.integer(r), rows) for r in range(count)]
            starts = [code.place(a, builder.add(first, builder.mul(a_row, r))) for r in numbers]
            targets = [
                [code.place(line, code.integer(i * code.lanes)) for i in range(vectors)]
                for line in (code.place(out, builder.add(place, builder.mul(out_step, r))) for r in numbers)
            ]
            for line in targets:  # sums in a large matrix arrive while the loop runs
                for target in line:
                    code.prefetch(target)
            source = code.place(b, column)
            with cgutils.for_range(builder, depth) as loop:
                line = code.place(source, builder.mul(loop.index, b_step))
                values = [code.load_vector(code.place(line, code.integer(i * code.lanes))) for i in range(vectors)]
                offset = builder.mul(loop.index, a_step)
                for r in range(count):
                    factor = code.broadcast(builder.load(code.place(starts[r], offset)))
                    for i in range(vectors):
                        code.add_product(sums[r][i], factor, values[i])
            with builder.if_then(cgutils.is_not_null(builder, add)):
                for r in range(count):
                    line = code.place(old, builder.add(old_place, builder.mul(old_step, numbers[r])))
                    for i in range(vectors):
                        before = code.load_vector(code.place(line, code.integer(i * code.lanes)))
                        total = builder.fadd(before, builder.load(sums[r][i]))
                        builder.store(total, sums[r][i])
            for r in range(count):
                for i in range(vectors):
                    code.store_vector(builder.load(sums[r][i]), targets[r][i])
            return context.get_dummy_value()

        return signature, generate

    return tile


_tile1, _tile2 = _tile(1), _tile(2)
_tile3, _tile4 = (_tile(3), _tile(4)) if MOST_VECTORS == 4 else (_tile2, _tile2)
_ROWS1, _ROWS2, _ROWS3, _ROWS4 = ROWS[1], ROWS[2], ROWS.get(3, 1), ROWS.get(4, 1)


@compiled
def multiply(a, b, out, add):
    """The first rows and columns of out = a b, or of out += a b; the rows of b are whole vectors, side by side."""
    multiply_onto(a, b, out, add, out)


@compiled
def multiply_onto(a, b, old, add, out):
    """``multiply``, where what is added to stands in old; a row alone stands for all."""
    lanes = VECTOR_BYTES // out.itemsize
    rows, depth, left = a.shape[0], a.shape[1], b.shape[1] // lanes
    a_row, a_step = a.strides[0] // a.itemsize, a.strides[1] // a.itemsize
    b_step, out_step = b.strides[0] // b.itemsize, out.strides[0] // out.itemsize
    old_step = old.strides[0] // old.itemsize if old.ndim > 1 else 0
    column = 0
    while left > 0:
        vectors = min(left, MOST_VECTORS)
        if vectors == 4:
            for r in range(0, rows, _ROWS4):
                _tile4(
                    a, r * a_row, a_row, a_step, rows - r, b, column, b_step, depth,
                    out, r * out_step + column, out_step, old, r * old_step + column, old_step, add,
                )  # fmt: skip
        elif vectors == 3:
            for r in range(0, rows, _ROWS3):
                _tile3(
                    a, r * a_row, a_row, a_step, rows - r, b, column, b_step, depth,
                    out, r * out_step + column, out_step, old, r * old_step + column, old_step, add,
                )  # fmt: skip
        elif vectors == 2:
            for r in range(0, rows, _ROWS2):
                _tile2(
                    a, r * a_row, a_row, a_step, rows - r, b, column, b_step, depth,
                    out, r * out_step + column, out_step, old, r * old_step + column, old_step, add,
                )  # fmt: skip
        else:
            for r in range(0, rows, _ROWS1):
                _tile1(
                    a, r * a_row, a_row, a_step, rows - r, b, column, b_step, depth,
                    out, r * out_step + column, out_step, old, r * old_step + column, old_step, add,
                )  # fmt: skip
        column += vectors * lanes
        left -= vectors
