"""Memory, a folder and HTTP: the same verbs, the same answers."""

import math
from pathlib import Path
from typing import Any

import pytest

import armwise as aw
from armwise.service.engine.application import Application
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.journal import Journal
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.serving import Running

ARMS: list[Any] = ["red", {"id": "blue", "price": 3}]
ROWS = [
    {"context": {"d": d}, "arms": ["a", "b"], "arm": arm, "probability": 0.5, "reward": float((d, arm) == ("x", "a"))}
    for d in ("x", "y") for arm in ("a", "b")
] * 20  # fmt: skip


def test_a_batch_is_decided_and_rewarded(shop: Any) -> None:
    made = shop.decide_many([{"context": {"hour": h}, "arms": ARMS} for h in range(12)])
    assert [d.probability for d in made] == [d.probabilities[d.arm] for d in made]
    assert {receipt.status for receipt in shop.reward_many((d, 1.0) for d in made)} == {"taken"}
    assert {receipt.status for receipt in shop.reward_many((d.id, 0.0) for d in made)} == {"repeated"}
    with pytest.raises(aw.UnknownDecision, match="no decision has the id 'no body'"):
        shop.reward_many([(made[0], 1.0), ("no body", 1.0)])
    assert shop.decide_many([]) == [] == shop.reward_many([])
    assert list(shop.log().rewards) == [1.0] * 12


def test_what_makes_no_sense_is_a_value_error_and_changes_nothing(shop: Any) -> None:
    shop.decide({"hour": 9}, ARMS, id="e1")
    for call, said in (
        (lambda: shop.decide({"hour": 9}, []), "arms must not be empty"),
        (lambda: shop.decide({"hour": 9}, ["a", "a"]), "two arms have the id 'a'"),
        (lambda: shop.decide({"hour": 10}, ARMS, id="e1"), "e1 was requested before with other content"),
        (lambda: shop.decide_many([{"arms": ["a"]}, {"arms": "a"}]), "arms must be a list"),
        (lambda: shop.reward("e1", float("nan")), "reward must be a number, got NaN"),
        (lambda: shop.reward("e1", 1e200), "1e.150"),
        (lambda: shop.reward("e1", -math.inf), "reward must be a number of at most 1e.150 in magnitude, got -inf"),
        (lambda: shop.reward("e1", 1.0, cost=math.nan), "cost must be finite numbers of at most 1e.150 in size"),
        (lambda: shop.reward("e1", 1.0, cost="much"), "cost must be a number, or a list with one number per resource"),
        (lambda: shop.reward("", 1.0), "the event id must have 1 to 256 characters, got 0"),
        (
            lambda: shop.decide_many([{"arms": ["a"], "id": "e2"}, {"arms": ["b"], "id": "e2"}]),
            "'e2' is asked for twice",
        ),
        (lambda: shop.warm_start([ROWS[0] | {"reward": math.nan}]), "log, row 0: reward must be finite, got nan"),
        (lambda: shop.warm_start([ROWS[0] | {"probability": 0.0}]), "log, row 0: probability must lie in"),
    ):
        with pytest.raises(ValueError, match=said):
            call()
    assert shop.reward("e1", 1.0).status == "taken"
    assert len(shop.log().rewards) == 1


def test_a_log_warms_it_up_and_explain_tells_why(shop: Any) -> None:
    assert shop.warm_start(ROWS) == 80
    assert len(shop.log().rewards) == 0
    made = shop.decide({"d": "x"}, ["a", "b"])
    assert made.probabilities["a"] > 0.9
    why = shop.explain(made)
    assert set(why.arms["a"]) == {"estimate", "width", "probability"}
    assert why.arms["a"]["estimate"] > why.arms["b"]["estimate"] + 0.3
    assert why.contributions["a"]["d"] > 0.1


def test_the_three_explain_alike(tmp_path: Path) -> None:
    # The same lessons in the same order: a difference would mean a second encoder or a second learner.
    running = Running(Service(Config(storage=str(tmp_path / "http"))))
    found = []
    with aw.Client(running.url) as client, aw.Decider(tmp_path / "folder") as folder, aw.Decider() as memory:
        for home in (client, folder, memory):
            home.warm_start(ROWS)
            made = aw.Decided("e1", "a", 0.5, {"a": 0.5, "b": 0.5}, b'{"d":"y"}', (b'"a"', b'"b"'))
            found.append(home.explain(made).to_dict())
    running.stop()
    assert found[0] == found[1] == found[2]


def test_a_log_of_one_home_warms_up_another(tmp_path: Path) -> None:
    old = aw.Decider(seed=1)
    for i in range(100):
        made = old.decide({"d": "x" if i % 2 else "y"}, ["a", {"id": "b", "price": 3}])
        old.reward(made, float((made.arm == "a") == (i % 2 == 1)))
    with aw.Decider(tmp_path / "d") as new:
        assert new.warm_start(old.log()) == 100
        assert new.decide({"d": "x"}, ["a", {"id": "b", "price": 3}]).probabilities["a"] > 0.9


def test_a_service_opens_a_deciders_folder_as_it_is_and_a_decider_a_services(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    with aw.Decider(folder, agent=aw.LinUCB(dim=1, alpha=0.3, lam=2.0), window=3600.0) as shop:
        made = shop.decide({"hour": 9}, ARMS)
    running = Running(Service(Config(storage=str(folder), adopt=True)))
    with aw.Client(running.url) as client:
        assert client.reward(made, 1.0).status == "taken"
        later = client.decide({"hour": 10}, ARMS)
    running.stop()
    with aw.Decider(folder) as shop:
        assert shop.reward(later, 1.0).status == "taken"
        assert (shop.agent.alpha, shop.agent.lam) == (0.3, 2.0)  # type: ignore[attr-defined]
        assert len(shop.log().rewards) == 2
    journal = Journal(SQLite(folder / "journal.db").connect())
    assert [row.kind for row in journal.events()] == ["create", "decision", "reward", "decision", "reward"]
    journal.connection.close()


def test_a_decider_opens_a_services_folder(tmp_path: Path) -> None:
    config = Config(storage=str(tmp_path / "d"), applications={"default": Application(window=77.0, rule="sum")})
    running = Running(Service(config))
    with aw.Client(running.url) as client:
        made = client.decide({"hour": 9}, ARMS)
    running.stop()
    with aw.Decider(tmp_path / "d") as shop:
        assert shop.reward(made, 0.5).status == "taken"
        settings = shop._backend.model().settings
        assert (settings.window, settings.rule) == (77.0, "sum")
