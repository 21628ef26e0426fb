"""Erasure: whatever names the subject goes, at once, from every file; the answer says what was searched and is left."""

from __future__ import annotations

import json
import pathlib
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from armwise.cli.main import main
from armwise.service.engine.application import Application
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.errors import Unknown
from armwise.service.journal.journal import Journal
from armwise.service.log.retain import Retention
from armwise.service.log.subjects import Subjects, closings
from armwise.service.log.verify import verify
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.database import Server
from tests.service.serving import Running, ask, replayed, settled, state

WHOM = "subject-4711"


def config(storage: str) -> Config:
    return Config(storage=storage, applications={"shop": Application(features={"dim": 32})})


def erase(running: Running, key: str, value: Any) -> dict[str, Any]:
    answer = running.client.post("/v1/erasures", json={"key": key, "value": value})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_subject_is_found_however_it_is_named(run: Callable[..., Any]) -> None:
    running = run()
    cases = {
        "a key": ({"user": "u7"}, "user", "u7"),
        "nested": ({"user": {"name": "u8"}}, "user.name", "u8"),
        "a literal key with a dot": ({"user.name": "u9"}, "user.name", "u9"),
        "a dot in the middle": ({"a": {"b.c": {"d": "u10"}}}, "a.b.c.d", "u10"),
        "a member of a list": ({"users": ["u11", "u12"]}, "users", "u12"),
        "objects in a list": ({"users": [{"id": "u13"}, {"id": "u14"}]}, "users.id", "u14"),
        "7 for 7.0": ({"number": 7.0}, "number", 7),
        "8.0 for 8": ({"number": 8}, "number", 8.0),
        "text for a number": ({"number": 99123}, "number", "99123"),
        "a number for text": ({"number": "99124"}, "number", 99124),
        "a fraction": ({"number": 0.5}, "number", "0.5"),
    }
    for place, (context, _, _) in enumerate(cases.values()):
        body = {"id": f"e{place}", "context": context, "arms": ["a", "b"]}
        assert running.client.post("/v1/decisions", json=body).status_code == 201
    arms = [{"id": "a", "features": {"author": "u20"}}, {"id": "u21"}]
    assert running.client.post("/v1/decisions", json={"id": "by arm", "arms": arms}).status_code == 201
    for place, (name, (_, key, value)) in enumerate(cases.items()):
        answer = erase(running, key, value)
        assert (answer["found"]["decisions"], answer["remaining"]) == (1, 0), name
        assert running.client.get(f"/v1/decisions/e{place}").status_code == 404, name
        assert answer["searched"]["decisions"] == len(cases) + 1 - place
    nobody = erase(running, "author", "nobody")
    assert (nobody["found"]["decisions"], nobody["deleted"], nobody["searched"]["decisions"]) == (0, 0, 1)
    assert erase(running, "author", "u20")["found"]["decisions"] == 1
    others = [("number", True), ("number", "007"), ("user", None)]
    assert [erase(running, key, value)["found"]["decisions"] for key, value in others] == [0, 0, 0]


def test_no_byte_of_a_subject_is_left_in_any_file(run: Callable[..., Any], tmp_path: pathlib.Path) -> None:
    """Rows of others come before, between and after, so that pages of the file are split and merged."""
    running = run(config(str(tmp_path / "data")))
    client = running.client
    arms = [{"id": f"a{k}", "features": {"text": "x" * 40, "author": WHOM if k == 7 else "other"}} for k in range(60)]
    ids = []
    for k in range(400):
        mine = k % 3 == 0
        named = WHOM if mine else f"other-{k}"
        context = {"user": named, "text": ("y" * (k * 7 % 900)) + named}
        body = {"id": f"{named}-{k}", "context": context, "arms": arms if mine and k % 2 else ["a", "b"]}
        key = {"Idempotency-Key": f"key {named} {k}"}
        assert client.post("/v1/decisions", json=body, headers=key).status_code == 201
        if k % 5:
            reward = client.post(f"/v1/decisions/{body['id']}/reward", json={"value": 1}, headers=key)
            assert reward.status_code == 200
        ids += [body["id"]] if mine else []
    batch = {"rewards": [{"id": id, "value": 0.5} for id in ids[:20]]}
    assert client.post("/v1/batch/rewards", json=batch, headers={"Idempotency-Key": "batch"}).status_code == 200
    assert client.post("/v1/catalogues", json={"arms": [*arms, "b"]}).status_code == 201, "which no decision refers to"
    running.service.engine.snapshot()
    answer = erase(running, "user", WHOM)
    assert answer["found"] == {"decisions": len(ids), "lessons": 0, "catalogues": 0}
    second = erase(running, "author", WHOM)
    assert second["found"] == {"decisions": 0, "lessons": 0, "catalogues": 2}, "their decisions are gone"
    for part in (answer, second):
        assert (part["remaining"], part["until"]) == (0, "")
        assert any("backups" in text for text in part["elsewhere"])
    files = {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()}
    assert [name for name, data in files.items() if WHOM.encode() in data] == []
    connection = SQLite(tmp_path / "data" / "journal.db").connect()
    stored = [zlib.decompress(bytes(data)) for (data,) in connection.execute("SELECT data FROM catalogues")]
    assert not any(WHOM.encode() in data for data in stored)
    assert client.post(f"/v1/decisions/{ids[-1]}/reward", json={"value": 1}).status_code == 404
    assert client.post("/v1/decisions", json={"arms": ["a"]}).status_code == 201
    engine = running.service.engine
    engine.wait_learnt()
    journal = Journal(connection)
    assert verify(journal).problems == []
    journal.connection.close()


