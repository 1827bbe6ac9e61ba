# pyright: basic
"""`Structure` as a type of Numba. Imported only to compile."""

from __future__ import annotations

import hashlib

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, models, register_model
from numba.np.arrayobj import populate_array

from clipup.compilation.structures import Array, Nested, Number, Structure, Tuple

_WORD = ir.IntType(64)
_KINDS = {
    "float64": types.float64, "float32": types.float32, "int64": types.int64, "int32": types.int32,
    "uint64": types.uint64, "uint8": types.uint8, "bool": types.boolean,
}  # fmt: skip
# What a single number becomes: Python knows one kind of whole numbers, so machine code shall too.
_SCALARS = {"int32": types.int64, "uint8": types.int64, "float32": types.float64}


class View(types.Type):
    """A structure at an address; a second address is where the extents of some arrays stand."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        digest = hashlib.sha256(repr(structure).encode()).hexdigest()[:16]
        super().__init__(name=f"{structure.name}.{digest}")


@register_model(View)
class _ViewModel(models.StructModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, [("address", types.int64), ("elsewhere", types.int64)])


def viewer(structure: Structure):
    """Return an intrinsic of two addresses that gives a view of a structure."""
    kind = View(structure)

    @intrinsic
    def view(_typing, address, elsewhere):
        def generate(context, builder, signature, arguments):
            made = cgutils.create_struct_proxy(kind)(context, builder)
            made.address, made.elsewhere = arguments
            return made._getvalue()

        return kind(types.int64, types.int64), generate

    return view


@infer_getattr
class _ViewAttributes(AttributeTemplate):
    key = View

    def generic_resolve(self, kind, name):
        """Return the type of a field; None where there is none, which Numba reports with the line."""
        field = kind.structure.field(name)
        if isinstance(field, Number):
            return _SCALARS.get(field.dtype, _KINDS[field.dtype])
        if isinstance(field, Array):
            return types.Array(_KINDS[field.dtype], len(field.extents), "C")
        if isinstance(field, Tuple):
            return types.UniTuple(_KINDS[field.dtype], field.length)
        if isinstance(field, Nested):
            return View(field.structure)
        return None


@lower_getattr_generic(View)
def _get(context, builder, kind, value, name):
    made = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    field = kind.structure.field(name)
    place = builder.add(made.address, ir.Constant(_WORD, field.offset))
    if isinstance(field, Number):
        return _load_number(context, builder, made, field)
    if isinstance(field, Tuple):
        item, members = _KINDS[field.dtype], []
        for number in range(field.length):
            members.append(_load(context, builder, builder.add(place, ir.Constant(_WORD, 8 * number)), item))
        return context.make_tuple(builder, types.UniTuple(item, field.length), members)
    if isinstance(field, Nested):
        inner = cgutils.create_struct_proxy(View(field.structure))(context, builder)
        inner.address, inner.elsewhere = place, made.elsewhere
        return inner._getvalue()
    item = _KINDS[field.dtype]
    array_type = types.Array(item, len(field.extents), "C")
    array = context.make_array(array_type)(context, builder)
    if field.pointer:
        place = _load(context, builder, place, types.int64)
    shape = [_extent(context, builder, made, factors) for factors in field.extents]
    size = context.get_abi_sizeof(context.get_data_type(item))
    strides, step = [], ir.Constant(_WORD, size)
    for extent in reversed(shape):
        strides.insert(0, step)
        step = builder.mul(step, extent)
    populate_array(
        array,
        data=builder.inttoptr(place, context.get_data_type(item).as_pointer()),
        shape=shape,
        strides=strides,
        itemsize=ir.Constant(_WORD, size),
        meminfo=None,
    )
    return array._getvalue()


def _load(context, builder, address, kind):
    """Return one number of a type at an address."""
    pointer = builder.inttoptr(address, context.get_data_type(kind).as_pointer())
    return context.unpack_value(builder, kind, pointer)


def _load_number(context, builder, view, field):
    start = view.elsewhere if field.elsewhere else view.address
    address = builder.add(start, ir.Constant(_WORD, field.offset))
    kind = _KINDS[field.dtype]
    return context.cast(builder, _load(context, builder, address, kind), kind, _SCALARS.get(field.dtype, kind))


def _extent(context, builder, view, factors):
    product = ir.Constant(_WORD, 1)
    for factor in factors:
        value = (
            _load_number(context, builder, view, factor) if isinstance(factor, Number) else ir.Constant(_WORD, factor)
        )
        product = builder.mul(product, value)
    return product
