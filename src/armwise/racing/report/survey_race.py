"""The survey as races: every agent on a world that meets its assumptions, beside its bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import armwise as aw
from armwise import environments as worlds
from armwise.core.agent import Agent
from armwise.racing.run.heat import Heat

_DELTA = 0.05
MAX_HORIZON = 20_000  # rounds of the longest heat at scale 1


def survey_heats(scale: float = 1.0) -> list[Heat]:
    """Make one heat for each kind of world in the survey; ``scale`` multiplies all horizons.

    Each agent races with its defaults, and with the parameters of its theorem where they differ: only the latter have
    the theorem's bound. Horizons are short: with four seeds the race takes a minute and a half of processor time. The
    graph is large and smooth, so that its structure helps.
    """
    return [make(scale) for make in HEATS.values()]


def _rounds(n: int, scale: float) -> int:
    return max(50, round(n * scale))


def _both(cls: Any, *args: Any, theorem: tuple[Any, ...] | None = None, **known: Any) -> dict[str, Agent]:
    """Make the agent with its defaults, ``cls(*args)``, and with the parameters of its theorem, if they differ.

    ``theorem`` are the arguments of ``cls.theoretical`` if they differ; ``known`` those that only the theorem needs.
    """
    name = cls.__name__
    practical = cls(*args)
    make = getattr(cls, "theoretical", None)
    if make is None:
        return {name: practical}
    theoretical = make(*(args if theorem is None else theorem), **known)
    if repr(theoretical) == repr(practical):
        return {name: theoretical}
    return {name: practical, f"{name}.theoretical": theoretical}


def _adversarial(scale: float) -> Heat:
    world, T = worlds.AgainstUCB1(n_arms=5), _rounds(10_000, scale)
    agents = {
        "Exp3.theoretical": aw.Exp3.theoretical(5, T),
        "Doubling Exp3": aw.Doubling("Exp3.theoretical", {"n_arms": 5}),
        "UCB1": aw.UCB1(5),
        "EpsilonGreedy": aw.EpsilonGreedy(5, epsilon=0.1),
    }
    about = (
        "The textbook's reason for random agents: rewards are fixed before the first round by one who knows UCB1's "
        "rule, and the arm that it is about to play pays next to nothing. A deterministic agent loses almost every "
        "round; Exp3 draws its arms, and stays below its bound whatever the rewards are."
    )
    return Heat(world, agents, T, "Adversarial rewards", about=about)


def _switching(scale: float) -> Heat:
    world, T = worlds.Switching(n_arms=5), _rounds(10_000, scale)
    agents = {
        "Exp3.theoretical": aw.Exp3.theoretical(5, T),
        "UCB1": aw.UCB1(5),
        "BetaThompson": aw.BetaThompson(5),
    }
    about = (
        "Phases with a good arm each. Regret is against the best single arm in hindsight, which is itself poor here: "
        "an agent that follows the changes earns more than it and has negative regret. No adversary is at work, so "
        "UCB1 comes out ahead of Exp3, which pays for a protection that these rewards do not call for."
    )
    return Heat(world, agents, T, "Rewards that switch", about=about)


def _adaptive(scale: float) -> Heat:
    world, T = worlds.Adaptive(n_arms=4), _rounds(2_000, scale)
    agents = {"Exp3.theoretical": aw.Exp3.theoretical(4, T), "UCB1": aw.UCB1(4)}
    return Heat(world, agents, T, "An adversary that reacts")


def _tabular(scale: float) -> Heat:
    world, T = worlds.Tabular(n_contexts=10, n_arms=5), _rounds(20_000, scale)
    tuned = aw.Exp3.theoretical(5, max(1, T // world.n_contexts))
    agents = {
        "PerContext Exp3.theoretical": aw.PerContext(tuned),
        "PerContext UCB1": aw.PerContext(aw.UCB1(5)),
        "PerContext BetaThompson": aw.PerContext(aw.BetaThompson(5)),
        "Exp3, no context": aw.Exp3.theoretical(5, T),
    }
    return Heat(world, agents, T, "Ten contexts")


def _arms(scale: float) -> Heat:
    world, T = worlds.Tabular(n_contexts=1, n_arms=5, prior=(1.0, 1.0)), _rounds(10_000, scale)
    agents = {
        **_both(aw.UCB1, 5),
        "BetaThompson": aw.BetaThompson(5),
        "Exp3.theoretical": aw.Exp3.theoretical(5, T),
        "EpsilonGreedy": aw.EpsilonGreedy(5, epsilon=0.1),
    }
    return Heat(world, agents, T, "Five arms")


def _linear(scale: float) -> Heat:
    world, T = worlds.Linear(n_arms=5, dim=5, noise=0.1), _rounds(3_000, scale)
    R, S = world.constants()["R"], world.constants()["S"]
    agents: dict[str, Any] = {
        **_both(aw.LinUCB, 5, noise=R, norm=S, delta=_DELTA),
        **_both(aw.SupLinUCB, 5, T, _DELTA),
        **_both(aw.LinREL, 5, T, _DELTA),
        **_both(aw.SupLinREL, 5, T, _DELTA),
        **_both(aw.LinThompson, 5, noise=R, epsilon=0.5, delta=_DELTA),
        "SquareCB": aw.SquareCB(5),
        "Explore LinUCB": aw.Explore(aw.LinUCB(5), epsilon=0.05),
    }
    return Heat(world, agents, T, "Linear rewards")


def _disjoint(scale: float) -> Heat:
    world, T = worlds.Linear(n_arms=5, dim=5, noise=0.1, disjoint=True), _rounds(5_000, scale)
    R, S = world.constants()["R"], world.constants()["S"]
    agents: dict[str, Any] = {
        "LinUCB": aw.LinUCB(5, n_arms=5),
        "LinUCB.theoretical": aw.LinUCB.theoretical(5, noise=R, norm=S, delta=_DELTA, n_arms=5),
        "LinThompson": aw.LinThompson(5, n_arms=5),
        "SquareCB": aw.SquareCB(5, n_arms=5),
        "SquareCB.theoretical": aw.SquareCB.theoretical(5, 5, T, delta=_DELTA),
        "RegCB": aw.RegCB(5, n_arms=5),
    }
    return Heat(world, agents, T, "One model for each arm")


def _hierarchical(scale: float) -> Heat:
    world, T = worlds.Hierarchical(n_arms=10, dim=30, subspace_dim=4), _rounds(5_000, scale)
    U = aw.CoFineUCB.learn_subspace(world.profiles(200), k=4)
    agents: dict[str, Any] = {"CoFineUCB": aw.CoFineUCB(30, U), "LinUCB": aw.LinUCB(30)}
    return Heat(world, agents, T, "A known subspace")


def _subspace(scale: float) -> Heat:
    """The world of CoFineUCB's theorem: theta lies in the subspace, and its norm there is known."""
    world, T = worlds.Hierarchical(n_arms=5, dim=12, subspace_dim=3, residual=0.0), _rounds(5_000, scale)
    R, S = world.constants()["R"], world.constants()["S"]
    U = aw.CoFineUCB.learn_subspace(world.profiles(200), k=3)
    along = S * float(np.linalg.norm(np.linalg.pinv(U), 2))
    name = "CoFineUCB.theoretical"
    agents: dict[str, Any] = {
        name: aw.CoFineUCB.theoretical(12, U, T, noise=R, norm_coarse=along, delta=_DELTA),
        "LinUCB.theoretical": aw.LinUCB.theoretical(12, noise=R, norm=S, delta=_DELTA),
    }
    letters = {name: {"S_rest": 0.0, "S_coarse": along, "delta": _DELTA}}
    return Heat(world, agents, T, "Inside a known subspace", letters=letters)


