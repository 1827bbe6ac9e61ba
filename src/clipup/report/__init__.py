"""Reports about runs: one HTML page, saved or live, and figures."""

from clipup.report.loading import LoadedRun, load_run
from clipup.report.render import make_report

__all__ = ["LoadedRun", "load_run", "make_report"]
