"""Arms of a decision are stored once by their hash, and large bodies compressed: what is read is what was sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np

from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Decision, Lessons
from armwise.service.journal.journal import Journal
from armwise.service.log.export_journal import pieces
from armwise.service.log.verify import verify
from tests.service.serving import Running, replayed, state

Make = Callable[..., Engine]


def catalogue(n: int = 1000, features: int = 20) -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    rows = rng.random((n, features)).round(4).tolist()
    return [{"id": f"arm{i}", "features": {f"f{j}": x for j, x in enumerate(row)}} for i, row in enumerate(rows)]


def texts(arms: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(arm).encode() for arm in arms]


def size(path: Path) -> int:
    connection = SQLite(path).connect()
    total = connection.execute("SELECT sum(length(body)) FROM events WHERE kind = 'decision'")[0][0]
    connection.close()
    return int(total)


def test_a_thousand_arms_cost_12_kb_a_decision(engines: Make, tmp_path: Path) -> None:
    """They cost 320 KB each. The probabilities, all different here as a Thompson sampler's are, are the most of it."""
    engine = engines(features={"dim": 32})
    arms = texts(catalogue())
    assert sum(map(len, arms)) > 300_000
    for k in range(3):
        engine.decide("shop", b'{"hour": %d}' % k, arms, id=f"e{k}")
    engine.wait_learnt()
    assert size(tmp_path / "journal.db") / 3 < 12_000
    rows = engine.open_journal().connection.execute("SELECT length(data) FROM catalogues")
    assert len(rows) == 1
    from armwise.service.journal.bodies import pack

    p = np.random.default_rng(1).dirichlet(np.ones(1000)).tolist()
    assert len(pack(msgspec.json.encode({"p": p}), bytes(16))) < 12_000


def test_what_is_read_is_what_was_sent(engines: Make, tmp_path: Path) -> None:
    engine = engines(features={"dim": 32})
    arms = texts(catalogue(40))
    engine.decide("shop", b'{"hour": 1}', arms, id="whole")
    engine.decide("shop", b'{"hour": 2}', arms, id="part", excluded=["arm3", "arm0"])
    engine.decide("shop", b'{"hour": 3}', texts(catalogue(2)), id="few")
    engine.reward("shop", "part", 1.0)
    engine.reward("shop", "whole", 0.5)
    for id in ("whole", "part"):
        shown, decision, _ = engine.find("shop", id)
        assert [arm for arm, _ in shown.probabilities] == [f"arm{i}" for i in range(40)]
        assert sorted(map(bytes, decision.arms)) == sorted(arms)
    assert dict(shown.probabilities)["arm3"] == 0.0
    assert [bytes(arm) for arm in decision.arms][-2:] == [arms[0], arms[3]]
    again = engine.decide("shop", b'{"hour": 2}', arms, id="part", excluded=["arm3", "arm0"])
    assert again.again
    engine.wait_learnt()
    assert state(engine.models["shop"]) == state(replayed(engine)["shop"])
    lines = b"".join(pieces(engine.open_journal(), "shop")).splitlines()
    assert [len(json.loads(line)["arms"]) for line in lines] == [40, 40, 2]
    assert json.loads(lines[0])["arms"] == catalogue(40)
    hashes = engine.open_journal().connection.execute("SELECT hash FROM catalogues")
    assert len(hashes) == 1  # whatever is excluded, the same arms were sent
    engine.stop()
    engine = engines(features={"dim": 32})
    assert engine.models["shop"].lessons == 2
    engine.stop()
    assert verify(Journal(SQLite(tmp_path / "journal.db").connect())).problems == []


def test_arms_that_are_altered_or_missing_are_named(engines: Make, tmp_path: Path) -> None:
    engine = engines(features={"dim": 32})
    arms = texts(catalogue(40))
    seq = engine.decide("shop", b"{}", arms, id="e1").seq
    engine.stop()
    connection = SQLite(tmp_path / "journal.db").connect()
    connection.execute("UPDATE catalogues SET data = ?", (b"x",))
    found = verify(Journal(connection)).problems
    assert any("were altered" in problem for problem in found)
    assert any(f"event {seq} (decision)" in problem and "missing" in problem for problem in found)
    connection.execute("DELETE FROM catalogues")
    assert any(f"event {seq} (decision)" in problem for problem in verify(Journal(connection)).problems)
    connection.close()


