"""Policies with a memory, and policies of one's own, step by step: in machine code, in numpy or in Python.

A `Kernel` is one step of one candidate in the Python that Numba compiles. It is compiled once for all tasks: an engine
that runs whole episodes in machine code calls it by its address (`SlotPolicy`), and one that steps many environments
at once runs it on rows (`Stepper`). A network without a kernel computes in Python; machine code calls back for it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup.compilation import machine_code, primitives
from clipup.compilation.structures import array_structure, viewer
from clipup.errors import InvalidArgument, PolicyFault, one_line
from clipup.policies.compiled import without_nan, worth_loading
from clipup.policies.normalizer import Statistics
from clipup.policies.protocol import PolicyNetwork

Rows = NDArray[np.float32]

STEP_NAN, STEP_GOOD, STEP_RAISED = range(3)
"""What became of a step: an output is NaN, all is well, or the policy raised an exception."""

CALL_WORK = 20_000.0
"""What a call costs in numpy; see `clipup.policies.compiled.WORTH_LOADING`."""

_ARRAYS = {
    "parameters": ("float32", 2), "program": ("int64", 2), "sizes": ("int64", 1), "state": ("float32", 2),
    "values": ("float32", 3), "work": ("float64", 3),
}  # fmt: skip
"""What a policy in machine code works with. `values` has two rows for each candidate: inputs and outputs."""
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True, eq=False)
class Kernel:
    """One step of one candidate, in the Python that Numba compiles.

    Attributes
    ----------
    step
        ``step(parameters, program, state, observation, work, outputs)`` fills `outputs` and changes `state`. All are
        float32 vectors, but `program`, a table of whole numbers, and `work`, a table of float64 of shape `work_shape`.
    label
        What is compiled, for messages.
    exact
        Whether plain Python gives the same bits as machine code.
    """

    step: Callable[..., None]
    program: NDArray[np.int64]
    work_shape: tuple[int, int]
    label: str
    exact: bool = True


def make_run(step: Callable[..., None]) -> Callable[..., int]:
    """Return the function that steps `count` candidates, with the memories from `slot` on."""

    def run(block: Any, row: int, slot: int, count: int) -> int:
        parameters, program, sizes, work = block.parameters, block.program, block.sizes, block.work[slot]
        good = True
        for k in range(count):
            own = row + k if parameters.shape[0] > 1 else 0  # one row of parameters may stand for all
            values = block.values[slot + k]
            outputs = values[1, : sizes[1]]
            step(parameters[own], program, block.state[slot + k, : sizes[2]], values[0, : sizes[0]], work, outputs)
            for j in range(sizes[1]):
                good = good and not np.isnan(outputs[j])
        return STEP_GOOD if good else STEP_NAN

    return run


_addresses: dict[Callable[..., None], int] = {}


def load_kernel(kernel: Kernel) -> int:
    """Return the address of the machine code of a kernel: a C function of (words, row, slot, count)."""
    if kernel.step in _addresses:
        return _addresses[kernel.step]
    structure = array_structure("Policy", _ARRAYS)
    block_at, run = viewer(structure), make_run(kernel.step)

    def policy(words: int, row: int, slot: int, count: int) -> int:
        result = STEP_RAISED
        try:
            result = run(block_at(words, 0), row, slot, count)
        except Exception:
            result = STEP_RAISED
        return result

    code = machine_code.load(
        policy,
        lambda types: types.int64(types.int64, types.int64, types.int64, types.int64),
        label=kernel.label,
        facts=(structure,),
    )
    _addresses[kernel.step] = code.address
    return code.address


def prepare(network: PolicyNetwork) -> None:
    """Compile a policy of one's own, if it is one that is compiled: its mistakes are found before anything runs."""
    kernel: Kernel | None = getattr(network, "kernel", None)
    if kernel is not None and not kernel.exact and machine_code.is_installed() and not machine_code.is_disabled():
        load_kernel(kernel)


@dataclass(frozen=True, eq=False)
class Block:
    """The arrays that a kernel works with; see `_ARRAYS`."""

    parameters: Rows
    program: NDArray[np.int64]
    sizes: NDArray[np.int64]
    state: Rows
    values: Rows
    work: NDArray[np.float64]

    def words(self) -> NDArray[np.int64]:
        """Return address and shape of every array."""
        found: list[int] = []
        for name in _ARRAYS:
            array: NDArray[Any] = getattr(self, name)
            found += [array.__array_interface__["data"][0], *array.shape]
        return np.array(found, np.int64)


def _sizes(network: PolicyNetwork) -> NDArray[np.int64]:
    return np.array([network.observation_size, network.action_size, network.state_size], np.int64)


