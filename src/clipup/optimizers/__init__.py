"""Optimizers: from a gradient to a step."""

from clipup.optimizers.adam import BETA1, BETA2, EPSILON, Adam
from clipup.optimizers.ascent import GradientAscent, HeavyBall
from clipup.optimizers.clipup import STEP_RATIO, ClipUp
from clipup.optimizers.protocol import MOMENTUM, Optimizer, StepReport, step_report
from clipup.optimizers.registry import OPTIMIZERS, OptimizerSettings, make_optimizer

__all__ = [
    "BETA1",
    "BETA2",
    "EPSILON",
    "MOMENTUM",
    "OPTIMIZERS",
    "STEP_RATIO",
    "Adam",
    "ClipUp",
    "GradientAscent",
    "HeavyBall",
    "Optimizer",
    "OptimizerSettings",
    "StepReport",
    "make_optimizer",
    "step_report",
]
