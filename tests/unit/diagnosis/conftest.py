"""Real searches on cheap functions, recorded as a training run would record them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import clipup
from clipup.runs.config import RunConfig
from clipup.runs.records import Record

Function = Callable[[np.ndarray], np.ndarray]


def search_run(
    function: Function,
    *,
    dimension: int = 16,
    generations: int = 100,
    population: int = 100,
    max_speed: float = 0.1,
    noise: float = 0.0,
    seed: int = 0,
    episode_length: int = 10,
    config_changes: dict[str, object] | None = None,
    **settings: object,
) -> tuple[list[Record], RunConfig]:
    """Run PGPE on `function`, with fitness noise, and evaluate the center every 5 generations as the trainer does."""
    search = clipup.PGPE(
        dimension=dimension,
        population_size=population,
        max_speed=max_speed,
        seed=seed,
        **settings,  # type: ignore[arg-type]
    )
    generator = np.random.default_rng(seed + 1)
    records: list[Record] = []
    total, best = 0, -np.inf
    while search.generation < generations:
        fitnesses, ended, interactions = np.empty(0), False, 0
        while not ended:
            candidates = search.ask()
            told = function(candidates.astype(np.float64)) + noise * generator.standard_normal(len(candidates))
            spent = episode_length * len(candidates)
            ended = search.tell(told, spent) if "interactions" in settings else search.tell(told)
            fitnesses, interactions = np.append(fitnesses, told), interactions + spent
        total += interactions
        finite = fitnesses[np.isfinite(fitnesses)]
        best = max(best, float(finite.max(initial=-np.inf)))
        evaluated = search.generation % 5 == 0
        episodes = function(np.repeat(search.center[None].astype(np.float64), 16, axis=0))
        episodes = episodes + noise * generator.standard_normal(16)
        wanted = settings.get("interactions")
        records.append(
            Record(
                generation=search.generation,
                population=search.population_size,
                interactions=interactions,
                total_interactions=total,
                fitness_mean=float(finite.mean()) if finite.size else None,
                fitness_best=float(finite.max()) if finite.size else None,
                best=best if np.isfinite(best) else None,
                score=float(episodes.mean()) if evaluated else None,
                score_standard_error=float(episodes.std(ddof=1) / 4) if evaluated else None,
                speed=search.speed,
                max_speed=search.max_speed,
                clipped=search.clipped,
                stdev_norm=float(np.linalg.norm(search.stdev)),
                gradient_norm=search.gradient_norm,
                gradient_agreement=search.gradient_agreement,
                nonfinite=search.nonfinite,
                tied=search.tied,
                population_bound=isinstance(wanted, int) and interactions < wanted,
            )
        )
    changes: dict[str, object] = {"max_speed": max_speed, "population": population, "generations": generations}
    changes |= {name: value for name, value in settings.items() if name in RunConfig.__dataclass_fields__}
    return records, RunConfig(env="test", **(changes | (config_changes or {})))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def run() -> Callable[..., tuple[list[Record], RunConfig]]:
    return search_run
