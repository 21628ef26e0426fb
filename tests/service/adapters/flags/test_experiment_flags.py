"""An experiment is a flag: sticky, counted once it was shown, its outcomes reported by tracking."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import armwise as aw
from armwise.service.engine.application import Application
from armwise.service.engine.engine import Engine
from armwise.service.experiments.hosted import HostedExperiment
from armwise.service.journal.errors import Conflict
from armwise.service.journal.journal import Journal
from armwise.service.log.verify import verify
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from armwise.service.web.keys import Key, digest
from tests.service.serving import Clock, Running

METRICS = [{"name": "buy", "window": 100.0}, {"name": "spent", "kind": "amount", "cap": 100, "window": 100.0}]
COLOUR: dict[str, Any] = {"arms": {"control": False, "blue": True}, "metrics": METRICS}
PAGE: dict[str, Any] = {"arms": ["control", "new"], "metrics": METRICS, "exposure": True}
BANNER = {"banner": Application(variants={"a": "x", "b": "y"}, window=100.0)}


@pytest.fixture
def service(tmp_path: Path, clock: Clock) -> Iterator[Running]:
    running = start(tmp_path, clock)
    put(running, "colour", COLOUR)
    put(running, "page", PAGE)
    yield running
    running.stop()


def start(folder: Path, clock: Clock, applications: dict[str, Application] = BANNER, **options: Any) -> Running:
    config = Config(storage=str(folder / "data"), applications=applications, **options)
    return Running(
        Service(config, Engine(config.stores()[0], config.creations(), clock=clock, publish_every=0.0, adopt=True))
    )


def put(service: Running, name: str, body: Any, **headers: str) -> None:
    found = service.client.put(f"/v1/experiments/{name}", content=json.dumps(body), headers=headers)
    assert found.status_code == 200, found.text


def evaluate(service: Running, key: str, unit: str, **attributes: Any) -> Any:
    path = f"/ofrep/v1/evaluate/flags/{key}" if key else "/ofrep/v1/evaluate/flags"
    found = service.client.post(path, content=json.dumps({"context": {"targetingKey": unit, **attributes}}))
    assert found.status_code == 200, found.text
    return found.json()


def track(service: Running, name: str, unit: str, request: str = "", **details: Any) -> Any:
    body = {"name": name, "context": {"targetingKey": unit}, "details": details}
    headers = {"idempotency-key": request} if request else {}
    return service.client.post("/ofrep/v1/track", content=json.dumps(body), headers=headers)


def units(service: Running, name: str) -> int:
    return sum(service.service.experiment(name).verdict().units.values())


@pytest.mark.parametrize(("name", "values"), [("colour", [False, True]), ("page", ["control", "new"])])
def test_an_evaluation_assigns_and_an_exposure_counts(service: Running, name: str, values: list[Any]) -> None:
    found = [evaluate(service, name, f"u{i}", device="phone") for i in range(40)]
    assert {each["reason"] for each in found} == {"SPLIT"} and {each["key"] for each in found} == {name}
    assert {each["value"] for each in found} == set(values)
    assert all(each["metadata"]["probability"] == 0.5 for each in found)
    assert all(each["metadata"]["assignment"] == "assigned" for each in found)
    assert evaluate(service, name, "u3", device="tv") == found[3], "a unit keeps its arm, whatever its context is"
    assert units(service, name) == 0
    for i in range(10):
        decision = found[i]["metadata"]["decision"]
        counted = {"counted": [{"key": name, "decision": decision, "late": False}]}
        for _ in range(2):
            assert track(service, "exposure", f"u{i}", flag=name, decision=decision).json() == counted
    assert units(service, name) == 10
    first = track(service, "buy", "u10", flag=name)  # an outcome is an exposure
    assert first.json()["counted"] and units(service, name) == 11


def test_all_flags_and_experiments_in_one_commit(service: Running) -> None:
    before = service.service.engine.writer.commits
    flags = evaluate(service, "", "one")["flags"]
    assert [flag["key"] for flag in flags] == ["banner", "colour", "page"]
    assert service.service.engine.writer.commits == before + 1
    assert evaluate(service, "", "one", plan="pro")["flags"] == flags
    assert service.service.engine.writer.commits == before + 1
    assert [evaluate(service, flag["key"], "one") for flag in flags] == flags
    assert units(service, "colour") == 0 and units(service, "page") == 0


def test_a_flag_and_the_native_api_give_the_same_arm(service: Running) -> None:
    client = aw.Client(service.url)
    test = aw.Experiment("colour", COLOUR["arms"], METRICS, storage=client)
    native = {f"n{i}": test.assign(f"n{i}") for i in range(20)}
    assert units(service, "colour") == 20
    for unit, arm in native.items():
        assert evaluate(service, "colour", unit)["variant"] == arm
    asked = {f"f{i}": evaluate(service, "colour", f"f{i}", device="phone")["variant"] for i in range(20)}
    assert units(service, "colour") == 20
    assert {unit: str(test.assign(unit)) for unit in asked} == asked
    assert units(service, "colour") == 40, "an assignment of the native API counts at once"
    test.close()
    client.close()


def test_an_arm_stays_over_a_restart(service: Running, tmp_path: Path, clock: Clock) -> None:
    before = {f"u{i}": [evaluate(service, name, f"u{i}") for name in ("colour", "page")] for i in range(20)}
    assert track(service, "exposure", "u0", flag="colour").json()["counted"]
    service.stop()
    again = start(tmp_path, clock)
    try:
        assert {
            unit: [evaluate(again, name, unit, plan="pro") for name in ("colour", "page")] for unit in before
        } == before
        assert units(again, "colour") == 1
        assert track(again, "exposure", "u1", flag="colour").json()["counted"] and units(again, "colour") == 2
        [engine] = again.service.engine.each
        journal = engine.open_journal()
        assert isinstance(journal, Journal) and verify(journal).problems == []
        journal.connection.close()
    finally:
        again.stop()


def test_outcomes_reach_the_metrics(service: Running, clock: Clock) -> None:
    for name in ("colour", "page"):
        for i in range(60):
            evaluate(service, name, f"u{i}")
            track(service, "exposure", f"u{i}", flag=name)
    evaluate(service, "colour", "later")
    for i in range(60):
        assert {each["key"] for each in track(service, "spent", f"u{i}", value=10.0 + i % 2).json()["counted"]} == {
            "colour",
            "page",
        }
    assert track(service, "spent", "later", value=10.0).json() == {"counted": []}, "it was not shown"
    assert track(service, "page view", "u0").json() == {"counted": []}, "no experiment has this metric"
    assert track(service, "click", "u1", flag="page", metric="buy").json()["counted"][0]["key"] == "page"
    for _ in range(2):
        assert track(service, "spent", "u2", request="order 7", flag="page", value=5.0).status_code == 200
    clock.now += 101.0
    assert track(service, "buy", "u3", flag="page").json()["counted"][0]["late"]
    clock.now += 5.0
    verdict = service.service.experiment("page").verdict()
    arms = {f"u{i}": evaluate(service, "page", f"u{i}")["variant"] for i in range(60)}
    for arm in ("control", "new"):
        mine = [i for i in range(60) if arms[f"u{i}"] == arm]
        assert verdict.result(arm, "buy").mean == pytest.approx((arms["u1"] == arm) / len(mine))
        spent = sum(10.0 + i % 2 for i in mine) + 5.0 * (arms["u2"] == arm)
        assert verdict.result(arm, "spent").mean == pytest.approx(spent / len(mine))


def test_who_takes_no_part_gets_the_experiments_answer(service: Running) -> None:
    put(service, "old", {"arms": ["control", "blue"], "holdout": 0.5, "forced": {"tester": "blue"}, "ramp": 0.5})
    found = {f"u{i}": evaluate(service, "old", f"u{i}") for i in range(60)}
    reasons = {each["metadata"]["assignment"]: each["reason"] for each in found.values()}
    assert reasons == {"assigned": "SPLIT", "holdout": "DEFAULT", "outside the ramp": "DEFAULT"}
    for unit, each in found.items():
        counted = each["metadata"]["assignment"] == "assigned"
        assert counted or (each["variant"] == "control" and "decision" not in each["metadata"])
        answer = track(service, "exposure", unit, flag="old")
        assert answer.status_code == 200 and bool(answer.json()["counted"]) == counted
    tester = evaluate(service, "old", "tester")
    assert (tester["variant"], tester["reason"]) == ("blue", "TARGETING_MATCH")
    assert track(service, "outcome", "tester", flag="old").json() == {"counted": []}
    service.service.experiment("old").change("eligible", lambda _: {"eligible": {"country": ["de"]}})
    assert evaluate(service, "old", "v0", country="fr")["variant"] == "control"


def test_a_flag_with_a_control_touches_no_unit_that_is_held_out(tmp_path: Path, clock: Clock) -> None:
    """The holdout is the experiments': who is in it gets the control, without a decision that would teach the flag."""
    flags = {
        "button": Application(variants={"off": False, "on": True}, control="off"),
        "old": Application(agent={"class": "UCB1", "n_arms": 2}, arms=["a", "b"], control="b"),
        "free": Application(variants={"off": False, "on": True}),
    }
    service = start(tmp_path, clock, flags)
    try:
        put(service, "page", PAGE | {"holdout": 0.5})
        free = 0
        for unit in (f"u{i}" for i in range(40)):
            each = {flag["key"]: flag for flag in evaluate(service, "", unit)["flags"]}
            held = each["page"]["metadata"]["assignment"] == "holdout"
            free += not held
            assert "decision" in each["free"]["metadata"]
            for key, control in (("button", "off"), ("old", "b")):
                if held:
                    assert (each[key]["variant"], each[key]["reason"]) == (control, "DEFAULT")
                    assert each[key]["metadata"] == {"probability": 1.0, "assignment": "holdout"}
                    assert evaluate(service, key, unit) == each[key]
                else:
                    assert each[key]["reason"] == "SPLIT"
                counted = track(service, "buy", unit, flag=key).json()["counted"]
                assert [one["key"] for one in counted] == ([] if held else [key])
        [engine] = service.service.engine.each
        kinds = [row.kind for row in Journal(engine.store.connect()).events() if row.app == "button"]
        assert kinds.count("decision") == free and 0 < free < 40
    finally:
        service.stop()


