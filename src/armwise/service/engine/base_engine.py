"""The verbs of every engine, over whatever journal and with threads or without."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from armwise.agents.budget.accounts import BudgetSpent
from armwise.features.encoding.arms import ArmColumns, check_id, read_arms
from armwise.features.encoding.tokens import PackedTokens, RequestTokens
from armwise.service.engine.ids import Ids
from armwise.service.engine.requests.draw import Answer, answer, drawn, undrawn
from armwise.service.journal.errors import Unknown
from armwise.service.journal.events import Activation, Decision, Event, Lessons, Reward, Row, decided
from armwise.service.journal.rules import Status
from armwise.service.journal.source import EventSource
from armwise.service.journal.writes import Write, Written
from armwise.service.model.drawing.encoded import EncodedRequest
from armwise.service.model.drawing.in_flight import Reservation
from armwise.service.model.model import Model

# A decision, its tokens, what the agent saw of it, and what counts it while it is in flight.
Draw = tuple[Decision, RequestTokens | None, EncodedRequest | None, Reservation | None]


class BaseEngine(ABC):
    """Prepare requests, journal them, and read what was journaled.

    An engine says what its clock, journal and models are, and when what is written is committed and learnt.
    """

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    @property
    @abstractmethod
    def reading(self) -> AbstractContextManager[EventSource]:
        """A session for reading the journal."""

    @abstractmethod
    def now(self) -> int:
        """Milliseconds, by a clock that never goes back."""

    @abstractmethod
    def model(self, app: str) -> Model:
        """The model that decides for an application."""

    @abstractmethod
    def write(self, group: Sequence[Write]) -> Sequence[Written]:
        """Journal a group, whole or not at all; return when it is committed."""

    @abstractmethod
    def journal_change(self, app: str, event: Event, id: str = "", request: str = "") -> None:
        """Journal an event that changes an application, without checks; return when it is learnt."""

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

    def new_id(self, now: int | None = None, request: str = "") -> str:
        """A new id: the time first, so that the index grows at its end, then 80 random bits.

        ``request`` is the idempotency key, which matters where there are several databases."""
        return self._ids.fresh(self.now() if now is None else now)

    def decide(self, app: str, context: bytes, arms: Sequence[bytes], **options: Any) -> Answer:
        """Decide and wait until it is durable; options as for ``prepare``."""
        write = self.prepare(app, context, arms, **options)
        return answer(self.write([write])[0], write)

    def reward(self, app: str, id: str, value: float, request: str = "", cost: Any = None) -> Written:
        """Journal a reward and wait until it is durable."""
        return self.write([self.prepare_reward(app, id, value, request, cost)])[0]

    def activate(self, app: str, id: str, request: str = "") -> Written:
        """A deferred decision was shown."""
        return self.write([self.prepare_activation(app, id, request)])[0]

    def teach(self, app: str, lessons: Lessons, request: str = "") -> None:
        """Journal logged decisions of other systems for a warm start; return when they are learnt."""
        model = self.model(app)
        for reward in lessons.rewards:
            model.check_reward(reward)
        self.journal_change(app, lessons, request=request)

    def forgotten(self, app: str) -> int:
        """The event up to which the application's log was deleted; nothing before it is shown."""
        return self.model(app).settings.forgotten

    def find(self, app: str, id: str, deleted: bool = False) -> tuple[Answer, Decision, Status]:
        """A decision as it was answered, and its status; with ``deleted`` even if its log was deleted."""
        return self._find(app, id, deleted, rewards=False)[:3]

    def find_with_rewards(self, app: str, id: str) -> tuple[Answer, Decision, Status, list[Row]]:
        """The same, and every reward that it was given, late ones too."""
        return self._find(app, id, deleted=False, rewards=True)

    def _find(self, app: str, id: str, deleted: bool, rewards: bool) -> tuple[Answer, Decision, Status, list[Row]]:
        first = 0 if deleted else self.forgotten(app)
        with self.reading as journal, journal.consistent_reads():
            found = [status for status in journal.statuses([(app, id)]) if status.seq > first]
            rows = [journal.row(status.seq) for status in found]
            given = journal.rewards([(app, id)]).get((app, id), []) if found and rewards else []
        if not found:
            raise Unknown(f"no decision has the id {id}", id)
        return answer(Written(rows[0])), decided(rows[0]), found[0], given
