"""Every built-in task of the compiled engine against Gymnasium's environment of the same name.

The functions of a task are run twice on the same simulation: as plain Python, on MuJoCo's own objects, and as machine
code, on named tuples of views. Both must give what Gymnasium gives for the same seed and the same actions.
"""

from __future__ import annotations

import inspect
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
mujoco = pytest.importorskip("mujoco")
numba = pytest.importorskip("numba")

from clipup.engines.compiled.task import ArrayTask, MujocoTask  # noqa: E402
from clipup.engines.compiled.tasks import BUILT_IN, numpy_sums, task  # noqa: E402
from clipup.engines.compiled.tasks.declared import model_path  # noqa: E402
from clipup.errors import InvalidArgument, UnknownEnvironment  # noqa: E402

MUJOCO_IDS = sorted(name for name, entry in BUILT_IN.items() if isinstance(task(name), MujocoTask))
CLASSIC_IDS = sorted(set(BUILT_IN) - set(MUJOCO_IDS))

SINES = {"Reacher": slice(0, 4), "InvertedDoublePendulum": slice(1, 5)}
"""Observations from numpy's sines and cosines, which differ between processors."""


def blas_fuses() -> bool:
    """Whether BLAS, on this processor, rounds a distance otherwise than product by product and sum by sum."""
    points = np.random.default_rng(0).standard_normal((500, 2, 3))
    return any(numpy_sums.distance(pair, 0, 1) != np.linalg.norm(pair[0] - pair[1]) for pair in points)


ROUNDED_REWARDS = ("InvertedDoublePendulum", *(("Reacher", "Pusher") if blas_fuses() else ()))
"""Rewards from the C library (a square) or from BLAS (a distance), which differ between processors."""

HEALTH = {"healthy_reward": 2.5, "terminate_when_unhealthy": False}
PLANE = {"forward_reward_weight": 1.7, "ctrl_cost_weight": 0.3, "reset_noise_scale": 0.03}
POSITIONS = {"exclude_current_positions_from_observation": False}
NOTHING_INCLUDED = {f"include_{name}_in_observation": False for name in ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")}
ANT = {"ctrl_cost_weight": 0.3, "contact_cost_weight": 0.01, "contact_force_range": (-0.5, 2), "reset_noise_scale": 0.2}

# Each option at least once, for each version; episodes that go on when a body is not healthy are the longest.
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *((f"{name}-{version}", {**PLANE, **POSITIONS}) for name in ("HalfCheetah", "Swimmer") for version in ("v4", "v5")),
    *((f"{name}-{version}", {**PLANE, **HEALTH}) for name in ("Hopper", "Walker2d") for version in ("v4", "v5")),
    *(
        (f"{name}-{version}", {**POSITIONS, "healthy_z_range": [0.9, 1.5], "healthy_angle_range": (-0.1, 0.1)})
        for name in ("Hopper", "Walker2d")
        for version in ("v4", "v5")
    ),
    *((f"Hopper-{version}", {"healthy_state_range": (-1, 1), "healthy_reward": 3}) for version in ("v4", "v5")),
    *((name, {"frame_skip": 2}) for name in ("HalfCheetah-v5", "Hopper-v5", "Swimmer-v5")),
    ("Walker2d-v5", {"frame_skip": 3, "xml_file": "walker2d.xml"}),
    ("Ant-v4", {**ANT, **HEALTH, **POSITIONS, "use_contact_forces": True}),
    ("Ant-v4", {"healthy_z_range": (0.4, 0.8)}),
    ("Ant-v4", HEALTH),
    ("Ant-v5", {**ANT, **HEALTH, **POSITIONS, "frame_skip": 3, "main_body": "front_left_leg"}),
    ("Ant-v5", {"include_cfrc_ext_in_observation": False, "main_body": 3, "forward_reward_weight": 0.7}),
    ("Ant-v5", {"healthy_z_range": (0.4, 0.8), "xml_file": "ant.xml"}),
    *((f"Humanoid-{version}", {**PLANE, **HEALTH, **POSITIONS}) for version in ("v4", "v5")),
    *((f"Humanoid-{version}", {"healthy_z_range": (1.2, 1.5)}) for version in ("v4", "v5")),
    ("Humanoid-v5", {"contact_cost_weight": 1e-4, "contact_cost_range": (0.5, 2.0), "frame_skip": 3, **HEALTH}),
    ("Humanoid-v5", NOTHING_INCLUDED),
    ("HumanoidStandup-v5", {"ctrl_cost_weight": 0.3, "impact_cost_weight": 1e-4, "impact_cost_range": (0.5, 2.0)}),
    ("HumanoidStandup-v5", {**NOTHING_INCLUDED, **POSITIONS, "frame_skip": 3, "reset_noise_scale": 0.1}),
    ("HumanoidStandup-v5", {"uph_cost_weight": 3.0}),
    ("InvertedPendulum-v5", {"frame_skip": 1, "reset_noise_scale": 0.1}),
    ("InvertedDoublePendulum-v5", {"frame_skip": 2, "healthy_reward": 3.0, "reset_noise_scale": 0.02}),
    ("Reacher-v5", {"frame_skip": 3, "reward_dist_weight": 1.5, "reward_control_weight": 0.3}),
    ("Pusher-v5", {"frame_skip": 2, "reward_near_weight": 0.3, "reward_dist_weight": 1.5, "xml_file": "pusher.xml"}),
    ("Pusher-v5", {"reward_control_weight": 0.7}),
]