def test_a_stopped_experiment_answers_the_chosen_arm(service: Running) -> None:
    before = evaluate(service, "colour", "u1")
    track(service, "exposure", "u1", flag="colour")
    changed = service.client.patch("/v1/experiments/colour", content=b'{"stop": "blue"}')
    assert changed.status_code == 200
    for unit in ("u1", "new"):
        found = evaluate(service, "colour", unit)
        assert (found["value"], found["variant"], found["reason"]) == (True, "blue", "STATIC")
        assert found["metadata"] == {"probability": 1.0, "assignment": "stopped"}
    assert track(service, "exposure", "new", flag="colour").json() == {"counted": []}
    assert units(service, "colour") == 1
    service.client.patch("/v1/experiments/colour", content=b'{"mode": "split"}')
    assert evaluate(service, "colour", "u1") == before


def test_two_processes_and_contexts_at_once(service: Running, tmp_path: Path) -> None:
    """Another process, or the native API beside a flag, may assign a unit between the look and the commit."""
    [engine] = service.service.engine.each
    for name in ("colour", "page"):
        here, there = HostedExperiment(engine, name), HostedExperiment(engine, name)
        write = here.prepare("u1", b"{}", None)
        arm = there.assign([("u1", {"device": "tv"})], False)[0]
        assert not isinstance(write, str)
        with pytest.raises(Conflict):
            engine.writer.write([write])
        assert evaluate(service, name, "u1")["variant"] == arm


