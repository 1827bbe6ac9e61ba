"""Policies of one's own, from a name or an object to a trained policy, and everything that is wrong with some."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clipup
from clipup.cli.main import main
from clipup.engines import Rollout, Task, make_engine
from clipup.errors import FileFault, InvalidArgument, PolicyFault
from clipup.export.onnx import encode_onnx
from clipup.policies import Actions, Policy, Statistics
from clipup.policies.named import make_policy

ENVIRONMENTS = Path(__file__).parents[1] / "environments"
SMALL: dict[str, Any] = {
    "preset": "none", "max_episode_steps": 20, "population": 8, "max_speed": 0.2, "seed": 4, "evaluate_every": 2,
    "evaluation_episodes": 2, "checkpoint_seconds": 0.0,
}  # fmt: skip
NAMES = [
    "own_policies:Leaky(keep=0.25)",
    "own_policies:Sines",
    "own_policies:PlainLeaky",
    "own_policies:PlainLinear(scale=2)",
]
WITHOUT_TORCH = "needs PyTorch: pip install 'clipup[torch]'"
MODULES = ["own_modules:Perceptron(hidden=5)", "own_modules:Recurrent", "own_modules:Started", "own_modules:perceptron"]


@pytest.fixture(autouse=True)
def _policies_of_one_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ENVIRONMENTS))


def needed(text: str) -> None:
    if text.startswith("own_modules"):
        pytest.importorskip("torch", reason=WITHOUT_TORCH)


def files(run: Path) -> dict[str, bytes]:
    names = ["records.jsonl", "policy.safetensors", "best-policy.safetensors"]
    newest = sorted((run / "checkpoints").iterdir())[-1]
    return {name: (run / name).read_bytes() for name in names} | {newest.name: newest.read_bytes()}


@pytest.mark.parametrize("text", NAMES + MODULES)
@pytest.mark.parametrize("engine", ["compiled", "envpool", "gymnasium"])
def test_a_candidate_has_the_same_result_alone_and_in_a_batch_on_every_engine(text: str, engine: str) -> None:
    needed(text)
    made = make_engine(Task("CartPole-v1", engine=engine, episodes=2, max_episode_steps=15), lanes=4, threads=2)
    network = make_policy(text, made.observation_size, made.actions.size)
    parameters = np.random.default_rng(1).normal(size=(9, network.parameter_count)).astype(np.float32)

    def run(start: int, stop: int) -> bytes:
        found = made.evaluate(Rollout(network, parameters[start:stop], 5, 3, start, collect_moments=True))
        assert found.moments is not None and not found.failures
        return found.fitness.tobytes() + found.moments.m2.tobytes()

    try:
        together = made.evaluate(Rollout(network, parameters, 5, 3, 0, collect_moments=True))
        assert together.moments is not None and len(set(together.interactions.tolist())) > 1
        for row in (0, 8):
            expected = together.fitness[row : row + 1].tobytes() + together.moments.m2[row].tobytes()
            assert run(row, row + 1) == expected
    finally:
        made.close()


@pytest.mark.parametrize("text", ["own_policies:Leaky", "own_modules:Recurrent"])
def test_a_run_has_the_same_bytes_in_processes_and_resumed_and_its_code_is_imported_on_the_user_s_word(
    text: str, tmp_path: Path
) -> None:
    needed(text)
    module = text.partition(":")[0]
    run, other = tmp_path / "one", tmp_path / "two"
    clipup.train("Pendulum-v1", engine="gymnasium", policy=text, run=run, workers=1, generations=3, **SMALL)
    clipup.train("Pendulum-v1", engine="gymnasium", policy=text, run=other, workers=2, generations=1, **SMALL)
    with pytest.raises(InvalidArgument, match=f"if you trust it, say so: --import {module}"):
        clipup.resume(other, generations=3)
    clipup.resume(other, generations=3, imports=[module])
    assert files(run) == files(other)
    assert (
        b"/tmp" not in b"".join(files(run).values())
        and str(ENVIRONMENTS).encode() not in files(run)["policy.safetensors"]
    )
    with pytest.raises(FileFault, match=f"--import {module}"):
        clipup.load_policy(run)
    policy = clipup.load_policy(run, imports=[module])
    assert policy.network.describe() == text
    again = clipup.load_policy(run, policy=getattr(sys.modules[module], text.partition(":")[2]))
    observation = np.array([0.3, -0.2, 0.1])
    for _ in range(2):
        assert policy(observation).tobytes() == again(observation).tobytes()
    policy.reset()
    assert main(["evaluate", str(run), "--episodes", "1", "--quiet"]) == 2
    assert main(["evaluate", str(run), "--episodes", "1", "--quiet", "--import", module]) == 0
    new = ["train", "--config", str(run / "config.toml"), "--run", str(tmp_path / "new"), "--quiet"]
    assert main(new) == 2
    assert main([*new, "--import", module, "--generations", "1", "--workers", "1"]) == 0


@pytest.mark.parametrize(
    "named", [pytest.param(True, marks=pytest.mark.slow, id="by its name"), pytest.param(False, id="as an object")]
)
def test_a_module_leaves_the_same_bytes_in_this_process_in_others_and_in_actors_of_ray(
    named: bool, tmp_path: Path, ray_session: None
) -> None:
    pytest.importorskip("torch", reason=WITHOUT_TORCH)
    import own_modules  # type: ignore[import-not-found]

    policy = "own_modules:Recurrent(hidden=3)" if named else own_modules.Recurrent(3, 1, hidden=3)
    places = {"here": {"workers": 1}, "processes": {"workers": 2}, "actors": {"workers": 2, "cluster": "ray"}}
    for place, settings in places.items():
        run = tmp_path / place
        clipup.train("Pendulum-v1", engine="gymnasium", policy=policy, run=run, generations=2, **settings, **SMALL)
    for place in ("processes", "actors"):
        assert files(tmp_path / place) == files(tmp_path / "here")


def test_a_file_is_named_by_its_path_and_workers_find_it_wherever_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text((ENVIRONMENTS / "own_policies.py").read_text())
    monkeypatch.chdir(tmp_path)
    words = ["train", "Pendulum-v1", "--engine", "gymnasium", "--policy", "mine.py:Leaky(keep=0.5)", "--run", "run"]
    small = ["--population", "4", "--generations", "1", "--max-episode-steps", "5", "--evaluation-episodes", "1"]
    assert main([*words, *small, "--workers", "2", "--quiet"]) == 0
    assert str(tmp_path).encode() not in (tmp_path / "run/policy.safetensors").read_bytes()
    assert main(["evaluate", "run", "--import", "mine.py", "--episodes", "1", "--quiet"]) == 0


def test_an_object_is_trained_saved_and_taken_up_again(tmp_path: Path) -> None:
    import own_policies  # type: ignore[import-not-found]

    policy = own_policies.PlainLinear(3, 1, scale=0.5)
    common: dict[str, Any] = {"engine": "gymnasium", **SMALL}
    run = tmp_path / "run"
    found = clipup.train("Pendulum-v1", policy=policy, run=run, generations=1, workers=1, **common)
    assert found.config.policy == "own_policies:PlainLinear"
    whole = clipup.train("Pendulum-v1", policy=policy, generations=2, workers=1, **common)
    assert (
        clipup.resume(run, policy=policy, generations=2).policy.parameters.tobytes()
        == whole.policy.parameters.tobytes()
    )
    assert clipup.load_policy(run, policy=policy)([1.0, 2.0, 3.0]).shape == (1,)
    start = clipup.train("Pendulum-v1", policy=policy, generations=0, workers=1, **common)
    assert start.policy.parameters.tolist() == [0.25] * 3


def test_a_module_is_trained_from_its_own_parameters_and_stays_as_it_is(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason=WITHOUT_TORCH)
    import own_modules  # type: ignore[import-not-found]

    module = own_modules.Perceptron(3, 1)
    before = torch.cat([one.detach().ravel() for one in module.parameters()]).numpy().copy()
    found = clipup.train("Pendulum-v1", policy=module, engine="gymnasium", generations=0, workers=1, **SMALL)
    assert found.policy.parameters.tobytes() == before.tobytes()
    found = clipup.train(
        "Pendulum-v1", policy=module, engine="gymnasium", generations=1, workers=1, run=tmp_path / "run", **SMALL
    )
    after = torch.cat([one.detach().ravel() for one in module.parameters()]).numpy()
    assert after.tobytes() == before.tobytes() != found.policy.parameters.tobytes()
    observation = np.array([0.3, -0.2, 0.1], np.float32)
    expected = found.policy(observation)
    other = own_modules.Perceptron(3, 1)  # with other buffers, which the file brings back
    assert clipup.load_policy(tmp_path / "run", policy=other)(observation).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("own_policies:NoCount", "needs a whole number of at least 1 as its parameter_count, got None"),
        ("own_policies:Nothing", "needs a function act(parameters, state, observation, action), or must be callable"),
        ("own_policies:WithSelf", "write @staticmethod above it"),
        ("own_policies:WrongSize", "must give 2 numbers as its outputs, got an array of shape (3,)"),
        ("own_policies:Dice", "acts differently on the same parameters"),
        ("own_policies:RareDice", "draws random numbers when it acts: it must be deterministic"),
        ("own_policies:RareNumpyDice", "draws random numbers when it acts: it must be deterministic"),
        ("own_policies:Vandal", "parameters and observation must stay as they are"),
        ("own_policies:TooFar", "IndexError"),
        ("own_policies:Leaky(keep=0.5, size=3)", "cannot be made with"),
        ("own_policies:Leeky", "has no 'Leeky'; did you mean 'Leaky'?"),
        ("own_policies:not_a_policy", "needs a whole number of at least 1 as its parameter_count"),
        ("own_policies:not_a_policy(a=1)", "only a class or a function takes arguments"),
        ("no_such_module:Net", "there is no module 'no_such_module'"),
        ("no_such_file.py:Net", "there is no file 'no_such_file.py'"),
        ("own_modules:empty", "is a module without parameters"),
        ("own_modules:narrow", "gives outputs of shape (1, 1) where the actions take (1, 2)"),
        ("own_modules:double", "must be float32 on the CPU"),
        ("own_modules:Perceptron(dropout=0.5)", "it is in training mode: call eval() on it"),
        ("own_modules:Perceptron(dropout=1e-9)", "it is in training mode: call eval() on it"),
        ("own_modules:hidden_dropout", "draws random numbers when it acts"),
        ("own_modules:batch_normalized", "it is in training mode: call eval() on it"),
        ("own_modules:counting", "it is in training mode: call eval() on it"),
        ("own_modules:lazy", "has parameters without a shape"),
        ("own_modules:Growing", "changed the shape of its state"),
        ("own_modules:Widening", "must give outputs of shape (1, 2), got (1, 4)"),
    ],
)
def test_a_policy_that_cannot_work_is_refused_in_one_line(text: str, said: str) -> None:
    needed(text)
    with pytest.raises(InvalidArgument) as caught:
        make_policy(text, 4, 2)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_what_numba_cannot_compile_is_said_with_its_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["train", "CartPole-v1", "--policy", "own_policies:Uncompilable", "--run", str(tmp_path / "run"), "--quiet"]
    assert main(words) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert "Uncompilable.act (own_policies.py, line " in said[-1] and "\x1b" not in said[-1]
    assert "Failed in nopython mode" not in said[-1]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("engine", ["compiled", "envpool", "gymnasium"])
def test_a_policy_that_raises_while_it_is_trained_ends_the_evaluation_with_one_line(engine: str) -> None:
    made = make_engine(Task("CartPole-v1", engine=engine), lanes=4, threads=1)
    network = make_policy("own_policies:Sometimes", 4, 2)
    rows = np.array([[0.0, 0.0], [3.0, 0.0]], np.float32)
    try:
        assert made.evaluate(Rollout(network, rows[:1], seed=0, generation=0)).interactions[0] > 0
        with pytest.raises(PolicyFault, match="policy own_policies:Sometimes raised"):
            made.evaluate(Rollout(network, rows, seed=0, generation=0))
        assert made.evaluate(Rollout(network, rows[:1], seed=0, generation=0)).interactions[0] > 0
    finally:
        made.close()


@pytest.mark.parametrize("text", MODULES)
@pytest.mark.parametrize("actions", [Actions.box(-np.ones((2, 1)), np.ones((2, 1)), rescale=True), Actions.discrete(2)])
def test_onnxruntime_gives_the_actions_of_a_module_through_a_whole_episode(text: str, actions: Actions) -> None:
    needed(text)
    onnxruntime = pytest.importorskip("onnxruntime")
    network = make_policy(text, 3, 2)
    generator = np.random.default_rng(0)
    statistics = Statistics(generator.normal(size=3), generator.uniform(0.5, 2.0, 3))
    policy = Policy(network, generator.normal(size=network.parameter_count) * 0.5, statistics, actions)
    session = onnxruntime.InferenceSession(encode_onnx(policy), providers=["CPUExecutionProvider"])
    state = np.zeros((1, network.state_size), np.float32)
    for _ in range(50):
        observation = generator.normal(size=(1, 3)).astype(np.float32)
        found = session.run(None, {"observation": observation} | ({"state": state} if state.size else {}))
        state = found[1] if state.size else state
        expected = policy(observation)
        assert found[0].shape == expected.shape
        assert np.abs(found[0] - expected).max() <= 1e-5  # torch's own sums


def test_what_has_no_graph_says_so() -> None:
    network = make_policy("own_policies:Leaky", 3, 2)
    policy = Policy(network, np.zeros(network.parameter_count), None, Actions.discrete(2))
    with pytest.raises(InvalidArgument, match="cannot be exported as ONNX"):
        encode_onnx(policy)
