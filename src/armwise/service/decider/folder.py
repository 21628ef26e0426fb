"""A ``Decider`` in a folder: the service's engine and journal, without HTTP."""

from __future__ import annotations

import collections
import os
import weakref
from collections.abc import Callable, Iterator, Sequence

import msgspec

from armwise.features.encoding.tokens import RequestTokens, part
from armwise.service.config import open_store
from armwise.service.decider.decided import Decided, Ranked, Receipt
from armwise.service.decider.home import APP, Given, receipt
from armwise.service.engine.engine import Engine
from armwise.service.engine.requests.draw import answer
from armwise.service.engine.requests.request import ParsedRequest
from armwise.service.engine.requests.slots import MARK, SlotsRequest, prepare_slots, shown_by
from armwise.service.journal.events import Creation, Decision, Lessons, Reward
from armwise.service.journal.journal import Journal
from armwise.service.journal.writes import Write, Written
from armwise.service.log.export import as_dsjson, entries
from armwise.service.model.dims import AUTOMATIC, NEVER, SAMPLE, next_look, wanted_dim
from armwise.service.model.model import Model

MOST_KEPT = 1000  # decisions per call whose features stay in memory until they are learnt


class Folder:
    """Decisions in a journal: each is answered when the disk has it, and learnt soon after.

    ``creation`` says what to make of what the folder has (None: it is new).

    >>> import tempfile
    >>> home = Folder(tempfile.mkdtemp(), lambda before: before or Creation())
    >>> home.model().lessons; home.close()
    0
    """

    def __init__(
        self,
        folder: str,
        creation: Callable[[Creation | None], Creation],
        clock: Callable[[], float] | None = None,
    ) -> None:
        store = open_store(folder)
        journal = Journal(store.connect(), store.lock, store.clock)
        try:
            made = creation(journal.configured(APP)[1])
        finally:
            journal.connection.close()
        self._rewarded = 0  # the last reward event of this object
        self._n = 0  # decisions of this object
        self._look_at = 0 if made.settings.extra == AUTOMATIC else NEVER  # next check of the dimension
        self._latest: collections.deque[RequestTokens] = collections.deque(maxlen=SAMPLE)
        self._simulated = clock is not None  # time may jump by a week between two calls
        self._engine: Engine | None = Engine(store, {APP: made}, clock=clock, publish_every=0.02)
        try:
            self._engine.start()
        except RuntimeError as error:
            raise RuntimeError(f"{folder}: {error}") from None
        except ValueError:  # refused settings: release the folder, so that it can be opened again
            self._engine.stop()
            raise
        # If it is never closed, the end of the program stores the model and releases the folder.
        self._stop = weakref.finalize(self, _stop, self._engine, os.getpid())

    @property
    def engine(self) -> Engine:
        """The service's engine; ValueError once it is closed.

        >>> import tempfile
        >>> home = Folder(tempfile.mkdtemp(), lambda before: Creation()); home.close()
        >>> home.engine
        Traceback (most recent call last):
        ...
        ValueError: this Decider is closed
        """
        if self._engine is None:
            raise ValueError("this Decider is closed")
        return self._engine

    def decide(self, requests: Sequence[ParsedRequest]) -> list[Decided]:
        """Decide, in one commit, with all that was rewarded before this call."""
        engine = self.engine
        self._prepare(requests)
        now, keep = engine.now(), len(requests) <= MOST_KEPT
        writes = [
            engine.prepare(APP, a.context, a.arms, id=a.id, tokens=a.tokens, now=now, keep=keep) for a in requests
        ]
        return [_decided(*each) for each in zip(engine.writer.write(writes), writes, requests)]

    def _prepare(self, requests: Sequence[ParsedRequest]) -> None:
        """Learn what is due, then draw these decisions."""
        if self._simulated:
            self._close_windows()
        if self._look_at < NEVER:
            self._look(requests)
        if self._rewarded > self.engine.learner.published:
            self.engine.wait_learnt(self._rewarded)

    def rank(self, requests: Sequence[SlotsRequest]) -> list[Ranked]:
        """Fill lists, in one commit, with all that was rewarded before this call."""
        engine = self.engine
        each = [
            ParsedRequest(context, tokens or part(context, "c"), asked.arms)
            for asked in requests for context, tokens in zip(asked.contexts, asked.tokens)
        ]  # fmt: skip
        self._prepare(each)
        now = engine.now()
        lists = [prepare_slots(engine, APP, asked, now=now) for asked in requests]
        writes = [write for some in lists for write in some]
        made = [_decided(*one) for one in zip(engine.writer.write(writes), writes, each)]
        found = []
        for some in lists:
            slots, made = made[: len(some)], made[len(some) :]
            found.append(Ranked(slots[0].id.partition(MARK)[0], tuple(slots)))
        return found

    def shown(self, id: str) -> list[str]:
        """The arms of a list, from the top."""
        return shown_by(lambda each: self.engine.find(APP, each)[:2], id)

    def _look(self, requests: Sequence[ParsedRequest]) -> None:
        """Grow the dimension to what these decisions need: an event of the journal, which retrains the model."""
        self._latest.extend(RequestTokens(each.tokens, each.arms.tail) for each in requests)
        due, self._n = self._n >= self._look_at, self._n + len(requests)
        if not due:
            return
        self._look_at = next_look(self._n - 1)
        model, made = self.engine.model(APP), self.engine.creation(APP)
        dim = wanted_dim(model, self._latest)
        if dim > model.encoder.dim:
            grown = msgspec.structs.replace(made, features=made.features | {"dim": dim})
            self.engine.apply({APP: grown}, only=False)

    def reward(self, rewards: Sequence[Given], final: bool = False) -> list[Receipt]:
        """Give decisions their rewards, in one commit."""
        engine = self.engine
        writes = []
        for id, value, cost in rewards:
            event, mark, slot = id.partition(MARK)
            writes.append(engine.prepare_reward(APP, event, value, cost=cost, final=final, slot=mark + slot))
        written = engine.writer.write(writes)
        receipts = []
        for each in written:
            event = each.row.event
            assert isinstance(event, Reward)
            self._rewarded = max(self._rewarded, each.row.seq)
            receipts.append(receipt(each.row.id, event, each.repeated))
        return receipts

    def _close_windows(self) -> None:
        """Close windows that are over by the given clock, and learn them."""
        engine = self.engine
        with engine.reading as journal:
            due = journal.due(engine.now(), limit=1)
        if due:
            engine.expire()
            engine.wait_learnt()

    def model(self) -> Model:
        """Return the model with all events of the journal."""
        if self._simulated:
            self._close_windows()
        self.engine.wait_learnt()
        return self.engine.model(APP)

    def lines(self) -> Iterator[bytes]:
        """Yield every decision in order, with its status and its age now."""
        journal, now = self.engine.open_journal(), self.engine.now()
        try:
            yield from map(as_dsjson, entries(journal, APP, self.engine.forgotten(APP), now))
        finally:
            journal.connection.close()

    def teach(self, lessons: Lessons) -> None:
        """Journal decisions made elsewhere, and learn them."""
        self.engine.teach(APP, lessons)

    def close(self) -> None:
        """Commit, learn, and release the folder."""
        if self._engine is not None:
            self._engine = None
            self._stop()


def _stop(engine: Engine, process: int) -> None:
    """Stop an engine in the process that started it: a forked child has its locks, and none of its threads."""
    if os.getpid() == process:
        engine.stop()


def _decided(written: Written, write: Write, asked: ParsedRequest) -> Decided:
    context, arms, decision = asked.context, asked.arms, write.event
    if written.again or not isinstance(decision, Decision) or decision.order:
        it = answer(written, write)
        return Decided(it.id, it.arm, it.probability, dict(it.probabilities), context, arms)
    p, arm = decision.p, decision.arm
    return Decided(write.id, arms.ids[arm], p[arm], p, context, arms)
