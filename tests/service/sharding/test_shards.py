"""Decisions spread over several PostgreSQL databases: found, learnt and merged, whatever is added or lost."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from armwise.core import saving
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.engine.engine import Engine
from armwise.service.engine.learning.fold import fold
from armwise.service.journal.errors import Conflict, Unavailable, Unknown
from armwise.service.journal.events import Change, Creation, Decision, Lessons, Reward, Sequel, Settings
from armwise.service.journal.journal import Journal
from armwise.service.journal.members import Members
from armwise.service.journal.writes import Write
from armwise.service.log.verify import verify
from armwise.service.model.build import build_model
from armwise.service.model.merged_views import merge
from armwise.service.model.model import DecisionOutcome, Model
from armwise.service.server.config import load_config, open_store
from armwise.service.sharding.sharded_engine import ShardedEngine
from tests.service.database import lose

ARMS = [b'"a"', b'{"id": "b", "features": {"x": 2}}', b'"c"']
SHOP = Creation(features={"dim": 16})

Spread = Callable[..., ShardedEngine]


def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to be so"
        time.sleep(0.05)


def verified(urls: list[str]) -> list[int]:
    """The decisions of each database, all of whose promises hold."""
    found = []
    for url in urls:
        journal = Journal(open_store(url).connect())
        report = verify(journal)
        journal.connection.close()
        assert report.problems == []
        found.append(report.decisions)
    return found


def rewarded(shards: ShardedEngine, id: str) -> int:
    """Give a decision a reward; how many it has."""
    status = shards.reward("shop", id, 1.0).status
    assert status is not None
    return status.n


def epsilon(model: Any) -> float:
    return float(model.agent.epsilon)


def replay(url: str) -> Model:
    journal = Journal(open_store(url).connect())
    models: dict[str, Model] = {}
    for row in journal.events():
        fold(models, [row], journal)
    journal.connection.close()
    return models["shop"]


# ---------------------------------------------------------------------- where a decision belongs


def test_ids_are_shared_out_equally_and_one_more_database_takes_only_its_share() -> None:
    three = Members(1, [("u", "v", "w")], {})
    four = three.joined({"x": "host/x"})
    ids = [f"event-{k}" for k in range(30_000)]
    shares = Counter(map(three.owner, ids))
    assert max(abs(n / 30_000 - 1 / 3) for n in shares.values()) < 0.015, "four standard errors are 0.011"
    moved = Counter((three.owner(id), four.owner(id)) for id in ids)
    assert {new for (old, new) in moved if old != new} == {"x"}, "an id moved between databases that were there before"
    taken = [n / shares[old] for (old, new), n in moved.items() if new == "x"]
    assert len(taken) == 3 and max(abs(share - 1 / 4) for share in taken) < 0.02
    assert all(set(four.homes(id)) == {three.owner(id), four.owner(id)} for id in ids[:1000])


def test_the_order_of_the_list_and_the_names_do_not_matter() -> None:
    one, other = Members(1, [("u", "v")], {"u": "a"}), Members(1, [("v", "u")], {"u": "elsewhere"})
    assert [one.owner(str(k)) for k in range(100)] == [other.owner(str(k)) for k in range(100)]


# ---------------------------------------------------------------------- deciding, learning, merging


def test_three_databases_learn_one_model(urls: list[str], spread: Spread) -> None:
    shards = spread(urls)
    rng = np.random.default_rng(5)
    for k in range(240):
        context = b'{"x": %.3f, "y": %d}' % (rng.normal(), k % 3)
        made = shards.decide("shop", context, ARMS, id=f"e{k}" if k % 2 else None, request="" if k % 3 else f"r{k}")
        if k % 4:
            shards.reward("shop", made.id, float(rng.random()))
    shards.wait_learnt()
    served, views = shards.model("shop"), [engine.model("shop") for engine in shards.each]
    assert (served.lessons, served.agent.t) == (180, 241), "each decision teaches one model, the prior counts once"
    assert all(view.agent is served.agent for view in views), "all databases decide from the same statistics"
    shards.stop()
    parts = [replay(urls[int(shards.label(identity)) - 1]) for identity in shards.members.newest]
    assert [view.version for view in views] == [part.version for part in parts]
    whole = merge(parts)[-1]
    assert saving.dumps(whole.agent) == saving.dumps(served.agent), "it is exactly the merge of the replays"
    assert min(verified(urls)) > 50
    one = build_model(SHOP)  # what one pass over all journals learns
    for url in urls:
        journal, made_at = Journal(open_store(url).connect()), {}
        for row in journal.events():
            if isinstance(event := row.event, Decision):
                made_at[row.seq] = event
                one.register_decisions([row])
            elif isinstance(event, Sequel):
                one.apply_outcomes([DecisionOutcome(event, made_at[event.decision])])
        journal.connection.close()
    rows = rng.normal(size=(50, 16))
    for mine, theirs in zip(one.agent.estimate(rows), served.agent.estimate(rows)):
        np.testing.assert_allclose(np.array(mine), np.array(theirs), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.scaler.means, served.scaler.means, rtol=1e-9)
    np.testing.assert_allclose(one.scaler.squares, served.scaler.squares, rtol=1e-9)


def test_the_same_id_and_the_same_key_get_the_same_answer(urls: list[str], spread: Spread) -> None:
    shards = spread(urls[:2])
    for k in range(12):
        named = shards.decide("shop", b"{}", ARMS, id=f"e{k}")
        keyed = shards.decide("shop", b"{}", ARMS, request=f"r{k}")
        assert shards.decide("shop", b"{}", ARMS, id=f"e{k}").again and shards.find("shop", f"e{k}")[0].arm == named.arm
        again = shards.decide("shop", b"{}", ARMS, request=f"r{k}")
        assert (again.id, again.again) == (keyed.id, True), "a retry without an id is found in the database of its key"
    with pytest.raises(Conflict):
        shards.decide("shop", b'{"other": 1}', ARMS, id="e1")
    with pytest.raises(Unknown):
        shards.reward("shop", "nobody", 1.0)
    assert sum(verified(urls[:2])) == 24


# ---------------------------------------------------------------------- adding a database


def test_what_was_decided_before_a_database_was_added_is_found_and_not_decided_again(
    urls: list[str], spread: Spread
) -> None:
    shards = spread(urls[:2])
    before = [shards.decide("shop", b'{"k": %d}' % k, ARMS, id=f"e{k}") for k in range(40)]
    keyed = [shards.decide("shop", b"{}", ARMS, request=f"r{k}") for k in range(20)]
    shards.add([open_store(url) for url in urls])
    assert shards.members.epoch == 2 and len(shards.members.newest) == 3
    moved = [one for one in before if len(shards.members.homes(one.id)) > 1]
    assert moved, "some ids belong to the new database now"
    for k, one in enumerate(before):
        again = shards.decide("shop", b'{"k": %d}' % k, ARMS, id=one.id)
        assert (again.arm, again.seq, again.again) == (one.arm, one.seq, True)
        assert rewarded(shards, one.id) == 1
    for k, one in enumerate(keyed):
        assert shards.decide("shop", b"{}", ARMS, request=f"r{k}").id == one.id
    for k in range(40, 100):
        shards.decide("shop", b'{"k": %d}' % k, ARMS, id=f"e{k}")
    shards.wait_learnt()
    assert shards.model("shop").lessons == 40
    decisions = verified(urls)
    assert sum(decisions) == 40 + 20 + 60 and decisions[2] > 5


def test_a_service_of_one_database_becomes_one_of_several(urls: list[str], spread: Spread) -> None:
    alone = Engine(open_store(urls[0]), {"shop": SHOP})
    alone.start()
    for k in range(20):
        alone.decide("shop", b'{"x": %d}' % k, ARMS, id=f"e{k}")
    alone.configure("shop", Change(window=77.0, epsilon=0.3))
    alone.stop()
    shards = spread(urls)
    assert {engine.model("shop").settings.window for engine in shards.each} == {77.0}, "what was set is set everywhere"
    assert {epsilon(engine.model("shop")) for engine in shards.each} == {0.3}
    for k in range(20):
        shards.reward("shop", f"e{k}", 0.5)
    shards.wait_learnt()
    assert shards.model("shop").lessons == 20
    shards.stop()
    alone = Engine(open_store(urls[0]), {"shop": SHOP})
    with pytest.raises(RuntimeError, match="sharded over 3 databases"):
        alone.start()
    alone.stop()


def test_a_database_with_decisions_of_its_own_is_not_added(urls: list[str]) -> None:
    for url in urls[:2]:
        engine = Engine(open_store(url), {"shop": SHOP})
        engine.start()
        engine.decide("shop", b"{}", ARMS)
        engine.stop()
    shards = ShardedEngine([open_store(url) for url in urls], {"shop": SHOP})
    with pytest.raises(ValueError, match="only empty databases"):
        shards.start()
    shards.stop()


def test_while_a_process_does_not_know_the_new_database_nothing_is_decided_there(
    urls: list[str], spread: Spread
) -> None:
    old, new = spread(urls[:2]), spread(urls)
    assert new.members.newest == old.members.newest and new.states()["3"] == "joining"
    ids = [f"e{k}" for k in range(60)]
    for k, id in enumerate(ids):
        first, second = (old, new) if k % 2 else (new, old)
        made = first.decide("shop", b"{}", ARMS, id=id)
        assert second.decide("shop", b"{}", ARMS, id=id).arm == made.arm
    stop, wrong, done = threading.Event(), [], []

    def load(one: ShardedEngine, name: str) -> None:
        k = 0
        while not stop.is_set():
            k += 1
            try:
                done.append(one.decide("shop", b"{}", ARMS, id=f"{name}{k}").id)
                one.reward("shop", f"{name}{k}", 1.0)
            except Exception as error:
                wrong.append(error)

    busy = [threading.Thread(target=load, args=(one, name)) for one, name in ((old, "o"), (new, "n"))]
    for thread in busy:
        thread.start()
    time.sleep(0.3)
    old.add([open_store(url) for url in urls])  # as SIGHUP does: the last process that did not know
    until(lambda: old.members.epoch == new.members.epoch == 2)
    time.sleep(0.5)
    stop.set()
    for thread in busy:
        thread.join()
    assert wrong == [], "nobody was refused while the database was added"
    for id in [*ids, *done]:
        assert old.find("shop", id)[0].arm == new.find("shop", id)[0].arm
    decisions = verified(urls)
    assert sum(decisions) == len(ids) + len(done) and decisions[2] > 0


def test_a_process_that_missed_a_database_decides_nothing_where_it_could_be_decided_twice(
    urls: list[str], spread: Spread
) -> None:
    old = spread(urls[:2])
    old._look_after = lambda: None  # type: ignore[method-assign]
    for membership in old._memberships.values():  # its word that it is there is lost, as with its sessions
        membership.journal.connection.execute("SELECT pg_advisory_unlock_all()")
    old._ending.set()
    old._news.set()
    for thread in old._threads:
        thread.join()
    new = spread(urls)
    assert new.members.epoch == 2
    new.decide("shop", b"{}", ARMS, id="e1")
    write = old.prepare("shop", b"{}", ARMS, id="e1")
    came: list[object] = []
    write.epoch = old.members.epoch
    for engine in old.engines.values():
        engine.writer.submit([write], came.append)
    until(lambda: len(came) == 2)
    assert all(isinstance(outcome, Unavailable) for outcome in came)
    assert not _known(old, "e1") or rewarded(old, "e1") == 1
    assert sum(verified(urls)) == 1


def _known(shards: ShardedEngine, id: str) -> list[str]:
    try:
        return [shards.find("shop", id)[0].id]
    except Unknown:
        return []


def test_a_change_of_the_databases_that_stopped_midway_is_completed(urls: list[str], spread: Spread) -> None:
    shards = spread(urls[:2])
    arbiter = shards._memberships[min(shards.members.sets[0])]
    other = Engine(open_store(urls[2]), {"shop": SHOP})
    other.alone = False
    other.start()
    other.stop()
    shards.stop()
    third = ShardedEngine([open_store(url) for url in urls], {"shop": SHOP})
    third._open_desks()
    [fresh] = set(third._memberships) - set(shards.members.newest)
    third._memberships[min(shards.members.sets[0])].put(shards.members.joined({fresh: "host/third"}))
    third.stop()
    assert arbiter.identity in third._memberships
    again = spread(urls)
    assert again.members.epoch == 2 and len(again.members.newest) == 3
    assert {membership.members().epoch for membership in again._memberships.values()} == {2}  # type: ignore[union-attr]
    for k in range(30):
        again.decide("shop", b"{}", ARMS, id=f"e{k}")


# ---------------------------------------------------------------------- losing a database


def test_a_lost_database_answers_for_its_share_alone_and_comes_back(urls: list[str], spread: Spread) -> None:
    shards = spread(urls)
    made = [shards.decide("shop", b'{"x": %d}' % k, ARMS, id=f"e{k}") for k in range(60)]
    shards.wait_learnt()
    version, lost = shards.model("shop").version, shards.members.owner("e0")
    lose(urls[int(shards.label(lost)) - 1])
    try:
        came: Counter[tuple[bool, str]] = Counter()
        for one in made:
            mine = shards.members.owner(one.id) == lost
            try:
                shards.reward("shop", one.id, 1.0)
                came[mine, "taken"] += 1
            except Unavailable:
                came[mine, "refused"] += 1
        assert set(came) == {(True, "refused"), (False, "taken")}, came
        assert shards.states()[shards.label(lost)] == "cannot be written"
        fresh = [shards.decide("shop", b"{}", ARMS).id for _ in range(20)]
        assert lost not in map(shards.members.owner, fresh), "new ids are not given to a database that is lost"
        with pytest.raises(Unavailable, match="of 3 can"):
            shards.configure("shop", Change(window=5.0))
        assert {engine.model("shop").settings.window for engine in shards.engines.values()} == {600.0}
        until(lambda: shards.model("shop").version >= version + came[False, "taken"] + 20)
        assert shards.model("shop").agent.t == 61 + 20, "the lost one's part of the model stays"
    finally:
        lose(urls[int(shards.label(lost)) - 1], lost=False)
    until(lambda: not shards.down())
    for one in made:
        if shards.members.owner(one.id) == lost:
            shards.reward("shop", one.id, 1.0)
    until(lambda: shards.model("shop").lessons == 60)
    shards.stop()
    assert sum(verified(urls)) == 80


def test_a_start_without_one_of_the_databases_serves_the_others(urls: list[str], spread: Spread) -> None:
    first = spread(urls)
    made = [first.decide("shop", b"{}", ARMS, id=f"e{k}").id for k in range(30)]
    lost = first.members.owner("e0")
    place = int(first.label(lost)) - 1
    first.stop()
    lose(urls[place])
    try:
        shards = spread(urls)
        for id in made:
            if shards.members.owner(id) == lost:
                with pytest.raises(Unavailable, match="cannot be reached"):
                    shards.find("shop", id)
            else:
                shards.reward("shop", id, 1.0)
    finally:
        lose(urls[place], lost=False)
    until(lambda: not shards.down())
    assert rewarded(shards, "e0") == 1


# ---------------------------------------------------------------------- several processes, and what concerns all


def test_two_processes_on_three_databases_serve_the_same_model(urls: list[str], spread: Spread) -> None:
    one, two = spread(urls), spread(urls)
    until(lambda: sum(engine.leader for engine in two.each) == 1)  # each learns for its share of the databases
    until(lambda: sum(engine.leader for engine in one.each) == 2)
    for k in range(60):
        made = (one, two)[k % 2].decide("shop", b'{"x": %d}' % k, ARMS)
        (two, one)[k % 2].reward("shop", made.id, 1.0)
    for each in (one, two):
        each.wait_learnt()
    until(lambda: two.model("shop").version == one.model("shop").version)
    assert saving.dumps(one.model("shop").agent) == saving.dumps(two.model("shop").agent)
    one.stop()
    until(lambda: two.leader)
    two.decide("shop", b"{}", ARMS)
    two.stop()
    assert sum(verified(urls)) == 61


def test_changes_reach_every_database_and_lessons_one(
    urls: list[str], spread: Spread, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = spread(urls)
    shards.configure("shop", Change(window=5.0, epsilon=0.4))
    assert shards.model("shop").settings.window == 5.0 and epsilon(shards.model("shop")) == 0.4
    asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
    for _ in range(2):
        shards.teach("shop", Lessons([asked], [1.0]), request="v1\x1fteach\x1fk")
    assert shards.model("shop").lessons == 1, "a retry teaches nothing more"
    settled: list[str] = []
    for engine in shards.each:
        engine.reading.journal.connection.wait_until_durable = lambda: settled.append("settled")  # type: ignore[method-assign]
    key, asked_for = "v1\x1fteach\x1fk", "SELECT seq FROM requests"
    homes = sorted(
        shards.engines,
        key=lambda h: len(list(shards.engines[h].reading.journal.look_up(asked_for, "request", [("shop", key)]))),
    )
    monkeypatch.setattr(type(shards.members), "homes", lambda *_: homes[-2:])  # as if a database had been added since
    shards.teach("shop", Lessons([asked], [1.0]), request=key)
    monkeypatch.undo()
    assert settled, "what another process wrote is acknowledged when it is durable, not when it can be read"
    shards.apply({"news": Creation(features={"dim": 8}, settings=Settings(by_request=True))}, only=False)
    assert sorted(shards.models) == ["news", "shop"]
    shards.retire("news")
    assert sorted(shards.models) == ["shop"]
    shards.reset("shop")
    assert shards.model("shop").lessons == 0
    assert verified(urls) == [0, 0, 0]


def test_a_batch_over_several_databases_is_refused_whole_for_one_bad_write(urls: list[str], spread: Spread) -> None:
    shards = spread(urls)
    writes = [shards.prepare("shop", b"{}", ARMS, id=f"e{k}") for k in range(9)]
    assert [one.row.id for one in shards.writer.write(writes)] == [f"e{k}" for k in range(9)]
    with pytest.raises(Unknown, match="nobody"):
        shards.writer.write([Write("shop", id, Reward(1.0)) for id in ("e0", "e1", "e2", "nobody")])
    assert [shards.find("shop", f"e{k}")[2].n for k in range(3)] == [0, 0, 0], "none was given"
    with pytest.raises(Conflict):
        shards.writer.write([shards.prepare("shop", b'{"o": 1}', ARMS, id=id) for id in ("f1", "f2", "f3", "e1")])
    assert not any(_known(shards, id) for id in ("f1", "f2", "f3"))
    given = shards.writer.write([Write("shop", f"e{k}", Reward(1.0)) for k in range(9)])
    assert [one.status.n for one in given] == [1] * 9


def test_an_agent_that_does_not_merge_is_refused_by_name(tmp_path: object) -> None:
    spec = {"class": "LinUCB", "discount": 0.99}
    shards = ShardedEngine([open_store("postgresql://nobody@127.0.0.1:1/none")], {"shop": Creation(agent=spec)})
    with pytest.raises(InvalidInput, match=r"applications\.shop: LinUCB cannot be sharded over several databases"):
        shards.start()
    path = tmp_path / "service.toml"  # type: ignore[operator]
    lines = 'storage = ["postgresql://h/a", "postgresql://h/b"]\n[applications.shop]\n'
    path.write_text(lines + 'agent = {class = "LinUCB", window = 100}\n')
    with pytest.raises(ValueError, match=r"LinUCB cannot be sharded.*agent that merges"):
        load_config(path)
    path.write_text(lines)
    assert load_config(path).storage == ["postgresql://h/a", "postgresql://h/b"]
    for bad in ('["here"]', '["postgresql://h/a", "postgresql://u@h/a"]', "[]"):
        path.write_text(f"storage = {bad}\n")
        with pytest.raises(ValueError, match="storage: "):
            load_config(path)
