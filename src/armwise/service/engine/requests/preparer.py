"""Requests to an application, drawn and checked: what is to be journaled before they are answered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from armwise.agents.budget.accounts import BudgetSpent
from armwise.features.encoding.arms import ArmColumns, check_id, read_arms
from armwise.features.encoding.tokens import PackedTokens, RequestTokens
from armwise.service.engine.requests.draw import drawn, undrawn
from armwise.service.journal.events import Activation, Decision, Reward, Row
from armwise.service.journal.writes import Write
from armwise.service.model.drawing.encoded import EncodedRequest
from armwise.service.model.drawing.in_flight import Reservation
from armwise.service.model.model import Model

# A decision, its tokens, what the agent saw of it, and what counts it while it is in flight.
Draw = tuple[Decision, RequestTokens | None, EncodedRequest | None, Reservation | None]


class RequestPreparer(ABC):
    """The first half of every verb of an engine, with threads or without: nothing of it is journaled yet."""

    @abstractmethod
    def model(self, app: str) -> Model:
        """The model that decides for an application."""

    @abstractmethod
    def new_id(self, now: int | None = None, request: str = "") -> str:
        """A new id for a time, now if None; ``request`` is the idempotency key."""

    @abstractmethod
    def uniform(self, app: str, id: str) -> float:
        """The number in [0, 1) that the arm of a decision is drawn with."""

    @property
    @abstractmethod
    def draws_again(self) -> bool:
        """Whether others may decide between a draw and its commit: an agent that counts decisions draws again then."""

    def prepare(
        self, app: str, context: bytes, arms: Sequence[bytes] | ArmColumns, *, id: str | None = None,
        excluded: Sequence[str] = (), deferred: bool = False, request: str = "", by: str = "", slot: str = "",
        tokens: PackedTokens | None = None, now: int | None = None, keep: bool = False, catalogue: bytes = b"",
        split: Sequence[float] = (),
    ) -> Write:  # fmt: skip
        """Decide without journaling: return the write that must be durable before the answer is sent.

        ``arms`` are texts, or what ``read_arms`` made of them; ``tokens`` the context's, where they are at hand;
        ``now`` the time for its id; ``catalogue`` the hash by which the arms were named; ``split`` the arms'
        probabilities, where not the agent sets them. With ``keep`` its features stay in memory until the learner has
        learnt it, which need not make them again then."""
        read = arms if isinstance(arms, ArmColumns) else read_arms(arms)
        named = (check_id("the event id", id) if id is not None else self.new_id(now)) + slot

        def draw() -> Draw:
            model = self.model(app)
            decision, seen, held = drawn(model, context, read, excluded, self.uniform(app, named), tokens, split)
            decision.deferred, decision.by = deferred, by
            kept: EncodedRequest | None = None  # an apprentice's decision is learnt unscaled
            if seen.chosen_row_only and not decision.apprentice:
                kept = seen
            elif not decision.apprentice:
                kept = model.agent_view.kept(seen, decision.arm) or (seen if keep else None)
            return decision, seen.stack, kept, held

        def draw_counting(strange: Sequence[Row]) -> Draw:
            """Draw a decision again that did not count those of other processes."""
            self.model(app).count_foreign_decisions(strange)
            return draw()

        try:
            decision, stack, kept, held = draw()
        except BudgetSpent as spent:
            if id is None and not request:
                raise
            # It may have been made before, which needs no budget: the journal says.
            decision = undrawn(self.model(app), context, read, excluded, deferred)
            return Write(app, named, decision, request, id is None, names=read.ids, look=True, refusal=spent)
        again = draw_counting if held is not None and self.draws_again else None
        return Write(app, named, decision, request, id is None, stack, kept, read.ids, held, again, catalogue)

    def prepare_reward(
        self, app: str, id: str, value: float, request: str = "", cost: Any = None, final: bool = False,
        slot: str = "",
    ) -> Write:  # fmt: skip
        """A reward, checked; ``slot`` is what follows the id of a list in that of one of its slots."""
        model = self.model(app)
        event = Reward(model.check_reward(value), cost=model.check_cost(cost), final=final)
        return Write(app, check_id("the event id", id) + slot, event, request)

    def prepare_activation(self, app: str, id: str, request: str = "") -> Write:
        """An activation, checked."""
        self.model(app)
        return Write(app, check_id("the event id", id), Activation(), request)
