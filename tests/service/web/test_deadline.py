"""Waiting with a deadline: values, errors, timeouts and cancellation pass through as if there were none."""

from __future__ import annotations

import asyncio

import pytest

from armwise.service.web.deadline import within


def test_what_is_there_is_not_waited_for() -> None:
    async def ready() -> int:
        return 7

    async def refused() -> None:
        raise LookupError("no")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        timers: list[float] = []
        real = loop.call_at
        loop.call_at = lambda when, *rest, **more: (timers.append(when), real(when, *rest, **more))[1]  # type: ignore
        assert await within(1.0, ready()) == 7
        with pytest.raises(LookupError):
            await within(1.0, refused())
        assert not timers
        assert await within(1.0, asyncio.sleep(0.001, "later")) == "later"
        assert timers

    asyncio.run(main())


def test_a_deadline_ends_the_wait_and_what_waits_is_told() -> None:
    told: list[str] = []

    async def waits() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            told.append("cancelled")
            raise
        return "never"

    async def steps() -> str:
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(divide(), 1.0)
        return "all of them"

    async def divide() -> None:
        await asyncio.sleep(0.001)
        raise ZeroDivisionError

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await within(0.01, waits())
        assert told == ["cancelled"]
        assert await within(5.0, steps()) == "all of them"
        with pytest.raises(ZeroDivisionError):
            await within(5.0, divide())
        task = asyncio.ensure_future(within(60.0, waits()))
        await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert told == ["cancelled"] * 2

    asyncio.run(main())
