"""What is packed comes back to the bit, and errors come back as what they were."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clipup.engines import Failure, Outcomes
from clipup.errors import ClipUpError, Diverged, EnvironmentFault
from clipup.executors import wire
from clipup.policies import Moments


@given(rows=st.integers(0, 5), size=st.integers(0, 4), failures=st.lists(st.text(max_size=9), max_size=3))
def test_outcomes_come_back_to_the_bit(rows: int, size: int, failures: list[str]) -> None:
    dice = np.random.default_rng(rows * 10 + size)
    fitness = dice.normal(size=rows)
    fitness[:1] = np.nan
    moments = Moments(np.arange(rows), dice.normal(size=(rows, size)), dice.normal(size=(rows, size))) if size else None
    failed = tuple(Failure(index, text) for index, text in enumerate(failures))
    sent = Outcomes(fitness, -fitness, np.arange(rows), moments, failed)
    received = wire.unpack(wire.pack(sent))
    assert isinstance(received, Outcomes)
    assert received.failures == failed
    pairs = [(sent.fitness, received.fitness), (sent.returns, received.returns)]
    pairs += [(sent.interactions, received.interactions)]
    if moments is not None:
        assert received.moments is not None
        pairs += [(getattr(moments, name), getattr(received.moments, name)) for name in ("count", "mean", "m2")]
    for one, other in pairs:
        assert (one.shape, one.dtype, one.tobytes()) == (other.shape, other.dtype, other.tobytes())


@given(blocks=st.integers(1, 4), shapes=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), max_size=3))
def test_sums_of_any_shape_come_back_to_the_bit(blocks: int, shapes: list[list[int]]) -> None:
    dice = np.random.default_rng(blocks)
    sent = [tuple(dice.normal(size=shape) for shape in shapes) for _ in range(blocks)]
    received = wire.unpack(wire.pack(sent))
    assert isinstance(received, list)
    assert [len(block) for block in received] == [len(shapes)] * blocks
    for block, other in zip(sent, received, strict=True):
        for one, two in zip(block, other, strict=True):
            assert (one.shape, one.tobytes()) == (two.shape, two.tobytes())


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (Diverged("too far"), Diverged, "too far"),
        (ZeroDivisionError("by 0"), EnvironmentFault, "a worker failed with ZeroDivisionError: by 0"),
    ],
)
def test_an_error_keeps_its_class_and_brings_its_traceback(
    error: Exception, kind: type[ClipUpError], message: str
) -> None:
    try:
        raise error
    except Exception as raised:
        received = wire.unpack_error(wire.pack_error(raised))
    assert type(received) is kind
    assert str(received) == message
    assert "Traceback" in received.__notes__[0]
