"""Verifying, exporting and compacting a journal; a journal that was tampered with is found out."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from armwise.cli.main import main
from armwise.core import saving
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Change, Decision, Reward, Row
from armwise.service.journal.journal import Journal, link
from armwise.service.journal.writes import Write
from armwise.service.log.compact import compact
from armwise.service.log.verify import verify

ARMS = [b'"a"', b'{"id": "b", "features": {"x": 1.5}}', b'"c"']


def use(engine: Engine, clock: Any, n: int = 30, start: int = 0) -> None:
    rng = np.random.default_rng(start)
    for k in range(start, start + n):
        clock.now += 1.0
        context = json.dumps({"x": float(rng.normal()), "day": int(rng.integers(7))}).encode()
        engine.decide("shop", context, ARMS, id=f"e{k}", deferred=k % 7 == 0, request=f"r{k}")
        if k % 3:
            engine.reward("shop", f"e{k}", float(rng.random()), request=f"w{k}")
        if k % 5 == 0:
            engine.reward("shop", f"e{max(start, k - 4)}", 0.5)
            engine.activate("shop", f"e{max(start, k - 2)}")
        if k % 10 == 9:
            engine.snapshot()
    clock.now += 5.0
    engine.expire()
    engine.wait_learnt()


def journal_at(tmp_path: Path) -> Journal:
    return Journal(SQLite(tmp_path / "journal.db").connect())


def test_a_sound_journal_verifies(engines: Callable[..., Engine], clock: Any, tmp_path: Path) -> None:
    engine = engines(window=4.0)
    use(engine, clock)
    engine.configure("shop", Change(rule="sum", default=0.25))
    use(engine, clock, start=30)
    report = verify(engine.open_journal())
    assert report.problems == []
    assert report.decisions == 60
    assert report.lessons > 40
    assert report.snapshots >= 2
    engine.stop()
    assert main(["journal", "verify", "--storage", str(tmp_path / "journal.db")]) == 0


@pytest.mark.parametrize(
    ("tamper", "found"),
    [
        ("UPDATE events SET body = CAST(replace(body, '0.', '1.') AS BLOB) WHERE kind = 'reward'", "altered"),
        ("DELETE FROM events WHERE seq = 20", "event 20 is missing"),
        ("UPDATE decisions SET n = n + 1 WHERE id = 'e4'", "decision e4: the status kept"),
        ("DELETE FROM decisions WHERE id = 'e4'", "decision e4: the status kept is None"),
        ("UPDATE events SET time = 5 WHERE seq = 12", "older"),
        ("INSERT INTO decisions SELECT app, 'x', seq, deadline, rule, fallback, active, n, total, value, closed, learn "
         "FROM decisions WHERE id = 'e4'", "belong to no decision"),
    ],
)  # fmt: skip
def test_tampering_is_found(
    engines: Callable[..., Engine], clock: Any, tmp_path: Path, tamper: str, found: str
) -> None:
    engine = engines(window=4.0)
    use(engine, clock)
    engine.stop()
    journal = journal_at(tmp_path)
    journal.connection.execute(tamper)
    problems = verify(journal, models=False).problems
    assert any(found in problem for problem in problems), problems
    assert main(["journal", "verify", "--storage", str(tmp_path / "journal.db")]) in (1, 2)


def test_a_false_snapshot_is_found(engines: Callable[..., Engine], clock: Any, tmp_path: Path) -> None:
    engine = engines(window=4.0)
    use(engine, clock)
    engine.stop()
    journal = journal_at(tmp_path)
    seq, data = journal.snapshot("shop")  # type: ignore[misc]
    model = saving.loads(data)
    model.agent.agent._model.theta[0, 0] += 1e-15
    false = "UPDATE snapshots SET data = ? WHERE app = 'shop' AND seq = ?"
    journal.connection.execute(false, (saving.dumps(model), seq))
    assert verify(journal).problems == [f"the snapshot of shop at event {seq} differs from a replay"]


def test_compaction_forgets_events_and_no_lesson(engines: Callable[..., Engine], clock: Any, tmp_path: Path) -> None:
    engine = engines(window=4.0, rule="sum")
    use(engine, clock)
    cut = clock.now
    use(engine, clock, start=30)
    before = saving.dumps(engine.learner.masters["shop"])
    engine.stop()
    journal = journal_at(tmp_path)
    total = journal.connection.execute("SELECT count(*) FROM events")[0][0]
    dropped = compact(journal, int((cut - 3.0) * 1000))
    left = journal.connection.execute("SELECT count(*) FROM events")[0][0]
    assert 20 < dropped < total
    assert left == total - dropped
    assert verify(journal).problems == []
    again = engines(window=4.0, rule="sum")
    assert saving.dumps(again.learner.masters["shop"]) == before
    use(again, clock, start=60)
    assert verify(again.open_journal()).problems == []
    again.stop()
    assert compact(journal_at(tmp_path), int(clock.now * 1000 + 1)) > 0
    assert verify(journal_at(tmp_path)).problems == []


def test_commands(
    engines: Callable[..., Engine], clock: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    engine = engines(window=4.0)
    use(engine, clock)
    path = str(tmp_path / "journal.db")
    assert main(["journal", "compact", "--storage", path]) == 2
    assert "stop it first" in capfd.readouterr().err
    engine.stop()
    assert main(["journal", "export", "--storage", path, "--format", "dsjson"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 30
    assert all(json.loads(line)["_labelIndex"] < 3 for line in lines)
    (tmp_path / "log.dsjson").write_text("\n".join(lines))
    assert main(["evaluate", str(tmp_path / "log.dsjson"), "--policy", "uniform", "--estimators", "ips", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["estimates"]["ips"]["n"] > 20
    target = tmp_path / "log.jsonl"
    assert main(["journal", "export", "--storage", path, "--output", str(target)]) == 0
    assert len(target.read_text().splitlines()) == 30
    assert main(["journal", "compact", "--storage", path, "--keep-days", "0", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["dropped"] > 60
    assert main(["journal", "verify", "--storage", path]) == 0
    assert main(["journal", "verify", "--storage", str(tmp_path / "nothing")]) == 2
    assert main(["journal", "export", "--storage", path, "--application", "other"]) == 2


def test_a_large_batch_is_taken_whole_or_not_at_all() -> None:
    """Beyond 500 events a batch is several statements; if this fails, a crash between them could split a commit."""
    store = SQLite.temporary()
    journal = Journal(store.connect())
    decision = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 60_000, 0.0)
    journal.append([[Write("shop", f"e{k}", decision, fresh=True)] for k in range(1200)], now=1)
    rewards = [[Write("shop", f"e{k}", Reward(1.0), request=f"r{k}")] for k in range(1200)]
    execute, inserted = journal.connection.execute, []

    def failing(sql: str, values: Sequence[Any] = ()) -> list[Any]:
        inserted.append(sql.startswith("INSERT"))
        if sum(inserted) == 2:
            raise OSError("the disk is full")
        return execute(sql, values)

    journal.connection.execute = failing  # type: ignore[method-assign]
    with pytest.raises(OSError, match="disk is full"):
        journal.append(rewards, now=2)
    assert execute("SELECT count(*) FROM events") == [(1200,)]
    assert execute("SELECT count(*) FROM decisions WHERE closed = 1") == [(0,)]
    journal.connection.execute = execute  # type: ignore[method-assign]
    outcomes = journal.append(rewards, now=3)
    assert [outcome[0].row.seq for outcome in outcomes] == list(range(1201, 2401))  # type: ignore[index]
    assert execute("SELECT count(*), sum(n), sum(total) FROM decisions WHERE closed = 1") == [(1200, 1200, 1200.0)]
    assert execute("SELECT count(*) FROM requests") == [(1200,)]
    assert journal.append(rewards[:1], now=4)[0][0].again  # type: ignore[index]
    store.close()


def test_verify_counts_what_a_compaction_kept(engines: Callable[..., Engine], tmp_path: Path) -> None:
    engine = engines()
    for k in range(5):
        engine.decide("shop", b"{}", ARMS, id=f"e{k}")
    engine.wait_learnt()
    engine.stop()
    journal = journal_at(tmp_path)
    before = verify(journal)
    assert compact(journal, before=10**15) == 0  # all are open still
    after = verify(journal)
    assert (after.problems, after.decisions, after.events) == ([], before.decisions, before.events)
    assert before.decisions == 5


def test_the_chain_is_blake2b_of_the_chain_before_and_the_row() -> None:
    """Old journals are verified with it: a long row, which is hashed in pieces, must not differ from a short one."""
    chain = b"before"
    for k, n in enumerate([*range(0, 300, 7), 2000, 2047, 2048, 9000]):
        row = Row(7 + k, 5, "shop", "decision", f"é{k}", b"x" * n)
        head = f"shop\0decision\0é{k}".encode()
        whole = chain + struct.pack("<QQQ", 7 + k, 5, len(head)) + head + row.body
        chain = link(chain, row)
        assert chain == hashlib.blake2b(whole, digest_size=16).digest()