def test_open_windows_of_a_subject_are_closed_and_a_restart_changes_nothing(
    engines: Callable[..., Any], tmp_path: pathlib.Path
) -> None:
    engine = engines(window=3600.0, default=-1.0)
    for k in range(6):
        engine.decide("shop", b'{"user": "%s"}' % (b"u1" if k % 2 else b"u2"), [b'"a"', b'"b"'], id=f"e{k}")
    engine.decide("shop", b'{"user": "u1"}', [b'"a"', b'"b"'], id="deferred", deferred=True)
    engine.reward("shop", "e1", 1.0)
    retention = Retention(engine)
    answer = retention.erase("shop", "user", "u1")
    assert (answer.found["decisions"], answer.remaining) == (4, 0)
    # Four decisions; the reward of one; the closings of the others, whose default was learnt when they were made.
    assert answer.deleted == 8
    with engine.reading as journal:
        [[left]] = journal.connection.execute("SELECT count(*) FROM decisions")
    assert left == 3
    before = settled(engine)
    engine.stop()
    engine = engines(window=3600.0, default=-1.0)
    assert settled(engine) == before
    journal = engine.open_journal()
    assert verify(journal).problems == []
    journal.connection.close()


def test_a_closing_before_its_time_is_checked_by_the_rules(engines: Callable[..., Any]) -> None:
    """Before it is dropped, a replay learns from an early closing what the service learnt, bit for bit."""
    engine = engines(window=3600.0)
    engine.decide("shop", b'{"user": "u1"}', [b'"a"', b'"b"'], id="e1")
    retention = Retention(engine)
    retention._go = lambda *_: 0  # type: ignore[method-assign]
    found = retention.erase("shop", "user", "u1")
    assert (found.deleted, found.remaining) == (0, 1) and found.until
    journal = engine.open_journal()
    search = Subjects(journal).search(journal)
    for group in closings(journal, search):
        engine.writer.write(group)
    assert settled(engine) == state(replayed(engine)["shop"])
    assert verify(journal).problems == []
    journal.connection.close()


def test_the_command_erases_too(run: Callable[..., Any], tmp_path: pathlib.Path, capsys: Any) -> None:
    running = run(config(str(tmp_path / "data")))
    for k in range(4):
        body = {"context": {"user": WHOM if k % 2 else "other"}, "arms": ["a", "b"]}
        assert running.client.post("/v1/decisions", json=body).status_code == 201
    running.stop()
    command = ["journal", "erase", "--storage", str(tmp_path / "data"), "--key", "user", "--value", json.dumps(WHOM)]
    assert main(command) == 0
    assert "2 of 4 decisions name the subject" in capsys.readouterr().out
    assert not any(WHOM.encode() in path.read_bytes() for path in (tmp_path / "data").iterdir())
    assert main(["journal", "verify", "--storage", str(tmp_path / "data")]) == 0


