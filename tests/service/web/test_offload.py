"""Blocking work in threads, for callers that are cancelled."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref

from armwise.service.web.offload import in_thread


class Piece:
    """What a thread read."""


def test_a_cancelled_caller_leaves_nothing_for_the_garbage_collector() -> None:
    """Each reader that hung up left half a megabyte, which the collector found minutes later."""
    begun, go_on = threading.Event(), threading.Event()
    made: list[weakref.ref[Piece]] = []

    def work() -> Piece:
        begun.set()
        go_on.wait(10.0)
        piece = Piece()
        made.append(weakref.ref(piece))
        return piece

    async def cancel() -> None:
        caller = asyncio.create_task(in_thread(work))
        await asyncio.to_thread(begun.wait, 10.0)
        caller.cancel()
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.wait({caller})
        assert caller.cancelled()

    gc.disable()
    try:
        asyncio.run(cancel())
        assert made[0]() is None
    finally:
        gc.enable()
