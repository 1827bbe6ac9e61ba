"""Networks: counts, order of parameters, and rows that do not see each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clipup.errors import InvalidArgument
from clipup.policies import Network


@pytest.mark.parametrize(
    ("text", "observations", "actions", "count"),
    [
        ("linear", 8, 2, 16),
        ("linear-bias", 17, 6, 108),
        ("linear-bias", 376, 17, 6409),
        ("mlp:64", 44, 17, 3985),
    ],
)
def test_parameter_counts_are_the_papers(text: str, observations: int, actions: int, count: int) -> None:
    assert Network.parse(text, observations, actions).parameter_count == count


@pytest.mark.parametrize("text", ["linear", "linear-bias", "mlp:64", "mlp:64,32", "mlp:5:relu"])
def test_describe_and_parse_are_inverse(text: str) -> None:
    assert Network.parse(text, 3, 2).describe() == text


@pytest.mark.parametrize("text", ["", "mlp", "mlp:", "mlp:0", "mlp:-1", "mlp:a", "linear:3", "mlp:4:sigmoid", "cnn:3"])
def test_text_that_names_no_network_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        Network.parse(text, 3, 2)


@pytest.mark.parametrize("arguments", [(0, 1), (1, 0), (1, 1, (0,)), (1.5, 1), (True, 1)])
def test_sizes_must_be_positive_integers(arguments: tuple[object, ...]) -> None:
    with pytest.raises(InvalidArgument):
        Network(*arguments)  # type: ignore[arg-type]


def test_flat_vector_holds_each_layers_weights_by_output_and_then_its_bias() -> None:
    network = Network(2, 1, hidden=(3,))
    generator = np.random.default_rng(0)
    first, bias, second, last = (generator.standard_normal(shape) for shape in [(3, 2), 3, (1, 3), 1])
    flat = np.concatenate([first.ravel(), bias, second.ravel(), last]).astype(np.float32)[np.newaxis]
    observation = np.array([[0.3, -0.7]], np.float32)
    expected = second @ np.tanh(first @ observation[0] + bias) + last
    np.testing.assert_allclose(network.forward(flat, observation)[0], expected, rtol=1e-5)


def test_relu_is_applied_to_hidden_layers_alone() -> None:
    network = Network(1, 1, hidden=(1,), bias=False, activation="relu")
    parameters = np.array([[1.0, -2.0], [1.0, -2.0]], np.float32)
    assert network.forward(parameters, np.array([[3.0], [-3.0]], np.float32)).ravel().tolist() == [-6.0, 0.0]


@pytest.mark.parametrize(
    ("text", "observations", "actions"),
    [
        ("linear", 8, 2),
        ("linear-bias", 17, 6),
        ("linear-bias", 376, 17),
        ("mlp:64", 44, 17),
        ("mlp:64,64:relu", 376, 17),
        ("mlp:7,5", 3, 1),
    ],
)
def test_a_row_has_the_same_bits_in_any_batch(text: str, observations: int, actions: int) -> None:
    network = Network.parse(text, observations, actions)
    generator = np.random.default_rng(1)
    parameters = generator.standard_normal((67, network.parameter_count)).astype(np.float32)
    inputs = generator.standard_normal((67, observations)).astype(np.float32)
    together = network.forward(parameters, inputs)
    for start, stop in [(0, 1), (5, 6), (66, 67), (0, 2), (3, 20), (1, 67)]:
        part = network.forward(parameters[start:stop], inputs[start:stop])
        assert part.tobytes() == together[start:stop].tobytes()
    order = generator.permutation(67)
    assert network.forward(parameters[order], inputs[order]).tobytes() == together[order].tobytes()


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 40), st.lists(st.integers(1, 20), max_size=2), st.integers(1, 9), st.integers(1, 12), st.booleans()
)
def test_any_shape_of_network_is_independent_of_the_batch(
    observations: int, hidden: list[int], actions: int, rows: int, bias: bool
) -> None:
    network = Network(observations, actions, tuple(hidden), bias)
    generator = np.random.default_rng(rows)
    parameters = generator.standard_normal((rows, network.parameter_count)).astype(np.float32)
    inputs = generator.standard_normal((rows, observations)).astype(np.float32)
    together = network.forward(parameters, inputs)
    assert together.shape == (rows, actions)
    single = [network.forward(parameters[row : row + 1], inputs[row : row + 1]) for row in range(rows)]
    assert np.concatenate(single).tobytes() == together.tobytes()


def test_check_names_the_shape_expected() -> None:
    with pytest.raises(InvalidArgument, match=r"\(candidates, 16\)"):
        Network(8, 2, bias=False).check(np.zeros((2, 15), np.float32))
    with pytest.raises(InvalidArgument, match="float32"):
        Network(8, 2, bias=False).check(np.zeros((2, 16)))  # type: ignore[arg-type]
