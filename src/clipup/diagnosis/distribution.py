"""Rules about the search distribution: its width, and how many candidates it may draw."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from clipup.diagnosis.finding import Finding, percent, two_digits
from clipup.diagnosis.trace import ENOUGH, Trace, mean_of, thirds

# Shrinking is what a search does when it has arrived. How fast is bounded, with ranks: their covariance with z² is at
# most std(rank) * std(z²) = 0.289 * 1.414, which at the default learning rate of 0.1 shrinks a coordinate by at most
# 4.1 % a generation (in one dimension; less in more). A fall to a hundredth that went faster is a collapse.
COLLAPSED = 0.01
FASTEST_HEALTHY_RATE = 0.041
# A center that has arrived keeps moving by a good part of max_speed, in searches of any length; candidates a hundred
# times nearer to it than that have nothing to tell.
COLLAPSED_STEPS = 0.01
# Nothing in a search needs a tenfold radius: a tenfold max_speed would have been the way there.
EXPLODED = 10.0


def stdev_collapsed(trace: Trace) -> Iterator[Finding]:
    """The candidates hardly differ from the center any more."""
    stdev = trace.column("stdev_norm")
    if len(trace) < ENOUGH:
        return
    ratio = float(stdev[-1] / stdev[0])
    fallen = np.flatnonzero(stdev < COLLAPSED * stdev[0])
    too_fast = fallen.size > 0 and -math.log(COLLAPSED) / max(int(fallen[0]), 1) > FASTEST_HEALTHY_RATE
    too_narrow = trace.max_speed is not None and stdev[-1] < COLLAPSED_STEPS * trace.max_speed
    if not (ratio < COLLAPSED and (too_fast or too_narrow)):
        return
    yield Finding(
        "stdev-collapsed",
        "problem",
        f"The standard deviations collapsed: their norm fell from {stdev[0]:.3g} to {stdev[-1]:.3g}, "
        f"{percent(ratio)} of where it began, so the candidates hardly differ any more.",
        _slower(trace, ratio),
        {"stdev_norm_first": float(stdev[0]), "stdev_norm_last": float(stdev[-1]), "ratio": ratio},
        _slower_change(trace, ratio),
    )


def stdev_exploded(trace: Trace) -> Iterator[Finding]:
    """The candidates are spread so far that the center says little about them."""
    stdev = trace.column("stdev_norm")
    if len(trace) < ENOUGH or not stdev[-1] > EXPLODED * stdev[0]:
        return
    ratio = float(stdev[-1] / stdev[0])
    yield Finding(
        "stdev-exploded",
        "problem",
        f"The standard deviations exploded: their norm grew from {stdev[0]:.3g} to {stdev[-1]:.3g}, "
        f"{ratio:.3g} times as much; the candidates have lost touch with the center.",
        _slower(trace, ratio),
        {"stdev_norm_first": float(stdev[0]), "stdev_norm_last": float(stdev[-1]), "ratio": ratio},
        _slower_change(trace, ratio),
    )


def _slower_change(trace: Trace, ratio: float) -> dict[str, float]:
    """A learning rate at which the same pull would change the stdev by a factor of 2 in as many generations."""
    rate = 0.1 if trace.config is None else trace.config.stdev_learning_rate
    return {"stdev_learning_rate": two_digits(rate * math.log(2) / abs(math.log(max(ratio, 1e-300))))}


def _slower(trace: Trace, ratio: float) -> str:
    rate = _slower_change(trace, ratio)["stdev_learning_rate"]
    advice = f"Set stdev_learning_rate = {rate:g}, at which the same pull would change them by a factor of 2."
    if trace.config is not None and trace.config.fitness_shaping == "raw":
        advice = (
            "Raw fitness pulls the standard deviations by its own scale: use fitness_shaping = centered-rank. "
            f"Or: {advice[0].lower()}{advice[1:]}"
        )
    return advice


def population_bound(trace: Trace) -> Iterator[Finding]:
    """Episodes are so short that the population grows to its bound and still lacks interactions."""
    # Short episodes at the beginning, and the bound with them, are in the nature of tasks where one falls early.
    stopped = thirds(trace.column("population_bound"))[-1]
    share = mean_of(stopped)
    if len(trace) < ENOUGH or not share > 0.5:
        return
    # The other generations, which had their interactions sooner, say nothing about the bound.
    drawn = thirds(trace.column("population"))[-1][stopped > 0]
    population = float(drawn.max())
    interactions = mean_of(thirds(trace.column("interactions"))[-1][stopped > 0])
    length = interactions / mean_of(drawn)
    if not length > 0:
        return
    episodes = 1 if trace.config is None else trace.config.episodes
    evidence = {"bound_share": share, "population": population, "steps_per_candidate": length}
    change = {"interactions": two_digits(0.9 * interactions)}
    advice = f"Ask for fewer: interactions = {change['interactions']:g}, which this population reaches."
    wanted = trace.config.interactions if trace.config is not None else None
    if wanted is not None:
        evidence["interactions_wanted"] = float(wanted)
        needed = 2 * math.ceil(1.1 * wanted / length / 2)
        change = {"population_max": float(needed)}
        advice = f"Set population_max = {needed}, or ask for fewer: interactions = {two_digits(0.9 * interactions):g}."
    yield Finding(
        "population-bound",
        "warning",
        f"Lately {percent(share)} of the generations stopped at the population's bound of {population:.0f} candidates "
        f"with {interactions:.3g} interactions, fewer than asked: episodes last only {length / episodes:.3g} steps.",
        advice,
        evidence,
        change,
    )
