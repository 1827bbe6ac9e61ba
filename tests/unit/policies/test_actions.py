"""From outputs to actions."""

import json

import numpy as np
import pytest

from clipup.errors import InvalidArgument
from clipup.policies import Actions


def test_a_box_clips_in_its_own_type() -> None:
    actions = Actions.box(np.full(2, -0.4), np.full(2, 0.4), dtype="float64")
    result = actions.apply(np.array([[9.0, -9.0], [0.25, -0.25]], np.float32))
    assert result.dtype == np.float64
    assert result.tolist() == [[0.4, -0.4], [0.25, -0.25]]


def test_each_number_of_a_box_has_its_own_bounds() -> None:
    actions = Actions.box(np.array([-1.0, -np.inf]), np.array([1.0, 5.0]))
    assert actions.apply(np.array([[-3.0, -300.0], [3.0, 300.0]], np.float32)).tolist() == [[-1.0, -300.0], [1.0, 5.0]]


def test_rescaling_stretches_minus_one_to_one_over_the_bounds() -> None:
    actions = Actions.box(np.array([0.0, -2.0]), np.array([10.0, 2.0]), rescale=True)
    result = actions.apply(np.array([[-1.0, 1.0], [0.0, 0.5], [5.0, -5.0]], np.float32))
    assert result.tolist() == [[0.0, 2.0], [5.0, 1.0], [10.0, -2.0]]


def test_rescaling_needs_bounds() -> None:
    with pytest.raises(InvalidArgument, match="finite bounds"):
        Actions.box(np.array([-np.inf]), np.array([np.inf]), rescale=True)


def test_a_box_may_have_several_dimensions() -> None:
    actions = Actions.box(-np.ones((2, 3)), np.ones((2, 3)))
    assert actions.size == 6
    assert actions.apply(np.zeros((5, 6), np.float32)).shape == (5, 2, 3)


def test_the_largest_output_is_chosen_and_the_first_of_equals() -> None:
    actions = Actions.discrete(3, start=-1, dtype="int32")
    result = actions.apply(np.array([[0.0, 2.0, 1.0], [1.0, 1.0, 1.0]], np.float32))
    assert result.dtype == np.int32
    assert result.tolist() == [0, -1]


def test_outputs_are_left_alone() -> None:
    outputs = np.array([[9.0]], np.float32)
    Actions.box(-np.ones(1), np.ones(1), rescale=True).apply(outputs)
    assert outputs[0, 0] == 9.0


@pytest.mark.parametrize(
    "actions",
    [
        Actions.discrete(4, start=2),
        Actions.box(np.array([-1.0, -np.inf]), np.array([np.inf, 2.0])),
        Actions.box(-np.ones((2, 2)), np.ones((2, 2)), rescale=True, dtype="float64"),
    ],
)
def test_a_description_survives_strict_json(actions: Actions) -> None:
    text = json.dumps(actions.to_dict(), allow_nan=False)
    assert Actions.from_dict(json.loads(text)) == actions


@pytest.mark.parametrize(
    "change", [{"kind": "images"}, {"size": "many"}, {"low": [0.0]}, {"dtype": "object"}, {"dtype": "nonsense"}]
)
def test_a_wrong_description_is_refused(change: dict[str, object]) -> None:
    fields = {**Actions.box(-np.ones(2), np.ones(2)).to_dict(), **change}
    with pytest.raises(InvalidArgument):
        Actions.from_dict(fields)


def test_a_description_that_lacks_a_field_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="size"):
        Actions.from_dict({"kind": "box", "dtype": "float32", "low": [], "high": []})


@pytest.mark.parametrize(
    "change", [{"dtype": "(1,f4"}, {"dtype": "O"}, {"start": 10**30}, {"start": 10**400}, {"shape": [-1, -1]}]
)
def test_a_description_from_a_stranger_is_taken_or_refused_never_run(change: dict[str, object]) -> None:
    fields = Actions.box(np.full(1, -1, np.float32), np.ones(1, np.float32)).to_dict()
    with pytest.raises(InvalidArgument):
        Actions.from_dict({**fields, **change})
