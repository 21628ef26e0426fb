"""The thread pools of the BLAS libraries in this process."""

from __future__ import annotations

import functools
import sys
from typing import Any


def thread_pools() -> Any:
    """Return threadpoolctl's controller of the pools, made again if modules were imported since.

    Finding the pools takes milliseconds, which is longer than many races or evaluations that limit them to one thread.
    """
    return _pools(len(sys.modules))


@functools.lru_cache(maxsize=1)
def _pools(n_modules: int) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
