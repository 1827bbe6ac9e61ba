# pyright: basic
"""From a Python function to the address of its machine code, through the cache on disk.

Every function is loaded by an execution engine of its own, whether it was compiled now or read from the cache. Names inside
one object file then cannot be confused with those of another, which two processes may have named alike.

Numba and llvmlite have no types, so this module is checked loosely.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clipup.compilation import cache
from clipup.compilation.cache import ObjectCode
from clipup.compilation.functions import fingerprint, jitted
from clipup.errors import InvalidArgument, MissingDependency

_log = logging.getLogger("clipup")
_UNRELATED = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER", "NUMBA_DISABLE_JIT"}
_loaded: dict[str, MachineCode] = {}


@dataclass(frozen=True)
class MachineCode:
    """A function in machine code.

    Attributes
    ----------
    address
        Where it is.
    compiled
        Whether this process compiled it (False: it was read from the cache).
    keep
        What must live as long as the code.
    """

    address: int
    compiled: bool
    keep: tuple[object, ...]


def is_installed() -> bool:
    """Return whether Numba is there."""
    return importlib.util.find_spec("numba") is not None


def is_disabled() -> bool:
    """Return whether ``NUMBA_DISABLE_JIT=1`` asks for plain Python."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def require() -> None:
    """Raise `MissingDependency` where Numba is not installed."""
    if not is_installed():
        raise MissingDependency.of("numba", extra="train")


def load(
    function: Callable[..., Any], signature: Callable[[Any], Any], *, label: str, facts: tuple[object, ...] = ()
) -> MachineCode:
    """Return the machine code of `function` as a C function.

    Parameters
    ----------
    function
        A plain function, with everything that it calls.
    signature
        Given ``numba.types``, returns the types of its arguments and its result (``types.void(types.voidptr)``).
    label
        What is compiled, for the message that says so.
    facts
        What else the code depends on, such as the versions of libraries whose structures it reads.
    """
    require()
    from numba import types
    from numba.core.registry import cpu_target
    from numba.core.runtime import rtsys

    codegen = cpu_target.target_context.codegen()
    rtsys.initialize(cpu_target.target_context)  # makes names known that machine code may call
    wanted = signature(types)
    key = _key(function, (str(wanted), codegen.magic_tuple(), *facts))
    if key in _loaded:
        return _loaded[key]
    found = cache.read(key)
    made = None
    if found is not None:
        made = _link(found, codegen, compiled=False)
    if made is None:
        began = time.monotonic()
        _log.info("compiling %s (once: the result is kept in %s)", label, cache.directory())
        compiled = _compile(function, wanted, codegen)
        if compiled.code and not cache.write(key, compiled):
            _log.warning("cannot write to %s: %s will be compiled again", cache.directory(), label)
        _log.info("compiled %s in %.1f s", label, time.monotonic() - began)
        made = _link(compiled, codegen, compiled=True)
        if made is None:
            raise InvalidArgument(f"{label} calls functions that cannot be found: {', '.join(compiled.externals)}")
    _loaded[key] = made
    return made


def _key(function: Callable[..., Any], facts: tuple[object, ...]) -> str:
    versions = tuple(importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy"))
    switches = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_") and k not in _UNRELATED)
    text = repr((fingerprint([function]), versions, _version(), sys.version_info[:2], switches, facts))
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _version() -> str:
    try:
        return importlib.metadata.version("clipup")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _compile(function: Callable[..., Any], signature: Any, codegen: Any) -> ObjectCode:
    from numba import cfunc

    copy = jitted(function, {}).py_func
    callback = cfunc(signature, error_model="numpy")(copy)
    library = callback._library
    module = library._final_module
    outside = [item for item in (*module.functions, *module.global_variables) if item.is_declaration]
    names = tuple(item.name for item in outside if not item.name.startswith("llvm."))
    if library.has_dynamic_globals:
        raise InvalidArgument("a compiled function must not use arrays above a megabyte, or C functions, as globals")
    return ObjectCode(codegen._tm.emit_object(module), callback.native_name, names)


def _link(code: ObjectCode, codegen: Any, *, compiled: bool) -> MachineCode | None:
    """Return the loaded code; None where a name that it needs does not exist, which would end the process."""
    from llvmlite import binding

    if any(binding.address_of_symbol(name) is None for name in code.externals):
        return None
    options: dict[str, Any] = {"opt": 3}
    codegen._customize_tm_options(options)
    # Not Numba's own target machine: an engine owns the one that it gets.
    machine = binding.Target.from_default_triple().create_target_machine(**options)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code.code))
    engine.finalize_object()
    address = engine.get_function_address(code.entry)
    return MachineCode(address, compiled, (engine,)) if address else None
