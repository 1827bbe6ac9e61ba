import pytest

from clipup.reproduction.experiments import EXPERIMENTS, experiment_named
from clipup.reproduction.rules import RULES
from clipup.reproduction.targets import Claim, claims, claims_of, published_mean, published_percent

PAPER_TABLE = {
    "ranks": (269.95, 255.32, 241.94, 263.73),
    "raw": (270.15, 197.93, 235.72, 199.25),
    "times-1000": (262.98, 139.61, 211.84, 245.67),
    "over-1000": (263.06, 200.34, 187.25, 111.76),
}


PAPER_PERCENTS = {
    "ranks": (100.0, 100.0, 100.0, 100.0),
    "raw": (100.07, 77.52, 97.43, 75.55),
    "times-1000": (97.42, 54.68, 87.56, 93.15),
    "over-1000": (97.44, 78.46, 77.39, 42.38),
}


@pytest.mark.parametrize("scale", PAPER_TABLE)
def test_the_table_of_fitness_scales_is_the_paper_s(scale: str) -> None:
    groups = [f"{family}-{scale}" for family in ("clipup", "adam-0.15", "adam-0.175", "adam-0.2")]
    assert tuple(published_mean("fitness-scale", group) for group in groups) == PAPER_TABLE[scale]
    assert tuple(published_percent(group) for group in groups) == PAPER_PERCENTS[scale]


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: f"{claim.experiment}: {claim.text}")
def test_every_claim_names_an_experiment_its_groups_and_a_rule(claim: Claim) -> None:
    groups = {group.name for group in experiment_named(claim.experiment).groups}
    assert set(claim.groups) <= groups
    assert claim.rule in RULES
    assert claim.where and claim.text
    assert claim.needs <= claim.runs


def test_every_experiment_of_the_paper_has_a_claim() -> None:
    ours_alone = {"humanoid-observations"}
    assert {name for name in EXPERIMENTS if not claims_of(name)} == ours_alone


def test_a_claim_about_final_scores_needs_half_of_the_paper_s_runs() -> None:
    for claim in claims():
        if claim.rule in ("mean", "similar", "better", "reduction"):
            assert claim.needs == -(-claim.runs // 2)
