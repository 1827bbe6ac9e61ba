"""Each rule speaks on a real run that was made to have its fault, and none speaks on a healthy one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import clipup
from clipup.diagnosis import Finding, diagnose
from clipup.diagnosis.diagnose import RULES
from clipup.diagnosis.finding import SEVERITIES
from clipup.runs.config import RunConfig
from clipup.runs.records import Record, read_records

Run = Callable[..., tuple[list[Record], RunConfig]]


def sphere(x: np.ndarray) -> np.ndarray:
    return -np.square(x - 1.0).sum(axis=1)


def ellipsoid(x: np.ndarray) -> np.ndarray:
    return -(np.square(x - 1.0) * np.logspace(0, 2, x.shape[1])).sum(axis=1)


def saturating(x: np.ndarray) -> np.ndarray:
    """Like a controller's return: flat far away, a ceiling at the top."""
    return 300 * np.exp(-np.square(x - 1.0).sum(axis=1) / x.shape[1]) - 100


def counted(x: np.ndarray) -> np.ndarray:
    """Like steps until a pole falls: whole numbers with a ceiling that many candidates reach in the end."""
    return np.floor(np.clip(40 - 4 * np.square(x - 1.0).sum(axis=1), 0, 20))


def flat(x: np.ndarray) -> np.ndarray:
    return np.zeros(len(x))


def outward(x: np.ndarray) -> np.ndarray:
    """The further out, the better, in every direction."""
    return np.square(x + 0.3).sum(axis=1)


def rules_of(findings: list[Finding]) -> list[str]:
    return [finding.rule for finding in findings]


def only(findings: list[Finding], rule: str) -> Finding:
    assert rules_of(findings) == [rule]
    finding = findings[0]
    assert finding.severity in SEVERITIES
    assert finding.sentence.endswith(".") and finding.suggestion.endswith(".")
    assert all(np.isfinite(value) for value in finding.evidence.values())
    json.dumps(finding.as_json(), allow_nan=False)
    return finding


HEALTHY = {
    "sphere": dict(function=sphere, max_speed=0.1, generations=100),
    "sphere, few dimensions": dict(function=sphere, dimension=2, max_speed=0.05, generations=100),
    "sphere, many dimensions": dict(function=sphere, dimension=200, max_speed=0.4, generations=120, population=200),
    "sphere, long after it arrived": dict(function=sphere, dimension=3, max_speed=0.1, generations=400),
    "sphere, noisy": dict(function=sphere, noise=3.0, max_speed=0.2, generations=120),
    "ellipsoid": dict(function=ellipsoid, max_speed=0.1, generations=120),
    "saturating": dict(function=saturating, noise=20.0, max_speed=0.15, generations=100),
    "saturating, come to rest in noise": dict(function=saturating, noise=60.0, max_speed=0.15, generations=300),
    "counted, solved": dict(function=counted, dimension=4, max_speed=0.1, generations=150),
    "paper's ratio of a larger radius": dict(function=sphere, max_speed=0.1, radius=1.8, generations=100),
}


@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_rule_speaks_on_a_healthy_run(run: Run, name: str, seed: int) -> None:
    assert diagnose(*run(**HEALTHY[name], seed=seed)) == []


@pytest.mark.parametrize("seed", [4, 5, 7, 12, 13, 17, 20, 24])
def test_candidates_that_are_alike_because_all_have_arrived_are_no_noise(run: Run, seed: int) -> None:
    assert diagnose(*run(**HEALTHY["counted, solved"], seed=seed)) == []


@pytest.mark.parametrize("seed", range(4))
def test_a_task_that_is_nearly_solved_at_the_start_is_not_stuck(run: Run, seed: int) -> None:
    records, config = run(counted, dimension=2, generations=60, max_speed=0.3, radius=0.9, seed=seed)
    assert min(record.tied for record in records) > 0.9
    assert diagnose(records, config) == []


@pytest.mark.parametrize("dimension", [3, 16, 100])
def test_a_far_too_small_max_speed_is_found_and_3_times_as_much_advised(run: Run, dimension: int) -> None:
    finding = only(diagnose(*run(sphere, dimension=dimension, max_speed=0.002)), "max-speed-too-small")
    assert finding.change == {"max_speed": 0.006}


