"""``clipup record``."""

from __future__ import annotations

import argparse
from pathlib import Path

from clipup.cli.arguments import add_output_flags, seed_number, whole_number
from clipup.cli.output import print_json, say
from clipup.cli.policies import add_policy_arguments, load
from clipup.errors import InvalidArgument

DESCRIPTION = """Record a video of a trained policy. No screen is needed.

Episode i with --seed S is the i-th episode of `clipup evaluate --seed S`."""
EXAMPLES = """examples:
  clipup record runs/LunarLanderContinuous-v3-1 -o lander.mp4
  clipup record runs/Walker2d-v4-1 --best -o walker.gif --max-seconds 8
  clipup record policy.safetensors -o three.mp4 --episodes 3 --seed 7"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_policy_arguments(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="video.mp4 or video.gif")
    parser.add_argument("--episodes", type=whole_number, default=1, metavar="N", help="number of episodes (default: 1)")
    parser.add_argument("--seed", type=seed_number, default=0, metavar="N", help="fixes the episodes (default: 0)")
    parser.add_argument("--max-seconds", type=float, metavar="X", help="cut each episode after X seconds")
    add_output_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Record."""
    from clipup.evaluation.video import prepare_rendering, record_video

    if arguments.max_seconds is not None and not arguments.max_seconds > 0:
        raise InvalidArgument(f"--max-seconds must be above 0, got {arguments.max_seconds:g}")
    prepare_rendering()
    policy, task, _ = load(arguments, rendering=True)
    video = record_video(
        policy,
        task,
        Path(arguments.output),
        episodes=arguments.episodes,
        seed=arguments.seed,
        max_seconds=arguments.max_seconds,
    )
    if arguments.json:
        print_json(
            {
                "output": str(video.path),
                "frames": video.frames,
                "frames_per_second": video.rate,
                "returns": video.returns,
                "engine": video.engine,
                "env": task.label,
            }
        )
    elif not arguments.quiet:
        returns = ", ".join("not known (cut)" if value is None else f"{value:.1f}" for value in video.returns)
        say(f"{video.path}: {video.frames} frames at {video.rate:g}/s ({video.engine}), return {returns}")
    return 0
