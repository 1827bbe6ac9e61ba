"""How good a policy is: evaluation on the environment's own reward, statistics, video."""

from clipup.evaluation.evaluate import Evaluation, Summary, evaluate, summarize

__all__ = ["Evaluation", "Summary", "evaluate", "summarize"]
