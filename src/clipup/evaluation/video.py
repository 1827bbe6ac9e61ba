"""Video files of a policy at work."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clipup.engines import Task
from clipup.errors import FileFault, InvalidArgument, MissingDependency
from clipup.evaluation.rendering import Frame, play
from clipup.policies import Policy
from clipup.runs.files import write_atomically

FASTEST = {".mp4": 50.0, ".gif": 25.0}
"""Frames per second at most; of a faster environment every second, third … frame is taken, at the same pace."""


@dataclass(frozen=True)
class Video:
    """What was recorded."""

    path: Path
    frames: int
    rate: float
    returns: tuple[float | None, ...]
    """Of each episode; None where it was cut."""
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

    `max_seconds` bounds each episode's length in the video. The file appears when it is complete.
    """
    if path.suffix not in FASTEST:
        raise InvalidArgument(f"a video must end in .mp4 or .gif, got {path.name!r}")
    if not path.parent.is_dir():
        raise FileFault(f"{path.parent}: no such directory")
    try:
        import imageio.v2 as imageio
    except ImportError as error:
        raise MissingDependency.of("imageio", extra="video") from error
    # Encoders write as they go and tell little of what went wrong, so they get a place of their own.
    with tempfile.TemporaryDirectory() as folder:
        sink = io.BytesIO() if path.suffix == ".gif" else Path(folder) / path.name
        try:
            video = _encode(imageio, sink, path, policy, task, range(first, first + episodes), seed, max_seconds)
            data = sink.getvalue() if isinstance(sink, io.BytesIO) else _checked(sink)
        except OSError as error:
            raise FileFault(f"{path}: cannot be encoded in {Path(folder).parent}; is there room?") from error
    write_atomically(path, data)
    return video


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
    """The bytes of an mp4 file, after making sure that it can be played: imageio does not say when ffmpeg fails."""
    import imageio_ffmpeg

    ffmpeg: Any = imageio_ffmpeg
    try:
        ffmpeg.count_frames_and_secs(str(path))
    except RuntimeError as error:
        raise OSError("not a video") from error
    return path.read_bytes()


def frames(policy: Policy, task: Task, *, seed: int = 0, episode: int = 0) -> Iterator[Frame]:
    """Yield the frames of one episode."""
    for step in play(policy, task, seed=seed, episode=episode).steps:
        yield step.frame


def _open(imageio: Any, sink: Path | io.BytesIO, rate: float) -> Any:
    if isinstance(sink, io.BytesIO):
        return imageio.get_writer(sink, format="GIF", duration=1000 / rate, loop=0)
    try:
        # Every player takes 4:2:0; macro_block_size=1 keeps the frame as it is instead of stretching it to 16 pixels.
        return imageio.get_writer(
            sink, format="FFMPEG", fps=rate, codec="libx264", pixelformat="yuv420p", macro_block_size=1,
            output_params=["-movflags", "+faststart"], ffmpeg_log_level="quiet",
        )  # fmt: skip
    except (ImportError, RuntimeError) as error:
        raise MissingDependency.of("imageio[ffmpeg]", extra="video") from error


def _even(frame: Frame) -> Frame:
    """Cut a last odd row or column, which 4:2:0 video cannot hold."""
    return frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2]
