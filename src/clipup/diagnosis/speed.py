"""Rules about the speed: is `max_speed` reached, too small, or too large? (The paper's sections 4 and 6.)"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clipup.diagnosis.finding import Finding, percent, two_digits
from clipup.diagnosis.trace import ENOUGH, Trace, mean_of, significance, thirds

# An undiminished climb: the last third rose at no less than this share of the average rate. A quadratic hill climbed at
# constant speed falls below it once about two thirds of the way are done.
UNDIMINISHED = 0.6
# A curved landscape changes the standard deviations; along a straight slope they stay as they were.
STRAIGHT = 0.1


def never_clipped(trace: Trace) -> Iterator[Finding]:
    """The step size is so small that clipping is never reached, so `max_speed` controls nothing."""
    speed_cap, step_size = trace.max_speed, trace.step_size
    if speed_cap is None or step_size is None or len(trace) < ENOUGH:
        return
    # Gradients of random direction alone bring the velocity to α / sqrt(1 - m²). Where that is above max_speed,
    # staying below it means that the gradients turn back, which is another fault.
    drift = step_size / np.sqrt(1 - trace.momentum**2) if trace.momentum < 1 else np.inf
    settled = trace.column("speed")[10:]
    clipped = mean_of(trace.column("clipped")[10:])
    # A step size of half the cap is what is advised below: a run that has it lacks something else, such as momentum.
    if drift >= speed_cap or step_size >= 0.5 * speed_cap or not clipped < 0.02 or not np.median(settled) > 0:
        return
    typical = float(np.median(settled))
    reached = "never reached" if clipped == 0 else f"in only {percent(clipped)} of the steps reached"
    yield Finding(
        "never-clipped",
        "warning",
        f"The speed settled at {typical:.3g} and {reached} max_speed = {speed_cap:g}: "
        f"the step size, {step_size:g}, is so small that max_speed controls nothing.",
        f"To move faster, set step_size = {two_digits(speed_cap / 2):g} (half of max_speed). To keep this pace but let "
        f"clipping steady it, set max_speed = {two_digits(typical):g} and step_size = {two_digits(typical / 2):g}.",
        {"clipped_share": clipped, "speed": typical, "max_speed": speed_cap, "step_size": step_size},
        {"step_size": two_digits(speed_cap / 2)},
    )


def too_small(trace: Trace) -> Iterator[Finding]:
    """Every step is as long as allowed, all point the same way, and nothing bends: the scale is too small."""
    speed_cap = trace.max_speed
    if speed_cap is None or len(trace) < 2 * ENOUGH or not trace.is_complete:
        return
    clipped = mean_of(trace.column("clipped")[10:])
    agreement = thirds(trace.column("gradient_agreement"))[-1]
    stdev = trace.column("stdev_norm")
    bend = float(np.abs(stdev / stdev[0] - 1).max())
    scores = trace.scores()
    climb, late = _rate(scores), _rate(thirds(scores)[-1])
    noise = trace.score_noise()
    rose = climb * (scores.size - 1) > 4 * noise and significance(np.diff(scores)) > 2
    straight = clipped > 0.9 and significance(agreement) > 3 and bend < STRAIGHT
    if not (straight and rose and late >= UNDIMINISHED * climb):
        return
    yield Finding(
        "max-speed-too-small",
        "warning",
        f"All along, {percent(clipped)} of the steps were as long as max_speed = {speed_cap:g} allows, the gradients "
        f"kept agreeing, the standard deviations stayed within {percent(bend)} of where they began, and at the end the "
        f"score still climbed at {late / climb:.2g} times its average rate: at this scale the task is one long "
        "straight slope.",
        f"Try max_speed = {two_digits(3 * speed_cap):g} (3 times as much; step size and radius follow). If a short "
        "trial with it is worse, give this run more generations instead.",
        {
            "clipped_share": clipped,
            "gradient_agreement": mean_of(agreement),
            "stdev_change": bend,
            "score_rate": climb,
            "late_score_rate": late,
        },
        {"max_speed": two_digits(3 * speed_cap)},
    )


def too_large(trace: Trace) -> Iterator[Finding]:
    """The gradient is clear, and yet the center only jumps about: each step overshoots."""
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
    # With α = v_max / 2 and m = 0.9, a step that is not clipped means that the gradient stood at more than 94° to the
    # velocity: it pointed back. Along a slope that is rare; about an optimum that steps jump over, it is the rule.
    early = slice(2, max(ENOUGH, len(trace) // 5))
    turned_back = 1 - mean_of(trace.column("clipped")[early])
    agreement = trace.column("gradient_agreement")
    clear = significance(agreement) > 3 and mean_of(agreement) > 0.1
    # A search that soon arrives turns back early too, but has gained far more by then than it still jumps.
    overshoots = clear and turned_back > 0.6 and gain < 10 * jumps and jumps > 3 * trace.score_noise()
    peak = float(scores.max())
    lost = peak - float(np.median(thirds(scores)[-1]))
    forgot = gain <= 0 and lost > 0 and lost > 6 * trace.score_noise() and peak > first and late.size >= 4
    if not overshoots and not (forgot and clear):
        return
    trouble = "gained nothing that lasts" if gain <= jumps else f"jumps by {jumps:.3g} about {middle:.4g}"
    yield Finding(
        "max-speed-too-large",
        "warning",
        f"The gradient is clear (its halves agree by {mean_of(agreement):.2f}), but the score {trouble} "
        f"({first:.4g} at first, {middle:.4g} in the second half, {peak:.4g} at best): steps of up to "
        f"max_speed = {speed_cap:g} jump over what they aim at.",
        f"Try max_speed = {two_digits(speed_cap / 4):g} (a quarter; step size and radius follow).",
        {
            "turned_back_share": turned_back,
            "gradient_agreement": mean_of(agreement),
            "score_first": first,
            "score_late": float(middle),
            "score_best": peak,
            "score_spread": jumps,
        },
        {"max_speed": two_digits(speed_cap / 4)},
    )


def _rate(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Slope of a straight line through the values."""
    if values.size < 2:
        return 0.0
    place = np.arange(values.size) - (values.size - 1) / 2
    return float((place * (values - values.mean())).sum() / np.square(place).sum())
