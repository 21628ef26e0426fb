"""What holds for decisions holds for lists: versions beside each other, shadows, retention, erasure of one subject."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from armwise.cli.main import main
from armwise.features.encoding.arms import read_arms
from armwise.service.engine.engine import Engine
from armwise.service.engine.requests.ranking import read_ranking
from armwise.service.engine.requests.slots import MARK, prepare_slots, slot_id
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.errors import Unknown
from armwise.service.journal.events import Decision
from armwise.service.journal.journal import Journal
from armwise.service.log.retain import Retention
from armwise.service.log.verify import verify
from tests.service.serving import Running

BOLD = {"class": "Explore", "epsilon": 0.6, "agent": {"class": "LinUCB", "alpha": 2.0}}
ARMS = ["a", "b", "c", "d"]


def ranked(client: Any, id: str, user: str = "u", k: int = 2) -> list[dict[str, Any]]:
    answer = client.post("/v1/rankings", json={"id": id, "context": {"user": {"name": user}}, "arms": ARMS, "k": k})
    assert answer.is_success, answer.text
    slots: list[dict[str, Any]] = answer.json()["slots"]
    return slots


def clicked(client: Any, id: str, value: float = 1.0) -> None:
    assert client.post(f"/v1/rankings/{id}/rewards", json={"rewards": [value, 0.0]}).is_success


def slots_of(running: Running) -> list[Decision]:
    journal = cast(Engine, running.service.engine).open_journal()
    return [row.event for row in journal.events() if isinstance(row.event, Decision)]


def test_lists_are_drawn_from_all_versions_and_judge_them(run: Callable[..., Running]) -> None:
    running = run()
    client, engine = running.client, cast(Engine, running.service.engine)
    for k in range(10):
        ranked(client, f"e{k}")
        clicked(client, f"e{k}")
    engine.wait_learnt()
    assert client.post("/v1/versions", json={"name": "shadow", "agent": BOLD}).status_code == 201
    before = ranked(client, "one")
    [first, second] = slots_of(running)[-2:]
    assert all(0.0 < each.among["shadow"].p <= 1.0 and each.among["shadow"].share == 0.0 for each in (first, second))
    assert [each["probability"] for each in before] == [first.p[first.arm], second.p[second.arm]]
    assert client.patch("/v1/versions/shadow", json={"share": 0.5}).is_success
    ranked(client, "two")
    mixed = slots_of(running)[-2:]
    leader = next(name for name in mixed[0].among if name != "shadow")
    for each in mixed:  # the probability of a slot is that of the whole mixture
        found = each.among
        assert abs(each.p[each.arm] - 0.5 * (found["shadow"].p + found[leader].p)) < 1e-9
    for id in ("one", "two"):
        clicked(client, id)
    engine.wait_learnt()
    told = client.get("/v1/versions").json()["versions"]
    assert told[1]["name"] == "shadow" and told[1]["lessons"] == 24
    promoted = client.post("/v1/versions/shadow/promote").json()["versions"]
    assert promoted[0]["name"] == "shadow"
    assert ranked(client, "one") == before  # a retry is answered as before, whichever version leads
    assert client.post("/v1/rollback").is_success
    ranked(client, "three")
    engine.wait_learnt()
    assert verify(engine.open_journal()).problems == []


def test_the_lists_of_one_subject_are_erased(run: Callable[..., Running], tmp_path: Path) -> None:
    running = run()
    client, engine = running.client, running.service.engine
    for k in range(4):
        ranked(client, f"e{k}", user=f"user-{k % 2}")
        if k < 3:
            clicked(client, f"e{k}")
    engine.wait_learnt()
    answer = client.post("/v1/erasures", json={"key": "user.name", "value": "user-1"})
    # Two lists of two slots: e1 with two rewards, e3 still open, which was closed and goes with its two closings.
    assert (answer.status_code, answer.json()["deleted"]) == (200, 8)
    kept = {json.loads(line)["id"].partition("\x1f")[0] for line in client.get("/v1/log").text.splitlines()}
    assert kept == {"e0", "e2"}
    for id, status in (("e1", 404), ("e3", 404), ("e0", 200)):
        assert client.get(f"/v1/rankings/{id}").status_code == status
    assert client.post("/v1/rankings/e3/rewards", json={"rewards": [1.0, 0.0]}).status_code == 404
    running.stop()
    path = tmp_path / "data0" / "journal.db"
    assert main(["journal", "erase", "--storage", str(path), "--key", "user.name", "--value", '"user-0"']) == 0
    journal = Journal(SQLite(path).connect())
    assert verify(journal).problems == []
    journal.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    journal.connection.close()
    assert b"user-0" not in path.read_bytes()


def test_old_lists_go_whole_and_what_they_taught_stays(engines: Callable[..., Engine], clock: Any) -> None:
    engine = engines(window=60.0)

    def shown(id: str, *values: float) -> None:
        engine.writer.write(
            prepare_slots(engine, "shop", read_ranking(b"{}", read_arms([b'"a"', b'"b"', b'"c"']), 2, id))
        )
        for slot, value in enumerate(values):
            engine.writer.write([engine.prepare_reward("shop", id, value, slot=f"{MARK}{slot}")])

    def there(id: str) -> list[bool]:
        found = []
        for slot in range(2):
            with contextlib.suppress(Unknown):
                engine.find("shop", slot_id(id, slot))
                found.append(True)
        return found

    for k in range(6):
        shown(f"old{k}", 1.0, 0.0)
    shown("half", 1.0)  # its second slot closes 20 days later
    clock.now += 20 * 86400.0
    shown("young", 0.0, 1.0)
    engine.expire()
    engine.wait_learnt()
    lessons = engine.models["shop"].lessons
    assert lessons == 2 * 8
    assert Retention(engine, days=10.0).run() >= 2 * 2 * 6
    assert [there(f"old{k}") for k in range(6)] == [[]] * 6
    assert (there("half"), there("young")) == ([], [True, True])
    assert engine.models["shop"].lessons == lessons
    assert verify(engine.open_journal()).problems == []
