import numpy as np
import pytest

from clipup.reproduction.results import Results, RunResult
from clipup.reproduction.verdicts import Verdict, verdicts
from tests.unit.reproduction.conftest import MakeResults, run_result

SPEEDS_CLIPUP = (7.5e-3, 1.4e-2, *[1.5e-2] * 198)
SPEEDS_ADAM = (4.8e-2, 3e-2, *[1.4e-2] * 198)


def scores(mean: float, count: int = 10, spread: float = 6.0) -> list[RunResult]:
    offsets = np.linspace(-spread, spread, count) if count > 1 else [0.0]
    return [run_result(seed, mean + float(offset)) for seed, offset in enumerate(offsets, start=1)]


def find(results: Results, words: str) -> Verdict:
    return next(verdict for verdict in verdicts(results) if words in verdict.claim)


def fitness_scale(make_results: MakeResults, count: int = 10) -> Results:
    means = {
        "clipup": (270, 270, 263, 263),
        "adam-0.15": (255, 198, 140, 200),
        "adam-0.175": (242, 236, 212, 187),
        "adam-0.2": (264, 199, 246, 112),
    }
    groups = {
        f"{family}-{scale}": scores(value, count)
        for family, values in means.items()
        for scale, value in zip(("ranks", "raw", "times-1000", "over-1000"), values, strict=True)
    }
    return make_results("fitness-scale", groups)


def test_the_paper_s_own_numbers_agree_with_every_claim(make_results: MakeResults) -> None:
    assert {verdict.verdict for verdict in verdicts(fitness_scale(make_results))} == {"agrees"}


def test_four_of_ten_runs_are_not_enough_to_agree_or_differ(make_results: MakeResults) -> None:
    found = verdicts(fitness_scale(make_results, count=4))
    assert {verdict.verdict for verdict in found if verdict.claim.endswith("final score")} == {"not enough runs"}
    assert {verdict.verdict for verdict in found if not verdict.claim.endswith("final score")} == {"supported"}
    assert found[0].ours.startswith("270.00")


def test_a_mean_far_from_the_published_one_differs(make_results: MakeResults) -> None:
    results = make_results("fitness-scale", {"clipup-ranks": scores(200)})
    assert find(results, "ClipUp, fitness ranking").verdict == "differs"
    assert find(results, "Adam 0.2, raw").verdict == "not enough runs"


def test_a_scale_that_costs_six_percent_is_not_even(make_results: MakeResults) -> None:
    groups = {f"clipup-{scale}": scores(270) for scale in ("ranks", "raw", "times-1000")}
    results = make_results("fitness-scale", groups | {"clipup-over-1000": scores(270 * 0.94)})
    verdict = find(results, "is not affected")
    assert verdict.verdict == "differs" and verdict.ours == "94.00 % to 100.00 %"


def test_runs_shorter_than_the_paper_s_say_nothing_about_its_scores(make_results: MakeResults) -> None:
    results = make_results("fitness-scale", {"clipup-ranks": scores(270)}, generations=5)
    assert find(results, "ClipUp, fitness ranking").verdict == "not enough runs"


def test_runs_with_other_settings_say_nothing(make_results: MakeResults) -> None:
    results = make_results("fitness-scale", {"clipup-ranks": scores(270)}, changes={"population": "20"})
    assert find(results, "ClipUp, fitness ranking").verdict == "not enough runs"


def test_unfinished_runs_do_not_count_for_final_scores(make_results: MakeResults) -> None:
    runs = [run_result(seed, 270.0, complete=False) for seed in range(1, 11)]
    results = make_results("fitness-scale", {"clipup-ranks": runs})
    assert find(results, "ClipUp, fitness ranking").runs == 0


def test_close_means_are_similar_and_far_ones_are_not(make_results: MakeResults) -> None:
    near = make_results("walker2d", {"clipup": scores(4000, 15, 500), "adam": scores(4100, 15, 500)})
    far = make_results("walker2d", {"clipup": scores(4000, 15, 100), "adam": scores(2000, 15, 100)})
    assert (verdicts(near)[0].verdict, verdicts(far)[0].verdict) == ("agrees", "differs")


