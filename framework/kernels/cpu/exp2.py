"""2^x of a vector, as LLVM code: in compiled loops LLVM would call the C library for each number.

For float32 2^x = 2^i 2^f with i the nearest integer and f in [-1/2, 1/2]: 2^f by a polynomial fitted to the least
largest relative error (8e-8; 2e-7 with float32's rounding), 2^i by its bits.  Below 2^-126 the result is 0.
For float64, which gradient checks use, the C library is called.
"""

from llvmlite import ir

LN2 = 0.6931471805599453
POLYNOMIAL = (
    1, 0.693147061560251, 0.2402223532236195, 0.05550678368720907, 0.009671961679595494, 0.001327463336532476,
)  # fmt: skip
LOWEST = -127  # of i; as an exponent it is that of 0
ROUNDING = 1.5 * 2**23 + 127  # float32 has no fractions there, and the last bits are i + 127: the exponent of 2^i


def exp2(code, x):
    """2^x for a vector x of numbers below 127, with the tools of ``code`` (see tiles.py); NaN stays NaN."""
    builder = code.builder
    if isinstance(code.number, ir.DoubleType):
        return one_by_one(code, builder.module.declare_intrinsic("llvm.exp2", [code.number]), x)
    lowest, rounding = code.constant(LOWEST), code.constant(ROUNDING)
    x = builder.select(builder.fcmp_ordered(">", lowest, x), lowest, x)
    rounded = builder.fadd(x, rounding)
    f = builder.fsub(x, builder.fsub(rounded, rounding))
    y = code.constant(POLYNOMIAL[-1])
    for coefficient in POLYNOMIAL[-2::-1]:
        product = builder.fmul(y, f, flags=["contract"])
        y = builder.fadd(product, code.constant(coefficient), flags=["contract"])
    integers = ir.VectorType(ir.IntType(32), code.lanes)
    exponent = builder.shl(builder.bitcast(rounded, integers), ir.Constant(integers, [23] * code.lanes))
    return builder.fmul(y, builder.bitcast(exponent, code.vector))


def one_by_one(code, function, x):
    """function(x) for each lane of x."""
    result = code.zero
    for lane in range(code.lanes):
        index = ir.Constant(ir.IntType(32), lane)
        value = code.builder.call(function, [code.builder.extract_element(x, index)])
        result = code.builder.insert_element(result, value, index)
    return result
