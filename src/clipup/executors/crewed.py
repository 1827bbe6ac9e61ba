"""The executor over a crew of workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clipup.engines import Outcomes, Task
from clipup.executors import wire
from clipup.executors.crew import Crew
from clipup.executors.foreman import Foreman
from clipup.executors.foresight import Foresight
from clipup.executors.work import Blocks, Center, Population
from clipup.policies import Actions, Network, Statistics
from clipup.searches import BlockSum
from clipup.searches.gradient import GradientWork, Sums, Vector
from clipup.searches.sampling import Batch, FloatArray

SUMMED_BY_WORKERS = 4_000_000
"""Numbers (directions times parameters) from which the gradient is summed by the workers: some 50 ms of work."""

WINDOW_BYTES = 64 * 2**20
"""Sums of blocks that may wait for those before them."""


class CrewExecutor:
    """Evaluates on workers; see `clipup.executors.protocol.Executor`.

    Parameters
    ----------
    crew
        The workers.
    task
        What they run.
    episode_timeout
        Seconds that an episode may take. Where a candidate takes longer on several workers, the run ends with an error,
        as with one that kills its workers: a result that depends on a clock would be no pure function of its inputs.
    """

    def __init__(self, crew: Crew, task: Task, *, episode_timeout: float | None = None) -> None:
        self._crew = crew
        self._task = task
        self._foreman = Foreman(crew, episode_timeout=episode_timeout)
        self._foresight = Foresight()
        self._end = 0  # where the next batch of this generation would begin
        try:
            self._description = self._foreman.meet()
        except BaseException:
            crew.close()
            raise

    @property
    def network(self) -> Network:
        """The policy's network."""
        return self._description.network

    @property
    def actions(self) -> Actions:
        """How its outputs become actions."""
        return self._description.actions

    @property
    def engine(self) -> str:
        """Name of the rollout engine."""
        return self._description.engine

    @property
    def engine_reason(self) -> str:
        """Why that engine was taken."""
        return self._description.engine_reason

    @property
    def description(self) -> str:
        """Where evaluation runs."""
        return self._crew.description

    def evaluate(self, batch: Batch, statistics: Statistics | None, *, following: Batch | None = None) -> Outcomes:
        """All candidates of `batch`, in order; idle workers go on with `following` where it is likely to be needed."""
        subject = Population(batch.seed, batch.generation, batch.center, batch.stdev, statistics, self._task.episodes)
        self._foresight.learn(batch)
        current = self._foreman.subject
        if current is None or batch.start != self._end or not subject.same(current):
            self._foreman.begin(subject, batch.start)
        ahead = range(0)
        if following is not None and self._foresight.expects(following):
            ahead = range(following.start, following.stop)
        self._end = -1  # an exception in between leaves nothing that could be gone on with
        parts = self._foreman.do(batch.start, batch.stop, ahead)
        self._end = batch.stop
        return self._outcomes(parts)

    def evaluate_center(
        self, center: FloatArray, statistics: Statistics | None, *, seed: int, generation: int, episodes: int
    ) -> Outcomes:
        """The center over `episodes` episodes of the task as the environment means it."""
        self._foreman.begin(Center(seed, generation, center, statistics))
        return self._outcomes(self._foreman.do(0, episodes))

    def sum_blocks(self, work: BlockSum) -> Iterable[tuple[Vector, ...]]:
        """Yield the sums of the gradient's blocks, in order; made by the workers where there is enough to do."""
        if work.size < SUMMED_BY_WORKERS or not isinstance(work, GradientWork):
            return (work.block(number) for number in range(work.block_count))
        return self._summed_by_workers(work)

    def close(self) -> None:
        """End the workers."""
        self._crew.close()

    def _summed_by_workers(self, work: GradientWork) -> Iterator[Sums]:
        self._foreman.begin(Blocks(work))
        window = max(2 * self._crew.size, WINDOW_BYTES // (3 * 8 * work.dimension))
        done, count = 0, work.block_count
        while done < count:
            done, parts = self._foreman.do_some(done, min(count, done + window))
            for part in parts:
                yield from wire.unpack_sums(part)

    def _outcomes(self, parts: list[bytes]) -> Outcomes:
        return Outcomes.concatenate([wire.unpack_outcomes(part) for part in parts]).check(self._task.label)