def test_speeds_are_judged_from_a_single_unfinished_run(make_results: MakeResults) -> None:
    runs = {
        "clipup": [run_result(1, 900.0, complete=False, speeds=SPEEDS_CLIPUP)],
        "adam": [run_result(1, 900.0, complete=False, speeds=SPEEDS_ADAM)],
    }
    assert {verdict.verdict for verdict in verdicts(make_results("update-magnitudes", runs))} == {"agrees"}


def test_speeds_that_have_not_settled_say_nothing_yet(make_results: MakeResults) -> None:
    runs = {"clipup": [run_result(1, 900.0, complete=False, speeds=SPEEDS_CLIPUP[:20])]}
    results = make_results("update-magnitudes", runs)
    assert find(results, "first update").verdict == "agrees"
    assert find(results, "settles there").verdict == "not enough runs"


def test_a_wrong_first_update_differs(make_results: MakeResults) -> None:
    runs = {"clipup": [run_result(1, 900.0, speeds=(8e-3, *SPEEDS_CLIPUP))]}
    assert find(make_results("update-magnitudes", runs), "first update").verdict == "differs"


def to_threshold(interactions: int, count: int = 15) -> list[RunResult]:
    return [
        run_result(
            seed, 6500.0, interactions=9000, score_interactions=(interactions + seed, 9000), scores=(6100.0, 6500.0)
        )
        for seed in range(1, count + 1)
    ]


def test_a_fifth_fewer_interactions_agree_with_the_paper_s_reduction(make_results: MakeResults) -> None:
    results = make_results("step-size", {"clipup": to_threshold(5000), "clipup-fast": to_threshold(4000)})
    verdict = find(results, "reaches 6000 with fewer")
    assert verdict.verdict == "agrees" and verdict.ours.startswith("19.9")
    worse = make_results("step-size", {"clipup": to_threshold(4000), "clipup-fast": to_threshold(5000)})
    assert find(worse, "reaches 6000 with fewer").verdict == "differs"


def test_a_reduction_is_no_increase_and_needs_runs_that_get_there(make_results: MakeResults) -> None:
    wide = [run for reached in (2000, 8900) for run in to_threshold(reached, 8)]
    slower = [run for reached in (2500, 8990) for run in to_threshold(reached, 8)]
    more = find(make_results("step-size", {"clipup": wide, "clipup-fast": slower}), "reaches 6000 with fewer")
    assert more.ours.startswith("-") and more.verdict == "differs"
    never = [run_result(seed, 100.0, interactions=5000) for seed in range(1, 16)]
    ever = [run_result(seed, 100.0, interactions=4000) for seed in range(1, 16)]
    none = find(make_results("step-size", {"clipup": never, "clipup-fast": ever}), "reaches 6000 with fewer")
    assert none.ours == "20.00 % fewer, 30 never reach it" and none.verdict == "differs"


def test_who_never_gets_there_is_not_earlier(make_results: MakeResults) -> None:
    never = [run_result(seed, 100.0) for seed in range(1, 16)]
    results = make_results("humanoid", {"clipup": never, "adam": to_threshold(5000)})
    verdict = find(results, "earlier than Adam")
    assert verdict.verdict == "differs" and verdict.ours == "never against 0.0 million"


def test_a_small_difference_that_is_significant_is_significant(make_results: MakeResults) -> None:
    results = make_results("step-size", {"clipup": scores(6988, 30, 100), "clipup-fast": scores(6528, 30, 100)})
    assert find(results, "not significant").verdict == "differs"
    results = make_results("step-size", {"clipup": scores(6988, 30, 900), "clipup-fast": scores(6980, 30, 900)})
    assert find(results, "not significant").verdict == "agrees"


def test_a_hair_s_breadth_is_not_clearly_better(make_results: MakeResults) -> None:
    groups = {"clipup-fast": scores(6501, 15, 500), "noclip-fast": scores(6500, 15, 500)}
    assert find(make_results("clipping", groups), "clearly better").verdict == "differs"


def test_adam_that_is_even_too_is_not_inconsistent(make_results: MakeResults) -> None:
    means = {"clipup": 272.0, "adam-0.15": 271.0, "adam-0.175": 271.0, "adam-0.2": 271.0}
    groups = {
        f"{family}-{scale}": scores(mean if scale == "raw" else 274.0)
        for family, mean in means.items()
        for scale in ("ranks", "raw", "times-1000", "over-1000")
    }
    assert find(make_results("fitness-scale", groups), "while Adam is not").verdict == "differs"


