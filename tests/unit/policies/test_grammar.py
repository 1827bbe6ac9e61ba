"""Policies by their short names, and what is said of names that are none."""

import numpy as np
import pytest

from clipup.errors import InvalidArgument
from clipup.policies import LayeredNetwork, LayerKind, Network, parse_policy
from clipup.policies.named import check_policy, own_name


@pytest.mark.parametrize(
    ("text", "parameters", "remembered"),
    [
        ("linear", 16, 0),
        ("linear-bias", 18, 0),
        ("mlp:64", 64 * 9 + 2 * 65, 0),
        ("rnn:32", 32 * (8 + 32 + 1) + 2 * 33, 32),
        ("gru:32", 96 * (8 + 32 + 1) + 2 * 33, 32),
        ("lstm:32", 128 * (8 + 32 + 1) + 2 * 33, 64),
        ("mlp:64+gru:32", 64 * 9 + 96 * (64 + 32 + 1) + 2 * 33, 32),
        ("gru:4,5", 12 * (8 + 4 + 1) + 15 * (4 + 5 + 1) + 2 * 6, 9),
        ("mlp:64:norm", 64 * 9 + 128 + 2 * 65, 0),
        ("mlp:64+residual", 64 * 9 + 2 * 65 + 16, 0),
        ("linear-bias+inputs:0-2,5", 2 * 5, 0),
        ("mlp:64+inputs:3+residual", 64 * 2 + 2 * 65 + 2, 0),
    ],
)
def test_parameters_and_memory_are_counted(text: str, parameters: int, remembered: int) -> None:
    network = parse_policy(text, 8, 2)
    assert (network.parameter_count, network.state_size) == (parameters, remembered)


