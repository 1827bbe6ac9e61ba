"""Workers that are Ray actors: on this machine, or on the machines of a cluster."""

from __future__ import annotations

import logging
import os
import struct
import time
import warnings
from collections import deque
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NewType, cast

from clipup.errors import InvalidArgument, MissingDependency
from clipup.executors import wire
from clipup.executors.jobs import Setup, Worker, WorkerDescription
from clipup.executors.private_ray import PrivateRay, no_signals, own_handlers
from clipup.executors.scheduler import AnyJob, Assignment, Event, Failed, Finished, Joined, Lost
from clipup.executors.work_queue import RangeRule
from clipup.processors import available_threads

GROWTH_SECONDS = 2.0
"""Seconds between two looks at the size of the cluster."""

Reference = NewType("Reference", object)
"""A value that is, or will be, somewhere in the cluster."""

_LOCAL_STORE_BYTES = 256 * 2**20  # of a Ray that is started here: for jobs, and for replies too large for a message
_DONE, _ERROR = 1, 2
_HEADER = struct.Struct("<Bd")  # kind, seconds


# -- in the trainer's process ------------------------------------------------------------------------------------------


@dataclass
class _Actor:
    handle: Any
    start: Reference
    ready: bool = False
    job: int = 0
    calls: deque[Reference] = field(default_factory=deque[Reference])
    reason: str | None = None

    @property
    def pending(self) -> Reference | None:
        """The next reply: an actor answers its calls in order."""
        if not self.ready:
            return self.start
        return self.calls[0] if self.calls else None


