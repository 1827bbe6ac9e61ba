"""Records a policy as a video file."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clipup.engines import Task, registry
from clipup.engines.rendering import Episode, Frame
from clipup.engines.task import EnvironmentMaker
from clipup.errors import (
    ClipUpError,
    EnvironmentFault,
    FileFault,
    InvalidArgument,
    MissingDependency,
    UnknownEnvironment,
    one_line,
)
from clipup.evaluation.evaluate import Source, load_with_task
from clipup.files import read_named, write_output
from clipup.policies import Policy

SIZE_LIMIT = 1024**3
FASTEST = {".mp4": 50.0, ".gif": 25.0}
"""Most frames per second. A faster environment keeps its pace: only every second, third … frame is recorded."""


def prepare_rendering() -> None:
    """Do what must be done before a simulator is imported, so that it can draw, with a screen or without."""
    if not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    for entry in registry.ENTRIES:
        entry.prepare_rendering()


def play(policy: Policy, task: Task, *, seed: int = 0, episode: int = 0) -> Episode:
    """Return an episode of `policy` on `task`, frame by frame: the one that `evaluate` gives this number."""
    task = task.for_evaluation()
    prepare_rendering()
    chosen, _ = registry.choose(task, rendering=True)
    try:
        return chosen.play(policy, task, seed=seed, episode=episode)
    except UnknownEnvironment as error:
        raise registry.explained(task, error) from error
    except ClipUpError:
        raise
    except Exception as error:  # renderers raise errors of any kind
        raise EnvironmentFault(f"{task.label} cannot be rendered: {one_line(error)}") from error


@dataclass(frozen=True)
class Video:
    """What was recorded."""

    path: Path
    frames: int
    rate: float
    returns: tuple[float | None, ...]
    """The return of each episode; None if the episode was cut short."""
    engine: str


def record_video(
    policy: Policy,
    task: Task,
    path: Path,
    *,
    episodes: int = 1,
    seed: int = 0,
    first: int = 0,
    max_seconds: float | None = None,
) -> Video:
    """Record episodes `first`, `first` + 1, … of `policy` into an mp4 or gif file.

    `max_seconds` limits each episode's length in the video. The file appears only when it is complete.
    """
    if path.suffix not in FASTEST:
        raise InvalidArgument(f"a video must end in .mp4 or .gif, got {path.name!r}")
    if not path.parent.is_dir():
        raise FileFault(f"{path.parent}: no such directory")
    try:
        import imageio.v2 as imageio
    except ImportError as error:
        raise MissingDependency.of("imageio", extra="video") from error
    # Encoders write while they run and say little about what went wrong, so they write somewhere else first.
    with tempfile.TemporaryDirectory() as folder:
        sink = io.BytesIO() if path.suffix == ".gif" else Path(folder) / path.name
        try:
            video = _encode(imageio, sink, path, policy, task, range(first, first + episodes), seed, max_seconds)
            data = sink.getvalue() if isinstance(sink, io.BytesIO) else _checked(sink)
        except OSError as error:
            raise FileFault(f"{path}: cannot be encoded in {Path(folder).parent}; is there room?") from error
    write_output(path, data)
    return video


def record(
    policy: Source,
    path: str | os.PathLike[str],
    task: Task | str | EnvironmentMaker | None = None,
    *,
    episodes: int = 1,
    seed: int = 0,
    max_seconds: float | None = None,
    imports: Collection[str] = (),
) -> Video:
    """Record a policy into ``path``, which ends in .mp4 or .gif.

    `policy`, `task` and `imports` are as for `clipup.evaluate`; episode i with this seed is the i-th of it.
    """
    found, where = load_with_task(policy, task, imports)
    return record_video(found, where, Path(path), episodes=episodes, seed=seed, max_seconds=max_seconds)


def _encode(
    imageio: Any,
    sink: Path | io.BytesIO,
    path: Path,
    policy: Policy,
    task: Task,
    numbers: range,
    seed: int,
    max_seconds: float | None,
) -> Video:
    writer: Any = None
    count, rate, engine = 0, 0.0, ""
    returns: list[float | None] = []
    try:
        for number in numbers:
            episode = play(policy, task, seed=seed, episode=number)
            stride = max(1, round(episode.rate / FASTEST[path.suffix]))
            rate, engine = episode.rate / stride, episode.engine
            total: float | None = 0.0
            for index, step in enumerate(episode.steps):
                if max_seconds is not None and index > max_seconds * episode.rate:
                    total = None
                    break
                total += step.reward
                if index % stride:
                    continue
                if writer is None:
                    writer = _open(imageio, sink, rate)
                writer.append_data(_even(step.frame))
                count += 1
            returns.append(total)
    finally:
        if writer is not None:
            writer.close()
    return Video(path, count, rate, tuple(returns), engine)


def _checked(path: Path) -> bytes:
    """Return the bytes of an mp4 file that can be played: imageio does not say when ffmpeg fails."""
    import imageio_ffmpeg

    ffmpeg: Any = imageio_ffmpeg
    try:
        ffmpeg.count_frames_and_secs(str(path))
    except RuntimeError as error:
        raise OSError("not a video") from error
    return read_named(path, SIZE_LIMIT, "a video")


def _open(imageio: Any, sink: Path | io.BytesIO, rate: float) -> Any:
    if isinstance(sink, io.BytesIO):
        return imageio.get_writer(sink, format="GIF", duration=1000 / rate, loop=0)
    try:
        # Every player takes 4:2:0. macro_block_size=1 keeps the frame as it is; imageio would stretch it to 16 pixels.
        return imageio.get_writer(
            sink, format="FFMPEG", fps=rate, codec="libx264", pixelformat="yuv420p", macro_block_size=1,
            output_params=["-movflags", "+faststart"], ffmpeg_log_level="quiet",
        )  # fmt: skip
    except (ImportError, RuntimeError) as error:
        raise MissingDependency.of("imageio[ffmpeg]", extra="video") from error


def _even(frame: Frame) -> Frame:
    """Cut off an odd last row or column, which 4:2:0 video cannot hold."""
    return frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2]
