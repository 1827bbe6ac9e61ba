"""One trained policy: observation in, action out. It needs numpy only."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clipup.errors import InvalidArgument
from clipup.policies.act import Actor
from clipup.policies.actions import Actions
from clipup.policies.normalizer import Statistics
from clipup.policies.observations import Observations
from clipup.policies.protocol import PolicyNetwork


@dataclass(frozen=True)
class Policy:
    """A trained policy: a network with its parameters, its observation statistics and its actions.

    One with a memory remembers from call to call; call `reset` when an episode starts. Pickled, it starts anew.

    Parameters
    ----------
    network, parameters
        The architecture, and its flat parameter vector (converted to float32).
    statistics
        What observations are normalized with; None leaves them as they are.
    actions
        How outputs become actions.
    observations
        The parts of an observation and their order, where it is not a vector by itself.

    Examples
    --------
    >>> from clipup.policies import Network
    >>> policy = Policy(Network(2, 1, bias=False), np.array([1.0, 2.0]), None, Actions("box", 1, (-1.0,), (1.0,), (1,)))
    >>> policy([0.25, 0.25])
    array([0.75], dtype=float32)
    """

    network: PolicyNetwork
    parameters: NDArray[np.float32]
    statistics: Statistics | None
    actions: Actions
    observations: Observations | None = None

    def __post_init__(self) -> None:
        parameters = np.array(self.parameters, dtype=np.float32)
        object.__setattr__(self, "parameters", parameters)
        if parameters.shape != (self.network.parameter_count,):
            raise InvalidArgument(
                f"a {self.network.describe()} network has {self.network.parameter_count} parameters, "
                f"got an array of shape {parameters.shape}"
            )
        if self.network.action_size != self.actions.size:
            raise InvalidArgument(
                f"the network has {self.network.action_size} outputs where the actions take {self.actions.size}"
            )
        if self.statistics is not None and self.statistics.mean.shape != (self.network.observation_size,):
            raise InvalidArgument(
                f"statistics must be of {self.network.observation_size} observations, got {self.statistics.mean.shape}"
            )
        if self.observations is not None and self.observations.size != self.network.observation_size:
            raise InvalidArgument(
                f"the network takes {self.network.observation_size} numbers where the parts of an observation have "
                f"{self.observations.size}"
            )

    def save(self, path: str | os.PathLike[str], *, env: str = "") -> None:
        """Write the policy into a safetensors file; `env` names the environment that it is for.

        `clipup.load_policy` reads it, and ``clipup evaluate`` too where the environment is named.
        """
        # By name, at the call: this module knows no files.
        importlib.import_module("clipup.export.policy").save_policy(self, path, env=env)

    @cached_property
    def _actor(self) -> Actor:
        # Without machine code, to the same bits: a policy in use must not wait for Numba, nor need it.
        return Actor(self.network, self.statistics, self.actions, compiled=False)

    @cached_property
    def _arranged(self) -> NDArray[np.float32]:
        return self._actor.arrange(self.parameters[np.newaxis])

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def reset(self) -> None:
        """Forget everything: an episode starts. Without a memory this does nothing."""
        self.__dict__.pop("_memory", None)

    def __call__(self, observation: ArrayLike | Mapping[str, object]) -> NDArray[np.generic]:
        """Return the action for one observation; for a discrete space it is a 0-d integer array.

        A batch of observations (n, observation_size) gives a batch of actions. With a memory, each row of a batch is an
        episode of its own, and a batch of another size is refused until `reset`. A policy of an environment whose
        observations have parts takes such an observation, or the vector that it becomes. Several actions are one row of
        numbers, in the order of `actions.paths`.
        """
        if self.observations is not None and (isinstance(observation, Mapping | tuple) or np.ndim(observation) == 0):
            observation = self.observations.flatten(observation)
        values = np.asarray(observation)
        single = values.ndim == 1
        rows = values[np.newaxis] if single else values
        if rows.ndim != 2 or rows.shape[1] != self.network.observation_size:
            raise InvalidArgument(
                f"an observation must have {self.network.observation_size} numbers, got shape {values.shape}"
            )
        actions = self._actor.act(self._arranged, rows, self._state(len(rows)))
        return actions[0, ...] if single else actions

    def _state(self, rows: int) -> NDArray[np.float32] | None:
        """Return what the episodes of `rows` rows remember."""
        if not self.network.state_size:
            return None
        memory: NDArray[np.float32] | None = self.__dict__.get("_memory")
        if memory is None:
            memory = self.__dict__["_memory"] = self._actor.initial_state(rows)
        if len(memory) != rows:
            raise InvalidArgument(
                f"a policy that remembers {len(memory)} episode(s) got {rows} observations; call reset first"
            )
        return memory