@pytest.mark.parametrize("dimension", [3, 16, 100])
@pytest.mark.parametrize("max_speed", [10.0, 100.0])
def test_a_far_too_large_max_speed_is_found_and_a_quarter_advised(run: Run, dimension: int, max_speed: float) -> None:
    finding = only(diagnose(*run(sphere, dimension=dimension, max_speed=max_speed)), "max-speed-too-large")
    assert finding.change == {"max_speed": max_speed / 4}


def test_following_the_advice_from_too_large_leads_to_a_run_without_findings(run: Run) -> None:
    max_speed = 25.6
    for _ in range(5):
        findings = diagnose(*run(sphere, max_speed=max_speed))
        if not findings:
            break
        max_speed = findings[0].change["max_speed"]
    assert findings == [] and max_speed < 2


def test_a_step_size_too_small_for_its_max_speed_is_never_clipped(run: Run) -> None:
    finding = only(diagnose(*run(sphere, max_speed=1.0, step_size=0.01, radius=1.5)), "never-clipped")
    assert finding.change == {"step_size": 0.5}
    assert finding.evidence["clipped_share"] == 0


@pytest.mark.parametrize("dimension", [2, 3, 16, 100])
@pytest.mark.parametrize("seed", [0, 1])
def test_fitness_of_pure_noise_is_seen_in_any_dimension(run: Run, dimension: int, seed: int) -> None:
    findings = diagnose(*run(flat, noise=1.0, dimension=dimension, generations=90, seed=seed))
    finding = only(findings, "gradient-noise")
    assert abs(finding.evidence["gradient_agreement"]) < 4 * finding.evidence["standard_error"]
    assert finding.change == {"max_speed": 0.3, "population": 400}


def test_too_small_a_radius_under_noise_is_seen_as_a_gradient_of_noise(run: Run) -> None:
    findings = diagnose(*run(sphere, noise=5.0, max_speed=0.003, generations=120))
    assert "gradient-noise" in rules_of(findings)


def test_a_collapsed_stdev_is_found_with_raw_fitness_of_a_large_scale(run: Run) -> None:
    records, config = run(lambda x: 1e4 * sphere(x), fitness_shaping="raw", generations=60)
    finding = {finding.rule: finding for finding in diagnose(records, config)}["stdev-collapsed"]
    assert finding.change["stdev_learning_rate"] < 0.05
    assert "centered-rank" in finding.suggestion


def test_an_exploded_stdev_is_found(run: Run) -> None:
    records, config = run(outward, stdev_learning_rate=2.0, max_speed=0.1, generations=60)
    assert "stdev-exploded" in rules_of(diagnose(records, config))


def test_a_population_that_always_ends_at_its_bound_is_found(run: Run) -> None:
    records, config = run(sphere, population=40, interactions=10_000, population_max=200, episode_length=10)
    finding = only(diagnose(records, config), "population-bound")
    assert finding.change == {"population_max": 1100}
    assert finding.evidence["steps_per_candidate"] == 10


def test_a_population_that_met_its_bound_only_at_first_is_healthy(run: Run) -> None:
    records, config = run(sphere, population=100, interactions=2_000, population_max=400, episode_length=10)
    assert diagnose(records, config) == []


def test_fitnesses_that_all_tie_are_found_and_nothing_else_is_blamed(run: Run) -> None:
    finding = only(diagnose(*run(flat)), "fitness-tied")
    assert finding.severity == "problem"
    assert finding.evidence["tied_share"] == 1.0


def test_a_reward_that_hardly_any_candidate_meets_is_found_as_tied(run: Run) -> None:
    def sparse(x: np.ndarray) -> np.ndarray:
        return (np.abs(x[:, 0] - 50.0) < 1.0).astype(np.float64)

    finding = only(diagnose(*run(sparse)), "fitness-tied")
    assert finding.change == {"max_speed": 0.3}


@pytest.mark.parametrize(("share", "severity"), [(0.002, "note"), (0.1, "warning"), (0.9, "problem")])
def test_non_finite_fitnesses_are_found_and_weighed(run: Run, share: float, severity: str) -> None:
    generator = np.random.default_rng(5)

    def breaking(x: np.ndarray) -> np.ndarray:
        return np.where(generator.random(len(x)) < share, np.nan, sphere(x))

    findings = {finding.rule: finding for finding in diagnose(*run(breaking))}
    finding = findings["fitness-nonfinite"]
    assert finding.severity == severity
    assert finding.evidence["share"] == pytest.approx(share, rel=0.5)