class Fields(NamedTuple):
    """Views of what the built-in tasks read of ``mujoco.MjData``: one type, so that few functions are compiled."""

    qpos: Any
    qvel: Any
    ctrl: Any
    xpos: Any
    xipos: Any
    cinert: Any
    cvel: Any
    cfrc_ext: Any
    qfrc_actuator: Any
    qfrc_constraint: Any
    site_xpos: Any


class Constants(NamedTuple):
    """Views of what the built-in tasks read of ``mujoco.MjModel``."""

    body_mass: Any


_MADE: dict[FunctionType, Any] = {}


def machine_code(function: Any) -> Any:
    """Compile a function together with the plain functions that it calls; Python can call the result."""
    if not isinstance(function, FunctionType):
        return function
    if function not in _MADE:
        used = {name: function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__}
        called = {name: machine_code(value) for name, value in used.items()}
        copy = FunctionType(function.__code__, {**function.__globals__, **called}, function.__name__)
        _MADE[function] = numba.njit(error_model="numpy")(copy)
    return _MADE[function]


def views(named_tuple: Any, of: Any) -> Any:
    return named_tuple(*(getattr(of, name) for name in named_tuple._fields))


class Simulation:
    """A compiled task, stepped as the engine steps it, its functions as machine code and, if asked, as they are."""

    def __init__(self, made: MujocoTask, *, python: bool) -> None:
        self.task = made
        self.model = mujoco.MjModel.from_xml_path(str(made.model))
        self.data = mujoco.MjData(self.model)
        self.drives = [(machine_code, views(Constants, self.model), views(Fields, self.data))]
        if python:
            self.drives.append((lambda function: function, self.model, self.data))
        self.memories = [np.zeros(made.memory_size) for _ in self.drives]

    def reset(self, seed: int) -> list[np.ndarray]:
        mujoco.mj_resetData(self.model, self.data)
        assert self.task.start is not None
        qpos, qvel = self.task.start(np.random.default_rng(seed), self.model, self.task.options)
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel
        mujoco.mj_forward(self.model, self.data)
        for memory in self.memories:
            memory[:] = 0.0
        return self.observe()

    def step(self, action: np.ndarray) -> tuple[list[np.ndarray], list[float], list[bool]]:
        options = self.task.options
        for (made, model, data), memory in zip(self.drives, self.memories, strict=True):
            if self.task.before is not None:
                made(self.task.before)(model, data, options, memory)
        self.data.ctrl[:] = action
        mujoco.mj_step(self.model, self.data, nstep=self.task.frame_skip)
        if self.task.post_constraint:
            mujoco.mj_rnePostConstraint(self.model, self.data)
        rewards = [
            float(made(self.task.reward)(model, data, options, memory, action))
            for (made, model, data), memory in zip(self.drives, self.memories, strict=True)
        ]
        observations = self.observe()
        ends = [
            self.task.terminated is not None and bool(made(self.task.terminated)(model, data, options, observation))
            for (made, model, data), observation in zip(self.drives, observations, strict=True)
        ]
        return observations, rewards, ends

    def observe(self) -> list[np.ndarray]:
        observations = [np.full(self.task.observation_size, np.nan) for _ in self.drives]
        for (made, model, data), observation in zip(self.drives, observations, strict=True):
            made(self.task.observe)(model, data, self.task.options, observation)
        return observations


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Return a function that makes Gymnasium's environment; Pusher-v4 only takes a MuJoCo that calls itself 2."""
    made: list[Any] = []

    def make(name: str, options: Mapping[str, Any]) -> Any:
        if name == "Pusher-v4":
            monkeypatch.setattr(mujoco, "__version__", "2.3.7")
        if name.endswith("v4"):
            monkeypatch.setattr(gymnasium.logger, "deprecation", lambda *_: None)
        made.append(gymnasium.make(name, disable_env_checker=True, **options))
        return made[-1]

    yield make
    for environment in made:
        environment.close()


