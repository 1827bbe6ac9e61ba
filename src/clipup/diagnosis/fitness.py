"""Rules about the fitnesses themselves: can they be ranked at all?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clipup.diagnosis.finding import Finding, Severity, percent, two_digits
from clipup.diagnosis.trace import Trace, mean_of, significance

# Fitnesses that count steps or goals tie often and still rank well, so ties alone are no fault. It is one when nearly
# all candidates tie and those that do not fail to give the gradient a direction.
NEARLY_ALL = 0.9


def tied(trace: Trace) -> Iterator[Finding]:
    """Candidates score the same, so there is nothing to learn from."""
    share, agreement = trace.column("tied"), trace.column("gradient_agreement")
    stuck = share >= NEARLY_ALL
    if len(trace) < 5 or stuck.mean() < 0.5 or significance(agreement) >= 2.5:
        return
    fitness = trace.column("fitness_mean")
    finite = np.isfinite(fitness)
    before, after = fitness[finite & ~stuck], fitness[finite & stuck]
    if (before.size >= 3 and after.size and np.median(after) > before.max()) or _at_the_ceiling(trace):
        return  # all reached the highest fitness there is: solved, not stuck
    everything = bool(np.median(share[stuck]) >= 0.999) and not np.any(trace.column("gradient_norm")[stuck] > 0)
    severity: Severity = "problem" if everything else "warning"
    change = {} if trace.max_speed is None else {"max_speed": two_digits(3 * trace.max_speed)}
    typically = f" (typically {np.median(after):.4g})" if after.size else ""
    wider = f"try max_speed = {change['max_speed']:g}, which widens the search 3 times; or " if change else ""
    yield Finding(
        "fitness-tied",
        severity,
        f"In {percent(float(stuck.mean()))} of the generations {percent(float(np.median(share[stuck])))} of the "
        f"candidates scored the same as another{typically}: there is "
        f"{'nothing' if everything else 'next to nothing'} to rank.",
        f"Let candidates differ: {wider}give the task a reward that grows on the way to the goal, or longer episodes.",
        {"tied_share": float(np.median(share[stuck])), "generations_share": float(stuck.mean())},
        change,
    )


def _at_the_ceiling(trace: Trace) -> bool:
    """Whether nobody ever scored better than all do where all score the same, and some scored worse before."""
    mean, best = trace.column("fitness_mean"), trace.column("fitness_best")
    known = np.isfinite(mean) & np.isfinite(best)
    alike = known & np.isclose(mean, best)
    others = known & ~alike
    if not alike.any() or not others.any():
        return False
    level = float(np.median(mean[alike]))
    return bool(np.isclose(best[known].max(), level) and np.median(mean[others]) < level)


def nonfinite(trace: Trace) -> Iterator[Finding]:
    """The environment returned rewards that are no numbers."""
    bad, population = trace.column("nonfinite"), trace.column("population")
    if not np.nansum(bad) > 0:
        return
    share = float(np.nansum(bad) / max(np.nansum(population), 1.0))
    generations = mean_of((bad > 0).astype(np.float64))
    # Ranked last, a few failures hardly disturb; from one in a hundred on they shape the gradient.
    severity: Severity = "note" if share < 0.01 else "warning" if share < 0.5 else "problem"
    yield Finding(
        "fitness-nonfinite",
        severity,
        f"{int(np.nansum(bad))} fitnesses ({percent(share)}) were not finite, in {percent(generations)} of the "
        "generations; they were ranked last.",
        "Find what makes the environment return nan or infinite rewards (often a simulation that blows up: bound the "
        "actions, shorten its time step, or end the episode there).",
        {"nonfinite": float(np.nansum(bad)), "share": share, "generations_share": generations},
    )
