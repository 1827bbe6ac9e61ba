"""Any module of PyTorch as a policy. This module never imports torch itself unless it is given one of its modules.

The flat parameter vector holds the module's parameters in the order of ``parameters()``. Buffers stay as they are. Each
candidate is evaluated alone, by the module itself. A batch by ``torch.func.vmap`` gives other last bits than the module
alone (tried with torch 2.13: no row of 40 was equal), so a trained policy would not act as its candidate did.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import importlib
import sys
import threading
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.errors import InvalidArgument, PolicyFault, one_line
from clipup.policies.feedforward import check_rows
from clipup.policies.own import DETERMINISTIC, random_states, remake
from clipup.policies.protocol import Piece

Rows = NDArray[np.float32]
TRAINING_HINT = "; it is in training mode: call eval() on it"


def is_module(thing: object) -> bool:
    """Return whether `thing` is a module of PyTorch; torch is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module)


@contextlib.contextmanager
def same_random_numbers() -> Generator[None]:
    """Let torch draw the same numbers in every process, and leave its generator as it was."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@dataclass(frozen=True)
class ModuleNetwork:
    """A ``torch.nn.Module`` as a policy.

    Parameters
    ----------
    name
        What it is called, in messages and files.
    observation_size, action_size
        Length of an observation, and number of outputs.
    module
        The module. It takes observations (1, observation_size) and returns outputs (1, action_size). One that remembers
        returns the outputs and its state, a tensor or a tuple of tensors, and takes that state as its second argument
        from the second step on.
    source
        What another process makes it from, if not from the object (`clipup.policies.named.PolicyName`).
    """

    name: str
    observation_size: int
    action_size: int
    module: Any = field(compare=False, repr=False)
    source: object = field(default=None, compare=False, repr=False)
    parameter_count: int = field(init=False)
    state_size: int = field(init=False)
    state_layout: tuple[bool, list[tuple[int, ...]]] = field(init=False, compare=False, repr=False)
    """Whether the state is a tuple, and the shapes of its tensors."""

    def __post_init__(self) -> None:
        torch = self._torch
        object.__setattr__(self, "module", copy.deepcopy(self.module))  # the caller's stays as it is
        if any(map(torch.nn.parameter.is_lazy, self.module.parameters())):
            raise InvalidArgument(
                f"policy {self.name} has parameters without a shape: give its lazy layers an observation first"
            )
        sizes = [int(parameter.numel()) for parameter in self.module.parameters()]
        if not sum(sizes):
            raise InvalidArgument(f"policy {self.name} is a module without parameters, so there is nothing to learn")
        for name, parameter in self.module.named_parameters():
            if parameter.dtype != torch.float32 or parameter.device.type != "cpu":
                raise InvalidArgument(
                    f"parameters of a module must be float32 on the CPU, but {name} of policy {self.name} is "
                    f"{parameter.dtype} on {parameter.device}"
                )
        object.__setattr__(self, "parameter_count", sum(sizes))
        object.__setattr__(self, "state_size", 0)
        object.__setattr__(self, "state_size", self._try_out())

    @cached_property
    def _torch(self) -> Any:
        return importlib.import_module("torch")

    @cached_property
    def _local(self) -> threading.local:
        return threading.local()

    def __reduce__(self) -> tuple[Any, tuple[object, ...]]:
        return remake, (self.source or self.module, self.name, self.observation_size, self.action_size)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The arrays in the flat parameter vector, in the order of ``parameters()``."""
        found: list[Piece] = []
        for name, parameter in self.module.named_parameters():
            found.append(Piece(f"module.{name}", tuple(parameter.shape), found[-1].place.stop if found else 0))
        return tuple(found)

    def buffers(self) -> dict[str, NDArray[Any]]:
        """Return what the module holds besides its parameters, by name."""
        return {f"buffer.{name}": one.detach().numpy().copy() for name, one in self.module.named_buffers()}

    def with_buffers(self, values: Mapping[str, NDArray[Any]]) -> ModuleNetwork:
        """Return the policy with other values in its buffers; `InvalidArgument` where they do not fit."""
        module = copy.deepcopy(self.module)
        for name, one in module.named_buffers():
            given = values.get(f"buffer.{name}")
            if given is None or given.shape != tuple(one.shape) or given.dtype != one.numpy().dtype:
                raise InvalidArgument(f"buffer {name} of policy {self.name} is not as the module has it")
            one.copy_(self._torch.from_numpy(np.array(given)))
        return dataclasses.replace(self, module=module)

    def describe(self) -> str:
        """Return its name."""
        return self.name

    def check(self, parameters: Rows) -> None:
        """Raise `InvalidArgument` unless `parameters` has one row per candidate of this module's length."""
        check_rows(self, parameters)

    def initial_center(self, seed: int) -> Rows:
        """Return the module's own parameters."""
        return np.concatenate([one.detach().numpy().ravel() for one in self.module.parameters()]).astype(np.float32)

    def arrange(self, parameters: Rows) -> Rows:
        """Return the parameters as they are."""
        return parameters

    def step(self, arranged: Rows, state: Rows, inputs: Rows) -> Rows:
        """Return the outputs of row i's parameters on row i's inputs, one after the other; change the states."""
        outputs = np.empty((len(inputs), self.action_size), np.float32)
        module, single = self._own_module(), len(arranged) == 1
        with self._torch.inference_mode():
            for row in range(len(inputs)):
                self._load(module, arranged[0 if single else row])
                outputs[row] = self._call(module, inputs[row : row + 1], state[row])
        return outputs

    def loaded(self, parameters: Rows) -> Any:
        """Return a copy of the module that has these parameters."""
        module, place = copy.deepcopy(self.module), 0
        with self._torch.no_grad():
            for parameter in module.parameters():
                size = parameter.numel()
                flat = self._torch.from_numpy(np.array(parameters[place : place + size]))
                parameter.copy_(flat.view_as(parameter))
                place += size
        return module

    def _own_module(self) -> Any:
        """Return a copy of the module for this thread, whose parameters may be overwritten."""
        local = self._local
        if not hasattr(local, "module"):
            local.module = copy.deepcopy(self.module)
            for parameter in local.module.parameters():
                parameter.requires_grad_(False)
            local.parameters = list(local.module.parameters())
            local.loaded = b""
        return local.module

    def _load(self, module: Any, row: Rows) -> None:
        """Copy a candidate's parameters into the module, which keeps them where they are aligned in memory."""
        local, torch = self._local, self._torch
        bits = row.tobytes()
        if bits == local.loaded:
            return
        local.loaded = b""
        flat, place = torch.from_numpy(np.array(row)), 0
        for parameter in local.parameters:
            size = parameter.numel()
            parameter.copy_(flat[place : place + size].view_as(parameter))
            place += size
        local.loaded = bits

    def _call(self, module: Any, inputs: Rows, state: Rows) -> Rows:
        torch = self._torch
        given = torch.from_numpy(np.array(inputs))
        try:
            remembers = self.state_size and state[-1] != 0.0
            found = module(given, self._unpacked(state)) if remembers else module(given)
        except Exception as error:
            raise PolicyFault(f"policy {self.name} raised {one_line(error)}") from error
        if self.state_size:
            if not isinstance(found, tuple) or len(cast("tuple[Any, ...]", found)) != 2:
                raise PolicyFault(f"policy {self.name} stopped returning a state")
            found, following = cast("tuple[Any, Any]", found)
            self._pack(following, state)
        if tuple(found.shape) not in ((1, self.action_size), (self.action_size,)):
            raise PolicyFault(
                f"policy {self.name} must give outputs of shape (1, {self.action_size}), got {tuple(found.shape)}"
            )
        return found.numpy().reshape(-1)

    def _tensors(self, state: Any) -> list[Any]:
        parts = cast("tuple[Any, ...]", state) if isinstance(state, tuple | list) else (state,)
        for part in parts:
            if not self._torch.is_tensor(part) or part.dtype != self._torch.float32:
                raise PolicyFault(
                    f"policy {self.name} must remember a float32 tensor, or a tuple of them, got {type(part).__name__}"
                )
        return list(parts)

    def _pack(self, following: Any, state: Rows) -> None:
        """Write the tensors of a state into a vector. Its last number says that there is a state."""
        place = 0
        tensors = self._tensors(following)
        if [tuple(part.shape) for part in tensors] != [tuple(shape) for shape in self.state_layout[1]]:
            raise PolicyFault(f"policy {self.name} changed the shape of its state")
        for part in tensors:
            state[place : place + part.numel()] = part.numpy().ravel()
            place += part.numel()
        state[-1] = 1.0

    def _unpacked(self, state: Rows) -> Any:
        is_tuple, shapes = self.state_layout
        parts: list[Any] = []
        place = 0
        for shape in shapes:
            size = int(np.prod(shape))
            parts.append(self._torch.from_numpy(np.array(state[place : place + size])).view(shape))
            place += size
        return tuple(parts) if is_tuple else parts[0]

    def _try_out(self) -> int:
        """Take a few steps and return the size of the state; `InvalidArgument` where they fail or are random."""
        with same_random_numbers():  # so that a module that draws some leaves torch's generator as it was
            return self._tried()

    def _tried(self) -> int:
        torch = self._torch
        drawn = random_states()
        self.__dict__["state_layout"] = (False, [])
        observation = np.random.Generator(np.random.Philox(7)).standard_normal(
            (1, self.observation_size), dtype=np.float32
        )
        given = torch.from_numpy(observation)
        buffers = [one.clone() for one in self.module.buffers()]
        try:
            with torch.inference_mode():
                found = self.module(given)
        except Exception as error:
            hint = TRAINING_HINT if self.module.training and self._acts_in_evaluation_mode(given) else ""
            raise InvalidArgument(
                f"policy {self.name} fails on an observation of shape (1, {self.observation_size}): "
                f"{one_line(error)}{hint}"
            ) from error
        size, outputs = 0, found
        try:
            if isinstance(found, tuple):
                if len(cast("tuple[Any, ...]", found)) != 2:
                    raise PolicyFault(
                        f"policy {self.name} must return its outputs, or its outputs and its state, got "
                        f"{len(cast('tuple[Any, ...]', found))} things"
                    )
                outputs, state = cast("tuple[Any, Any]", found)
                tensors = self._tensors(state)
                self.__dict__["state_layout"] = (
                    isinstance(state, tuple | list),
                    [tuple(part.shape) for part in tensors],
                )
                size = sum(int(part.numel()) for part in tensors) + 1
            if not torch.is_tensor(outputs) or tuple(outputs.shape) not in ((1, self.action_size), (self.action_size,)):
                got = tuple(outputs.shape) if torch.is_tensor(outputs) else type(outputs).__name__
                raise PolicyFault(
                    f"policy {self.name} gives outputs of shape {got} where the actions take (1, {self.action_size})"
                )
            object.__setattr__(self, "state_size", size)
            center = self.initial_center(0)[np.newaxis]
            tried: list[bytes] = []
            for _ in range(3):
                memory = np.zeros((1, size), np.float32)
                steps = [self.step(center, memory, observation) for _ in range(2)]
                tried.append(b"".join([*(one.tobytes() for one in steps), memory.tobytes()]))
        except PolicyFault as error:
            raise InvalidArgument(str(error)) from error
        changed = any(not torch.equal(one, other) for one, other in zip(buffers, self.module.buffers(), strict=True))
        hint = TRAINING_HINT if self.module.training else ""
        if changed or len(set(tried)) > 1:
            raise InvalidArgument(
                f"policy {self.name} acts differently on the same parameters, state and observation{hint}"
            )
        if random_states() != drawn:
            raise InvalidArgument(f"policy {self.name} draws random numbers when it acts: {DETERMINISTIC}{hint}")
        return size

    def _acts_in_evaluation_mode(self, given: Any) -> bool:
        with contextlib.suppress(Exception), self._torch.inference_mode():
            copy.deepcopy(self.module).eval()(given)
            return True
        return False
