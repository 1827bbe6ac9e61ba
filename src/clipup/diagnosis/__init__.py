"""Diagnosis: what a run's records say about its settings, in plain sentences."""

from clipup.diagnosis.diagnose import diagnose
from clipup.diagnosis.finding import Finding

__all__ = ["Finding", "diagnose"]
