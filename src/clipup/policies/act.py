"""From observations to actions: the only place where a policy acts.

Engines, `clipup.policies.Policy` and ``clipup bench`` all act through `Actor`. Exports are tested against it.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.policies.actions import Actions
from clipup.policies.normalizer import Statistics
from clipup.policies.protocol import PolicyNetwork


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
    """

    def __init__(self, network: PolicyNetwork, statistics: Statistics | None, actions: Actions) -> None:
        self._normalize = _to_float32 if statistics is None else statistics.normalize
        self._forward = network.forward
        self._convert = actions.apply

    def act(self, parameters: NDArray[np.float32], observations: NDArray[Any]) -> NDArray[Any]:
        """Return the action of row i's parameters on row i of `observations` (n, observation_size), as the task has it.

        A NaN in the outputs goes into the action (a discrete choice takes the first of them).
        """
        return self._convert(self._forward(parameters, self._normalize(observations)))

    def act_without_nan(
        self, parameters: NDArray[np.float32], observations: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Return the actions as `act` does, and which rows had a NaN among their outputs (None if no row had).

        Those rows act as if all their outputs were zero: a simulator may do anything with a NaN, so it never gets one.
        Infinite outputs of other rows stay.
        """
        outputs = self._forward(parameters, self._normalize(observations))
        flat = outputs.ravel()
        broken = None
        if math.isnan(flat.dot(flat)):  # squares add up to NaN only where there is one
            broken = cast("NDArray[np.bool_]", np.isnan(outputs).any(axis=1))
            outputs[broken] = 0.0
        return self._convert(outputs), broken


def _to_float32(observations: NDArray[Any]) -> NDArray[np.float32]:
    # Row by row in memory: another layout takes another way through the linear algebra, to other bits.
    return np.ascontiguousarray(observations, np.float32)