def test_on_postgresql_no_row_and_no_dead_tuple_is_left(run: Callable[..., Any], server: Server) -> None:
    url = server.new_database()
    running = run(config(url))
    arms = [{"id": f"a{k}", "features": {"text": "x" * 80, "author": WHOM}} for k in range(60)]
    for k in range(30):
        body = {"context": {"user": WHOM if k % 2 else "other"}, "arms": arms if k % 2 else ["a"]}
        assert running.client.post("/v1/decisions", json=body).status_code == 201
    answer = erase(running, "user", WHOM)
    assert (answer["found"]["decisions"], answer["remaining"]) == (15, 0)
    assert erase(running, "author", WHOM)["found"]["catalogues"] == 1
    assert any("write-ahead log" in text for text in answer["elsewhere"])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pageinspect")
        for table in ("events", "decisions", "requests", "catalogues"):
            dead = connection.execute(
                "SELECT count(*) FROM generate_series(0, pg_relation_size(%s) / 8192 - 1) AS page, "
                "heap_page_items(get_raw_page(%s, page::int)) WHERE t_xmax <> 0 AND lp_flags = 1 "
                "AND (t_infomask & 2048) = 0",
                (table, table),
            ).fetchone()
            assert dead == (0,), table
        assert connection.execute("SELECT count(*) FROM catalogues").fetchone() == (0,)


def test_the_leading_process_finishes_what_another_one_was_asked(
    run: Callable[..., Any], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("armwise.service.log.retain.SOON", 0.2)
    url = server.new_database()
    leader, other = run(config(url)), run(config(url))
    assert leader.service.engine.leader and not other.service.engine.leader
    made = other.client.post("/v1/decisions", json={"context": {"user": WHOM}, "arms": ["a", "b"]}).json()["id"]
    answer = erase(other, "user", WHOM)
    assert (answer["found"]["decisions"], answer["deleted"], answer["remaining"]) == (1, None, 1)
    assert "leading process" in answer["until"]
    end = time.monotonic() + 10.0
    while other.client.get(f"/v1/decisions/{made}").status_code != 404:
        assert time.monotonic() < end, "the leading process never erased it"
        time.sleep(0.05)


def test_an_erasure_that_the_retention_did_first_is_answered(
    engines: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, it was answered 503: between the commit and its turn nothing was left to do."""
    engine = engines(window=600.0)
    retention, write = Retention(engine), engine.writer.write
    for id, done_first in (("e1", True), ("e2", False)):
        ask(engine, id, {"user": "u7"})

        def then_retention_runs(group: Any, done_first: bool = done_first) -> Any:
            written = write(group)
            if done_first:
                monkeypatch.setattr(engine.writer, "write", write)
                retention.run()
            return written

        monkeypatch.setattr(engine.writer, "write", then_retention_runs)
        answer = retention.erase("shop", "user", "u7")
        monkeypatch.setattr(engine.writer, "write", write)
        assert (answer.found["decisions"], answer.remaining) == (1, 0)
        with pytest.raises(Unknown):
            engine.find("shop", id)


def test_an_erasure_that_the_leading_process_did_first_is_answered(engines: Callable[..., Any]) -> None:
    """The process that was asked finds nothing left, and says so."""
    engine = engines(window=600.0)
    leading, asked = Retention(engine), Retention(engine)
    ask(engine, "e1", {"user": "u7"})
    write = engine.writer.write

    def then_the_leader_runs(group: Any) -> Any:
        engine.writer.write = write
        written = write(group)
        leading.run()
        return written

    engine.writer.write = then_the_leader_runs
    answer = asked.erase("shop", "user", "u7")
    assert (answer.found["decisions"], answer.remaining) == (0, 0)
    assert answer.until.startswith("the leading process had done it already")


def test_an_erasure_while_postgresql_restarts_is_done_or_refused_with_a_reason() -> None:
    """Before, it was answered 500: the leading session was gone when the models were to be stored."""
    with Server() as server:
        running = Running(Service(config(server.new_database())))
        try:
            codes: Counter[int] = Counter()
            for _ in range(3):
                for k in range(20):
                    body = {"context": {"user": f"u{k}"}, "arms": ["a", "b"]}
                    running.client.post("/v1/decisions", json=body)
                restart = threading.Thread(target=server.control, args=("restart", "-m", "immediate"))
                restart.start()
                k = 0
                while restart.is_alive() or k < 20:
                    asked = {"key": "user", "value": f"u{k % 20}"}
                    codes[running.client.post("/v1/erasures", json=asked).status_code] += 1
                    k += 1
                restart.join()
            assert set(codes) <= {200, 503}, codes
            end = time.monotonic() + 20.0
            while running.client.post("/v1/erasures", json={"key": "user", "value": "u1"}).status_code != 200:
                assert time.monotonic() < end, "it did not heal by itself"
                time.sleep(0.1)
        finally:
            running.stop()
