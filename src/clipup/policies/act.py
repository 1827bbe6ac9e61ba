"""From observations to actions: the only place where a policy acts.

Engines, `clipup.policies.Policy` and ``clipup bench`` all act through `Actor`, or through the same functions in machine
code (`clipup.policies.compiled`, `clipup.policies.stepping`), to the same bits. Exports are tested against it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.policies.actions import Actions
from clipup.policies.compiled import Forward
from clipup.policies.feedforward import Network
from clipup.policies.normalizer import Statistics
from clipup.policies.protocol import PolicyNetwork
from clipup.policies.stepping import Stepper

Rows = NDArray[np.float32]


class Actor:
    """Normalizes observations, runs the network, and turns its outputs into actions.

    Parameters
    ----------
    network
        The architecture. Its parameters come with each call, one row per candidate.
    statistics
        What observations are normalized by; None leaves them as they are.
    actions
        How outputs become actions.
    compiled
        Whether the network runs as machine code; see `clipup.policies.compiled.Forward`. The results are equal.

    Attributes
    ----------
    arrange
        Returns rows of parameters in the order in which `act` takes them.
    state_size
        How many numbers a policy remembers from step to step.
    """

    arrange: Callable[[Rows], Rows]

    def __init__(
        self,
        network: PolicyNetwork,
        statistics: Statistics | None,
        actions: Actions,
        *,
        compiled: bool | None = None,
    ) -> None:
        self._convert = actions.apply
        self.state_size = network.state_size
        self.arrange = network.arrange
        if isinstance(network, Network):
            forward = Forward(network, statistics, compiled=compiled)
            self._outputs: Callable[[Rows, Rows | None, NDArray[Any]], tuple[Rows, bool]] = (
                lambda arranged, _, observations: forward.checked(arranged, observations)
            )
            return
        stepper = Stepper(network, statistics, compiled=compiled)
        self._outputs = lambda arranged, state, observations: stepper.checked(
            arranged, self.initial_state(len(observations)) if state is None else state, observations
        )

    def initial_state(self, rows: int) -> Rows:
        """Return what `rows` policies remember when an episode starts: zeros (rows, state_size)."""
        return np.zeros((rows, self.state_size), np.float32)

    def act(self, arranged: Rows, observations: NDArray[Any], state: Rows | None = None) -> NDArray[Any]:
        """Return the action of row i's parameters on row i of `observations` (n, observation_size), as the task has it.

        `arranged` is what `arrange` returned: one row for each observation, or one for all. The rows of `state` are
        changed; None stands for the start of an episode. A NaN in the outputs goes into the action (a discrete choice
        takes the first of them).
        """
        return self._convert(self._outputs(arranged, state, observations)[0])

    def act_without_nan(
        self, arranged: Rows, observations: NDArray[Any], state: Rows | None = None
    ) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Return the actions as `act` does, and which rows had a NaN among their outputs (None if no row had).

        Those rows act as if all their outputs were zero: a simulator may do anything with a NaN, so it never gets one.
        Infinite outputs of other rows stay.
        """
        outputs, good = self._outputs(arranged, state, observations)
        broken = None
        if not good:
            broken = cast("NDArray[np.bool_]", np.isnan(outputs).any(axis=1))
            outputs[broken] = 0.0
        return self._convert(outputs), broken
