"""Policies over whole populations, in numpy: networks, actions, observation statistics."""

from clipup.policies.actions import Actions
from clipup.policies.network import Network
from clipup.policies.normalizer import Moments, Normalizer, Statistics
from clipup.policies.policy import Policy

__all__ = ["Actions", "Moments", "Network", "Normalizer", "Policy", "Statistics"]
