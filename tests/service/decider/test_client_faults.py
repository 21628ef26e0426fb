"""A client whose requests fail: chaos on purpose, and a fallback where the service cannot be reached in time."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import armwise as aw
from armwise.service.decider.client import ServiceError

ALL = {"timeout": 0.2, "duplicate": 0.2, "delay": 0.2, "unavailable": 0.2, "seconds": 0.002, "seed": 7}


def test_whatever_goes_wrong_each_decision_and_each_reward_counts_once(run: Callable[..., Any]) -> None:
    """Under every fault at once a client that retries sees every decision made once and every reward taken once."""
    running = run()
    with aw.Client(running.url, chaos=ALL, retries=30) as client:
        made = [client.decide({"x": k}, ["a", "b"]) for k in range(40)]
        made += client.decide_many([{"context": {"x": k}, "arms": ["a", "b"]} for k in range(10)])
        for decision in made[:30]:
            assert client.reward(decision, 1.0).status == "taken"
        receipts = client.reward_many((decision, 0.5) for decision in made[30:])
        assert [receipt.status for receipt in receipts] == ["taken"] * 20
    found = [running.client.get(f"/v1/decisions/{decision.id}").json() for decision in made]
    assert [each["arm"] for each in found] == [decision.arm for decision in made]
    assert [each["rewards"] for each in found] == [1] * 50
    assert running.service.engine.counts.decisions.total() == 50, "no decision was made that nobody was told of"


def test_chaos_fails_as_often_as_it_is_told_and_is_repeatable(run: Callable[..., Any]) -> None:
    running = run()

    def failures(chaos: dict[str, float]) -> list[int]:
        with aw.Client(running.url, chaos=chaos, retries=0) as client:
            found = []
            for _ in range(60):
                try:
                    client.decide({}, ["a", "b"])
                    found.append(200)
                except ServiceError as error:
                    found.append(error.status)
        return found

    first = failures({"unavailable": 0.3, "timeout": 0.3, "seed": 3})
    assert first == failures({"unavailable": 0.3, "timeout": 0.3, "seed": 3})
    # 60 draws: about 18 are refused and 13 more time out; a wrong probability would be off by more than these bounds.
    assert 8 <= first.count(503) <= 30 and 4 <= first.count(0) <= 24
    before = running.service.engine.counts.decisions.total()
    assert failures({"timeout": 1.0}) == [0] * 60
    assert running.service.engine.counts.decisions.total() == before + 60, "a time-out comes after the commit"


@pytest.mark.parametrize(
    "chaos",
    [
        {"timeouts": 0.1}, {"timeout": 1.5}, {"delay": -0.1}, {"unavailable": math.nan},
        0.1, {"timeout": "often"}, {"duplicate": True}, {"seconds": -1.0}, {"seconds": math.inf}, {"seed": None},
    ],
)  # fmt: skip
def test_chaos_that_makes_no_sense_is_refused(chaos: Any) -> None:
    with pytest.raises(ValueError, match="chaos: "):
        aw.Client("http://127.0.0.1:1", chaos=chaos)


@pytest.mark.parametrize(
    ("fallback", "arm"),
    [("b", "b"), (["z", "c", "a"], "c"), (lambda context, arms: arms[context["place"]], "b")],
)
def test_a_fallback_is_an_arm_an_order_or_a_function(fallback: Any, arm: str) -> None:
    with aw.Client("http://127.0.0.1:1", fallback=fallback, deadline=0.2) as client:
        decision = client.decide({"place": 1}, ["a", "b", "c"])
        assert (decision.arm, decision.fallback, decision.probabilities) == (arm, True, {})
        assert math.isnan(decision.probability), "it has none that could be mistaken for the model's"
        assert "fallback=True" in repr(decision)
        assert client.reward(decision, 1.0).status == "fallback"
        assert client.reward(decision.id, 1.0).status == "fallback", "also by its id"


@pytest.mark.parametrize(
    ("fallback", "arms"),
    [("c", ["c", "b", "a"]), (["d", "c"], ["d", "b", "c"]), (lambda context, names: names[-1], ["d", "b", "c"])],
)
def test_a_list_falls_back_to_what_is_wanted_then_to_the_order_it_came_in(fallback: Any, arms: list[str]) -> None:
    offered: list[Any] = ["a", {"id": "b", "of": 1}, "c", {"id": "d", "of": 1}]
    with aw.Client("http://127.0.0.1:1", fallback=fallback, deadline=0.2) as client:
        ranked = client.rank({"hour": 9}, offered, k=3, pinned={1: "b"})
        assert ranked.arms == arms and all(slot.fallback for slot in ranked.slots)
        assert ranked.probability != ranked.probability, "it is no list of the model"
        assert [each.status for each in client.reward(ranked, {arms[0]: 1, arms[1]: 0})] == ["fallback"] * 2
        assert [each.status for each in client.reward(ranked.id, [1, None, 0])] == ["fallback"] * 2
        alone = client.rank({}, offered, k=3, at_most={"of": 1}).arms
        assert len(set(alone)) == 3 and not {"b", "d"} <= set(alone)
    with aw.Client("http://127.0.0.1:1", fallback="z", deadline=0.2) as client, pytest.raises(ServiceError):
        client.rank({}, offered, k=2)


def test_a_fallback_that_is_not_offered_is_an_error() -> None:
    with aw.Client("http://127.0.0.1:1", fallback="z", deadline=0.2) as client, pytest.raises(ServiceError):
        client.decide({}, ["a", "b"])
    client = aw.Client("http://127.0.0.1:1", fallback=lambda *_: "z", deadline=0.2)
    with client, pytest.raises(ValueError, match="fallback must answer one of"):
        client.decide({}, ["a", "b"])
    with pytest.raises(ValueError, match="deadline"):
        aw.Client("http://127.0.0.1:1", deadline=0.2)


def test_a_service_that_hangs_is_given_up_after_the_deadline() -> None:
    """It takes connections and never answers, as a frozen process does."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        with aw.Client(f"http://127.0.0.1:{silent.getsockname()[1]}", fallback="a", deadline=0.3) as client:
            began = time.monotonic()
            decisions = client.decide_many([{"arms": ["a", "b"]} for _ in range(5)])
            assert time.monotonic() - began < 2.0, "time-outs, retries and pauses together take no longer"
            assert [decision.fallback for decision in decisions] == [True] * 5


