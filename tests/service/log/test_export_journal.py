"""The log of a service: three formats that say the same, with every reward in each."""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest

from armwise.cli.main import main
from armwise.offline import Log, evaluate
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Creation
from armwise.service.log import parquet
from armwise.service.log.export_journal import entries, pieces

ARMS = [b'"pasta"', b'{"id": "salad", "features": {"fresh": true, "price": 2.5}}', b'"soup"', b'"cake"']


def visit(engine: Engine, clock: Any, n: int = 120) -> None:
    """Decisions over changing arms, most with a reward; the last few are open."""
    rng = np.random.default_rng(1)
    for k in range(n):
        clock.now += 1.0
        engine.decide("shop", b'{"hour": %d, "day": "d%d"}' % (k % 24, k % 7), ARMS[: 4 - k % 2], id=f"e{k}")
        if k % 3:
            engine.reward("shop", f"e{k}", float(rng.normal()))
    engine.expire()
    engine.wait_learnt()


def export(path: Path, kind: str, capfd: pytest.CaptureFixture[str]) -> Path:
    target = path.parent / f"log.{'jsonl' if kind == 'json' else kind}"
    assert main(["journal", "export", "--storage", str(path), "--format", kind, "--output", str(target)]) == 0
    return target


def ips(log: Path, policy: str, capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capfd.readouterr()
    assert main(["evaluate", str(log), "--policy", policy, "--estimators", "ips", "--json"]) == 0
    found: dict[str, Any] = json.loads(capfd.readouterr().out)["estimates"]["ips"]
    return found


@pytest.mark.parametrize("policy", ["uniform", "arm:salad"])
def test_all_formats_are_judged_alike(
    engines: Callable[..., Engine], clock: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], policy: str
) -> None:
    engine = engines(window=10.0, default=-0.5)
    visit(engine, clock)
    engine.stop()
    logs = [export(tmp_path / "journal.db", kind, capfd) for kind in ("json", "dsjson", "parquet")]
    told = [ips(log, policy, capfd) for log in logs]
    assert told[0]["n"] > 100
    assert told[0] == told[1] == told[2]
    lines = [json.loads(line) for line in logs[0].read_text().splitlines()]
    settled = [line for line in lines if line["reward"] is not None]
    name = policy.partition(":")[2]
    weights = [1 / 4 if len(x["arms"]) == 4 else 1 / 3 for x in settled] if not name else [
        float(x["arm"] == name) for x in settled
    ]  # fmt: skip
    by_hand = np.mean([w / x["probability"] * x["reward"] for w, x in zip(weights, settled)])
    assert told[0]["value"] == pytest.approx(by_hand, rel=1e-12)


