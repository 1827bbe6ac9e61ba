"""Layers compute what PyTorch's layers of the same names compute."""

import numpy as np
import pytest

from clipup.policies import LayeredNetwork, parse_policy
from clipup.policies.activations import ACTIVATIONS, activate, activate_one

torch = pytest.importorskip("torch", reason="torch is not installed; install it with: pip install 'clipup[torch]'")
nn = torch.nn
GENERATOR = np.random.default_rng(5)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_torchs_and_equal_for_one_number_and_many(name: str) -> None:
    values = np.concatenate([GENERATOR.normal(size=500) * 5, [0.0, -0.0, 40.0, -40.0, 1e-300]])
    code = ACTIVATIONS.index(name)
    found = activate(values, code)
    theirs = {
        "identity": lambda x: x, "tanh": torch.tanh, "relu": torch.relu, "silu": nn.functional.silu,
        "gelu": lambda x: nn.functional.gelu(x, approximate="tanh"), "elu": nn.functional.elu,
    }[name](torch.from_numpy(values)).numpy()  # fmt: skip
    np.testing.assert_allclose(found, theirs, rtol=1e-12, atol=1e-14)
    assert [float(activate_one(float(x), code)) for x in values] == found.tolist()


def arrays_of(network: LayeredNetwork, parameters: np.ndarray) -> dict[str, np.ndarray]:
    return {piece.name: parameters[piece.place].reshape(piece.shape) for piece in network.pieces}


@pytest.mark.parametrize(("text", "kind"), [("rnn:6", nn.RNN), ("gru:6", nn.GRU), ("lstm:6", nn.LSTM)])
def test_cells_are_torchs(text: str, kind: type) -> None:
    network = parse_policy(text, 4, 2)
    assert isinstance(network, LayeredNetwork)
    parameters = GENERATOR.normal(size=network.parameter_count).astype(np.float32)
    arrays = {name: torch.from_numpy(array).double() for name, array in arrays_of(network, parameters).items()}
    theirs = kind(4, 6, dtype=torch.float64)
    with torch.no_grad():
        theirs.weight_ih_l0[:] = arrays["layers.0.weight"]
        theirs.weight_hh_l0[:] = arrays["layers.0.recurrent_weight"]
        theirs.bias_ih_l0[:], theirs.bias_hh_l0[:] = arrays["layers.0.bias"], 0.0
        observations = GENERATOR.normal(size=(20, 1, 4)).astype(np.float32)
        hidden, _ = theirs(torch.from_numpy(observations).double())
        expected = (hidden[:, 0] @ arrays["output.weight"].T + arrays["output.bias"]).numpy()
    state = np.zeros((1, network.state_size), np.float32)
    arranged = network.arrange(parameters[np.newaxis])
    found = np.concatenate([network.step(arranged, state, one) for one in observations])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_layers_norms_and_the_residual_path_are_torchs() -> None:
    network = parse_policy("mlp:7:gelu:norm+residual+squash", 4, 2)
    assert isinstance(network, LayeredNetwork)
    parameters = GENERATOR.normal(size=network.parameter_count).astype(np.float32)
    arrays = {name: torch.from_numpy(array).double() for name, array in arrays_of(network, parameters).items()}
    observations = GENERATOR.normal(size=(20, 4)).astype(np.float32)
    given = torch.from_numpy(observations).double()
    first = given @ arrays["layers.0.weight"].T + arrays["layers.0.bias"]
    normal = nn.functional.layer_norm(
        first, (7,), 1.0 + arrays["layers.0.norm_gain"], arrays["layers.0.norm_bias"], eps=1e-5
    )
    hidden = nn.functional.gelu(normal, approximate="tanh")
    linear = given @ arrays["residual.weight"].T
    expected = torch.tanh(hidden @ arrays["output.weight"].T + arrays["output.bias"] + linear)
    arranged = np.repeat(network.arrange(parameters[np.newaxis]), 20, axis=0)
    found = network.step(arranged, np.zeros((20, 0), np.float32), observations)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6, atol=1e-6)
