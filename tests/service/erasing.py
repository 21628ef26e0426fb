"""An erasure that drops its rows between two statements of a reader."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from armwise.service.engine.engine import Engine
from armwise.service.log.retain import Erased, Retention

T = TypeVar("T")


class Erasing:
    """An erasure in a thread of its own, which waits before it drops what it found until it is told to."""

    def __init__(self, engine: Engine, app: str, key: str, value: Any) -> None:
        self._waits, self._go, self._dropped = threading.Event(), threading.Event(), threading.Event()
        self._answers: list[Erased] = []
        retention = Retention(engine)
        drop = retention._drop

        def drop_when_told(*args: Any) -> int:
            self._waits.set()
            assert self._go.wait(60.0)
            try:
                return drop(*args)
            finally:
                self._dropped.set()

        retention._drop = drop_when_told  # type: ignore[method-assign, assignment]
        self._thread = threading.Thread(target=lambda: self._answers.append(retention.erase(app, key, value)))

    def __enter__(self) -> Erasing:
        self._thread.start()
        assert self._waits.wait(60.0)
        return self

    def drop(self) -> None:
        """Let the rows go; return when they are gone."""
        self._go.set()
        assert self._dropped.wait(60.0)

    def __exit__(self, *error: object) -> None:
        self._go.set()
        self._thread.join(60.0)
        assert error[0] is not None or [answer.remaining for answer in self._answers] == [0]


def before_statement(engine: Engine, n: int, act: Callable[[], None], read: Callable[[], T]) -> tuple[T, bool]:
    """What ``read`` returns if ``act`` comes before its n-th statement, from 0; and whether it had so many."""
    session = type(engine.reading.journal.connection)
    execute, reader = session.execute, threading.get_ident()
    count = 0

    def counted(self: Any, *args: Any) -> list[Any]:
        nonlocal count
        if threading.get_ident() == reader:
            count += 1
            if count == n + 1:
                act()
        return execute(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "execute", counted)
        return read(), count > n
