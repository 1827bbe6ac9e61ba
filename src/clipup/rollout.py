"""Deprecated: the names of this module are in `clipup.engines` now."""

import warnings

from clipup import engines

_NAMES = {
    **{name: name for name in ("Engine", "Failure", "Outcomes", "Task", "check_environment", "make_engine")},
    "Report": "SeedCheck",
}


def __getattr__(name: str) -> object:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"clipup.rollout.{name} is now clipup.engines.{_NAMES[name]}", DeprecationWarning, stacklevel=2)
    return getattr(engines, _NAMES[name])
