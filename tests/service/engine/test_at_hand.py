"""What is kept of a decision until it is learnt changes how fast that is, and nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from armwise.core import saving
from armwise.core.capabilities.revising import can_revise
from armwise.features.encoding.arms import read_arms
from armwise.features.encoding.hashed import HashedRows
from armwise.service.engine.engine import Engine
from armwise.service.engine.learning.fold import fold
from armwise.service.engine.learning.learner import Learner
from armwise.service.engine.requests.draw import drawn
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import ARRIVAL, Activation, Creation, Reward, Row, Settings, Version
from armwise.service.journal.journal import Journal
from armwise.service.journal.writes import Write
from armwise.service.model.build import build_model
from armwise.service.model.inside import copied
from armwise.service.model.model import Model

ARMS = read_arms([b'"a"', b'{"id":"b","features":{"price":3}}', b'"c"'])


def _created(seq: int, dim: int) -> Row:
    creation = Creation(features={"dim": dim})
    return Row(seq, 0, "shop", "create", "", msgspec.json.encode(creation), creation)


@pytest.mark.parametrize("begins_anew", [False, True])
def test_a_fold_with_what_was_seen_at_hand_is_the_fold_of_the_journal(begins_anew: bool) -> None:
    """``begins_anew``: the application is created again, with longer rows, while decisions are on their way."""
    deciding = build_model(Creation(features={"dim": 16}))
    rows = [_created(1, 16)]
    deciding.version = deciding.since = 1
    if begins_anew:
        rows.append(_created(2, 32))
    for k in range(6):
        context = msgspec.json.encode({"hour": k, "day": "Monday" if k % 2 else "Sunday"})
        decision, seen, _ = drawn(deciding, context, ARMS, [], k / 6)
        decision.write_arms()
        body = msgspec.json.encode(decision)
        rows.append(Row(len(rows) + 1, 0, "shop", "decision", f"e{k}", body, decision, seen=seen))
        deciding.observe_decision(decision, seen.stack)  # so that later ones are scaled
    at_hand: dict[str, Model] = {}
    read: dict[str, Model] = {}
    fold(at_hand, rows, None)
    fold(read, [Row(r.seq, r.time, r.app, r.kind, r.id, r.body) for r in rows], None)
    assert at_hand["shop"].agent.t == 7
    assert saving.dumps(at_hand["shop"]) == saving.dumps(read["shop"])


AGENTS: dict[str, dict[str, Any]] = {
    "default": {},
    "LinUCB": {"class": "LinUCB", "lam": 1.0},
    "LinUCB that sizes its ridge up": {"class": "LinUCB"},
    "LinThompson": {"class": "LinThompson", "draws": 8},
    "SquareCB": {"class": "SquareCB"},
    "RegCB": {"class": "RegCB"},
    "KernelUCB": {"class": "KernelUCB", "kernel": {"class": "kernels.RBF"}},
    "UCB1": {"class": "UCB1", "n_arms": 3},
}


@pytest.mark.parametrize("name", AGENTS)
def test_rows_that_were_kept_teach_what_the_journal_does(name: str) -> None:
    # Decisions, then rewards, of which some come when the decision is no longer kept; a version begins in between. A
    # failure would mean that a restart finds another model than the one that was served.
    creation = Creation(features={"dim": 16}, arms=["a", "b", "c"] if name == "UCB1" else [])
    if AGENTS[name]:
        creation = msgspec.structs.replace(creation, agent=AGENTS[name])
    if not can_revise(build_model(creation).agent):
        creation = msgspec.structs.replace(creation, settings=Settings(learn=ARRIVAL))
    engine = Engine(SQLite.temporary(), {"shop": creation}, snapshot_every=1e9)
    engine.start()
    version = Version("bold", made=Creation(features={"dim": 8}), share=0.3)
    for k in range(40):
        if k == 30 and name != "UCB1":
            engine.writer.write([Write("shop", "", version)])
            engine.wait_learnt()
        context = msgspec.json.encode({"hour": k % 5, "day": "Monday" if k % 2 else "Sunday"})
        engine.writer.write([engine.prepare("shop", context, ARMS, id=f"e{k}", deferred=k % 9 == 8)])
        if k % 9 == 8:
            engine.writer.write([Write("shop", f"e{k}", Activation())])
        if k % 10 == 9:
            engine.wait_learnt()
            if k == 19:
                engine.learner._recent.clear()
        if k % 3 and k > 6:
            engine.writer.write([Write("shop", f"e{k - 5}", Reward((k % 4) / 4.0))])
    engine.wait_learnt()
    served = saving.dumps(engine.learner.masters["shop"])
    models: dict[str, Model] = {}
    journal = Journal(engine.store.connect())
    fold(models, list(journal.events()), journal)
    journal.connection.close()
    engine.stop()
    assert models["shop"].scaler.counts.max() > 30
    assert models["shop"].lessons > 20
    assert not models["shop"].refused
    assert saving.dumps(models["shop"]) == served


def test_a_reward_is_learnt_from_the_row_that_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    # A failure would mean that all arms are read and made into rows again for every reward: most of what one costs.
    deciding = build_model(Creation(features={"dim": 16}))
    deciding.version = deciding.since = 1
    decision, seen, _ = drawn(deciding, b'{"hour":9}', ARMS, [], 0.5)
    decision.write_arms()
    made = Row(2, 0, "shop", "decision", "e", msgspec.json.encode(decision), decision, seen=seen)
    reward = Reward(1.0, decision=2, lesson=1.0)
    rows = [_created(1, 16), made, Row(3, 0, "shop", "reward", "e", msgspec.json.encode(reward), reward)]
    read: list[int] = []
    encode = HashedRows.rows
    monkeypatch.setattr(HashedRows, "rows", lambda *a: (read.append(a[1].tail.n), encode(*a))[1])  # type: ignore[func-returns-value]
    at_hand: dict[str, Model] = {}
    fold(at_hand, rows, None)
    assert (at_hand["shop"].lessons, read) == (1, [])
    read.clear()
    other: dict[str, Model] = {}
    fold(other, [Row(r.seq, r.time, r.app, r.kind, r.id, r.body) for r in rows], None)
    assert read == [1]  # that of the arm that was drawn alone, when another process drew it
    assert saving.dumps(at_hand["shop"]) == saving.dumps(other["shop"])


def test_a_copied_agent_draws_what_the_agent_would_and_leaves_it_alone() -> None:
    agent = build_model(Creation(seed=5)).agent
    twin = copied(agent)
    assert saving.dumps(twin) == saving.dumps(agent)
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
    found = learner._next()
    assert ([row.seq for row in found], read) == ([1, 2, 3, 4, 5, 6], [1, 4, 5])
    assert [row.seq for row in found if row.at_hand is not None] == [2, 3, 6]
    learner.position = 6
    assert [row.seq for row in learner._next()] == [7, 8, 9]
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


@pytest.mark.parametrize("at_once", [1, 7, 1000])
@pytest.mark.parametrize("own", [True, False])
def test_decisions_begun_together_are_those_begun_one_by_one(
    monkeypatch: pytest.MonkeyPatch, at_once: int, own: bool
) -> None:
    """A difference would mean that a model depends on how the journal was cut: new names, a deferred decision, more
    than are watched for drift, some of which are overdue, a row too large to learn from, and rewards come between."""
    deciding = build_model(Creation(features={"dim": 16}))
    rows = [_created(1, 16)]
    deciding.version = deciding.since = 1
    for k in range(420):
        sent: dict[str, Any] = {"hour": k % 24, "day": "Monday" if k % 2 else "Sunday"}
        if k % 50 == 49:
            sent[f"new{k}"] = k
        time = k if k < 300 else 10**9 + k
        decision, seen, _ = drawn(deciding, msgspec.json.encode(sent), ARMS, [], k / 420)
        decision.write_arms()
        decision.deferred = k % 97 == 5
        if k == 200:
            seen = msgspec.structs.replace(seen, view=seen.view * 1e200)
        row = Row(len(rows) + 1, time, "shop", "decision", f"e{k}", msgspec.json.encode(decision), decision)
        rows.append(row)
        if own or k == 200:
            row.seen = seen
        if k % 5 == 3:
            earned = Reward(float(k % 2), decision=row.seq, lesson=float(k % 2))
            rows.append(Row(len(rows) + 1, time, "shop", "reward", row.id, msgspec.json.encode(earned), earned))
        deciding.observe_decision(decision, seen.stack)

    def folded() -> Model:
        models: dict[str, Model] = {}
        recent: dict[int, Row] = {}
        for start in range(0, len(rows), at_once):
            fold(models, [msgspec.structs.replace(row) for row in rows[start : start + at_once]], None, recent)
        return models["shop"]

    together = folded()
    monkeypatch.setattr(Model, "_seen_by_optimist", lambda *_: None)
    apart = folded()
    assert together.lessons == 84
    assert len(together.drift.open) > 50
    assert saving.dumps(together) == saving.dumps(apart)


def test_a_follower_asks_once_whether_there_is_something_new() -> None:
    # It asks about ten times per second. A failure would mean that every time costs several round trips.
    store = SQLite.temporary()
    learner = Learner(store, lambda: Journal(store.connect()), save=lambda *_: None)
    learner.recover()
    journal = learner._journal
    assert journal is not None
    journal.append([[Write("shop", "", Creation(features={"dim": 8}))]], now=5)
    learner.catch_up()
    journal.put_snapshots([("shop", 1, saving.dumps(learner.masters["shop"]))], upto=1)
    asked: list[str] = []
    execute = journal.connection.execute
    journal.connection.execute = lambda sql, values=(): (asked.append(sql), execute(sql, values))[1]  # type: ignore[method-assign, func-returns-value]
    learner.leader, learner._tried_at = False, 1e18  # another leads
    learner._follow()
    assert len(asked) == 1
    learner.position = 0  # as if it had not seen that snapshot
    learner._follow()
    assert learner.position == 1 and "shop" in learner.masters
    learner.stop()
    store.close()
