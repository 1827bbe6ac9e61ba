"""Rules about the signal that a search follows: can candidates be ranked, and does their gradient have a direction?"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from clipup.diagnosis.finding import Finding, Severity, percent, two_digits
from clipup.diagnosis.trace import ENOUGH, Trace, mean_of, significance, thirds

# Fitnesses that count steps or goals tie often and still rank well, so ties alone are no fault. They are one if nearly
# all candidates tie and the others do not give the gradient a direction.
NEARLY_ALL = 0.9
# A mean agreement above this many standard errors is not noise. Pure noise stays below it in all thirds of 98 in 100
# runs. A run that learned something and then came to rest, where only noise is left, exceeds it in its first third.
STANDS_OUT = 2.5
# If two halves of a population agree by c, the cosine between the whole gradient and the true one is sqrt(2c / (1 +
# c)): 0.63 at 0.25. A mean that may be higher than that shows too few generations, not noise.
MOSTLY_NOISE = 0.25
# Candidates score less than the center that they were made from, on the same physics. A center that scores below this
# share of what they return on other physics has learned something that only works there. On the Humanoid, runs on the
# task's own physics never went below 1, and one that was misled stayed between 0.5 and 0.9 for 18 evaluations.
CARRIED_OVER = 0.85
# The newest evaluations, as a run can go astray late.
NEWEST = 10
# What the best candidate of a generation leads by, over what the run gained, where the search has arrived.
LITTLE_LEFT = 0.2


def fitness_nonfinite(trace: Trace) -> Iterator[Finding]:
    """The environment returned rewards that are not finite numbers."""
    bad, population = trace.column("nonfinite"), trace.column("population")
    if not np.nansum(bad) > 0:
        return
    share = float(np.nansum(bad) / max(np.nansum(population), 1.0))
    generations = mean_of((bad > 0).astype(np.float64))
    # A few failures, ranked last, hardly matter. From one in a hundred on, they shape the gradient.
    severity: Severity = "note" if share < 0.01 else "warning" if share < 0.5 else "problem"
    yield Finding(
        "fitness-nonfinite",
        severity,
        f"{int(np.nansum(bad))} fitnesses ({percent(share)}) were nan or infinite, in {percent(generations)} of the "
        "generations. They were ranked last.",
        "Find out why the environment returns such rewards. Often the simulation becomes unstable: limit the actions, "
        "use a shorter time step, or end the episode there.",
        {"nonfinite": float(np.nansum(bad)), "share": share, "generations_share": generations},
    )


def fitness_tied(trace: Trace) -> Iterator[Finding]:
    """Candidates score the same, so ranking cannot separate them."""
    share, agreement = trace.column("tied"), trace.column("gradient_agreement")
    stuck = share >= NEARLY_ALL
    if len(trace) < 5 or stuck.mean() < 0.5 or significance(agreement) >= STANDS_OUT:
        return
    if thirds(stuck.astype(np.float64))[-1].mean() < 0.5:
        return  # the search found a way out
    fitness = trace.column("fitness_mean")
    finite = np.isfinite(fitness)
    before, after = fitness[finite & ~stuck], fitness[finite & stuck]
    if (before.size >= 3 and after.size and np.median(after) > before.max()) or _all_at_the_best_score(trace):
        return  # all candidates reached the highest fitness: solved, not stuck
    tied = float(np.median(share[stuck]))
    everything = tied >= 0.999 and not np.any(trace.column("gradient_norm")[stuck] > 0)
    change: dict[str, float] = {}
    if trace.is_scale_free:
        change = _four_times_the_population(trace)
    elif trace.max_speed is not None:
        change = {"max_speed": two_digits(3 * trace.max_speed)}
    typical = f" (typically {np.median(after):.4g})" if after.size else ""
    wider = ""
    if "max_speed" in change:
        wider = f"Try max_speed = {change['max_speed']:g}, which makes the search 3 times as wide. "
    elif change:
        wider = f"Try population = {change['population']}: among more candidates, some may differ. "
    yield Finding(
        "fitness-tied",
        "problem" if everything else "warning",
        f"In {percent(float(stuck.mean()))} of the generations, {percent(tied)} of the candidates had the same score "
        f"as another{typical}, so ranking {'cannot' if everything else 'can hardly'} separate them.",
        f"{wider}Or change the task: a reward that grows on the way to the goal, or longer episodes, tells candidates "
        "apart.",
        {"tied_share": tied, "generations_share": float(stuck.mean())},
        change,
    )


def gradient_noise(trace: Trace) -> Iterator[Finding]:
    """The two halves of each population do not agree on the direction of the gradient."""
    agreement = trace.column("gradient_agreement")
    moved = trace.column("gradient_norm") > 0  # where all fitnesses tie there is no gradient
    agreement = agreement[moved & np.isfinite(agreement)]
    if agreement.size < 2 * ENOUGH:
        return
    parts = thirds(agreement)
    if any(significance(part) >= STANDS_OUT for part in parts[1:]):
        return
    always = significance(parts[0]) < STANDS_OUT and not _learned(trace)
    if not always and (_still_improves(trace) or _arrived(trace) or not _candidates_score_like_the_center(trace)):
        return
    if not always:
        agreement = np.concatenate(parts[1:])
    mean = mean_of(agreement)
    error = float(agreement.std(ddof=1)) / math.sqrt(agreement.size)
    if mean + 2 * error >= MOSTLY_NOISE:
        return
    change = _four_times_the_population(trace)
    larger = " and ".join(f"{name} = {value}" for name, value in change.items()) or "4 times the population"
    advice = f"{larger}, because 4 times as many candidates halve the noise. Several episodes per candidate help too."
    if trace.max_speed is None or trace.is_scale_free:
        advice = f"Try {advice}"
    else:
        change = {"max_speed": two_digits(3 * trace.max_speed), **change}
        advice = (
            f"First try max_speed = {change['max_speed']:g}, 3 times as much. The radius grows with it, and candidates "
            f"that differ more stand out from the noise. Then try {advice}"
        )
    alike = "" if always else " Candidates score no worse than the center they were made from."
    yield Finding(
        "gradient-noise",
        "problem",
        f"The gradient is mostly noise{'' if always else ' after a first phase'}: two halves of each population agree "
        f"on its direction by {mean:.3f} ± {error:.3f}, where 0 is chance and 1 is full agreement.{alike}",
        advice,
        {"gradient_agreement": mean, "standard_error": error, "generations": float(agreement.size)},
        change,
    )


def physics_differ(trace: Trace) -> Iterator[Finding]:
    """What is learned on the physics of training does not carry over to the task's own, on which the center is scored.

    Compared are returns of whole episodes: the fitness of a candidate with the offset of its steps taken back. With a
    reward_cap, candidates return at least that.
    """
    config = trace.config
    if config is None or config.physics is None or config.max_episode_steps is not None:
        return
    steps = trace.column("interactions") / (trace.column("population") * config.episodes)
    trained, scores = trace.column("fitness_mean") - config.reward_offset * steps, trace.column("score")
    both = np.isfinite(trained) & np.isfinite(scores)
    trained, scores = trained[both][-NEWEST:], scores[both][-NEWEST:]
    if scores.size < 5 or significance(trained - scores) < STANDS_OUT:
        return
    candidates, center = mean_of(trained), mean_of(scores)
    if candidates <= 0 or center > CARRIED_OVER * candidates:
        return
    yield Finding(
        "physics-differ",
        "problem",
        f"Candidates return {candidates:.4g} on the physics of training, but the center scores {center:.4g} on the "
        "task's own: what it learned does not carry over.",
        "Train on physics nearer to the task's own: its own integrator, and a solver with enough iterations "
        "(solver=Newton), or physics = none. You can start from this run: --init RUN.",
        {"training_return": candidates, "score": center},
    )


def _all_at_the_best_score(trace: Trace) -> bool:
    """Whether candidates tie at the best fitness of the run, and scored worse at other times: the task is solved."""
    mean, best = trace.column("fitness_mean"), trace.column("fitness_best")
    known = np.isfinite(mean) & np.isfinite(best)
    alike = known & np.isclose(mean, best)
    others = known & ~alike
    if not alike.any() or not others.any():
        return False
    level = float(np.median(mean[alike]))
    return bool(np.isclose(best[known].max(), level) and np.median(mean[others]) < level)


def _four_times_the_population(trace: Trace) -> dict[str, float]:
    """The settings for it. Empty if neither the configuration nor the records give the population."""
    config = trace.config
    if config is None:
        drawn = mean_of(trace.column("population"))
        return {"population": 4 * round(drawn)} if math.isfinite(drawn) else {}
    change: dict[str, float] = {"population": 4 * config.population}
    if config.population_max is not None:
        change["population_max"] = 4 * config.population_max
    return change


def _learned(trace: Trace) -> bool:
    """Whether the run left its start behind: noise alone does not do that.

    A search with few parameters may learn within a few generations, too few for their gradients to show. The average
    candidate must then have come at least halfway from the average to the best of the first generation.
    """
    return _gain(trace) > 0.5 * float(_spread(trace)[0])


def _arrived(trace: Trace) -> bool:
    """Whether candidates differ in the last third by far less than the run gained: there is little left to follow."""
    late = mean_of(thirds(_spread(trace))[-1])
    return late < LITTLE_LEFT * _gain(trace)


def _gain(trace: Trace) -> float:
    """How far the mean fitness of the last third lies above that of the first generation."""
    fitness = trace.column("fitness_mean")
    return mean_of(thirds(fitness)[-1]) - float(fitness[0])


def _spread(trace: Trace) -> NDArray[np.float64]:
    """How far the best candidate of each generation lies above the mean."""
    return trace.column("fitness_best") - trace.column("fitness_mean")


def _still_improves(trace: Trace) -> bool:
    """Whether the score rose after the first third by more than chance: noise alone does not improve a run."""
    scores = trace.column("score")[len(trace) // 3 :]
    scores = scores[np.isfinite(scores)]
    if scores.size < 4:
        return False
    early, late = np.array_split(scores, 2)
    error = trace.score_noise() * math.sqrt(1 / early.size + 1 / late.size)
    return mean_of(late) - mean_of(early) > STANDS_OUT * error


def _candidates_score_like_the_center(trace: Trace) -> bool:
    """Whether candidates and center score alike, within noise, after the first third.

    Near an optimum, candidates score worse than their center, by the curvature times the radius squared. A gradient of
    noise then means that the search has arrived. Where they score alike, the radius is too small for the task.
    """
    config = trace.config
    if config is None or config.reward_offset != 0 or config.reward_cap is not None or config.fitness_scale != 1:
        return False  # training and evaluation measure different things
    if config.max_episode_steps is not None or config.physics is not None:
        return False  # training and evaluation measure different things
    start = len(trace) // 3
    if np.median(trace.column("tied")[start:]) >= NEARLY_ALL:
        return False  # all alike at the best score: the search has arrived
    gap = (trace.column("score") - trace.column("fitness_mean"))[start:]
    gap = gap[np.isfinite(gap)]
    return gap.size >= 5 and abs(significance(gap)) < STANDS_OUT
