"""Compiled jobs: how a crew's threads get parts of one, run them and say so without the interpreter lock.

Each worker has a row of whole numbers in shared memory (``framework/crew.py``).  The caller writes what is to be done
and raises BEGUN, last; the worker does it and raises DONE.
"""

import os
import platform
from types import FunctionType

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ...crew import BEGUN, CARGO, CARGO_ROWS, CODE, DONE, FAILED, PART, ROW, START, STOP, SharedKernel
from .rows import compiled

RESTS_TO_YIELD = 256
NAP = np.uint32(50)  # us from one look at a part that takes long to the next
_POSIX = os.name == "posix"
_sched_yield = types.ExternalFunction("sched_yield", types.int32())
_usleep = types.ExternalFunction("usleep", types.int32(types.uint32))
_PAUSE = {"x86_64": "llvm.x86.sse2.pause", "AMD64": "llvm.x86.sse2.pause"}.get(platform.machine())
_WORD = ir.IntType(64)
_JOB = ir.FunctionType(_WORD, [_WORD, _WORD, _WORD, _WORD])


@compiled
def post(row, code, cargo, part, start, stop):
    """Begin a job of the worker that watches ``row``; a code of 0 is a function of Python's that it will find."""
    row[CODE], row[CARGO], row[PART], row[START], row[STOP] = code, cargo, part, start, stop
    _store(row, BEGUN, row[BEGUN] + 1)


@compiled
def watch(row, rests):
    """Wait until all that was begun is done, for so many rests at most; gives whether it is."""
    for rest in range(rests):
        if _load(row, DONE) == row[BEGUN]:
            return True
        _rest(rest)
    return False


@compiled
def serve(row, done, rests, rests_after):
    """Say that a job of Python's is ``done``, then run compiled jobs until there is one of Python's again, or no job at
    all for so many rests; gives whether there is one.

    If there is, rest ``rests_after`` more.
    """
    if done:
        _store(row, DONE, row[DONE] + 1)
    left = rests
    while left > 0:
        if _load(row, BEGUN) != row[DONE]:
            if row[CODE] == 0:
                for _ in range(rests_after):
                    _pause()
                return True
            row[FAILED] = _run(row[CODE], row[CARGO], row[PART], row[START], row[STOP])
            _store(row, DONE, row[DONE] + 1)
            left = rests
        _rest(left)
        left -= 1
    return False


def shared(function):
    """The ``function(part, start, stop, ...)``, compiled, as a kernel whose parts a crew runs.

    What hands them out has the code of ``_run_parts``, under a name by which Numba's cache keeps it with the function.
    """
    alone, name, place = compiled(function), f"{function.__name__}_in_parts", function.__code__
    code = _run_parts.__code__.replace(
        co_name=name, co_qualname=name, co_filename=place.co_filename, co_firstlineno=place.co_firstlineno
    )
    scope = {"hand_out": hand_out, "pack_job": pack_job, "kernel": alone, "__name__": function.__module__}
    return SharedKernel(alone, compiled(FunctionType(code, scope)))


def _run_parts(table, count, parts, rests, *args):
    hand_out(table, count, parts, rests, pack_job(table, kernel, args))  # noqa: F821 - the kernel is put into its scope


@compiled
def hand_out(table, count, parts, rests, job):
    """Run a packed job in parts, all but the first by workers that watch, and wait for them."""
    rows, (code, cargo) = table[CARGO_ROWS - 1 :], job
    for part in range(1, parts):
        post(rows[part], code, cargo, part, count * part // parts, count * (part + 1) // parts)
    failed = _run(code, cargo, 0, 0, count // parts)
    for part in range(1, parts):
        while not watch(rows[part], rests):
            if _POSIX:
                _usleep(NAP)
        failed |= rows[part, FAILED]
    if failed != 0:
        raise RuntimeError("a part of a compiled kernel failed; RECAFFE_PLAIN=1 runs the plain code instead")


@intrinsic
def pack_job(typing_context, table, kernel, args):
    """The addresses of code that runs ``kernel``, and of its arguments, which are copied to the head of the table."""
    signature = typing_context.resolve_function_type(kernel, (types.int64,) * 3 + tuple(args), {})
    compiled_kernel = kernel.dispatcher.get_compile_result(signature)

    def generate(context, builder, call, arguments):
        values = arguments[2]
        if context.get_abi_sizeof(values.type) > CARGO_ROWS * ROW * 8:
            raise TypeError(f"the arguments of {kernel} need more than {CARGO_ROWS} rows")
        cargo = context.make_array(call.args[0])(context, builder, arguments[0]).data
        builder.store(values, builder.bitcast(cargo, values.type.as_pointer()))
        context.add_linking_libs([compiled_kernel.library])

        name = f"{builder.function.name}.job"
        code = ir.Function(builder.module, _JOB, builder.module.get_unique_name(name))
        code.linkage = "internal"
        inside = ir.IRBuilder(code.append_basic_block())
        stored = inside.load(inside.inttoptr(code.args[0], values.type.as_pointer()))
        numbers = [*code.args[1:], *cgutils.unpack_tuple(inside, stored)]
        status, _ = context.call_internal_no_propagate(inside, compiled_kernel.fndesc, signature, numbers)
        inside.ret(inside.zext(status.is_error, _WORD))
        addresses = [builder.ptrtoint(pointer, _WORD) for pointer in (code, cargo)]
        return context.make_tuple(builder, call.return_type, addresses)

    return types.UniTuple(types.int64, 2)(table, kernel, args), generate


@intrinsic
def _run(typing_context, code, cargo, part, start, stop):
    """Run a part of the job whose code stands at ``code``; gives whether it failed."""

    def generate(context, builder, signature, arguments):
        return builder.call(builder.inttoptr(arguments[0], _JOB.as_pointer()), arguments[1:])

    return types.int64(*[types.int64] * 5), generate


@intrinsic
def _load(typing_context, row, place):
    """row[place], as other threads have left it, with all that they have written before."""

    def generate(context, builder, signature, arguments):
        return builder.load_atomic(_address(context, builder, signature, arguments), "acquire", 8)

    return types.int64(row, types.int64), generate


@intrinsic
def _store(typing_context, row, place, value):
    """row[place] = value, behind all that this thread has written before."""

    def generate(context, builder, signature, arguments):
        builder.store_atomic(arguments[2], _address(context, builder, signature, arguments), "release", 8)
        return context.get_dummy_value()

    return types.void(row, types.int64, types.int64), generate


def _address(context, builder, signature, arguments):
    row = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(row.data, [arguments[1]])


@compiled
def _rest(number):
    """Pause; now and then let another thread have the core, which may be the one that is waited for."""
    if _POSIX and number % RESTS_TO_YIELD == RESTS_TO_YIELD - 1:
        _sched_yield()
    _pause()


@intrinsic
def _pause(typing_context):
    """Some cycles of rest for the core."""

    def generate(context, builder, signature, arguments):
        if _PAUSE:
            nothing = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, nothing, _PAUSE), [])
        return context.get_dummy_value()

    return types.void(), generate