def test_flags_and_experiments_over_several_databases(urls: list[str]) -> None:
    """A unit's decisions have ids of their own, so that one evaluation writes into several databases."""
    flags = {f"flag{i}": Application(variants={"a": "x", "b": "y"}, window=60.0 + i) for i in range(4)}
    config = Config(storage=urls, applications=flags)
    running = Running(Service(config))
    try:
        put(running, "colour", COLOUR)
        put(running, "page", PAGE)
        for i in range(8):
            found = evaluate(running, "", f"u{i}")["flags"]
            assert len(found) == 6 and all("value" in flag for flag in found)
            assert evaluate(running, "", f"u{i}", plan="pro")["flags"] == found
            for flag in found:
                [counted] = track(running, "exposure", f"u{i}", flag=flag["key"]).json()["counted"]
                assert counted["decision"] == flag["metadata"]["decision"]
            assert len(track(running, "buy", f"u{i}").json()["counted"]) == 6
        seqs = [len(engine.reading.journal.after(0, 10_000)) for engine in running.service.engine.each]
        assert min(seqs) > 10
    finally:
        running.stop()


@pytest.mark.parametrize("mode", ["adaptive", "bandit"])
def test_shares_that_move_are_those_of_the_exposure(service: Running, mode: str) -> None:
    service.client.patch("/v1/experiments/page", content=json.dumps({"mode": mode}))
    for i in range(30):
        found = evaluate(service, "page", f"u{i}", device="phone")
        assert 0.0 < found["metadata"]["probability"] < 1.0
        assert track(service, "buy", f"u{i}", flag="page", value=float(i % 2)).json()["counted"]
    assert units(service, "page") == 30


