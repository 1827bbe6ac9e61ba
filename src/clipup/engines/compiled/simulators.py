"""The simulators of an engine, and the threads that run candidates in them.

Machine code blocks the thread that calls it, so it is called from a thread of its own, while the caller's thread waits
and can be interrupted (Ctrl-C). An interruption raises a flag that machine code looks at in every step.
"""

from __future__ import annotations

import copy
import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clipup.compilation import machine_code
from clipup.compilation.primitives import address_of
from clipup.compilation.structures import viewer
from clipup.engines.compiled import array_world, fields, mujoco_world, trial, words
from clipup.engines.compiled.episode import RAISED, SPREAD, KernelJob, World, make_candidate, make_slot
from clipup.engines.compiled.mujoco_batch import MujocoBatch, QuietLog
from clipup.engines.compiled.task import ArrayTask, CompiledTask, MujocoTask, Options
from clipup.errors import one_line
from clipup.policies.actions import Actions

_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_POLL_SECONDS = 0.1

CandidateMaker = Callable[[World], Callable[..., None]]
"""Makes what is run for each candidate: its episodes, unless something else is asked for."""


class Simulators(Protocol):
    """What an engine needs of its simulators."""

    actions: Actions
    slots: int
    memory_size: int
    start_size: int
    calls: NDArray[np.int64]

    def run(self, job: KernelJob) -> dict[int, str]:
        """Run all candidates of a job; return why some failed, by row."""
        ...

    def close(self) -> None:
        """Free the simulators."""
        ...


class MujocoSimulators:
    """One simulator of a MuJoCo model for each thread."""

    def __init__(self, task: MujocoTask, threads: int, *, plain: bool, make: CandidateMaker = make_candidate) -> None:
        self._task = task
        self._threads = threads
        self._model = model = mujoco_world.without_islands(mujoco_world.load_model(task))
        self._library = mujoco_world.library()
        self._plain = plain
        if not plain:
            machine_code.require()
        self.actions = task.actions or model_actions(model)
        self.memory_size, self.start_size = max(task.memory_size, 1), model.nq + model.nv
        functions = [ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value for name in mujoco_world.CALLS]
        self.calls = np.array([*functions, model._address], np.int64)
        self._data: Any = mujoco_world.mujoco().MjData(model)
        discrete = self.actions.kind == "discrete"
        own_model = copy.copy(model)
        physics = mujoco_world.plain_physics(task, model)
        with QuietLog(self._library):
            trial.check_mujoco(task, model, self._data, self.actions, self._start)
        self._batch: MujocoBatch | None = None
        if plain:
            self.slots = 1
            self._candidate = make(mujoco_world.make_world(task, physics, discrete=discrete))
            self._own_model = own_model
            return
        fields.check(mujoco_world.user_functions(task), model, self._data)
        self._batch = self._make_batch()
        self.slots = self._batch.slots
        world = mujoco_world.make_world(task, mujoco_world.machine_physics(task), discrete=discrete)
        self._code = _compile(make(world), task.name, task.options, mujoco_world.mujoco().__version__, arrays=False)

    def _make_batch(self) -> MujocoBatch:
        own_models = self._task.randomize is not None
        return MujocoBatch(self._library, self._model, self._threads, own_models=own_models)

    def _start(self, seed: int) -> NDArray[np.float64]:
        return mujoco_world.start_of(self._task, self._model, seed)

    def _fill_starts(self, job: KernelJob, failed: dict[int, str]) -> None:
        """Draw the starts of all episodes, one candidate after the other, and say after each that it can be run."""
        fence = threading.Lock()
        for row, seeds in enumerate(job.seeds):
            try:
                for episode, seed in enumerate(seeds):
                    job.starts[row, episode] = self._start(int(seed))
            except Exception as error:
                job.starts[row] = np.nan
                failed[row] = one_line(error)
            with fence:  # what was written before is visible to other processors before the number is
                pass
            job.ready[0] = row + 1

    def run(self, job: KernelJob) -> dict[int, str]:
        """Run all candidates of a job; return why some failed, by row."""
        failed: dict[int, str] = {}
        if self._plain:
            self._fill_starts(job, failed)
            with QuietLog(self._library):
                return _run_plain(self._candidate, job, self._own_model, self._data) | failed
        if self._batch is None:
            self._batch = self._make_batch()
        batch = self._batch
        block = words.job_words(job)

        def work() -> None:
            # After an error a thread goes on with a spare slot; more errors than spare slots need another round.
            while not job.stop[0] and job.following[0] < len(job.parameters):
                for slot, message in batch.apply(self._code.address, block.ctypes.data).items():
                    row = int(job.current[slot])
                    failed[row] = f"MuJoCo: {message}"
                    job.steps[row] = job.taken[slot * SPREAD]

        with QuietLog(self._library):
            # Drawing the starts takes Python one percent of the time; candidates run meanwhile.
            _supervise(_new_thread, [work], job, lambda: self._fill_starts(job, failed))
        return failed | _raised(job, self._task.name)

    def close(self) -> None:
        """End the threads and free their simulators."""
        batch, self._batch = self._batch, None
        if batch is not None:
            batch.close()


