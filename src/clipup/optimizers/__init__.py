"""Optimizers: from a gradient to a step."""

from clipup.optimizers.adam import Adam
from clipup.optimizers.ascent import GradientAscent, HeavyBall
from clipup.optimizers.clipup import ClipUp
from clipup.optimizers.protocol import Optimizer

__all__ = ["Adam", "ClipUp", "GradientAscent", "HeavyBall", "Optimizer"]
