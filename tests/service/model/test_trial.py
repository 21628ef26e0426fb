"""What would break an application is refused before it is journaled; what a journal has anyway breaks no other one."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import operator
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armwise.core import saving
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.engine.application import Application
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.errors import Unavailable, Unknown
from armwise.service.journal.events import Creation, Import
from armwise.service.log.verify import verify
from armwise.service.model import trial
from armwise.service.model.build import build_model
from armwise.service.model.model import Model
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.model.test_models import AGENTS, contexts
from tests.service.serving import ARMS, Running, ask, replayed, settled, state

Make = Callable[..., Engine]
SMALL: dict[str, Any] = {
    "agent": {"class": "Explore", "epsilon": 0.1, "agent": {"class": "LinUCB"}},
    "features": {"dim": 8},
}


def taught(engine: Engine, name: str = "", n: int = 12) -> bytes:
    """The model after some rounds."""
    rng = np.random.default_rng(3)
    cost = 0.0 if engine.models["shop"].agent.n_costs else None
    for k, context in enumerate(contexts(name, n)):
        id = engine.new_id()
        ask(engine, id, context if k % 4 else {**context, "day": 1})
        engine.reward("shop", id, float(rng.random()), cost=cost)
    engine.wait_learnt()
    return engine.export("shop")


# ---------------------------------------------------------------------- before it is journaled


def test_an_agent_that_cannot_be_served_is_refused(engines: Make, tmp_path: Path) -> None:
    linear = {"class": "kernels.Linear"}
    strange = {"class": "CGPUCB", "context_kernel": linear, "arm_kernel": linear, "context_dim": 5}
    with pytest.raises(InvalidInput, match="CGPUCB cannot be served: X must have the same context"):
        engines(tmp_path / "new.db", agent=strange, features={"dim": 6})
    engine = engines(**SMALL)
    last = engine.open_journal().last()
    with pytest.raises(InvalidInput, match="CGPUCB cannot be served"):
        engine.reset("shop", Creation(agent=strange, features={"dim": 6}))
    assert engine.open_journal().last() == last
    ask(engine, "e1")


def test_probabilities_that_are_none_are_not_journaled(engines: Make) -> None:
    engine = engines(**SMALL)
    last = engine.open_journal().last()
    engine.models["shop"].agent.epsilon = float("nan")  # type: ignore[attr-defined]
    with pytest.raises(ArithmeticError, match="nan"):
        ask(engine, "e1")
    assert engine.open_journal().last() == last


OTHERS: dict[str, dict[str, Any]] = {
    "agent is Exp3": {"agent": {"class": "Exp3", "n_arms": 3}, "arms": ["pasta", "salad", "soup"]},
    "agent is LinUCB": {"agent": {"class": "LinUCB"}},
    "agent.agent is LinThompson": {"agent": {"class": "Explore", "epsilon": 0.1, "agent": {"class": "LinThompson"}}},
    "agent.agent.alpha is 2.0": {
        "agent": {"class": "Explore", "epsilon": 0.1, "agent": {"class": "LinUCB", "alpha": 2.0}}
    },
    "agent.agent.dim is 16": {"features": {"dim": 16}},
    "encoder.interactions is False": {"features": {"dim": 8, "interactions": False}},
    "rewards is": {"rewards": [-1.0, 1.0]},
}


@pytest.mark.parametrize("why", OTHERS)
def test_a_model_of_another_application_is_refused(engines: Make, why: str) -> None:
    engine = engines(**SMALL)
    before, last = engine.export("shop"), engine.open_journal().last()
    with pytest.raises(InvalidInput, match=f"the model's {why}"):
        engine.replace("shop", saving.dumps(build_model(Application(**SMALL | OTHERS[why]).creation())))
    assert (engine.export("shop"), engine.open_journal().last()) == (before, last)
    explored = copy.deepcopy(SMALL)
    explored["agent"]["epsilon"] = 0.5  # a setting, which may differ
    engine.replace("shop", saving.dumps(build_model(Application(**explored).creation())))
    assert engine.models["shop"].agent.epsilon == 0.5  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", AGENTS)
def test_models_travel_between_new_and_experienced_applications(engines: Make, tmp_path: Path, name: str) -> None:
    """A refusal here would mean that what an agent comes to learn is taken for damage."""
    made = AGENTS[name] | {"learn": "arrival"}
    old, new = engines(**made), engines(tmp_path / "new.db", **made)
    fresh, experienced = new.export("shop"), taught(old, name, 40)
    new.replace("shop", experienced)
    assert settled(new) != fresh
    assert new.models["shop"].lessons == 40
    ask(new, "e1", contexts(name, 1)[0])
    old.replace("shop", fresh)
    assert old.models["shop"].lessons == 0
    assert state(replayed(new)["shop"]) == settled(new)


def test_a_model_whose_contexts_came_again_travels_whole(engines: Make, tmp_path: Path) -> None:
    """A refusal would mean that only what new contexts teach is known; damage must be refused none the less."""
    made = AGENTS["Auto"] | {"learn": "arrival"}
    old, new = engines(**made), engines(tmp_path / "new.db", **made)
    for k in range(12):
        ask(old, f"e{k}", {"day": "monday"})
        old.reward("shop", f"e{k}", float(k % 3 == 0))
    old.wait_learnt()
    model = saving.loads(old.export("shop"))
    assert model.agent._process._means.shape[1] == 3
    fresh = new.export("shop")
    new.replace("shop", saving.dumps(model))
    assert new.models["shop"].lessons == 12
    new.replace("shop", fresh)
    model.agent._process._covariances = model.agent._process._covariances[:, :, 1:].copy()
    with pytest.raises(InvalidInput, match=r"_process\._covariances is an array"):
        new.replace("shop", saving.dumps(model))


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values in a JSON document, branches and leaves."""
    if path:
        yield path
    for key in tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        yield from places(tree[key], (*path, key))


