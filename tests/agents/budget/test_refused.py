"""A hard stop without a fallback: what the budget does not cover is refused, in memory, on disk and over HTTP."""

import threading

import numpy as np
import pytest

import armwise as aw


def test_no_path_overspends_and_the_rest_is_refused():
    """Costs at once, late and lost: a path ends with BudgetSpent, and never with more than the budget."""
    for seed in range(50):
        rng, paid = np.random.default_rng(seed), 0.0
        waiting: list[tuple[aw.Choice, float]] = []
        agent = aw.HardStop(aw.UCB1(3, seed=seed), 10.0, [0.3, 1.0, 2.0], None, seed=seed)
        for _ in range(400):
            try:
                choice = agent.choose()
            except aw.BudgetSpent:
                before = agent.spent.tolist()
                with pytest.raises(aw.BudgetSpent, match="does not cover another decision"):
                    agent.probabilities()
                assert agent.spent.tolist() == before
                if not waiting:
                    break
            else:
                cost = rng.random() * [0.3, 1.0, 2.0][choice.arm]
                paid += cost
                if rng.random() < 0.95:
                    waiting.append((choice, cost))
            while waiting and rng.random() < 0.5:
                done, cost = waiting.pop(rng.integers(len(waiting)))
                agent.learn(None, done, 0.5, cost)
        assert 5.0 < paid <= 10.0  # what was lost stays paid in full
    again = agent.clone(seed=1)
    assert again.fallback is None and again.choose().probability == pytest.approx(1.0 / 3.0)


def test_arms_that_are_not_covered_have_no_probability():
    agent = aw.HardStop(aw.Exp3(2, gamma=1.0, seed=1), 1.0, [0.4, 0.9], None, seed=1)
    assert agent.probabilities().tolist() == [0.5, 0.5]
    agent.learn(None, agent.choose(), 0.5, 0.3)
    assert agent.probabilities().tolist() == [1.0, 0.0]


def test_without_a_fallback_there_is_no_horizon():
    with pytest.raises(ValueError, match="horizon is 5, and without a fallback"):
        aw.HardStop(aw.UCB1(2), 1.0, 0.1, None, horizon=5)


AGENT = {"class": "HardStop", "agent": {"class": "SquareCB"}, "budget": 2.2, "max_cost": 0.5, "fallback": None}


def test_a_decider_says_so_and_goes_on_after_a_restart(tmp_path):
    with aw.Decider(tmp_path / "d", agent=AGENT, seed=1) as decider:
        made = [decider.decide({"x": i}, arms=["a", "b"]) for i in range(4)]
        with pytest.raises(aw.BudgetSpent, match="set aside"):
            decider.decide({"x": 9}, arms=["a", "b"])
        decider.reward(made[0].id, 1.0, cost=0.1)
        last = decider.decide({"x": 9}, arms=["a", "b", "c"])  # arms may come
    with aw.Decider(tmp_path / "d", agent=AGENT, seed=1) as decider:
        with pytest.raises(aw.BudgetSpent):
            decider.decide({}, arms=["a", "b"])
        decider.reward(last.id, 1.0, cost=0.0)
        assert decider.decide({}, arms=["b"]).arm == "b"


def test_over_http_it_is_402_for_all_clients_at_once(monkeypatch, tmp_path):
    """Six clients of one service decide at once: four decisions fit the budget, the rest are refused by name."""
    from armwise.service.engine.application import Application
    from armwise.service.server.app import Service
    from armwise.service.server.config import Config
    from tests.service.serving import Running

    running = Running(Service(Config(storage=str(tmp_path / "d"), applications={"app": Application(agent=AGENT)})))
    taken, refused, lock = [], [], threading.Lock()

    def client():
        with aw.Client(running.url) as one:
            for _ in range(3):
                try:
                    made = one.decide({}, arms=["a", "b"])
                    with lock:
                        taken.append(made.id)
                except aw.BudgetSpent as error:
                    with lock:
                        refused.append(str(error))

    try:
        threads = [threading.Thread(target=client) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        running.stop()
    assert len(taken) == 4 and len(refused) == 14
    assert "does not cover another decision" in refused[0]
