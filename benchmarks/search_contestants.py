"""The searches of four libraries behind one small interface, and the functions that they are compared on.

`benchmarks/searches_compared.py` starts this file once in each interpreter, ours and those of the rivals, and sends it
lines of JSON. It needs numpy; each library is imported when a method of it is asked for.

Every method has one number to tune: the initial standard deviation of each parameter. ClipUp's `max_speed` follows from
it by the paper's rule (radius = 15 `max_speed`). The step size of Adam is three times as long in norm as that
`max_speed`, because Adam's steps along a noisy gradient are that much shorter than its step size. All other settings
are the defaults of each library. Losses are minimized.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Losses = Callable[[Any], Array]
SOLVED = 1e-8
POINTS = 40
NOISE = 0.3
FULL_MATRIX = 100
"""Methods with a whole covariance matrix take part up to this dimension."""


def bowl(condition: float) -> Callable[[Array], Array]:
    """Return a quadratic bowl of this condition along the axes."""
    return lambda x: np.square(x) @ np.logspace(0, math.log10(condition), x.shape[1])


def rosenbrock(x: Array) -> Array:
    """A bent valley whose floor hardly falls."""
    return 100 * np.square(x[:, 1:] - np.square(x[:, :-1])).sum(axis=1) + np.square(1 - x[:, :-1]).sum(axis=1)


def rastrigin(x: Array) -> Array:
    """A bowl with a local minimum near every point of whole numbers."""
    return np.square(x).sum(axis=1) + 10 * (1 - np.cos(2 * np.pi * x)).sum(axis=1)


FUNCTIONS: dict[str, tuple[Callable[[Array], Array], float]] = {  # with the noise, as a share of the mean loss
    "bowl 1": (bowl(1), 0.0),
    "bowl 1e3": (bowl(1e3), 0.0),
    "bowl 1e6": (bowl(1e6), 0.0),
    "Rosenbrock": (rosenbrock, 0.0),
    "Rastrigin": (rastrigin, 0.0),
    "bowl 1e3, noise": (bowl(1e3), NOISE),
    "Rosenbrock, noise": (rosenbrock, NOISE),
}


class Contestant(Protocol):
    """A search that has begun."""

    def step(self, losses: Losses) -> None:
        """Make one generation: ask, call `losses` once with all candidates, tell."""
        ...

    @property
    def center(self) -> NDArray[Any]:
        """The current solution."""
        ...


@dataclass(frozen=True)
class Start:
    """What a search begins with."""

    center: Array
    stdev: float
    population: int
    seed: int

    @property
    def max_speed(self) -> float:
        """The `max_speed` whose radius gives this standard deviation."""
        return self.stdev * math.sqrt(self.center.size) / 15

    @property
    def adam_step(self) -> float:
        """The step size of Adam: for each parameter, not for their norm."""
        return 3 * self.max_speed / math.sqrt(self.center.size)


class Ours:
    """A search of clipup, with ClipUp, with Adam, or with its own step rule."""

    def __init__(self, kind: str, optimizer: str, start: Start) -> None:
        import clipup

        settings: dict[str, Any] = {"stdev": start.stdev}
        if optimizer == "ClipUp":
            settings = {"max_speed": start.max_speed}
        elif optimizer == "Adam":
            settings["optimizer"] = clipup.Adam(start.adam_step)
        self._search: Any = getattr(clipup, kind)(
            center=start.center, population_size=start.population, seed=start.seed, **settings
        )

    def step(self, losses: Losses) -> None:
        """Make one generation."""
        from clipup.errors import ClipUpError

        try:
            self._search.tell(-losses(self._search.ask()))
        except ClipUpError as error:
            raise ArithmeticError from error  # it left the range of float32

    @property
    def center(self) -> NDArray[Any]:
        """The current solution."""
        return self._search.center


class EvoTorchPGPE:
    """EvoTorch's functional PGPE with its ClipUp."""

    def __init__(self, start: Start) -> None:
        import torch
        from evotorch.algorithms import functional  # pyright: ignore[reportMissingImports]

        torch.manual_seed(start.seed)
        self._torch, self._functional, self._population = torch, functional, start.population
        self._state = functional.pgpe(
            center_init=torch.tensor(start.center, dtype=torch.float32),
            center_learning_rate=start.max_speed / 2,
            stdev_learning_rate=0.1,
            objective_sense="min",
            optimizer="clipup",
            optimizer_config={"max_speed": start.max_speed},
            stdev_init=start.stdev,
        )

    def step(self, losses: Losses) -> None:
        """Make one generation."""
        values = self._functional.pgpe_ask(self._state, popsize=self._population)
        told = self._torch.as_tensor(losses(values.numpy()), dtype=self._torch.float32)
        self._state = self._functional.pgpe_tell(self._state, values, told)

    @property
    def center(self) -> NDArray[Any]:
        """The current solution."""
        return self._state.optimizer_state.center.numpy()


