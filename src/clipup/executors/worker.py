"""What a worker does, wherever it lives: a process of its own or an actor of a cluster."""

from __future__ import annotations

import json
import traceback
from dataclasses import dataclass

from clipup import errors
from clipup.engines import Engine, make_engine
from clipup.errors import ClipUpError, EnvironmentFault
from clipup.executors.inline import EVALUATION_LANES
from clipup.executors.work import Setup, Subject
from clipup.policies import Actions, Network


@dataclass(frozen=True)
class Description:
    """What a worker says of itself when it is ready."""

    network: Network
    actions: Actions
    engine: str
    engine_reason: str


class Worker:
    """Engines that are kept between generations, and the subject of the moment."""

    def __init__(self, setup: Setup) -> None:
        self._task = setup.task
        self.collect_moments = setup.collect_moments
        self._training = make_engine(setup.task, lanes=setup.lanes, threads=1)
        self._evaluation: Engine | None = None
        actions = self._training.actions
        self.network = Network.parse(setup.policy, self._training.observation_size, actions.size)
        self.description = Description(self.network, actions, self._training.name, self._training.reason)
        self._subject: Subject | None = None
        if setup.timed:
            self.engine(evaluation=True)

    def engine(self, *, evaluation: bool) -> Engine:
        """Return the engine for training, or for evaluation, which is made when it is first needed."""
        if not evaluation:
            return self._training
        if self._evaluation is None:
            self._evaluation = make_engine(self._task.for_evaluation(), lanes=EVALUATION_LANES, threads=1)
        return self._evaluation

    def prepare(self, subject: Subject) -> None:
        """Take the subject that the following ranges belong to."""
        self._subject = subject

    def run(self, start: int, stop: int) -> bytes:
        """Do the indices ``start … stop - 1`` of the subject."""
        if self._subject is None:
            raise errors.WrongOrder("a worker was given a range before its subject")
        return self._subject.run(self, start, stop)

    def close(self) -> None:
        """Let the simulators go."""
        self._training.close()
        if self._evaluation is not None:
            self._evaluation.close()


def pack_error(error: BaseException) -> bytes:
    """Return an error as bytes that cannot fail to be read elsewhere, whatever its class."""
    kind = type(error).__name__ if isinstance(error, ClipUpError) else ""
    message = str(error) if kind else f"a worker failed with {type(error).__name__}: {error}"
    detail = "".join(traceback.format_exception(error))
    return json.dumps([kind, message, detail]).encode()


def unpack_error(data: bytes) -> ClipUpError:
    """Return the error that `pack_error` packed, of its own class where that is one of ours.

    Its ``__notes__`` hold the worker's traceback.
    """
    kind, message, detail = json.loads(data)
    known = getattr(errors, kind, None)
    cls = known if isinstance(known, type) and issubclass(known, ClipUpError) else EnvironmentFault
    error = cls(message)
    error.add_note(detail)
    return error