def test_a_fallback_is_never_counted_as_a_decision_of_the_model(run: Callable[..., Any]) -> None:
    """Some are answered by the service, some here, and one batch of rewards has both."""
    running = run()
    with aw.Client(running.url, fallback="a", deadline=1.0, chaos={"unavailable": 0.5, "seed": 5}, retries=0) as client:
        made = [client.decide({}, ["a", "b"]) for _ in range(40)]
        mine = [decision for decision in made if decision.fallback]
        assert 8 <= len(mine) <= 32, "half of 40, within what chance allows"
        for _ in range(20):
            try:
                receipts = client.reward_many((decision, 1.0) for decision in made)
                break
            except ServiceError:
                continue
    statuses = {decision.id: receipt.status for decision, receipt in zip(made, receipts)}
    assert all((statuses[decision.id] == "fallback") == decision.fallback for decision in made)
    assert running.service.engine.counts.decisions.total() == 40 - len(mine)
    assert running.client.get(f"/v1/decisions/{mine[0].id}").status_code == 404


def test_what_the_service_refuses_is_no_reason_to_fall_back(run: Callable[..., Any]) -> None:
    with aw.Client(run().url, fallback="a") as client:
        assert not client.decide({}, ["a", "b"], id="e1").fallback
        with pytest.raises(ValueError, match="other content"):
            client.decide({"x": 1}, ["a", "b"], id="e1")


def test_threads_share_a_client_under_chaos(run: Callable[..., Any]) -> None:
    running = run()
    with aw.Client(running.url, chaos=ALL, retries=30) as client:
        taken: list[str] = []

        def work() -> None:
            for _ in range(10):
                taken.append(client.reward(client.decide({}, ["a", "b"]), 1.0).status)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert taken == ["taken"] * 40
