"""The survey as a race: every agent on a world that fits its assumptions, with its bound beside it."""

from __future__ import annotations

from typing import Any

import armwise as aw
from armwise import environments as worlds
from armwise.racing.run import Heat

_DELTA = 0.05
LONGEST = 20_000  # rounds of the longest heat at scale 1


def survey_heats(scale: float = 1.0) -> list[Heat]:
    """One heat for each kind of world in the survey; ``scale`` lengthens or shortens all horizons.

    Agents have the parameters that a theorem asks for where there is one, and their own defaults elsewhere (KernelUCB
    apart: two posterior deviations). Horizons are short enough for the whole to end within two minutes, and the graph
    is large and smooth, where its structure is worth knowing.

    >>> heats = survey_heats(scale=0.01)
    >>> [heat.label for heat in heats][:2]
    ['Adversarial rewards', 'An adversary that reacts']
    """
    makers = (
        *(_adversarial, _adaptive, _tabular, _linear, _disjoint, _hierarchical, _logistic, _graph),
        *(_process, _contextual_process, _bounded_norm, _planted, _stumps, _experts),
    )
    return [make(scale) for make in makers]


def _rounds(n: int, scale: float) -> int:
    return max(50, round(n * scale))


def _adversarial(scale: float) -> Heat:
    world, T = worlds.Switching(n_arms=5), _rounds(10_000, scale)
    agents = {
        "Exp3": aw.Exp3.theoretical(5, T),
        "Doubling Exp3": aw.Doubling("Exp3.theoretical", {"n_arms": 5}),
        "UCB1": aw.UCB1(5),
        "EpsilonGreedy": aw.EpsilonGreedy(5, epsilon=0.1),
        "BetaThompson": aw.BetaThompson(5),
    }
    return Heat(world, agents, T, "Adversarial rewards")


def _adaptive(scale: float) -> Heat:
    world, T = worlds.Adaptive(n_arms=4), _rounds(2_000, scale)
    return Heat(world, {"Exp3": aw.Exp3.theoretical(4, T), "UCB1": aw.UCB1(4)}, T, "An adversary that reacts")


