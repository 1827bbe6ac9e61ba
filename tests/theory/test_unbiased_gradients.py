"""The gradients are unbiased estimates on a quadratic, where their expectations are known exactly.

For ``f(x) = b·x - x·diag(a)·x / 2`` half the difference of a mirrored pair is ``∇f(x)·delta``, without remainder, so
the center's gradient has the expectation ``stdev² ∇f(x)``. A pair's mean is ``f(x) - delta·diag(a)·delta / 2``;
with the baseline of n pairs, the stdev's gradient has the expectation ``-(1 - 1/n) a stdev³``.
"""

import math

import numpy as np

from clipup import PGPE, GradientAscent

CURVATURE = np.array([1.0, 3.0, 0.2, -1.0, 2.0])
SLOPE = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
START = np.array([0.5, 0.5, -1.0, 2.0, 0.0])
STDEV = np.array([0.5, 0.25, 1.0, 0.5, 2.0])
GRADIENT = SLOPE - CURVATURE * START
CHANCE = 1e-6


def quadratic(candidates):
    x = candidates.astype(np.float64)
    return x @ SLOPE - np.square(x) @ CURVATURE / 2


def estimates(population_size, seed, spread=STDEV):
    """Return both gradients of one generation: with plain ascent of step size 1 they are the changes themselves."""
    search = PGPE(
        center=START, stdev=spread, population_size=population_size, fitness_shaping="raw", stdev_max_change=None,
        stdev_learning_rate=1e-3, optimizer=GradientAscent(1e-3), seed=seed,
    )  # fmt: skip
    search.tell(quadratic(search.ask()))
    return (search.center - START) / 1e-3, (search.stdev - spread) / 1e-3


def test_the_centers_gradient_is_unbiased():
    """One generation of many pairs lies within the bound of Laurent and Massart for Gaussian quadratic forms.

    Coordinate j of the estimate is a mean of n independent forms ``z·M·z``, ``M = sym(stdev_j e_j (stdev*∇f)ᵀ)``, so

        P( |mean - tr M| > 2 |M|_F sqrt(t/n) + 2 |M|_op t/n ) <= 2 exp(-t),

    exactly, with no appeal to a limit. With t = log(2 * 5 / 1e-6) all five coordinates hold for all but one seed in a
    million. (The seed is fixed, so the test never fails by chance; the bound says that it was not chosen to pass.)
    """
    pairs = 40_000
    measured, _ = estimates(2 * pairs, seed=1)
    t = math.log(2 * len(START) / CHANCE)
    for j in range(len(START)):
        outer = np.outer(np.eye(5)[j] * STDEV[j], STDEV * GRADIENT)
        form = (outer + outer.T) / 2
        bound = 2 * np.linalg.norm(form) * math.sqrt(t / pairs) + 2 * np.linalg.norm(form, 2) * t / pairs
        rounding = 1e-3 * (1 + abs(START[j]))  # of a float32 center, divided by the step size
        assert abs(measured[j] - STDEV[j] ** 2 * GRADIENT[j]) < bound + rounding
        # The bound has teeth: neither a wrong sign nor a factor of two would pass.
        if GRADIENT[j] > 0.5:
            assert bound < STDEV[j] ** 2 * abs(GRADIENT[j])


def test_the_stdevs_gradient_is_unbiased_but_for_its_own_share_in_the_baseline():
    """The mean over independent small generations lies within 6.5 of its standard errors.

    The estimate is a form of degree four, for which the exact bound is too wide to be of use; the mean of 1500
    generations is close to normal, where 6.5 standard errors in five coordinates are exceeded with chance 4e-10. That
    leaves three orders of magnitude below one in a million for what is not normal about it.
    """
    pairs, generations, spread = 8, 1500, 1 / np.sqrt(np.abs(CURVATURE))  # so that each coordinate counts the same
    samples = np.array([estimates(2 * pairs, seed, spread)[1] for seed in range(generations)])
    expected = -(1 - 1 / pairs) * CURVATURE * spread**3
    standard_error = samples.std(axis=0, ddof=1) / math.sqrt(generations)
    assert (np.abs(samples.mean(axis=0) - expected) < 6.5 * standard_error + 1e-3).all()
    assert (np.abs(expected) > 2 * (6.5 * standard_error + 1e-3)).all()  # with teeth: half of it would not pass
