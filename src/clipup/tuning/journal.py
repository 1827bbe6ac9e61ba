"""The trials as an Optuna study, beside the runs: for Optuna's samplers, and for people who use its tools.

Optuna's journal file holds lines of JSON; it is one of its storages that never unpickles anything. The journal is
written for people and read only by the sampler of further settings. The search itself decides from the runs' records,
so a half-written line of a killed session can be cut off. Only one process may open a journal (see `directory`).
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import IO, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from clipup.decoding import LINE, decode_object
from clipup.errors import ClipUpError, FileFault, MissingDependency, one_line
from clipup.files import Directory
from clipup.runs.records import Record
from clipup.tuning.speed_search import Point

STUDY = "clipup-tune"
SIZE_LIMIT = 256 * 1024 * 1024
# The paper: "values of q between 10 and 20 generally work well". Below a third of max_speed, a step size hardly ever
# reaches the clipping.
EXTRA_RANGES: Mapping[str, tuple[float, float]] = {"radius_factor": (10.0, 20.0), "step_ratio": (0.35, 1.0)}


WAITING_LIMIT = 1000
"""Trials that wait for a worker. A search that was stopped leaves one."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _guarded(method: Callable[Concatenate[Journal, _P], _T]) -> Callable[Concatenate[Journal, _P], _T]:
    """Let a method of a journal raise nothing but ClipUpError for what the file holds."""

    @wraps(method)
    def call(journal: Journal, *arguments: _P.args, **options: _P.kwargs) -> _T:
        with journal.faults():
            return method(journal, *arguments, **options)

    return call


class Journal:
    """One Optuna study, stored as a file of JSON lines."""

    def __init__(
        self,
        path: Path,
        *,
        seed: int,
        low: float,
        high: float,
        extra: Sequence[str] = (),
        setting: str = "max_speed",
    ) -> None:
        """Open the study at `path`, or create it. `setting` is searched from `low` to `high`, `extra` at its best."""
        self._optuna = load_optuna()
        self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        journal: Any = importlib.import_module("optuna.storages.journal")
        self._path = path
        self._seed = seed
        real = self._optuna.distributions.FloatDistribution
        # Wide enough for values beyond the ends of the range, which the search may try.
        self._setting = setting
        self._distributions = {setting: real(low / 1e3, high * 1e3, log=True)}
        self._population = real(1.0, 1e9)
        # In a fixed order, because the sampler draws one setting after the other.
        self._extra = {name: real(*ends) for name, ends in EXTRA_RANGES.items() if name in extra and name != setting}
        self._ended: set[tuple[Point, int]] = set()
        self._trials: dict[tuple[Point, int], Any] = {}
        state = self._optuna.trial.TrialState
        with self.faults():
            self._study: Any = self._optuna.create_study(
                study_name=STUDY,
                storage=self._optuna.storages.JournalStorage(_backend(journal, path)),
                direction="maximize",
                load_if_exists=True,
            )
            waiting = len(self._study.get_trials(deepcopy=False, states=(state.WAITING,)))
            if waiting > WAITING_LIMIT:
                raise FileFault(f"{waiting} trials wait in it")
            for _ in range(waiting):
                self._study.ask()  # left in the queue by a session that was stopped
            for trial in self._study.get_trials(deepcopy=False, states=(state.RUNNING,)):
                # Its run continues under a new number.
                self._study.tell(trial.number, state=state.FAIL)

    @contextmanager
    def faults(self) -> Generator[None]:
        """Turn whatever Optuna raises into a fault of the file: a crafted journal makes it raise anything, anywhere."""
        try:
            yield
        except (ClipUpError, MemoryError) as error:
            if isinstance(error, FileFault) and not str(error).startswith(str(self._path)):
                raise self._unusable(error) from error
            raise
        except Exception as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> FileFault:
        words = str(error) if isinstance(error, FileFault) else one_line(error)
        remedy = "remove it and try again, the trials are kept elsewhere"
        return FileFault(f"{self._path}: not a usable Optuna journal: {words}; {remedy}")

    @_guarded
    def record(self, point: Point, seed: int, records: Sequence[Record], value: float, *, complete: bool) -> None:
        """Record how far a trial came, and its final value."""
        if complete and value > float("-inf"):
            self._ended.add((point, seed))
        if self._is_known(point, seed):
            return
        trial = self._trials.get((point, seed)) or self._begin(point, seed)
        told = set(trial.study.get_trials(deepcopy=False)[trial.number].intermediate_values)
        for line in records:
            if line.score is not None and line.generation not in told:
                trial.report(line.score, line.generation)
        if complete and value > float("-inf"):
            self._study.tell(trial, value)
            self._trials.pop((point, seed), None)

    @_guarded
    def fail(self, point: Point, seed: int, reason: str) -> None:
        """Record that a trial's run failed."""
        trial = self._trials.pop((point, seed), None) or self._begin(point, seed)
        trial.set_user_attr("failure", reason[:500])
        self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
        self._trials.pop((point, seed), None)

    @_guarded
    def suggest(self, point: Point, number: int) -> Point:
        """The n-th variation of `point` in the further settings, from Optuna's sampler.

        It depends only on the trials of this search that were finished before it, so a search that was stopped gets the
        same answer again. The answer is also stored, because another version of Optuna may give another. Answers for
        different sets of further settings are stored separately.
        """
        names, value = {self._setting, *self._extra}, point.value(self._setting)
        asked = [
            trial
            for trial in self._study.get_trials(deepcopy=False)
            if trial.user_attrs.get("suggestion") == [value, number] and set(trial.params) == names
        ]
        if asked:
            params = asked[-1].params
        else:
            params = {self._setting: value, **self._sample(number)}
            noted = self._optuna.trial.create_trial(
                state=self._optuna.trial.TrialState.PRUNED,
                params=params,
                distributions={**self._distributions, **self._extra},
                user_attrs={"suggestion": [value, number]},
            )
            self._study.add_trial(noted)
        return replace(point, **{name: float(f"{params[name]:.3g}") for name in self._extra})  # pyright: ignore

    def _sample(self, number: int) -> dict[str, float]:
        seed = int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])
        sampler = self._optuna.samplers.TPESampler(seed=seed, n_startup_trials=2)
        study = self._optuna.create_study(direction="maximize", sampler=sampler)
        complete = [
            trial
            for trial in self._study.get_trials(states=(self._optuna.trial.TrialState.COMPLETE,))
            if (Point(**trial.params), trial.user_attrs["seed"]) in self._ended
        ]
        # The sampler depends on the order of the trials, and their numbers depend on how often the search was stopped.
        study.add_trials(sorted(complete, key=lambda trial: (sorted(trial.params.items()), trial.user_attrs["seed"])))
        return study.ask(self._extra).params

    @_guarded
    def close(self) -> None:
        """Mark trials that were not run to the end as stopped early."""
        for trial in self._trials.values():
            self._study.tell(trial, state=self._optuna.trial.TrialState.PRUNED)
        self._trials.clear()

    def _begin(self, point: Point, seed: int) -> Any:
        params = point.settings()
        self._study.enqueue_trial(params, user_attrs={"seed": seed})
        known = {**self._extra, "population": self._population}
        wanted = {**self._distributions, **{name: known[name] for name in params if name in known}}
        trial = self._study.ask(wanted)
        self._trials[point, seed] = trial
        return trial

    def _is_known(self, point: Point, seed: int) -> bool:
        """Whether an earlier session already recorded this trial's final value."""
        return any(
            trial.user_attrs.get("seed") == seed and trial.state.name == "COMPLETE" and trial.params == point.settings()
            for trial in self._study.get_trials(deepcopy=False)
        )