def test_more_generations_than_the_paper_s_say_nothing_about_its_scores(make_results: MakeResults) -> None:
    results = make_results("fitness-scale", {"clipup-ranks": scores(270)}, generations=500)
    assert find(results, "ClipUp, fitness ranking").verdict == "not enough runs"


def test_a_single_run_has_no_interval(make_results: MakeResults) -> None:
    results = make_results("fitness-scale", {"clipup-ranks": scores(270, 1)})
    assert find(results, "ClipUp, fitness ranking").interval == ""


def test_a_peak_that_may_still_come_is_not_denied(make_results: MakeResults) -> None:
    def verdict(*, complete: bool) -> str:
        runs = [run_result(1, 900.0, complete=complete, speeds=(2e-2,) * 150)]
        return find(make_results("clipping", {"noclip-fast": runs}), "rises above").verdict

    assert (verdict(complete=False), verdict(complete=True)) == ("not enough runs", "differs")


def test_spikes_of_single_runs_do_not_make_a_median(make_results: MakeResults) -> None:
    places = tuple(range(100_000_000, 1_200_000_000, 100_000_000))
    runs = [
        run_result(
            seed, 1000.0, score_interactions=places, scores=tuple(3600.0 if k == seed else 1000.0 for k in range(11))
        )
        for seed in range(10)
    ]
    found = verdicts(make_results("humanoid-bullet", {"clipup": runs}))
    assert [verdict.verdict for verdict in found] == ["differs", "differs"]


def test_runs_that_never_reach_the_threshold_are_told(make_results: MakeResults) -> None:
    slow = [run_result(seed, 100.0) for seed in range(1, 16)]
    results = make_results("step-size", {"clipup": slow, "clipup-fast": to_threshold(4000)})
    assert "15 never reach it" in find(results, "reaches 6000 with fewer").ours


def test_noclip_s_failures_and_speeds(make_results: MakeResults) -> None:
    good, bad = to_threshold(4000, 30), [run_result(seed, 5000.0) for seed in range(1, 9)]
    noclip = [*to_threshold(4000, 30)[8:], *bad]
    noclip = [
        run_result(seed, (run.score or 0.0) - 100.0, speeds=(1.1e-2, *[2.7e-2] * 199))
        for seed, run in enumerate(noclip, 1)
    ]
    results = make_results("clipping", {"clipup-fast": good, "noclip-fast": noclip})
    assert find(results, "Every ClipUp agent").ours == "30 of 30 reach it"
    assert find(results, "Some NoClip agents").verdict == "agrees"
    assert find(results, "rises above 2.5e-2").verdict == "agrees"
    assert find(results, "clearly better").verdict == "agrees"


@pytest.mark.parametrize(("reached", "verdict"), [(700_000_000, "agrees"), (900_000_000, "differs")])
def test_bullet_is_solved_in_time_or_not(make_results: MakeResults, reached: int, verdict: str) -> None:
    runs = [
        run_result(seed, 4200.0, score_interactions=(reached, 1_100_000_000), scores=(3600.0, 4200.0))
        for seed in range(1, 11)
    ]
    found = verdicts(make_results("humanoid-bullet", {"clipup": runs}))
    assert (found[0].verdict, found[1].verdict) == (verdict, "agrees")


def test_the_default_scheme_is_judged_without_runs(make_results: MakeResults) -> None:
    assert [verdict.verdict for verdict in verdicts(make_results("defaults-figure", {}))] == ["agrees"]


def test_scatter_makes_nothing_agree(make_results: MakeResults) -> None:
    wide = make_results("fitness-scale", {"adam-0.15-over-1000": scores(70, 10, 240)})
    assert find(wide, "Adam 0.15, rewards / 1000").verdict == "not enough runs"
    apart = make_results("walker2d", {"clipup": scores(5000, 15, 6000), "adam": scores(3500, 15, 6000)})
    assert verdicts(apart)[0].verdict == "doubted" and verdicts(apart)[0].supporting < 4
    groups = {"adam-0.15-ranks": scores(270, 10, 60), "adam-0.15-times-1000": scores(240, 10, 200)}
    drop = find(make_results("fitness-scale", groups), "at 0.15, rewards × 1000")
    assert drop.verdict == "doubted" and drop.text == "supported by 5 of 10 seeds"


