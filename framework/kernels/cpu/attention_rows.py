"""What attention does to rows of whole vectors, as LLVM code: softmax, its gradient, copies.

Arrays are taken as flat memory: a ``place`` counts numbers from the first on.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .exp2 import exp2
from .rows import compiled
from .tiles import _Code

CHAINS = 4  # sums or maxima at a time, which do not wait for each other


@intrinsic
def hide(typing_context, row, place, start, stop):
    """row[place + i] = -inf for i from start to stop; whole vectors around them are read and written."""
    signature = types.void(row, *[types.intp] * 3)

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature)
        row, place, start, stop = code.open(arguments)
        integer = ir.IntType(32)
        places = ir.VectorType(integer, code.lanes)
        line, hidden = code.place(row, place), code.constant(float("-inf"))
        first, last = (code.broadcast(builder.trunc(edge, integer)) for edge in (start, stop))
        vector = builder.udiv(start, code.integer(code.lanes))
        behind = builder.udiv(builder.add(stop, code.integer(code.lanes - 1)), code.integer(code.lanes))
        with cgutils.for_range(builder, builder.sub(behind, vector)) as loop:
            number = builder.mul(builder.add(vector, loop.index), code.integer(code.lanes))
            here = builder.add(
                code.broadcast(builder.trunc(number, integer)), ir.Constant(places, list(range(code.lanes)))
            )
            inside = builder.and_(builder.icmp_signed(">=", here, first), builder.icmp_signed("<", here, last))
            target = code.place(line, number)
            code.store_vector(builder.select(inside, hidden, code.load_vector(target)), target)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def softmax_row(typing_context, row, place, count, results):
    """row = 2^(row - m) for ``count`` vectors, with m the largest number; results = m, sum of the row.

    Where the largest is -inf, m is 0: the row becomes 0, or stays NaN where it is NaN.
    """
    signature = types.void(row, types.intp, types.intp, results)

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature)
        row, place, count, results = code.open(arguments)
        start = code.place(row, place)

        def larger(a, b):
            return builder.select(builder.fcmp_ordered(">", a, b), a, b)

        largest = [code.variable() for _ in range(CHAINS)]
        for variable in largest:
            builder.store(code.constant(float("-inf")), variable)
        steps = builder.udiv(builder.add(count, code.integer(CHAINS - 1)), code.integer(CHAINS))
        with cgutils.for_range(builder, steps) as loop:
            for i in range(CHAINS):  # beyond the last vector, the last again
                number = builder.add(builder.mul(loop.index, code.integer(CHAINS)), code.integer(i))
                vector = code.at_most(number, count)
                values = code.load_vector(code.vector_place(start, vector))
                builder.store(larger(values, builder.load(largest[i])), largest[i])
        a, b, c, d = (builder.load(variable) for variable in largest)
        m = code.fold_lanes(larger(larger(a, b), larger(c, d)), larger)
        infinite = builder.fcmp_ordered("==", m, ir.Constant(code.number, float("-inf")))
        m = builder.select(infinite, ir.Constant(code.number, 0.0), m)
        shift, total = code.broadcast(m), code.variable()
        with cgutils.for_range(builder, count) as loop:
            target = code.vector_place(start, loop.index)
            power = exp2(code, builder.fsub(code.load_vector(target), shift))
            code.store_vector(power, target)
            builder.store(builder.fadd(builder.load(total), power), total)
        builder.store(m, results)
        builder.store(code.sum_of_lanes(builder.load(total)), code.place(results, code.integer(1)))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def score_slopes(typing_context, weights, d_scores, place, count, shift, slope):
    """weights = 2^(weights - shift), d_scores = weights (d_scores - slope), for ``count`` vectors of both."""
    signature = types.void(weights, d_scores, types.intp, types.intp, weights.dtype, weights.dtype)

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature)
        weights, d_scores, place, count, shift, slope = code.open(arguments)
        shift, slope = code.broadcast(shift), code.broadcast(slope)
        starts = [code.place(array, place) for array in (weights, d_scores)]
        with cgutils.for_range(builder, count) as loop:
            weight_place, score_place = (code.vector_place(start, loop.index) for start in starts)
            weight = exp2(code, builder.fsub(code.load_vector(weight_place), shift))
            code.store_vector(weight, weight_place)
            difference = builder.fsub(code.load_vector(score_place), slope)
            code.store_vector(builder.fmul(weight, difference), score_place)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def copy_numbers(typing_context, source, s, target, t, count, factor):
    """target[t + i] = factor source[s + i] for ``count`` numbers."""
    signature = types.void(source, types.intp, target, types.intp, types.intp, source.dtype)

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature)
        source, s, target, t, count, factor = code.open(arguments)
        source, target, factors = code.place(source, s), code.place(target, t), code.broadcast(factor)
        whole = builder.udiv(count, code.integer(code.lanes))
        with cgutils.for_range(builder, whole) as loop:
            values = code.load_vector(code.vector_place(source, loop.index))
            code.store_vector(builder.fmul(values, factors), code.vector_place(target, loop.index))
        done = builder.mul(whole, code.integer(code.lanes))
        with cgutils.for_range(builder, builder.sub(count, done)) as loop:
            index = builder.add(done, loop.index)
            value = builder.load(code.place(source, index))
            builder.store(builder.fmul(value, factor), code.place(target, index))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def product_sum(typing_context, a, i, b, j, count):
    """The sum of a[i + k] b[j + k] over ``count`` numbers."""
    signature = a.dtype(a, types.intp, b, types.intp, types.intp)

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature)
        a, i, b, j, count = code.open(arguments)
        a, b, total = code.place(a, i), code.place(b, j), code.variable()
        whole = builder.udiv(count, code.integer(code.lanes))
        with cgutils.for_range(builder, whole) as loop:
            left, right = (code.load_vector(code.vector_place(start, loop.index)) for start in (a, b))
            builder.store(builder.fadd(builder.load(total), builder.fmul(left, right)), total)
        rest = cgutils.alloca_once_value(builder, code.sum_of_lanes(builder.load(total)))
        done = builder.mul(whole, code.integer(code.lanes))
        with cgutils.for_range(builder, builder.sub(count, done)) as loop:
            index = builder.add(done, loop.index)
            product = builder.fmul(*(builder.load(code.place(start, index)) for start in (a, b)))
            builder.store(builder.fadd(builder.load(rest), product), rest)
        return builder.load(rest)

    return signature, generate


@intrinsic
def turn_square(typing_context, source, s, s_step, target, t, t_step):
    """target[t + i t_step + j] = source[s + j s_step + i] for i and j below the number of lanes."""
    signature = types.void(source, types.intp, types.intp, target, types.intp, types.intp)

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature)
        source, s, s_step, target, t, t_step = code.open(arguments)
        lines = [
            code.load_vector(code.place(source, builder.add(s, builder.mul(s_step, code.integer(j)))))
            for j in range(code.lanes)
        ]
        half = code.lanes // 2
        while half:  # swap the off-diagonal quarters of ever smaller squares
            lines = turn_step(code, lines, half)
            half //= 2
        for i, line in enumerate(lines):
            code.store_vector(line, code.place(target, builder.add(t, builder.mul(t_step, code.integer(i)))))
        return context.get_dummy_value()

    return signature, generate


def turn_step(code, lines, half):
    """Of each square of 2 half x 2 half numbers in ``lines``, the upper right and lower left quarters swapped."""
    lanes, result = code.lanes, list(lines)
    lower = [lane + lanes - half if lane & half else lane for lane in range(lanes)]
    upper = [lane + lanes if lane & half else lane + half for lane in range(lanes)]
    for j in range(lanes):
        if not j & half:
            pair = lines[j], lines[j + half]
            for place, picks in ((j, lower), (j + half, upper)):
                picks = ir.Constant(ir.VectorType(ir.IntType(32), lanes), picks)
                result[place] = code.builder.shuffle_vector(*pair, picks)
    return result


@compiled
def fill(row, r, start, stop, value):
    """row[r, start:stop] = value"""
    for i in range(start, stop):
        row[r, i] = value
