"""A new run that starts from a trained policy."""

from __future__ import annotations

import os

import numpy as np

from clipup.errors import InvalidArgument
from clipup.export.policy import PolicyTask, policy_file, read_policy
from clipup.policies import Normalizer, Policy, PolicyNetwork
from clipup.policies.named import own_object
from clipup.policies.normalizer import Moments
from clipup.searches import Search


def read_start(path: str | os.PathLike[str], network: PolicyNetwork) -> tuple[Policy, PolicyTask]:
    """Return the policy in a file or a run directory; `InvalidArgument` unless it has this network."""
    policy, task = read_policy(policy_file(path), policy=own_object(network))
    if policy.network != network:
        raise InvalidArgument(
            f"{path} is a policy of {policy.network.describe()} with {policy.network.observation_size} observations "
            f"and {policy.network.action_size} outputs; this run needs {network.describe()} with "
            f"{network.observation_size} and {network.action_size}"
        )
    return policy, task


def start_at_its_center(network: PolicyNetwork, search: Search) -> None:
    """Move the center of a new search to where the policy wants it."""
    center = network.initial_center(search.seed)
    if not center.any():
        return
    if "center" not in search.state_dict():
        raise InvalidArgument(f"a {search.kind} search starts at zero only; add +zeros to the policy")
    search.load_state_dict({**search.state_dict(), "center": center})


def start_from(policy: Policy, task: PolicyTask, search: Search, normalizer: Normalizer | None) -> None:
    """Move the center to the policy's parameters, and give the normalizer its statistics.

    The statistics of a file count as one observation for each interaction of the training that they came from.
    """
    if "center" not in search.state_dict():
        raise InvalidArgument(f"a {search.kind} search cannot start from a policy")
    search.load_state_dict({**search.state_dict(), "center": policy.parameters.copy()})
    if normalizer is not None and policy.statistics is not None:
        count = max(1, task.total_interactions)
        statistics = policy.statistics
        normalizer.merge(
            Moments(np.array([count]), statistics.mean[np.newaxis], (count * statistics.stdev**2)[np.newaxis])
        )
