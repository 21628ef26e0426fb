"""Metrics per application and arm, the alert rules and dashboard that read them, and the audit log."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armwise.service.engine.application import Application
from armwise.service.engine.commit_counts import MAX_ARMS
from armwise.service.server.config import Config
from armwise.service.web.audit import MAX_PER_MINUTE, RefusedKeys
from armwise.service.web.keys import Key, digest

DEPLOY = Path(__file__).parents[3] / "deploy"


def measured(running: Any) -> dict[str, float]:
    lines = running.client.get("/metrics").text.splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_every_application_and_arm_is_counted(run: Callable[..., Any]) -> None:
    running = run(applications={"shop": Application(), "news": Application()})
    client = running.client
    for k in range(4):
        client.post("/v1/decisions", json={"arms": ["a"], "id": f"e{k}"})
    client.post("/v1/decisions", json={"arms": ["b", "a"], "excluded": ["b"], "id": "e4"})
    client.post("/v1/decisions/e0/reward", json={"value": 0.25})
    client.post("/v1/decisions/e1/reward", json={"value": -1})
    client.post("/v1/decisions/nobody/reward", json={"value": 1})
    client.post("/v1/decisions", json={"arms": []})
    client.post("/v1/versions", json={"name": "bold", "share": 0.2})
    found = measured(running)
    expected = {
        'armwise_decisions_total{application="shop",arm="a"}': 5,
        'armwise_rewards_total{application="shop",arm="a"}': 2,
        'armwise_reward_value{application="shop",arm="a"}': -0.75,
        'armwise_open_decisions{application="shop"}': 3,
        'armwise_open_decisions{application="news"}': 0,
        'armwise_late_rewards_total{application="shop"}': 0,
        'armwise_expired_total{application="shop"}': 0,
        'armwise_refusals_total{application="shop",code="NotFound"}': 1,
        'armwise_refusals_total{application="shop",code="BadArgument"}': 1,
        'armwise_drift_alarms{application="shop"}': 0,
        'armwise_version_share{application="shop",version="bold"}': 0.2,
        'armwise_version_uplift{application="shop",version="bold",end="low"}': -2.0,  # rewards were between -1 and 1
        "armwise_queue_depth": 0,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert found['armwise_commit_seconds_bucket{le="+Inf"}'] == found["armwise_commit_seconds_count"] >= 7
    assert found["armwise_commit_seconds_count"] == found["armwise_commits_total"]


def test_every_position_of_lists_is_counted(run: Callable[..., Any]) -> None:
    running = run(applications={"shop": Application(window=0.5)})
    for k in range(4):
        assert (
            running.client.post("/v1/rankings", json={"arms": ["a", "b", "c"], "k": 2, "id": f"e{k}"}).status_code
            == 201
        )
    running.client.post("/v1/rankings/e0/rewards", json={"slots": {"0": 1.0}})
    running.client.post("/v1/rankings/e1/rewards", json={"slots": {"0": 1.0, "1": 1.0}})
    expected = {
        'armwise_position_judged_decisions{application="shop",position="1"}': 4,
        'armwise_position_judged_decisions{application="shop",position="2"}': 4,
        'armwise_position_reward_per_decision{application="shop",position="1",end="value"}': 0.5,
        'armwise_position_reward_per_decision{application="shop",position="2",end="value"}': 0.25,
    }
    found: dict[str, float] = {}
    for _ in range(100):  # until the windows are over
        found = measured(running)
        if found.get('armwise_judged_decisions{application="shop"}') == 8:
            break
        time.sleep(0.1)
    assert {name: found.get(name) for name in expected} == expected


def test_windows_that_closed_and_rewards_that_came_late_are_counted(run: Callable[..., Any]) -> None:
    running = run(applications={"shop": Application(window=0.001)})
    running.client.post("/v1/decisions", json={"arms": ["a"], "id": "e1"})
    for _ in range(100):
        running.service.engine.expire()
        if measured(running)['armwise_expired_total{application="shop"}'] == 1:
            break
    running.client.post("/v1/decisions/e1/reward", json={"value": 1})
    assert measured(running)['armwise_late_rewards_total{application="shop"}'] == 1


def test_labels_are_bounded(run: Callable[..., Any]) -> None:
    """Arms that come and go for ever must not fill a Prometheus."""
    running = run()
    requests = [{"arms": [f"arm {k}"]} for k in range(2 * MAX_ARMS)]
    assert running.client.post("/v1/batch/decisions", json={"decisions": requests}).status_code < 300
    arms = [name for name in measured(running) if name.startswith("armwise_decisions_total")]
    assert len(arms) == MAX_ARMS + 1
    assert measured(running)['armwise_decisions_total{application="default",arm="(other)"}'] == MAX_ARMS


@pytest.mark.parametrize("name", ["alerts.yml", "grafana.json"])
def test_every_metric_that_the_files_name_exists(run: Callable[..., Any], name: str) -> None:
    running = run()
    running.client.post("/v1/decisions", json={"arms": ["a"], "id": "e1"})
    text = (DEPLOY / name).read_text()
    if name.endswith("json"):
        panels = json.loads(text)["panels"]
        assert len(panels) >= 12
        assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
    types = re.findall(r"^# TYPE (\S+) (\S+)$", running.client.get("/metrics").text, re.M)
    there = {metric for metric, _ in types}
    there |= {f"{metric}_{end}" for metric, kind in types if kind == "histogram" for end in ("bucket", "sum", "count")}
    named = set(re.findall(r"\barmwise_\w+", text))
    assert len(named) > 10
    assert named - there == set()


def test_who_changed_what_is_written_down(
    run: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [
        Key(name="alice", sha256=digest("a"), roles=["admin"]),
        Key(name="site", sha256=digest("s"), roles=["read"]),
    ]
    running = run(Config(storage=str(tmp_path / "keyed"), keys=keys))
    monkeypatch.setattr(logging.getLogger("armwise"), "propagate", True)
    alice, site = {"Authorization": "Bearer a"}, {"Authorization": "Bearer s"}
    with caplog.at_level(logging.INFO, "armwise.audit"):
        running.client.put("/v1/apps/news", json={}, headers=alice)
        running.client.get("/v1/versions", headers=alice)  # a question
        running.client.delete("/v1/apps/news", headers=alice)
        running.client.delete("/v1/apps/news", headers=site)
        running.client.patch("/v1/settings", json={"window": -1}, headers=alice)
        running.client.delete("/personalizer/v1.0/logs", headers=alice)
    lines = [(r.message, r.data) for r in caplog.records if r.name == "armwise.audit"]  # type: ignore[attr-defined]
    said = [(message, data["who"], data["method"], data["path"], data["of"]) for message, data in lines]
    assert said == [
        ("changed", "alice", "PUT", "v1/apps/{}", ["news"]),
        ("changed", "alice", "DELETE", "v1/apps/{}", ["news"]),
        ("refused", "site", "DELETE", "v1/apps/{}", ["news"]),
        ("refused", "alice", "PATCH", "v1/settings", []),
        ("changed", "alice", "DELETE", "personalizer/v1.0/logs", []),
    ]


def test_keys_that_are_refused_are_written_down_within_limits(
    run: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = Key(name="alice", sha256=digest("a"), roles=["admin"])
    running = run(Config(storage=str(tmp_path / "keyed"), keys=[key]))
    monkeypatch.setattr(logging.getLogger("armwise"), "propagate", True)
    for guess in range(3 * MAX_PER_MINUTE):
        assert running.client.get("/v1/log", headers={"Authorization": f"Bearer {guess}"}).status_code == 401
    lines = [r.data for r in caplog.records if r.message == "a key was refused"]  # type: ignore[attr-defined]
    assert lines[0] == {"address": "127.0.0.1", "path": "v1/log"}
    assert MAX_PER_MINUTE <= len(lines) <= 2 * MAX_PER_MINUTE  # a minute may have begun in between
    assert not any("Bearer" in str(record.__dict__) for record in caplog.records if record.name == "armwise.audit")
    text = running.client.get("/metrics", headers={"Authorization": "Bearer a"}).text
    assert f"armwise_refused_keys_total {3 * MAX_PER_MINUTE}" in text


def test_many_addresses_are_not_remembered_for_ever() -> None:
    refused = RefusedKeys()
    logging.getLogger("armwise.audit").disabled = True
    try:
        for k in range(5000):
            refused.note(f"10.0.{k >> 8}.{k & 255}", "v1/log")
    finally:
        logging.getLogger("armwise.audit").disabled = False
    assert len(refused._counts) <= 1001
    assert refused.total == 5000
