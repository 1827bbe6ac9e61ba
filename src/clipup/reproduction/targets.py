"""The paper's published values and claims, read from ``targets.toml`` beside this file."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from clipup.decoding import decode_toml
from clipup.errors import FileFault
from clipup.files import package_text
from clipup.reproduction.experiments import SCALES

_KNOWN = frozenset({"experiment", "text", "where", "runs", "needs", "rule", "published"})


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, and the rule by which it is judged."""

    experiment: str
    text: str
    where: str
    runs: int
    """Runs of each group in the paper."""
    needs: int
    """Runs of each group that a verdict needs."""
    rule: str
    published: str | float
    arguments: Mapping[str, object]

    def number(self, name: str) -> float:
        """The argument `name` of the rule, a number."""
        value = self.published if name == "published" else self.arguments.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FileFault(f"targets.toml: the claim {self.text!r} needs a number {name}")
        return float(value)

    def words(self, name: str) -> tuple[str, ...]:
        """The argument `name` of the rule, one or several names."""
        value = self.arguments.get(name)
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list) or not value:
            raise FileFault(f"targets.toml: the claim {self.text!r} needs names {name}")
        return tuple(str(entry) for entry in cast("list[object]", value))

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the rule compares, in its order."""
        if "families" in self.arguments:
            return tuple(f"{family}-{scale}" for family in self.words("families") for scale in SCALES)
        names = [name for key in ("group", "groups", "reference") if key in self.arguments for name in self.words(key)]
        return tuple(names)


@functools.cache
def claims() -> tuple[Claim, ...]:
    """Every claim, in the order of the file."""
    values = decode_toml(package_text("clipup.reproduction", "targets.toml"), "targets.toml")
    return tuple(_claim(entry) for entry in cast("list[dict[str, object]]", values["claim"]))


def claims_of(experiment: str) -> tuple[Claim, ...]:
    """The claims about one experiment."""
    return tuple(claim for claim in claims() if claim.experiment == experiment)


def published_mean(experiment: str, group: str) -> float | None:
    """The mean that the paper gives for a group, where it gives one."""
    claim = _mean_claim(experiment, group)
    return None if claim is None else claim.number("published")


def published_percent(group: str) -> float:
    """The percentage that the paper prints beside a mean of fitness-scale: of the same method's mean with ranks."""
    claim = _mean_claim("fitness-scale", group)
    if claim is None:
        raise FileFault(f"targets.toml: no mean of {group!r}")
    return claim.number("percent")


def _mean_claim(experiment: str, group: str) -> Claim | None:
    means = (claim for claim in claims_of(experiment) if claim.rule == "mean")
    return next((claim for claim in means if claim.groups == (group,)), None)


def _claim(entry: Mapping[str, object]) -> Claim:
    runs = entry["runs"]
    published = entry["published"]
    if not isinstance(runs, int) or not isinstance(published, str | float):
        raise FileFault(f"targets.toml: the claim {entry.get('text')!r} needs runs and a published value")
    needs = entry.get("needs", -(-runs // 2))
    return Claim(
        experiment=str(entry["experiment"]),
        text=str(entry["text"]),
        where=str(entry["where"]),
        runs=runs,
        needs=needs if isinstance(needs, int) else runs,
        rule=str(entry["rule"]),
        published=published,
        arguments={name: value for name, value in entry.items() if name not in _KNOWN},
    )
