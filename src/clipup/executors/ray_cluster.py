"""Ray behind the few calls that a crew needs, with types (Ray itself has none to speak of)."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Sequence
from typing import Any, NewType, cast

from clipup.errors import InvalidArgument, MissingDependency
from clipup.executors.ray_worker import RayWorker
from clipup.executors.work import Setup, Subject
from clipup.processors import available_threads

Reference = NewType("Reference", object)
"""A value that is, or will be, somewhere in the cluster."""

_LOCAL_STORE_BYTES = 256 * 2**20
"""The object store of a Ray that is started here: for one generation's center, and replies too large for a message."""


def _import_ray() -> Any:
    # Ray would like to report its use, and to warn about accelerators that nobody asked for.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingDependency.of("ray", extra="ray") from error
    return cast(Any, ray)


class Actor:
    """A `RayWorker` somewhere in the cluster."""

    def __init__(self, ray: Any, handle: Any) -> None:
        self._ray = ray
        self._handle = handle

    def start(self, setup: Reference) -> Reference:
        """Have the engines made."""
        return self._handle.start.remote(setup)

    def prepare(self, job: int, subject: Reference) -> None:
        """Tell the subject of the ranges that follow."""
        self._handle.prepare.remote(job, subject)

    def run(self, job: int, start: int, stop: int) -> Reference:
        """Have a range done."""
        return self._handle.run.remote(job, start, stop)

    def kill(self) -> None:
        """End the actor, whatever it does, if it is still there."""
        if self._ray.is_initialized():
            self._ray.kill(self._handle, no_restart=True)


class Cluster:
    """A Ray that is connected to: the one at `address`, the one in use already, or one started here for `workers`."""

    def __init__(self, address: str, workers: int | None) -> None:
        self._ray = _import_ray()
        self._own = not self._ray.is_initialized()
        if self._own:
            self._connect(address, workers)
        self.losses: type[Exception] = self._ray.exceptions.RayError
        # One processor and no second life: a lost range is given to somebody else at once, by the trainer.
        self._make = self._ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(RayWorker)

    def _connect(self, address: str, workers: int | None) -> None:
        quiet: dict[str, object] = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            if address == "ray" and not os.environ.get("RAY_ADDRESS"):
                self._ray.init(
                    address="local",
                    num_cpus=workers or available_threads(),
                    include_dashboard=False,
                    object_store_memory=_LOCAL_STORE_BYTES,
                    **quiet,
                )
            else:
                with warnings.catch_warnings(action="ignore"):  # what Ray Client warns of ends in the error below
                    self._ray.init(address=None if address == "ray" else address, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            remedy = "start it with `ray start --head`, or use cluster='ray'"
            if address != "ray":  # a missing token looks like a missing cluster
                remedy += "; if it is there and wants a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
            raise InvalidArgument(f"no connection to Ray at {address!r}: {first}; {remedy}") from error

    def processors(self) -> int:
        """Return how many processors the cluster has at this moment."""
        return int(self._ray.cluster_resources().get("CPU", 0))

    def machines(self) -> int:
        """Return how many machines are alive."""
        return sum(bool(node["Alive"]) for node in self._ray.nodes())

    def put(self, value: Setup | Subject) -> Reference:
        """Put a value into the object store, from which each machine takes it once."""
        return self._ray.put(value)

    def get(self, reference: Reference) -> object:
        """Return a value that is there, or raise one of `losses`."""
        return self._ray.get(reference)

    def actor(self) -> Actor:
        """Return a new actor, which starts as soon as a machine has room for it."""
        return Actor(self._ray, self._make.remote())

    def wait(self, references: Sequence[Reference], seconds: float) -> list[Reference]:
        """Return those of `references` that are there, waiting for at most so long for a first one."""
        if not references:
            time.sleep(min(seconds, 0.1))
            return []
        ready, _ = self._ray.wait(list(references), num_returns=1, timeout=seconds)
        if ready and len(references) > 1:
            ready, _ = self._ray.wait(list(references), num_returns=len(references), timeout=0)
        return ready

    def close(self) -> None:
        """Disconnect, and stop what was started here; a Ray that others use is left alone."""
        if self._own and self._ray.is_initialized():
            self._ray.shutdown()