@functools.lru_cache(maxsize=1)
def header_of(model: bytes) -> Any:
    return json.loads(model[20 : 20 + struct.unpack("<Q", model[12:20])[0]])


def edited(model: bytes, path: tuple[Any, ...], value: Any) -> bytes:
    """An export with one value of its header replaced, and the digest made right."""
    header = header_of(model)
    spot = functools.reduce(operator.getitem, path[:-1], header)
    before, spot[path[-1]] = spot[path[-1]], value
    text = json.dumps(header).encode()
    spot[path[-1]] = before  # the header is kept for the next edit
    end = 20 + struct.unpack("<Q", model[12:20])[0]
    body = model[:12] + struct.pack("<Q", len(text)) + text + model[end:-32]
    return body + hashlib.sha256(body).digest()


@pytest.mark.parametrize("name", ["Explore", "GPUCB", "EpochGreedy"])
def test_an_edited_model_is_refused_or_works(engines: Make, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value of the header replaced in turn; what is accepted must decide, learn and survive a restart."""
    models: dict[bytes, list[Model]] = {}  # those to compare with, made once as long as the application stays the same

    def kept(current: Model, make: Callable[[Model], list[Model]] = trial._others) -> list[Model]:
        now = saving.dumps(current)
        if now not in models:
            models.clear()
            models[now] = make(current)
        return models[now]

    monkeypatch.setattr(trial, "_others", kept)
    application = SMALL if name == "Explore" else AGENTS[name]
    engine = engines(**application)
    model = taught(engine)
    accepted, refused = 0, 0
    for path in list(places(header_of(model))):
        for value in (None, -1, 2.5, "x"):
            try:
                engine.replace("shop", edited(model, path, value))
            except InvalidInput:
                refused += 1
                continue
            accepted += 1
            id = engine.new_id()
            ask(engine, id, {"x": 0.3, "day": 2})
            engine.reward("shop", id, 0.5)
            after = settled(engine)
            assert engine.models["shop"].refused == saving.loads(edited(model, path, value)).refused, path
            engine.stop()
            engine = engines(**application)
            assert settled(engine) == after, path
    assert refused > 100
    assert accepted > 0  # counts and settings may be anything


# ---------------------------------------------------------------------- what a journal has all the same


def broken_model(part: str) -> Import:
    """An import, as versions before accepted it, of a model that lacks a part."""
    inside = () if part == "scaler" else ("params", "agent", "params", "agent")
    model = saving.dumps(build_model(Application(**SMALL).creation()))
    return Import.of(edited(model, ("object", *inside, "state", part), None))


def two(path: Path, seed: int = 1) -> Engine:
    made = SMALL | {"learn": "arrival"}
    creations = {"shop": Application(**made, seed=seed).creation(), "news": Application(**made).creation()}
    engine = Engine(SQLite(path / "journal.db"), creations, publish_every=0.0)
    engine.start()
    return engine


@pytest.mark.parametrize("part", ["scaler", "_model"])
def test_one_application_that_cannot_be_served_leaves_the_others(tmp_path: Path, part: str) -> None:
    engine = two(tmp_path)
    ask(engine, "before")
    engine.reward("shop", "before", 1.0)
    prepared = [engine.prepare("shop", b'{"x": 1}', ARMS, id="e"), engine.prepare_reward("shop", "e", 1.0)]
    engine.journal_change("shop", broken_model(part))
    for write in prepared:
        engine.writer.write([write])
    for round in range(3):  # as it happens, and after two restarts: with a snapshot of the others and without any
        engine.decide("news", b'{"x": 1}', ARMS, id=f"e{round}")
        engine.reward("news", f"e{round}", 1.0)
        engine.wait_learnt()
        assert engine.models["news"].lessons == round + 1
        with pytest.raises(Unavailable, match="'shop' cannot be served"):
            ask(engine, f"e{round}")
        expected = state(engine.models["news"])
        engine.stop()
        if round == 1:
            SQLite(tmp_path / "journal.db").connect().execute("DELETE FROM snapshots")
        engine = two(tmp_path)
        assert state(engine.models["news"]) == expected
    assert "shop" not in engine.models
    engine.stop()
    engine = two(tmp_path, seed=2)  # configured otherwise, it begins anew
    ask(engine, "after")
    assert sorted(engine.models) == ["news", "shop"]
    engine.stop()
    engine = two(tmp_path, seed=2)
    ask(engine, "after a restart")
    engine.stop()


def test_events_that_cannot_be_folded_are_reported(tmp_path: Path) -> None:
    engine = two(tmp_path)
    engine.journal_change("shop", broken_model("scaler"))
    engine.writer.write([engine.prepare("news", b"{}", ARMS, id="e1")])
    engine.journal_change("shop", Import("AAAA"))
    engine.stop()
    problems = verify(engine.open_journal()).problems
    assert len(problems) == 1
    assert "the model of shop cannot be replayed" in problems[0]


def test_an_application_without_its_snapshot_is_folded_anew(tmp_path: Path) -> None:
    engine = two(tmp_path)
    taught(engine)
    expected = settled(engine)
    engine.stop()
    connection = SQLite(tmp_path / "journal.db").connect()
    connection.execute("DELETE FROM snapshots WHERE app = 'shop'")
    connection.close()
    engine = two(tmp_path)
    assert settled(engine) == expected
    engine.stop()


def test_over_http_the_others_answer(tmp_path: Path) -> None:
    applications = {"shop": Application(**SMALL), "news": Application(**SMALL)}
    config = Config(storage=str(tmp_path), applications=applications)
    running = Running(Service(config))
    engine: Any = running.service.engine
    engine.journal_change("shop", broken_model("_model"))
    running.stop()
    running = Running(Service(config))
    body = {"arms": ["a", "b"]}
    assert running.client.post("/apps/news/v1/decisions", json=body).status_code == 201
    for path in ("/v1/decisions", "/apps/shop/v1/decisions"):
        answer = running.client.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "Unavailable")
    assert running.client.get("/readyz").status_code == 200
    assert [each["name"] for each in running.client.get("/v1/agents").json()["agents"]] == ["news"]
    assert 'application="news"' in running.client.get("/metrics").text
    running.stop()


# ---------------------------------------------------------------------- applications that are no longer configured


def test_an_application_that_is_no_longer_configured_waits_for_its_return(tmp_path: Path) -> None:
    both = {"kept": Application(**SMALL), "gone": Application(**SMALL, window=0.2)}
    config = Config(storage=str(tmp_path), applications=both)
    running = Running(Service(config))
    ids = [running.client.post("/apps/gone/v1/decisions", json={"arms": ["a", "b"]}).json()["id"] for _ in range(3)]
    assert running.client.post(f"/apps/gone/v1/decisions/{ids[0]}/reward", json={"value": 1}).status_code == 200
    running.stop()
    running = Running(Service(Config(storage=str(tmp_path), applications={"kept": Application(**SMALL)})))
    client = running.client
    engine: Any = running.service.engine
    assert [each["name"] for each in client.get("/v1/agents").json()["agents"]] == ["kept"]
    assert "gone" not in client.get("/metrics").text
    assert client.post("/apps/kept/v1/decisions", json={"arms": ["a"]}).status_code == 201
    base = "/apps/gone/personalizer/v1.0"
    answers = [
        client.post("/apps/gone/v1/decisions", json={"arms": ["a"]}),
        client.get("/apps/gone/v1/agents"),
        client.get(f"{base}/configurations/policy"),
        client.put(f"{base}/configurations/policy", json={"name": "n", "arguments": '{"class": "LinUCB"}'}),
        client.delete(f"{base}/configurations/policy"),
        client.delete(f"{base}/model"),
        client.post(f"{base}/evaluations", json={}),
    ]
    assert [answer.status_code for answer in answers] == [404] * len(answers)
    with pytest.raises(Unknown, match="no application is called 'gone'"):
        engine.model("gone")
    while engine.learner.masters["gone"].lessons < 3:  # its windows close all the same
        engine.wait_learnt()
    running.stop()
    running = Running(Service(config))
    engine = running.service.engine
    assert engine.models["gone"].lessons == 3
    assert state(replayed(engine)["gone"]) == state(engine.models["gone"])
    assert running.client.post("/apps/gone/v1/decisions", json={"arms": ["a"]}).status_code == 201
    running.stop()