def _logistic(scale: float) -> Heat:
    world, T = worlds.Logistic(n_arms=10, dim=20), _rounds(2_000, scale)
    agents: dict[str, Any] = {
        "LogisticThompson": aw.LogisticThompson(20, batch_size=50),
        "LinUCB": aw.LinUCB(20),
    }
    return Heat(world, agents, T, "Clicks")


def _graph(scale: float) -> Heat:
    world, T = worlds.Graph(n_arms=100, smooth=3), _rounds(2_000, scale)
    lam = 0.01
    known: dict[str, Any] = {"lam": lam, "delta": _DELTA, "noise": world.noise, "norm": world.norm(lam)}
    theoretical = getattr(aw.SpectralUCB, "theoretical", aw.SpectralUCB)(world.laplacian, T, **known)
    practical = aw.SpectralUCB(world.laplacian, T)
    agents: dict[str, Any] = {"SpectralUCB": practical, "SpectralUCB.theoretical": theoretical, "UCB1": aw.UCB1(100)}
    return Heat(world, agents, T, "A graph of arms")


def _experts(scale: float) -> Heat:
    world, T = worlds.Experts(n_experts=20, n_arms=5), _rounds(10_000, scale)
    agents = {
        "Exp4.theoretical": aw.Exp4.theoretical(20, 5, T),
        "Exp4P": aw.Exp4P(20, 5, horizon=T, delta=_DELTA),
    }
    return Heat(world, agents, T, "Expert advice")


