"""The engine: decide, reward, activate, and say what became of it; free of any web framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armwise.agents.budget.accounts import BudgetSpent
from armwise.features.encoding.arms import ArmColumns, check_id, read_arms
from armwise.features.encoding.tokens import Part, Stack
from armwise.service.engine.applications import Applications
from armwise.service.engine.draw import Answer, answer, drawn, undrawn, uniform
from armwise.service.errors import Unknown
from armwise.service.journal.append import Write, Written
from armwise.service.journal.events import Activation, Decision, Reward, Row, decided
from armwise.service.journal.events import Creation as Creation
from armwise.service.journal.rules import Status
from armwise.service.model.seen import Seen
from armwise.service.model.underway import Held


class Engine(Applications):
    """All applications over one journal.

    >>> from armwise.service.journal.sqlite import SQLite
    >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
    >>> engine.start()
    >>> answer = engine.decide("shop", b'{"hour": 9}', [b'"pasta"', b'"salad"'], id="e1")
    >>> engine.reward("shop", "e1", 1.0).status.n
    1
    >>> engine.stop()
    """

    def merge(self) -> None:
        """Serve what all databases have learnt: of one, it is served already.

        >>> Engine(None, {}).merge()
        """

    @property
    def started(self) -> Sequence[Engine]:
        """The engines that work, whichever they are.

        >>> len(Engine(None, {}).started)
        1
        """
        return (self,)

    @property
    def each(self) -> Sequence[Engine]:
        """The engines that have a journal of their own: this one.

        >>> len(Engine(None, {}).each)
        1
        """
        return (self,)

    # ------------------------------------------------------------------ the four requests

    def prepare(
        self, app: str, context: bytes, arms: Sequence[bytes] | ArmColumns, *, id: str | None = None,
        excluded: Sequence[str] = (), deferred: bool = False, request: str = "", by: str = "", slot: str = "",
        tokens: Part | None = None, now: int | None = None, keep: bool = False, catalogue: bytes = b"",
    ) -> Write:  # fmt: skip
        """Decide, without journaling yet: what ``submit`` of the writer must make durable before it is answered.

        ``arms`` are texts, or what ``read_arms`` made of them; ``tokens`` the context's, where they are at hand;
        ``now`` the time for its id; ``catalogue`` the hash by which the arms were named. With ``keep`` its features
        stay in memory until the learner has learnt it, which need not make them again then.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start()
        >>> engine.prepare("shop", b"{}", [b'"a"', b'"b"'], excluded=["a"]).event.p
        [1.0]
        >>> engine.stop()
        """
        read = arms if isinstance(arms, ArmColumns) else read_arms(arms)
        named = (check_id("the event id", id) if id is not None else self.new_id(now)) + slot

        def made(strange: Sequence[Row] = ()) -> tuple[Decision, Stack | None, Seen | None, Held | None]:
            model = self.model(app)
            if strange:
                model.know_of(strange)
            decision, seen, held = drawn(model, context, read, excluded, self.uniform(app, named), tokens)
            decision.deferred, decision.by = deferred, by
            kept: Seen | None = None  # an apprentice's decision is learnt unscaled
            if not decision.apprentice:
                kept = model.sight.kept(seen, decision.arm) or (seen if keep else None)
            return decision, seen.stack, kept, held

        try:
            decision, stack, kept, held = made()
        except BudgetSpent as spent:
            if id is None and not request:
                raise
            # It may have been made before, which needs no budget: the journal says.
            decision = undrawn(self.model(app), context, read, excluded, deferred)
            return Write(app, named, decision, request, id is None, names=read.ids, look=True, refusal=spent)
        again = made if held is not None and self.store.shared and self.merged is None else None
        return Write(app, named, decision, request, id is None, stack, kept, read.ids, held, again, catalogue)

    def decide(self, app: str, context: bytes, arms: Sequence[bytes], **options: Any) -> Answer:
        """Decide and wait until it is durable; options as for ``prepare``.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start()
        >>> one = engine.decide("shop", b"{}", [b'"a"', b'"b"'], id="e1")
        >>> two = engine.decide("shop", b"{}", [b'"a"', b'"b"'], id="e1")
        >>> one.arm == two.arm, two.again
        (True, True)
        >>> engine.stop()
        """
        write = self.prepare(app, context, arms, **options)
        return answer(self.writer.write([write])[0], write)

    def prepare_reward(self, app: str, id: str, value: float, request: str = "", cost: Any = None) -> Write:
        """A reward, checked.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.prepare_reward("shop", "e1", 1).event.value; engine.stop()
        1.0
        """
        model = self.model(app)
        event = Reward(model.check_reward(value), cost=model.check_cost(cost))
        return Write(app, check_id("the event id", id), event, request)

    def reward(self, app: str, id: str, value: float, request: str = "", cost: Any = None) -> Written:
        """Journal a reward and wait until it is durable.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start()
        >>> engine.reward("shop", "e1", 1.0)
        Traceback (most recent call last):
        ...
        armwise.service.errors.Unknown: no decision has the id e1
        >>> engine.stop()
        """
        written: list[Written] = self.writer.write([self.prepare_reward(app, id, value, request, cost)])
        return written[0]

    def prepare_activation(self, app: str, id: str, request: str = "") -> Write:
        """An activation, checked.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.prepare_activation("shop", "e1").id; engine.stop()
        'e1'
        """
        self.model(app)
        return Write(app, check_id("the event id", id), Activation(), request)

    def activate(self, app: str, id: str, request: str = "") -> Written:
        """A deferred decision was shown.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start()
        >>> _ = engine.decide("shop", b"{}", [b'"a"'], id="e1", deferred=True)
        >>> engine.activate("shop", "e1").status.active
        True
        >>> engine.stop()
        """
        written: list[Written] = self.writer.write([self.prepare_activation(app, id, request)])
        return written[0]

    # ------------------------------------------------------------------ questions

    def find(self, app: str, id: str, deleted: bool = False) -> tuple[Answer, Decision, Status]:
        """A decision as it was answered and journaled, and where it stands; with ``deleted`` even if its log was.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.find("shop", "e1")
        Traceback (most recent call last):
        ...
        armwise.service.errors.Unknown: no decision has the id e1
        >>> engine.stop()
        """
        first = 0 if deleted else self.forgotten(app)
        with self.reading as journal:
            found = journal.statuses([(app, id)])
            if not found or found[0].seq <= first:
                raise Unknown(f"no decision has the id {id}")
            row = journal.row(found[0].seq)
            journal.connection.settle()
        return answer(Written(row)), decided(row), found[0]

    def rewards(self, app: str, id: str) -> list[Row]:
        """Every reward that a decision was given, late ones too.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {"shop": Creation()})
        >>> engine.start(); engine.rewards("shop", "e1"); engine.stop()
        []
        """
        with self.reading as journal:
            given = journal.rewards([(app, id)]).get((app, id), [])
            journal.connection.settle()
            return given

    def uniform(self, app: str, id: str) -> float:
        """The number in [0, 1) that an event's arm is drawn with: fixed by the journal's secret, the names alone.

        It is the first 8 bytes of BLAKE2b (keyed with the secret) of application, NUL, id, as a little-endian
        integer, shifted right by 11 and divided by 2^53.

        >>> from armwise.service.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {})
        >>> engine.start(); engine.uniform("shop", "e1") == engine.uniform("shop", "e1"); engine.stop()
        True
        """
        return uniform(self._secret, app, id)
