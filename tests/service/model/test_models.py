"""Every agent of the package under the service: what it learns is a function of the journal, bit for bit."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import armwise
from armwise.features.encoding.arms import read_arms
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.engine.engine import Engine
from armwise.service.model.model import DrawRequest
from tests.service.serving import ARMS, ask, replayed, settled, state

Make = Callable[..., Engine]

NAMES = ["pasta", "salad", "soup"]
THREE: dict[str, Any] = {"n_arms": 3}
SMALL: dict[str, Any] = {"features": {"dim": 6}}
RBF = {"class": "kernels.RBF"}
STUMPS = [{"class": "Stump", "feature": i, "threshold": 0.0, "low": i % 3, "high": (i + 1) % 3} for i in range(4)]
LAPLACIAN = [[1, -1, 0], [-1, 2, -1], [0, -1, 1]]
SUBSPACE = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
TWO = [{"class": "LinUCB"}, {"class": "SquareCB"}]
ADVICE = [[1, 0, 0], [0, 0.5, 0.5]]
AGENTS: dict[str, dict[str, Any]] = {
    "Explore": {},
    "LinUCB": {"agent": {"class": "LinUCB"}},
    "LinUCB disjoint": {"agent": {"class": "LinUCB", **THREE}, "arms": NAMES[::-1]},
    "LinThompson": {"agent": {"class": "LinThompson", "draws": 5}},
    "LinThompson one draw": {"agent": {"class": "Explore", "epsilon": 0.1, "agent": {"class": "LinThompson"}}},
    "LogisticThompson": {"agent": {"class": "LogisticThompson"}},
    "LogisticThompson in batches": {
        "agent": {"class": "Explore", "epsilon": 0.1, "agent": {"class": "LogisticThompson", "batch_size": 4}}
    },
    "SupLinUCB": {"agent": {"class": "SupLinUCB", "horizon": 100}, **SMALL},
    "LinREL": {"agent": {"class": "LinREL", "horizon": 100}, **SMALL},
    "SupLinREL": {"agent": {"class": "SupLinREL", "horizon": 100}, **SMALL},
    "CoFineUCB": {"agent": {"class": "CoFineUCB", "subspace": SUBSPACE}, **SMALL},
    "HybridLinUCB": {"agent": {"class": "HybridLinUCB", "shared": 2, **THREE}, "arms": NAMES, **SMALL},
    "SpectralUCB": {"agent": {"class": "SpectralUCB", "laplacian": LAPLACIAN, "horizon": 100}},
    "UCB1": {"agent": {"class": "UCB1", **THREE}, "arms": NAMES},
    "Exp3": {"agent": {"class": "Exp3", **THREE}, "arms": NAMES},
    "BetaThompson": {"agent": {"class": "BetaThompson", **THREE}},
    "EpsilonGreedy": {"agent": {"class": "EpsilonGreedy", **THREE}},
    "PerContext": {"agent": {"class": "PerContext", "agent": {"class": "UCB1", **THREE}}},
    "PolicyArms": {
        "agent": {"class": "PolicyArms", "agent": {"class": "Exp3", "n_arms": 4}, "policies": STUMPS, **THREE},
        **SMALL,
    },
    "Doubling": {
        "agent": {"class": "Doubling", "make_agent": "SupLinUCB", "arguments": {"dim": 6}},
        "learn": "arrival",
        **SMALL,
    },
    "GPUCB": {"agent": {"class": "GPUCB", "kernel": RBF}, **SMALL},
    "GPUCB fitted": {"agent": {"class": "GPUCB", "kernel": RBF, "fit_at": [10, 20]}, **SMALL},
    "KernelUCB": {"agent": {"class": "KernelUCB", "kernel": RBF}, **SMALL},
    "SupKernelUCB": {"agent": {"class": "SupKernelUCB", "kernel": RBF, "horizon": 100}, **SMALL},
    "EpochGreedy": {"agent": {"class": "EpochGreedy", "oracle": {"class": "LinearOracle"}, **THREE}, **SMALL},
    "PolicyElimination": {
        "agent": {"class": "PolicyElimination", "policies": STUMPS, "contexts": [[0.5] * 6, [-0.5] * 6], **THREE},
        **SMALL,
    },
    "RandomizedUCB": {"agent": {"class": "RandomizedUCB", "policies": STUMPS, **THREE}, **SMALL},
    "ILoveToConBandits": {
        "agent": {"class": "ILoveToConBandits", "oracle": {"class": "FinitePolicies", "policies": STUMPS}, **THREE},
        **SMALL,
    },
    "OnlineCover": {"agent": {"class": "OnlineCover", "oracle": {"class": "LinearOracle"}, **THREE}, **SMALL},
    "SquareCB": {"agent": {"class": "Explore", "epsilon": 0.2, "agent": {"class": "SquareCB"}}},
    "RegCB": {"agent": {"class": "RegCB"}},
    "FastCB": {"agent": {"class": "FastCB"}},
    "Auto": {"agent": {"class": "Auto", "floor": 0.1}, **SMALL},
    "D3RB": {"agent": {"class": "D3RB", "agents": TWO}, **SMALL},
    "ED2RB": {"agent": {"class": "ED2RB", "agents": TWO}, **SMALL},
    "Corral": {"agent": {"class": "Corral", "agents": TWO, "horizon": 100}, **SMALL},
    "LagrangeCB": {
        "agent": {"class": "LagrangeCB", "oracle": {"class": "SquareCB"}, "horizon": 100, "budget": 9.0},
        **SMALL,
    },
    "LinCBwK": {"agent": {"class": "LinCBwK", "horizon": 100, "budget": 9.0}, **SMALL},
    "HardStop": {
        "agent": {"class": "HardStop", "agent": {"class": "SquareCB"}, "budget": 3.0, "max_cost": 0.2, "fallback": 0},
        **SMALL,
    },
    "Pacing": {"agent": {"class": "Pacing", "agent": {"class": "SquareCB"}, "rate": 0.05, "cheap": 0}, **SMALL},
    "Conservative": {
        "agent": {"class": "Conservative", "agent": {"class": "UCB1", **THREE}, "baseline": 1, "alpha": 0.1},
    },
    "Exp4": {"agent": {"class": "Exp4", "n_experts": 2, **THREE}},
    "Exp4P": {"agent": {"class": "Exp4P", "n_experts": 2, "horizon": 100, **THREE}},
    "Advised": {
        "agent": {"class": "Advised", "agent": {"class": "Exp4", "n_experts": 4, **THREE}, "experts": STUMPS},
        **SMALL,
    },
    "VE": {"agent": {"class": "VE", "policy_class": {"class": "policies.Stumps"}, "horizon": 100, **THREE}, **SMALL},
}
CANNOT = {
    "CGPUCB",  # wants the context in columns of its own, which hashed features do not have
    "Mapped",  # wants a map that is fitted to rows, which a description does not have
}


PUBLIC = {
    name: thing
    for name in armwise.__all__
    if inspect.isclass(thing := getattr(armwise, name))
    and issubclass(thing, armwise.Agent)
    and name not in {"Agent", "IndexAgent"} | CANNOT
}
# An agent without a line of its own is described by its class, with three arms if it must know their number.
for _name in sorted(PUBLIC.keys() - {name.partition(" ")[0] for name in AGENTS}):
    _needs = inspect.signature(PUBLIC[_name]).parameters
    AGENTS[_name] = {"agent": {"class": _name, **(THREE if "n_arms" in _needs else {})}, **SMALL}


def test_every_public_agent_is_here() -> None:
    assert {name.partition(" ")[0] for name in AGENTS} == set(PUBLIC)


def contexts(name: str, n: int) -> list[dict[str, Any]]:
    """Some for this agent: one that learns each by itself must meet them again."""
    rng = np.random.default_rng(1)
    if name == "PerContext":
        return [{"day": int(rng.integers(3))} for _ in range(n)]
    return [{"x": float(rng.normal()), "day": int(rng.integers(3)), "advice": ADVICE} for _ in range(n)]


@pytest.mark.parametrize("name", AGENTS)
def test_a_recovered_model_equals_a_replay_bit_for_bit(engines: Make, clock: Any, name: str) -> None:
    engine = engines(**AGENTS[name])
    counts = engine.models["shop"].agent.n_costs > 0
    rng = np.random.default_rng(1)
    for k, context in enumerate(contexts(name, 40)):
        ask(engine, f"e{k}", context)
        if k >= 5:
            cost = 0.0 if counts else None
            engine.reward("shop", f"e{k - 5}", float(rng.random()), cost=cost)
        if k == 20:
            engine.snapshot()
    clock.now += 601.0
    engine.expire()
    before = settled(engine)
    assert engine.learner.masters["shop"].lessons == 40
    assert engine.learner.masters["shop"].refused == (5 if counts else 0)  # a cost that never came cannot be counted
    assert state(replayed(engine)["shop"]) == before
    engine.stop()
    recovered = engines(**AGENTS[name])
    assert settled(recovered) == before
    assert state(recovered.models["shop"]) == before
    ask(recovered, "more", context)


@pytest.mark.parametrize("name", AGENTS)
def test_deciding_changes_nothing(engines: Make, name: str) -> None:
    engine = engines(**AGENTS[name])
    before = engine.export("shop")
    context = b'{"x": 1.0, "advice": [[1, 0, 0], [0, 0.5, 0.5]]}' if name != "PerContext" else b'{"day": 1}'
    for k in range(5):
        engine.models["shop"].decide([DrawRequest(context, read_arms(ARMS), k / 5.0)])
    assert engine.export("shop") == before


def test_an_arm_keeps_its_own_weights_whatever_place_it_is_offered_in(engines: Make) -> None:
    """A failure would mean that weights belong to places in the request, so that each mixes several arms."""
    engine = engines(**AGENTS["HybridLinUCB"], learn="arrival")
    raws = [f'"{name}"'.encode() for name in NAMES]
    rng = np.random.default_rng(1)
    for k in range(60):
        order = rng.permutation(3)
        made = engine.decide("shop", b"{}", [raws[i] for i in order], id=f"e{k}")
        engine.reward("shop", f"e{k}", float(made.arm == "soup"))
    engine.wait_learnt()
    model = engine.models["shop"]
    means, again = (model.estimate(b"{}", read_arms(arms))[0] for arms in (raws, raws[::-1]))
    assert means.argmax() == 2
    assert means[2] - means[:2].max() > 0.3
    np.testing.assert_array_equal(means, again[::-1])
    assert state(replayed(engine)["shop"]) == settled(engine)
    with pytest.raises(InvalidInput, match=r"HybridLinUCB needs all its arms in every request, got \['soup'\]"):
        engine.decide("shop", b"{}", raws[2:], id="fewer")
