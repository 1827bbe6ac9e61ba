import math
from dataclasses import replace

import pytest

from clipup.errors import InvalidArgument
from clipup.optimizers import OPTIMIZERS, OptimizerSettings, make_optimizer

SETTINGS = OptimizerSettings(max_speed=0.3)


def test_all_follows_from_the_maximum_speed():
    made = {name: repr(make_optimizer(name, SETTINGS, dimension=9)) for name in OPTIMIZERS}
    assert made == {
        "clipup": "ClipUp(step_size=0.15, max_speed=0.3, momentum=0.9)",
        "adam": "Adam(step_size=0.3, beta1=0.9, beta2=0.999, epsilon=1e-08)",
        "noclip": "ClipUp(step_size=0.15, max_speed=None, momentum=0.9)",
        "ascent": "GradientAscent(step_size=0.15)",
    }


def test_what_is_given_overrides_what_follows():
    given = replace(SETTINGS, step_size=0.01, momentum=0.5, beta1=0.1, beta2=0.2, epsilon=0.3)
    made = {name: repr(make_optimizer(name, given, dimension=9)) for name in OPTIMIZERS}
    assert made == {
        "clipup": "ClipUp(step_size=0.01, max_speed=0.3, momentum=0.5)",
        "adam": "Adam(step_size=0.01, beta1=0.1, beta2=0.2, epsilon=0.3)",
        "noclip": "ClipUp(step_size=0.01, max_speed=None, momentum=0.5)",
        "ascent": "GradientAscent(step_size=0.01)",
    }
    assert repr(make_optimizer("clipup", replace(SETTINGS, step_ratio=2.0), 9)).startswith("ClipUp(step_size=0.6,")


def test_the_first_step_of_adam_is_three_times_the_maximum_speed_whatever_the_dimension():
    for dimension in (4, 100, 6409):
        step = make_optimizer("adam", SETTINGS, dimension).ascent([1.0] * dimension)
        assert math.hypot(*step) == pytest.approx(0.9)


def test_an_unknown_optimizer_is_refused_with_the_names_that_exist():
    with pytest.raises(InvalidArgument, match="optimizer must be one of clipup, adam, noclip, ascent, got 'sgd'"):
        make_optimizer("sgd", SETTINGS, 9)
