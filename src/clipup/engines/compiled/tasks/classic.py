"""Classic control: CartPole, Pendulum, Acrobot, MountainCar and MountainCarContinuous.

They step a state of a few numbers with sines and cosines. numpy's sines differ between processors, so a step is within
1e-12 of Gymnasium's from the same state, not equal to it. Observations are rounded to float32, as Gymnasium's are. So
is the cost of Pendulum's torque, for which Gymnasium takes a square from the C library: it may differ in its last bit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from clipup.compilation.math import cos, sin
from clipup.engines.compiled.task import ArrayTask, Vector
from clipup.engines.compiled.tasks.declared import BuiltIn, Settings
from clipup.engines.compiled.tasks.numpy_sums import clip
from clipup.policies.actions import Actions


def single(value: float) -> float:
    """Round to float32."""
    return np.float64(np.float32(value))


def observe_state(state: Vector, options: Any, observation: Vector) -> None:
    """Observe the state in float32."""
    for i in range(observation.size):
        observation[i] = single(state[i])


# CartPole

GRAVITY = 9.8
POLE_MASS = 0.1
TOTAL_MASS = POLE_MASS + 1.0
HALF_LENGTH = 0.5
MASS_LENGTH = POLE_MASS * HALF_LENGTH
PUSH = 10.0
CART_SECONDS = 0.02
FARTHEST = 2.4
STEEPEST = 12 * 2 * math.pi / 360


class CartPole(NamedTuple):
    """Options of CartPole."""

    sutton_barto_reward: bool


def cartpole_reset(random: Any, state: Vector, options: CartPole) -> None:
    """Start near the middle, near upright, nearly at rest."""
    for i in range(4):
        state[i] = random.uniform(-0.05, 0.05)


def cartpole_step(state: Vector, action: int, random: Any, options: CartPole) -> tuple[float, bool]:
    """Push to the right (1) or to the left (0); over when the cart is too far out or the pole leans too much."""
    speed, angle, turning = state[1], state[2], state[3]
    cosine, sine = cos(angle), sin(angle)
    force = PUSH if action == 1 else -PUSH
    push = (force + MASS_LENGTH * (turning * turning) * sine) / TOTAL_MASS
    inertia = HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * (cosine * cosine) / TOTAL_MASS)
    angle_acceleration = (GRAVITY * sine - cosine * push) / inertia
    acceleration = push - MASS_LENGTH * angle_acceleration * cosine / TOTAL_MASS
    state[0] += CART_SECONDS * speed
    state[1] += CART_SECONDS * acceleration
    state[2] += CART_SECONDS * turning
    state[3] += CART_SECONDS * angle_acceleration
    over = state[0] < -FARTHEST or state[0] > FARTHEST or state[2] < -STEEPEST or state[2] > STEEPEST
    if options.sutton_barto_reward:
        return (-1.0 if over else 0.0), over
    return 1.0, over


def _make_cartpole(settings: Settings) -> ArrayTask:
    return ArrayTask(
        state_size=4,
        observation_size=4,
        actions=Actions.discrete(2),
        reset=cartpole_reset,
        step=cartpole_step,
        observe=observe_state,
        options=CartPole(settings.flag("sutton_barto_reward")),
        max_episode_steps=settings.task.max_episode_steps,
        name=settings.task.id,
    )


# Pendulum

MAX_TORQUE = 2.0
MAX_TURNING = 8.0
PENDULUM_SECONDS = 0.05


class Pendulum(NamedTuple):
    """Options of Pendulum."""

    g: float


def pendulum_reset(random: Any, state: Vector, options: Pendulum) -> None:
    """Start at any angle, turning slowly."""
    state[0] = random.uniform(-math.pi, math.pi)
    state[1] = random.uniform(-1.0, 1.0)


def pendulum_step(state: Vector, action: Any, random: Any, options: Pendulum) -> tuple[float, bool]:
    """Apply a torque; pay for the angle from upright, for turning and for the torque. Only the limit ends it."""
    angle, turning = state[0], state[1]
    torque = clip(np.float64(action[0]), -MAX_TORQUE, MAX_TORQUE)
    upright = (angle + math.pi) % (2 * math.pi) - math.pi
    effort = single(single(0.001) * single(torque * torque))
    cost = upright * upright + 0.1 * (turning * turning) + effort
    turning += (3 * options.g / 2.0 * sin(angle) + single(3.0 * torque)) * PENDULUM_SECONDS
    state[1] = clip(turning, -MAX_TURNING, MAX_TURNING)
    state[0] = angle + state[1] * PENDULUM_SECONDS
    return -cost, False


def pendulum_observe(state: Vector, options: Pendulum, observation: Vector) -> None:
    """Cosine and sine of the angle, and how fast it turns."""
    observation[0] = single(cos(state[0]))
    observation[1] = single(sin(state[0]))
    observation[2] = single(state[1])


def _make_pendulum(settings: Settings) -> ArrayTask:
    bound = np.array([MAX_TORQUE], np.float32)
    return ArrayTask(
        state_size=2,
        observation_size=3,
        actions=Actions.box(-bound, bound),
        reset=pendulum_reset,
        step=pendulum_step,
        observe=pendulum_observe,
        options=Pendulum(settings.number("g")),
        max_episode_steps=settings.task.max_episode_steps,
        name=settings.task.id,
    )


# Acrobot: two links of length and mass 1, with the mass in the middle and a moment of inertia of 1

ACROBOT_SECONDS = 0.2
MAX_FIRST_SPEED = 4 * math.pi
MAX_SECOND_SPEED = 9 * math.pi


def acrobot_reset(random: Any, state: Vector, options: Any) -> None:
    """Start hanging down, nearly at rest, rounded to float32 as Gymnasium's state is at first."""
    for i in range(4):
        state[i] = single(random.uniform(-0.1, 0.1))


