"""Sees a crew through its work: hands out ranges, takes in results, outlives lost workers."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable

from clipup.engines import registry
from clipup.errors import EnvironmentFault
from clipup.executors.crew import Assignment, Crew, Event, Failed, Finished, Joined, Lost
from clipup.executors.pace import Pace
from clipup.executors.ranges import Ranges
from clipup.executors.work import Subject
from clipup.executors.worker import Description

TRIES = 3
"""Workers that may be lost on a single candidate before the run ends."""

STARTS = 8
"""Workers that may be lost in a row while they start, where there are few of them."""

SLOW_START = 10.0
"""Seconds after which waiting for the first worker is mentioned."""

_logger = logging.getLogger("clipup")


class Foreman:
    """Has one subject at a time done, index by index, by whoever is there.

    Parameters
    ----------
    crew
        The workers.
    episode_timeout
        Seconds that each of a subject's `episodes` may take: a worker that holds a range for longer than that times
        its episodes is ended, and counts as lost.
    """

    def __init__(self, crew: Crew, *, episode_timeout: float | None) -> None:
        self._crew = crew
        self._timeout = episode_timeout
        self._held: dict[int, deque[Assignment]] = {}
        self._began: dict[int, float] = {}  # when a member turned to the first assignment that it holds
        self._job = 0
        self._limits: dict[int, float | None] = {}  # seconds that one index of a job may take
        self._needed = 0  # indices from here on are speculation
        self._hopeless: tuple[int, EnvironmentFault] | None = None  # a speculative index, and why it was given up
        self._subject: Subject | None = None
        self._ranges: Ranges[bytes] = Ranges()
        self._next: range = range(0)
        self._paces: dict[str, Pace] = {}
        self._failed_starts = 0
        self._interrupted = False
        self._description: Description | None = None

    def meet(self) -> Description:
        """Return what the workers say of themselves, as soon as one of them is ready."""
        began, told = time.monotonic(), False

        def joined() -> bool:
            nonlocal told
            if not told and time.monotonic() - began > SLOW_START:
                told = True
                _logger.warning(
                    "no worker is ready after %g s: waiting for imports, or room on the cluster", SLOW_START
                )
            return self._description is not None

        self._until(joined)
        if self._description is None:
            raise EnvironmentFault("no worker has joined")
        return self._description

    def begin(self, subject: Subject, start: int = 0) -> None:
        """Turn to `subject`, whose first index is `start`; what was done of anything else is dropped."""
        if self._interrupted:
            self._crew.restart()
            self._held.clear()
            self._interrupted = False
        self._job += 1
        self._subject, self._ranges = subject, Ranges(start, tries=TRIES, step=subject.step)
        self._hopeless = None
        under_way = {assignment.job for held in self._held.values() for assignment in held}
        self._limits = {job: limit for job, limit in self._limits.items() if job in under_way}
        self._limits[self._job] = self._timeout * subject.episodes if self._timeout and subject.episodes else None
        self._crew.publish(self._job, subject)

    @property
    def subject(self) -> Subject | None:
        """The subject of the moment; None where it cannot be gone on with."""
        return None if self._interrupted else self._subject

    def do(self, start: int, stop: int, following: range = range(0)) -> list[bytes]:
        """Return the results of the indices ``start … stop - 1``, in order.

        Workers that find nothing more to do go on with the indices of `following`, which must come next.
        """
        if self._subject is not None and start < self._ranges.end != stop:
            self.begin(self._subject, start)  # other indices were begun than are asked for now
        self._ranges.add(start, stop)
        self._next, self._needed = following, stop
        if self._hopeless is not None and self._hopeless[0] < stop:
            raise self._hopeless[1]
        self._until(lambda: self._ranges.ready(start) >= stop)
        return self._ranges.collect(start, stop)

    def do_some(self, start: int, stop: int) -> tuple[int, list[bytes]]:
        """Have the indices ``start … stop - 1`` done, but return as soon as the first of them are.

        Returns the index that comes next, and the results of those before it.
        """
        self._ranges.add(start, stop)
        self._next, self._needed = range(0), stop
        self._until(lambda: self._ranges.ready(start) > start)
        end = self._ranges.ready(start)
        return end, self._ranges.collect(start, end)

    def _until(self, done: Callable[[], bool]) -> None:
        try:
            while not done():
                self._hand_out()
                for event in self._crew.wait(self._patience()):
                    self._handle(event)
        except BaseException:
            # An exception out of a signal handler may have come between an event and its handling.
            self._interrupted = True
            raise

    def _hand_out(self) -> None:
        for holding in range(self._crew.depth):
            for member, held in self._held.items():
                if len(held) == holding and (not held or held[-1].job == self._job):
                    self._give(member, spare=holding > 0)

    def _give(self, member: int, *, spare: bool) -> None:
        ranges, following = self._ranges, self._next
        if following and not spare and not ranges.waiting:
            ranges.add(following.start, following.stop)
        speculative = bool(following) and ranges.first >= following.start
        # Smaller ranges where the work may turn out to be for nothing: all of them have to end before something else.
        workers = len(self._held) * (2 if speculative else 1)
        pace = self._pace()
        size = pace.size(ranges.waiting, workers)
        held = self._held[member]
        if spare and (speculative or ranges.waiting < size * workers or not pace.is_short(size)):
            return  # at the end of a batch, a range that waits in one worker's hands would be missed by another
        if spare and (sum(map(len, held)) + size) * workers > ranges.unfinished:
            return  # more than an even share: the others would wait for this worker
        span = ranges.take(size)
        if span is None:
            return
        assignment = Assignment(self._job, span.start, span.stop)
        if not held:
            self._began[member] = time.monotonic()
        held.append(assignment)
        self._crew.assign(member, assignment)

    def _pace(self) -> Pace:
        noun = self._noun
        if noun not in self._paces:
            limit = self._limits.get(self._job)
            simulated = self._subject is not None and self._subject.episodes > 0
            least, most = 2, None if limit is None else 2
            if limit is None and simulated and self._description is not None:
                least = registry.entry(self._description.engine).preferred_candidates
            crew = self._crew
            self._paces[noun] = Pace(
                least=least, most=most, share=crew.share, message=crew.message, longest=crew.longest
            )
        return self._paces[noun]

    @property
    def _noun(self) -> str:
        return self._subject.noun if self._subject is not None else "candidate"

    def _handle(self, event: Event) -> None:
        match event:
            case Joined(member, description):
                _check_alike(self._description, description)
                self._held[member] = deque()
                self._description = description
                self._failed_starts = 0
            case Finished(member, assignment, data, seconds):
                self._held[member].popleft()
                self._began[member] = time.monotonic()
                if assignment.job == self._job:
                    self._ranges.finish(assignment.start, assignment.stop, data)
                    self._pace().learn(len(assignment), seconds)
            case Failed(_, error):
                raise error
            case Lost(member, reason, True):
                self._lose(member, reason)
            case Lost(_, reason, _):
                self._lose_unready(reason)

    def _lose(self, member: int, reason: str) -> None:
        held = [assignment for assignment in self._held.pop(member) if assignment.job == self._job]
        if not held:
            _logger.warning("a worker %s; it is replaced", reason)
            return
        first, *others = held
        doing = f"{self._noun}{'s' if len(first) > 1 else ''} {first}"
        _logger.warning("a worker %s while running %s; it is replaced, and they run again", reason, doing)
        for assignment in others:
            self._ranges.give_back(assignment.start)
        given_up = self._ranges.lose(first.start)
        if given_up is not None:
            error = EnvironmentFault(
                f"{self._noun} {given_up} ended {given_up.losses} workers in a row; the last one {reason}; "
                "look at what the environment does there"
            )
            if given_up.start < self._needed:
                raise error
            self._hopeless = given_up.start, error  # nobody has asked for it yet
            self._next = range(0)

    def _lose_unready(self, reason: str) -> None:
        self._failed_starts += 1
        if self._failed_starts >= max(STARTS, TRIES * self._crew.size):
            raise EnvironmentFault(
                f"{self._failed_starts} workers in a row were lost while they started; the last one {reason}"
            )
        _logger.warning("a worker %s while it started; another one is started", reason)

    def _patience(self) -> float:
        """End workers that are over their time; return how long to wait until the next one may be."""
        patience = 1.0
        now = time.monotonic()
        for member, held in self._held.items():
            limit = self._limits.get(held[0].job) if held else None
            if limit is not None:
                limit *= len(held[0])
                left = self._began[member] + limit - now
                if left <= 0:
                    self._crew.dismiss(member, f"was ended after {limit:g} s (episode_timeout is {self._timeout:g} s)")
                patience = min(patience, max(left, 0.01))
        return patience


def _check_alike(known: Description | None, new: Description) -> None:
    """Refuse a worker that would compute something else than the others: its machine has other libraries."""
    if known is not None and (known.engine, known.network, known.actions) != (new.engine, new.network, new.actions):
        raise EnvironmentFault(
            f"workers differ: one runs {known.engine}, another {new.engine} ({new.engine_reason}); install the same "
            "libraries on every machine, or name the engine"
        )