def test_large_lessons_are_compressed(engines: Make, tmp_path: Path) -> None:
    engine = engines(features={"dim": 32})
    asked = engine.prepare("shop", b"{}", texts(catalogue(40))).event
    assert isinstance(asked, Decision)
    asked.write_arms()
    engine.teach("shop", Lessons([asked] * 20, [0.5] * 20))
    assert engine.models["shop"].lessons == 20
    [[length]] = engine.open_journal().connection.execute("SELECT length(body) FROM events WHERE kind = 'teach'")
    assert length < 20 * sum(map(len, texts(catalogue(40)))) / 4
    assert state(engine.models["shop"]) == state(replayed(engine)["shop"])


def test_a_request_may_name_its_catalogue(run: Callable[..., Running]) -> None:
    client = run().client
    arms = catalogue(60)
    stored = client.post("/v1/catalogues", json={"arms": arms})
    assert (stored.status_code, stored.json()["arms"]) == (201, 60)
    name = stored.json()["catalogue"]
    named = client.post("/v1/decisions", json={"id": "e1", "context": {"x": 1}, "catalogue": name})
    assert named.status_code == 201
    whole = client.post("/v1/decisions", json={"id": "e1", "context": {"x": 1}, "arms": arms})
    assert (whole.status_code, whole.json()) == (200, named.json())  # the same request in other words
    assert json.loads(client.get("/v1/log").text)["arms"] == arms
    without = client.post("/v1/decisions", json={"catalogue": name, "excluded": ["arm7"]}).json()
    assert {"arm": "arm7", "probability": 0.0} in without["probabilities"]
    together = client.post("/v1/batch/decisions", json={"decisions": [{"catalogue": name}, {"arms": ["a", "b"]}]})
    assert [len(each["probabilities"]) for each in together.json()["decisions"]] == [60, 2]

    def refused(answer: httpx.Response) -> tuple[int, str]:
        return answer.status_code, answer.json()["error"]["message"]

    assert refused(client.post("/v1/decisions", json={"catalogue": "00" * 16}))[0] == 404
    assert refused(client.post("/v1/decisions", json={"catalogue": "menu"}))[0] == 400
    both = refused(client.post("/v1/decisions", json={"catalogue": name, "arms": ["a"]}))
    assert (both[0], "both" in both[1]) == (400, True)
    neither = refused(client.post("/v1/decisions", json={"context": {}}))
    assert (neither[0], "missing required field `arms`" in neither[1]) == (400, True)
    assert refused(client.post("/v1/catalogues", json={"arms": [{"id": "a"}, "a"]}))[0] == 400


def test_a_list_may_name_its_catalogue(run: Callable[..., Running]) -> None:
    """The same list as by its arms, journaled with the hash; at_most reads the stored arms' features."""
    client = run().client
    arms = catalogue(60)
    name = client.post("/v1/catalogues", json={"arms": arms}).json()["catalogue"]
    asked: dict[str, Any] = {"context": {"x": 1}, "k": 3, "pinned": {"1": "arm7"}}
    named = client.post("/v1/rankings", json=asked | {"id": "e1", "catalogue": name})
    assert named.status_code == 201 and named.json()["slots"][1] == {"arm": "arm7", "probability": 1.0}
    whole = client.post("/v1/rankings", json=asked | {"id": "e1", "arms": arms})
    assert (whole.status_code, whole.json()) == (200, named.json())  # the same request in other words
    logged = [json.loads(line)["arms"] for line in client.get("/v1/log").text.splitlines()]
    assert [sorted(each, key=lambda arm: int(arm["id"][3:])) for each in logged] == [arms] * 3
    [feature] = list(arms[0]["features"])[:1]
    few = client.post("/v1/rankings", json={"catalogue": name, "k": 2, "at_most": {feature: 1}})
    assert few.status_code == 201, few.text
    shown = [next(arm for arm in arms if arm["id"] == each["arm"]) for each in few.json()["slots"]]
    assert len({arm["features"][feature] for arm in shown}) == 2

    def refused(body: Any) -> tuple[int, str]:
        answer = client.post("/v1/rankings", json=body)
        return answer.status_code, answer.json()["error"]["message"]

    assert refused({"catalogue": "00" * 16})[0] == 404
    assert refused({"catalogue": name, "k": 50, "at_most": {"none": 1}})[0] == 400
    assert "both" in refused({"catalogue": name, "arms": ["a"]})[1]
    assert "missing required field `arms`" in refused({"k": 2})[1]
    twice = b'{"catalogue": "%b", "k": 1, "k": 2}' % name.encode()
    assert client.post("/v1/rankings", content=twice).status_code == 400
