"""Trained policies that come with the package: what they score, and how they were trained."""

from clipup.zoo.catalog import Trained, catalog, trained_on

__all__ = ["Trained", "catalog", "trained_on"]
