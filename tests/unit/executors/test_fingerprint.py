"""What a fingerprint of arithmetic covers, and when two of them differ."""

from __future__ import annotations

import numpy as np
import pytest

from clipup.engines import Task, make_engine
from clipup.executors import fingerprint
from clipup.executors.fingerprint import Fingerprint, act_digest
from clipup.policies import Actions, Network

ACTIONS = Actions.box(np.full(2, -1, np.float32), np.ones(2, np.float32))


class Rounds(Network):
    """A network of a user's own, one last bit of whose outputs is different."""

    def forward(self, parameters: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        outputs = super().forward(parameters, inputs)
        return np.nextafter(outputs, np.float32(np.inf), dtype=np.float32)


def test_unknown_parts_differ_from_nothing_and_known_ones_are_kept() -> None:
    known, other = Fingerprint("a", "b"), Fingerprint("a", "c")
    assert known.differs_in(known) == known.differs_in(Fingerprint()) == Fingerprint("", "b").differs_in(known) == ""
    assert known.differs_in(other) == "the simulator (b and c)"
    assert Fingerprint("x", "y").differs_in(known) == "the policy (x and a) and the simulator (y and b)"
    assert Fingerprint("a").or_else(known) == known


@pytest.mark.parametrize("part", ["standard_normal", "normalize", "observe_rows", "forward"])
def test_a_last_bit_of_float32_in_any_part_of_the_act_changes_its_digest(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Network(3, 2, (4,))
    before = act_digest(network, ACTIONS)
    assert before == act_digest(network, ACTIONS)

    def nudged(function):
        def call(*arguments, **options):
            found = function(*arguments, **options)
            return np.nextafter(found, np.inf, dtype=found.dtype)

        return call

    if part == "standard_normal":

        class Nudged(np.random.Generator):
            standard_normal = nudged(np.random.Generator.standard_normal)

        monkeypatch.setattr(fingerprint.np.random, "Generator", Nudged)
    elif part == "observe_rows":
        monkeypatch.setattr(fingerprint, "observe_rows", lambda rows, count, mean, m2: mean.__iadd__(rows))
    elif part == "normalize":
        actual = fingerprint.Statistics
        monkeypatch.setattr(fingerprint, "Statistics", lambda mean, stdev: actual(mean, stdev * (1 + 2e-7)))
    else:
        monkeypatch.setattr(Network, "forward_arranged", nudged(Network.forward_arranged))
    assert act_digest(network, ACTIONS) != before


@pytest.mark.parametrize("engine", ["compiled", "envpool", "gymnasium"])
def test_every_engine_tells_what_its_simulator_computes_whatever_it_did_before(engine: str) -> None:
    digests = []
    for threads in (1, 2):
        made = make_engine(Task("Hopper-v4", engine=engine), lanes=4, threads=threads)
        digests += [made.inspect().digest, made.inspect().digest]
        made.close()
    assert len(set(digests)) == 1 and digests[0]
    other = make_engine(Task("Hopper-v4", {"reset_noise_scale": 0.02}, engine=engine), lanes=4, threads=1)
    assert other.inspect().digest not in digests
    other.close()
