# pyright: basic
"""Operations of the machine, for Numba: pointers, atomic numbers, calls by address. Imported only to compile.

Numba and llvmlite have no types, so this module is checked loosely.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from clipup.compilation.random_code import seeded_random  # noqa: F401 -- all of them are found here

_WORD = ir.IntType(64)


@intrinsic
def take_next(_typing, counter):
    """Return the number in a vector of one int64 and add one to it, in one go for all threads."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.atomic_rmw("add", array.data, ir.Constant(_WORD, 1), "monotonic")

    return types.int64(counter), generate


@intrinsic
def present(_typing, number):
    """Return the number in a vector of one int64 as it is now: a loop cannot keep an old value.

    What another thread wrote before that number is seen too.
    """

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load_atomic(array.data, "acquire", 8)

    return types.int64(number), generate


@intrinsic
def address_of(_typing, pointer):
    """Return a pointer as a number."""

    def generate(_context, builder, _signature, arguments):
        return builder.ptrtoint(arguments[0], _WORD)

    return types.int64(types.voidptr), generate


def _load(kind, size):
    """Return an intrinsic that loads one number of a type from an address."""

    @intrinsic
    def load(_typing, address):
        def generate(context, builder, _signature, arguments):
            place = builder.inttoptr(arguments[0], context.get_data_type(kind).as_pointer())
            return builder.load(place, align=size)

        return kind(types.int64), generate

    return load


load_int32 = _load(types.int32, 4)


@intrinsic
def call_pair(_typing, function, first, second):
    """Call a C function of two pointers that returns nothing, by its address."""

    def generate(context, builder, _signature, arguments):
        kind = ir.FunctionType(ir.VoidType(), [_WORD, _WORD])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def call_policy(_typing, function, words, row, slot):
    """Call a C function of four whole numbers that returns one, by its address: one candidate takes a step."""

    def generate(_context, builder, _signature, arguments):
        kind = ir.FunctionType(_WORD, [_WORD] * 4)
        one = ir.Constant(_WORD, 1)
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [*arguments[1:], one])

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate
