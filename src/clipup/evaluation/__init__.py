"""How good a policy is: evaluation on the environment's own reward, statistics, video."""

from clipup.evaluation.evaluate import Evaluation, evaluate
from clipup.evaluation.statistics import Summary, summarize

__all__ = ["Evaluation", "Summary", "evaluate", "summarize"]