def test_a_reduction_that_may_be_none_is_open(make_results: MakeResults) -> None:
    before = [run for reached in (2000, 8900) for run in to_threshold(reached, 8)]
    after = [run for reached in (1900, 8890) for run in to_threshold(reached, 8)]
    verdict = find(make_results("step-size", {"clipup": before, "clipup-fast": after}), "reaches 6000 with fewer")
    assert verdict.verdict == "supported" and not verdict.ours.startswith("-")


def test_a_lead_that_another_sample_would_turn_is_no_lead(make_results: MakeResults) -> None:
    early = [run for reached in (2000, 8900) for run in to_threshold(reached, 8)]
    late = [run for reached in (2001, 8901) for run in to_threshold(reached, 8)]
    assert find(make_results("humanoid", {"clipup": early, "adam": late}), "earlier").verdict == "supported"
    clear = make_results("humanoid", {"clipup": to_threshold(2000), "adam": to_threshold(5000)})
    assert find(clear, "earlier").verdict == "agrees"


def test_which_family_is_most_even_stays_open_where_luck_could_decide(make_results: MakeResults) -> None:
    families = ("adam-0.15", "adam-0.175", "adam-0.2")
    groups = {
        f"{family}-{scale}": scores(260 if scale == "ranks" else 80 + place, 10, 200)
        for place, family in enumerate(families)
        for scale in ("ranks", "raw", "times-1000", "over-1000")
    }
    assert find(make_results("fitness-scale", groups), "most stable").verdict == "doubted"


def test_speeds_that_swing_about_a_range_have_not_settled_in_it(make_results: MakeResults) -> None:
    swinging = [run_result(1, 900.0, complete=False, speeds=(1e-3, 1.55e-2, 4e-2) * 70)]
    assert find(make_results("update-magnitudes", {"adam": swinging}), "drops to values").verdict == "differs"


def test_agents_that_all_fail_are_not_some(make_results: MakeResults) -> None:
    failing = [run_result(seed, 3000.0) for seed in range(1, 16)]
    assert find(make_results("clipping", {"noclip-fast": failing}), "Some NoClip agents").verdict == "differs"


def test_a_peak_of_shortened_runs_may_still_come(make_results: MakeResults) -> None:
    runs = [run_result(1, 900.0, speeds=(2e-2,) * 150)]
    results = make_results("clipping", {"noclip-fast": runs}, generations=150)
    assert find(results, "rises above").verdict == "not enough runs"


# ---- verdicts from fewer runs than the rules need ------------------------------------------------------------------


def solved(seed: int, *last: float, complete: bool = False) -> RunResult:
    """A run on the Humanoid whose last evaluations are these."""
    return run_result(seed, last[-1], complete=complete, scores=last, score_interactions=tuple(range(len(last))))


def test_few_runs_support_a_claim_and_what_would_overturn_it_is_said(make_results: MakeResults) -> None:
    runs = [solved(1, 6100.0, 6200.0, complete=True), solved(2, 6500.0, 6600.0, complete=True), solved(3, 900.0, 700.0)]
    verdict = find(make_results("humanoid", {"clipup": runs}), "ClipUp scores over 6000")
    assert verdict.verdict == "supported"
    assert verdict.text == (
        "supported by 2 of 3 runs (1 unfinished); 15 finished runs with a mean of 6000 or less would overturn this"
    )


def test_an_unfinished_run_supports_a_threshold_by_two_evaluations_in_a_row(make_results: MakeResults) -> None:
    def verdict(*last: float) -> str:
        return find(make_results("humanoid", {"clipup": [solved(1, *last)]}), "ClipUp scores over 6000").verdict

    assert verdict(900.0, 6100.0, 6200.0) == "supported"
    assert verdict(6100.0, 900.0, 6200.0) == "not enough runs"
    assert verdict(6200.0) == "not enough runs"


def test_a_finished_run_that_missed_the_threshold_counts_against_the_claim(make_results: MakeResults) -> None:
    runs = [solved(1, 6100.0, 5900.0, complete=True), solved(2, 6100.0, 6200.0)]
    verdict = find(make_results("humanoid", {"clipup": runs}), "ClipUp scores over 6000")
    assert verdict.verdict == "doubted" and verdict.text == "supported by 1 of 2 runs"


