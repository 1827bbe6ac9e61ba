"""What a function is made of: the functions that it calls, a fingerprint, and a copy that Numba can compile.

A user's function stays plain Python. Numba does not compile a plain function that another one calls, so `jitted` makes
a copy in which every such name stands for a compiled function.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numpy as np

AnyFunction = Callable[..., Any]
Function = TypeVar("Function", bound=AnyFunction)


def primitive(function: Function) -> Function:
    """Mark a plain function that `clipup.compilation.intrinsics` has in machine code, under the same name."""
    function.__dict__["_clipup_primitive"] = True
    return function


def is_primitive(function: object) -> bool:
    """Return whether `primitive` marked the function."""
    return getattr(function, "_clipup_primitive", False) is True


def plain(function: object) -> FunctionType | None:
    """Return the Python function behind `function`, which may be one that Numba decorated; None for anything else.

    Functions of numpy and Numba are such anything: Numba has its own code for them.
    """
    inner = getattr(function, "py_func", function)
    if not isinstance(inner, FunctionType):
        return None
    owner = str(cast(object, inner.__module__)).partition(".")[0]  # None for code from `exec`
    return None if owner in ("numpy", "numba") else inner


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Give the code of a function and of those defined within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def references(function: FunctionType) -> dict[str, object]:
    """Return what the function's code takes from outside, by name: globals and variables of enclosing functions."""
    found: dict[str, object] = {}
    for code in _codes(function.__code__):
        for name in code.co_names:
            if name in function.__globals__:
                found[name] = function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        found[name] = cell.cell_contents
    return found


def reachable(functions: Iterable[object]) -> list[FunctionType]:
    """Return the functions given and all plain ones that they call, each once."""
    found: dict[int, FunctionType] = {}
    waiting = list(functions)
    while waiting:
        function = plain(waiting.pop(0))
        if function is None or id(function) in found:
            continue
        found[id(function)] = function
        waiting.extend(references(function).values())
    return list(found.values())


def attribute_names(functions: Iterable[object]) -> set[str]:
    """Return every name that the functions, and those that they call, use for an attribute or a global."""
    return {name for function in reachable(functions) for code in _codes(function.__code__) for name in code.co_names}


def fingerprint(functions: Iterable[object]) -> str:
    """Return a digest of the functions' code, of all that they call, and of the values that they take from outside."""
    digest = hashlib.sha256()
    known: dict[int, int] = {}
    for function in reachable(functions):
        known[id(function)] = len(known)
    for function in reachable(functions):
        digest.update(function.__qualname__.encode())
        _add_code(digest, function.__code__)
        digest.update(repr(function.__defaults__).encode())
        for name, value in sorted(references(function).items()):
            digest.update(f"{name}={_describe(value, known)};".encode())
    return digest.hexdigest()


def _add_code(digest: Any, code: CodeType) -> None:
    digest.update(code.co_code)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount)
    digest.update(repr(names).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _add_code(digest, constant)
        elif isinstance(constant, frozenset):  # in no fixed order
            digest.update(repr(sorted(map(repr, cast("frozenset[object]", constant)))).encode())
        else:
            digest.update(repr(constant).encode())


def _describe(value: object, known: Mapping[int, int]) -> str:
    """Return a text that changes when a value from outside a function changes."""
    function = plain(value)
    if function is not None:
        return f"function {known[id(function)]}"
    if isinstance(value, FunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        return f"{array.dtype}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()}"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}{getattr(value, '_fields', '')}"
    return f"{type(value).__name__} {value!r}"


def jitted(function: object, memo: dict[int, Any]) -> Any:
    """Return a Numba function made from a copy of `function` that calls such functions in turn.

    `memo` holds those made so far, so that each is made once and a function may call itself.
    """
    import numba

    original = plain(function)
    if original is None:
        return function
    if id(original) in memo:
        return memo[id(original)]
    if is_primitive(original):
        intrinsics = importlib.import_module("clipup.compilation.intrinsics")
        return getattr(intrinsics, original.__name__)
    surroundings = dict(original.__globals__)
    cells = tuple(CellType() for _ in original.__closure__ or ())
    copy = FunctionType(original.__code__, surroundings, original.__name__, original.__defaults__, cells)
    copy.__qualname__, copy.__module__ = original.__qualname__, original.__module__
    memo[id(original)] = made = _called_from_machine_code(cast(Any, numba).njit(error_model="numpy")(copy))
    for name, value in references(original).items():
        if name in surroundings:
            surroundings[name] = jitted(value, memo)
    for cell, old in zip(cells, original.__closure__ or (), strict=True):
        cell.cell_contents = jitted(old.cell_contents, memo)
    return made


def _called_from_machine_code(made: Any) -> Any:
    """Spare Numba the code that Python would need to call the function, and an executable of it alone.

    Only other machine code calls these functions, and they are compiled into it. This halves the time of a compilation.
    """
    compiler, compile_one = made._compiler, made._compiler.compile

    def customize(flags: Any) -> Any:
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        return flags

    def compile_without_executable(arguments: Any, result: Any) -> Any:
        # Numba tells overloads apart by their executables, so something must stand for the missing one.
        compiled = compile_one(arguments, result)._replace(entry_point=object())
        made.targetctx.insert_user_function(compiled.entry_point, compiled.fndesc, [compiled.library])
        return compiled

    def add_overload(compiled: Any) -> None:
        made.overloads[tuple(compiled.signature.args)] = compiled

    compiler._customize_flags = customize
    compiler.compile = compile_without_executable
    made.add_overload = add_overload
    return made
