"""Two services on one PostgreSQL: both decide, one learns, and the other takes over when it is killed."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
from typing import Any

import httpx
import psycopg
import pyarrow.parquet as pq
import pytest

from armwise.core import saving
from armwise.service.adapters.personalizer.admin import _forget_logs
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases import lead, postgres, postgres_session
from armwise.service.journal.errors import Conflict, Unavailable
from armwise.service.journal.events import Creation, Reward
from armwise.service.journal.journal import Journal
from armwise.service.journal.writes import Write
from armwise.service.log import verify as verifying
from armwise.service.log.compact import compact
from armwise.service.log.export_journal import pieces
from armwise.service.log.retain import Retention
from armwise.service.log.verify import verify
from armwise.service.server.app import Service
from armwise.service.server.config import Config, open_store
from tests.service.database import Server, free_port
from tests.service.serving import Running, client_of
from tests.service.torture import _FORKING, _serve, _wait_ready, _warm_up

ARMS = [b'"a"', b'{"id": "b", "features": {"x": 2}}', b'"c"']


@pytest.fixture
def url(server: Server) -> str:
    return server.new_database()


def test_the_journal_keeps_its_promises_here_too(url: str) -> None:
    creation = Creation(features={"dim": 16})
    there = Engine(open_store(url), {"shop": creation})
    there.start()
    for k in range(20):
        there.decide("shop", b'{"x": %d}' % k, ARMS, id=f"e{k}", request=f"r{k}")
        there.decide("shop", b'{"x": %d}' % k, ARMS, id=f"e{k}", request=f"r{k}")
        there.reward("shop", f"e{k}", k / 20.0, request=f"w{k}")
    with pytest.raises(Conflict):
        there.decide("shop", b"{}", ARMS, id="e1")
    there.wait_learnt()
    before = saving.dumps(there.learner.masters["shop"])
    there.stop()
    journal = Journal(open_store(url).connect())
    report = verify(journal)
    assert report.problems == []
    assert (report.decisions, report.rewards, report.lessons) == (20, 20, 20)
    assert report.snapshots >= 1
    again = Engine(open_store(url), {"shop": creation})
    again.start()
    assert saving.dumps(again.learner.masters["shop"]) == before
    again.stop()
    assert compact(journal, 10**15) == 40
    assert verify(journal).problems == []
    journal.connection.close()


def test_a_new_decision_is_written_the_same_alone_and_among_others(url: str) -> None:
    # Batches of nothing but new decisions have a statement of their own. A failure would mean that where a decision
    # stands depends on what it was committed with.
    engine = Engine(open_store(url), {"shop": Creation(features={"dim": 16})})
    engine.start()
    engine.decide("shop", b"{}", ARMS, id="rewarded")
    first, second = (engine.prepare("shop", b'{"x": 1}', ARMS) for _ in range(2))
    alone = engine.writer.write([first])[0]
    other = engine.prepare_reward("shop", "rewarded", 1.0)
    among = engine.writer.write([second, other])[0]
    engine.wait_learnt()
    columns = "rule, fallback, active, n, total, value, closed, learn, deadline - e.time"
    rows = [
        engine.reading.journal.connection.execute(
            f"SELECT {columns}, kind, d.seq = e.seq, length(chain) FROM decisions d JOIN events e ON e.id = d.id "
            "WHERE e.kind = 'decision' AND e.id = ?", (written.row.id,)
        )
        for written in (alone, among)
    ]  # fmt: skip
    assert rows[0] == rows[1] == [("earliest", 0.0, 1, 0, 0.0, 0.0, 0, "provisional", 600_000, "decision", True, 16)]
    assert verify(engine.reading.journal).problems == []
    engine.stop()


def test_a_journal_here_is_verified_exported_and_forgotten_too(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    creation = Creation(features={"dim": 16})
    engine = Engine(open_store(url), {"shop": creation, "site": creation})
    engine.start()
    for k in range(20):
        for app in ("shop", "site"):
            engine.decide(app, b'{"x": %d}' % k, ARMS, id=f"e{k}", request=f"r{k}")
    check = verifying._check_statuses

    def later(*args: Any) -> None:
        for k in range(20):
            for app in ("shop", "site"):
                engine.reward(app, f"e{k}", k / 20.0)
        check(*args)

    monkeypatch.setattr(verifying, "_check_statuses", later)
    journal = engine.open_journal()
    report = verify(journal)
    assert report.problems == []  # all was read as it was when the check began
    assert report.rewards == 0
    monkeypatch.setattr(verifying, "_check_statuses", check)
    _forget_logs(engine, "site")
    engine.stop()
    lines = [json.loads(line) for line in b"".join(pieces(journal, "shop")).splitlines()]
    assert [line["outcomes"][0]["value"] for line in lines] == [k / 20.0 for k in range(20)]
    assert pq.read_table(io.BytesIO(b"".join(pieces(journal, "shop", "parquet")))).num_rows == 20
    assert compact(journal, 0) == 41  # the decisions of one, their rewards, and that they are to be forgotten
    assert verify(journal).problems == []
    assert len(b"".join(pieces(journal, "shop")).splitlines()) == 20
    journal.connection.close()


def test_windows_close_by_the_database_clock(url: str) -> None:
    from armwise.service.journal.events import Settings

    engine = Engine(open_store(url), {"shop": Creation(settings=Settings(window=0.2, default=-0.5))}, clock=lambda: 0.0)
    engine.start()
    engine.decide("shop", b"{}", ARMS, id="e1")
    deadline = time.monotonic() + 10.0
    while engine.models["shop"].lessons == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    engine.stop()


def test_a_takeover_loses_nothing(url: str) -> None:
    _warm_up()
    ports = [free_port(), free_port()]
    processes: list[Any] = []
    for port in ports:
        process = _FORKING.Process(target=_serve, args=(url, port), daemon=True)
        process.start()
        _wait_ready(process, port)
        processes.append(process)
    clients = [client_of(f"http://127.0.0.1:{port}") for port in ports]
    acknowledged: dict[str, Any] = {}
    rewarded = 0

    def leads(client: httpx.Client) -> bool:
        return "\narmwise_leader 1\n" in client.get("/metrics").text

    def use(client: httpx.Client, name: str, n: int) -> int:
        for k in range(n):
            body = {"id": f"{name}{k}", "context": {"x": k}, "arms": ["a", {"id": "b", "features": {"y": k}}, "c"]}
            answer = client.post("/v1/decisions", json=body)
            assert answer.status_code == 201, answer.text
            acknowledged[answer.json()["id"]] = answer.json()
            assert (
                client.post(f"/v1/decisions/{name}{k}/reward", json={"value": 1.0 if k % 2 else 0.0}).status_code == 200
            )
        return n

    try:
        assert [leads(client) for client in clients] == [True, False]
        rewarded += use(clients[0], "first", 25) + use(clients[1], "second", 25)
        # What one decided, the other knows; the same id gets the same answer from either.
        body = {"id": "first3", "context": {"x": 3}, "arms": ["a", {"id": "b", "features": {"y": 3}}, "c"]}
        again = clients[1].post("/v1/decisions", json=body)
        assert (again.status_code, again.json()) == (200, acknowledged["first3"])
        _until(lambda: _lessons(clients[1]) == rewarded)  # the follower has the leader's snapshots
        os.kill(processes[0].pid, signal.SIGKILL)
        processes[0].join()
        rewarded += use(clients[1], "third", 25)  # while nobody may be leading
        _until(lambda: leads(clients[1]))
        _until(lambda: _lessons(clients[1]) == rewarded)
        rewarded += use(clients[1], "fourth", 5)
        _until(lambda: _lessons(clients[1]) == rewarded)
    finally:
        for client in clients:
            client.close()
        for process in processes:
            process.terminate()
            process.join(20)
    journal = Journal(open_store(url).connect())
    report = verify(journal)
    journal.connection.close()
    assert report.problems == []
    assert (report.decisions, report.rewards, report.lessons) == (80, rewarded, rewarded)
    assert report.snapshots >= 1


def test_the_personalizer_face_on_two_services(url: str) -> None:
    one, two = (Running(Service(Config(storage=url))) for _ in range(2))
    path, actions = "/personalizer/v1.1-preview.3", [{"id": name, "features": []} for name in "ab"]
    slots = [{"id": "top", "baselineAction": "a"}, {"id": "low", "baselineAction": "b"}]
    body = {"actions": actions, "slots": slots, "eventId": "e"}
    ranked = one.client.post(f"{path}/multislot/rank", json=body)
    assert ranked.status_code == 201
    assert two.client.post(f"{path}/multislot/rank", json=body).json() == ranked.json()
    sent = {"reward": [{"slotId": "low", "value": 1}]}
    assert two.client.post(f"{path}/multislot/events/e/reward", json=sent).status_code == 204
    retried = {"x-ms-client-request-id": "r"}
    answers = [each.client.post(f"{path}/rank", json={"actions": actions}, headers=retried) for each in (one, two)]
    assert answers[0].json() == answers[1].json()
    two.client.put(f"{path}/configurations/service", json={"rewardWaitTime": "PT7M"})
    _until(lambda: one.client.get(f"{path}/configurations/service").json()["rewardWaitTime"] == "PT7M")
    for what in ("model/properties", "logs/properties", "configurations/policy"):
        assert two.client.get(f"{path}/{what}").status_code == 200
    wanted = {"name": "n", "startTime": "2000-01-01", "endTime": "2999-01-01"}
    place = two.client.post(f"{path}/evaluations", json=wanted).headers["location"]
    _until(lambda: one.client.get(place).json().get("status") == "completed")
    one.stop()
    two.stop()


def test_versions_are_promoted_and_rolled_back_for_both(url: str) -> None:
    """Whichever process is asked: both serve the version that leads, and a share of it, until it is rolled back."""
    both = [Running(Service(Config(storage=url))) for _ in range(2)]
    one, two = (running.client for running in both)
    for k in range(8):
        (one, two)[k % 2].post("/v1/decisions", json={"id": f"e{k}", "context": {"x": k}, "arms": ["a", "b"]})
        (one, two)[k % 2].post(f"/v1/decisions/e{k}/reward", json={"value": k % 2})

    def shown(client: httpx.Client) -> list[tuple[str, float, bool]]:
        return [(v["name"], v["share"], v["leads"]) for v in client.get("/v1/versions").json()["versions"]]

    def come(expected: list[tuple[str, float, bool]]) -> None:
        for client in (one, two):
            _until(lambda client=client: shown(client) == expected)

    [(first, _, _)] = shown(one)
    asked = {"name": "bold", "agent": {"class": "LinUCB", "alpha": 2.0}, "share": 0.5}
    assert two.post("/v1/versions", json=asked).status_code == 201
    come([(first, 0.5, True), ("bold", 0.5, False)])
    assert one.post("/v1/versions/bold/promote").status_code == 200
    come([("bold", 1.0, True), (first, 0.0, False)])
    for k, client in enumerate((one, two)):
        answer = client.post("/v1/decisions", json={"id": f"late{k}", "arms": ["a", "b"]})
        assert answer.status_code == 201
    assert two.post("/v1/rollback").status_code == 200
    come([(first, 1.0, True), ("bold", 0.0, False)])
    for running in both:
        running.stop()
    store = open_store(url)
    journal = Journal(store.connect(), store.lock, store.clock)
    assert verify(journal).problems == []
    journal.connection.close()


def _lessons(client: httpx.Client) -> int:
    return int(client.get("/v1/agents").json()["agents"][0]["lessons"])


def _until(condition: Any, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def test_a_process_frozen_inside_its_transaction_stops_nobody_for_long(url: str) -> None:
    # A failure would mean that one frozen process keeps the whole fleet from acknowledging anything.
    engine = Engine(open_store(url), {"shop": Creation(features={"dim": 16})})
    engine.start()
    frozen = open_store(url).connect()
    frozen.begin()
    frozen.execute(engine.store.lock)  # and then it says no more
    began = time.monotonic()
    engine.decide("shop", b"{}", ARMS, id="e1")
    assert time.monotonic() - began < 5.0
    with pytest.raises(engine.store.errors):
        frozen.commit()  # what it wanted to write is refused when it wakes up
    engine.stop()


def test_a_leader_whose_lease_has_run_out_is_replaced_and_fenced(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "LEASE", 600)
    old, new = open_store(url), open_store(url)
    old.connect().close()
    with monkeypatch.context() as frozen:
        frozen.setattr(lead.Lead, "_keep", lambda self, held, number: None)  # as if it were stopped
        assert old.lead()
    session = old.leading()
    assert session is not None
    assert not new.lead()
    time.sleep(0.7)
    assert not new.lead()  # it ends the old one's session,
    time.sleep(0.1)
    assert new.lead()  # and leads
    with pytest.raises(old.errors):
        Journal(session).put_snapshots([("shop", 1, b"stale")], upto=1)
    time.sleep(0.9)
    assert not old.lead()  # the new one renews its lease
    old.close()
    new.close()


def test_one_subject_is_forgotten_while_both_serve(url: str) -> None:
    engines = [Engine(open_store(url), {"shop": Creation()}) for _ in range(2)]
    for engine in engines:
        engine.start()
    for k in range(6):
        engines[k % 2].decide("shop", b'{"user": %d}' % (k % 3), ARMS, id=f"e{k}")
        engines[k % 2].reward("shop", f"e{k}", 0.5)
    retentions = [Retention(engine) for engine in engines]
    retentions[1].erase("shop", "user", 2)
    assert sorted(retention.run() for retention in retentions) == [0, 4]  # the one that leads
    for engine in engines:
        engine.stop()
    store = open_store(url)
    journal = Journal(store.connect(), store.lock, store.clock)
    assert verify(journal).problems == []
    assert journal.base().seq > 0
    assert len(b"".join(pieces(journal, "shop")).splitlines()) == 4
    journal.connection.close()


def test_reads_while_the_database_is_away_are_503_without_its_address(url: str) -> None:
    running = Running(Service(Config(storage=url)))
    client, store = running.client, running.service.engine.store
    here = url.rpartition("@")[2].partition("/")[0]

    def away(sql: str, values: Any = ()) -> list[Any]:
        raise store.errors[0](f"connection to {here} refused")

    engine: Any = running.service.engine
    engine.reading.journal.connection.execute = away
    for path in ("/v1/decisions/e1", "/metrics"):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), path
        assert here not in answer.text
    running.stop()


def test_a_batch_frees_the_lock_before_it_is_durable_and_is_acknowledged_only_then(server: Server, url: str) -> None:
    """Commits wait for a replica that is not there, as they would for a slow disk.

    A failure would mean that processes wait for each other's disk writes, or that something is answered, or learnt,
    that a crash of the database could still take back.
    """
    engines = [Engine(open_store(url), {"shop": Creation(features={"dim": 16})}) for _ in range(2)]
    for engine in engines:
        engine.start()
    answered: list[str] = []

    def decide(engine: Engine, id: str) -> None:
        answered.append(engine.decide("shop", b"{}", ARMS, id=id).id)

    with psycopg.connect(url, autocommit=True) as outside:

        def settings(value: str) -> None:
            outside.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{value}'")
            outside.execute("SELECT pg_reload_conf()")

        def there() -> set[str]:
            return {id for (id,) in outside.execute("SELECT id FROM events WHERE kind = 'decision'").fetchall()}

        outside.execute("SET synchronous_commit = off")
        learnt = engines[0].learner.position
        settings("nobody")
        try:
            time.sleep(0.2)
            threads = [threading.Thread(target=decide, args=(engines[k], f"e{k}")) for k in range(2)]
            for thread in threads:
                thread.start()
            _until(lambda: there() == {"e0", "e1"}, seconds=4.0)  # the second did not wait for the first one's disk
            time.sleep(0.3)
            assert answered == []
            assert engines[0].learner.position == learnt  # which leads
        finally:
            settings("")
        for thread in threads:
            thread.join(10.0)
        assert sorted(answered) == ["e0", "e1"]
    for engine in engines:
        engine.stop()
    journal = Journal(open_store(url).connect())
    assert verify(journal).problems == []
    journal.connection.close()


def test_what_comes_while_others_append_joins_the_batch(url: str) -> None:
    # A failure would mean that a process commits its requests in smaller batches the more processes there are.
    engine = Engine(open_store(url), {"shop": Creation(features={"dim": 16})})
    engine.start()
    other = open_store(url).connect()
    other.begin(engine.store.lock)
    came: list[Any] = []
    writes = [engine.prepare("shop", b"{}", ARMS) for _ in range(10)]
    before = engine.writer.commits
    engine.writer.submit(writes[:1], came.append)
    _until(lambda: engine.writer.depth == 0)  # it is in hand, and waits for its turn
    for write in writes[1:9]:
        engine.writer.submit([write], came.append)
    engine.writer.submit([Write("shop", writes[0].id, Reward(1.0))], came.append)  # which needs to be looked up
    engine.writer.submit(writes[9:], came.append)
    other.commit()
    _until(lambda: len(came) == 11)
    assert engine.writer.commits == before + 2
    assert [outcome[0].row.kind for outcome in came] == ["decision"] * 9 + ["reward", "decision"]
    assert [outcome[0].row.seq for outcome in came] == list(range(came[0][0].row.seq, came[0][0].row.seq + 11))
    other.close()
    engine.stop()
    journal = Journal(open_store(url).connect())
    assert verify(journal).problems == []
    journal.connection.close()


def test_ids_are_found_again_whatever_the_encoding_of_the_database(server: Server) -> None:
    # A failure would mean that a decision is stored by another id than it was given, and its reward refused.
    with psycopg.connect(server.url + "postgres", autocommit=True) as outside:
        outside.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    engine = Engine(open_store(server.url + "latin"), {"shop": Creation(features={"dim": 16})})
    engine.start()
    engine.decide("shop", b"{}", ARMS, id="caf\u00e9", request="\u00fcber")
    assert engine.decide("shop", b"{}", ARMS, id="caf\u00e9", request="\u00fcber").again
    assert engine.reward("shop", "caf\u00e9", 1.0).row.id == "caf\u00e9"
    engine.stop()
    journal = Journal(open_store(server.url + "latin").connect())
    assert verify(journal).problems == []
    journal.connection.close()


def test_what_is_acknowledged_is_durable_even_where_commits_need_not_be(server: Server, url: str) -> None:
    """The database says that its commits do not wait; here they would wait for a replica that is not there.

    A failure would mean that a setting of the server takes the promise back without a word.
    """
    engine = Engine(open_store(url), {"shop": Creation(features={"dim": 16})})
    with psycopg.connect(url, autocommit=True) as outside:
        outside.execute(f"ALTER DATABASE {url.rpartition('/')[2]} SET synchronous_commit = off")
        outside.execute("SET synchronous_commit = off")
        engine.start()
        answered: list[str] = []
        asked = threading.Thread(target=lambda: answered.append(engine.decide("shop", b"{}", ARMS, id="e").id))
        outside.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        try:
            outside.execute("SELECT pg_reload_conf()")
            time.sleep(0.2)
            asked.start()
            _until(lambda: outside.execute("SELECT 1 FROM decisions").fetchall() != [], seconds=4.0)
            time.sleep(0.3)
            assert answered == []
        finally:
            outside.execute("ALTER SYSTEM RESET synchronous_standby_names")
            outside.execute("SELECT pg_reload_conf()")
        asked.join(10.0)
    assert answered == ["e"]
    engine.stop()


def test_appends_see_all_that_was_committed_whatever_isolation_the_database_prefers(url: str) -> None:
    # A failure would mean that whoever waits for its turn reads the journal as it was before it waited.
    with psycopg.connect(url, autocommit=True) as outside:
        name = url.rpartition("/")[2]
        outside.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    engines = [Engine(open_store(url), {"shop": Creation(features={"dim": 16})}) for _ in range(2)]
    for engine in engines:
        engine.start()
    other = open_store(url).connect()
    other.begin(engines[0].store.lock)
    came: list[Any] = []
    for k, engine in enumerate(engines):
        engine.writer.submit([engine.prepare("shop", b"{}", ARMS, id=f"e{k}")], came.append)
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    _until(lambda: other.execute(waiting) == [(2,)])
    other.commit()
    _until(lambda: len(came) == 2)
    assert sorted(outcome[0].row.id for outcome in came) == ["e0", "e1"]
    other.close()
    for engine in engines:
        engine.stop()


def test_a_process_frozen_while_it_sends_a_batch_stops_nobody_for_long(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server takes it to be at work. A failure would mean that nobody can append until it is gone.
    monkeypatch.setattr(postgres, "LEASE", 600)
    engine = Engine(open_store(url), {"shop": Creation(features={"dim": 16})})
    engine.start()
    frozen = psycopg.connect(url, autocommit=True)
    frozen.pgconn.enter_pipeline_mode()
    for statement in ("BEGIN", engine.store.lock):
        frozen.pgconn.send_query_params(statement.encode(), [])
    frozen.pgconn.send_flush_request()
    frozen.pgconn.flush()  # and the rest does not come
    with psycopg.connect(url, autocommit=True) as outside:
        held = f"SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = {postgres.APPEND}"
        _until(lambda: outside.execute(held).fetchall() != [])
    assert engine.decide("shop", b"{}", ARMS, id="e1").id == "e1"
    frozen.close()
    engine.stop()


def test_an_append_follows_a_trial_that_was_rolled_back(url: str) -> None:
    """A service that is quiet, and is asked whether it is ready, tries an append; the next decision is no 503."""
    engine = Engine(open_store(url), {"shop": Creation(features={"dim": 16})})
    engine.start()
    try:
        engine.decide("shop", b"{}", ARMS, id="before")
        tried: list[bool] = []

        def probe(journal: Journal) -> None:
            for _ in range(8):  # so often that a driver plans what it is asked
                journal.last()
            journal.probe()
            tried.append(True)

        engine.writer.run(probe)
        assert tried == [True]
        engine.decide("shop", b"{}", ARMS, id="after")
    finally:
        engine.stop()


def test_a_session_keeps_no_statement_that_nobody_uses_any_more(url: str) -> None:
    # A failure would mean that the server's memory grows for as long as a process leads, or cannot write.
    engine = Engine(open_store(url), {"shop": Creation(features={"dim": 16})})
    engine.start()
    kept, journal = "SELECT count(*) FROM pg_prepared_statements", engine.open_journal()
    counts = []
    for k in range(24):
        engine.decide("shop", b"{}", ARMS, id=f"e{k}")
        engine.snapshot()
        with pytest.raises(RuntimeError):
            journal.append([[Write("shop", f"e{k}", Reward(1.0))]], 0, more=_fails)
        leading = engine.store.leading()
        assert leading is not None
        counts.append((leading.execute(kept)[0][0], journal.connection.execute(kept)[0][0]))
    assert counts[-1] == counts[12]
    journal.connection.close()
    engine.stop()


def _fails() -> Any:
    raise RuntimeError("it fails in the middle of a batch")


def test_batches_that_a_crash_of_the_server_takes_were_told_to_nobody_and_learnt_by_nobody(
    server: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process rewards what another decided, both committed and neither durable, when the server dies.

    A failure would mean that one of two chained batches survives the other, or that something lost was acknowledged.
    """
    monkeypatch.setattr(lead.Lead, "_keep", lambda *_: None)  # which would make the log durable by the way,
    monkeypatch.setattr(postgres, "LEASE", 600_000)  # as would the next leader
    engines = [Engine(open_store(url), {"shop": Creation(features={"dim": 16})}) for _ in range(2)]
    for engine in engines:
        engine.start()
        engine.wait_learnt()
    came: list[Any] = []
    with psycopg.connect(server.url + "postgres", autocommit=True) as outside:
        outside.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        outside.execute("SELECT pg_reload_conf()")
    time.sleep(0.3)
    with monkeypatch.context() as slow, psycopg.connect(url, autocommit=True) as outside:
        for name in ("_SETTLE", "_SETTLE_IF_ANY"):  # a disk that takes its time
            slow.setattr(postgres_session, name, "SELECT pg_sleep(60)")
        for k, engine in enumerate(engines):
            write = Write("shop", "e", Reward(1.0)) if k else engine.prepare("shop", b"{}", ARMS, id="e")
            engine.writer.submit([write], came.append)
            _until(lambda k=k: outside.execute("SELECT max(seq) FROM events").fetchall() == [(k + 2,)], seconds=4.0)
        assert came == []
        server.control("restart", "-m", "immediate")
    with psycopg.connect(server.url + "postgres", autocommit=True) as outside:
        outside.execute("ALTER SYSTEM RESET wal_writer_delay")
        outside.execute("SELECT pg_reload_conf()")
    _until(lambda: len(came) == 2)
    assert [type(outcome) for outcome in came] == [Unavailable, Unavailable]
    journal = Journal(open_store(url).connect())
    kept = journal.last()[0]  # 1, unless the server came to write its log of itself: then the first may be there,
    assert kept in (1, 2, 3) and verify(journal).problems == []  # and the second only with it
    _until(lambda: all(engine.writer.healthy for engine in engines))
    for k, engine in enumerate(engines):
        assert not engine.decide("shop", b'{"x": 1}', ARMS, id=f"other{k}").again
    assert engines[0].decide("shop", b"{}", ARMS, id="e").again == (kept > 1)
    last = engines[1].reward("shop", "e", 0.5).row.seq
    _until(lambda: (saved := journal.saved()) is not None and saved.seq == last)
    report = verify(journal)  # which compares what is stored of the models with a replay
    assert (report.problems, report.decisions, report.rewards) == ([], 3, 1 + (kept == 3)) and report.snapshots >= 1
    journal.connection.close()
    for engine in engines:
        engine.stop()
