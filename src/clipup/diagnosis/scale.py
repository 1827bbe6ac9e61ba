"""Whether `max_speed` can matter at all for a run."""

from __future__ import annotations

from clipup.optimizers import OPTIMIZERS
from clipup.policies.actions import CHOICES
from clipup.runs.config import RunConfig

WHY = (
    "max_speed has no effect here: a linear policy with discrete actions takes the largest output, whatever the scale "
    "of its parameters, and the radius and the step follow max_speed"
)


def is_scale_free(config: RunConfig | None, actions: str) -> bool:
    """Return whether every `max_speed` gives the same run, except for rounding.

    The outputs of a linear policy are proportional to its parameters, and the index of the largest output does not
    depend on their scale. The search starts at zero, and its radius and steps are proportional to `max_speed`. So a
    tenfold `max_speed` makes tenfold candidates that act alike. What matters instead is the length of the steps
    relative to the radius (`radius_factor`, `step_ratio`).

    Parameters
    ----------
    config
        The settings of the run.
    actions
        The kind of its actions (`clipup.policies.actions.Actions`); empty where it is not known.
    """
    return (
        config is not None
        and actions in CHOICES
        and config.policy.startswith("linear")
        and config.optimizer == OPTIMIZERS[0]
        and config.step_size is None
        and config.radius is None
        and config.init is None
    )