class EvoTorchClass:
    """A search of EvoTorch that calls the function itself. Its center is that of its last population."""

    def __init__(self, kind: str, start: Start) -> None:
        import torch
        from evotorch import Problem, algorithms  # pyright: ignore[reportMissingImports]
        from evotorch.tools import set_default_logger_config  # pyright: ignore[reportMissingImports]

        set_default_logger_config(logger_level=40, override=True)
        size = start.center.size
        self._losses: Losses | None = None
        self._torch = torch
        problem = Problem(
            "min", self._evaluate, solution_length=size, initial_bounds=(-1, 1), vectorized=True, seed=start.seed
        )
        more: dict[str, Any] = {"separable": size > FULL_MATRIX} if kind == "CMAES" else {}
        self._search = getattr(algorithms, kind)(
            problem,
            popsize=start.population,
            stdev_init=start.stdev,
            center_init=torch.tensor(start.center, dtype=torch.float32),
            **more,
        )

    def _evaluate(self, values: Any) -> Any:
        if self._losses is None:
            raise RuntimeError("the function is called outside of a step")
        return self._torch.as_tensor(self._losses(values.numpy()), dtype=self._torch.float32)

    def step(self, losses: Losses) -> None:
        """Make one generation."""
        self._losses = losses
        self._search.step()

    @property
    def center(self) -> NDArray[Any]:
        """The current solution."""
        return self._search.status["center"].numpy()


@functools.cache
def evosax_algorithm(kind: str, size: int, population: int) -> Any:
    """Return an algorithm of evosax for a standard deviation of 1. Its functions are compiled once for each object."""
    import jax.numpy as jnp
    import optax
    from evosax import algorithms  # pyright: ignore[reportMissingImports]
    from evosax.core.optimizer import clipup  # pyright: ignore[reportMissingImports]

    start = Start(np.zeros(size), 1.0, population, 0)
    more: dict[str, Any] = {}
    if kind == "PGPE":
        more["optimizer"] = clipup(learning_rate=start.max_speed / 2, max_velocity=start.max_speed)
    if kind == "Open_ES":
        more = {"optimizer": optax.adam(start.adam_step), "std_schedule": optax.constant_schedule(1.0)}
    return getattr(algorithms, kind)(population_size=population, solution=jnp.zeros(size), **more)


class Evosax:
    """An algorithm of evosax.

    Every setting is a multiple of the standard deviation. So it searches with a standard deviation of 1 over parameters
    that are divided by ours, and need not be compiled for each number that tuning tries.
    """

    def __init__(self, kind: str, start: Start) -> None:
        import jax
        import jax.numpy as jnp

        if kind == "CMA_ES" and start.center.size > FULL_MATRIX:
            kind = "Sep_CMA_ES"
        self._jax, self._stdev = jax, start.stdev
        self._search = evosax_algorithm(kind, start.center.size, start.population)
        self._params = self._search.default_params
        if kind != "Open_ES":
            self._params = self._params.replace(std_init=1.0)
        self._key = jax.random.key(start.seed)
        self._state = self._search.init(self._key, jnp.asarray(start.center / start.stdev, jnp.float32), self._params)

    def step(self, losses: Losses) -> None:
        """Make one generation."""
        self._key, ask, tell = self._jax.random.split(self._key, 3)
        population, state = self._search.ask(ask, self._state, self._params)
        told = np.asarray(losses(np.asarray(population) * np.float32(self._stdev)), np.float32)
        self._state, _ = self._search.tell(tell, population, told, state, self._params)
        self._jax.block_until_ready(self._state)

    @property
    def center(self) -> NDArray[Any]:
        """The current solution."""
        return np.asarray(self._state.mean) * np.float32(self._stdev)


class PyCMA:
    """Hansen's pycma; with a diagonal matrix where the whole one is too large."""

    def __init__(self, start: Start) -> None:
        import cma  # pyright: ignore[reportMissingImports]

        options = {
            "seed": start.seed + 1,
            "popsize": start.population,
            "verbose": -9,
            "CMA_diagonal": start.center.size > FULL_MATRIX,
        }
        self._search = cma.CMAEvolutionStrategy(start.center, start.stdev, options)

    def step(self, losses: Losses) -> None:
        """Make one generation."""
        population = self._search.ask()
        self._search.tell(population, losses(np.array(population)))

    @property
    def center(self) -> NDArray[Any]:
        """The current solution."""
        return self._search.mean


@dataclass(frozen=True)
class Method:
    """Who takes part, and which package it needs."""

    package: str
    begin: Callable[[Start], Contestant]
    largest: float = math.inf


