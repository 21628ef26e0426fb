"""The survey's filter: each verdict follows from the agent's own row, and every call that is proposed runs."""

import itertools

import numpy as np
import pytest

import armwise as aw
from armwise.theory.algorithm_table import agents
from armwise.theory.assumption_filter import verdicts

NAMES = ("adversarial", "horizon_known", "infinite_policies", "high_probability")


@pytest.mark.parametrize("values", list(itertools.product([True, False, None], repeat=4)))
def test_what_stays_is_what_the_rows_allow(values):
    said = dict(zip(NAMES, values))
    advice = verdicts(**said)
    for name, agent in agents().items():
        theory = agent.theory
        fits = (
            (theory.adversarial or not said["adversarial"])
            and (not theory.needs_horizon or said["horizon_known"] is not False)
            and (theory.infinite_policies or not said["infinite_policies"])
            and (theory.high_probability or not said["high_probability"])
        )
        verdict = advice[name]
        assert verdict.stays == fits
        assert verdict.reason.startswith("stays: " if fits else "goes: ")
        assert verdict.reason.endswith(".")
        assert "\n" not in verdict.reason
    assert len(list(advice)) == len(agents()) == len(advice.stay) + len(advice.go)


def test_linear_and_smooth_take_out_the_rooms_that_assume_them():
    rooms = {name: agent.__module__.split(".")[2] for name, agent in agents().items()}
    assert {v.agent for v in verdicts(linear=False).go} == {n for n, room in rooms.items() if room == "linear"}
    assert {v.agent for v in verdicts(smooth=False).go} == {n for n, room in rooms.items() if room == "kernel"}
    best = verdicts(linear=True, adversarial=False).stay
    assert [rooms[v.agent] for v in best[:3]] == ["linear"] * 3  # what uses the assumption comes first


@pytest.mark.parametrize("linear", [True, None])
@pytest.mark.parametrize("sizes", [{}, {"n_arms": 3, "dim": 4, "horizon": 500, "n_policies": 5, "delta": 0.1}])
def test_every_proposed_call_runs(linear, sizes):
    for verdict in verdicts(linear=linear, **sizes):
        agent = eval(verdict.call, {"aw": aw, "np": np})
        assert type(agent).__name__ == verdict.agent


def test_the_proposed_agents_choose_and_learn():
    rng, K, d, N = np.random.default_rng(1), 3, 4, 5
    views = {
        "nothing": None,
        "features": rng.random((K, d)),
        "shared": rng.random(d),
        "key": "anna",
        "advice": np.full((N, K), 1 / K),
    }
    for verdict in verdicts(n_arms=K, dim=d, n_policies=N, horizon=500):
        agent = eval(verdict.call, {"aw": aw, "np": np})
        context = views[agent.sees]
        if verdict.agent == "CGPUCB":
            context = np.c_[np.full(K, 0.5), rng.random((K, d - 1))]
        choice = agent.choose(context)
        agent.learn(context, choice, 1.0, 0.0 if agent.n_costs else None)  # the fallback of HardStop is free
        assert agent.t == 2


def test_bounds_in_the_user_s_sizes():
    assert verdicts(horizon=500, n_arms=4)["Exp3"].bound == aw.bounds.exp3(T=500, K=4)
    assert verdicts()["Doubling"].bound is None
    found = verdicts(n_arms=4, dim=6, horizon=500)["SquareCB"]  # one model for each arm: K d features
    assert found.bound == aw.bounds.squarecb(T=500, K=4, d=24, delta=0.05)


def test_the_table_takes_the_same_assumptions():
    table = aw.table(linear=True, adversarial=False, n_arms=4)
    assert [row.agent for row in table.rows] == [v.agent for v in table.verdicts.stay]
    assert table.verdicts.data() == verdicts(linear=True, adversarial=False, n_arms=4).data()
    assert "stays: " not in str(aw.table()) and "stays: " in str(table)
    assert aw.table("markdown", adversarial=True).count("\n") == len(aw.table(adversarial=True).rows) + 1


def test_it_prints_well_and_is_data():
    advice = verdicts(adversarial=True, infinite_policies=True, high_probability=True, horizon_known=False)
    assert "No agent fits" in str(advice) or advice.stay
    text = str(verdicts(linear=True))
    assert text.startswith("Assumed: linear=True.")
    assert "\n+ " in text
    assert repr(verdicts()) == str(verdicts())
    assert verdicts(linear=True).data()["verdicts"][0]["stays"] is True


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"linear": "yes"}, "linear must be True, False or None"),
        ({"n_arms": 0}, "n_arms must be"),
        ({"delta": 2}, "delta must be"),
    ],
)
def test_bad_input_is_refused(said, message):
    with pytest.raises(ValueError, match=message):
        verdicts(**said)
