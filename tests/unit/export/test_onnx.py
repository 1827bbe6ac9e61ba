import numpy as np
import onnxruntime
import pytest

from clipup.errors import InvalidArgument, MissingDependency
from clipup.export.onnx import encode_onnx
from clipup.export.policy import PolicyTask
from clipup.policies import Actions, Network, Policy, Statistics
from clipup.policies.act import Actor

GENERATOR = np.random.default_rng(3)
OBSERVATIONS = 40
ACTIONS = {
    "clipped": Actions.box(np.full(6, -0.4, np.float32), np.full(6, 0.4, np.float32)),
    "rescaled": Actions.box(np.full((2, 3), -1.0, np.float32), np.full((2, 3), 2.0, np.float32), rescale=True),
    "unbounded": Actions.box(np.full(6, -np.inf), np.full(6, np.inf), dtype="float64"),
    "half": Actions.box(np.full(6, -1.0, np.float32), np.full(6, np.inf, np.float32)),
    "discrete": Actions.discrete(6, start=3),
}


def actions_of(policy: Policy, observations: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(
        encode_onnx(policy, PolicyTask("Walker2d-v4")), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"observation": observations})[0]


@pytest.mark.parametrize("text", ["linear", "linear-bias", "mlp:16,8", "mlp:16:relu"])
@pytest.mark.parametrize("kind", ACTIONS)
@pytest.mark.parametrize("normalized", [True, False])
def test_onnxruntime_gives_the_same_actions_to_a_millionth(text, kind, normalized):
    network = Network.parse(text, OBSERVATIONS, 6)
    # Far from zero, so that normalization in float32 would lose what it is to keep.
    mean, stdev = GENERATOR.normal(size=OBSERVATIONS) * 100, GENERATOR.uniform(0.1, 9, size=OBSERVATIONS)
    statistics = Statistics(mean, stdev) if normalized else None
    policy = Policy(network, GENERATOR.normal(size=network.parameter_count) * 0.05, statistics, ACTIONS[kind])
    observations = GENERATOR.normal(size=(200, OBSERVATIONS))
    if normalized:
        observations = observations * stdev + mean
    observations = observations.astype(np.float32)
    actor = Actor(network, statistics, ACTIONS[kind])
    expected = actor.act(actor.arrange(np.tile(policy.parameters, (200, 1))), observations)
    found = actions_of(policy, observations)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert np.abs(found - expected).max() <= 1e-6


def test_what_onnx_cannot_hold_is_refused(monkeypatch):
    network = Network(2, 1)
    policy = Policy(network, np.zeros(3), None, Actions("box", 1, (-1.0,), (1.0,), (1,), dtype="float16"))
    with pytest.raises(InvalidArgument, match="float16"):
        encode_onnx(policy)
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(MissingDependency, match=r"clipup\[onnx\]"):
        encode_onnx(policy)
