"""The search over max_speed, on made-up tasks whose best value is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from clipup.errors import InvalidArgument
from clipup.tuning.speed_search import Point, TuningSettings, planned_cost, scan_cost, search_max_speed

Task = Callable[[float, float], float]


class MadeUp:
    """Runs whose value is a function of max_speed and how long they ran, plus luck that belongs to the seed."""

    def __init__(self, task: Task, noise: float = 0.0, luck: int = 0) -> None:
        self.task, self.noise, self.luck = task, noise, luck
        self.shares: dict[tuple[Point, int], float] = {}
        self.log: list[tuple[Point, int, float]] = []

    def spent(self) -> float:
        return sum(self.shares.values())

    def cost(self, point: Point, seed: int, share: float) -> float:
        return max(0.0, share - self.shares.get((point, seed), 0.0))

    def value(self, point: Point, seed: int, share: float) -> float:
        self.shares[point, seed] = max(share, self.shares.get((point, seed), 0.0))
        self.log.append((point, seed, share))
        key = [self.luck, seed, int(point.max_speed * 1e9) % 2**31, int(share * 10)]
        return self.task(point.max_speed, share) + self.noise * float(np.random.default_rng(key).standard_normal())


def hill(best: float, width: float = 1.2) -> Task:
    """Learns up to 100 at the best speed; falls off on both sides; slow speeds learn later."""

    def task(speed: float, share: float) -> float:
        level = 100 * math.exp(-((math.log10(speed / best) / width) ** 2))
        pace = min(1.0, share * (1 + 2 * min(1.0, speed / best)))
        return level * pace

    return task


@pytest.mark.parametrize("best", [0.004, 0.015, 0.07, 0.15, 0.3, 1.0, 4.0, 9.0])
@pytest.mark.parametrize("luck", [0, 1, 2])
def test_it_comes_within_5_percent_of_the_best_in_20_runs_in_spite_of_noise(best: float, luck: int) -> None:
    runs = MadeUp(hill(best), noise=5.0, luck=luck)
    answer = search_max_speed(runs, TuningSettings())[0]
    assert hill(best)(answer.point.max_speed, 1.0) >= 95
    assert runs.spent() <= 20
    assert len(answer.values) == 5


@pytest.mark.parametrize("best", [0.0005, 50.0])
def test_a_best_beyond_the_range_is_followed_outward(best: float) -> None:
    answer = search_max_speed(MadeUp(hill(best)), TuningSettings())[0]
    assert answer.point.max_speed < 0.003 if best < 0.003 else answer.point.max_speed > 10


def test_a_plateau_at_the_end_of_the_range_is_not_followed_outward() -> None:
    """As where doing nothing pays best: the smaller the steps, the better, by next to nothing."""
    runs = MadeUp(lambda speed, share: -speed)
    answer = search_max_speed(runs, TuningSettings())[0]
    assert answer.point.max_speed >= 0.001


def test_most_values_are_stopped_early() -> None:
    runs = MadeUp(hill(0.1))
    search_max_speed(runs, TuningSettings())
    furthest = {point: share for (point, seed), share in runs.shares.items() if seed == 0}
    assert sum(share == 0.5 for share in furthest.values()) >= 4
    assert sum(share == 1.0 for share in furthest.values()) <= 6


def test_searching_again_with_the_same_answers_makes_the_same_decisions() -> None:
    one, two = MadeUp(hill(0.1), noise=5.0), MadeUp(hill(0.1), noise=5.0)
    assert search_max_speed(one, TuningSettings()) == search_max_speed(two, TuningSettings())
    assert one.log == two.log


@pytest.mark.parametrize("budget", [5.5, 7.0, 9.0, 13.0, 20.0])
def test_the_budget_is_never_exceeded(budget: float) -> None:
    runs = MadeUp(hill(0.1), noise=5.0)
    search_max_speed(runs, TuningSettings(budget=budget))
    assert runs.spent() <= budget + 1e-9


def test_runs_that_fail_lose() -> None:
    runs = MadeUp(lambda speed, share: -math.inf if speed > 0.2 else hill(0.05)(speed, share))
    answer = search_max_speed(runs, TuningSettings())[0]
    assert answer.point.max_speed < 0.2 and math.isfinite(answer.mean)


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.02), (0.0, 0.004), (0.25, 0.35)])
def test_the_few_values_that_work_are_found_where_most_fail(low: float, high: float) -> None:
    runs = MadeUp(lambda speed, share: 100 * share if low < speed < high else -math.inf)
    answer = search_max_speed(runs, TuningSettings())[0]
    assert low < answer.point.max_speed < high and answer.mean == 100
    scanned = [point for point, seed, share in runs.log if seed == 0 and share == 0.5]
    working = {point for point in scanned[:8] if low < point.max_speed < high}
    assert 1 <= len(working) <= 2
    assert all(runs.shares[point, 0] == 1.0 for point in working)


class Deceptive(MadeUp):
    """Runs whose value also depends on the seed, in a way that is given."""

    def __init__(self, task: Callable[[Point, int], float]) -> None:
        super().__init__(hill(0.1))
        self.of = task

    def value(self, point: Point, seed: int, share: float) -> float:
        super().value(point, seed, share)
        return self.of(point, seed)


def slope(point: Point) -> float:
    return 100 - 5 * math.log(point.max_speed / 0.3) ** 2


@pytest.mark.parametrize("budget", [10.0, 12.0, 13.0, 15.0, 17.5, 20.0])
def test_a_lucky_first_seed_does_not_win_once_others_have_spoken(budget: float) -> None:
    def lucky(point: Point, seed: int) -> float:
        return (101.0 if seed == 0 else 10.0) if point.max_speed == 0.309 else slope(point)

    answer = search_max_speed(Deceptive(lucky), TuningSettings(budget=budget))[0]
    assert answer.point.max_speed == 0.173 and answer.mean > 98


def test_further_settings_that_fail_late_do_not_win_by_being_asked_more_often() -> None:
    def late(point: Point, seed: int) -> float:
        return -50.0 if point.radius_factor == 13 and seed >= 3 else slope(point) + (point.radius_factor or 11) - 11

    def suggest(point: Point, number: int) -> Point:
        return Point(point.max_speed, radius_factor=10.0 + number)

    assert search_max_speed(Deceptive(late), TuningSettings(), suggest)[0].point.radius_factor == 12


def test_finalists_get_their_seeds_in_turn_and_all_or_none() -> None:
    for budget in np.arange(7.5, 20.5, 0.5):
        runs = MadeUp(hill(0.1), noise=5.0)
        counts = [len(standing.values) for standing in search_max_speed(runs, TuningSettings(budget=float(budget)))]
        assert counts[0] == counts[1] >= counts[2] >= counts[0] - 2
    assert counts[:4] == [5, 5, 3, 1]


def test_a_value_whose_late_seeds_fail_does_not_lead() -> None:
    runs = Deceptive(lambda point, seed: -math.inf if seed >= 3 else slope(point))
    assert math.isfinite(search_max_speed(runs, TuningSettings())[0].mean)


def test_when_every_run_fails_there_is_no_answer() -> None:
    with pytest.raises(InvalidArgument, match="every run failed"):
        search_max_speed(MadeUp(lambda speed, share: -math.inf), TuningSettings())


def test_further_settings_are_searched_about_the_best_speed() -> None:
    seen: list[Point] = []

    def suggest(point: Point, number: int) -> Point:
        seen.append(Point(point.max_speed, radius_factor=10.0 + number))
        return seen[-1]

    standings = search_max_speed(MadeUp(hill(0.1)), TuningSettings(), suggest)
    assert len(seen) == 4
    assert {point.max_speed for point in seen} == {standings[0].point.max_speed}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"low": 0.0}, "0 < low < high"),
        ({"low": 1.0, "high": 0.5}, "0 < low < high"),
        ({"high": math.inf}, "0 < low < high"),
        ({"points": 2}, "at least 3"),
        ({"budget": 1.0}, "needs a budget"),
        ({"budget": math.nan}, "needs a budget"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        TuningSettings(**settings)


class Watched(MadeUp):
    """Runs that note, after each, how much the search said that it would take."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.planned = math.nan
        self.left: list[float] = []

    def expect(self, planned: float) -> None:
        self.planned = planned

    def value(self, point: Point, seed: int, share: float) -> float:
        value = super().value(point, seed, share)
        self.left.append(self.planned - self.spent())
        return value