class ArraySimulators:
    """A state vector for each thread."""

    calls = np.zeros(1, np.int64)
    start_size = 1

    def __init__(self, task: ArrayTask, threads: int, *, plain: bool, make: CandidateMaker = make_candidate) -> None:
        self._task = task
        self.actions = task.actions
        self.memory_size = task.state_size
        self._plain = plain
        trial.check_array(task)
        self.slots = threads
        self._pool: ThreadPoolExecutor | None = None
        if plain:
            self._candidate = make(array_world.make_world(task, lambda words: task.options))
            return
        machine_code.require()
        world = array_world.make_world(task, words.option_viewer(task.options))
        self._code = _compile(make(world), task.name, task.options, "", arrays=True)
        self._call = _KERNEL(self._code.address)

    def run(self, job: KernelJob) -> dict[int, str]:
        """Run all candidates of a job; return why some failed, by row."""
        if self._plain:
            return _run_plain(self._candidate, job, job.memory[0], job.random[0])
        block = words.job_words(job)
        job.ready[0] = len(job.parameters)  # such tasks start in machine code

        def work(slot: int) -> Callable[[], None]:
            return lambda: self._call(None, None, slot, block.ctypes.data)

        # Such an evaluation may take a few milliseconds, and new threads would need one of them to spread.
        self._pool = self._pool or ThreadPoolExecutor(self.slots, thread_name_prefix="clipup-simulator")
        _supervise(self._pool.submit, [work(slot) for slot in range(self.slots)], job)
        return _raised(job, self._task.name)

    def close(self) -> None:
        """End the threads."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()


def actions_of(task: CompiledTask) -> Actions:
    """Return the actions of a task, without compiling anything; the model is loaded where the task has none."""
    if isinstance(task, MujocoTask):
        return task.actions or model_actions(mujoco_world.load_model(task))
    return task.actions


def model_actions(model: Any) -> Actions:
    """Return one float32 number for each control, bounded as in the model."""
    low, high = np.array(model.actuator_ctrlrange, np.float32).T.copy()
    unlimited = ~np.asarray(model.actuator_ctrllimited, np.bool_)
    low[unlimited], high[unlimited] = -np.inf, np.inf
    return Actions.box(low, high)


def _compile(
    candidate: Callable[..., None], label: str, options: Options, version: str, *, arrays: bool
) -> machine_code.MachineCode:
    """Return the machine code that runs candidates until none is left: a C function of (model, data, slot, words)."""
    structure = words.job_structure()
    job_at = viewer(structure)
    run_slot = make_slot(candidate)

    def mujoco_kernel(model: Any, data: Any, slot: int, job_words: Any) -> None:
        run_slot(job_at(address_of(job_words), 0), slot, address_of(model), address_of(data))

    def array_kernel(model: Any, data: Any, slot: int, job_words: Any) -> None:
        job = job_at(address_of(job_words), 0)
        run_slot(job, slot, job.memory[slot * SPREAD], job.random[slot * SPREAD])

    return machine_code.load(
        array_kernel if arrays else mujoco_kernel,
        lambda types: types.void(types.voidptr, types.voidptr, types.int32, types.voidptr),
        label=label,
        facts=(version, structure, words.option_structure(options)),
    )


def _run_plain(candidate: Callable[..., None], job: KernelJob, one: Any, other: Any) -> dict[int, str]:
    """Run candidates as plain Python, one after the other."""
    failed: dict[int, str] = {}
    with np.errstate(all="ignore"):
        for row in range(len(job.parameters)):
            try:
                candidate(job, 0, row, one, other)
            except Exception as error:
                job.steps[row] = job.taken[0]
                job.status[row] = RAISED
                failed[row] = one_line(error)
    return failed


def _raised(job: KernelJob, name: str) -> dict[int, str]:
    message = f"a function of {name} raised an exception (NUMBA_DISABLE_JIT=1 tells which)"
    return {int(row): message for row in np.flatnonzero(job.status == RAISED)}


def _new_thread(function: Callable[[], None]) -> None:
    threading.Thread(target=function, name="clipup-simulator", daemon=True).start()


def _supervise(
    begin: Callable[[Callable[[], None]], object],
    work: list[Callable[[], None]],
    job: KernelJob,
    meanwhile: Callable[[], None] | None = None,
) -> None:
    """Run functions on threads, which `begin` hands them to, and wait for all of them, whatever happens meanwhile."""
    errors: list[BaseException] = []
    ended: list[threading.Event] = []

    def start(function: Callable[[], None]) -> None:
        end = threading.Event()

        def run() -> None:
            try:
                function()
            except BaseException as error:
                errors.append(error)
            finally:
                end.set()

        begin(run)
        ended.append(end)

    interruption: BaseException | None = None
    try:
        for function in work:
            start(function)
        if meanwhile is not None:
            meanwhile()
    except BaseException as error:
        interruption = error
        job.stop[0] = 1
    # The arrays belong to the threads until they end, so even an impatient second Ctrl-C must wait for them. Events are
    # waited for, because a thread whose `join` was interrupted calls itself dead while it runs (Python 3.11).
    for end in ended:
        while not end.is_set():
            try:
                end.wait(_POLL_SECONDS)
            except BaseException as error:
                interruption = error
                job.stop[0] = 1
    if interruption is not None or errors:
        raise interruption or errors[0]
