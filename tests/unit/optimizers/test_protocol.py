import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clipup.errors import InvalidArgument
from clipup.optimizers import Adam, ClipUp, GradientAscent, HeavyBall
from clipup.optimizers.protocol import StepReport, as_floats, norm, step_report


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_the_norm_neither_vanishes_nor_overflows_at_any_scale(scale):
    assert norm(np.array([3.0, 4.0]) * scale) == pytest.approx(5.0 * scale, rel=1e-3 if scale < 1e-310 else 1e-14)


@given(hnp.arrays(np.float64, st.integers(1, 50), elements=st.floats(-1e100, 1e100)))
def test_the_norm_agrees_with_an_exact_sum(vector):
    assert norm(vector) == pytest.approx(math.hypot(*vector.tolist()), rel=1e-13)


def test_the_norm_of_nothing_is_zero():
    assert norm(np.empty(0)) == 0.0
    assert norm(np.zeros(3)) == 0.0


@pytest.mark.parametrize("values", [["a"], [None], [1j], [[1.0], [1.0, 2.0]], [object()]])
def test_what_is_not_an_array_of_real_numbers_is_refused(values):
    with pytest.raises(InvalidArgument, match="thing must be an array of real numbers, got"):
        as_floats("thing", values)


@pytest.mark.parametrize("values", [[1, 2], (1.0, 2.0), np.array([1, 2], np.int8), np.array([True, False]), 3.0])
def test_lists_integers_and_booleans_become_floats(values):
    assert as_floats("thing", values).dtype == np.float64


def test_only_clipup_has_a_cap_to_report():
    optimizer = ClipUp(0.5, 0.6)
    assert step_report(optimizer) == StepReport(0.6, False)
    optimizer.ascent([1.0])
    optimizer.ascent([1.0])
    assert step_report(optimizer) == StepReport(0.6, True)
    for other in (ClipUp(0.5, None), Adam(0.1), GradientAscent(0.1), HeavyBall(0.1)):
        assert step_report(other) == StepReport(None, False)


@pytest.mark.parametrize("other", ["fast", -1.0, 0, math.inf, math.nan, print, [0.1]])
def test_a_max_speed_that_is_no_length_is_not_reported(other):
    class Own(GradientAscent):
        max_speed = other

    assert step_report(Own(0.1)) == StepReport(None, False)
