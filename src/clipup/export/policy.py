"""Policy files: a trained policy and the task that it is for, in one safetensors file.

Weights are named by layer (``layers.0.weight`` with one row per output, ``layers.0.bias``; more for other layers, see
`clipup.policies.LayeredNetwork`), observation statistics ``observation.mean`` and ``observation.stdev``, the bounds of
a box of actions ``action.low`` and ``action.high``. The metadata says how they belong together, and in which order the
parts of an observation stand in the vector. Reading a file needs only numpy, checks everything, and imports nothing.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np

from clipup.decoding import WORDS, decode_object
from clipup.errors import ClipUpError, FileFault
from clipup.export.networks import (
    describe_network,
    network_tensors,
    read_network,
    take,
    take_buffers,
    take_parameters,
    whole,
)
from clipup.export.safetensors import SIZE_LIMIT, TensorFile, check_head, decode, encode
from clipup.files import Directory, is_file_below, read_named, write_output
from clipup.policies import Actions, Observations, Policy, Statistics

FORMAT = "clipup-policy"
POLICY, BEST_POLICY = "policy.safetensors", "best-policy.safetensors"
"""The names of policies in a run directory."""

Scalar = str | int | float | bool
_UNUSABLE = (ClipUpError, KeyError, ValueError, TypeError, AttributeError, RecursionError, OverflowError)
"""What a description that is not one of ours leads to."""


@dataclass(frozen=True)
class PolicyTask:
    """The task that a policy was trained for: enough to evaluate it there."""

    env: str = ""
    env_options: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    engine: str = "auto"
    rescale_actions: bool = False
    generation: int = 0
    total_interactions: int = 0
    score: float | None = None
    max_episode_steps: int | None = None
    """Longest episode, where the environment has no limit of its own."""
    trained_engine: str = ""
    """The engine that it was trained on, where `engine` may be "auto"; nothing in files of version 0.1."""
    simulator_version: str = ""
    """The version of that engine's simulator."""
    wrapper: str = ""
    """What the environment is wrapped in, as the setting of that name has it."""


def encode_policy(policy: Policy, task: PolicyTask) -> bytes:
    """Return the bytes of a policy file."""
    version, network = describe_network(policy.network)
    tensors = network_tensors(policy.network, policy.parameters)
    if policy.statistics is not None:
        tensors["observation.mean"] = policy.statistics.mean
        tensors["observation.stdev"] = policy.statistics.stdev
    actions = policy.actions.to_dict()
    if policy.actions.kind == "box":
        # JSON cannot write infinite bounds; tensors can.
        tensors["action.low"] = np.asarray(policy.actions.low, dtype=np.float64)
        tensors["action.high"] = np.asarray(policy.actions.high, dtype=np.float64)
        del actions["low"], actions["high"]
    metadata = {
        "format": FORMAT,
        "version": str(version),
        "network": json.dumps(network),
        "actions": json.dumps(actions),
        "task": json.dumps(_described(task)),
    }
    if policy.observations is not None:
        metadata["observations"] = json.dumps({"parts": policy.observations.to_list()})
    return encode(tensors, metadata)


def decode_policy(
    data: bytes, source: str, policy: object = None, imports: Collection[str] = ()
) -> tuple[Policy, PolicyTask]:
    """Return the policy and its task; raise `FileFault`, in one line, if the bytes are not a policy file.

    `policy` and `imports` are for a policy of one's own; see `load_policy`.
    """
    file = _policy_tensors(data, source)
    try:
        return _policy(file, policy, imports), _task(_object(file, "task"))
    except FileFault as error:
        raise FileFault(f"{source}: {error}") from error
    except _UNUSABLE as error:
        raise FileFault(f"{source}: not a usable policy: {str(error).splitlines()[0] or error!r:.120}") from error


def _policy_tensors(data: bytes, source: str) -> TensorFile:
    file = decode(data, source=source)
    if file.metadata.get("format") != FORMAT:
        raise FileFault(f"{source}: expected a {FORMAT} file, got {file.metadata.get('format', 'another')!r:.60}")
    version = file.metadata.get("version", "")
    if version not in ("1", "2"):
        raise FileFault(f"{source}: policy format version {version!r:.20}; this clipup reads versions 1 and 2")
    return file


def read_policy(
    path: str | os.PathLike[str], *, policy: object = None, imports: Collection[str] = ()
) -> tuple[Policy, PolicyTask]:
    """Read a policy file. Never imports or runs anything that only the file names; see `load_policy`."""
    source = os.fspath(path)

    def head(data: bytes, size: int) -> None:
        check_head(data, size, source)

    return decode_policy(read_named(path, SIZE_LIMIT, "a policy", head), source, policy, imports)


def read_task(path: str | os.PathLike[str]) -> PolicyTask:
    """Read the task of a policy file alone, which is possible without the code of a policy of one's own."""
    source = os.fspath(path)
    try:
        file = _policy_tensors(read_named(path, SIZE_LIMIT, "a policy"), source)
        return _task(_object(file, "task"))
    except FileFault:
        raise
    except _UNUSABLE as error:
        raise FileFault(f"{source}: not a usable policy: {str(error).splitlines()[0] or error!r:.120}") from error


