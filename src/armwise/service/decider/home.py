"""The storage of a ``Decider``: memory or a folder, behind one interface."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from armwise.service.decider.decided import Decided, Ranked, Receipt
from armwise.service.engine.requests.request import ParsedRequest
from armwise.service.engine.requests.slots import SlotsRequest
from armwise.service.journal.events import Lessons, Reward
from armwise.service.model.model import Model

APP = "default"  # the application's name in the journal, as ``armwise serve`` calls its only one


Given = tuple[str, float, Any]  # a decision's id, its reward, its cost (None: not given)


class Home(Protocol):
    """The interface of a Decider's storage."""

    def decide(self, requests: Sequence[ParsedRequest]) -> list[Decided]:
        """Decide, in one commit; an id that was decided before gets the same answer."""

    def rank(self, requests: Sequence[SlotsRequest]) -> list[Ranked]:
        """Fill lists, in one commit; an id that was ranked before gets the same answer."""

    def shown(self, id: str) -> list[str]:
        """The arms of a list that was ranked, from the top; ``Unknown`` if there is none with this id."""

    def reward(self, rewards: Sequence[Given], final: bool = False) -> list[Receipt]:
        """Give decisions their rewards, in one commit; ``Unknown``, and nothing is taken, if one of the ids is."""

    def model(self) -> Model:
        """The model with all that was decided and rewarded so far."""

    def lines(self) -> Iterable[bytes]:
        """Yield every decision in order as dsjson, with its status and its age now."""

    def teach(self, lessons: Lessons) -> None:
        """Learn decisions made elsewhere."""

    def close(self) -> None:
        """Release all resources."""


def receipt(id: str, event: Reward, repeated: bool) -> Receipt:
    """Return the receipt of a reward.

    >>> receipt("e1", Reward(1.0, late=True), repeated=False).status
    'late'
    """
    return Receipt(id, "late" if event.late else "repeated" if repeated else "taken")
