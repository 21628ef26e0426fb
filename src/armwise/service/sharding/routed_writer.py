"""The writer of several databases: routes each write to its database.

A reward goes to the database that its decision is in; where databases were added since, those that it may be in are
asked in turn. A decision whose id (or idempotency key) came from outside is first looked for where it belonged before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from armwise.service.engine.writer import Done, Via, waited
from armwise.service.journal.errors import Stale, Unavailable, Unknown
from armwise.service.journal.events import Batch, Decision
from armwise.service.journal.writes import Appended, Write, Written, check_group

if TYPE_CHECKING:
    from armwise.service.journal.members import Members
    from armwise.service.sharding.sharded_engine import ShardedEngine

_SLOT = "\x1f"  # what follows it in an id, and before the last of it in a key of a request, is not hashed


def key_of(id: str) -> str:
    """The part of a decision's id that determines its database: the slots of one event stay together."""
    return id.partition(_SLOT)[0]


def asked_by(request: str) -> str:
    """The idempotency key as it was sent, which says where a decision without an id of its own belongs."""
    return request.rpartition(_SLOT)[2]


class RoutedWriter:
    """Takes groups of writes like a ``Writer`` and forwards each to its database."""

    def __init__(self, shards: ShardedEngine) -> None:
        self._shards = shards

    def submit(self, group: Sequence[Write], done: Done, via: Via | None = None) -> None:
        """Append a group; ``done`` gets what came of it once it is durable. A group for one database is taken whole or
        not at all; one for several is first asked about everywhere, then committed by each."""
        members = self._shards.members
        for write in group:
            if write.redraw is not None and write.epoch != members.epoch:  # its id was made for its key's home
                _replace(write, write.redraw())
            write.epoch = members.epoch
        if len(group) == 1 or len({key_of(write.id) for write in group}) == 1:  # slots of one event
            self._walk(group, _plan(members, group[0]), done, via)
            return
        check_group(group)
        plans = [_plan(members, write) for write in group]
        if len(plans[0]) == 1 and all(plan == plans[0] for plan in plans):
            self._walk(group, plans[0], done, via)
        else:
            self._split(group, plans, done, via)

    def write(self, group: Sequence[Write]) -> Any:
        """Submit and wait."""
        return waited(self.submit, group)

    def _walk(self, group: Sequence[Write], plan: list[tuple[str, bool]], done: Done, via: Via | None) -> None:
        home, look = plan[0]
        for write in group:
            if write.home and write.home != home and not look and isinstance(write.event, Decision):
                write.event.version, write.seen, write.home = 0, None, home  # events are counted otherwise there
        decision = any(isinstance(write.event, Decision) for write in group)
        if len(plan) == 1 and not decision:
            came = done
        else:

            def came(outcome: Appended) -> None:
                if isinstance(outcome, Stale):
                    again, refuse = lambda: self.submit(group, done, via), lambda error: _tell(done, error, via)
                    self._shards.when_known(group[0].epoch, again, refuse)
                elif isinstance(outcome, Unknown) and len(plan) > 1:
                    try:
                        self._walk(group, plan[1:], done, via)
                    except Unavailable as error:
                        done(error)
                else:
                    done(outcome)

        asked = [msgspec.structs.replace(write, look=True) for write in group] if look else group
        self._shards.engine(home).writer.submit(asked, came, via)

    def _split(self, group: Sequence[Write], plans: list[list[tuple[str, bool]]], done: Done, via: Via | None) -> None:
        for home in {home for plan in plans for home, _ in plan}:
            self._shards.working(home)

        def asked(outcomes: list[Appended]) -> None:
            for write, outcome in zip(group, outcomes):
                if isinstance(outcome, Unknown) and isinstance(write.event, Decision | Batch):
                    continue
                if isinstance(outcome, Exception):
                    done(outcome)
                    return
            # The record of the batch first: what is left of one that stops midway can only be completed by itself.
            write_part(0, 1 if isinstance(group[0].event, Batch) else len(group), [])

        def write_part(start: int, end: int, found: list[Written]) -> None:
            def written(outcomes: list[Appended]) -> None:
                for outcome in outcomes:
                    if isinstance(outcome, Exception):
                        done(outcome)
                        return
                    found.extend(outcome)
                if end < len(group):
                    write_part(end, len(group), found)
                else:
                    done(found)

            try:
                self._every([([w], plan) for w, plan in zip(group[start:end], plans[start:end])], written, via)
            except Unavailable as error:
                done(error)

        looks = [[(home, True) for home, _ in plan] for plan in plans]
        self._every([([w], plan) for w, plan in zip(group, looks)], asked, via)

    def _every(
        self, walks: list[tuple[list[Write], list[tuple[str, bool]]]], done: Callable[[list[Appended]], None],
        via: Via | None,
    ) -> None:  # fmt: skip
        outcomes: dict[int, Appended] = {}
        counting = threading.Lock()

        def came(i: int, outcome: Appended) -> None:
            with counting:
                outcomes[i] = outcome
                last = len(outcomes) == len(walks)
            if last:
                done([outcomes[k] for k in range(len(walks))])

        for i, (group, plan) in enumerate(walks):
            try:
                self._walk(group, plan, lambda outcome, i=i: came(i, outcome), via)  # type: ignore[misc]
            except Unavailable as error:
                came(i, error)

    # ------------------------------------------------------------------ how all of them fare

    @property
    def healthy(self) -> bool:
        """Whether every database can be written to."""
        return not self._shards.down()

    def doubt(self) -> None:
        """Find out soon whether each can be written, where nothing has been for some seconds."""
        for engine in self._shards.engines.values():
            engine.writer.doubt()

    @property
    def doubted(self) -> bool:
        """Whether one of them is being tried."""
        return any(engine.writer.doubted for engine in self._shards.engines.values())

    @property
    def moving(self) -> bool:
        """Whether at least one database answers."""
        return len(self._shards.down()) < len(self._shards.members.newest)

    @property
    def commits(self) -> int:
        """The number of batches committed by the writers of all databases."""
        return sum(engine.writer.commits for engine in self._shards.engines.values())

    @property
    def commit_seconds(self) -> float:
        """The seconds that the commits of all databases took."""
        return sum(engine.writer.commit_seconds for engine in self._shards.engines.values())

    @property
    def commit_times(self) -> list[int]:
        """The number of commits by their duration (``counts.BUCKETS``)."""
        return [sum(n) for n in zip(*(engine.writer.commit_times for engine in self._shards.engines.values()))]

    @property
    def depth(self) -> int:
        """The number of groups that wait, for all databases together."""
        return sum(engine.writer.depth for engine in self._shards.engines.values())


def _plan(members: Members, write: Write) -> list[tuple[str, bool]]:
    """The databases to ask in turn; True: only whether it is there."""
    homes = members.homes(asked_by(write.request) if isinstance(write.event, Batch) else key_of(write.id))
    if not isinstance(write.event, Decision | Batch):
        return [(home, write.look) for home in homes]
    if write.fresh:
        older = members.homes(asked_by(write.request))[1:] if write.request else []
    else:
        older = homes[1:]
    return [*((home, True) for home in older), (homes[0], write.look)]


def _replace(write: Write, drawn: Write) -> None:
    """Let a write be another draw of the same request, for whoever holds it; its key may be one of a batch."""
    for name in ("id", "event", "stack", "seen", "held", "again", "home", "look", "refusal", "redraw"):
        setattr(write, name, getattr(drawn, name))


def _tell(done: Done, error: Exception, via: Via | None) -> None:
    if via is None:
        done(error)
    else:
        via(lambda: done(error))
