"""What is kept of a decision until it is learnt changes how fast that is, and nothing else."""

from __future__ import annotations

import msgspec
import pytest

from armwise import persist
from armwise.features.arms import read_arms
from armwise.serve.engine.draw import drawn
from armwise.serve.engine.fold import fold
from armwise.serve.engine.learner import Learner
from armwise.serve.journal.append import Journal, Write
from armwise.serve.journal.events import Creation, Row
from armwise.serve.journal.sqlite import SQLite
from armwise.serve.model.build import build_model
from armwise.serve.model.inside import copied
from armwise.serve.model.model import Model

ARMS = read_arms([b'"a"', b'{"id":"b","features":{"price":3}}', b'"c"'])


def _created(seq: int, dim: int) -> Row:
    creation = Creation(features={"dim": dim})
    return Row(seq, 0, "shop", "create", "", msgspec.json.encode(creation), creation)


@pytest.mark.parametrize("begins_anew", [False, True])
def test_a_fold_with_what_was_seen_at_hand_is_the_fold_of_the_journal(begins_anew: bool) -> None:
    """``begins_anew``: the application is created again, with longer rows, while decisions are on their way."""
    deciding = build_model(Creation(features={"dim": 16}))
    rows, writes = [_created(1, 16)], {}
    deciding.version = deciding.since = 1
    if begins_anew:
        rows.append(_created(2, 32))
    for k in range(6):
        context = msgspec.json.encode({"hour": k, "day": "Monday" if k % 2 else "Sunday"})
        decision, seen, _ = drawn(deciding, context, ARMS, [], k / 6)
        row = Row(len(rows) + 1, 0, "shop", "decision", f"e{k}", msgspec.json.encode(decision), decision)
        rows.append(row)
        writes[row.seq] = Write("shop", row.id, decision, stack=seen.stack, seen=seen)
        deciding.meet(decision, seen.stack)  # so that later ones are scaled
    at_hand: dict[str, Model] = {}
    read: dict[str, Model] = {}
    fold(at_hand, rows, None, writes)  # type: ignore[arg-type]
    fold(read, [Row(r.seq, r.time, r.app, r.kind, r.id, r.body) for r in rows], None)  # type: ignore[arg-type]
    assert at_hand["shop"].agent.t == 7
    assert persist.dumps(at_hand["shop"]) == persist.dumps(read["shop"])


def test_a_copied_agent_draws_what_the_agent_would_and_leaves_it_alone() -> None:
    agent = build_model(Creation(seed=5)).agent
    twin = copied(agent)
    assert persist.dumps(twin) == persist.dumps(agent)
    drawn_by_twin = [(twin._rng.random(), twin.agent._rng.random()) for _ in range(3)]  # type: ignore[attr-defined]
    drawn_by_agent = [(agent._rng.random(), agent.agent._rng.random()) for _ in range(3)]  # type: ignore[attr-defined]
    assert drawn_by_twin == drawn_by_agent
    children = [each._rng.spawn(1)[0].random() for each in (twin, agent)]
    assert children[0] == children[1]


def test_of_events_only_those_of_other_processes_are_read() -> None:
    # A failure would mean that whoever leads reads back, and makes anew, what it has just written itself.
    store = SQLite.temporary()
    writing = Journal(store.connect())
    committed: list[tuple[Row, Write]] = []
    writing.on_commit = committed.extend
    for k in range(9):
        writing.append([[Write("shop", "", Creation(seed=k))]], now=k)
    reading = Journal(store.connect())
    learner = Learner(store, lambda: reading, save=print)
    learner._journal = reading
    read: list[int] = []
    rows, after = reading.rows, reading.after
    reading.rows = lambda seqs: (read.extend(seqs), rows(seqs))[1]  # type: ignore[method-assign, func-returns-value]
    reading.after = lambda *at: (read.append(-at[0]), after(*at))[1]  # type: ignore[method-assign, func-returns-value]
    learner.take_committed([one for one in committed if one[0].seq in (2, 3, 6)])
    found, writes = learner._next()
    assert ([row.seq for row in found], sorted(writes), read) == ([1, 2, 3, 4, 5, 6], [2, 3, 6], [1, 4, 5])
    learner.position = 6
    assert [row.seq for row in learner._next()[0]] == [7, 8, 9]
    assert read[3:] == [-6]
    for journal in (writing, reading):
        journal.connection.close()
    store.close()


def test_a_recovery_forgets_decisions_of_before() -> None:
    # A failure would mean that, after a failover to a replica that lost events, a reward is learnt with the decision
    # that had its number before.
    store = SQLite.temporary()
    learner = Learner(store, lambda: Journal(store.connect()), save=print)
    learner._recent[7] = None  # type: ignore[assignment]
    learner.recover()
    assert not learner._recent
    store.close()
