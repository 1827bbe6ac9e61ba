"""The paper's experiments as data: groups of runs, each a preset with a few settings changed.

The presets (``clipup/runs/presets``) hold the paper's hyperparameters of each task. An experiment only lists how its
groups differ from them. Groups with equal settings share their runs, also across experiments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clipup.errors import InvalidArgument
from clipup.runs.config import Scalar
from clipup.suggestions import did_you_mean

LUNAR_LANDER = "LunarLanderContinuous-v3"
WALKER2D = "Walker2d-v4"
HUMANOID = "Humanoid-v4"
HUMANOID_BULLET = "pybullet_envs_gymnasium:HumanoidBulletEnv-v0"
PRESETS = {HUMANOID: "humanoid-paper"}
"""Presets with the paper's settings, where the task's own has others."""


@dataclass(frozen=True)
class ExperimentGroup:
    """Runs that differ only in their seed."""

    name: str
    label: str
    env: str
    settings: Mapping[str, Scalar | Mapping[str, Scalar]] = field(default_factory=dict[str, Scalar])
    turn: int = 0
    """Groups of a lower turn run first. Within a turn, each group makes its first run, then each its second."""

    @property
    def preset(self) -> str:
        """The preset with the paper's settings."""
        return PRESETS.get(self.env, "auto")


@dataclass(frozen=True)
class Experiment:
    """What is run, for how long, and which figures are drawn from it."""

    name: str
    title: str
    where: str
    """Sections, figures and tables of the paper, by their labels in its source."""
    groups: tuple[ExperimentGroup, ...] = ()
    runs: int = 30
    """Runs of each group in the paper. Seeds are 1, 2, 3 and so on."""
    generations: int = 1000
    figures: tuple[str, ...] = ("curves",)
    """Any of "scores", "curves", "range-curves", "speeds", "defaults"."""
    threshold: float | None = None
    """The score that counts as solved; the curves show it as a line."""
    note: str = ""


RANKS = "ranks"
"""The scale that the other scales of a family are compared with."""
SCALES: Mapping[str, str] = {
    RANKS: "fitness ranking",
    "raw": "raw rewards",
    "times-1000": "rewards × 1000",
    "over-1000": "rewards / 1000",
}
"""How rewards reach the search: endings of the group names of fitness-scale, and labels for them."""
FAMILIES: Mapping[str, str] = {
    "clipup": "ClipUp",
    "adam-0.15": "Adam 0.15",
    "adam-0.175": "Adam 0.175",
    "adam-0.2": "Adam 0.2",
}
"""Beginnings of the group names of fitness-scale, and labels for them."""
_SCALED: Mapping[str, Mapping[str, Scalar]] = {
    RANKS: {},
    "raw": {"fitness_shaping": "raw"},
    "times-1000": {"fitness_shaping": "raw", "fitness_scale": 1e3},
    "over-1000": {"fitness_shaping": "raw", "fitness_scale": 1e-3},
}


def _scales(family: str, turn: int, **settings: Scalar) -> tuple[ExperimentGroup, ...]:
    return tuple(
        ExperimentGroup(
            f"{family}-{scale}", f"{FAMILIES[family]}, {words}", LUNAR_LANDER, {**settings, **_SCALED[scale]}, turn
        )
        for scale, words in SCALES.items()
    )


CLIPUP = ExperimentGroup("clipup", "ClipUp", HUMANOID)
CLIPUP_FAST = ExperimentGroup("clipup-fast", "ClipUp, α = 1.1e-2", HUMANOID, {"step_size": 1.1e-2})
ADAM = ExperimentGroup("adam", "Adam", HUMANOID, {"optimizer": "adam", "step_size": 6e-4})
NOCLIP = ExperimentGroup("noclip", "NoClip, α = 7.5e-3", HUMANOID, {"optimizer": "noclip"})
NOCLIP_FAST = ExperimentGroup(
    "noclip-fast", "NoClip, α = 1.1e-2", HUMANOID, {"optimizer": "noclip", "step_size": 1.1e-2}
)
_SMALL: dict[str, Scalar] = {"population": 80, "population_max": 400, "interactions": 60_000}

