"""The memory and time of one generation of `clipup.InPlaceES` over very many parameters.

    python benchmarks/in_place_memory.py [--dimension 100000000]

Makes four candidates in the parameters, takes them back, checks that they left no trace, and makes an update. Reports
the peak memory of the process over what it had with the parameters alone, and the processor's seconds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import resource
import time
from pathlib import Path

import numpy as np

import clipup

RESULT = Path(__file__).parent / "results" / "in_place_memory.json"


def peak() -> int:
    """Return the largest memory that this process had so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(dimension: int) -> dict[str, float]:
    """Return what one generation of four candidates took."""
    parameters = np.full(dimension, 0.5, np.float32)
    before = peak()
    search = clipup.InPlaceES([parameters], stdev=0.01, max_speed=1.0, population_size=4, seed=1)
    digest = hashlib.sha256(parameters).digest()
    started = time.process_time()
    for candidate in search.ask():
        with search.applied(candidate):
            pass
    candidates = time.process_time() - started
    if hashlib.sha256(parameters).digest() != digest:
        raise SystemExit("a candidate left a trace")
    started = time.process_time()
    search.tell([1.0, 2.0, 3.0, 5.0])
    return {
        "dimension": dimension,
        "parameters_bytes": parameters.nbytes,
        "extra_bytes": peak() - before,
        "seconds_per_candidate": candidates / 4,
        "seconds_per_update_of_two_directions": time.process_time() - started,
    }


def main() -> None:
    """Measure, print and keep the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dimension", type=int, default=100_000_000)
    result = {
        **measure(parser.parse_args().dimension),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "machine": platform.machine(),
    }
    print(json.dumps(result, indent=1))
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
