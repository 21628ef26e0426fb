"""Decisions under way count: whoever decides beside others cannot spend what they may spend."""

import threading
from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.core.agent import Choice
from armwise.features.encoding.arms import read_arms
from armwise.service.engine.application import Application
from armwise.service.engine.engine import Engine
from armwise.service.engine.rollout import add_version, remove_version
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Creation
from armwise.service.model.build import build_model
from armwise.service.model.drawing.in_flight import InFlight
from armwise.service.model.versions import Challenger, draw_among
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.serving import Running

BUDGET, COST, PAID = 5.5, 1.0, 5  # five paid decisions fit
AGENT = {"class": "HardStop", "agent": {"class": "Exp3", "n_arms": 2, "gamma": 1.0}, "budget": BUDGET,
         "max_cost": COST, "fallback": 0}  # fmt: skip
PLAIN = AGENT["agent"]
ASKED = {"arms": ["free", "paid"]}
ARMS = [b'"free"', b'"paid"']


@pytest.fixture
def engine():
    made = Engine(SQLite.temporary(), {"shop": Creation(agent=AGENT)}, publish_every=0.01)
    made.start()
    yield made
    made.stop()


def test_concurrent_decisions_never_overspend(engine):
    """Eight threads decide before any cost is known: half of 80 draws would be paid, and the budget covers five."""
    answers, lock = [], threading.Lock()

    def decide(k):
        for i in range(10):
            answer = engine.decide("shop", b"{}", ARMS, id=f"{k}-{i}")
            with lock:
                answers.append(answer)

    threads = [threading.Thread(target=decide, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    paid = [answer.id for answer in answers if answer.arm == "paid"]
    assert len(answers) == 80 and len(paid) == PAID
    for id in paid:  # their true costs come: what was set aside and not spent may be spent
        engine.reward("shop", id, 1.0, cost=0.2)
    engine.wait_learnt()
    more = [engine.decide("shop", b"{}", ARMS).arm for _ in range(60)].count("paid")
    assert more == 4  # of the 4.5 that are left


def test_many_decisions_of_one_call_and_draws_that_come_to_nothing(engine):
    """Draws that are dropped (a later one of the call is refused, an id that was decided before) cost nothing."""
    for _ in range(30):
        write = engine.prepare("shop", b"{}", ARMS)
        del write
    first = [engine.decide("shop", b"{}", ARMS, id=f"e{i}").arm for i in range(3)]
    for _ in range(20):
        assert [engine.decide("shop", b"{}", ARMS, id=f"e{i}").arm for i in range(3)] == first
    engine.writer.run(lambda journal: None)  # the writer lets go of what it answered last
    writes = [engine.prepare("shop", b"{}", ARMS) for _ in range(60)]
    arms = [write.names[write.event.arm] for write in writes]
    assert arms.count("paid") + first.count("paid") == PAID
    engine.writer.write(writes)
    engine.wait_learnt()
    assert engine.model("shop").agent.set_aside.tolist() == [PAID * COST]
    assert all(engine.decide("shop", b"{}", ARMS).arm == "free" for _ in range(20))


def test_a_restart_keeps_what_is_under_way(tmp_path):
    with aw.Decider(tmp_path / "journal", agent=AGENT, seed=1) as shop:
        paid = [made.id for made in shop.decide_many([ASKED] * 40) if made.arm == "paid"]
        assert len(paid) == PAID
    with aw.Decider(tmp_path / "journal", agent=AGENT, seed=1) as again:
        assert all(made.arm == "free" for made in again.decide_many([ASKED] * 20))
        again.reward(paid[0], 1.0, cost=0.0)
        assert [made.arm for made in again.decide_many([ASKED] * 40)].count("paid") == 1


def test_no_interleaving_overspends():
    """Random interleavings of drawing, dropping, journaling, folding, publishing and costs, with stale copies.

    The model of a service in small: a master that folds what is journaled in order, copies of it that are published
    now and then, and draws from any copy that is still held. One path above the budget means that a decision was lost
    from the account in some order of events.
    """
    used = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        master = aw.HardStop(aw.Exp3(2, gamma=1.0), 4.0, 1.0, fallback=0, seed=seed)
        in_flight, copies = InFlight(), [(0, _copy(master))]
        journal: list[Any] = []
        drawn, unpaid = [], []
        folded, spent, open_cost = 0, 0.0, 0.0
        for _ in range(120):
            match rng.integers(6):
                case 0 | 1:  # draw from a copy, not always the newest
                    version, agent = copies[-1 - int(rng.integers(min(2, len(copies))))]
                    with in_flight.lock:
                        twin = in_flight.twin(agent, version)
                        drawn.append(in_flight.hold(None, twin.choose()))
                case 2 if drawn:  # the request is refused or dropped
                    del drawn[int(rng.integers(len(drawn)))]
                case 3 if drawn:  # it is durable, and answered: from now on it may cost
                    held = drawn.pop(int(rng.integers(len(drawn))))
                    journal.append(held.choice)
                    unpaid.append(held.choice)
                    held.journaled(len(journal))
                    del held
                case 4 if folded < len(journal):  # the learner folds and publishes, before or after ``journaled``
                    folded = int(rng.integers(folded, len(journal))) + 1
                    for choice in journal[copies[-1][0] : folded]:
                        if isinstance(choice, Choice):
                            master.record_choice(None, choice)
                        else:
                            master.learn(None, choice[0], 0.5, choice[1])
                    copies.append((folded, _copy(master)))
                case 5 if unpaid:  # a cost comes, in any order
                    choice = unpaid.pop(int(rng.integers(len(unpaid))))
                    cost = float(rng.random() * choice.arm)
                    spent += cost
                    journal.append((choice, cost))
            open_cost = sum(choice.arm for choice in unpaid)
            assert spent + open_cost <= 4.0, seed
        used.append(spent + open_cost)
    assert np.mean(used) > 2.0  # and it is no miser


def _copy(agent):
    from armwise.service.model.inside import copied

    return copied(agent)


def test_concurrent_requests_over_http_never_overspend(tmp_path):
    """Single requests and batches at once, from eight connections: five paid decisions fit, and five are made."""
    config = Config(storage=str(tmp_path / "d"), applications={"shop": Application(agent=AGENT, arms=["free", "paid"])})
    running = Running(Service(config))
    arms: list[str] = []

    def decide(k):
        with aw.Client(running.url, app="shop", timeout=30.0) as client:
            made = client.decide_many([ASKED] * 5) if k % 2 else [client.decide({}, ASKED["arms"]) for _ in range(5)]
            arms.extend(each.arm for each in made)

    threads = [threading.Thread(target=decide, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    running.stop()
    assert len(arms) == 40 and arms.count("paid") == PAID


@pytest.mark.parametrize(("first", "second"), [(AGENT, PLAIN), (PLAIN, AGENT), (AGENT, AGENT)])
def test_versions_count_the_arm_that_was_drawn_whoever_drew_it(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Before any of it is learnt: a budget of the version that leads, or of the one beside it, or of both.

    A failure would mean that a version spends again what another has spent a moment ago.
    """
    model = build_model(Creation(agent=first, arms=ASKED["arms"]))
    bold = build_model(Creation(agent=second, arms=ASKED["arms"]))
    model.name, bold.name, model.in_flight = "v1", "bold", InFlight()
    bold.in_flight = InFlight(model.in_flight)
    model.versions["bold"] = Challenger(bold)
    model.versions["bold"].share = 0.5
    kept: list[Any] = []

    def draws(u: float) -> str:
        choice, _, _ = draw_among(model, b"{}", read_arms(ARMS), u, None)
        kept.append(choice.held)
        return ASKED["arms"][choice.arm]

    budgets = [version.draws.counts for version in (model, bold)]
    assert [draws(0.4) for _ in range(PAID)] == ["paid"] * PAID  # by the one beside; alone the first would be free
    for seq, held in enumerate(kept, 1):
        held.journaled(seq)
    assert draws(0.4) == ("free" if budgets[1] else "paid")
    assert draws(0.9) == ("free" if budgets[0] else "paid")


def test_nothing_is_kept_of_versions_that_were_removed(engine):
    """Each left two copies of its agent behind: whoever tries another one every day ran out of memory."""
    for k in range(3):
        add_version(engine, "shop", f"try{k}", Creation(agent=AGENT), share=0.5)
        engine.decide("shop", b"{}", ARMS)
        remove_version(engine, "shop", f"try{k}")
    add_version(engine, "shop", "stays", Creation(agent=AGENT), share=0.5)
    engine.wait_learnt()
    assert set(engine.learner._in_flight["shop"]) == {"", "stays"}
