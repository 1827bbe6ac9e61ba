"""One thread for linear algebra, while a population is evaluated."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any, cast

from clipup.errors import MissingDependency


@cache
def _controller() -> Any:
    try:
        import threadpoolctl
    except ImportError as error:
        raise MissingDependency.of("threadpoolctl", extra="train") from error
    return cast(Any, threadpoolctl).ThreadpoolController()


def single_thread() -> AbstractContextManager[object]:
    """Return a context in which BLAS uses one thread.

    OpenBLAS splits larger matrix-vector products over its threads, which fights with the simulator's threads for
    cores and may round differently with the number of cores.
    """
    return cast("AbstractContextManager[object]", _controller().limit(limits=1))