_ALL = (
    Experiment(
        "fitness-scale",
        "Fitness scale (in)sensitivity on LunarLanderContinuous",
        "subsec:scale, tbl:lunarlander",
        (
            *_scales("clipup", 0),
            *_scales("adam-0.15", 1, optimizer="adam", step_size=0.15),
            *_scales("adam-0.175", 1, optimizer="adam", step_size=0.175),
            *_scales("adam-0.2", 1, optimizer="adam", step_size=0.2),
        ),
        runs=10,
        generations=50,
        figures=("scores",),
    ),
    Experiment(
        "walker2d",
        "ClipUp and Adam on Walker2d",
        "fig:mujoco, tbl:hyperwalker2d",
        (
            ExperimentGroup("clipup", "ClipUp", WALKER2D),
            ExperimentGroup("adam", "Adam", WALKER2D, {"optimizer": "adam", "step_size": 4e-3}),
        ),
        generations=500,
    ),
    Experiment(
        "humanoid", "ClipUp and Adam on Humanoid", "fig:mujoco, tbl:hyperhumanoid", (CLIPUP, ADAM), threshold=6000.0
    ),
    Experiment(
        "update-magnitudes",
        "The size of the updates on Humanoid",
        "sec:behavior, fig:humanoidUpdateMagnitudes",
        (CLIPUP, ADAM, NOCLIP),
        figures=("speeds",),
    ),
    Experiment(
        "step-size", "A larger step size on Humanoid", "sec:tunestepsize", (CLIPUP, CLIPUP_FAST), threshold=6000.0
    ),
    Experiment(
        "clipping",
        "ClipUp without its clipping on Humanoid",
        "sec:clippingeffect, fig:humanoidMoreLr, fig:humanoidMoreLrMagnitudes",
        (CLIPUP_FAST, NOCLIP_FAST, CLIPUP, NOCLIP),
        figures=("curves", "speeds"),
        threshold=6000.0,
    ),
    Experiment(
        "small-population",
        "ClipUp and NoClip on Humanoid with a small population",
        "fig:humanoidLittlePop",
        (
            ExperimentGroup("clipup-small", "ClipUp, λ = 80", HUMANOID, _SMALL),
            ExperimentGroup("noclip-small", "NoClip, λ = 80", HUMANOID, {**_SMALL, "optimizer": "noclip"}),
        ),
        figures=("curves", "speeds"),
        threshold=6000.0,
    ),
    Experiment(
        "humanoid-bullet",
        "Bullet's Humanoid",
        "fig:pybullethumanoid, tbl:hyperpybhmn",
        (ExperimentGroup("clipup", "ClipUp", HUMANOID_BULLET),),
        runs=10,
        figures=("range-curves",),
        threshold=3500.0,
    ),
    Experiment(
        "humanoid-observations",
        "Humanoid with and without the 84 observations of contact forces",
        "not in the paper: which of today's tasks stands for Humanoid-v2",
        (
            ExperimentGroup("clipup", "ClipUp", HUMANOID, {"engine": "envpool"}),
            ExperimentGroup(
                "contact-forces", "ClipUp, post_constraint", HUMANOID, {"env_options": {"post_constraint": True}}
            ),
        ),
        runs=1,
        generations=50,
        note="On EnvPool, Humanoid-v4's last 84 observations are zero unless post_constraint=True; the paper's MuJoCo "
        "filled them, as the compiled engine does.",
    ),
    Experiment(
        "defaults-figure",
        "How the default hyperparameters relate",
        "sec:tuning, fig:defaultsettings",
        runs=0,
        generations=0,
        figures=("defaults",),
    ),
)

EXPERIMENTS: Mapping[str, Experiment] = {experiment.name: experiment for experiment in _ALL}


def experiment_named(name: str) -> Experiment:
    """The experiment of that name. An unknown name is an error that suggests the nearest one."""
    if name not in EXPERIMENTS:
        raise InvalidArgument(
            f"unknown experiment {name!r}; choose one of: {', '.join(EXPERIMENTS)}{did_you_mean(name, EXPERIMENTS)}"
        )
    return EXPERIMENTS[name]
