"""Coroutines for ``Decider`` and ``Client``."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from armwise.service.decider.decided import Decided, ListRewards, Ranked, Receipt
from armwise.service.engine.requests.ranking import DEFAULT_SLOTS


class AsyncVerbs(abc.ABC):
    """``decide`` and ``reward`` as coroutines, each in a thread."""

    @abc.abstractmethod
    def decide(self, context: Any = None, arms: Iterable[Any] = (), *, id: str | None = None) -> Decided:
        """Choose an arm."""

    @abc.abstractmethod
    def rank(
        self, context: Any = None, arms: Iterable[Any] = (), k: int = DEFAULT_SLOTS, *, id: str | None = None,
        pinned: Mapping[int, str] | None = None, at_most: Mapping[str, int] | None = None,
    ) -> Ranked:  # fmt: skip
        """Fill a list."""

    @abc.abstractmethod
    def reward(self, id: Any, value: Any, cost: Any = None, *, final: bool = False) -> Any:
        """Reward a decision or a list."""

    async def adecide(self, context: Any = None, arms: Iterable[Any] = (), *, id: str | None = None) -> Decided:
        """``decide`` for asyncio, in a thread.

        >>> from armwise import Decider
        >>> asyncio.run(Decider().adecide({"hour": 21}, arms=["red"])).arm
        'red'
        """
        return await asyncio.to_thread(self.decide, context, arms, id=id)

    async def arank(
        self, context: Any = None, arms: Iterable[Any] = (), k: int = DEFAULT_SLOTS, *, id: str | None = None,
        pinned: Mapping[int, str] | None = None, at_most: Mapping[str, int] | None = None,
    ) -> Ranked:  # fmt: skip
        """``rank`` for asyncio, in a thread.

        >>> from armwise import Decider
        >>> asyncio.run(Decider().arank({"hour": 21}, arms=["red"], k=1)).arms
        ['red']
        """
        return await asyncio.to_thread(self.rank, context, arms, k, id=id, pinned=pinned, at_most=at_most)

    @overload
    async def areward(
        self, id: str | Decided, value: float, cost: float | Sequence[float] | None = None, *, final: bool = False
    ) -> Receipt: ...
    @overload
    async def areward(
        self, id: str | Ranked, value: ListRewards, cost: None = None, *, final: bool = False
    ) -> list[Receipt]: ...
    async def areward(self, id: Any, value: Any, cost: Any = None, *, final: bool = False) -> Receipt | list[Receipt]:
        """``reward`` for asyncio, in a thread.

        >>> from armwise import Decider
        >>> shop = Decider()
        >>> asyncio.run(shop.areward(shop.decide({}, arms=["a"]), 1.0)).status
        'taken'
        """
        found: Receipt | list[Receipt] = await asyncio.to_thread(self.reward, id, value, cost, final=final)
        return found