def _backend(journal: Any, path: Path) -> Any:
    """Return a storage of Optuna over one file that is opened as all files of a run are.

    Optuna's own would follow links, and wait for a lock file that a killed session left. Here the directory is locked.
    """

    class Lines(journal.BaseJournalBackend):
        """The journal as lines of JSON. Half a line at its end, which a killed session left, is cut off."""

        def __init__(self) -> None:
            self._logs = _read_journal(path)

        def read_logs(self, log_number_from: int) -> list[dict[str, object]]:
            """Return the entries from this number on."""
            return self._logs[log_number_from:]

        def append_logs(self, logs: list[dict[str, object]]) -> None:
            """Add entries at the end."""
            text = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
            with _for_writing(path) as file:
                file.write(text.encode("utf-8"))
                os.fsync(file.fileno())
            self._logs += [decode_object(line, path.name, LINE) for line in text.splitlines()]

    return Lines()


def _read_journal(path: Path) -> list[dict[str, object]]:
    with _for_writing(path) as file:
        if os.fstat(file.fileno()).st_size > SIZE_LIMIT:
            raise FileFault(f"larger than {SIZE_LIMIT} bytes")
        file.seek(0)
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            file.truncate(whole)
    return [
        decode_object(line, f"line {number}", LINE) for number, line in enumerate(data[:whole].splitlines(), start=1)
    ]


def _for_writing(path: Path) -> IO[bytes]:
    try:
        with Directory(path.parent) as directory:
            return directory.append(path.name)
    except OSError as error:
        raise FileFault.of(path, "written", error) from error


def load_optuna() -> Any:
    """The Optuna library; an error with the install command if it is missing."""
    try:
        return importlib.import_module("optuna")
    except ImportError as error:
        raise MissingDependency.of("optuna", extra="tune") from error
