"""Videos of trained policies inside the page, where the environment can be rendered."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from clipup.errors import ClipUpError
from clipup.evaluation.video import SIZE_LIMIT
from clipup.files import read_named
from clipup.report.loading import LoadedRun
from clipup.report.page_data import PageData, short_names

SECONDS = 15.0
TRIES = 3
"""Runs without a video that are skipped before giving up."""


def embedded_videos(
    runs: Sequence[LoadedRun], *, limit: int, imports: Collection[str] = (), warn: Callable[[str], None]
) -> list[PageData]:
    """Videos of the best policies of the best runs, at most `limit`.

    A run that cannot be rendered here is skipped, and `warn` is told why: a report without a video is still a report.
    """
    order = sorted(range(len(runs)), key=lambda place: -_score(runs[place]))
    names = short_names(runs)
    videos: list[PageData] = []
    for place in order[: limit + TRIES]:
        if len(videos) >= limit:
            break
        try:
            videos.append(_video(runs[place], names[place], imports))
        except (ClipUpError, OSError) as error:
            warn(f"no video of {names[place]}: {' '.join(str(error).split())}")
        except Exception as error:
            # Simulators and renderers raise errors of any kind. None of them may prevent the report.
            warn(f"no video of {names[place]}: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    return videos


def _video(run: LoadedRun, name: str, imports: Collection[str]) -> PageData:
    from clipup.evaluation.trained_task import task_of
    from clipup.evaluation.video import prepare_rendering, record_video
    from clipup.export.policy import policy_file, read_policy
    from clipup.runs.trust import check_import

    try:
        path = policy_file(str(run.path), best=True)
    except ClipUpError:
        path = policy_file(str(run.path), best=False)
    policy, described = read_policy(path, imports=imports)
    check_import(described.env, named=imports, source=str(path), wrapper=described.wrapper)
    prepare_rendering()
    task, _ = task_of(described, rendering=True)
    with tempfile.TemporaryDirectory() as directory:
        video = record_video(policy, task, Path(directory) / "policy.mp4", max_seconds=SECONDS)
        data = base64.b64encode(read_named(video.path, SIZE_LIMIT, "a video")).decode("ascii")
    shown = ", ".join("cut" if value is None else f"{value:.4g}" for value in video.returns)
    caption = f"{name}, generation {described.generation}: an episode with return {shown}"
    return {"caption": caption, "source": f"data:video/mp4;base64,{data}"}


def _score(run: LoadedRun) -> float:
    scores = [record.score for record in run.records if record.score is not None]
    return max(scores, default=float("-inf"))
