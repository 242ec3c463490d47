"""The inner loops of convolution, which hold a tile of sums in vector registers.

Numba compiles scalar loops and leaves vectors to LLVM, which keeps no tile of vectors in registers over an
outer loop.  So the two innermost loops are written as LLVM code here; all around them is ordinary Numba.
Both run near a core's peak: each loaded number takes part in several multiplications.
"""

import platform

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_features = binding.get_host_cpu_features()
VECTOR_BYTES = 64 if _features.get("avx512f") else 32 if _features.get("avx") else 16
MANY_REGISTERS = VECTOR_BYTES == 64 or platform.machine() in ("aarch64", "arm64")
ROWS = 4  # a tile is ROWS x VECTORS vectors of sums
VECTORS = 6 if MANY_REGISTERS else 3


def lanes_of(dtype):
    """Numbers of ``dtype`` in a vector."""
    return VECTOR_BYTES // dtype.itemsize


@intrinsic
def multiply_tile(typing_context, source, starts, v, offsets, weights, w, out, row, rows, out_step):
    """out[row + r, v + i] = sum over k of weights[w + k, r] * source[starts[v + i] + offsets[k]].

    Elements of ``out`` (rows of out_step numbers) are vectors, of what follows that place of ``source``; weights is
    (..., ROWS).  r runs over ROWS and i over VECTORS; beyond the last of ``rows`` and ``starts``, the last is done
    again.
    """
    signature = types.void(source, starts, v, offsets, weights, w, out, row, rows, out_step)

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature)
        source, starts, v, offsets, weights, w, out, row, rows, out_step = code.open(arguments)
        sums = [[code.variable() for _ in range(VECTORS)] for _ in range(ROWS)]
        vectors = [code.at_most(builder.add(v, code.integer(i)), code.length(1)) for i in range(VECTORS)]
        places = [code.place(source, builder.load(code.place(starts, i))) for i in vectors]
        first = code.place(weights, builder.mul(w, code.integer(ROWS)))
        with cgutils.for_range(builder, code.length(3)) as loop:
            offset = builder.load(code.place(offsets, loop.index))
            factors = code.place(first, builder.mul(loop.index, code.integer(ROWS)))
            values = [code.load_vector(code.place(place, offset)) for place in places]
            for r in range(ROWS):
                factor = code.broadcast(builder.load(code.place(factors, code.integer(r))))
                for i in range(VECTORS):
                    code.add_product(sums[r][i], factor, values[i])
        for r in range(ROWS):
            out_row = builder.mul(code.at_most(builder.add(row, code.integer(r)), rows), out_step)
            for i in range(VECTORS):
                step = builder.add(out_row, builder.mul(vectors[i], code.integer(code.lanes)))
                code.store_vector(builder.load(sums[r][i]), code.place(out, step))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def correlate_tile(typing_context, source, starts, v, vectors, offsets, k, slopes, s, out, row, rows, out_step):
    """out[row + r, k + i] += sum over v to v + vectors of slopes[s + v, r] * source[starts[v] + offsets[k + i]].

    slopes (..., ROWS, lanes) has vectors, whose lanes are summed as well; out (rows, out_step).  r runs over ROWS and
    i over VECTORS; beyond the last of ``rows`` and ``offsets``, the last is done again.
    """
    signature = types.void(source, starts, v, vectors, offsets, k, slopes, s, out, row, rows, out_step)

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature)
        source, starts, v, vectors, offsets, k, slopes, s, out, row, rows, out_step = code.open(arguments)
        sums = [[code.variable() for _ in range(VECTORS)] for _ in range(ROWS)]
        columns = [code.at_most(builder.add(k, code.integer(i)), code.length(4)) for i in range(VECTORS)]
        places = [code.place(source, builder.load(code.place(offsets, i))) for i in columns]
        first = code.place(slopes, builder.mul(builder.add(s, v), code.integer(ROWS * code.lanes)))
        starts = code.place(starts, v)
        with cgutils.for_range(builder, vectors) as loop:
            start = builder.load(code.place(starts, loop.index))
            factors = code.place(first, builder.mul(loop.index, code.integer(ROWS * code.lanes)))
            values = [code.load_vector(code.place(place, start)) for place in places]
            for r in range(ROWS):
                factor = code.load_vector(code.place(factors, code.integer(r * code.lanes)))
                for i in range(VECTORS):
                    code.add_product(sums[r][i], factor, values[i])
        out_rows = [code.at_most(builder.add(row, code.integer(r)), rows) for r in range(ROWS)]
        targets = [code.place(out, builder.add(builder.mul(r, out_step), i)) for r in out_rows for i in columns]
        old = [builder.load(target) for target in targets]  # all before the first store: some may be done twice
        for target, before, total in zip(targets, old, (s for row_sums in sums for s in row_sums), strict=True):
            builder.store(builder.fadd(before, code.sum_of_lanes(builder.load(total))), target)
        return context.get_dummy_value()

    return signature, generate


