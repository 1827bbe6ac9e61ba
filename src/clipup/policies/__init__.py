"""Policies of a whole population, in numpy: networks, actions, observation statistics."""

from clipup.policies.actions import Actions
from clipup.policies.feedforward import Network
from clipup.policies.normalizer import Moments, Normalizer, Statistics
from clipup.policies.observations import ObservationPart, Observations
from clipup.policies.trained import Policy

__all__ = [
    "Actions",
    "Moments",
    "Network",
    "Normalizer",
    "ObservationPart",
    "Observations",
    "Policy",
    "Statistics",
]