class Stepper:
    """A policy on rows of observations, each row with its own parameters and memory.

    Parameters
    ----------
    network
        The policy.
    statistics
        What observations are normalized by; None leaves them as they are.
    compiled
        Whether to use machine code. None: once it is worth loading, if Numba is installed. The results are equal.
    """

    def __init__(self, network: PolicyNetwork, statistics: Statistics | None, *, compiled: bool | None = None) -> None:
        self.network = network
        self._mean = 0.0 if statistics is None else statistics.mean
        self._scale = 1.0 if statistics is None else statistics.scale
        self._kernel: Kernel | None = getattr(network, "kernel", None)
        possible = self._kernel is not None and machine_code.is_installed() and not machine_code.is_disabled()
        if not possible:
            compiled = False
        elif self._kernel is not None and not self._kernel.exact:
            compiled = True  # as plain Python it may round differently
        self._compiled = compiled
        self._call: Any = None
        self._lock = threading.Lock()

    @np.errstate(over="ignore", invalid="ignore")
    def checked(self, arranged: Rows, state: Rows, observations: NDArray[Any]) -> tuple[Rows, bool]:
        """Return the outputs (n, action_size) of row i's arranged parameters, or of the only row, on observation i.

        Also returns whether none of them is NaN. The rows of `state` are changed.
        """
        network, rows = self.network, len(observations)
        if arranged.shape not in ((rows, network.parameter_count), (1, network.parameter_count)):
            raise InvalidArgument(
                f"arranged parameters must have shape {(rows, network.parameter_count)} or one row, got "
                f"{arranged.shape}"
            )
        inputs = ((np.asarray(observations, np.float64) - self._mean) * self._scale).astype(np.float32)
        if self._call is None:
            use = self._compiled
            if use is None and self._kernel is not None:
                use = worth_loading(self._kernel.step, CALL_WORK + rows * network.parameter_count)
            if not use:
                outputs = network.step(arranged, state, inputs)
                return outputs, without_nan(outputs)
            self._load()
        return self._machine(arranged, state, inputs)

    def _load(self) -> None:
        kernel = self._kernel
        if kernel is None:
            raise InvalidArgument(f"a policy of {self.network.describe()} has no machine code")
        self._call = _CALLBACK(load_kernel(kernel))
        self._sizes = _sizes(self.network)
        self._work = np.zeros((1, *kernel.work_shape))
        self._program = kernel.program
        self._width = int(max(self._sizes[:2]))

    def _machine(self, arranged: Rows, state: Rows, inputs: Rows) -> tuple[Rows, bool]:
        rows, size = len(inputs), self.network.action_size
        values = np.empty((rows, 2, self._width), np.float32)
        values[:, 0, : inputs.shape[1]] = inputs
        own = np.ascontiguousarray(state)
        block = Block(np.ascontiguousarray(arranged), self._program, self._sizes, own, values, self._work)
        words = block.words()
        with self._lock:  # the working memory serves one call at a time
            result = self._call(words.ctypes.data, 0, 0, rows)
        if result == STEP_RAISED:
            raise raised_in_machine_code(self.network)
        if own is not state:
            state[:] = own
        return values[:, 1, :size].copy(), result == STEP_GOOD


def raised_in_machine_code(network: PolicyNetwork) -> PolicyFault:
    """Return the error for a policy whose machine code raised an exception."""
    return PolicyFault(f"policy {network.describe()} raised an exception (NUMBA_DISABLE_JIT=1 tells which)")


class SlotPolicy:
    """A policy for an engine that runs whole episodes in machine code, with a memory for each slot.

    Parameters
    ----------
    network
        The policy.
    parameters
        One candidate per row.
    values, state
        The engine's working memory: for each slot its inputs and outputs, and what it remembers.
    plain
        Whether the engine runs as plain Python.

    Attributes
    ----------
    code, words
        What `clipup.compilation.primitives.call_policy` takes.
    """

    def __init__(self, network: PolicyNetwork, parameters: Rows, values: Rows, state: Rows, *, plain: bool) -> None:
        self._network = network
        self._fault: PolicyFault | None = None
        kernel: Kernel | None = getattr(network, "kernel", None)
        arranged = network.arrange(parameters)
        shape = (1, 1) if kernel is None else kernel.work_shape
        work = np.zeros((len(values), *shape))
        program = np.zeros((1, 1), np.int64) if kernel is None else kernel.program
        block = Block(np.ascontiguousarray(arranged), program, _sizes(network), state, values, work)
        table = block.words()
        self._block, self._keep = block, [table]
        self.words = int(table.ctypes.data)
        run: Callable[[Any, int, int, int], int] = self._step if kernel is None else make_run(kernel.step)
        if plain:
            self.code = primitives.register_policy(lambda row, slot, count: self._guarded(run, row, slot, count))
        elif kernel is None:

            def call(words: int, row: int, slot: int, count: int) -> int:
                return self._guarded(run, row, slot, count)

            callback = _CALLBACK(call)
            self.code = ctypes.cast(callback, ctypes.c_void_p).value or 0
            self._callback = callback
        else:
            self.code = load_kernel(kernel)
        self._plain = plain

    def close(self) -> None:
        """Forget a policy that runs as plain Python."""
        if self._plain:
            primitives.forget_policy(self.code)

    def fault(self) -> PolicyFault:
        """Return why the policy failed."""
        return self._fault or raised_in_machine_code(self._network)

    def _guarded(self, run: Callable[[Any, int, int, int], int], row: int, slot: int, count: int) -> int:
        try:
            with np.errstate(all="ignore"):
                return run(self._block, row, slot, count)
        except PolicyFault as error:
            self._fault = error
        except Exception as error:
            self._fault = PolicyFault(f"policy {self._network.describe()} raised {one_line(error)}")
        return STEP_RAISED

    def _step(self, block: Block, row: int, slot: int, count: int) -> int:
        """Step one candidate of a network that has no kernel."""
        size, outputs, remembered = (int(number) for number in block.sizes)
        state = block.state[slot : slot + 1, :remembered]
        inputs = block.values[slot : slot + 1, 0, :size].copy()
        given = self._network.step(block.parameters[row : row + 1], state, inputs)
        block.values[slot, 1, :outputs] = given[0]
        return STEP_NAN if np.isnan(given).any() else STEP_GOOD
