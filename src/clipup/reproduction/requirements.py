"""Whether everything that an experiment needs is installed: asked before its first run begins."""

from __future__ import annotations

import importlib.util

from clipup.errors import MissingDependency
from clipup.reproduction.experiments import HUMANOID_BULLET, LUNAR_LANDER, Experiment


def check_requirements(experiment: Experiment, *, runs: bool, figures: bool, cluster: bool) -> None:
    """Raise `MissingDependency`, one line with the install command, for the first library that is missing."""
    for library, extra in requirements(experiment, runs=runs, figures=figures, cluster=cluster):
        if importlib.util.find_spec(library) is None:
            raise MissingDependency.of(library, extra=extra)


def requirements(experiment: Experiment, *, runs: bool, figures: bool, cluster: bool) -> tuple[tuple[str, str], ...]:
    """The libraries that the experiment's runs and pictures import, each with the extra that brings it."""
    found: dict[str, str] = {"gymnasium": "train", "threadpoolctl": "train"} if runs and experiment.groups else {}
    for group in experiment.groups if runs else ():
        if group.env == HUMANOID_BULLET:
            found |= {"pybullet": "bullet", "pybullet_envs_gymnasium": "bullet"}
        elif importlib.util.find_spec("envpool") is None and "env_options" not in group.settings:
            # EnvPool brings its own simulators; Gymnasium has them as extras.
            found["Box2D" if group.env == LUNAR_LANDER else "mujoco"] = "train"
        else:
            found["envpool"] = "train"
    if runs and cluster and experiment.groups:
        found["ray"] = "ray"
    if figures and experiment.figures:
        found["matplotlib"] = "plot"
    return tuple(found.items())
