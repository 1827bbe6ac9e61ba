"""Reports: runs as one page to look at, still or live, and as pictures."""

from clipup.report.page import make_report, render_page
from clipup.report.runs import LoadedRun, find_runs, load_run

__all__ = ["LoadedRun", "find_runs", "load_run", "make_report", "render_page"]
