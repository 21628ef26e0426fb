"""The pools of threads that libraries for linear algebra keep in this process."""

from __future__ import annotations

import functools
import sys
from typing import Any


def thread_pools() -> Any:
    """threadpoolctl's controller of them, found anew when a module was imported since, which may have brought one.

    To look for them takes milliseconds: more than many a race or an evaluation that holds them to one thread.

    >>> with thread_pools().limit(limits=1):
    ...     sum([1, 2])
    3
    """
    return _pools(len(sys.modules))


@functools.lru_cache(maxsize=1)
def _pools(n_modules: int) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