def test_nothing_and_next_to_nothing_give_no_findings(run: Run) -> None:
    assert diagnose([]) == []
    records, config = run(sphere, generations=4)
    assert diagnose(records, config) == []


def test_a_run_in_progress_is_not_yet_called_too_slow(run: Run) -> None:
    records, config = run(sphere, max_speed=0.002, config_changes={"generations": 1000})
    assert diagnose(records, config) == []


def test_records_alone_are_enough(run: Run) -> None:
    records, _ = run(sphere, max_speed=1.0, step_size=0.01, radius=1.5)
    assert rules_of(diagnose(records)) == ["never-clipped"]


def test_every_rule_has_a_docstring_that_says_what_it_looks_for() -> None:
    assert all(rule.__doc__ for rule in RULES)


def test_a_run_that_still_climbs_is_not_called_noise() -> None:
    """A run of LunarLanderContinuous-v3 on raw rewards that ended at 268: halves hardly agreed, yet the score rose."""
    records = read_records(Path(__file__).parent / "lander.jsonl")
    config = RunConfig(env="LunarLanderContinuous-v3", max_speed=0.3, generations=50, fitness_shaping="raw")
    assert diagnose(records, config) == []
    resting = [replace(record, score=record.score and 250.0 + index % 2) for index, record in enumerate(records)]
    assert diagnose(resting, config) == []  # candidates differ by a twentieth of what the run gained: it has arrived
    apart = [replace(record, fitness_best=(record.fitness_mean or 0.0) + 400.0) for record in resting]
    assert "gradient-noise" in rules_of(diagnose(apart, config))


@pytest.mark.parametrize(
    ("env", "policy", "population", "generations"),
    [
        ("Acrobot-v1", "linear", 20, 50),
        ("Acrobot-v1", "mlp:8", 20, 50),
        ("Acrobot-v1", "mlp:8", 60, 30),
        ("CartPole-v1", "linear", 20, 50),
        ("CartPole-v1", "mlp:8", 20, 50),
        ("MountainCar-v0", "mlp:8", 60, 100),
    ],
)
def test_a_run_that_learned_within_a_few_generations_is_not_called_noise(
    env: str, policy: str, population: int, generations: int
) -> None:
    pytest.importorskip("numba", reason="the compiled engine needs numba")
    start = {"Acrobot-v1": -500.0, "CartPole-v1": 10.0, "MountainCar-v0": -200.0}[env]
    for seed in range(4):
        result = clipup.train(
            env, policy=policy, population=population, generations=generations, seed=seed, workers=1, max_speed=0.1,
            evaluation_episodes=8, stop=None, preset="none", progress=False,
        )  # fmt: skip
        assert result.score is not None and result.score > start + 30
        assert diagnose(result.records, result.config, result.policy.actions.kind) == []


def changed(records: list[Record], **changes: object) -> list[Record]:
    return [replace(record, **changes) for record in records]  # type: ignore[arg-type]


def test_a_run_without_any_finite_fitness_is_told_so_and_nothing_breaks(run: Run) -> None:
    records, config = run(lambda x: np.full(len(x), np.nan))
    records = changed(records, score=None, score_standard_error=None)
    findings = diagnose(records, config)
    assert "fitness-nonfinite" in rules_of(findings)
    assert not any("nan)" in finding.sentence for finding in findings)


def test_numbers_that_json_cannot_spell_become_null() -> None:
    finding = Finding("rule", "note", "Sentence.", "Advice.", {"a": float("nan"), "b": 1.0}, {"c": float("inf")})
    assert finding.as_json()["evidence"] == {"a": None, "b": 1.0}
    assert finding.as_json()["change"] == {"c": None}


def test_records_that_lack_what_a_rule_needs_are_no_evidence(run: Run) -> None:
    """As those of an older version, whose gaps are nan."""
    records, config = run(sphere, max_speed=1.0, step_size=0.01, radius=1.5)
    assert diagnose(changed(records, clipped=np.nan), config) == []
    records, config = run(flat, noise=1.0, generations=90)
    records = changed(records, population=np.nan)
    assert only(diagnose(records, config), "gradient-noise").change == {"max_speed": 0.3, "population": 400}
    finding = only(diagnose(records), "gradient-noise")
    assert finding.change == {"max_speed": 0.3} and "4 times the population" in finding.suggestion


