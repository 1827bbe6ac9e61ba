"""Reports: runs as one page to look at, still or live, and as pictures."""

from clipup.report.page import make_report
from clipup.report.runs import LoadedRun, load_run

__all__ = ["LoadedRun", "load_run", "make_report"]
