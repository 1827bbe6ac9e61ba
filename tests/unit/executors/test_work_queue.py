"""Every index gets one result, whatever is lost and in whatever order results come."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clipup.executors.work_queue import RangeRule, RangeSizer, Span, WorkQueue


@given(
    start=st.integers(0, 9),
    batches=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    step=st.sampled_from([1, 2]),
    chance=st.floats(0, 0.6),
    seed=st.integers(0, 2**32),
)
def test_results_are_complete_and_in_order_whatever_is_lost(
    start: int, batches: list[int], step: int, chance: float, seed: int
) -> None:
    dice = random.Random(seed)
    queue: WorkQueue[list[int]] = WorkQueue(start, tries=10**9, step=step)
    stop = start + sum(batches)
    edge = start
    working: list[Span] = []
    while queue.ready(start) < stop:
        if edge < stop and (not queue.waiting or dice.random() < 0.3):
            edge += batches.pop(0)
            queue.extend(edge)
        span = queue.take(dice.randint(1, 9))
        if span is not None:
            working.append(span)
        if working and dice.random() < 0.7:
            span = working.pop(dice.randrange(len(working)))
            fate = dice.random()
            if fate < chance:
                assert queue.lose(span.start) is None
            elif fate < chance * 1.2:
                queue.give_back(span.start)
            else:
                queue.finish(span.start, list(range(span.start, span.stop)))
    results = queue.collect(start, stop)
    assert [index for result in results for index in result] == list(range(start, stop))


def test_the_index_that_kills_its_workers_is_found_and_named() -> None:
    queue: WorkQueue[None] = WorkQueue(0, 64, tries=3)
    losses = 0
    for _ in range(1000):
        span = queue.take(16)
        assert span is not None
        if span.start <= 21 < span.stop:
            losses += 1
            given_up = queue.lose(span.start)
            if given_up is not None:
                break
        else:
            queue.finish(span.start, None)
    else:
        pytest.fail("an index that always fails was never given up")
    assert str(given_up) == "21"
    assert given_up.losses == 3
    assert losses == 4 + 3, "16 indices are halved four times, and the last one is tried three times"


def test_pairs_stay_together_until_one_of_them_is_suspected() -> None:
    queue: WorkQueue[None] = WorkQueue(10, 22)
    span = queue.take(6)
    assert span == Span(10, 16)
    queue.lose(span.start)
    assert queue.take(6) == Span(10, 12)
    assert queue.take(6) == Span(12, 16)
    assert queue.take(6) == Span(16, 22)
    queue.lose(10)
    assert queue.take(6) == Span(10, 11)


@given(waiting=st.integers(1, 10**6), workers=st.integers(1, 2000), each=st.floats(1e-7, 1e3))
def test_a_range_is_even_and_a_fair_share_and_never_long(waiting: int, workers: int, each: float) -> None:
    sizer = RangeSizer(RangeRule(message=0.0004, longest=3.0))
    assert sizer.size(waiting, workers) == 2, "nothing is known yet"
    sizer.learn(4, 4 * each)
    size = sizer.size(waiting, workers)
    assert size % 2 == 0
    assert 2 <= size <= max(2, waiting / workers + 2)
    assert size == 2 or (size - 2) * each <= 3.0


def test_ranges_shrink_towards_the_end_of_a_batch() -> None:
    sizer = RangeSizer(RangeRule())
    sizer.learn(1, 0.005)
    sizes = [sizer.size(waiting, 2) for waiting in (600, 300, 100, 30, 8)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 2
