"""A deadline for waiting, which costs nothing where there is nothing to wait for."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Generator
from typing import Any, TypeVar

T = TypeVar("T")


async def within(seconds: float, awaitable: Awaitable[T]) -> T:
    """Await; raise TimeoutError after some seconds. The timer is set when there is something to wait for: most bodies
    are there when they are asked for, and a timer of asyncio costs more than to read them.
    """
    steps = awaitable.__await__()
    try:
        waiting = next(steps)
    except StopIteration as ended:
        value: T = ended.value
        return value
    async with asyncio.timeout(seconds):
        return await _resumed(steps, waiting)


@types.coroutine
def _resumed(steps: Generator[Any, Any, T], waiting: Any) -> Generator[Any, Any, T]:
    """Go on with a coroutine that waits for ``waiting``."""
    try:
        while True:
            try:
                sent = yield waiting
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:
                waiting = steps.throw(error)
            else:
                waiting = steps.send(sent)
    except StopIteration as ended:
        value: T = ended.value
        return value
