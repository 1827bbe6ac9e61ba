"""Rules about how the search moves: its speed, its standard deviations, and the size of its population."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from clipup.diagnosis.finding import Finding, percent, two_digits
from clipup.diagnosis.scale import WHY
from clipup.diagnosis.trace import ENOUGH, Column, Trace, default, mean_of, significance, thirds

# A climb counts as undiminished if the last third rose at this share of the average rate or more. A quadratic hill
# climbed at constant speed falls below it after about two thirds of the way.
UNDIMINISHED = 0.6
# A curved landscape changes the standard deviations. Along a straight slope they stay within this share of their start.
STRAIGHT = 0.1
# A search that has arrived shrinks its standard deviations, but not arbitrarily fast. With ranks, their covariance with
# z² is at most std(rank) * std(z²) = 0.289 * 1.414. At the default learning rate of 0.1, a coordinate shrinks by at
# most 4.1 % per generation (in one dimension, less in more). A faster fall to a hundredth is a collapse.
COLLAPSED = 0.01
FASTEST_HEALTHY_RATE = 0.041
# A center that has arrived keeps moving by a good part of max_speed, in searches of any length. Candidates that are a
# hundred times nearer to it than that tell nothing.
COLLAPSED_STEPS = 0.01
# No search needs a tenfold radius: a tenfold max_speed would have led there sooner.
EXPLODED = 10.0


def never_clipped(trace: Trace) -> Iterator[Finding]:
    """The step size is so small that steps are never clipped, so `max_speed` has no effect."""
    speed_cap, step_size = trace.max_speed, trace.step_size
    if speed_cap is None or step_size is None or len(trace) < ENOUGH:
        return
    # Gradients of random direction bring the velocity to α / sqrt(1 - m²). If that is above max_speed and the speed
    # stays below, the gradients turn back, which is another fault.
    drift = step_size / np.sqrt(1 - trace.momentum**2) if trace.momentum < 1 else np.inf
    settled = trace.column("speed")[10:]
    clipped = mean_of(trace.column("clipped")[10:])
    advised = default("step_ratio")
    # A run that already has the advised step size lacks something else, such as momentum.
    if drift >= speed_cap or step_size >= advised * speed_cap or not clipped < 0.02 or not np.median(settled) > 0:
        return
    typical = float(np.median(settled))
    reached = "never reached" if clipped == 0 else f"reached in only {percent(clipped)} of the steps"
    yield Finding(
        "never-clipped",
        "warning",
        f"The speed settled at {typical:.3g}, and max_speed = {speed_cap:g} was {reached}. The step size of "
        f"{step_size:g} is too small for max_speed to have an effect.",
        f"To move faster, set step_size = {two_digits(advised * speed_cap):g} ({advised:g} times max_speed). To keep "
        f"this pace but steady it by clipping, set max_speed = {two_digits(typical):g} and step_size = "
        f"{two_digits(advised * typical):g}.",
        {"clipped_share": clipped, "speed": typical, "max_speed": speed_cap, "step_size": step_size},
        {"step_size": two_digits(advised * speed_cap)},
    )


def max_speed_too_small(trace: Trace) -> Iterator[Finding]:
    """Every step is as long as allowed, all point the same way, and the score keeps rising: the scale is too small."""
    speed_cap = trace.max_speed
    if speed_cap is None or len(trace) < 2 * ENOUGH or not trace.is_complete:
        return
    clipped = mean_of(trace.column("clipped")[10:])
    agreement = thirds(trace.column("gradient_agreement"))[-1]
    stdev = trace.column("stdev_norm")
    bend = float(np.abs(stdev / stdev[0] - 1).max())
    scores = trace.scores()
    climb, late = _slope(scores), _slope(thirds(scores)[-1])
    noise = trace.score_noise()
    rose = climb * (scores.size - 1) > 4 * noise and significance(np.diff(scores)) > 2
    straight = clipped > 0.9 and significance(agreement) > 3 and bend < STRAIGHT
    if not (straight and rose and late >= UNDIMINISHED * climb):
        return
    change, advice = _faster(trace, speed_cap, 3.0, "3 times as much")
    name = next(iter(change))
    yield Finding(
        "max-speed-too-small",
        "warning",
        f"The run is too slow for the task. {percent(clipped)} of the steps were as long as max_speed = {speed_cap:g} "
        f"allows, the gradients agreed to the end, the standard deviations stayed within {percent(bend)} of their "
        f"start, and at the end the score still rose at {late / climb:.2g} times its average rate.",
        f"{advice} If a short trial with it is worse, keep {name} and give this run more generations.",
        {
            "clipped_share": clipped,
            "gradient_agreement": mean_of(agreement),
            "stdev_change": bend,
            "score_rate": climb,
            "late_score_rate": late,
        },
        change,
    )


def max_speed_too_large(trace: Trace) -> Iterator[Finding]:
    """The gradient is clear, but each step overshoots and the center jumps about."""
    speed_cap, step_size = trace.max_speed, trace.step_size
    if speed_cap is None or len(trace) < 2 * ENOUGH or (step_size is not None and step_size < 0.4 * speed_cap):
        return
    scores = trace.scores()
    # With little momentum hardly any step is clipped, wherever the gradient points.
    if scores.size < 4 or trace.momentum < 0.8:
        return
    first, late = float(scores[0]), scores[scores.size // 2 :]
    low, middle, high = np.percentile(late, [25, 50, 75])
    jumps, gain = float(high - low), float(middle - first)
    # With α = v_max / 2 and m = 0.9, a step that is not clipped means that the gradient was at more than 94° to the
    # velocity: it pointed back. That is rare along a slope, and usual around an optimum that steps jump over.
    early = slice(2, max(ENOUGH, len(trace) // 5))
    turned_back = 1 - mean_of(trace.column("clipped")[early])
    agreement = trace.column("gradient_agreement")
    clear = significance(agreement) > 3 and mean_of(agreement) > 0.1
    # A search that arrives soon also turns back early, but by then it has gained far more than it jumps.
    overshoots = clear and turned_back > 0.6 and gain < 10 * jumps and jumps > 3 * trace.score_noise()
    peak = float(scores.max())
    lost = peak - float(np.median(thirds(scores)[-1]))
    forgot = gain <= 0 and lost > 0 and lost > 6 * trace.score_noise() and peak > first and late.size >= 4
    if not overshoots and not (forgot and clear):
        return
    change, advice = _faster(trace, speed_cap, 0.25, "a quarter")
    trouble = "made no lasting gain" if gain <= jumps else f"jumps by {jumps:.3g} around {middle:.4g}"
    yield Finding(
        "max-speed-too-large",
        "warning",
        f"The gradient is clear (its halves agree by {mean_of(agreement):.2f}), but the score {trouble}: {first:.4g} "
        f"at first, {middle:.4g} in the second half, {peak:.4g} at best. Steps of up to max_speed = {speed_cap:g} jump "
        "over their target.",
        advice,
        {
            "turned_back_share": turned_back,
            "gradient_agreement": mean_of(agreement),
            "score_first": first,
            "score_late": float(middle),
            "score_best": peak,
            "score_spread": jumps,
        },
        change,
    )


def stdev_collapsed(trace: Trace) -> Iterator[Finding]:
    """The candidates hardly differ from the center any more."""
    stdev = trace.column("stdev_norm")
    if len(trace) < ENOUGH:
        return
    ratio = float(stdev[-1] / stdev[0])
    fallen = np.flatnonzero(stdev < COLLAPSED * stdev[0])
    too_fast = fallen.size > 0 and -math.log(COLLAPSED) / max(int(fallen[0]), 1) > FASTEST_HEALTHY_RATE
    too_narrow = trace.max_speed is not None and stdev[-1] < COLLAPSED_STEPS * trace.max_speed
    if ratio < COLLAPSED and (too_fast or too_narrow):
        yield _stdev_finding(
            trace,
            "stdev-collapsed",
            f"The standard deviations collapsed: their norm fell from {stdev[0]:.3g} to {stdev[-1]:.3g} "
            f"({percent(ratio)} of its start). Candidates hardly differ any more.",
        )


def stdev_exploded(trace: Trace) -> Iterator[Finding]:
    """The candidates are spread so far that the center says little about them."""
    stdev = trace.column("stdev_norm")
    if len(trace) >= ENOUGH and stdev[-1] > EXPLODED * stdev[0]:
        yield _stdev_finding(
            trace,
            "stdev-exploded",
            f"The standard deviations exploded: their norm grew from {stdev[0]:.3g} to {stdev[-1]:.3g} "
            f"({stdev[-1] / stdev[0]:.3g} times its start). The center says little about candidates so far away.",
        )


def population_bound(trace: Trace) -> Iterator[Finding]:
    """Episodes are so short that the population reaches its bound before the generation has its interactions."""
    # At the beginning this is normal in tasks where an episode can end early.
    stopped = thirds(trace.column("population_bound"))[-1]
    share = mean_of(stopped)
    if len(trace) < ENOUGH or not share > 0.5:
        return
    # Only generations that ended at the bound say something about it.
    drawn = thirds(trace.column("population"))[-1][stopped > 0]
    population = float(drawn.max())
    interactions = mean_of(thirds(trace.column("interactions"))[-1][stopped > 0])
    length = interactions / mean_of(drawn)
    if not length > 0:
        return
    episodes = 1 if trace.config is None else trace.config.episodes
    evidence = {"bound_share": share, "population": population, "steps_per_candidate": length}
    fewer = two_digits(0.9 * interactions)
    change = {"interactions": fewer}
    advice = f"Ask for fewer interactions: interactions = {fewer:.0f}, which this population reaches."
    wanted = trace.config.interactions if trace.config is not None else None
    if wanted is not None:
        evidence["interactions_wanted"] = float(wanted)
        needed = 2 * math.ceil(1.1 * wanted / length / 2)
        change = {"population_max": float(needed)}
        advice = f"Set population_max = {needed}, or ask for fewer interactions: interactions = {fewer:.0f}."
    yield Finding(
        "population-bound",
        "warning",
        f"In the last third, {percent(share)} of the generations ended at the largest population, {population:.0f} "
        f"candidates, with only {interactions:,.0f} interactions: episodes last only {length / episodes:.3g} steps.",
        advice,
        evidence,
        change,
    )


def _faster(trace: Trace, speed_cap: float, factor: float, words: str) -> tuple[dict[str, float], str]:
    """The change that makes steps `factor` times as long, and the advice in words."""
    if trace.is_scale_free:
        radius_factor = default("radius_factor") if trace.config is None else trace.config.radius_factor
        value = two_digits(radius_factor / factor)
        return {"radius_factor": value}, (
            f"Try radius_factor = {value:g}: each step is then {words} relative to the radius. {WHY}."
        )
    value = two_digits(factor * speed_cap)
    return {"max_speed": value}, f"Try max_speed = {value:g}, {words}; step size and radius follow."


def _stdev_finding(trace: Trace, rule: str, sentence: str) -> Finding:
    """A finding that advises a learning rate at which the standard deviations would have changed by a factor of 2."""
    stdev = trace.column("stdev_norm")
    ratio = float(stdev[-1] / stdev[0])
    rate = default("stdev_learning_rate") if trace.config is None else trace.config.stdev_learning_rate
    slower = two_digits(rate * math.log(2) / abs(math.log(max(ratio, 1e-300))))
    advice = f"set stdev_learning_rate = {slower:g}: the same run would then have changed them by a factor of 2."
    if trace.config is not None and trace.config.fitness_shaping == "raw":
        advice = (
            "Use fitness_shaping = centered-rank: raw fitness changes the standard deviations in proportion to its own "
            f"scale. Or {advice}"
        )
    evidence = {"stdev_norm_first": float(stdev[0]), "stdev_norm_last": float(stdev[-1]), "ratio": ratio}
    return Finding(rule, "problem", sentence, advice[0].upper() + advice[1:], evidence, {"stdev_learning_rate": slower})


def _slope(values: Column) -> float:
    """The slope of a straight line fitted to the values."""
    if values.size < 2:
        return 0.0
    place = np.arange(values.size) - (values.size - 1) / 2
    return float((place * (values - values.mean())).sum() / np.square(place).sum())
