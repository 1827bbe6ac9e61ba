"""Whether everything that an experiment needs is installed: asked before its first run begins."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import cast

from clipup.engines import Task, registry
from clipup.errors import MissingDependency
from clipup.reproduction.experiments import Experiment


def check_requirements(experiment: Experiment, *, runs: bool, figures: bool, cluster: bool) -> None:
    """Raise `MissingDependency`, one line with the install command, for the first library that is missing."""
    for library, extra in requirements(experiment, runs=runs, figures=figures, cluster=cluster):
        if importlib.util.find_spec(library) is None:
            raise MissingDependency.of(library, extra=extra)


def requirements(experiment: Experiment, *, runs: bool, figures: bool, cluster: bool) -> tuple[tuple[str, str], ...]:
    """The libraries that the experiment's runs and pictures import, each with the extra that brings it."""
    found: dict[str, str] = {}
    for group in experiment.groups if runs else ():
        options = cast("Mapping[str, object]", group.settings.get("env_options", {}))
        found |= registry.libraries(Task(group.env, options))
    if runs and cluster and experiment.groups:
        found["ray"] = "ray"
    if figures and experiment.figures:
        found["matplotlib"] = "plot"
    return tuple(found.items())