BAD: list[tuple[str, dict[str, Any], int, str, str]] = [
    ("click", {"flag": "page"}, 400, "INVALID_CONTEXT", "metric must be one of ['buy', 'spent'], got"),
    ("buy", {"flag": "page", "value": 7}, 400, "INVALID_CONTEXT", "must lie in [0, 1], got"),
    ("buy", {"value": 7}, 400, "INVALID_CONTEXT", "must lie in [0, 1], got"),
    ("buy", {"flag": "page", "metric": 3}, 400, "INVALID_CONTEXT", "details.metric must be a text"),
    ("buy", {"flag": "page", "decision": "none"}, 404, "FLAG_NOT_FOUND", "another decision"),
    ("buy", {"flag": "page/spent"}, 404, "FLAG_NOT_FOUND", "is no flag"),
    ("exposure", {"flag": "page/assigned"}, 404, "FLAG_NOT_FOUND", "is no flag"),
]


@pytest.mark.parametrize(("name", "details", "status", "code", "said"), BAD)
def test_bad_events_of_experiments(
    service: Running, name: str, details: dict[str, Any], status: int, code: str, said: str
) -> None:
    evaluate(service, "page", "u1")
    found = track(service, name, "u1", **details)
    assert (found.status_code, found.json()["errorCode"]) == (status, code) and said in found.json()["errorDetails"]
    assert units(service, "page") == 0, "what is refused changes nothing"


def test_a_key_is_for_its_experiments(tmp_path: Path, clock: Clock) -> None:
    keys = [
        Key(name="all", sha256=digest("all"), roles=["admin", "decide", "reward"]),
        Key(name="one", sha256=digest("one"), roles=["decide"], applications=["banner"]),
    ]
    running = start(tmp_path, clock, keys=keys)
    try:
        for name, body in (("colour", COLOUR), ("page", PAGE)):
            put(running, name, body, **{"x-api-key": "all"})
        one, sent = {"x-api-key": "one"}, b'{"context": {"targetingKey": "u1"}}'
        post = running.client.post
        assert post("/ofrep/v1/evaluate/flags/colour", content=sent, headers=one).status_code == 403
        every = post("/ofrep/v1/evaluate/flags", content=sent, headers=one).json()["flags"]
        assert [flag["key"] for flag in every] == ["banner"]
        exposure = b'{"name": "exposure", "context": {"targetingKey": "u1"}, "details": {"flag": "banner"}}'
        assert post("/ofrep/v1/track", content=exposure, headers=one).status_code == 403
    finally:
        running.stop()


@pytest.mark.parametrize(
    ("arms", "said"),
    [
        ({"on": True, "off": 0}, "arms must have values of one type"),
        ({"on": True}, "two or more names"),
        ({"on": None, "off": None}, "arms.on must be a boolean"),
        ({}, "two or more names"),
    ],
)
def test_values_of_arms_are_checked(arms: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        aw.Experiment("colour", arms)
