"""One thread for matrix products while a file is streamed: they are small, and the other cores read the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any

from armwise.core.tools.threads import thread_pools

_lock = Lock()
_inside = 0  # evaluations under way in this process
_limits: Any = None


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """Hold BLAS to one thread (where threadpoolctl, which scikit-learn brings, is installed); nests and overlaps."""
    global _inside, _limits
    pools = None
    if wanted:
        with suppress(ModuleNotFoundError):
            pools = thread_pools()
    if pools is None:
        yield
        return
    with _lock:
        if _inside == 0:
            _limits = pools.limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limits.restore_original_limits()