@pytest.mark.parametrize("best", [0.1, 0.0005, 50.0, 500.0])
@pytest.mark.parametrize("budget", [20.0, 30.0])
def test_what_is_left_counts_extensions_of_the_range_and_is_nothing_only_at_the_end(best: float, budget: float) -> None:
    runs = Watched(hill(best))
    search_max_speed(runs, TuningSettings(budget=budget), expect=runs.expect)
    assert min(runs.left) >= 0 and runs.left[0] == planned_cost(TuningSettings(budget=budget), with_extra=False) - 0.5
    if runs.spent() + 3 < budget:  # with less, finalists go without their last seeds
        assert runs.left[-10:] == list(range(9, -1, -1))
    assert all(left > 0 for left in runs.left[:-1])


def test_what_is_left_counts_no_finalists_that_failed() -> None:
    runs = Watched(lambda speed, share: 100 * share if 0.25 < speed < 0.35 else -math.inf)
    search_max_speed(runs, TuningSettings(), expect=runs.expect)
    assert runs.left[-4:] == [3, 2, 1, 0]


def test_what_is_left_counts_the_further_settings() -> None:
    runs = Watched(hill(0.1))
    search_max_speed(
        runs, TuningSettings(budget=40), lambda point, number: Point(point.max_speed, 10.0 + number), expect=runs.expect
    )
    assert runs.planned == runs.spent() and all(left > 0 for left in runs.left[:-1])


