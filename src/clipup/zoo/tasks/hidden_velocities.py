"""Tasks whose velocities are hidden: a policy must remember where things were to know where they go.

    clipup zoo play CartPole-hidden-velocities
    clipup train clipup.zoo.tasks.hidden_velocities:CartPole --policy gru:16 --max-speed 0.3 --generations 100

The tasks are Gymnasium's CartPole-v1, InvertedDoublePendulum-v5, Hopper-v5 and Walker2d-v5 in all but what is observed.
docs/policies.md has scores of trained policies.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

import clipup
from clipup.policies import Actions

PLACE, SPEED, ANGLE, SPIN = range(4)
GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
MODELS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
FRAME_SKIP = 4


def reset(random: Any, state: Any, options: Any) -> None:
    """Start near the middle, almost upright and almost at rest."""
    for i in range(4):
        state[i] = random.uniform(-0.05, 0.05)


def step(state: Any, action: int, random: Any, options: Any) -> tuple[float, bool]:
    """Push the cart to the left (0) or to the right (1) for a moment."""
    force = FORCE if action == 1 else -FORCE
    sine, cosine = math.sin(state[ANGLE]), math.cos(state[ANGLE])
    total = CART + POLE
    push = (force + POLE * HALF_LENGTH * state[SPIN] ** 2 * sine) / total
    turn = (GRAVITY * sine - cosine * push) / (HALF_LENGTH * (4.0 / 3.0 - POLE * cosine**2 / total))
    speed_up = push - POLE * HALF_LENGTH * turn * cosine / total
    state[PLACE] += SECONDS * state[SPEED]
    state[SPEED] += SECONDS * speed_up
    state[ANGLE] += SECONDS * state[SPIN]
    state[SPIN] += SECONDS * turn
    return 1.0, abs(state[PLACE]) > 2.4 or abs(state[ANGLE]) > 12.0 * math.pi / 180.0


def observe(state: Any, options: Any, observation: Any) -> None:
    """See the place of the cart and the angle of the pole, and no velocity."""
    observation[0], observation[1] = state[PLACE], state[ANGLE]


def paint(state: Any, options: Any) -> NDArray[np.uint8]:
    """Paint the track, the cart and the pole. This function is ordinary Python."""
    rows, columns = np.mgrid[0:240, 0:360]
    east, height = (columns - 180) / 60.0 - state[PLACE], (170 - rows) / 60.0
    along = east * math.sin(state[ANGLE]) + height * math.cos(state[ANGLE])
    across = east * math.cos(state[ANGLE]) - height * math.sin(state[ANGLE])
    picture = np.full((240, 360, 3), 255, np.uint8)
    picture[abs(height) < 0.01] = (120, 120, 120)
    picture[(abs(east) < 0.25) & (abs(height) < 0.12)] = (50, 70, 110)
    picture[(along > 0) & (along < 2 * HALF_LENGTH) & (abs(across) < 0.05)] = (215, 140, 60)
    return picture


CartPole = clipup.ArrayTask(
    state_size=4,
    observation_size=2,
    actions=Actions.discrete(2),
    reset=reset,
    step=step,
    observe=observe,
    max_episode_steps=500,
    render=paint,
    steps_per_second=1 / SECONDS,
)


class Legs(NamedTuple):
    """How a robot is kept upright and paid: ``--env.healthy_reward 0.5``."""

    lowest: float
    highest: float
    largest_lean: float
    healthy_reward: float = 1.0
    control_cost: float = 1e-3
    start_noise: float = 5e-3


def observe_positions(model: Any, data: Any, options: Legs, observation: Any) -> None:
    """See the height, the lean and the joints, and no velocity. (The place along x is hidden in Hopper-v5 too.)"""
    for i in range(observation.size):
        observation[i] = data.qpos[i + 1]


def remember_place(model: Any, data: Any, options: Legs, memory: Any) -> None:
    """Remember the place along x, because the reward is the speed of the whole step."""
    memory[0] = data.qpos[0]


def is_upright(data: Any, options: Legs) -> bool:
    """Whether the trunk is high enough and does not lean too far."""
    return options.lowest < data.qpos[1] < options.highest and abs(data.qpos[2]) < options.largest_lean


def run_forward(model: Any, data: Any, options: Legs, memory: Any, action: Any) -> float:
    """Speed, plus a reward for being upright, less the cost of the controls."""
    speed = (data.qpos[0] - memory[0]) / (FRAME_SKIP * model.opt.timestep)
    effort = 0.0
    for i in range(action.size):
        effort += float(action[i]) ** 2
    return speed + (options.healthy_reward if is_upright(data, options) else 0.0) - options.control_cost * effort


def has_fallen(model: Any, data: Any, options: Legs, observation: Any) -> bool:
    """Whether the episode is over."""
    return not is_upright(data, options)


def stand(generator: np.random.Generator, model: Any, options: Legs) -> tuple[Any, Any]:
    """Start in the model's pose, with a little noise on every position and velocity."""
    noise = options.start_noise
    return model.qpos0 + generator.uniform(-noise, noise, int(model.nq)), generator.uniform(
        -noise, noise, int(model.nv)
    )


def robot(model: str, observation_size: int, options: Legs) -> clipup.MujocoTask:
    """Return the task of one of Gymnasium's models."""
    return clipup.MujocoTask(
        model=MODELS / model, observation_size=observation_size, observe=observe_positions, before=remember_place,
        memory_size=1, reward=run_forward, terminated=has_fallen, start=stand, options=options, frame_skip=FRAME_SKIP,
    )  # fmt: skip


Hopper = robot("hopper.xml", 5, Legs(lowest=0.7, highest=math.inf, largest_lean=0.2))
Walker2d = robot("walker2d_v5.xml", 8, Legs(lowest=0.8, highest=2.0, largest_lean=1.0))


def observe_poles(model: Any, data: Any, options: Any, observation: Any) -> None:
    """See the place of the cart and the angles of both poles, and no velocity."""
    for i in range(3):
        observation[i] = data.qpos[i]


def keep_upright(model: Any, data: Any, options: Any, memory: Any, action: Any) -> float:
    """10 for each step, less penalties for the distance of the tip from its highest place and for speed."""
    x, y = data.site_xpos[0, 0], data.site_xpos[0, 2] - 2.0
    alive = 10.0 if data.site_xpos[0, 2] > 1.0 else 0.0
    return alive - (0.01 * x * x + y * y) - (1e-3 * data.qvel[1] ** 2 + 5e-3 * data.qvel[2] ** 2)


def have_fallen(model: Any, data: Any, options: Any, observation: Any) -> bool:
    """Whether the tip of the second pole is no higher than 1."""
    return data.site_xpos[0, 2] <= 1.0


def almost_upright(generator: np.random.Generator, model: Any, options: Any) -> tuple[Any, Any]:
    """Start upright, with noise on every position and velocity."""
    return model.qpos0 + generator.uniform(-0.1, 0.1, int(model.nq)), 0.1 * generator.standard_normal(int(model.nv))


DoublePendulum = clipup.MujocoTask(
    model=MODELS / "inverted_double_pendulum.xml", observation_size=3, observe=observe_poles, reward=keep_upright,
    terminated=have_fallen, start=almost_upright, frame_skip=5,
)  # fmt: skip