class RayTransport:
    """One actor for each processor of the cluster, or as many as asked for, but never more than there is room for.

    A job reaches each machine once, through Ray's object store. Ranges of indices travel as plain arguments. An actor
    that is lost, alone or with its machine, is replaced if the cluster has room. Actors are added and removed as the
    cluster grows and shrinks.

    Parameters
    ----------
    setup
        What the actors are made for.
    address
        ``"ray"`` for this machine (or the Ray that is connected already, or that ``RAY_ADDRESS`` names); otherwise an
        address for `ray.init`: ``"auto"``, ``"host:6379"``, ``"ray://host:10001"``.
    workers
        How many actors; None for one for each processor.
    """

    # A call of an actor costs the trainer 2 ms, and 1.6 kB besides its content (benchmarks/executors_overhead.py).
    rule = RangeRule(share=1.5, message=0.002, longest=10.0)

    def __init__(self, setup: Setup, address: str = "ray", workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise InvalidArgument(f"workers must be at least 1, got {workers}")
        self._cluster = _Cluster(address, workers)
        self._wanted = workers
        self._actors: dict[int, _Actor] = {}
        self._count = 0
        self._target = 1
        self._job: Reference | None = None
        self._looked = -GROWTH_SECONDS
        self._closed = False
        try:
            self._setup = self._cluster.put(setup.for_workers())
            self._fill()
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> int:
        """How many actors there should be."""
        return max(self._target, len(self._actors))

    @property
    def place(self) -> str:
        """How many actors there are on how many machines."""
        actors, machines = len(self._actors), self._cluster.machines()
        return f"Ray, {actors} actor{'s' if actors > 1 else ''} on {machines} machine{'s' if machines > 1 else ''}"

    def publish(self, number: int, job: AnyJob) -> None:
        """Put the job where every machine finds it."""
        self._job = self._cluster.put(job)

    def assign(self, worker: int, assignment: Assignment) -> None:
        """Call an actor with a range, after telling it the job."""
        actor = self._actors[worker]
        if actor.job != assignment.job:
            actor.handle.prepare.remote(assignment.job, self._job)
            actor.job = assignment.job
        actor.calls.append(actor.handle.run.remote(assignment.job, assignment.start, assignment.stop))

    def dismiss(self, worker: int, reason: str) -> None:
        """Kill an actor. The call that it was running ends with an error."""
        self._actors[worker].reason = reason
        self._cluster.kill(self._actors[worker].handle)

    def wait(self, seconds: float) -> Sequence[Event]:
        """Return what the actors answered, and which of them are gone."""
        self._fill()
        numbers = {actor.pending: number for number, actor in self._actors.items() if actor.pending is not None}
        replies = self._cluster.wait(list(numbers), min(seconds, GROWTH_SECONDS))
        return [self._receive(numbers[reply], reply) for reply in replies]

    def restart(self) -> None:
        """Kill all actors, and start others."""
        self._end()
        self._looked = -GROWTH_SECONDS
        self._fill()

    def close(self) -> None:
        """Kill all actors, and stop Ray if it was started here."""
        if not self._closed:
            try:
                self._end()
            finally:
                self._closed = True
                self._cluster.close()

    def _end(self) -> None:
        actors, self._actors = self._actors, {}
        for actor in actors.values():
            self._cluster.kill(actor.handle)

    def _fill(self) -> None:
        if time.monotonic() - self._looked < GROWTH_SECONDS:
            return
        self._looked = time.monotonic()
        room = self._cluster.processors()
        target = self._target = max(1, room if self._wanted is None else min(self._wanted, room))
        while len(self._actors) < target:
            self._count += 1
            handle = self._cluster.actor()
            self._actors[self._count] = _Actor(handle, handle.start.remote(self._setup))
        # Actors for which no machine has room would wait for ever.
        starting = [number for number, actor in self._actors.items() if not actor.ready]
        for number in starting[: len(self._actors) - target]:
            self._cluster.kill(self._actors.pop(number).handle)

    def _receive(self, number: int, reference: Reference) -> Event:
        actor = self._actors[number]
        try:
            reply = self._cluster.get(reference)
        except self._cluster.losses as error:
            del self._actors[number]
            self._cluster.kill(actor.handle)
            self._looked = min(self._looked, time.monotonic() - GROWTH_SECONDS + 0.2)
            return Lost(number, actor.reason or f"was lost ({_last_line(error)})", actor.ready)
        if isinstance(reply, WorkerDescription):
            actor.ready = True
            return Joined(number, reply)
        if not actor.ready:
            return Failed(number, wire.unpack_error(reply))
        actor.calls.popleft()
        kind, seconds = _HEADER.unpack_from(reply)
        body = reply[_HEADER.size :]
        return (
            Finished(number, wire.unpack(body), seconds) if kind == _DONE else Failed(number, wire.unpack_error(body))
        )


class _Cluster:
    """The few calls of Ray that are needed, with types, on the Ray at `address`, the connected one, or a new one."""

    def __init__(self, address: str, workers: int | None) -> None:
        self._ray = _import_ray()
        self._private = PrivateRay()
        self._own = not self._ray.is_initialized()
        if self._own:
            self._connect(address, workers)
        self.losses: type[Exception] = self._ray.exceptions.RayError
        # One processor, and no restart: the trainer at once gives a lost range to another actor.
        self._make = self._ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(RayWorker)

    def _connect(self, address: str, workers: int | None) -> None:
        quiet: dict[str, object] = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            if address == "ray" and not os.environ.get("RAY_ADDRESS"):
                self._private.start(
                    self._ray,
                    num_cpus=workers or available_threads(),
                    include_dashboard=False,
                    object_store_memory=_LOCAL_STORE_BYTES,
                    **quiet,
                )
            else:
                with (
                    own_handlers(),
                    warnings.catch_warnings(action="ignore"),
                ):  # Ray Client's warnings are part of the error below
                    self._ray.init(address=None if address == "ray" else address, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            remedy = "start it with `ray start --head`, or use cluster='ray'"
            if address != "ray":  # a missing token looks like a missing cluster
                remedy += "; if it is there and wants a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
            raise InvalidArgument(f"no connection to Ray at {address!r}: {first}; {remedy}") from error

    def processors(self) -> int:
        """Return how many processors the cluster has now."""
        return int(self._ray.cluster_resources().get("CPU", 0))

    def machines(self) -> int:
        """Return how many machines are alive."""
        return sum(bool(node["Alive"]) for node in self._ray.nodes())

    def put(self, value: Setup | AnyJob) -> Reference:
        """Put a value into the object store. Each machine fetches it once."""
        return self._ray.put(value)

    def get(self, reference: Reference) -> WorkerDescription | bytes:
        """Return a reply that is there, or raise one of `losses`."""
        return self._ray.get(reference)

    def actor(self) -> Any:
        """Return a new actor, which starts when a machine has room for it."""
        return self._make.remote()

    def kill(self, handle: Any) -> None:
        """End an actor at once, if it is still there."""
        if self._ray.is_initialized():
            self._ray.kill(handle, no_restart=True)

    def wait(self, references: Sequence[Reference], seconds: float) -> list[Reference]:
        """Return the references whose values are there. Wait for at most this long for the first."""
        if not references:
            time.sleep(min(seconds, 0.1))
            return []
        ready, _ = self._ray.wait(list(references), num_returns=1, timeout=seconds)
        if ready and len(references) > 1:
            ready, _ = self._ray.wait(list(references), num_returns=len(references), timeout=0)
        return ready

    def close(self) -> None:
        """Stop the Ray that was started here. A Ray that others use is left alone."""
        with no_signals() if self._own else nullcontext():
            if self._own and self._ray.is_initialized():
                self._ray.shutdown()
            self._private.close()


def _import_ray() -> Any:
    # Without these, Ray reports its use, and warns about accelerators that are not used.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingDependency.of("ray", extra="ray") from error
    return cast(Any, ray)


def _last_line(error: BaseException) -> str:
    """Return the cause of a loss, which Ray puts last, after a traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__


# -- in the actor ------------------------------------------------------------------------------------------------------


class RayWorker:
    """A worker in an actor. Its methods return errors instead of raising them.

    So an exception from a call always means that the actor, or the way to it, is lost.
    """

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._number = 0
        self._job: AnyJob | None = None

    def start(self, setup: Setup) -> WorkerDescription | bytes:
        """Make the engines; return what the worker is, or a packed error."""
        try:
            self._worker = Worker(setup)
        except Exception as error:
            return wire.pack_error(error)
        return self._worker.description

    def prepare(self, number: int, job: AnyJob) -> None:
        """Take a job."""
        self._number, self._job = number, job

    def run(self, number: int, start: int, stop: int) -> bytes:
        """Run a range of a job; return a packed reply."""
        if self._worker is None or self._job is None or number != self._number:
            raise RuntimeError("the job of this range never arrived")
        began = time.perf_counter()
        try:
            data = wire.pack(self._job.run(self._worker, start, stop))
        except Exception as error:
            return _HEADER.pack(_ERROR, 0.0) + wire.pack_error(error)
        return _HEADER.pack(_DONE, time.perf_counter() - began) + data
