"""The survey as a race: every agent on a world that fits its assumptions, with its bound beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

import noregret as nr
from noregret import environments as worlds
from noregret.racing.run import Heat

_DELTA = 0.05
LONGEST = 20_000  # rounds of the longest heat at scale 1


def survey_heats(scale: float = 1.0) -> list[Heat]:
    """One heat for each kind of world in the survey; ``scale`` lengthens or shortens all horizons.

    >>> heats = survey_heats(scale=0.01)
    >>> [heat.label for heat in heats][:2]
    ['Adversarial rewards', 'An adversary that reacts']
    """
    makers = (_adversarial, _adaptive, _tabular, _linear, _hierarchical, _logistic, _graph, _experts)
    heats = []
    for make in makers:
        try:
            heats.append(make(scale))
        except ModuleNotFoundError:
            continue
    return heats


def _rounds(n: int, scale: float) -> int:
    return max(50, round(n * scale))


def _adversarial(scale: float) -> Heat:
    world, T = worlds.Switching(n_arms=5), _rounds(10_000, scale)
    agents = {
        "Exp3": nr.Exp3.tuned(5, T),
        "Doubling Exp3": nr.Doubling("Exp3.tuned", {"n_arms": 5}),
        "UCB1": nr.UCB1(5),
        "EpsilonGreedy": nr.EpsilonGreedy(5, epsilon=0.1),
        "BetaThompson": nr.BetaThompson(5),
    }
    return Heat(world, agents, T, "Adversarial rewards")


def _adaptive(scale: float) -> Heat:
    world, T = worlds.Adaptive(n_arms=4), _rounds(2_000, scale)
    return Heat(world, {"Exp3": nr.Exp3.tuned(4, T), "UCB1": nr.UCB1(4)}, T, "An adversary that reacts")


def _tabular(scale: float) -> Heat:
    world, T = worlds.Tabular(n_contexts=10, n_arms=5), _rounds(20_000, scale)
    tuned = nr.Exp3.tuned(5, T // world.n_contexts)
    agents = {
        "PerContext Exp3": nr.PerContext(tuned),
        "PerContext UCB1": nr.PerContext(nr.UCB1(5)),
        "PerContext BetaThompson": nr.PerContext(nr.BetaThompson(5)),
        "Exp3, no context": nr.Exp3.tuned(5, T),
    }
    return Heat(world, agents, T, "Ten contexts")


def _linear(scale: float) -> Heat:
    world, T = worlds.Linear(n_arms=5, dim=5, noise=0.1), _rounds(10_000, scale)
    known = world.constants()
    agents: dict[str, Any] = {
        "LinUCB": nr.LinUCB(5, alpha=nr.Ellipsoid(noise=known["R"], norm=known["S"], delta=_DELTA)),
        "SupLinUCB": nr.SupLinUCB(5, horizon=T, delta=_DELTA),
        "LinREL": nr.LinREL(5, horizon=T, delta=_DELTA),
        "SupLinREL": nr.SupLinREL(5, horizon=T, delta=_DELTA),
        "LinThompson": nr.LinThompson(5, v=nr.ThompsonScale(noise=known["R"], epsilon=0.5, delta=_DELTA)),
        "Explore LinUCB": nr.Explore(nr.LinUCB(5, alpha=0.3), epsilon=0.05),
    }
    return Heat(world, agents, T, "Linear rewards")


def _hierarchical(scale: float) -> Heat:
    world, T = worlds.Hierarchical(n_arms=10, dim=30, subspace_dim=4), _rounds(5_000, scale)
    U = nr.CoFineUCB.learn_subspace(world.profiles(200), k=4)
    agents: dict[str, Any] = {
        "CoFineUCB": nr.CoFineUCB(30, subspace=U, alpha=0.3, alpha_coarse=0.3),
        "LinUCB": nr.LinUCB(30, alpha=0.3),
    }
    letters = {"CoFineUCB": {"U": float(np.linalg.norm(U, 2))}}
    return Heat(world, agents, T, "A known subspace", letters)


def _logistic(scale: float) -> Heat:
    world, T = worlds.Logistic(n_arms=10, dim=20), _rounds(4_000, scale)
    agents: dict[str, Any] = {
        "LogisticThompson": nr.LogisticThompson(20, batch_size=50),
        "LinUCB": nr.LinUCB(20, alpha=0.5),
    }
    return Heat(world, agents, T, "Clicks")


def _graph(scale: float) -> Heat:
    world, T = worlds.Graph(n_arms=100), _rounds(4_000, scale)
    lam = 0.1
    agent = nr.SpectralUCB(world.laplacian, T, lam=lam, delta=_DELTA, noise=world.noise, norm=world.norm(lam))
    letters = {"SpectralUCB": {"d": agent.effective_dimension, "C": agent.norm}}
    return Heat(world, {"SpectralUCB": agent, "UCB1": nr.UCB1(100)}, T, "A graph of arms", letters)


def _experts(scale: float) -> Heat:
    world, T = worlds.Experts(n_experts=20, n_arms=5), _rounds(10_000, scale)
    agents = {
        "Exp4": nr.Exp4.tuned(20, 5, T),
        "Exp4P": nr.Exp4P(20, 5, horizon=T, delta=_DELTA),
    }
    return Heat(world, agents, T, "Expert advice")
