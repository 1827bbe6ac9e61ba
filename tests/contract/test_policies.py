"""Every policy, one promise: a candidate's action depends on its own parameters, memory and observation alone."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clipup
from clipup.compilation import machine_code
from clipup.engines import Rollout, Task, make_engine
from clipup.errors import FileFault, InvalidArgument
from clipup.export.onnx import encode_onnx
from clipup.export.policy import PolicyTask, decode_policy, encode_policy
from clipup.export.safetensors import decode, encode
from clipup.policies import Actions, Policy, PolicyNetwork, Statistics, parse_policy
from clipup.policies.act import Actor

BUILT_IN = [
    "linear", "linear-bias", "mlp:8", "mlp:8,5:relu", "mlp:8:silu", "mlp:7,6:gelu:norm", "mlp:6:elu+random",
    "mlp:5:identity+mlp:4", "linear-bias+squash", "mlp:8+residual", "mlp:8+zeros", "rnn:7", "rnn:5:relu:norm", "gru:6",
    "gru:32", "gru:5,4+residual", "lstm:5", "lstm:6:norm+squash", "mlp:9:silu+gru:6",
    "gru:4+mlp:5+lstm:3+residual+squash", "linear-bias+inputs:1-3", "mlp:6+inputs:0,2-3", "gru:4+residual+inputs:1,4",
]  # fmt: skip
WITH_MEMORY = [text for text in BUILT_IN if any(kind in text for kind in ("rnn", "gru", "lstm"))]
OBSERVATIONS, OUTPUTS = 5, 3
BOX = Actions.box(np.full(OUTPUTS, -2.0, np.float32), np.full(OUTPUTS, 2.0, np.float32))


@pytest.fixture(autouse=True, scope="module")
def machine_code_of_the_session(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.environ.get("CLIPUP_CACHE_DIR")
    if before is None:
        os.environ["CLIPUP_CACHE_DIR"] = str(request.config.cache.mkdir("clipup-machine-code"))  # type: ignore[union-attr]
    yield
    if before is None:
        del os.environ["CLIPUP_CACHE_DIR"]


class Case:
    """A policy with the parameters, statistics and observations of some candidates and steps."""

    def __init__(self, text: str, rows: int = 5, steps: int = 4, seed: int = 0) -> None:
        generator = np.random.default_rng(seed)
        self.network: PolicyNetwork = parse_policy(text, OBSERVATIONS, OUTPUTS)
        self.parameters = generator.normal(size=(rows, self.network.parameter_count)).astype(np.float32)
        self.observations = generator.normal(size=(steps, rows, OBSERVATIONS)) * 2.0
        self.statistics = Statistics(generator.normal(size=OBSERVATIONS), generator.uniform(0.2, 2.0, OBSERVATIONS))

    def actions(self, rows: slice = slice(None), *, compiled: bool = False) -> np.ndarray[Any, Any]:
        """The actions of some candidates in all steps, from the start of an episode."""
        actor = Actor(self.network, self.statistics, BOX, compiled=compiled)
        arranged = actor.arrange(self.parameters[rows])
        state = actor.initial_state(len(arranged))
        return np.stack([actor.act(arranged, step[rows], state) for step in self.observations])

    def policy(self, row: int, *, scale: float = 1.0) -> Policy:
        return Policy(self.network, self.parameters[row] * np.float32(scale), self.statistics, BOX)


@pytest.mark.parametrize("text", BUILT_IN)
def test_the_name_of_a_policy_names_it_again(text: str) -> None:
    network = parse_policy(text, OBSERVATIONS, OUTPUTS)
    assert network.describe() == text
    again = parse_policy(network.describe(), OBSERVATIONS, OUTPUTS)
    assert again == network and again.parameter_count == network.parameter_count


@pytest.mark.parametrize("text", BUILT_IN)
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_a_candidate_acts_the_same_alone_and_in_a_batch(text: str, rows: int) -> None:
    case = Case(text, rows)
    together = case.actions()
    for row in {0, rows // 2, rows - 1}:
        one = slice(row, row + 1)
        assert case.actions(one).tobytes() == np.ascontiguousarray(together[:, one]).tobytes()


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="Numba is not installed")
@pytest.mark.parametrize("text", BUILT_IN)
def test_machine_code_and_numpy_give_the_same_bits(text: str) -> None:
    for rows in (1, 40):
        case = Case(text, rows, steps=6)
        assert case.actions(compiled=True).tobytes() == case.actions().tobytes()


@pytest.mark.parametrize("text", BUILT_IN)
def test_numbers_that_are_not_finite_break_the_candidate_that_has_them_and_no_other(text: str) -> None:
    case = Case(text, 3, steps=2)
    fine = case.actions()
    case.parameters[1, :] = np.nan
    actor = Actor(case.network, case.statistics, BOX, compiled=False)
    state = actor.initial_state(3)
    for step, expected in zip(case.observations, fine, strict=True):
        actions, broken = actor.act_without_nan(actor.arrange(case.parameters), step, state)
        assert broken is not None and broken.tolist() == [False, True, False]
        assert actions[[0, 2]].tobytes() == expected[[0, 2]].tobytes()


@pytest.mark.parametrize("text", BUILT_IN)
def test_a_trained_policy_acts_as_its_candidate_did_and_forgets_when_it_is_reset(text: str) -> None:
    case = Case(text)
    policy = case.policy(2)
    for _ in range(2):
        policy.reset()
        found = np.stack([policy(step[2]) for step in case.observations])
        assert found.tobytes() == np.ascontiguousarray(case.actions()[:, 2]).tobytes()


def test_a_policy_of_some_inputs_is_the_policy_of_these_numbers_and_no_other_matters() -> None:
    case, places = Case("mlp:6:silu+gru:4+residual+inputs:0,3-4"), [0, 3, 4]
    small = parse_policy("mlp:6:silu+gru:4+residual", len(places), OUTPUTS)
    assert small.parameter_count == case.network.parameter_count
    statistics = Statistics(case.statistics.mean[places], case.statistics.stdev[places])
    actor = Actor(small, statistics, BOX, compiled=False)
    state = actor.initial_state(5)
    found = np.stack([actor.act(actor.arrange(case.parameters), step[:, places], state) for step in case.observations])
    assert found.tobytes() == case.actions().tobytes()
    case.observations[:, :, [1, 2]] = 1e9
    assert found.tobytes() == case.actions().tobytes()


@pytest.mark.parametrize("text", WITH_MEMORY)
def test_what_came_before_matters_to_a_policy_with_a_memory(text: str) -> None:
    case = Case(text)
    policy = case.policy(0, scale=0.5)
    first = policy(case.observations[0, 0])
    policy(case.observations[1, 0])
    assert policy(case.observations[0, 0]).tobytes() != first.tobytes()
    with pytest.raises(InvalidArgument, match=r"remembers 1 episode\(s\) got 5 observations; call reset first"):
        policy(case.observations[0])
    policy.reset()
    assert policy(case.observations[0]).shape == (5, OUTPUTS)


@pytest.mark.parametrize("text", BUILT_IN)
def test_a_policy_file_gives_the_policy_back_to_the_bit(text: str) -> None:
    case = Case(text)
    policy = case.policy(1)
    data = encode_policy(policy, PolicyTask("Walker2d-v4"))
    again, _ = decode_policy(data, "a file")
    assert again.network == policy.network and again.network.describe() == text
    assert encode_policy(again, PolicyTask("Walker2d-v4")) == data
    for step in case.observations:
        assert again(step[0]).tobytes() == policy(step[0]).tobytes()


@pytest.mark.parametrize("text", BUILT_IN)
@pytest.mark.parametrize("actions", [BOX, Actions.discrete(OUTPUTS)], ids=["box", "discrete"])
def test_onnxruntime_gives_the_same_actions_through_a_whole_episode(text: str, actions: Actions) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    case = Case(text, 1, steps=300)
    # Float32 sums lose more with large weights, and an rnn with relu grows without bounds.
    scale = np.float32(0.3 if text.startswith(("linear", "mlp:8", "rnn:5")) else 1.0)
    policy = Policy(case.network, case.parameters[0] * scale, case.statistics, actions)
    session = onnxruntime.InferenceSession(encode_onnx(policy), providers=["CPUExecutionProvider"])
    state = np.zeros((1, case.network.state_size), np.float32)
    assert [entry.name for entry in session.get_inputs()] == ["observation"] + ["state"] * bool(state.size)
    for step in case.observations.astype(np.float32):
        given = {"observation": step} | ({"state": state} if state.size else {})
        found = session.run(None, given)
        if state.size:
            state = found[1]
        assert np.abs(found[0] - policy(step)).max() <= 1e-6


# -- engines -----------------------------------------------------------------------------------------------------------

ENGINES = {
    "compiled": ("CartPole-v1", "compiled"),
    "compiled with MuJoCo": ("Walker2d-v5", "compiled"),
    "envpool": ("CartPole-v1", "envpool"),
    "envpool, replayed": ("InvertedPendulum-v4", "envpool"),
    "gymnasium": ("CartPole-v1", "gymnasium"),
}


@pytest.mark.parametrize("place", ENGINES)
@pytest.mark.parametrize("text", ["gru:6", "mlp:5:silu+lstm:4+residual"])
def test_a_candidate_has_the_same_result_alone_and_in_a_batch_on_every_engine(place: str, text: str) -> None:
    env, engine = ENGINES[place]
    task = Task(env, engine=engine, episodes=2, max_episode_steps=60)
    made = make_engine(task, lanes=8, threads=2)
    network = parse_policy(text, made.observation_size, made.actions.size)
    parameters = np.random.default_rng(1).normal(size=(20, network.parameter_count)).astype(np.float32)

    def run(start: int, stop: int) -> list[bytes]:
        found = made.evaluate(Rollout(network, parameters[start:stop], 5, 3, start, collect_moments=True))
        assert found.moments is not None and not found.failures
        return [found.fitness.tobytes(), found.interactions.tobytes(), found.moments.m2.tobytes()]

    try:
        parts = [run(0, 7), run(7, 8), run(8, 20)]
        together = run(0, 20)
    finally:
        made.close()
    assert [b"".join(part[index] for part in parts) for index in range(3)] == together


def counting(network: PolicyNetwork, pushes: int) -> np.ndarray[Any, Any]:
    """Parameters of an ``rnn:1:identity`` that counts its steps, and chooses 1 for the first of them, then 0."""
    found = {piece.name: np.zeros(piece.shape, np.float32) for piece in network.pieces}  # type: ignore[attr-defined]
    found["layers.0.recurrent_weight"][:] = found["layers.0.bias"][:] = 1.0
    found["output.weight"][:, 0] = (1.0, -1.0)
    found["output.bias"][:] = (-pushes - 0.5, pushes + 0.5)
    return np.concatenate([array.ravel() for array in found.values()])


@pytest.mark.parametrize("engine", ["compiled", "envpool", "gymnasium"])
def test_the_memory_is_empty_when_an_episode_starts(engine: str) -> None:
    """A policy that counted on would choose 0 for ever, from the second episode on, and fall in 8 to 11 steps."""
    made = make_engine(Task("CartPole-v1", engine=engine, episodes=4), lanes=4, threads=1)
    network = parse_policy("rnn:1:identity", 4, 2)
    rows = np.tile(counting(network, 4), (3, 1))
    try:
        found = made.evaluate(Rollout(network, rows, seed=1, generation=0))
    finally:
        made.close()
    assert (found.interactions >= 4 * 13).all()


@pytest.mark.parametrize("engine", ["compiled", "gymnasium"])
def test_the_compiled_loop_and_a_policy_alone_give_the_same_episode(engine: str) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from clipup.engines.seeding import seed_words, uint32

    network = parse_policy("mlp:4+gru:5", 4, 2)
    parameters = np.random.default_rng(3).normal(size=network.parameter_count).astype(np.float32)
    policy = Policy(network, parameters, Statistics(np.zeros(4), np.full(4, 0.2)), Actions.discrete(2))
    found = clipup.evaluate(policy, Task("CartPole-v1", engine=engine), episodes=6, seed=8)
    seeds = uint32(seed_words(8, "candidate", epoch=0, stream="evaluation", indices=np.arange(6)))
    environment = gymnasium.make("CartPole-v1")
    for seed, expected in zip(seeds, found.returns, strict=True):
        policy.reset()
        observation, _ = environment.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = environment.step(int(policy(observation)))
            total, over = total + float(reward), terminated or truncated
        assert total == expected
    environment.close()


def test_plain_python_gives_the_result_of_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for plain in (False, True):
        monkeypatch.setattr(machine_code, "is_disabled", lambda plain=plain: plain)
        made = make_engine(Task("CartPole-v1", engine="compiled", max_episode_steps=30), threads=1)
        network = parse_policy("mlp:3:elu+gru:4", 4, 2)
        parameters = np.random.default_rng(0).normal(size=(3, network.parameter_count)).astype(np.float32)
        results.append(made.evaluate(Rollout(network, parameters, seed=2, generation=0)).interactions.tolist())
        made.close()
    assert results[0] == results[1]


# -- whole runs --------------------------------------------------------------------------------------------------------

SMALL: dict[str, Any] = {
    "preset": "none", "max_episode_steps": 25, "population": 12, "max_speed": 0.2, "seed": 4, "evaluate_every": 2,
    "evaluation_episodes": 3, "checkpoint_seconds": 0.0, "policy": "mlp:4+gru:5+residual",
}  # fmt: skip


def files(run: Path) -> dict[str, bytes]:
    names = ["records.jsonl", "policy.safetensors", "best-policy.safetensors"]
    newest = sorted((run / "checkpoints").iterdir())[-1]
    return {name: (run / name).read_bytes() for name in names} | {newest.name: newest.read_bytes()}


def test_a_run_with_a_memory_has_the_same_bytes_in_processes_and_resumed(tmp_path: Path) -> None:
    clipup.train("Pendulum-v1", engine="gymnasium", run=tmp_path / "one", workers=1, generations=4, **SMALL)
    clipup.train("Pendulum-v1", engine="gymnasium", run=tmp_path / "two", workers=2, generations=2, **SMALL)
    clipup.resume(tmp_path / "two", generations=4)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    policy = clipup.load_policy(tmp_path / "one")
    assert policy.network.describe() == SMALL["policy"] and policy.network.state_size == 5
    assert clipup.evaluate(tmp_path / "one", episodes=2).summary.episodes == 2


def test_a_new_search_starts_at_the_center_that_the_policy_wants(tmp_path: Path) -> None:
    for text, moved in (("gru:4", True), ("gru:4+random", True), ("gru:4+zeros", False), ("mlp:4", False)):
        found = clipup.train(
            "CartPole-v1", generations=0, **{**SMALL, "policy": text, "max_episode_steps": None}, workers=1
        )
        center = found.policy.parameters
        assert bool(center.any()) is moved
        assert center.tobytes() == found.policy.network.initial_center(SMALL["seed"]).tobytes()
        assert not found.policy(np.ones(4)).any()  # the output layer is zero, so both choices are equal


# -- hostile files -----------------------------------------------------------------------------------------------------

DAMAGE: list[dict[str, object]] = [
    {"kind": "unheard of"}, {"kind": 3}, {"kind": None}, {"layers": 3}, {"layers": "gru"}, {"layers": [3]},
    {"layers": [[]]}, {"layers": [{"kind": "gru"}]}, {"layers": []}, {"observation_size": -1}, {"action_size": 10**15},
    {"observation_size": "5"}, {"start": "here"}, {"start": ["zeros"]}, {"residual": True}, {"kind": "own"},
    {"kind": "own", "name": 3}, {"kind": "own", "name": "os:system", "parameter_count": 1, "state_size": 0},
    {"kind": "own", "name": "mlp:3", "parameter_count": 1, "state_size": 0}, {"kind": "own", "name": "a\x1b[2Jb:C"},
    {"kind": "own", "name": "m:N" + "(" * 5000},
    # As many as the weights have columns, so that nothing but the places themselves is wrong.
    *({"inputs": places} for places in (3, "01234", [], [0, 1, 2, 3, 5], [-1, 0, 1, 2, 3], [0, 0, 1, 2, 3],
                                        [4, 3, 2, 1, 0], [0, 1, 2, 3, 4.0], [False, 1, 2, 3, 4], {"0": 0})),
    *({"layers": [{"kind": "gru", "size": 6, "activation": "tanh", "norm": False, name: value}]}
      for name, value in (("kind", "cnn"), ("kind", ["gru"]), ("size", 0), ("size", 2**40), ("size", True),
                          ("activation", "sin"), ("activation", {}), ("norm", True))),
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_a_file_that_describes_no_policy_is_refused_in_one_line_and_imports_nothing(damage: dict[str, object]) -> None:
    file = decode(encode_policy(Case("gru:6").policy(0), PolicyTask("Walker2d-v4")), source="here")
    described = {**json.loads(file.metadata["network"]), **damage}
    data = encode(file.tensors, {**file.metadata, "network": json.dumps(described)})
    loaded = set(sys.modules)
    with pytest.raises(FileFault) as caught:
        decode_policy(data, "there.safetensors")
    message = str(caught.value)
    assert message.startswith("there.safetensors: ") and message.isprintable()
    assert set(sys.modules) == loaded
