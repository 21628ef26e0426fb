"""One request may be large, but neither endless nor in the way of others."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from armwise.features.encoding.arms import read_arms
from armwise.features.encoding.tokens import part
from armwise.service.engine.application import Application
from armwise.service.journal.events import MIN_MAX_PAIRS
from armwise.service.web import admission

OLD = "/personalizer/v1.1-preview.3"


def many(n: int) -> dict[str, Any]:
    return {"k": [True] * n}


def decision(arms: int, n: int) -> dict[str, Any]:
    return {"context": many(n), "arms": [{"id": str(i), "features": many(n)} for i in range(arms)]}


def rank(arms: int, n: int) -> dict[str, Any]:
    return {"contextFeatures": [many(n)], "actions": [{"id": str(i), "features": [many(n)]} for i in range(arms)]}


def slots(arms: int, n: int) -> dict[str, Any]:
    return rank(arms, n) | {"slots": [{"id": str(i), "baselineAction": str(i)} for i in range(arms)]}


FACES = {
    "decide": ("/v1/decisions", decision, 47, 4090),
    "rank": (f"{OLD}/rank", rank, 47, 4090),
    "slots": (f"{OLD}/multislot/rank", slots, 10, 1000),
}


@pytest.mark.parametrize("face", FACES)
def test_a_megabyte_of_features_is_refused_and_keeps_nobody_waiting(run: Callable[..., Any], face: str) -> None:
    """Crossed, these would be 100 to 800 million pairs: 0.5 to 4 seconds in which nothing else is answered."""
    path, make, arms, n = FACES[face]
    running, answers = run(), []
    sender = threading.Thread(
        target=lambda: answers.append(httpx.post(running.url + path, json=make(arms, n), timeout=60.0, verify=False))
    )
    sender.start()
    waits = []
    while sender.is_alive():
        started = time.monotonic()
        assert running.client.get("/healthz").status_code == 200
        waits.append(time.monotonic() - started)
    assert answers[0].status_code == 400
    assert "pairs, at most 10000000 are accepted" in answers[0].json()["error"]["message"]
    assert max(waits) < 1.5  # seconds; about 0.1 where the processors have nothing else to do


def watched(running: Any) -> list[str]:
    """The names of the threads in which decisions are prepared from now on."""
    where: list[str] = []
    prepare = running.service.engine.prepare

    def spied(*args: Any, **options: Any) -> Any:
        where.append(threading.current_thread().name)
        return prepare(*args, **options)

    running.service.engine.prepare = spied
    return where


@pytest.mark.parametrize("face", FACES)
def test_what_may_be_large_is_answered_in_a_thread(run: Callable[..., Any], face: str) -> None:
    path, make, *_ = FACES[face]
    running = run(applications={"shop": Application(max_pairs=MIN_MAX_PAIRS)})
    body = make(5, 150)  # 5 arms, for slots 5 times
    assert running.client.post(path, json=body).status_code == 201
    where = watched(running)
    body = make(5, 200 if face == "slots" else 250)
    assert json.dumps(body).count(",") < 2000  # read in the loop, which then finds 300,000 pairs or more
    assert running.client.post(path, json=body).status_code == 201
    assert all(name.startswith("armwise-heavy") for name in where)
    refused = running.client.post(path, json=make(5, 700))
    assert (refused.status_code, str(MIN_MAX_PAIRS) in refused.text) == (400, True)
    where.clear()
    small = make(2, 5)
    assert running.client.post(path, json=small).status_code == 201
    assert not any(name.startswith("armwise-heavy") for name in where)


@pytest.mark.parametrize(
    ("path", "body", "alone"),
    [
        ("/v1/decisions", {"arms": ["a"], "context": {"k": [1] * 4000}}, False),
        ("/v1/decisions", {"arms": [{"id": str(i), "features": {"k": [1] * 1200}} for i in range(5)]}, True),
        ("/v1/decisions", {"arms": [str(i) for i in range(50)], "context": {"a": "x" * 4000, "b": "y" * 4000}}, False),
        (f"{OLD}/multislot/rank", slots(50, 0), True),
        (f"{OLD}/multislot/rank", slots(5, 0), False),
    ],
)  # fmt: skip
def test_what_takes_long_only_to_read_is_read_in_a_thread(
    run: Callable[..., Any], path: str, body: Any, alone: bool
) -> None:
    running = run()
    where = watched(running)
    text = json.dumps(body, separators=(",", ":")).encode()
    assert running.client.post(path, content=text).status_code == 201
    assert {name.startswith("armwise-heavy") for name in where} == {alone}


def test_rows_for_too_many_arms_are_not_even_made(run: Callable[..., Any]) -> None:
    """A megabyte of ids would be a quarter of a gigabyte of features."""
    client = run().client
    assert client.post("/v1/decisions", json={"arms": [str(i) for i in range(2000)]}).status_code == 201
    refused = client.post("/v1/decisions", json={"arms": [str(i) for i in range(90_000)]})
    assert refused.status_code == 400
    assert "90000 arms, each a row of 128, make 11520000 numbers" in refused.json()["error"]["message"]


def test_two_of_very_many_arms_alike_are_found_soon(run: Callable[..., Any]) -> None:
    started = time.monotonic()
    ids = [f"{i:x}" for i in range(100_000)]
    refused = run().client.post("/v1/decisions", json={"arms": [*ids, ids[-1]]})
    assert (refused.status_code, "two arms have the id '1869f'" in refused.text) == (400, True)
    assert time.monotonic() - started < 15.0  # looking back from each arm takes minutes


def test_no_tiny_body_can_ask_for_more_than_the_least_bound() -> None:
    """So those are not even counted."""
    ones = [1] * 1004
    text = json.dumps({"context": {"k": ones}, "arms": [{"id": "a", "features": {"k": ones}}]}, separators=(",", ":"))
    assert admission._MAX_UNCOUNTED_BYTES - 50 < len(text) <= admission._MAX_UNCOUNTED_BYTES
    arm = json.dumps({"id": "a", "features": {"k": ones}}).encode()
    worst = admission.pairs([part(json.dumps({"k": ones}).encode(), "c")], read_arms([arm]).tail)
    assert MIN_MAX_PAIRS * 0.9 < worst <= MIN_MAX_PAIRS


def test_agents_without_features_cross_nothing(run: Callable[..., Any]) -> None:
    app = Application(agent={"class": "UCB1", "n_arms": 47}, arms=[str(i) for i in range(47)])
    assert run(applications={"shop": app}).client.post("/v1/decisions", json=decision(47, 4000)).status_code == 201


def test_bounds_below_what_is_always_accepted_are_refused() -> None:
    with pytest.raises(ValueError, match="max_pairs must be at least 1048576"):
        Application(max_pairs=5)
