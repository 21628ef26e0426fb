"""One thread for matrix products while a file is streamed: they are small, and the other cores read the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

_lock = Lock()
_inside = 0  # evaluations under way in this process
_limits: Any = None


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """Hold BLAS to one thread (where threadpoolctl, which scikit-learn brings, is installed); nests and overlaps.

    >>> with one_thread():
    ...     pass
    """
    global _inside, _limits
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        wanted = False
    if not wanted:
        yield
        return
    with _lock:
        if _inside == 0:
            _limits = threadpool_limits(1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limits.restore_original_limits()
