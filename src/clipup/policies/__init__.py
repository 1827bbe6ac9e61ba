"""Policies of a whole population: networks, actions, observation statistics."""

from clipup.policies.actions import Actions
from clipup.policies.feedforward import Network
from clipup.policies.grammar import parse_policy
from clipup.policies.layered import LayeredNetwork, LayerKind
from clipup.policies.normalizer import Moments, Normalizer, Statistics
from clipup.policies.observations import ObservationPart, Observations
from clipup.policies.protocol import PolicyNetwork
from clipup.policies.trained import Policy

__all__ = [
    "Actions",
    "LayerKind",
    "LayeredNetwork",
    "Moments",
    "Network",
    "Normalizer",
    "ObservationPart",
    "Observations",
    "Policy",
    "PolicyNetwork",
    "Statistics",
    "parse_policy",
]
