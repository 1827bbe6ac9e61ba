"""Decides which worker runs what: events go in, actions come out.

The scheduler has no clock, starts no processes and never waits. Callers pass in the time and what happened, and carry
out what it returns. `clipup.executors.distributed` does that for real workers, tests do it without any.

There are two queues. The first has the indices that were asked for. The second has those of the batch that may be asked
for next (speculation): workers take from it when the first has nothing left for them. If that batch is then asked for,
the second queue becomes the first; otherwise it is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from clipup.engines import registry
from clipup.errors import ClipUpError, EnvironmentFault
from clipup.executors.jobs import Job, Readiness, Result, WorkerDescription
from clipup.executors.work_queue import RangeRule, RangeSizer, Span, WorkQueue

TRIES = 3
"""How many workers may be lost on a single index before the run ends."""

STARTS = 8
"""How many workers may be lost in a row while they start; with many workers, `TRIES` times their number."""

SLOW_START = 10.0
"""Seconds without a first worker after which a message says so."""

TICK = 1.0
"""Seconds between two looks at the clock, if nothing happens."""

AnyJob = Job[Result]


@dataclass(frozen=True)
class Assignment:
    """Indices ``start … stop - 1`` of the job with this number."""

    job: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Joined:
    """A worker is ready."""

    worker: int
    description: Readiness


@dataclass(frozen=True)
class Finished:
    """A worker has finished the oldest of its assignments, which took it this many seconds."""

    worker: int
    result: Result
    seconds: float


@dataclass(frozen=True)
class Lost:
    """A worker is gone. Its number is never used again. `ready` says whether it had joined."""

    worker: int
    reason: str
    ready: bool


@dataclass(frozen=True)
class Failed:
    """A worker raised an error. Any other worker would raise it too, because evaluation is a pure function."""

    worker: int
    error: ClipUpError


Event = Joined | Finished | Lost | Failed


@dataclass(frozen=True)
class Publish:
    """Make a job known under this number. The assignments that follow belong to it."""

    number: int
    job: AnyJob


@dataclass(frozen=True)
class Assign:
    """Give a worker a range. The first range of a job goes only to a worker that holds no other."""

    worker: int
    assignment: Assignment


@dataclass(frozen=True)
class Dismiss:
    """End a worker that took too long. `Lost` follows."""

    worker: int
    reason: str


@dataclass(frozen=True)
class Warn:
    """Tell the user."""

    message: str


@dataclass(frozen=True)
class Stop:
    """End the run with this error."""

    error: ClipUpError


Action = Publish | Assign | Dismiss | Warn | Stop


@dataclass
class _Held:
    """What a worker holds: its assignments, the oldest first, each with the seconds that it may take."""

    ranges: deque[tuple[Assignment, float | None]] = field(default_factory=deque[tuple[Assignment, float | None]])
    began: float = 0.0
    """When the worker turned to the oldest one."""
    dismissed: bool = False

    @property
    def indices(self) -> int:
        return sum(len(assignment) for assignment, _ in self.ranges)

    @property
    def deadline(self) -> float | None:
        """When the oldest one must be finished; None without a limit, and once the worker was dismissed."""
        seconds = self.ranges[0][1] if self.ranges and not self.dismissed else None
        return None if seconds is None else self.began + seconds

    def takes(self, job: int) -> bool:
        """Return whether the worker can be given a range of this job: not while it holds ranges of another."""
        return not self.dismissed and (not self.ranges or self.ranges[-1][0].job == job)


class Scheduler:
    """Has one job at a time done by the workers that are there, in ranges that follow `rule`.

    Times (`now`) are in seconds from any fixed moment. A worker that holds a range longer than its episodes may take,
    by `episode_timeout`, is dismissed and counts as lost. A worker that rounds differently from the others ends the
    run, or with `mixed_arithmetic` adds a note to their description.
    """

    def __init__(
        self, rule: RangeRule, *, now: float, episode_timeout: float | None = None, mixed_arithmetic: bool = False
    ) -> None:
        self._rule = rule
        self._timeout = episode_timeout
        self._mixed = mixed_arithmetic
        self._slow_at: float | None = now + SLOW_START  # None once there was a worker, or a warning
        self._size = 1
        self._workers: dict[int, _Held] = {}
        self._description: Readiness | None = None
        self._failed_starts = 0
        self._sizers: dict[str, RangeSizer] = {}
        self._number = 0
        self._job: AnyJob | None = None
        self._next = 0  # the first index whose result was not collected
        self._queue: WorkQueue[Result] = WorkQueue()
        self._ahead = range(0)
        self._speculation: WorkQueue[Result] = WorkQueue()
        self._speculation_fault: EnvironmentFault | None = None

    @property
    def description(self) -> Readiness | None:
        """What the workers say of themselves; None until the first one has joined."""
        return self._description

    def ask(self, job: AnyJob, start: int, stop: int, ahead: range = range(0)) -> list[Action]:
        """Ask for the indices ``start … stop - 1`` of a job. Idle workers may go on with those after them, `ahead`.

        What was done for another job, or for other indices, is dropped.
        """
        actions: list[Action] = []
        if not self._continues(job, start, stop):
            self._number += 1
            self._job, self._next = job, start
            self._queue, self._ahead, self._speculation_fault = self._new_queue(start, start), range(0), None
            actions.append(Publish(self._number, job))
        if self._ahead:
            self._queue = self._speculation
        self._queue.extend(stop)
        self._ahead, self._speculation = ahead, self._new_queue(ahead.start, ahead.stop)
        if self._speculation_fault is not None:
            actions.append(Stop(self._speculation_fault))
        return actions

    def ready(self, start: int) -> int:
        """Return the end of the results that follow each other from `start` on without a gap."""
        return self._queue.ready(start)

    def collect(self, start: int, stop: int) -> list[Result]:
        """Remove and return the results of ``start … stop - 1``, in order."""
        self._next = stop
        return self._queue.collect(start, stop)

    def forget_workers(self) -> None:
        """Drop everything that was under way: all workers were ended, and others will join."""
        self._workers.clear()
        self._job = None

    def tick(self, now: float, size: int) -> list[Action]:
        """Return what is to be done at this time, with `size` workers expected: hand out ranges, watch the clock."""
        self._size = size
        actions = [*self._dismiss_late(now)]
        if self._slow_at is not None and now > self._slow_at:
            self._slow_at = None
            waiting = "workers still import, or wait for room on the cluster"
            actions.append(Warn(f"no worker is ready after {SLOW_START:g} s: {waiting}"))
        if self._job is not None:
            for depth in range(self._rule.depth):
                for number, held in self._workers.items():
                    if len(held.ranges) == depth and held.takes(self._number):
                        actions += self._assign(number, held, self._job, now)
        return actions

    def patience(self, now: float) -> float:
        """Return how many seconds may pass until the next `tick`, if nothing happens."""
        deadlines = [deadline for held in self._workers.values() if (deadline := held.deadline) is not None]
        return min([TICK, *(max(deadline - now, 0.01) for deadline in deadlines)])

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take in what happened, and return what follows from it at once."""
        match event:
            case Joined(worker, description):
                actions = self.compare(description)
                if not any(isinstance(action, Stop) for action in actions):
                    self._workers[worker] = _Held()
                    self._failed_starts = 0
                    self._slow_at = None
                return actions
            case Finished(worker, result, seconds):
                held = self._workers[worker]
                assignment, _ = held.ranges.popleft()
                held.began = now
                if self._job is not None and assignment.job == self._number:
                    self._queue_of(assignment).finish(assignment.start, result)
                    self._sizer(self._job).learn(len(assignment), seconds)
            case Failed(_, error):
                return [Stop(error)]
            case Lost(worker, reason, True):
                return self._lose(self._workers.pop(worker), reason)
            case Lost(_, reason, _):
                return self._lose_starting(reason)
        return []

    def compare(self, description: Readiness) -> list[Action]:
        """Take in what a worker, or the trainer itself, says of itself; return what follows if it differs."""
        known = self._description
        if known is None:
            self._description = description
            return []
        if not (isinstance(known, WorkerDescription) and isinstance(description, WorkerDescription)):
            return []  # workers without an engine and a policy have nothing to compare
        if not description.runs_like(known):
            return [Stop(_difference(known, description))]
        different = known.fingerprint.differs_in(description.fingerprint)
        if not different:
            return []
        if not self._mixed:
            return [Stop(EnvironmentFault(f"{_ROUNDING.format(different)}; {_REMEDY}"))]
        note = f"{_ROUNDING.format(different)}, so this run cannot be repeated exactly"
        if note in known.notes:
            return []
        self._description = replace(known, notes=(*known.notes, note))
        return [Warn(note)]

    def _continues(self, job: AnyJob, start: int, stop: int) -> bool:
        """Return whether nothing of what was begun must be dropped."""
        if self._job is None or start != self._next or not job.continues(self._job):
            return False
        return self._ahead == range(start, stop) if self._ahead else stop >= self._queue.stop

    def _new_queue(self, start: int, stop: int) -> WorkQueue[Result]:
        return WorkQueue(start, stop, tries=TRIES, step=self._job.step if self._job is not None else 1)

    def _queue_of(self, assignment: Assignment) -> WorkQueue[Result]:
        return self._queue if assignment.start < self._queue.stop else self._speculation

    def _assign(self, number: int, held: _Held, job: AnyJob, now: float) -> Iterator[Action]:
        span = self._take(held, self._sizer(job))
        if span is None:
            return
        assignment = Assignment(self._number, span.start, span.stop)
        if not held.ranges:
            held.began = now
        each = self._seconds_allowed(job)
        held.ranges.append((assignment, None if each is None else each * len(span)))
        yield Assign(number, assignment)

    def _take(self, held: _Held, sizer: RangeSizer) -> Span | None:
        """Return the next range for a worker: of the first queue, or of the second if the worker is idle."""
        queue, workers, spare = self._queue, len(self._workers), bool(held.ranges)
        if not queue.waiting:
            if spare or self._speculation_fault is not None:
                return None
            # Ranges are half as long where they may not be needed: they must end before anything else can begin.
            queue, workers = self._speculation, 2 * workers
        size = sizer.size(queue.waiting, workers)
        if spare and (queue.waiting < size * workers or not sizer.is_short(size)):
            return None  # at the end of a batch, a range that one worker keeps for later is one that another lacks
        if spare and (held.indices + size) * workers > queue.unfinished:
            return None  # more than an even share: the other workers would wait for this one
        return queue.take(size)

    def _sizer(self, job: AnyJob) -> RangeSizer:
        if job.noun not in self._sizers:
            least, most = 2, None
            if self._seconds_allowed(job) is not None:
                most = 2  # the clock runs for a whole range
            elif job.episodes and isinstance(self._description, WorkerDescription):
                least = registry.entry(self._description.engine.name).preferred_candidates
            self._sizers[job.noun] = RangeSizer(self._rule, least=least, most=most)
        return self._sizers[job.noun]

    def _seconds_allowed(self, job: AnyJob) -> float | None:
        """Return how long one index of a job may take."""
        return self._timeout * job.episodes if self._timeout and job.episodes else None

    def _dismiss_late(self, now: float) -> Iterator[Action]:
        for number, held in self._workers.items():
            deadline = held.deadline
            if deadline is not None and deadline <= now:
                held.dismissed = True
                spent = deadline - held.began
                yield Dismiss(number, f"was ended after {spent:g} s (episode_timeout is {self._timeout:g} s)")

    def _lose(self, held: _Held, reason: str) -> list[Action]:
        current = [assignment for assignment, _ in held.ranges if assignment.job == self._number]
        if self._job is None or not current:
            return [Warn(f"a worker {reason}; it is replaced")]
        first, *others = current
        for assignment in others:
            self._queue_of(assignment).give_back(assignment.start)
        queue = self._queue_of(first)
        given_up = queue.lose(first.start)
        what = f"{self._job.noun}{'s' if len(first) > 1 else ''} {Span(first.start, first.stop)}"
        if given_up is None:
            return [Warn(f"a worker {reason} while running {what}; it is replaced, and they run again")]
        fault = EnvironmentFault(
            f"{self._job.noun} {given_up} ended {given_up.losses} workers in a row; the last one {reason}; "
            "look at what happens there"
        )
        if queue is self._queue:
            return [Stop(fault)]
        self._speculation_fault = fault  # it counts only if this batch is asked for
        return [Warn(f"a worker {reason} while running {what}, which may not be needed; it is replaced")]

    def _lose_starting(self, reason: str) -> list[Action]:
        self._failed_starts += 1
        if self._failed_starts >= max(STARTS, TRIES * self._size):
            lost = f"{self._failed_starts} workers in a row were lost while they started; the last one {reason}"
            return [Stop(EnvironmentFault(lost))]
        return [Warn(f"a worker {reason} while it started; another one is started")]


_ROUNDING = "workers round differently, by their processors or libraries: the same numbers give other bits in {}"
_REMEDY = "use machines of one kind, or accept that with --mixed-arithmetic"


def _difference(known: WorkerDescription, new: WorkerDescription) -> EnvironmentFault:
    one, other = known.engine, new.engine
    return EnvironmentFault(
        f"workers differ: one runs {f'{one.name} {one.version}'.strip()}, another "
        f"{f'{other.name} {other.version}'.strip()} ({other.reason}); install the same libraries on every machine, or "
        "name the engine"
    )
