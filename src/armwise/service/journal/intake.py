"""The rules by which a journal, in a database or in memory, accepts or refuses writes.

Idempotency by id and by key, reward windows, late and final rewards, groups that are accepted whole or not at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import get_args

from armwise.service.journal.errors import Conflict, Damaged, Stale, Unavailable, Unknown
from armwise.service.journal.events import KIND_OF, Batch, Decision, Event, Reward, Row, Sequel
from armwise.service.journal.rules import MAX_REWARDS, Status, check, happen, too_many_rewards
from armwise.service.journal.writes import Appended, Write, Written, check_group, repeats

_OF_DECISIONS = (Decision, *get_args(Sequel))


class Intake(ABC):
    """Accepts groups of writes, one after the other, at one time.

    ``known`` and ``requests`` are the decisions and the idempotency keys that writes refer to; ``appended`` are the
    events to append after event ``seq``, ``dirty`` the decisions that changed.
    """

    def __init__(self, time: int = 0, seq: int = 0, epoch: int = 0) -> None:
        self.time, self.seq, self.epoch = time, seq, epoch
        self.known: dict[tuple[str, str], Status] = {}
        self.requests: dict[tuple[str, str], int] = {}
        self.appended: list[tuple[Row, Write]] = []
        self.dirty: dict[tuple[str, str], None] = {}
        self.strange: dict[str, list[Row]] = {}  # decisions of other processes that this batch's draws did not count

    @abstractmethod
    def row(self, seq: int) -> Row:
        """An event of the journal before this batch."""

    @abstractmethod
    def rewards_before(self, app: str, id: str) -> int:
        """The number of rewards of a decision in the journal before this batch, including late ones."""

    def take(self, group: Sequence[Write]) -> Appended:
        """Accept a whole group, or return the reason why it is refused."""
        if self.strange:
            try:
                for write in group:
                    self._draw_again(write)
            except Exception as error:  # for example, the budget is spent now
                return error
        if len(group) == 1 and group[0].new and group[0].epoch == self.epoch:
            return [self._take_new(group[0])]
        only_asked = False
        for write in group:
            if write.epoch != self.epoch and isinstance(write.event, Decision):
                return Stale("a database was added that this process does not know: name it in its storage")
            only_asked = only_asked or (write.look and not isinstance(write.event, (Decision, Batch)))
        try:
            if len(group) > 1:
                check_group(group)
            rewards: dict[tuple[str, str], int] = {}  # of this group, by decision
            for write in group:
                key = write.app, write.id
                before = rewards.get(key, 0)
                if (refusal := self._refuse(write, key, before)) is not None:
                    return refusal
                rewards[key] = before + 1 if isinstance(write.event, Reward) else before
        except (Conflict, Unknown) as error:
            return error
        except Damaged as error:  # an earlier event of the same id: other groups of this batch are not affected
            return Unavailable(str(error))
        if only_asked:
            return []
        return [self._take_one(write) for write in group]

    def _draw_again(self, write: Write) -> None:
        """Draw a decision again, now counting those of other processes, unless it is a retry."""
        there = (write.app, write.request) in self.requests or (write.app, write.id) in self.known
        if write.again is not None and write.app in self.strange and not there:
            write.event, write.stack, write.seen, write.held = write.again(self.strange[write.app])

    def _refuse(self, write: Write, key: tuple[str, str], rewards: int) -> Exception | None:
        """Raise if a write contradicts an earlier one; otherwise return the reason for a refusal, if any.

        ``key`` is its decision, ``rewards`` the number of rewards of that before it in its group.
        """
        seq = self.requests.get((write.app, write.request)) if write.request else None
        if seq is not None:
            row = self._row(seq)
            if (row.id != write.id and not write.fresh) or not repeats(row, write.event):
                sent = write.request.rpartition("\x1f")[2]
                raise Conflict(f"request {sent} came before with other content")
            return None
        event, status = write.event, self.known.get(key)
        if write.look and status is None:
            if write.refusal is not None:
                return write.refusal
            raise Unknown(f"no decision has the id {write.id}", write.id)
        check(event, status, write.id, self.time, rewards)
        if status is None:
            return None
        if isinstance(event, Reward) and self.time > status.deadline:
            self._limit_late(write, rewards)
        if isinstance(event, Decision) and not repeats(self._row(status.seq), event):
            raise Conflict(f"event {write.id} was requested before with other content")
        return None

    def _limit_late(self, write: Write, rewards: int) -> None:
        """Limit late rewards by counting their rows, since the status does not count them."""
        kept = self.rewards_before(write.app, write.id)
        taken = sum(isinstance(w.event, Reward) and (w.app, w.id) == (write.app, write.id) for _, w in self.appended)
        if kept + taken + rewards >= MAX_REWARDS:
            raise too_many_rewards(write.id)

    def _take_new(self, write: Write) -> Written:
        """Accept a decision that is certainly new."""
        row = self.enter(write, write.event)
        key = write.app, write.id
        status = self.known[key] = Status.of(row, write.event)  # type: ignore[arg-type]
        self.dirty[key] = None
        return Written(row, status=status)

    def _take_one(self, write: Write) -> Written:
        seq = self.requests.get((write.app, write.request)) if write.request else None
        if seq is not None:
            row = self._row(seq)
            status = self.known.get((write.app, row.id))
            repeated = isinstance(write.event, Reward) and status is not None and status.repeated
            return Written(row, again=True, status=status, repeated=repeated)
        if not isinstance(write.event, _OF_DECISIONS):
            return Written(self.enter(write, write.event))
        key = write.app, write.id
        status = self.known.get(key)
        if isinstance(write.event, Decision):
            if status is not None:
                return Written(self._row(status.seq), again=True, status=status)
            return self._take_new(write)
        event = happen(write.event, status, self.time)
        row = self.enter(write, event)
        self.dirty[key] = None
        # Computed now: the group may have another reward of the same decision.
        repeated = isinstance(event, Reward) and not event.late and status is not None and status.repeated
        return Written(row, status=status, repeated=repeated)

    def enter(self, write: Write, event: Event) -> Row:
        """Give an event its number; what stores it writes its body."""
        self.seq += 1
        app, request, seen = write.app, write.request, write.seen or write.stack
        row = Row(self.seq, self.time, app, KIND_OF[type(event)], write.id, b"", event, None, request, seen)
        self.appended.append((row, write))
        if request:
            self.requests[app, request] = row.seq
        return row

    def _row(self, seq: int) -> Row:
        if self.appended and seq >= self.appended[0][0].seq:
            return self.appended[seq - self.appended[0][0].seq][0]
        return self.row(seq)