def agree(
    name: str, options: Mapping[str, Any], environment: Any, *, steps: int, seed: int, python: bool = True
) -> None:
    """Step a task beside Gymnasium's environment, episode after episode, with actions in and beyond their bounds."""
    simulation = Simulation(task(name, options), python=python)
    family = name.partition("-")[0]
    sines, rounded = SINES.get(family, slice(0, 0)), family in ROUNDED_REWARDS
    random = np.random.default_rng(seed)
    high = environment.action_space.high
    episode = left = 0
    reach = 1.0
    while steps > 0:
        if left == 0:
            expected, _ = environment.reset(seed=seed + episode)
            observations = simulation.reset(seed + episode)
            reach = (0.3, 1.0, 2.5)[episode % 3]
            left, episode = BUILT_IN[name].max_episode_steps, episode + 1
            rewards, ends, reward, end = [], [], 0.0, False
        else:
            action = (high * random.uniform(-reach, reach, high.shape)).astype(np.float32)
            expected, reward, end, cut, _ = environment.step(action)
            observations, rewards, ends = simulation.step(action)
            steps, left = steps - 1, left - 1
            assert cut == (left == 0)
            left = 0 if end else left
        for observation in observations:
            np.testing.assert_allclose(observation[sines], expected[sines], rtol=0, atol=1e-12)
            observation[sines] = expected[sines]
            np.testing.assert_array_equal(observation, expected)
        assert ends == [end] * len(ends)
        for value in rewards:
            assert value == (pytest.approx(reward, rel=0, abs=1e-12) if rounded else reward)


@pytest.mark.parametrize("name", MUJOCO_IDS)
def test_a_mujoco_task_equals_gymnasiums_to_the_bit(name: str, reference: Callable[..., Any]) -> None:
    agree(name, {}, reference(name, {}), steps=250, seed=11)


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=lambda value: value if isinstance(value, str) else "")
def test_options_mean_what_they_mean_in_gymnasium(
    name: str, options: dict[str, Any], reference: Callable[..., Any]
) -> None:
    agree(name, options, reference(name, options), steps=120, seed=5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [100, 200, 300])
@pytest.mark.parametrize("name", MUJOCO_IDS)
def test_thousands_of_steps_equal_gymnasiums(name: str, seed: int, reference: Callable[..., Any]) -> None:
    agree(name, {}, reference(name, {}), steps=4000, seed=seed, python=False)
    if "terminate_when_unhealthy" in BUILT_IN[name].defaults:
        options = {"terminate_when_unhealthy": False}
        agree(name, options, reference(name, options), steps=4000, seed=seed, python=False)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=lambda value: value if isinstance(value, str) else "")
def test_thousands_of_steps_with_options_equal_gymnasiums(
    name: str, options: dict[str, Any], reference: Callable[..., Any]
) -> None:
    agree(name, options, reference(name, options), steps=3000, seed=77, python=False)


def test_every_option_is_tried() -> None:
    for name in MUJOCO_IDS:
        tried = {option for other, options in OPTIONS if other == name for option in options}
        assert set(BUILT_IN[name].defaults) - tried <= {"xml_file"}, name
    assert {name for name, options in OPTIONS if "xml_file" in options} >= {"Walker2d-v5", "Ant-v5", "Pusher-v5"}


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_options_defaults_and_limits_are_gymnasiums(name: str) -> None:
    spec = gymnasium.spec(name)
    assert BUILT_IN[name].max_episode_steps == spec.max_episode_steps == task(name).max_episode_steps
    environment = gymnasium.envs.registration.load_env_creator(spec.entry_point)
    known = {
        option: argument.default
        for option, argument in inspect.signature(environment.__init__).parameters.items()
        if isinstance(argument.default, bool | int | float | tuple) or option == "xml_file"
    }
    assert dict(BUILT_IN[name].defaults) == known