def acrobot_step(state: Vector, action: int, random: Any, options: Any) -> tuple[float, bool]:
    """Apply the torque -1, 0 or 1 between the links by one Runge-Kutta step; over when the tip is high enough."""
    torque = np.float64(action) - 1.0
    start = (state[0], state[1], state[2], state[3])
    half = ACROBOT_SECONDS / 2.0
    k1 = acrobot_slope(start, torque)
    k2 = acrobot_slope(moved(start, half, k1), torque)
    k3 = acrobot_slope(moved(start, half, k2), torque)
    k4 = acrobot_slope(moved(start, ACROBOT_SECONDS, k3), torque)
    for i in range(4):
        state[i] = start[i] + ACROBOT_SECONDS / 6.0 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i])
    state[0] = wrapped(state[0])
    state[1] = wrapped(state[1])
    state[2] = clip(state[2], -MAX_FIRST_SPEED, MAX_FIRST_SPEED)
    state[3] = clip(state[3], -MAX_SECOND_SPEED, MAX_SECOND_SPEED)
    over = -cos(state[0]) - cos(state[1] + state[0]) > 1.0
    return (0.0 if over else -1.0), over


def acrobot_slope(state: Any, torque: float) -> tuple[float, float, float, float]:
    """Return how fast two angles and their speeds change (Sutton and Barto's equations)."""
    first, second, first_speed, second_speed = state[0], state[1], state[2], state[3]
    cosine, sine = cos(second), sin(second)
    d1 = 0.25 + (1.25 + cosine) + 1.0 + 1.0
    d2 = 0.25 + 0.5 * cosine + 1.0
    phi2 = 0.5 * GRAVITY * cos(first + second - math.pi / 2)
    swing = -0.5 * (second_speed * second_speed) * sine - second_speed * first_speed * sine
    phi1 = swing + 1.5 * GRAVITY * cos(first - math.pi / 2) + phi2
    push = torque + d2 / d1 * phi1 - 0.5 * (first_speed * first_speed) * sine - phi2
    second_slope = push / (1.25 - d2 * d2 / d1)
    return first_speed, second_speed, -(d2 * second_slope + phi1) / d1, second_slope


def moved(state: Any, seconds: float, slope: Any) -> tuple[float, float, float, float]:
    """Return the state after some seconds of a constant slope."""
    return (
        state[0] + seconds * slope[0],
        state[1] + seconds * slope[1],
        state[2] + seconds * slope[2],
        state[3] + seconds * slope[3],
    )


def wrapped(angle: float) -> float:
    """Return the angle between -pi and pi."""
    while angle > math.pi:
        angle -= 2 * math.pi
    while angle < -math.pi:
        angle += 2 * math.pi
    return angle


def acrobot_observe(state: Vector, options: Any, observation: Vector) -> None:
    """Cosine and sine of both angles, and their speeds."""
    for i in range(2):
        observation[2 * i] = single(cos(state[i]))
        observation[2 * i + 1] = single(sin(state[i]))
        observation[4 + i] = single(state[2 + i])


def _make_acrobot(settings: Settings) -> ArrayTask:
    return ArrayTask(
        state_size=4,
        observation_size=6,
        actions=Actions.discrete(3),
        reset=acrobot_reset,
        step=acrobot_step,
        observe=acrobot_observe,
        max_episode_steps=settings.task.max_episode_steps,
        name=settings.task.id,
    )


