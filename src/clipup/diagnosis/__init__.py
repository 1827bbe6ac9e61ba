"""Diagnosis: what a run's records say about its settings, in plain sentences."""

from clipup.diagnosis.diagnose import RULES, diagnose
from clipup.diagnosis.finding import SEVERITIES, Finding, Severity

__all__ = ["RULES", "SEVERITIES", "Finding", "Severity", "diagnose"]
