"""Observations in parts: the documented order, in and out of files, and what is refused."""

import json

import numpy as np
import pytest

from clipup.errors import InvalidArgument
from clipup.export.policy import PolicyTask, decode_policy, encode_policy
from clipup.export.safetensors import decode, encode
from clipup.policies import Actions, Network, ObservationPart, Observations, Policy

LAYOUT = Observations(
    (
        ObservationPart(("goal",), 2),
        ObservationPart(("inner", 0), 3, (3,), (1,)),
        ObservationPart(("inner", 1), 4, (2, 2), (0, 0)),
    )
)
OBSERVATION = {"inner": (3, [1, 0]), "goal": [0.5, -2.0]}
VECTOR = [0.5, -2.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0]


def a_policy(actions: Actions | None = None) -> Policy:
    found = actions or Actions.box([-1.0], [1.0])
    network = Network(LAYOUT.size, found.size)
    parameters = np.random.default_rng(3).standard_normal(network.parameter_count)
    return Policy(network, parameters, None, found, LAYOUT)


def test_parts_stand_in_the_vector_in_their_order() -> None:
    assert LAYOUT.flatten(OBSERVATION).tolist() == VECTOR
    batch = {"inner": (np.array([3, 1]), np.array([[1, 0], [0, 0]])), "goal": np.array([[0.5, -2.0], [1.0, 1.0]])}
    assert LAYOUT.flatten_batch(batch)[0].tolist() == VECTOR
    assert LAYOUT.describe() == "goal (2), inner/0 (3), inner/1 (4)"


def test_a_policy_takes_an_observation_in_parts_or_its_vector_and_its_file_keeps_the_order() -> None:
    policy = a_policy()
    again, _ = decode_policy(encode_policy(policy, PolicyTask()), "file")
    assert again.observations == LAYOUT
    for found in (policy, again):
        assert found(OBSERVATION).tobytes() == found(VECTOR).tobytes() == policy(np.array([VECTOR]))[0].tobytes()


def test_a_policy_of_vectors_has_the_file_that_it_always_had() -> None:
    policy = Policy(Network(2, 1), np.zeros(3), None, Actions.box([-1.0], [1.0]))
    data = encode_policy(policy, PolicyTask())
    assert b"observations" not in data and b"parts" not in data and b"wrapper" not in data


@pytest.mark.parametrize(
    "observation",
    [
        {"goal": [0.5, -2.0]},
        {"inner": (4, [1, 0]), "goal": [0.5, -2.0]},
        {"inner": (0, [1, 0]), "goal": [0.5, -2.0]},
        {"inner": (1.5, [1, 0]), "goal": [0.5, -2.0]},
        {"inner": (1, [1, 0, 0]), "goal": [0.5, -2.0]},
        {"inner": (1, [1, 0]), "goal": [0.5]},
        {"inner": {}, "goal": [0.5, -2.0]},
        (1, 2),
        3,
    ],
)
def test_an_observation_that_does_not_fit_is_refused(observation: object) -> None:
    with pytest.raises(InvalidArgument):
        a_policy()(observation)  # type: ignore[arg-type]


WRONG = [
    [],
    {},
    None,
    "parts",
    [{}],
    [{"path": ["a"], "size": 9, "choices": [], "starts": 3}],
    [{"path": ["a"], "size": 9.0, "choices": [], "starts": []}],
    [{"path": ["a"], "size": True, "choices": [], "starts": []}],
    [{"path": [None], "size": 9, "choices": [], "starts": []}],
    [{"path": [["x"]], "size": 9, "choices": [], "starts": []}],
    [{"path": ["a"], "size": 8, "choices": [], "starts": []}],
    [{"path": ["a"], "size": 0, "choices": [], "starts": []}],
    [{"path": ["a"], "size": -9, "choices": [], "starts": []}],
    [{"path": ["a"], "size": 9, "choices": [9], "starts": []}],
    [{"path": ["a"], "size": 9, "choices": [10, -1], "starts": [0, 0]}],
    [{"path": ["a"], "size": 9, "choices": [10**30], "starts": [0]}],
    [{"path": ["a"], "size": 9, "choices": "123456789", "starts": "123456789"}],
]


@pytest.mark.parametrize("parts", WRONG, ids=range(len(WRONG)))
def test_a_file_with_a_wrong_description_is_refused_in_one_line(parts: object) -> None:
    file = decode(encode_policy(a_policy(), PolicyTask()), source="file")
    assert json.loads(file.metadata["observations"]) == {"parts": LAYOUT.to_list()}
    wrong = encode(file.tensors, {**file.metadata, "observations": json.dumps({"parts": parts})})
    with pytest.raises(ValueError, match="file: ") as caught:
        decode_policy(wrong, "file")
    assert "\n" not in str(caught.value)


MIXED = Actions.of_parts(
    [
        (("arm",), Actions.box(np.array([-1.0, -np.inf]), np.array([1.0, np.inf]))),
        (("grip",), Actions.binary((2,))),
        (("mode",), Actions.discrete(3, start=5)),
    ]
)


def test_several_actions_are_one_row_and_come_back_from_a_file() -> None:
    outputs = np.array([[3.0, -7.0, 0.1, -0.1, 0.0, 2.0, 1.0]], np.float32)
    assert MIXED.kind == "mixed" and MIXED.apply(outputs).tolist() == [[1.0, -7.0, 1.0, 0.0, 6.0]]
    choices = Actions.of_parts([((0,), Actions.discrete(2)), ((1,), Actions.discrete(3))])
    assert choices.kind == "choices" and choices.apply(outputs[:, :5]).dtype == np.int64
    for actions in (MIXED, choices, Actions.binary((2, 2))):
        again, _ = decode_policy(encode_policy(a_policy(actions), PolicyTask()), "file")
        assert again.actions == actions
        assert again(VECTOR).tobytes() == a_policy(actions)(VECTOR).tobytes()


@pytest.mark.parametrize(
    "wrong",
    [
        {"parts": [], "paths": []},
        {"parts": [{}], "paths": [[]]},
        {"paths": [["a"]]},
        {"paths": [[1.5], ["b"], ["c"]]},
        {"parts": [MIXED.to_dict()] * 3},
        {"size": 6},
        {"kind": "box"},
        {"kind": "discrete"},
        {"kind": "nothing"},
    ],
)
def test_a_wrong_description_of_several_actions_is_refused(wrong: dict) -> None:
    with pytest.raises(InvalidArgument):
        Actions.from_dict(MIXED.to_dict() | wrong)