def test_the_older_forms_are_the_older_networks() -> None:
    assert parse_policy("linear", 3, 2) == Network(3, 2, bias=False)
    assert parse_policy("linear-bias", 3, 2) == Network(3, 2)
    assert parse_policy("mlp:4,5", 3, 2) == parse_policy("mlp:4,5:tanh", 3, 2) == Network(3, 2, (4, 5))
    assert parse_policy("mlp:4:relu", 3, 2) == Network(3, 2, (4,), activation="relu")
    assert isinstance(parse_policy("mlp:4+orthogonal", 3, 2), LayeredNetwork)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("grru:32", "unknown part 'grru'; did you mean 'gru'?"),
        ("mlp:64+ltsm:32", "unknown part 'ltsm'; did you mean 'lstm'?"),
        ("mlp:64+residaul", "unknown part 'residaul'; did you mean 'residual'?"),
        ("mlp:64:rleu", "'rleu' is not an activation (identity, tanh, relu, silu, gelu, elu) or 'norm'; did you mean"),
        ("mlp", "mlp needs sizes of layers from 1 to 1048576, like mlp:64 or mlp:64,32, got ''"),
        ("gru:0", "gru needs sizes of layers"),
        ("gru:3,", "gru needs sizes of layers"),
        ("gru:９", "gru needs sizes of layers"),
        ("mlp:99999999999999999999999999", "mlp needs sizes of layers"),
        ("mlp:64:relu:tanh", "can have one activation"),
        ("mlp:64:norm:norm", "can have one activation and one 'norm'"),
        ("gru:8:relu", "a gru has activations of its own; leave 'relu' out"),
        ("linear+squash", "'linear' stands alone; with a bias it need not: 'linear-bias+squash'"),
        ("linear-bias+gru:8", "'linear-bias' has no hidden layers"),
        ("gru:8+linear", "'linear' comes first and has no hidden layers"),
        ("linear-bias+residual", "is linear already"),
        ("residual", "has no layers"),
        ("linear:3", "'linear' takes nothing after a colon"),
        ("gru:8+squash:2", "'squash' takes nothing after a colon"),
        ("gru:8+zeros+random", "'random' is one word too many"),
        ("gru:8+squash+squash", "'squash' is one word too many"),
        ("mlp:4+inputs:", "inputs needs places of the observation, counted from 0, like inputs:0-44 or inputs:0-12,20"),
        ("mlp:4+inputs", "inputs needs places of the observation"),
        ("mlp:4+inputs:-1", "inputs needs places of the observation"),
        ("mlp:4+inputs:0-", "inputs needs places of the observation"),
        ("mlp:4+inputs:0-99999999999999999999999", "inputs needs places of the observation"),
        ("mlp:4+inputs:3,2", "inputs must rise, like inputs:0-12,20, got '3,2'"),
        ("mlp:4+inputs:3-2", "inputs must rise"),
        ("mlp:4+inputs:1+inputs:2", "'inputs' is one word too many"),
        ("mlp:4+input:1", "unknown part 'input'; did you mean 'inputs'?"),
        ("", "unknown part ''"),
        ("gru:8+", "unknown part ''"),
    ],
)
def test_a_name_that_is_none_is_refused_in_one_line_with_what_was_probably_meant(text: str, said: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        check_policy(text)
    message = str(caught.value)
    assert message.startswith(f"policy {text!r}") and said in message and "\n" not in message


@pytest.mark.parametrize(
    ("text", "place", "arguments"),
    [
        ("my.module:Net", "my.module", {}),
        ("dir/my file.py:Net", "dir/my file.py", {}),
        ("m:Net(hidden=32, kind='a+b', sizes=[1, 2], on=True)", "m",
         {"hidden": 32, "kind": "a+b", "sizes": [1, 2], "on": True}),
    ],
)  # fmt: skip
def test_the_name_of_a_policy_of_one_s_own_is_read_without_an_import(
    text: str, place: str, arguments: dict[str, object]
) -> None:
    found = own_name(text)
    assert found is not None
    assert (found.place, found.name, found.arguments, found.typed) == (place, "Net", arguments, text)


def test_inputs_that_an_observation_does_not_have_are_refused() -> None:
    check_policy("linear-bias+inputs:0-8")
    with pytest.raises(InvalidArgument, match=r"inputs go up to place 8, but an observation has the places 0 to 7$"):
        parse_policy("linear-bias+inputs:0-8", 8, 2)


@pytest.mark.parametrize("call", ["(32)", "(**a)", "(a=b)", "(a=1", "(a=f())", "(a=1)(b=2)", "(*a)", "(a=1, a=2)"])
def test_arguments_that_are_not_plain_values_are_refused(call: str) -> None:
    with pytest.raises(InvalidArgument):
        check_policy(f"module:Net{call}")


@pytest.mark.parametrize("text", ["linear", "mlp:64", "gru:relu", "mlp:a", "zeros", "grru:32", "a b:Net", "3:Net"])
def test_short_names_are_never_taken_for_modules(text: str) -> None:
    assert own_name(text) is None


def test_a_start_that_is_orthogonal_keeps_lengths_and_is_the_seed_s_own() -> None:
    network = LayeredNetwork(6, 2, (LayerKind("dense", 9), LayerKind("gru", 4), LayerKind("lstm", 3)))
    center = network.initial_center(7)
    arrays = {piece.name: center[piece.place].reshape(piece.shape) for piece in network.pieces}
    np.testing.assert_allclose(arrays["layers.0.weight"].T @ arrays["layers.0.weight"], np.eye(6), atol=1e-6)
    for gate in range(3):
        block = arrays["layers.1.recurrent_weight"][4 * gate : 4 * gate + 4]
        np.testing.assert_allclose(block @ block.T, np.eye(4), atol=1e-6)
    assert arrays["layers.2.bias"].tolist() == [0.0] * 3 + [1.0] * 3 + [0.0] * 6  # the forget gates are open
    assert not arrays["output.weight"].any()
    assert center.tobytes() == network.initial_center(7).tobytes() != network.initial_center(8).tobytes()