def _ours(kind: str, optimizer: str = "", largest: float = math.inf) -> Method:
    return Method("clipup", functools.partial(Ours, kind, optimizer), largest)


METHODS: dict[str, Method] = {
    "PGPE, ClipUp": _ours("PGPE", "ClipUp"),
    "PGPE, Adam": _ours("PGPE", "Adam"),
    "OpenAI-ES, ClipUp": _ours("OpenAIES", "ClipUp"),
    "OpenAI-ES, Adam": _ours("OpenAIES", "Adam"),
    "ARS, ClipUp": _ours("ARS", "ClipUp"),
    "ARS, Adam": _ours("ARS", "Adam"),
    "SNES, ClipUp": _ours("SNES", "ClipUp"),
    "SNES, Adam": _ours("SNES", "Adam"),
    "SNES": _ours("SNES"),
    "xNES": _ours("XNES", largest=10),  # at 100 parameters a generation takes 18 ms
    "CMA-ES": _ours("CMAES", largest=FULL_MATRIX),
    "separable CMA-ES": _ours("SepCMAES"),
    "cross-entropy": _ours("CrossEntropy"),
    "EvoTorch: PGPE, ClipUp": Method("evotorch", EvoTorchPGPE),
    "EvoTorch: SNES": Method("evotorch", functools.partial(EvoTorchClass, "SNES")),
    "EvoTorch: CMA-ES": Method("evotorch", functools.partial(EvoTorchClass, "CMAES")),
    "evosax: PGPE, ClipUp": Method("evosax", functools.partial(Evosax, "PGPE")),
    "evosax: OpenAI-ES, Adam": Method("evosax", functools.partial(Evosax, "Open_ES")),
    "evosax: SNES": Method("evosax", functools.partial(Evosax, "SNES")),
    "evosax: CMA-ES": Method("evosax", functools.partial(Evosax, "CMA_ES")),
    "pycma": Method("cma", PyCMA),
}


def quality(method: str, function: str, dimension: int, evaluations: int, population: int, stdev: float,
            seed: int) -> list[float]:  # fmt: skip
    """Return the loss of the center at `POINTS` moments, without noise; infinite where the search broke down.

    A search that has solved the function ends: its loss stays what it was.
    """
    clean, noise = FUNCTIONS[function]
    dice = np.random.default_rng(seed)
    start = Start(dice.uniform(1, 2, dimension), stdev, population, seed)
    asked, curve = 0, list[float]()
    parts = population if dimension > 1000 else 1  # row by row, what is computed stays in the processor's cache

    def losses(candidates: NDArray[Any]) -> Array:
        nonlocal asked
        asked += len(candidates)
        found = np.concatenate([clean(rows.astype(np.float64)) for rows in np.split(candidates, parts)])
        return found + noise * np.abs(found).mean() * dice.standard_normal(len(found))

    try:
        with np.errstate(all="ignore"):
            search = METHODS[method].begin(start)
            while len(curve) < POINTS:
                search.step(losses)
                while len(curve) < POINTS and asked * POINTS >= evaluations * (len(curve) + 1):
                    curve.append(float(clean(search.center[np.newaxis].astype(np.float64))[0]))
                    if not math.isfinite(curve[-1]):
                        raise ArithmeticError
                if curve and curve[-1] <= SOLVED:
                    break
    except (ArithmeticError, ValueError, RuntimeError):  # it left the range of its numbers
        curve = [*(loss for loss in curve if math.isfinite(loss)), *[math.inf] * POINTS][:POINTS]
    return [*curve, *[curve[-1]] * (POINTS - len(curve))]


class Clock:
    """Searches that wait for their turn to be timed."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], Contestant] = {}

    def seconds(self, method: str, dimension: int, population: int) -> float:
        """Return the seconds of one ask and tell; the losses are ready when it begins."""
        key = (method, dimension)
        if key not in self._waiting:
            self._waiting = {other: search for other, search in self._waiting.items() if other[1] == dimension}
            self._waiting[key] = METHODS[method].begin(Start(np.ones(dimension), 0.1, population, 1))
        ready = np.arange(float(population))
        began = time.perf_counter()
        self._waiting[key].step(lambda candidates: ready)
        return time.perf_counter() - began


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # a source tree on the path
        return str(importlib.import_module(package).__version__)


def serve() -> None:
    """Say which packages there are; then answer each line of JSON with one."""
    packages = sorted({method.package for method in METHODS.values()} | {"numpy", "torch", "jax"})
    print(json.dumps({name: _version(name) for name in packages if find_spec(name) is not None}), flush=True)
    clock = Clock()
    for line in sys.stdin:
        request = json.loads(line)
        task = request.pop("task")
        print(json.dumps(clock.seconds(**request) if task == "time" else quality(**request)), flush=True)


if __name__ == "__main__":
    serve()
