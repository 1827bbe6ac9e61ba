"""Seeds are functions of their index."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clipup.engines.seeding import int31, seed_indices, seed_words, uint32
from clipup.errors import InvalidArgument


def words(indices: list[int], **changes: object) -> list[int]:
    fields = {"epoch": 3, "stream": "training", **changes}
    seed = fields.pop("seed", 7)
    purpose = fields.pop("purpose", "candidate")
    return seed_words(seed, purpose, indices=np.array(indices), **fields).tolist()  # type: ignore[arg-type]


@given(st.integers(0, 2**64 - 1), st.integers(0, 10**6), st.integers(0, 10**9), st.integers(1, 50))
def test_a_range_of_seeds_equals_its_members(seed: int, generation: int, first: int, count: int) -> None:
    together = words(list(range(first, first + count)), seed=seed, epoch=generation)
    assert words([first + count - 1], seed=seed, epoch=generation) == together[-1:]
    assert words([first], seed=seed, epoch=generation) == together[:1]


def test_order_and_repeats_of_indices_are_kept() -> None:
    a, b, c = words([4, 5, 9])[0], words([5])[0], words([9])[0]
    assert words([9, 4, 5, 4]) == [c, a, b, a]


def test_everything_that_names_a_seed_changes_it() -> None:
    seeds = [
        words([4])[0],
        words([5])[0],
        words([4], seed=8)[0],
        words([4], epoch=4)[0],
        words([4], stream="evaluation")[0],
        words([4], episode=1)[0],
        words([4], purpose="home")[0],
        words([4], purpose="overflow")[0],
    ]
    assert len(set(seeds)) == len(seeds)


def test_seeds_fit_where_they_go() -> None:
    raw = np.array([0, 2**64 - 1], np.uint64)
    assert int31(raw) == [0, 2**31 - 1]
    assert uint32(raw) == [0, 2**32 - 1]


def test_sharing_maps_candidates_to_common_indices() -> None:
    indices = np.arange(6)
    assert seed_indices(indices, "independent").tolist() == [0, 1, 2, 3, 4, 5]
    assert seed_indices(indices, "pair").tolist() == [0, 0, 1, 1, 2, 2]
    assert seed_indices(indices, "shared").tolist() == [0] * 6


@pytest.mark.parametrize("changes", [{"seed": -1}, {"seed": 2**64}, {"epoch": -1}, {"stream": "other"}])
def test_what_cannot_be_a_seed_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        words([0], **changes)
    with pytest.raises(InvalidArgument):
        words([-1])