# MountainCar, with three actions and with a number

LEFT_END, RIGHT_END = -1.2, 0.6
MAX_SPEED = 0.07
SLOPE = 0.0025
DISCRETE_POWER, DISCRETE_GOAL = 0.001, 0.5
CONTINUOUS_POWER, CONTINUOUS_GOAL = 0.0015, 0.45


class MountainCar(NamedTuple):
    """Options of both mountain cars."""

    goal_velocity: float


def car_reset(random: Any, state: Vector, options: MountainCar) -> None:
    """Start at rest in the valley. A third number of the state, if any, says whether the others are float32."""
    state[:] = 0.0
    state[0] = random.uniform(-0.6, -0.4)


def car_step(state: Vector, action: int, random: Any, options: MountainCar) -> tuple[float, bool]:
    """Push to the left (0), not at all (1) or to the right (2), for -1 a step until the goal."""
    change = (action - 1) * DISCRETE_POWER + cos(3 * state[0]) * -SLOPE
    velocity = clip(state[1] + change, -MAX_SPEED, MAX_SPEED)
    position = clip(state[0] + velocity, LEFT_END, RIGHT_END)
    if position == LEFT_END and velocity < 0:
        velocity = 0.0
    state[0], state[1] = position, velocity
    return -1.0, position >= DISCRETE_GOAL and velocity >= options.goal_velocity


def continuous_car_step(state: Vector, action: Any, random: Any, options: MountainCar) -> tuple[float, bool]:
    """Push with a force between -1 and 1, for 100 at the goal, less the cost of the force.

    Gymnasium's state is float64 in the first step and float32 from then on, and numpy computes in the type that it
    finds. The sum or product of two float32 in float64, rounded to float32, is their sum or product in float32. So it
    is enough to round in the same places.
    """
    is_single = state[2] != 0.0
    chosen = np.float64(action[0])
    pull = SLOPE * cos(rounded(3 * state[0], is_single))
    if chosen < -1.0:
        change = -CONTINUOUS_POWER - pull
    elif chosen > 1.0:
        change = CONTINUOUS_POWER - pull
    else:
        change = single(single(chosen * single(CONTINUOUS_POWER)) - single(pull))
    velocity = rounded(state[1] + rounded(change, is_single), is_single)
    velocity = clip(velocity, -rounded(MAX_SPEED, is_single), rounded(MAX_SPEED, is_single))
    position = rounded(state[0] + velocity, is_single)
    position = clip(position, rounded(LEFT_END, is_single), rounded(RIGHT_END, is_single))
    if position == rounded(LEFT_END, is_single) and velocity < 0:
        velocity = 0.0
    over = position >= rounded(CONTINUOUS_GOAL, is_single) and velocity >= rounded(options.goal_velocity, is_single)
    state[0], state[1], state[2] = single(position), single(velocity), 1.0
    return (100.0 if over else 0.0) - chosen * chosen * 0.1, over


def rounded(value: float, is_single: bool) -> float:
    """Round to float32, if so asked."""
    return single(value) if is_single else value


def _make_car(settings: Settings) -> ArrayTask:
    return ArrayTask(
        state_size=2,
        observation_size=2,
        actions=Actions.discrete(3),
        reset=car_reset,
        step=car_step,
        observe=observe_state,
        options=MountainCar(settings.number("goal_velocity")),
        max_episode_steps=settings.task.max_episode_steps,
        name=settings.task.id,
    )


def _make_continuous_car(settings: Settings) -> ArrayTask:
    bound = np.ones(1, np.float32)
    return ArrayTask(
        state_size=3,
        observation_size=2,
        actions=Actions.box(-bound, bound),
        reset=car_reset,
        step=continuous_car_step,
        observe=observe_state,
        options=MountainCar(settings.number("goal_velocity")),
        max_episode_steps=settings.task.max_episode_steps,
        name=settings.task.id,
    )


TASKS: tuple[BuiltIn, ...] = (
    BuiltIn("CartPole-v1", 500, _make_cartpole, {"sutton_barto_reward": False}),
    BuiltIn("Pendulum-v1", 200, _make_pendulum, {"g": 10.0}),
    BuiltIn("Acrobot-v1", 500, _make_acrobot),
    BuiltIn("MountainCar-v0", 200, _make_car, {"goal_velocity": 0.0}),
    BuiltIn("MountainCarContinuous-v0", 999, _make_continuous_car, {"goal_velocity": 0.0}),
)
