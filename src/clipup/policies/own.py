"""Policies of one's own: an object with parameters, a memory and a way to act.

There are two kinds. One with a method ``act(parameters, state, observation, action)`` is compiled by Numba, and runs
at full speed on every engine. One that is called, ``policy(parameters, observation)`` or with a memory
``policy(parameters, state, observation)``, is ordinary Python. (`clipup.policies.modules` takes modules of PyTorch.)
"""

from __future__ import annotations

import importlib
import inspect
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.errors import InvalidArgument, PolicyFault, one_line
from clipup.policies.feedforward import check_rows
from clipup.policies.protocol import Piece
from clipup.policies.stepping import Kernel

Rows = NDArray[np.float32]
LARGEST = 2**31
"""More parameters, or numbers to remember, than a machine could hold for a population."""
DETERMINISTIC = "it must be deterministic, and remember nothing but its state"


@dataclass(frozen=True)
class OwnNetwork:
    """A policy of one's own, for observations and outputs of these sizes.

    Parameters
    ----------
    name
        What it is called, in messages and files.
    observation_size, action_size
        Length of an observation, and number of outputs.
    policy
        The object. It has `parameter_count`, and if it remembers something `state_size`. It has a function
        ``act(parameters, state, observation, action)``, which fills `action` and changes `state` and is compiled by
        Numba; or else it can be called: ``policy(parameters, observation)`` returns the outputs, or with a memory
        ``policy(parameters, state, observation)`` returns the outputs and the next state. All are float32 vectors. The
        state is zero when an episode starts. ``initial_center(seed)``, if it has one, returns the parameters that a
        search starts from; otherwise they are zero.
    source
        What another process makes it from, if not from the object (`clipup.policies.named.PolicyName`).
    """

    name: str
    observation_size: int
    action_size: int
    policy: Any = field(compare=False, repr=False)
    source: object = field(default=None, compare=False, repr=False)
    parameter_count: int = field(init=False)
    state_size: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameter_count", _count(self.name, self.policy, "parameter_count", 1))
        object.__setattr__(self, "state_size", _count(self.name, self.policy, "state_size", 0))
        if not callable(getattr(self.policy, "act", None)) and not callable(self.policy):
            raise InvalidArgument(
                f"policy {self.name} needs a function act(parameters, state, observation, action), or must be "
                f"callable: policy(parameters, observation); {type(self.policy).__name__} has neither"
            )
        if inspect.ismethod(getattr(self.policy, "act", None)):
            raise InvalidArgument(
                f"act of policy {self.name} takes (parameters, state, observation, action) and no self, because it is "
                "compiled; write @staticmethod above it"
            )
        self._try_out()

    def __reduce__(self) -> tuple[Any, tuple[object, ...]]:
        return remake, (self.source or self.policy, self.name, self.observation_size, self.action_size)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The arrays in the flat parameter vector: one."""
        return (Piece("parameters", (self.parameter_count,), 0),)

    @property
    def compiled(self) -> bool:
        """Whether the policy has a function `act`, which Numba compiles."""
        return callable(getattr(self.policy, "act", None))

    def describe(self) -> str:
        """Return its name."""
        return self.name

    def check(self, parameters: Rows) -> None:
        """Raise `InvalidArgument` unless `parameters` has one row per candidate of this policy's length."""
        check_rows(self, parameters)

    def initial_center(self, seed: int) -> Rows:
        """Return the parameters that a search starts from."""
        own = getattr(self.policy, "initial_center", None)
        if own is None:
            return np.zeros(self.parameter_count, np.float32)
        center = np.asarray(own(seed), np.float32)
        if center.shape != (self.parameter_count,) or not np.isfinite(center).all():
            raise InvalidArgument(
                f"initial_center of policy {self.name} must give {self.parameter_count} finite numbers, got an array "
                f"of shape {center.shape}"
            )
        return center

    def arrange(self, parameters: Rows) -> Rows:
        """Return the parameters as they are."""
        return parameters

    @cached_property
    def kernel(self) -> Kernel | None:
        """One step in machine code; None for a policy that is ordinary Python."""
        if not self.compiled:
            return None
        act: Callable[..., Any] = self.policy.act

        def step(parameters: Any, program: Any, state: Any, observation: Any, work: Any, outputs: Any) -> None:
            for j in range(outputs.size):
                outputs[j] = 0.0
            act(parameters, state, observation, outputs)

        return Kernel(step, np.zeros((1, 1), np.int64), (1, 1), f"policy {self.name}", exact=False)

    def step(self, arranged: Rows, state: Rows, inputs: Rows) -> Rows:
        """Return the outputs of row i's parameters on row i's inputs, one after the other; change the states."""
        outputs = np.zeros((len(inputs), self.action_size), np.float32)
        single = len(arranged) == 1
        for row in range(len(inputs)):
            parameters = arranged[0 if single else row]
            try:
                self._step_one(parameters, state[row], inputs[row], outputs[row])
            except PolicyFault:
                raise
            except Exception as error:
                raise PolicyFault(f"policy {self.name} raised {one_line(error)}") from error
        return outputs

    def _step_one(self, parameters: Rows, state: Rows, inputs: Rows, outputs: Rows) -> None:
        if self.compiled:
            self.policy.act(parameters, state, inputs, outputs)
            return
        if self.state_size:
            found = cast(object, self.policy(parameters, state.copy(), inputs))
            if not isinstance(found, tuple) or len(cast("tuple[Any, ...]", found)) != 2:
                got = type(cast(object, found)).__name__
                raise PolicyFault(
                    f"policy {self.name} has a memory, so it must return (outputs, next state), got {got}"
                )
            given, following = cast("tuple[Any, Any]", found)
            state[:] = self._vector(following, self.state_size, "next state")
        else:
            given = self.policy(parameters, inputs)
        outputs[:] = self._vector(given, self.action_size, "outputs")

    def _vector(self, given: Any, size: int, what: str) -> Rows:
        vector = np.asarray(given, np.float32)
        if vector.shape != (size,):
            raise PolicyFault(
                f"policy {self.name} must give {size} numbers as its {what}, got an array of shape {vector.shape}"
            )
        return vector

    def _try_out(self) -> None:
        """Take two steps as plain Python, twice. `InvalidArgument` if they fail, or differ, or go beyond the arrays."""
        numbers = np.random.Generator(np.random.Philox(7))
        parameters = numbers.standard_normal((1, self.parameter_count), dtype=np.float32)
        inputs = numbers.standard_normal((2, 1, self.observation_size), dtype=np.float32)
        parameters.flags.writeable = inputs.flags.writeable = False
        found: list[bytes] = []
        drawn = random_states()
        try:
            with np.errstate(all="ignore"):
                for _ in range(2):
                    state = np.zeros((1, self.state_size), np.float32)
                    outputs = [self.step(parameters, state, one) for one in inputs]
                    found.append(b"".join([*(one.tobytes() for one in outputs), state.tobytes()]))
        except PolicyFault as error:
            hint = "; parameters and observation must stay as they are" if "read-only" in str(error) else ""
            raise InvalidArgument(f"{error}{hint}") from error
        if found[0] != found[1]:
            raise InvalidArgument(
                f"policy {self.name} acts differently on the same parameters, memory and observation: {DETERMINISTIC}"
            )
        if random_states() != drawn:
            raise InvalidArgument(f"policy {self.name} draws random numbers when it acts: {DETERMINISTIC}")


def remake(source: object, name: str, observation_size: int, action_size: int) -> object:
    """Make a policy of one's own in another process."""
    named = importlib.import_module("clipup.policies.named")  # by name, at the call: it knows this module
    if isinstance(source, named.PolicyName):
        return named.make_named(source, observation_size, action_size)
    return named.make_network(source, observation_size, action_size, name=name)


def random_states() -> tuple[object, ...]:
    """Return the states of the generators that all of a process shares. Drawing a number changes one of them.

    Outputs alone do not show that a policy draws numbers: dropout before a layer of zeros, or a rare random action.
    """
    kind, keys, position, *rest = cast("tuple[Any, ...]", np.random.get_state(legacy=True))  # noqa: NPY002
    torch = sys.modules.get("torch")
    of_torch = b"" if torch is None else torch.get_rng_state().numpy().tobytes()
    return random.getstate(), kind, keys.tobytes(), position, tuple(rest), of_torch


def _count(name: str, policy: object, attribute: str, least: int) -> int:
    value = cast(object, getattr(policy, attribute, None if least else 0))
    if isinstance(value, np.integer):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < LARGEST:
        raise InvalidArgument(
            f"policy {name} needs a whole number of at least {least} as its {attribute}, got {value!r}"
        )
    return value