def save_policy(policy: Policy, path: str | os.PathLike[str], *, env: str = "") -> None:
    """Write a policy file, whole or not at all."""
    write_output(Path(path), encode_policy(policy, PolicyTask(env=env, trained_engine="auto")))


def load_policy(path: str | os.PathLike[str], *, policy: object = None, imports: Collection[str] = ()) -> Policy:
    """Load a policy: a callable from an observation to an action, which needs only numpy.

    `path` is a policy file, or a run directory whose newest policy is loaded. The code of a policy of one's own is not
    in the file: `policy` is its class or object, or `imports` names the module that the file may import.
    """
    return read_policy(policy_file(path), policy=policy, imports=imports)[0]


def policy_file(path: str | os.PathLike[str], *, best: bool = False) -> Path:
    """Return the policy file that `path` means: the file itself, or the one in the run directory."""
    target = Path(path)
    if not target.is_dir():
        return target
    newest, found = target / POLICY, target / BEST_POLICY
    if best and _score(newest) > _score(found):
        return newest  # the final evaluation of a run was its best
    if not best:
        found = newest
    if not is_file_below(target, found.name):
        if os.path.lexists(found):
            raise FileFault(f"{found}: cannot be read: a link, or not a regular file")
        hint = "no evaluation was due yet (evaluate_every)" if best else "has this run finished a generation?"
        with Directory(target) as directory:
            inner = [target / name for name in sorted(directory.names()) if is_file_below(target / name, POLICY)]
        if inner:
            scores = [max(_score(run / POLICY), _score(run / BEST_POLICY)) for run in inner]
            first = inner[scores.index(max(scores))]
            which = f"such as {first}" if max(scores) == -math.inf else f"such as {first}, which has the best score"
            hint = f"it holds several runs, so name one of them, {which}"
        raise FileFault(f"{target}: no {found.name} in it; {hint}")
    return found


def _score(path: Path) -> float:
    """The score in a policy file; -inf where there is none, or no usable file."""
    if not is_file_below(path.parent, path.name):
        return -math.inf
    try:
        score = read_task(path).score
    except FileFault:
        return -math.inf
    return -math.inf if score is None else score


def _policy(file: TensorFile, policy: object, imports: Collection[str]) -> Policy:
    network = read_network(_object(file, "network"), policy, imports)
    tensors = dict(file.tensors)
    parameters = take_parameters(network, tensors)
    network = take_buffers(network, tensors)
    statistics = None
    if "observation.mean" in tensors:
        size = (network.observation_size,)
        mean = take(tensors, "observation.mean", np.float64, size).astype(np.float64)
        statistics = Statistics(mean, take(tensors, "observation.stdev", np.float64, size).astype(np.float64))
    described = _object(file, "actions")
    if described["kind"] == "box":
        described["low"] = take(tensors, "action.low", np.float64, (network.action_size,)).tolist()
        described["high"] = take(tensors, "action.high", np.float64, (network.action_size,)).tolist()
    if tensors:
        raise FileFault(f"unexpected tensor {next(iter(tensors))!r:.60}")
    observations = None
    if "observations" in file.metadata:  # only where an observation has parts
        observations = Observations.from_list(_object(file, "observations")["parts"])
    return Policy(network, parameters, statistics, Actions.from_dict(described), observations)


def _task(details: dict[str, object]) -> PolicyTask:
    options = details["env_options"]
    if not isinstance(options, dict) or not isinstance(details["env"], str) or not isinstance(details["engine"], str):
        raise FileFault("the task is not described as expected")
    checked: dict[str, Scalar] = {}
    for name, value in cast("dict[str, object]", options).items():
        if not isinstance(value, str | int | float | bool):
            raise FileFault(f"environment option {name!r:.60} is not text, a number, true or false")
        checked[name] = value
    score = details["score"]
    trained_engine, version = details.get("trained_engine", ""), details.get("simulator_version", "")
    if not isinstance(trained_engine, str) or not isinstance(version, str):
        raise FileFault("the engine that it was trained on is not described as expected")
    wrapper = details.get("wrapper", "")
    if not isinstance(wrapper, str):
        raise FileFault("the wrapper is not described as expected")
    return PolicyTask(
        env=details["env"],
        env_options=checked,
        engine=details["engine"],
        rescale_actions=details["rescale_actions"] is True,
        generation=whole(details, "generation"),
        total_interactions=whole(details, "total_interactions"),
        score=float(score) if isinstance(score, int | float) else None,
        max_episode_steps=whole(details, "max_episode_steps") if "max_episode_steps" in details else None,
        trained_engine=trained_engine,
        simulator_version=version,
        wrapper=wrapper,
    )


def _described(task: PolicyTask) -> dict[str, object]:
    """The fields of a task; one that version 0.1 did not have stands there only where it says something."""
    described = dataclasses.asdict(task)
    if task.max_episode_steps is None:
        del described["max_episode_steps"]
    if not task.wrapper:
        del described["wrapper"]
    return described


def _object(file: TensorFile, name: str) -> dict[str, object]:
    return decode_object(file.metadata[name], f"metadata {name!r}", WORDS)
