"""The verbs for asyncio: what ``Decider`` and ``Client`` share."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from armwise.service.decider.decided import Decided, Receipt


class AsyncVerbs(abc.ABC):
    """``decide`` and ``reward`` as coroutines, each in a thread."""

    @abc.abstractmethod
    def decide(self, context: Any = None, arms: Iterable[Any] = (), *, id: str | None = None) -> Decided:
        """Choose an arm."""

    @abc.abstractmethod
    def reward(
        self, id: str | Decided, value: float, cost: float | Sequence[float] | None = None, *, final: bool = False
    ) -> Receipt:
        """Say what a decision was worth."""

    async def adecide(self, context: Any = None, arms: Iterable[Any] = (), *, id: str | None = None) -> Decided:
        """``decide`` for asyncio, in a thread.

        >>> from armwise import Decider
        >>> asyncio.run(Decider().adecide({"hour": 21}, arms=["red"])).arm
        'red'
        """
        return await asyncio.to_thread(self.decide, context, arms, id=id)

    async def areward(
        self, id: str | Decided, value: float, cost: float | Sequence[float] | None = None, *, final: bool = False
    ) -> Receipt:
        """``reward`` for asyncio, in a thread.

        >>> from armwise import Decider
        >>> shop = Decider()
        >>> asyncio.run(shop.areward(shop.decide({}, arms=["a"]), 1.0)).status
        'taken'
        """
        return await asyncio.to_thread(self.reward, id, value, cost, final=final)