def _tabular(scale: float) -> Heat:
    world, T = worlds.Tabular(n_contexts=10, n_arms=5), _rounds(20_000, scale)
    tuned = aw.Exp3.theoretical(5, T // world.n_contexts)
    agents = {
        "PerContext Exp3": aw.PerContext(tuned),
        "PerContext UCB1": aw.PerContext(aw.UCB1(5)),
        "PerContext BetaThompson": aw.PerContext(aw.BetaThompson(5)),
        "Exp3, no context": aw.Exp3.theoretical(5, T),
    }
    return Heat(world, agents, T, "Ten contexts")


def _linear(scale: float) -> Heat:
    world, T = worlds.Linear(n_arms=5, dim=5, noise=0.1), _rounds(5_000, scale)
    known = world.constants()
    agents: dict[str, Any] = {
        "LinUCB": aw.LinUCB(5, alpha=aw.Ellipsoid(noise=known["R"], norm=known["S"], delta=_DELTA)),
        "SupLinUCB": aw.SupLinUCB(5, horizon=T, delta=_DELTA),
        "LinREL": aw.LinREL(5, horizon=T, delta=_DELTA),
        "SupLinREL": aw.SupLinREL(5, horizon=T, delta=_DELTA),
        "LinThompson": aw.LinThompson(5, v=aw.ThompsonScale(noise=known["R"], epsilon=0.5, delta=_DELTA)),
        "Explore LinUCB": aw.Explore(aw.LinUCB(5), epsilon=0.05),
    }
    return Heat(world, agents, T, "Linear rewards")


def _disjoint(scale: float) -> Heat:
    world, T = worlds.Linear(n_arms=5, dim=5, noise=0.1, disjoint=True), _rounds(5_000, scale)
    agents: dict[str, Any] = {
        "LinUCB": aw.LinUCB(5, n_arms=5),
        "LinThompson": aw.LinThompson(5, n_arms=5),
        "SquareCB": aw.SquareCB.theoretical(5, 5, T, delta=_DELTA),
        "RegCB": aw.RegCB(5, n_arms=5),
    }
    return Heat(world, agents, T, "One model an arm")


def _hierarchical(scale: float) -> Heat:
    world, T = worlds.Hierarchical(n_arms=10, dim=30, subspace_dim=4), _rounds(5_000, scale)
    U = aw.CoFineUCB.learn_subspace(world.profiles(200), k=4)
    agents: dict[str, Any] = {
        "CoFineUCB": aw.CoFineUCB(30, subspace=U),
        "LinUCB": aw.LinUCB(30),
    }
    return Heat(world, agents, T, "A known subspace")


def _logistic(scale: float) -> Heat:
    world, T = worlds.Logistic(n_arms=10, dim=20), _rounds(2_000, scale)
    agents: dict[str, Any] = {
        "LogisticThompson": aw.LogisticThompson(20, batch_size=50),
        "LinUCB": aw.LinUCB(20),
    }
    return Heat(world, agents, T, "Clicks")


def _graph(scale: float) -> Heat:
    world, T = worlds.Graph(n_arms=200, smooth=3), _rounds(2_000, scale)
    lam = 0.01
    agent = aw.SpectralUCB(world.laplacian, T, lam=lam, delta=_DELTA, noise=world.noise, norm=world.norm(lam))
    return Heat(world, {"SpectralUCB": agent, "UCB1": aw.UCB1(200)}, T, "A graph of arms")


def _experts(scale: float) -> Heat:
    world, T = worlds.Experts(n_experts=20, n_arms=5), _rounds(10_000, scale)
    agents = {
        "Exp4": aw.Exp4.theoretical(20, 5, T),
        "Exp4P": aw.Exp4P(20, 5, horizon=T, delta=_DELTA),
    }
    return Heat(world, agents, T, "Expert advice")


def _process(scale: float) -> Heat:
    world, T = worlds.GaussianProcess(n_arms=30, arm_dim=2), _rounds(1_000, scale)
    kernel = aw.kernels.RBF(length_scale=world.length_scale)
    agents: dict[str, Any] = {
        "GPUCB": aw.GPUCB(kernel, noise=world.noise, beta=aw.FiniteArmsBeta(delta=_DELTA)),
        # With gamma the variance of the noise, eta = 2 noise is a width of two posterior standard deviations.
        "KernelUCB": aw.KernelUCB(kernel, gamma=world.noise**2, eta=2 * world.noise),
    }
    return Heat(world, agents, T, "A Gaussian process")


def _contextual_process(scale: float) -> Heat:
    world = worlds.GaussianProcess(n_arms=10, arm_dim=1, n_contexts=10, context_dim=1)
    T, kernel = _rounds(600, scale), aw.kernels.RBF(length_scale=world.length_scale)
    agents: dict[str, Any] = {
        "CGPUCB": aw.CGPUCB(kernel, kernel, context_dim=1, noise=world.noise, beta=aw.FiniteArmsBeta(delta=_DELTA)),
        "LinUCB": aw.LinUCB(2),
    }
    return Heat(world, agents, T, "A process over contexts")


def _bounded_norm(scale: float) -> Heat:
    world, T = worlds.GaussianProcess(n_arms=20, arm_dim=2, bounded=True), _rounds(1_000, scale)
    kernel = aw.kernels.RBF(length_scale=world.length_scale)
    agents: dict[str, Any] = {
        "KernelUCB": aw.KernelUCB(kernel),
        "SupKernelUCB": aw.SupKernelUCB(kernel, horizon=T, delta=_DELTA, gamma=1.0),
        "UCB1": aw.UCB1(world.n_arms),
    }
    return Heat(world, agents, T, "A function of bounded norm")


def _planted(scale: float) -> Heat:
    world, T = worlds.Planted(n_policies=20, n_arms=3, dim=4), _rounds(2_000, scale)
    policies, K = world.policies, world.n_arms
    agents: dict[str, Any] = {
        "EpochGreedy": aw.EpochGreedy(policies, K, delta=_DELTA),
        "PolicyElimination": aw.PolicyElimination(policies, K, world.contexts(500, seed=0), delta=_DELTA),
        "RandomizedUCB": aw.RandomizedUCB(policies, K, delta=_DELTA),
        "ILoveToConBandits": aw.ILoveToConBandits(policies, K, delta=_DELTA),
        "OnlineCover": aw.OnlineCover(policies, K),
        "PolicyArms Exp3": aw.PolicyArms(aw.Exp3.theoretical(len(policies), T), policies, K),
    }
    return Heat(world, agents, T, "A planted policy")


def _stumps(scale: float) -> Heat:
    world, T = worlds.Planted(n_policies=50, n_arms=2, dim=1, kind="stumps"), max(1_000, _rounds(4_000, scale))
    stumps = aw.policies.Stumps(dim=1)
    agents: dict[str, Any] = {"VE": aw.VE(stumps, n_arms=2, horizon=T, delta=_DELTA)}
    return Heat(world, agents, T, "Infinitely many policies")