CLASSIC_OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in CLASSIC_IDS),
    ("CartPole-v1", {"sutton_barto_reward": True}),
    ("Pendulum-v1", {"g": 9.81}),
    ("MountainCar-v0", {"goal_velocity": 0.02}),
    ("MountainCarContinuous-v0", {"goal_velocity": 0.03}),
]


@pytest.mark.parametrize("compiled", [False, True], ids=["python", "machine code"])
@pytest.mark.parametrize(
    ("name", "options"), CLASSIC_OPTIONS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_classic_control_steps_as_gymnasiums_does(
    name: str, options: dict[str, Any], compiled: bool, reference: Callable[..., Any]
) -> None:
    made, environment = task(name, options), reference(name, options)
    assert isinstance(made, ArrayTask)
    assert made.observe is not None
    convert = machine_code if compiled else lambda function: function
    step, observe = convert(made.step), convert(made.observe)
    # Machine code takes a generator of the kernel's; numpy's stands in for it in Python, and no built-in step draws.
    state, observation = np.zeros(made.state_size), np.zeros(made.observation_size)
    random = np.random.default_rng(3)
    finished = left = episode = 0
    for _ in range(3000):
        if left == 0:
            expected, _ = environment.reset(seed=episode)
            made.reset(np.random.default_rng(episode), state, made.options)
            assert state[: len(environment.unwrapped.state)].tolist() == list(environment.unwrapped.state)
            left, episode = made.max_episode_steps, episode + 1
        else:
            size = len(environment.unwrapped.state)
            state[:size] = environment.unwrapped.state
            if made.state_size > size:
                state[size] = float(np.asarray(environment.unwrapped.state).dtype == np.float32)
            action = choose(name, environment, random, episode)
            expected, reward, end, cut, _ = environment.step(action)
            value, over = step(state, action, 0, made.options)
            np.testing.assert_allclose(state[:size], environment.unwrapped.state, rtol=0, atol=1e-12)
            # The cost of Pendulum's torque is a float32 of at most 0.004, with a square from the C library.
            tolerance = 0.004 * 2**-23 if name == "Pendulum-v1" else 0.0
            assert value == pytest.approx(reward, rel=0, abs=tolerance)
            assert over == end
            left -= 1
            assert cut == (left == 0)
            finished += end
            left = 0 if end else left
        observe(state, made.options, observation)
        np.testing.assert_allclose(observation, expected, rtol=2e-7, atol=1e-12)
    assert finished or name == "Pendulum-v1"


def choose(name: str, environment: Any, random: np.random.Generator, episode: int) -> Any:
    """Random actions, in and beyond their bounds; those that pump the swing or the car up in every other episode."""
    state = environment.unwrapped.state
    if name == "Acrobot-v1":
        return 2 * int(state[3] > state[2]) if episode % 2 else int(random.integers(3))
    if name == "MountainCar-v0":
        return 2 * int(state[1] >= 0) if episode % 2 else int(random.integers(3))
    if name == "CartPole-v1":
        return int(random.integers(2))
    high = environment.action_space.high
    if name == "MountainCarContinuous-v0" and episode % 2:
        return (high * (1.0 if state[1] >= 0 else -1.0) * random.uniform(0.7, 1.5)).astype(np.float32)
    return (high * random.uniform(-1.5, 1.5)).astype(np.float32)


@pytest.mark.parametrize("compiled", [False, True], ids=["python", "machine code"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_numpys_to_the_bit(dtype: type, compiled: bool) -> None:
    total = machine_code(numpy_sums.pairwise_sum) if compiled else numpy_sums.pairwise_sum
    random = np.random.default_rng(0)
    for size in [*range(1, 300), 1000, 1025, 4097, 10_000]:
        values = (random.standard_normal(size) ** 3).astype(dtype)
        result = total(values)
        assert result == np.sum(values)
        assert np.asarray(result).dtype == dtype or compiled


@pytest.mark.parametrize("value", [-math.inf, -2.0, -0.0, 0.5, 7.0, math.inf, math.nan])
def test_limits_are_numpys(value: float) -> None:
    for low, high in [(-1.0, 1.0), (-math.inf, math.inf), (0.5, 7.0), (2.0, 1.0)]:
        np.testing.assert_equal(numpy_sums.clip(value, low, high), float(np.clip(value, low, high)))


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="names a kernel for x86")
def test_a_distance_is_numpys_to_the_bit_where_blas_does_not_fuse() -> None:
    script = (
        "import numpy as np; from clipup.engines.compiled.tasks.numpy_sums import distance\n"
        "points = np.random.default_rng(0).standard_normal((5000, 2, 3))\n"
        "print(all(distance(p, 0, 1) == np.linalg.norm(p[0] - p[1]) for p in points))"
    )
    environment = {**os.environ, "OPENBLAS_CORETYPE": "Nehalem"}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.split() == ["True"], run.stderr


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "Walker2d-v5",
            {"ctrl_cost_wieght": 1.0},
            r"no option 'ctrl_cost_wieght'; did you mean 'ctrl_cost_weight'\?.*",
        ),
        ("Walker2d-v4", {"frame_skip": 3}, r"Walker2d-v4 has no option 'frame_skip' \(its options are .*"),
        ("Reacher-v4", {"frame_skip": 3}, r"Reacher-v4 has no option 'frame_skip' \(it has no options\)"),
        ("Walker2d-v5", {"frame_skip": 0}, "frame_skip of Walker2d-v5 must be a whole number of at least 1, got 0"),
        ("Walker2d-v5", {"frame_skip": True}, "must be a whole number"),
        ("Walker2d-v5", {"healthy_z_range": 1.0}, "must be two numbers, the lower and the upper bound, got 1.0"),
        ("Walker2d-v5", {"healthy_z_range": (0.0, math.nan)}, "must be two numbers"),
        ("Walker2d-v5", {"healthy_reward": "much"}, "must be a finite number, got 'much'"),
        ("Walker2d-v5", {"healthy_reward": math.inf}, "must be a finite number, got inf"),
        ("Walker2d-v5", {"terminate_when_unhealthy": 1}, "must be true or false, got 1"),
        ("Ant-v5", {"reset_noise_scale": -0.1}, "must be a finite number of at least 0, got -0.1"),
        ("Ant-v5", {"main_body": 99}, "must be the name of a body or its number, below 14, got 99"),
        ("Ant-v5", {"main_body": "tail"}, "needs a body named 'tail', and its model has none"),
        ("Ant-v5", {"xml_file": 3}, "must be the path of a model, got 3"),
        ("Ant-v5", {"xml_file": "./nowhere.xml"}, r"there is no file .*nowhere\.xml"),
        ("Reacher-v5", {"xml_file": "swimmer.xml"}, "needs a body named 'fingertip'"),
        ("Pusher-v5", {"xml_file": "inverted_pendulum.xml"}, "needs a model with nq of at least 7, got 2"),
        ("InvertedDoublePendulum-v5", {"xml_file": "walker2d.xml"}, "needs a model with nsite of at least 1, got 0"),
        ("CartPole-v1", {"gravity": 9.0}, "has no option 'gravity'"),
    ],
)
def test_a_wrong_option_is_refused_in_one_line(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message) as caught:
        task(name, options)
    assert "\n" not in str(caught.value)


def test_an_unknown_task_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownEnvironment, match=r"no task 'walker2d-v5'; did you mean 'Walker2d-v5'\?"):
        task("walker2d-v5")


def test_a_model_of_ones_own_is_found_by_its_path(tmp_path: Path) -> None:
    text = model_path("ant.xml").read_text(encoding="utf-8").replace('name="aux_1"', 'name="mine"')
    (tmp_path / "mine.xml").write_text(text, encoding="utf-8")
    made = task("Ant-v5", {"xml_file": str(tmp_path / "mine.xml"), "main_body": "mine"})
    assert isinstance(made, MujocoTask)
    assert made.model == tmp_path / "mine.xml"
    assert made.options.main_body == 3
    (tmp_path / "broken.xml").write_text("<mujoco><worldbody></mujoco>", encoding="utf-8")
    with pytest.raises(InvalidArgument, match=r"MuJoCo cannot load .*broken\.xml") as caught:
        task("Ant-v5", {"xml_file": str(tmp_path / "broken.xml")})
    assert "\n" not in str(caught.value)