def test_the_plan_fits_its_default_budget() -> None:
    assert scan_cost(8) == pytest.approx(8 * 0.5 + 3 * 0.5)
    assert 10 < planned_cost(TuningSettings(), with_extra=True) <= 20


def test_values_that_make_no_difference_are_noticed_within_three_runs() -> None:
    runs = MadeUp(lambda speed, share: -200.0)
    standings = search_max_speed(runs, TuningSettings())
    assert runs.spent() <= 3 and {standing.values for standing in standings} == {(-200.0,)}


def test_values_that_differ_only_at_the_end_of_a_run_are_searched_as_usual() -> None:
    runs = MadeUp(lambda speed, share: hill(0.1)(speed, share) if share == 1 else 0.0)
    assert hill(0.1)(search_max_speed(runs, TuningSettings())[0].point.value("max_speed"), 1.0) >= 95


def test_another_setting_can_be_searched_first() -> None:
    class Ratio(MadeUp):
        def value(self, point: Point, seed: int, share: float) -> float:
            self.shares[point, seed] = max(share, self.shares.get((point, seed), 0.0))
            assert point.max_speed is None and point.radius_factor is not None
            return hill(15.0)(point.radius_factor, share)

    found = search_max_speed(Ratio(hill(1.0)), TuningSettings(low=1.5, high=150.0, setting="radius_factor"))[0]
    assert found.point.radius_factor is not None and 8 < found.point.radius_factor < 30


def test_a_close_runner_up_with_one_seed_gets_its_seeds_before_it_is_dropped() -> None:
    """All values are about as good: no one seed can tell them apart."""

    class Unlucky(MadeUp):
        def value(self, point: Point, seed: int, share: float) -> float:
            super().value(point, seed, share)
            return 100.0 - abs(math.log10(point.value("max_speed"))) - (0, 9, 5, 1, 3)[seed]

    grid = TuningSettings(budget=40)
    runs = Unlucky(hill(1.0))
    standings = search_max_speed(runs, grid)
    seeds = {standing.point.value("max_speed"): len(standing.values) for standing in standings}
    assert sum(count >= 3 for count in seeds.values()) == 4
