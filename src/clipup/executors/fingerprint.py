"""What a machine computes from fixed numbers, as digests: machines with equal ones give a candidate the same bits.

clipup's own arithmetic is the same on every processor of one architecture. Simulators, the C library, and networks of a
user's own may not be. So workers say what they compute before they get work, and a checkpoint keeps it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from clipup.policies import Actions, Moments, Statistics
from clipup.policies.act import Actor
from clipup.policies.compiled import observe_rows
from clipup.policies.protocol import PolicyNetwork

_NORMALS = 2**14  # some 10 of them lie so far from the mean that numpy asks the C library for a logarithm
_ROWS = 2


@dataclass(frozen=True)
class Fingerprint:
    """The digests of a machine; an empty one is not known, and differs from nothing."""

    act: str = ""
    """Of noise, normalization, network, action and observation moments."""
    simulation: str = ""
    """Of the first steps of a few episodes. Not known where the environment ignores its seed, or may hang."""

    def differs_in(self, other: Fingerprint) -> str:
        """Return what is known to differ, with both digests, in words for people; nothing if nothing is."""
        pairs = {
            "the policy": (self.act, other.act),
            "the simulator": (self.simulation, other.simulation),
        }
        different = [f"{name} ({one} and {two})" for name, (one, two) in pairs.items() if one and two and one != two]
        return " and ".join(different)

    def or_else(self, other: Fingerprint) -> Fingerprint:
        """Return this fingerprint, with what it does not know taken from another."""
        return Fingerprint(self.act or other.act, self.simulation or other.simulation)


def act_digest(network: PolicyNetwork, actions: Actions) -> str:
    """Return a digest of what a policy does with fixed parameters and observations, from the noise to the moments."""
    random = np.random.Generator(np.random.Philox(1))
    digest = hashlib.sha256(random.standard_normal(_NORMALS, dtype=np.float32).tobytes())
    size = network.observation_size
    observations = random.standard_normal((_ROWS, size)) * 3.0
    parameters = random.standard_normal((_ROWS, network.parameter_count), dtype=np.float32)
    statistics = Statistics(random.standard_normal(size), random.uniform(0.5, 2.0, size))
    moments = Moments.zeros(_ROWS, size)
    with np.errstate(all="ignore"):
        # Machine code gives the same bits (tests/unit/policies), and loading it would take longer than all of this.
        endless = np.full(actions.size, np.inf, np.float32)
        actor = Actor(network, statistics, Actions.box(-endless, endless), compiled=False)
        arranged, state = actor.arrange(parameters), actor.initial_state(_ROWS)
        for _ in range(2 if network.state_size else 1):
            outputs = actor.act(arranged, observations, state)
            digest.update(outputs.tobytes() + actions.apply(outputs).tobytes())
        for count in (1.0, 2.0, 3.0):
            observe_rows(observations / count, np.full((_ROWS, 1), count), moments.mean, moments.m2)
    digest.update(moments.mean.tobytes() + moments.m2.tobytes())
    return digest.hexdigest()[:16]
