"""A task without a physics library: land a rocket in the wind. It is a state vector and a function that steps it.

    clipup train examples/own_task.py:Rocket --run runs/rocket --generations 300 --population 200 --max-speed 0.2 \\
        --seed 1
    clipup record runs/rocket --import examples/own_task.py -o rocket.mp4
    python examples/own_task.py --run runs/rocket             (the same as the first command; about a minute)

Needs clipup[train]. The functions are compiled, so an episode takes microseconds.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import clipup
from clipup.cli import main
from clipup.policies import Actions

X, Y, VX, VY, ANGLE, SPIN, WIND, POTENTIAL = range(8)
SECONDS = 0.05
WIDTH, HEIGHT, METRES = 320, 240, 20.0


class Options(NamedTuple):
    """What may be changed: ``--env.gravity 3.7`` lands on Mars."""

    gravity: float = 9.81
    thrust: float = 20.0
    gust: float = 1.0


def potential(state: Any) -> float:
    """Rise as the rocket comes near the pad, slow and upright."""
    distance = math.sqrt(state[X] ** 2 + state[Y] ** 2)
    speed = math.sqrt(state[VX] ** 2 + state[VY] ** 2)
    return -10.0 * distance - 5.0 * speed - 20.0 * abs(state[ANGLE])


def reset(random: Any, state: Any, options: Options) -> None:
    """Start high up, off to a side, falling."""
    state[X] = random.uniform(-5.0, 5.0)
    state[Y] = random.uniform(12.0, 15.0)
    state[VX] = random.uniform(-1.0, 1.0)
    state[VY] = random.uniform(-3.0, 0.0)
    state[ANGLE] = random.uniform(-0.2, 0.2)
    state[POTENTIAL] = potential(state)


def step(state: Any, action: Any, random: Any, options: Options) -> tuple[float, bool]:
    """Fly for a moment. The wind wanders; the engine burns and tilts."""
    burn, tilt = 0.5 + 0.5 * float(action[0]), 0.3 * float(action[1])
    state[WIND] = 0.95 * state[WIND] + options.gust * 0.3 * random.normal(0.0, 1.0)
    push = options.thrust * burn
    state[VX] += SECONDS * (push * math.sin(state[ANGLE] + tilt) + state[WIND])
    state[VY] += SECONDS * (push * math.cos(state[ANGLE] + tilt) - options.gravity)
    state[SPIN] += SECONDS * (-0.3 * push * math.sin(tilt) - 0.5 * state[SPIN])
    state[X] += SECONDS * state[VX]
    state[Y] += SECONDS * state[VY]
    state[ANGLE] += SECONDS * state[SPIN]
    before, state[POTENTIAL] = state[POTENTIAL], potential(state)
    gained = state[POTENTIAL] - before - 0.5
    if state[Y] <= 0.0:
        gentle = abs(state[VX]) < 1.0 and state[VY] > -2.0 and abs(state[ANGLE]) < 0.3 and abs(state[X]) < 2.0
        return gained + (100.0 if gentle else -30.0), True
    lost = abs(state[X]) > 15.0 or state[Y] > 25.0 or abs(state[ANGLE]) > 2.0
    return gained - (100.0 if lost else 0.0), lost


def observe(state: Any, options: Options, observation: Any) -> None:
    """See everything but the wind."""
    observation[:] = state[:WIND]


def render(state: NDArray[np.float64], options: Options) -> NDArray[np.uint8]:
    """Paint the sky, the ground, the pad and the rocket. This function is ordinary Python."""
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    east = (columns - WIDTH / 2) * METRES / HEIGHT - state[X]
    height = (HEIGHT - 20 - rows) * METRES / HEIGHT
    picture = np.full((HEIGHT, WIDTH, 3), (190, 215, 235), np.uint8)
    picture[height < 0] = (110, 140, 90)
    picture[(height < 0) & (height > -0.3) & (abs(east + state[X]) < 2.0)] = (70, 70, 80)
    along = east * math.sin(state[ANGLE]) + (height - state[Y]) * math.cos(state[ANGLE])
    across = east * math.cos(state[ANGLE]) - (height - state[Y]) * math.sin(state[ANGLE])
    body = (along > 0) & (along < 2.4) & (abs(across) < 0.35 * np.minimum(1.0, (2.4 - along) * 1.5))
    fins = (along > 0) & (along < 0.6) & (abs(across) < 0.75 - along)
    picture[fins] = (90, 90, 100)
    picture[body] = (215, 60, 50)
    picture[(along < 0) & (along > -0.8) & (abs(across) < 0.2 + 0.2 * along)] = (255, 190, 60)
    return picture


Rocket = clipup.ArrayTask(
    state_size=8, observation_size=6, actions=Actions.box([-1.0, -1.0], [1.0, 1.0]), reset=reset, step=step,
    observe=observe, options=Options(), max_episode_steps=300, render=render, steps_per_second=1 / SECONDS,
)  # fmt: skip


SETTINGS = ("--generations", "300", "--population", "200", "--max-speed", "0.2", "--seed", "1")

if __name__ == "__main__":  # as the command above does; other flags may follow
    sys.exit(main(["train", f"{__file__}:Rocket", *SETTINGS, *sys.argv[1:]]))
