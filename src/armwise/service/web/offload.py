"""Blocking work in threads. A cancelled request waits for its thread, so that no resource is closed while in use."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import Executor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
    """Run blocking work in a thread of the loop's pool; a cancelled caller waits for the thread, then is cancelled.

    ``asyncio.to_thread`` returns at once when it is cancelled while its thread goes on: whatever the caller then closes
    (a database session, a file) is closed under the thread.
    """
    return await run_in(None, functools.partial(work, *args, **options))


async def run_in(pool: Executor | None, work: Callable[[], T]) -> T:
    """Like ``in_thread``, in a given pool (None: the event loop's)."""
    running = asyncio.get_running_loop().run_in_executor(pool, work)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait({running})  # unlike ``await running``, a cancellation does not reach the thread's future
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return running.result()
    try:
        running.exception()  # the caller was cancelled: its result is not needed
        raise cancelled
    finally:
        del (
            cancelled,
            running,
        )  # the error's traceback has this frame: a cycle would keep the result until it is collected