def test_groups_are_compared_seed_by_seed(make_results: MakeResults) -> None:
    def final(*values: float) -> list[RunResult]:
        return [run_result(seed, value) for seed, value in enumerate(values, 1)]

    groups = {"clipup-small": final(6600, 6500, 900), "noclip-small": final(5000, 5100, 2000, 9000)}
    verdict = find(make_results("small-population", groups), "better than NoClip")
    assert verdict.text.startswith("supported by 2 of 3 seeds; 15 runs per group without a clear lead")
    alone = find(make_results("small-population", {"clipup-small": final(6600)}), "better than NoClip")
    assert alone.verdict == "not enough runs"


def test_of_two_runs_that_were_stopped_the_better_one_solved_the_task_sooner(make_results: MakeResults) -> None:
    def stopped(interactions: int, *, solved: bool) -> RunResult:
        scores = (900.0, 6100.0 if solved else 950.0)
        places = (interactions // 2, interactions)
        return run_result(
            1, scores[-1], complete=False, scores=scores, score_interactions=places, interactions=interactions
        )

    def verdict(clipup: RunResult, noclip: RunResult) -> str:
        groups = {"clipup-small": [clipup], "noclip-small": [noclip]}
        return find(make_results("small-population", groups), "better than NoClip").verdict

    assert verdict(stopped(3000, solved=True), stopped(4000, solved=False)) == "supported"
    assert verdict(stopped(3000, solved=True), stopped(2000, solved=False)) == "not enough runs"
    assert verdict(stopped(3000, solved=True), stopped(2000, solved=True)) == "doubted"


@pytest.mark.parametrize(
    ("clipup", "adam", "verdict"),
    [
        ({"reached": 3000}, {"interactions": 4000}, "supported"),  # Adam went further and has not reached it
        ({"reached": 3000}, {"interactions": 2000}, "not enough runs"),  # Adam may still be earlier
        ({"interactions": 4000}, {"reached": 3000}, "doubted"),
        ({"reached": 3000}, {"reached": 3500}, "supported"),
        ({"interactions": 4000}, {"interactions": 4000}, "not enough runs"),
    ],
)
def test_who_is_earlier_is_known_before_the_runs_are_finished(
    make_results: MakeResults, clipup: dict[str, int], adam: dict[str, int], verdict: str
) -> None:
    def run(reached: int | None = None, interactions: int = 5000) -> RunResult:
        curve = {"scores": (100.0,), "score_interactions": (interactions,)}
        if reached is not None:
            curve = {"scores": (5500.0,), "score_interactions": (reached,)}
        return run_result(1, 100.0, complete=False, interactions=interactions, **curve)

    results = make_results("humanoid", {"clipup": [run(**clipup)], "adam": [run(**adam)]})
    assert find(results, "earlier than Adam").verdict == verdict


def test_runs_with_other_settings_support_nothing_and_shortened_ones_only_thresholds(make_results: MakeResults) -> None:
    runs = {"clipup": [solved(1, 6100.0, 6200.0, complete=True)], "adam": [solved(1, 6100.0, 6200.0, complete=True)]}
    changed = verdicts(make_results("humanoid", runs, changes={"population": "20"}))
    assert {verdict.verdict for verdict in changed} == {"not enough runs"}
    shortened = make_results("humanoid", runs, generations=10)
    assert find(shortened, "ClipUp scores over 6000").verdict == "supported"
    assert find(shortened, "very similar").verdict == "not enough runs"


def test_a_claim_about_a_mean_or_a_share_cannot_be_asked_of_single_runs(make_results: MakeResults) -> None:
    runs = {"noclip-fast": [run_result(1, 5000.0)], "clipup-fast": [run_result(1, 6500.0)]}
    results = make_results("clipping", runs)
    assert find(results, "Some NoClip agents").verdict == "not enough runs"
    assert find(results, "Every ClipUp agent").text.startswith("supported by 1 of 1 run; one run below 6000 among 15")


@pytest.mark.parametrize(
    ("interactions", "score", "expected"),
    [
        (700_000_000, 4200.0, ["supported", "supported"]),
        (900_000_000, 3900.0, ["doubted", "doubted"]),
    ],
)
def test_one_bullet_run_is_asked_by_itself(
    make_results: MakeResults, interactions: int, score: float, expected: list[str]
) -> None:
    run = run_result(1, score, score_interactions=(interactions, 1_100_000_000), scores=(3600.0, score))
    assert [verdict.verdict for verdict in verdicts(make_results("humanoid-bullet", {"clipup": [run]}))] == expected
