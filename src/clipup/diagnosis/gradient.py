"""Is there a direction in the gradient, or only noise?"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from clipup.diagnosis.finding import Finding, two_digits
from clipup.diagnosis.fitness import NEARLY_ALL
from clipup.diagnosis.trace import ENOUGH, Trace, mean_of, significance, thirds

# In no third of the run may the agreement stand out from zero: pure noise passes this in 98 of 100 runs, and a run that
# learned anything and then came to rest, where noise is all that is left, does not.
STANDS_OUT = 2.5
# With an agreement c of two halves, the whole gradient stands at cosine sqrt(2c / (1 + c)) to the true one: 0.63 at
# 0.25. A mean that may be higher than that is no evidence of noise, only of too few generations.
MOSTLY_NOISE = 0.25


def noise(trace: Trace) -> Iterator[Finding]:
    """The two halves of each population do not agree on where to go."""
    agreement = trace.column("gradient_agreement")
    moved = trace.column("gradient_norm") > 0  # where all fitnesses tie there is no gradient to speak of
    agreement = agreement[moved & np.isfinite(agreement)]
    if agreement.size < 2 * ENOUGH:
        return
    parts = thirds(agreement)
    if any(significance(part) >= STANDS_OUT for part in parts[1:]):
        return
    always = significance(parts[0]) < STANDS_OUT
    if not always and (_still_gains(trace) or not _candidates_are_like_the_center(trace)):
        return
    if not always:
        agreement = np.concatenate(parts[1:])
    mean = mean_of(agreement)
    error = float(agreement.std(ddof=1)) / math.sqrt(agreement.size)
    if mean + 2 * error >= MOSTLY_NOISE:
        return
    change = _four_times_the_population(trace)
    more = " and ".join(f"{name} = {value}" for name, value in change.items()) or "4 times the population"
    words = f"{more} (4 times as many candidates halve the noise)"
    if trace.max_speed is not None:
        change = {"max_speed": two_digits(3 * trace.max_speed), **change}
        words = (
            f"Try max_speed = {two_digits(3 * trace.max_speed):g} first (3 times as much: the radius grows with it, "
            f"and candidates that differ more stand out from the noise), then {words}"
        )
    else:
        words = f"Try {words}"
    yield Finding(
        "gradient-noise",
        "problem",
        f"The gradient is mostly noise{'' if always else ' after a first phase'}: "
        f"two halves of each population agree by {mean:.3f} ± {error:.3f} on its "
        "direction, where 1 is full agreement and 0 is chance"
        f"{'' if always else ', and the candidates score no worse than the center that they were made from'}.",
        f"{words}, or several episodes per candidate.",
        {"gradient_agreement": mean, "standard_error": error, "generations": float(agreement.size)},
        change,
    )


def _four_times_the_population(trace: Trace) -> dict[str, float]:
    """As settings, its bound along with it; nothing where neither configuration nor records say how large it was."""
    config = trace.config
    if config is None:
        drawn = mean_of(trace.column("population"))
        return {"population": 4 * round(drawn)} if math.isfinite(drawn) else {}
    change: dict[str, float] = {"population": 4 * config.population}
    if config.population_max is not None:
        change["population_max"] = 4 * config.population_max
    return change


def _still_gains(trace: Trace) -> bool:
    """Whether the score rose after the first third by more than chance: no run climbs on noise alone."""
    scores = trace.column("score")[len(trace) // 3 :]
    scores = scores[np.isfinite(scores)]
    if scores.size < 4:
        return False
    early, late = np.array_split(scores, 2)
    error = trace.score_noise() * math.sqrt(1 / early.size + 1 / late.size)
    return mean_of(late) - mean_of(early) > STANDS_OUT * error


def _candidates_are_like_the_center(trace: Trace) -> bool:
    """Whether, after the first third, leaving the center cost nothing that could be told from noise.

    About an optimum, candidates score worse than their center, by the curvature times the radius squared: a gradient
    of noise is then the sign of having arrived. Where they score alike, the radius is too small to feel the task.
    """
    config = trace.config
    if config is None or config.reward_offset != 0 or config.fitness_scale != 1 or config.max_episode_steps is not None:
        return False  # training and evaluation measure different things
    start = len(trace) // 3
    if np.median(trace.column("tied")[start:]) >= NEARLY_ALL:
        return False  # all alike at a ceiling, which is another kind of arrival
    gap = (trace.column("score") - trace.column("fitness_mean"))[start:]
    gap = gap[np.isfinite(gap)]
    return gap.size >= 5 and abs(significance(gap)) < STANDS_OUT