class _Code:
    """What the tiles need of LLVM: vectors of the element type of the first argument, an array."""

    def __init__(self, context, builder, signature):
        self.context, self.builder, self.types = context, builder, signature.args
        number = signature.args[0].dtype
        self.number = context.get_value_type(number)
        self.align = number.bitwidth // 8
        self.lanes = VECTOR_BYTES // self.align
        self.vector = ir.VectorType(self.number, self.lanes)
        self.zero = ir.Constant(self.vector, [0.0] * self.lanes)

    def open(self, arguments):
        """Arrays as pointers to their first element, numbers as they are."""
        self.arrays = [
            self.context.make_array(kind)(self.context, self.builder, value) if isinstance(kind, types.Array) else None
            for kind, value in zip(self.types, arguments, strict=True)
        ]
        return [value if array is None else array.data for array, value in zip(self.arrays, arguments, strict=True)]

    def length(self, argument):
        return cgutils.unpack_tuple(self.builder, self.arrays[argument].shape, 1)[0]

    def integer(self, value):
        return ir.Constant(ir.IntType(64), value)

    def constant(self, value):
        """A vector with ``value`` in each lane."""
        return ir.Constant(self.vector, [float(value)] * self.lanes)

    def at_most(self, index, count):
        """min(index, count - 1)"""
        last = self.builder.sub(count, self.integer(1))
        return self.builder.select(self.builder.icmp_signed("<", index, last), index, last)

    def place(self, pointer, index):
        return self.builder.gep(pointer, [index])

    def vector_place(self, pointer, number):
        """Where vector ``number`` from ``pointer`` on begins."""
        return self.place(pointer, self.builder.mul(number, self.integer(self.lanes)))

    def variable(self):
        return cgutils.alloca_once_value(self.builder, self.zero)

    def load_vector(self, pointer):
        return self.builder.load(self.builder.bitcast(pointer, self.vector.as_pointer()), align=self.align)

    def store_vector(self, value, pointer):
        self.builder.store(value, self.builder.bitcast(pointer, self.vector.as_pointer()), align=self.align)

    def prefetch(self, pointer, to_write=True):
        """Let the cache line at ``pointer`` be fetched."""
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = self.builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        arguments = [ir.Constant(word, number) for number in (int(to_write), 3, 1)]  # into all caches, data
        self.builder.call(function, [self.builder.bitcast(pointer, byte), *arguments])

    def broadcast(self, value):
        undefined = ir.Constant(ir.VectorType(value.type, self.lanes), ir.Undefined)
        first = self.builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, undefined, zeros)

    def add_product(self, total, a, b):
        product = self.builder.fmul(a, b, flags=["contract"])
        self.builder.store(self.builder.fadd(self.builder.load(total), product, flags=["contract"]), total)

    def sum_of_lanes(self, vector):
        return self.fold_lanes(vector, self.builder.fadd)

    def fold_lanes(self, vector, combine):
        """The lower half with the upper half, until one number is left."""
        count = self.lanes
        while count > 1:
            count //= 2
            undefined = ir.Constant(vector.type, ir.Undefined)
            halves = [
                self.builder.shuffle_vector(vector, undefined, ir.Constant(ir.VectorType(ir.IntType(32), count), half))
                for half in (list(range(count)), list(range(count, 2 * count)))
            ]
            vector = combine(*halves)
        return self.builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))