def _kernel() -> Any:
    """A prior deviation of 0.15: rewards on the scale of the other worlds."""
    return 0.0225 * aw.kernels.RBF(length_scale=0.3)


def _process(scale: float) -> Heat:
    kernel = _kernel()
    world, T = worlds.GaussianProcess(n_arms=30, arm_dim=2, kernel=kernel, noise=0.05), _rounds(1_000, scale)
    agents: dict[str, Any] = {
        "GPUCB": aw.GPUCB(kernel, noise=world.noise),
        "GPUCB.theoretical": aw.GPUCB(kernel, noise=world.noise, beta=aw.FiniteArmsBeta(delta=_DELTA)),
        # With gamma the variance of the noise, eta = 2 noise is a width of two posterior standard deviations.
        "KernelUCB": aw.KernelUCB(kernel, gamma=world.noise**2, eta=2 * world.noise),
    }
    return Heat(world, agents, T, "A Gaussian process")


def _contextual_process(scale: float) -> Heat:
    one = aw.kernels.RBF(length_scale=0.3)
    world = worlds.GaussianProcess(n_arms=10, arm_dim=1, n_contexts=10, context_dim=1, kernel=_kernel(), noise=0.05)
    T = _rounds(600, scale)
    agents: dict[str, Any] = {
        "CGPUCB": aw.CGPUCB(0.0225 * one, one, context_dim=1, noise=world.noise),
        "CGPUCB.theoretical": aw.CGPUCB(
            0.0225 * one, one, context_dim=1, noise=world.noise, beta=aw.FiniteArmsBeta(delta=_DELTA)
        ),
        "LinUCB": aw.LinUCB(2),
    }
    return Heat(world, agents, T, "A process over contexts")


def _bounded_norm(scale: float) -> Heat:
    world, T = worlds.GaussianProcess(n_arms=20, arm_dim=2, bounded=True), _rounds(1_000, scale)
    kernel = aw.kernels.RBF(length_scale=world.length_scale)
    agents: dict[str, Any] = {
        "KernelUCB": aw.KernelUCB(kernel),
        **_both(aw.SupKernelUCB, kernel, T, _DELTA),
        "UCB1": aw.UCB1(world.n_arms),
    }
    return Heat(world, agents, T, "A function of bounded norm")


def _planted(scale: float, gap: float = 0.4) -> Heat:
    world, T = worlds.Planted(n_policies=20, n_arms=3, dim=4, gap=gap), _rounds(1_000, scale)
    policies, K = world.policies, world.n_arms
    agents: dict[str, Any] = {
        **_both(aw.EpochGreedy, policies, K),
        **_both(aw.PolicyElimination, policies, K, world.contexts(500, seed=0), _DELTA),
        **_both(aw.RandomizedUCB, policies, K, _DELTA),
        **_both(aw.ILoveToConBandits, policies, K, _DELTA),
        "OnlineCover": aw.OnlineCover(policies, K),
        "PolicyArms Exp3": aw.PolicyArms(aw.Exp3.theoretical(len(policies), T), policies, K),
    }
    return Heat(world, agents, T, "A planted policy")


def _far_apart(scale: float) -> Heat:
    """A planted policy far better than the rest: exploration with the proofs' constants ends sooner."""
    return replace(_planted(scale, gap=0.8), name="A planted policy far ahead")


def _stumps(scale: float) -> Heat:
    world, T = worlds.Planted(n_policies=50, n_arms=2, dim=1, kind="stumps"), max(1_000, _rounds(4_000, scale))
    stumps = aw.policies.Stumps(dim=1)
    agents: dict[str, Any] = {"VE": aw.VE(stumps, n_arms=2, horizon=T, delta=_DELTA)}
    return Heat(world, agents, T, "Infinitely many policies")


HEATS: dict[str, Callable[[float], Heat]] = {
    "adversarial": _adversarial, "switching": _switching, "adaptive": _adaptive, "tabular": _tabular,
    "arms": _arms, "linear": _linear, "disjoint": _disjoint, "hierarchical": _hierarchical, "logistic": _logistic,
    "graph": _graph,
    "process": _process, "contextual process": _contextual_process, "bounded norm": _bounded_norm,
    "planted": _planted, "stumps": _stumps, "experts": _experts,
}  # fmt: skip
# Heats that ``armwise survey`` adds: worlds in which the theorems' parameters reach their rate sooner.
MORE: dict[str, Callable[[float], Heat]] = {"subspace": _subspace, "far apart": _far_apart}
