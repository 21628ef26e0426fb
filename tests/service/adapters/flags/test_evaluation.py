"""Evaluation and tracking as the protocol has them, on the wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from armwise.service.engine.application import Application
from armwise.service.engine.engine import Engine
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from armwise.service.web.keys import Key, digest
from tests.service.serving import Clock, Running

ONE = {"context": {"targetingKey": "one", "plan": "pro"}}
MANY = {f"flag{i}": Application(variants={"a": "x", "b": "y"}, window=60.0) for i in range(50)}


@pytest.fixture
def start(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def make(applications: dict[str, Application], **options: Any) -> Running:
        config = Config(storage=str(tmp_path / "data"), applications=applications, **options)
        engine = Engine(config.stores()[0], config.creations(), clock=clock, publish_every=0.0)
        running.append(Running(Service(config, engine)))
        return running[-1]

    yield make
    for one in running:
        one.stop()


def post(service: Running, path: str, body: Any, **headers: str) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body)
    return service.client.post(f"/ofrep/v1/{path}", content=content, headers=headers)


def status(service: Running, key: str, decision: str) -> Any:
    return service.service.engine.find(key, decision)[2]


def test_all_flags_in_one_commit_and_not_modified_after_that(start: Callable[..., Running]) -> None:
    service = start(MANY)
    before = service.service.engine.writer.commits
    first = post(service, "evaluate/flags", ONE)
    assert first.status_code == 200 and [flag["key"] for flag in first.json()["flags"]] == sorted(MANY)
    assert service.service.engine.writer.commits == before + 1
    again = post(service, "evaluate/flags", ONE, **{"if-none-match": first.headers["etag"]})
    assert again.status_code == 304 and again.content == b"" and again.headers["etag"] == first.headers["etag"]
    other = post(service, "evaluate/flags", {"context": {"targetingKey": "two"}})
    assert other.headers["etag"] != first.headers["etag"]
    assert post(service, "evaluate/flags", ONE, **{"if-none-match": "*"}).status_code == 304


def test_a_unit_keeps_its_variant_for_a_window_and_over_a_restart(start: Callable[..., Running], clock: Clock) -> None:
    service = start(MANY)
    first = post(service, "evaluate/flags/flag0", ONE).json()
    service.stop()
    service = start(MANY)
    elsewhere = {"context": {"targetingKey": "one", "plan": "free"}}  # another context: no new decision
    assert (
        post(service, "evaluate/flags/flag0", elsewhere).json()["metadata"]["decision"] == first["metadata"]["decision"]
    )
    every = post(service, "evaluate/flags", elsewhere).json()["flags"]
    assert every[0] == first and len(every) == 50
    clock.now += 61.0
    later = post(service, "evaluate/flags/flag0", ONE).json()
    assert later["metadata"]["decision"] != first["metadata"]["decision"]


def test_a_decision_counts_once_it_was_shown(start: Callable[..., Running], clock: Clock) -> None:
    service = start({"flag0": MANY["flag0"], "flag1": MANY["flag1"]})
    made = {flag["key"]: flag["metadata"]["decision"] for flag in post(service, "evaluate/flags", ONE).json()["flags"]}
    assert not status(service, "flag0", made["flag0"]).active
    nothing = post(service, "track", {"name": "purchase", **ONE})  # of no flag, and nothing was shown
    assert nothing.status_code == 200 and nothing.json() == {"counted": []}
    shown = post(service, "track", {"name": "exposure", **ONE, "details": {"flag": "flag0"}})
    assert shown.json() == {"counted": [{"key": "flag0", "decision": made["flag0"], "late": False}]}
    assert status(service, "flag0", made["flag0"]).active and not status(service, "flag1", made["flag1"]).active
    told = post(service, "track", {"name": "purchase", **ONE, "details": {"value": 0.5, "items": 3}})
    assert [each["key"] for each in told.json()["counted"]] == ["flag0"]
    assert status(service, "flag0", made["flag0"]).value == 0.5
    first = post(
        service, "track", {"name": "purchase", **ONE, "details": {"flag": "flag1"}}
    )  # an outcome is an exposure
    assert first.status_code == 200 and status(service, "flag1", made["flag1"]).value == 1.0
    clock.now += 61.0
    late = post(service, "track", {"name": "purchase", **ONE, "details": {"flag": "flag1", "value": 9.0}})
    assert late.json()["counted"][0]["late"]
    named = {"name": "purchase", "details": {"flag": "flag0", "decision": made["flag0"]}}
    assert post(service, "track", {**named, **ONE}).json()["counted"][0]["decision"] == made["flag0"]
    others = post(service, "track", {**named, "context": {"targetingKey": "two"}})  # a decision is its unit's
    assert others.status_code == 404 and "no decision of this flag with this id" in others.json()["errorDetails"]
    never = {"name": "purchase", "context": {"targetingKey": "never"}, "details": {"flag": "flag1"}}
    assert post(service, "track", never).status_code == 404


def test_what_was_never_shown_teaches_nothing(start: Callable[..., Running], clock: Clock) -> None:
    service = start({"flag0": MANY["flag0"]})
    for i in range(30):
        post(service, "evaluate/flags", {"context": {"targetingKey": f"user {i}"}})
    clock.now += 130.0
    engine = service.service.engine
    engine.expire()
    engine.wait_learnt()
    assert engine.model("flag0").lessons == 0


BAD: list[tuple[str, Any, int, str]] = [
    ("evaluate/flags/flag0", b"{", 400, "PARSE_ERROR"),
    ("evaluate/flags/flag0", b"\xff", 400, "PARSE_ERROR"),
    ("evaluate/flags/flag0", [], 400, "INVALID_CONTEXT"),
    ("evaluate/flags/flag0", {}, 400, "INVALID_CONTEXT"),
    ("evaluate/flags/flag0", {"context": None}, 400, "INVALID_CONTEXT"),
    ("evaluate/flags/flag0", {"context": {"plan": "pro"}}, 400, "TARGETING_KEY_MISSING"),
    ("evaluate/flags/flag0", {"context": {"targetingKey": ""}}, 400, "TARGETING_KEY_MISSING"),
    ("evaluate/flags/flag0", {"context": {"targetingKey": 7}}, 400, "INVALID_CONTEXT"),
    ("evaluate/flags/flag0", {"context": {"targetingKey": "u" * 5000}}, 400, "INVALID_CONTEXT"),
    ("evaluate/flags/flag0", {"context": {"targetingKey": "u", "x": 1e200}}, 400, "INVALID_CONTEXT"),
    ("evaluate/flags/flag0", b'{"context":{"targetingKey":"u","a":1,"a":2}}', 400, "INVALID_CONTEXT"),
    ("evaluate/flags/flag0", b'{"context":{"targetingKey":"u","targetingKey":"v"}}', 400, "INVALID_CONTEXT"),
    ("evaluate/flags", {"context": {}}, 400, "TARGETING_KEY_MISSING"),
    ("evaluate/flags/none", ONE, 404, "FLAG_NOT_FOUND"),
    ("evaluate/flags/plain", ONE, 404, "FLAG_NOT_FOUND"),
    ("track", {"name": "exposure", **ONE}, 400, "INVALID_CONTEXT"),
    ("track", {"name": "click", **ONE, "details": {"flag": 3}}, 400, "INVALID_CONTEXT"),
    ("track", {"name": "click", **ONE, "details": {"flag": "flag0", "value": "much"}}, 400, "INVALID_CONTEXT"),
    ("track", {"name": "click", **ONE, "details": {"flag": "flag0", "decision": "none"}}, 404, "FLAG_NOT_FOUND"),
    ("track", {"name": "click"}, 400, "INVALID_CONTEXT"),
    ("track", {"name": "", **ONE, "details": {"flag": "flag0"}}, 400, "INVALID_CONTEXT"),
    ("track", {"name": "n" * 300, **ONE, "details": {"flag": "flag0"}}, 400, "INVALID_CONTEXT"),
    ("elsewhere", {}, 404, "GENERAL"),
]


def test_bad_requests_get_the_protocols_errors(start: Callable[..., Running]) -> None:
    service = start({"flag0": MANY["flag0"], "plain": Application()})
    for path, body, code, named in BAD:
        answer = post(service, path, body)
        found = answer.json()
        assert (answer.status_code, found["errorCode"]) == (code, named), (path, body)
        assert isinstance(found["errorDetails"], str) and set(found) <= {"key", "errorCode", "errorDetails"}
        if path.startswith("evaluate/flags/"):
            assert found["key"] == path.rpartition("/")[2]


def test_keys_and_roles_are_those_of_the_native_api(start: Callable[..., Running]) -> None:
    keys = [
        Key(name="one", sha256=digest("one"), roles=["decide"], applications=["flag1"]),
        Key(name="judge", sha256=digest("judge"), roles=["reward"]),
    ]
    service = start({"flag0": MANY["flag0"], "flag1": MANY["flag1"]}, keys=keys)
    one, judge = {"authorization": "Bearer one"}, {"x-api-key": "judge"}
    assert post(service, "evaluate/flags/flag1", ONE).status_code == 401
    assert post(service, "evaluate/flags/flag1", ONE, **one).status_code == 200
    assert post(service, "evaluate/flags/flag0", ONE, **one).status_code == 403
    assert [flag["key"] for flag in post(service, "evaluate/flags", ONE, **one).json()["flags"]] == ["flag1"]
    assert post(service, "evaluate/flags/flag1", ONE, **judge).status_code == 403
    exposure = {"name": "exposure", **ONE, "details": {"flag": "flag1"}}
    assert post(service, "track", exposure, **one).status_code == 403
    assert post(service, "track", exposure, **judge).status_code == 200


@pytest.mark.parametrize(
    ("variants", "said"),
    [
        ({"on": True, "off": 0}, "one type"),
        ({"on": None}, "a boolean, a string"),
        ({"x\n": True}, "control characters"),
    ],
)
def test_variants_are_checked(variants: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Application(variants=variants).check()


def test_a_control_is_one_of_the_arms() -> None:
    for flag in (Application(variants={"on": True, "off": False}, control="of"), Application(control="off")):
        with pytest.raises(ValueError, match="control must be one of the arms"):
            flag.check()
