"""One hard budget, several processes on one PostgreSQL: whoever decides knows of all decisions before."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import armwise as aw
from armwise.service.engine.application import Application
from armwise.service.engine.engine import Engine
from armwise.service.journal.errors import Conflict
from armwise.service.journal.events import Creation
from armwise.service.journal.journal import Journal
from armwise.service.log.verify import verify
from armwise.service.server.app import Service
from armwise.service.server.config import Config, open_store
from tests.service.database import Server
from tests.service.serving import Running

BUDGET, PAID = 5.5, 5  # five paid decisions fit
REFUSES = {"class": "HardStop", "agent": {"class": "UCB1", "n_arms": 1}, "budget": BUDGET, "max_cost": 1.0}
FREE = {"class": "HardStop", "agent": {"class": "Exp3", "n_arms": 2, "gamma": 1.0}, "budget": BUDGET, "max_cost": 1.0,
        "fallback": 0}  # fmt: skip
BY_FEATURES = {"class": "HardStop", "agent": {"class": "LagrangeCB", "oracle": {"class": "SquareCB"}, "horizon": 100,
                                              "budget": 50.0}, "budget": BUDGET, "max_cost": 1.0}  # fmt: skip


@contextlib.contextmanager
def two(server: Server, agent: dict[str, Any], arms: list[str]) -> Iterator[list[Engine]]:
    """Two engines on one database, as two processes have them: they share nothing else. Their journal is verified."""
    url = server.new_database()
    engines = [Engine(open_store(url), {"dollars": Creation(agent=agent, arms=arms)}) for _ in range(2)]
    try:
        for engine in engines:
            engine.start()
        assert [engine.leader for engine in engines] == [True, False]
        yield engines
    finally:
        for engine in engines:
            engine.stop()
    journal = Journal(open_store(url).connect())
    assert verify(journal).problems == []
    journal.connection.close()


def asked(engine: Engine, arms: list[bytes], **options: Any) -> str:
    """The arm that was drawn, or that it was refused."""
    try:
        return engine.decide("dollars", b'{"x": 1}', arms, **options).arm
    except aw.BudgetSpent:
        return "refused"


@pytest.mark.parametrize("first", [0, 1], ids=["the leader first", "the follower first"])
def test_what_one_has_set_aside_the_other_cannot_spend(server: Server, first: int) -> None:
    with two(server, REFUSES, ["ask"]) as engines:
        one, other = engines[first], engines[1 - first]
        said = [asked(one, [b'"ask"']) for _ in range(3)] + [asked(other, [b'"ask"']) for _ in range(4)]
        said += [asked(one, [b'"ask"'])]
        assert said.count("ask") == PAID and said[:PAID] == ["ask"] * PAID


@pytest.mark.parametrize(
    ("agent", "names", "arms"),
    [
        (REFUSES, ["ask"], [b'"ask"']),
        (FREE, ["free", "paid"], [b'"free"', b'"paid"']),
        (BY_FEATURES, [], [b'"paid"', b'{"id": "ask", "features": {"y": 2}}']),
    ],
    ids=["refused", "a free arm", "arms with features"],
)
def test_both_at_once_never_overspend(
    server: Server, agent: dict[str, Any], names: list[str], arms: list[bytes]
) -> None:
    """Four threads in each of two, before any cost is known; then costs come, and what they leave may be spent."""
    with two(server, agent, names) as engines:
        said: list[tuple[str, str]] = []

        def decide(engine: Engine, k: int) -> None:
            for i in range(8):
                said.append((f"{k}-{i}", asked(engine, arms, id=f"{k}-{i}")))

        threads = [threading.Thread(target=decide, args=(engines[k % 2], k)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        paid = [id for id, arm in said if arm in ("ask", "paid")]
        assert len(said) == 64 and len(paid) == PAID
        for id in paid:
            engines[0].reward("dollars", id, 1.0, cost=0.2)
        engines[0].wait_learnt()
        more = [asked(engines[k % 2], arms) for k in range(60)]
        assert sum(arm in ("ask", "paid") for arm in more) <= 4  # of the 4.5 that are left


def test_the_same_decision_asked_again_of_the_other_is_the_same_answer(server: Server) -> None:
    """It is no other decision, so it needs no budget, though none is left."""
    with two(server, REFUSES, ["ask"]) as engines:
        for k in range(PAID):
            assert asked(engines[0], [b'"ask"'], id=f"e{k}") == "ask"
        again = engines[1].decide("dollars", b'{"x": 1}', [b'"ask"'], id="e1")
        assert again.again and asked(engines[1], [b'"ask"'], id="e9") == "refused"


def test_two_services_refuse_with_402_what_both_together_cannot_pay(server: Server) -> None:
    url = server.new_database()
    services = [
        Running(Service(Config(storage=url, applications={"dollars": Application(agent=REFUSES, arms=["ask"])})))
        for _ in range(2)
    ]
    said: list[str] = []

    def client(address: str) -> None:
        with aw.Client(address) as one:
            for _ in range(4):
                try:
                    said.append(one.decide({}, arms=["ask"]).arm)
                except aw.BudgetSpent as error:
                    said.append(str(error))

    try:
        threads = [threading.Thread(target=client, args=(services[k % 2].url,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for service in services:
            service.stop()
    assert len(said) == 24 and said.count("ask") == PAID
    assert all("does not cover another decision" in each for each in said if each != "ask")


@pytest.mark.parametrize("named", [{"id": "e1"}, {"request": "r1"}], ids=["its id", "its idempotency key"])
def test_a_decision_that_was_made_is_answered_again_when_the_budget_is_known_to_be_spent(
    server: Server, named: dict[str, str]
) -> None:
    """A client that did not get its answer asks again: what was set aside for it is not refused to it."""
    with two(server, REFUSES, ["ask"]) as engines:
        first = engines[0].decide("dollars", b'{"x": 1}', [b'"ask"', b'"b"'], excluded=["b"], **named)
        for _ in range(PAID - 1):
            assert asked(engines[0], [b'"ask"']) == "ask"
        for engine in engines:
            assert asked(engine, [b'"ask"']) == asked(engine, [b'"ask"'], id="e9") == "refused"
            again = engine.decide("dollars", b'{"x":1}', [b'"ask"', b'"b"'], excluded=["b"], **named)
            assert again.again and (again.id, again.arm, again.seq) == (first.id, "ask", first.seq)
            with pytest.raises(Conflict):
                engine.decide("dollars", b'{"x": 2}', [b'"ask"', b'"b"'], excluded=["b"], **named)
        assert asked(engines[1], [b'"ask"'], request="r9") == "refused"


def test_slots_that_are_drawn_again_stay_one_request(server: Server) -> None:
    """What another process decided meanwhile changes what is drawn; never that each slot shows an action of its own."""
    url, path = server.new_database(), "/personalizer/v1.1-preview.3/multislot/rank"
    config = Config(storage=url, applications={"default": Application(agent={**BY_FEATURES, "budget": 1000.0})})
    services = [Running(Service(config)) for _ in range(2)]
    body = {"actions": [{"id": id, "features": []} for id in "abc"],
            "slots": [{"id": f"s{k}", "baselineAction": id} for k, id in enumerate("abc")]}  # fmt: skip
    try:
        for k in range(12):  # each has not heard of what the other has just made
            for n, service in enumerate(services):
                sent = {**body, "eventId": f"e{k}-{n}"}
                answer = service.client.post(path, json=sent)
                assert answer.status_code == 201, answer.text
                shown = [slot["rewardActionId"] for slot in answer.json()["slots"]]
                assert sorted(shown) == ["a", "b", "c"]
                assert [slot["id"] for slot in answer.json()["slots"]] == ["s0", "s1", "s2"]
                assert services[1 - n].client.post(path, json=sent).json() == answer.json()
    finally:
        for service in services:
            service.stop()