def test_an_arm_is_judged_wherever_it_stands(
    engines: Callable[..., Engine], clock: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    engine = engines(window=1000.0)
    for k in range(60):
        turned = ARMS[k % 4 :] + ARMS[: k % 4]
        arm = engine.decide("shop", b"{}", turned, excluded=["soup"] if k % 2 else [], id=f"e{k}").arm
        engine.reward("shop", f"e{k}", 1.0 if arm == "salad" else 0.0)
    engine.stop()
    for kind in ("json", "dsjson", "parquet"):
        log = export(tmp_path / "journal.db", kind, capfd)
        lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
        by_hand = np.mean([x["outcomes"][0]["value"] / x["probability"] for x in lines])
        assert ips(log, "arm:salad", capfd)["value"] == pytest.approx(by_hand, rel=1e-12)
        capfd.readouterr()
        assert main(["evaluate", str(log), "--policy", "arm:soup", "--estimators", "ips"]) == 0
        said = " ".join(capfd.readouterr().out.split())
        assert "it was on offer in 30 of 60 rows (50%), and is judged on these; over all rows its value lies" in said


def test_parquet_says_what_the_lines_say(
    engines: Callable[..., Engine], clock: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    engine = engines(window=10.0)
    visit(engine, clock)
    engine.decide("shop", b'{"geo": "K\\u00f6ln"}', ARMS, excluded=["soup"], deferred=True, id="e|x")
    engine.stop()
    lines = [json.loads(x) for x in export(tmp_path / "journal.db", "json", capfd).read_text().splitlines()]
    rows = pq.read_table(export(tmp_path / "journal.db", "parquet", capfd)).to_pylist()
    assert len(rows) == len(lines) == 121
    for row, line in zip(rows, lines):
        row["context"], row["arms"] = json.loads(row["context"]), [json.loads(arm) for arm in row["arms"]]
        for moment in (row, *row["outcomes"]):
            moment["time"] = moment["time"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
        assert all(outcome.pop("cost") is None for outcome in row["outcomes"])  # a column has it in every row
        assert row == line
    one, two = (Log.from_parquet(tmp_path / "log.parquet"), Log.from_dsjson(tmp_path / "log.jsonl"))
    assert one.arm_names == two.arm_names == ["pasta", "salad", "soup", "cake"]
    assert one.timestamps.tolist() == two.timestamps.tolist()
    np.testing.assert_array_equal(one.contexts, two.contexts)
    np.testing.assert_array_equal(one.arm_features, two.arm_features)
    np.testing.assert_array_equal(one.available, two.available)


def test_parquet_is_written_in_bounded_memory(
    engines: Callable[..., Engine], clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row groups leave as they are full; a piece is never the whole log."""
    engine = engines(window=1000.0)
    padding = json.dumps({"text": "x" * 4000, "n": 1}).encode()
    for _ in range(300):
        engine.decide("shop", padding, ARMS)
    monkeypatch.setattr(parquet, "MAX_BYTES", 100_000)
    tracemalloc.start()
    sizes = [len(piece) for piece in pieces(engine.open_journal(), "shop", "parquet")]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(sizes) == 13  # twelve groups of 25 rows and the end
    whole = b"".join(pieces(engine.open_journal(), "shop", "parquet"))
    (tmp_path / "log.parquet").write_bytes(whole)
    assert pq.ParquetFile(tmp_path / "log.parquet").metadata.num_rows == 300
    assert peak < 6_000_000
    assert len(b"".join(pieces(engine.open_journal(), "shop", "parquet", limit=7))) < len(whole)


def test_the_log_is_streamed_as_parquet(run: Callable[..., Any], tmp_path: Path) -> None:
    client = run().client
    for k in range(5):
        client.post("/v1/decisions", json={"id": f"e{k}", "arms": ["a", "b"], "context": {"k": k}})
        client.post(f"/v1/decisions/e{k}/reward", json={"value": k / 4})
    answer = client.get("/v1/log?format=parquet&after=2&limit=3")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/vnd.apache.parquet")
    (tmp_path / "log.parquet").write_bytes(answer.content)
    assert pq.read_table(tmp_path / "log.parquet")["id"].to_pylist() == ["e1", "e2", "e3"]
    assert Log.from_parquet(tmp_path / "log.parquet").rewards.tolist() == [0.25, 0.5, 0.75]
    assert client.get("/v1/log?format=csv").status_code == 400
    empty = client.get("/v1/log?format=parquet&after=1000").content
    assert (empty[:4], empty[-4:]) == (b"PAR1", b"PAR1")
    asked = client.get("/openapi.json").json()["paths"]["/v1/log"]["get"]
    assert "application/vnd.apache.parquet" in asked["responses"]["200"]["content"]


def test_without_pyarrow_it_says_what_to_install(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    service = run()
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = service.client.get("/v1/log?format=parquet")
    assert answer.status_code == 501
    assert "armwise[offline]" in answer.json()["error"]["message"]
    assert service.client.get("/v1/log").status_code == 200
    storage = service.service.config.storage
    target = tmp_path / "log.parquet"
    assert main(["journal", "export", "--storage", storage, "--format", "parquet", "--output", str(target)]) == 2
    assert "armwise[offline]" in capfd.readouterr().err
    assert not target.exists()


def test_every_reward_is_in_the_log(engines: Callable[..., Engine], clock: Any, tmp_path: Path) -> None:
    engine = engines(window=5.0, rule="sum")
    engine.decide("shop", b"{}", ARMS, id="e1")
    engine.decide("shop", b"{}", ARMS, id="e2")
    for value, wait in ((0.5, 1.0), (0.25, 1.0), (9.0, 10.0)):
        clock.now += wait
        engine.reward("shop", "e1", value)
    engine.expire()
    line, other = (json.loads(line) for line in b"".join(pieces(engine.open_journal(), "shop")).splitlines())
    assert [(o["value"], o["late"]) for o in line["outcomes"]] == [(0.5, False), (0.25, False), (9.0, True)]
    assert [o["time"][-8:] for o in line["outcomes"]] == [":41.000Z", ":42.000Z", ":52.000Z"]
    assert (line["reward"], line["rewards"]) == (0.75, 2)
    assert (other["reward"], other["outcomes"]) == (0.0, [])
    event, empty = (json.loads(x) for x in b"".join(pieces(engine.open_journal(), "shop", "dsjson")).splitlines())
    assert [(o["v"], o["late"], o["EventId"]) for o in event["o"]] == [
        (0.5, False, "e1"), (0.25, False, "e1"), (9.0, True, "e1")
    ]  # fmt: skip
    assert (event["_label_cost"], empty["o"]) == (-0.75, [])


def test_a_late_reward_is_shown_with_its_decision(run: Callable[..., Any]) -> None:
    client = run().client
    client.patch("/v1/settings", json={"window": 0.05})
    client.post("/v1/decisions", json={"id": "d3", "arms": ["a", "b"]})
    time.sleep(0.1)
    assert client.post("/v1/decisions/d3/reward", json={"value": 0.75}).json()["late"] is True
    [outcome] = client.get("/v1/decisions/d3").json()["outcomes"]
    assert (outcome["value"], outcome["late"]) == (0.75, True)
    [line] = [json.loads(line) for line in client.get("/v1/log").text.splitlines()]
    assert line["outcomes"] == [outcome]
    assert line["rewards"] == 0


def test_vw_reads_the_labels_of_a_decision_with_late_rewards(
    engines: Callable[..., Engine], clock: Any, tmp_path: Path
) -> None:
    import vowpalwabbit

    engine = engines(window=5.0)
    engine.decide("shop", b'{"hour": 9}', ARMS, id="e1")
    for value, wait in ((0.5, 1.0), (9.0, 10.0)):
        clock.now += wait
        engine.reward("shop", "e1", value)
    text = b"".join(pieces(engine.open_journal(), "shop", "dsjson")).decode()
    workspace = vowpalwabbit.Workspace("--cb_explore_adf --dsjson -t --quiet")
    examples = workspace.parse(text)
    labels = [example.get_label(vowpalwabbit.LabelType.CONTEXTUAL_BANDIT).costs for example in examples[1:]]
    assert [costs[0].cost for costs in labels if costs] == [-0.5]
    workspace.finish_example(examples)


def test_what_is_exported_was_durable_when_it_was_read() -> None:
    # A failure would mean that a log shows a reward that a crash of the database can still take back.
    engine = Engine(SQLite.temporary(), {"shop": Creation()})
    engine.start()
    engine.decide("shop", b"{}", ARMS, id="e")
    engine.reward("shop", "e", 1.0)
    journal = engine.open_journal()
    did: list[str] = []
    execute = journal.connection.execute

    def noted(sql: str, values: Any = ()) -> list[Any]:
        did.append(sql)
        return execute(sql, values)

    journal.connection.execute = noted  # type: ignore[method-assign]
    journal.connection.wait_until_durable = lambda: did.append("settle")  # type: ignore[method-assign]
    next(entries(journal, "shop"))
    assert did[-1] == "settle" and any("FROM decisions" in sql for sql in did)
    assert any("kind = 'reward'" in sql for sql in did)
    journal.connection.close()
    engine.stop()


def test_a_log_that_cannot_be_read_is_no_success(run: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    """It was 200 with nothing in it, and a traceback in the service's log."""
    running = run()
    for k in range(1000):
        running.service.engine.decide("default", b"{}", ARMS, id=f"e{k}")
    damage = "UPDATE events SET body = CAST('{' AS BLOB) WHERE id = ?"
    path = Path(running.service.config.storage) / "journal.db"
    SQLite(path).connect().execute(damage, ("e900",))
    with pytest.raises(httpx.RemoteProtocolError):  # the connection is closed before the end
        running.client.get("/v1/log")
    assert "a response was interrupted" in caplog.text
    assert "Traceback" not in caplog.text
    SQLite(path).connect().execute(damage, ("e0",))
    for kind in ("json", "dsjson", "parquet"):
        refused = running.client.get("/v1/log", params={"format": kind})
        assert (refused.status_code, "(decision) is damaged" in refused.text) == (503, True), refused.text


def test_an_export_is_judged_by_age_and_says_what_it_left_out(
    engines: Callable[..., Engine], clock: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Clicks come at once and their lack never: of 400 decisions 5 % are clicked. Rows with an outcome earned 1.0."""
    engine = engines(window=86400.0)
    for k in range(400):
        clock.now += 10.0
        engine.decide("shop", b"{}", ARMS, id=f"e{k}")
        if k % 20 == 7:
            engine.reward("shop", f"e{k}", 1.0)
    engine.stop()
    for kind in ("json", "dsjson", "parquet"):
        log = export(tmp_path / "journal.db", kind, capfd)
        capfd.readouterr()
        assert main(["evaluate", str(log), "--policy", "uniform", "--estimators", "snips"]) == 0
        said = " ".join(capfd.readouterr().out.split())
        assert ips(log, "uniform", capfd)["value"] < 0.2
        assert "judged by age: what 200 decisions earned within 33.3 min, rewarded or not" in said
        assert "200 left out as younger than 33.3 min" in said
        assert main(["evaluate", str(log), "--policy", "uniform", "--estimators", "snips", "--within", "600"]) == 0
        assert "judged by age: what 340 decisions earned within 10 min" in " ".join(capfd.readouterr().out.split())


def test_an_export_before_statuses_is_cut_before_the_first_row_without_an_outcome(tmp_path: Path) -> None:
    line = {
        "context": {},
        "arms": ["a", "b"],
        "index": 0,
        "probability": 0.5,
        "probabilities": [0.5, 0.5],
        "active": True,
    }
    lines = [
        line | {"reward": reward, "time": f"2026-01-01T00:00:{t:02}Z"} for t, reward in enumerate([0.0, 1.0, None, 1.0])
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    log = Log.from_dsjson(tmp_path / "log.jsonl")
    assert log.rewards.tolist() == [0.0, 1.0] and log.remarks
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines[2:])))
    with pytest.raises(ValueError, match="would select by outcome: export it again"):
        Log.from_dsjson(tmp_path / "log.jsonl")


def test_two_weeks_of_arms_that_change_daily_are_evaluated_with_no_option(
    engines: Callable[..., Engine], clock: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each day brings an arm and takes the oldest of four away; one stays. An arm's truth is its rate."""
    rng = np.random.default_rng(4)
    rates = {"always": 0.5} | {f"day {d}": 0.3 + 0.05 * (d % 5) for d in range(-2, 14)}
    engine = engines(window=3600.0)
    for day in range(14):
        arms = [b'"always"', *(b'"day %d"' % (day - k) for k in range(3))]
        for k in range(60):
            clock.now += 1440.0
            made = engine.decide("shop", b"{}", arms, id=f"e{day}-{k}")
            if rng.random() < rates[made.arm]:
                engine.reward("shop", made.id, 1.0)
    engine.stop()
    for kind in ("json", "dsjson", "parquet"):
        log = export(tmp_path / "journal.db", kind, capfd)
        capfd.readouterr()
        assert main(["evaluate", str(log), "--json"]) == 0
        found = json.loads(capfd.readouterr().out)
        assert len(found["policies"]) == 17
        assert main(["evaluate", str(log), "--policy", "uniform", "--policy", "arm:day 7"]) == 0
        assert "it was on offer in 180 of" in " ".join(capfd.readouterr().out.split())
        assert main(["compare", str(log), "--first", "arm:always", "--second", "arm:day 7"]) == 0
        assert "both policies were on offer in 180 of" in " ".join(capfd.readouterr().out.split())
    table = Log.from_dsjson(tmp_path / "log.jsonl")
    assert table.arm_names is not None and set(table.arm_names) == set(rates)
    one = evaluate(table, lambda x: "always", "snips", warn=False)["snips"]
    assert one.low < 0.5 < one.high and one.n == len(table)
