import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clipup.errors import InvalidArgument
from clipup.optimizers import ClipUp
from clipup.optimizers.protocol import norm

finite = st.floats(allow_nan=False, allow_infinity=False)
gradients = st.lists(hnp.arrays(np.float64, 5, elements=finite), min_size=1, max_size=6)


def test_the_first_step_has_the_length_of_the_step_size_and_the_direction_of_the_gradient():
    assert ClipUp(0.5, 1.0).ascent([30.0, -40.0]).tolist() == pytest.approx([0.3, -0.4])


def test_three_steps_computed_by_hand_from_algorithm_2():
    optimizer = ClipUp(step_size=1.0, max_speed=1.5, momentum=0.5)
    # v1 = (1, 0); |v1| = 1
    assert optimizer.ascent([7.0, 0.0]).tolist() == pytest.approx([1.0, 0.0])
    assert not optimizer.clipped
    # v2 = 0.5 (1, 0) + (0, 1) = (0.5, 1); |v2| = sqrt(1.25) < 1.5
    assert optimizer.ascent([0.0, 1e-9]).tolist() == pytest.approx([0.5, 1.0])
    assert not optimizer.clipped
    # v3' = 0.5 (0.5, 1) + (0, 1) = (0.25, 1.5); |v3'| = sqrt(2.3125) > 1.5, so v3 = 1.5 v3' / |v3'|
    assert optimizer.ascent([0.0, 1e9]).tolist() == pytest.approx(
        [0.25 * 1.5 / math.sqrt(2.3125), 1.5 * 1.5 / math.sqrt(2.3125)]
    )
    assert optimizer.clipped


def test_the_clipped_velocity_is_what_momentum_acts_on():
    optimizer = ClipUp(step_size=10.0, max_speed=1.0, momentum=0.5)
    optimizer.ascent([1.0])
    assert optimizer.ascent([0.0]).tolist() == [0.5]  # half of the clipped 1, not of the 10


@given(gradients, st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.floats(0, 0.99))
def test_no_step_is_longer_than_the_cap_not_by_the_last_bit(sequence, step_size, max_speed, momentum):
    optimizer = ClipUp(step_size, max_speed, momentum)
    for gradient in sequence:
        step = optimizer.ascent(gradient)
        assert norm(step) <= max_speed
        assert math.fsum(float(x) ** 2 for x in step) <= max_speed**2 * (1 + 1e-15)


@given(hnp.arrays(np.float64, 4, elements=st.floats(-100, 100).filter(lambda x: x == 0 or abs(x) > 1e-3)))
def test_a_clipped_step_is_as_long_as_the_cap_but_for_rounding(gradient):
    optimizer = ClipUp(step_size=2.0, max_speed=1.0)
    step = optimizer.ascent(gradient)
    if gradient.any():
        assert optimizer.clipped
        assert norm(step) == pytest.approx(1.0, rel=1e-14)


def test_a_zero_gradient_pulls_nowhere_and_the_velocity_only_decays():
    optimizer = ClipUp(0.5, 1.0, momentum=0.75)
    assert optimizer.ascent([0.0, 0.0]).tolist() == [0.0, 0.0]
    optimizer.ascent([0.0, 3.0])
    assert optimizer.ascent([0.0, 0.0]).tolist() == [0.0, 0.375]


@pytest.mark.parametrize("scale", [1e-300, 5e-324, 1e-3, 1e3, 1e300])
def test_the_step_does_not_know_how_long_the_gradient_is(scale):
    gradient = np.array([1.0, -1.0, 1.0, 1.0])
    assert np.array_equal(ClipUp(0.5, 1.0).ascent(gradient * scale), ClipUp(0.5, 1.0).ascent(gradient))


def test_noclip_is_clipup_with_a_cap_that_is_never_reached():
    generator = np.random.default_rng(3)
    noclip, huge = ClipUp(0.3, None), ClipUp(0.3, 1e30)
    for _ in range(50):
        gradient = generator.standard_normal(7)
        assert np.array_equal(noclip.ascent(gradient), huge.ascent(gradient))
    assert not noclip.clipped


def test_noclip_goes_beyond_the_cap_that_clipup_keeps():
    noclip, capped = ClipUp(0.3, None), ClipUp(0.3, 0.6)
    for _ in range(50):
        free, bound = noclip.ascent([1.0, 0.0]), capped.ascent([1.0, 0.0])
    assert norm(free) == pytest.approx(0.3 / (1 - 0.9), rel=0.01)
    assert norm(bound) == 0.6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step_size": 0.0, "max_speed": 1.0}, "step_size must be a positive number, got 0.0"),
        ({"step_size": 1.0, "max_speed": -0.5}, "max_speed must be a positive number, got -0.5"),
        ({"step_size": 1.0, "max_speed": math.nan}, "max_speed must be a finite number, got nan"),
        ({"step_size": True, "max_speed": 1.0}, "step_size must be a finite number, got True"),
        ({"step_size": 10**400, "max_speed": 1.0}, "step_size must be a finite number, got 1000"),
        ({"step_size": 1.0, "max_speed": 1e-320}, "max_speed must be at least 1.17"),
        ({"step_size": 1.0, "max_speed": 1.0, "momentum": 1.0}, "momentum must be at least 0 and less than 1, got 1.0"),
        ({"step_size": "fast", "max_speed": 1.0}, "step_size must be a finite number, got 'fast'"),
    ],
)
def test_bad_hyperparameters_are_refused_with_the_rule_and_the_value(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        ClipUp(**arguments)


def test_numpy_scalars_are_numbers_too():
    assert repr(ClipUp(np.float32(0.5), np.int64(2), np.float64(0.25))) == repr(ClipUp(0.5, 2.0, 0.25))
