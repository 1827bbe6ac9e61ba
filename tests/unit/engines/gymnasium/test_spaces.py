"""Spaces of any shape: a vector in the documented order, actions that the space contains, images refused."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, Sequence, Space, Text, Tuple

from clipup.engines import Task
from clipup.engines.gymnasium.spaces import action_maker, actions_of, observations_of
from clipup.errors import InvalidArgument

TASK = Task("Somewhere-v0")


def a_space(random: np.random.Generator, depth: int, *, actions: bool = False) -> Space[Any]:
    """A random space, of up to `depth` dictionaries and tuples in each other."""
    kind = int(random.integers(0, 6 if depth else 4))
    if kind == 0:
        shape = tuple(int(size) for size in random.integers(1, 4, random.integers(1 if actions else 0, 3)))
        dtype = (np.float32, np.float64)[random.integers(2)] if actions else (np.float32, np.int64)[random.integers(2)]
        return Box(-2, 3, shape, dtype)  # type: ignore[arg-type]
    if kind == 1:
        return Discrete(int(random.integers(1, 5)), start=int(random.integers(-2, 3)))
    if kind == 2:
        shape = (2, 2) if random.integers(2) else (int(random.integers(1, 4)),)
        return MultiDiscrete(random.integers(1, 4, shape), start=random.integers(-2, 2, shape))
    if kind == 3:
        return MultiBinary([2, 2] if random.integers(2) else 3)
    inner = [a_space(random, depth - 1, actions=actions) for _ in range(random.integers(1, 4))]
    names = random.permutation(["b", "a", "c"])
    return Tuple(inner) if kind == 4 else Dict({str(names[place]): one for place, one in enumerate(inner)})


@pytest.mark.parametrize("seed", range(60))
def test_an_observation_becomes_the_vector_that_gymnasium_flattens_it_to(seed: int) -> None:
    space = a_space(np.random.default_rng(seed), 3)
    space.seed(seed)
    size, layout = observations_of(TASK, space)
    for _ in range(3):
        sample = space.sample()
        expected = gymnasium.spaces.flatten(space, sample)
        found = np.asarray(sample) if layout is None else layout.flatten(sample)
        assert size == len(found) and np.array_equal(found, expected)


@pytest.mark.parametrize("seed", range(60))
def test_any_outputs_become_an_action_that_the_space_contains(seed: int) -> None:
    random = np.random.default_rng(seed)
    space = a_space(random, 3, actions=True)
    actions = actions_of(TASK, space)
    make = action_maker(space, actions)
    outputs = np.concatenate([10.0 ** random.integers(-3, 4, (5, 1)) * random.standard_normal((5, actions.size)),
                              np.zeros((1, actions.size))]).astype(np.float32)  # fmt: skip
    outputs[0, 0] = np.inf
    taken = [make(row) for row in actions.apply(outputs)]
    assert all(space.contains(action) for action in taken), (space, taken)


def test_equal_outputs_give_the_first_choice_and_no_bit() -> None:
    space = Dict({"two": MultiBinary(2), "one": MultiDiscrete([3, 2])})
    actions = actions_of(TASK, space)
    action = action_maker(space, actions)(actions.apply(np.zeros((1, actions.size), np.float32))[0])
    assert list(action) == ["one", "two"] and action["one"].tolist() == [0, 0] and action["two"].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (Box(0, 255, (84, 84, 3), np.uint8), "image"),
        (Box(0, 255, (32, 32), np.uint8), "image"),
        (Box(0, 1, (100, 100), np.float32), "image"),
        (Dict({"camera": Box(0, 255, (64, 64, 3), np.uint8), "joints": Box(-1, 1, (3,))}), "camera is an image"),
        (Text(10), "wrap it"),
        (Sequence(Discrete(3)), "wrap it"),
        (Graph(Box(-1, 1, (3,)), None), "wrap it"),
        (Discrete(2**20), "1048576 choices"),
        (Tuple([]), "1 to 1000 parts"),
    ],
)
def test_what_no_policy_can_take_is_refused_with_the_reason(space: Space[Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=f"(?s)Somewhere-v0.*{said}"):
        observations_of(TASK, space)


@pytest.mark.parametrize("space", [Box(0, 5, (2,), np.int64), Text(3), Dict({"a": Text(3)}), Tuple([])])
def test_actions_that_no_outputs_become_are_refused(space: Space[Any]) -> None:
    with pytest.raises(InvalidArgument, match="Somewhere-v0"):
        actions_of(TASK, space)