def test_a_run_without_momentum_is_not_told_to_set_what_it_has(run: Run) -> None:
    records, config = run(sphere, momentum=0.0, generations=60)
    assert not {"never-clipped", "max-speed-too-large"} & set(rules_of(diagnose(records, config)))


def test_a_speed_that_was_reached_at_times_is_not_said_to_be_never_reached(run: Run) -> None:
    records, config = run(sphere, max_speed=1.0, step_size=0.01, radius=1.5)
    records[50] = replace(records[50], clipped=True)
    finding = only(diagnose(records, config), "never-clipped")
    assert "max_speed = 1 was reached in only 1 % of the steps" in finding.sentence


def test_a_score_that_gained_and_jumps_is_not_said_to_have_gained_nothing(run: Run) -> None:
    records, config = run(sphere, max_speed=10.0)
    jumping = [
        replace(record, score=record.score and (0.0 if index < 5 else 300.0 + 100 * (index // 5 % 2)))
        for index, record in enumerate(records)
    ]
    finding = only(diagnose(jumping, config), "max-speed-too-large")
    assert "jumps by 100 around" in finding.sentence and "no lasting gain" not in finding.sentence
    assert "no lasting gain" in only(diagnose(records, config), "max-speed-too-large").sentence


def test_a_climb_that_slows_down_is_given_as_its_ratio(run: Run) -> None:
    records, config = run(sphere, max_speed=0.002)
    finding = only(diagnose(records, config), "max-speed-too-small")
    ratio = finding.evidence["late_score_rate"] / finding.evidence["score_rate"]
    assert f"{ratio:.2g} times its average rate" in finding.sentence


def test_the_bound_is_that_of_the_generations_that_reached_it(run: Run) -> None:
    records, config = run(
        sphere, population=40, interactions=50_000, population_max=1600, generations=30, config_changes={"episodes": 4}
    )
    mixed = [
        replace(record, population=1600, interactions=40_000, population_bound=True)
        if index % 5 < 3
        else replace(record, population=800, interactions=50_000, population_bound=False)
        for index, record in enumerate(records)
    ]
    finding = only(diagnose(mixed, config), "population-bound")
    assert (
        "largest population, 1600 candidates, with only 40,000 interactions" in finding.sentence
        and "only 6.25 steps" in finding.sentence
    )
    assert finding.change == {"population_max": 2202}


def test_a_share_too_small_to_print_is_not_rounded_up(run: Run) -> None:
    records, config = run(sphere)
    records = [replace(record, population=10_000, nonfinite=int(record.generation == 7)) for record in records]
    assert "(less than 0.1 %)" in only(diagnose(records, config), "fitness-nonfinite").sentence


def test_an_advised_population_is_one_that_can_be_configured(run: Run) -> None:
    records, config = run(flat, noise=1.0, generations=90, config_changes={"population_max": 200})
    change = only(diagnose(changed(records, population=200), config), "gradient-noise").change
    assert change == {"max_speed": 0.3, "population": 400, "population_max": 800}
    replace(config, population=int(change["population"]), population_max=int(change["population_max"]))


def hill(x: np.ndarray) -> np.ndarray:
    """Like a walk's return without its bonus: zero at the start, 1000 at the top."""
    return 1000 * np.exp(-np.square(x - 1.0).sum(axis=1) / x.shape[1])


def test_a_run_that_learns_on_physics_of_its_own_is_told_so(run: Run) -> None:
    other: dict[str, object] = {"physics": "integrator=Euler", "reward_offset": -5.0}
    records, config = run(hill, max_speed=0.15, config_changes=other)
    bonus = 5 * 10  # of a whole episode: evaluations count it, training does not
    scored = [replace(record, score=record.score and record.score + bonus) for record in records]
    assert diagnose(scored, config) == []
    newest = [record for record in scored if record.score is not None][-10:]
    astray = newest[0].generation  # late in the run, as it happened on the Humanoid
    fallen = [
        replace(record, score=record.score and 0.6 * record.score) if record.generation >= astray else record
        for record in scored
    ]
    finding = only(diagnose(fallen, config), "physics-differ")
    returned = np.mean([record.fitness_mean or 0.0 for record in newest]) + bonus
    assert finding.evidence["training_return"] == pytest.approx(returned)
    assert diagnose(fallen, replace(config, physics=None)) == []
