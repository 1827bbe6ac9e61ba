"""``clipup export``."""

from __future__ import annotations

import argparse
from pathlib import Path

from clipup.cli.arguments import add_output_flags
from clipup.cli.output import print_json, say
from clipup.errors import InvalidArgument
from clipup.export.policy import encode_policy, policy_file, read_policy
from clipup.files import write_output

DESCRIPTION = """Write a trained policy as one file.

  .safetensors   weights, observation statistics, action bounds and the task; clipup.load_policy reads it with numpy
  .onnx          a graph from observation to action, with normalization and clipping; runs wherever ONNX does"""
EXAMPLES = """examples:
  clipup export runs/Walker2d-v4-1 -o walker.onnx
  clipup export runs/Walker2d-v4-1 --best -o walker.safetensors"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("policy", metavar="RUN_OR_POLICY", help="a run directory, or a policy file")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="policy.onnx or policy.safetensors")
    parser.add_argument("--best", action="store_true", help="the best evaluated policy of a run, not the newest")
    parser.add_argument("--import", dest="imports", metavar="MODULE", action="append", default=[],
                        help="module that the policy named in the file may import")  # fmt: skip
    add_output_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Export."""
    output = Path(arguments.output)
    source = policy_file(arguments.policy, best=arguments.best)
    policy, task = read_policy(source, imports=arguments.imports)
    if output.suffix == ".safetensors":
        data = encode_policy(policy, task)
    elif output.suffix == ".onnx":
        from clipup.export.onnx import encode_onnx

        data = encode_onnx(policy, task)
    else:
        raise InvalidArgument(f"output must end in .onnx or .safetensors, got {arguments.output!r}")
    write_output(output, data)
    if arguments.json:
        print_json({"output": str(output), "bytes": len(data), "policy": str(source), "env": task.env})
    elif not arguments.quiet:
        say(f"{output}: {len(data)} bytes, {policy.network.describe()} policy for {task.env or 'an unnamed task'}")
    return 0
