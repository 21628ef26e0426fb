"""Hypotheses of the theorems: each check reads an agent's parameters and what a world states about itself.

A check returns the letters of the agent's bound (and ``failing``, the probability of failure, if that is not delta),
or one sentence that names the hypothesis which the agent or the world does not meet. ``world`` maps the survey's
letters (K, R, S, L, C, ...) to their values in this world; a letter that is missing is unknown. A letter may be a
function of T.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from armwise.theory import bounds

World = Mapping[str, Any]
Letters = dict[str, Any]
Check = Callable[[Any, World, int], "Letters | str"]

# 2.63 rounds 2 sqrt(e - 1) = 2.6217 up; a gamma within 5 % of the best one costs at most 0.13 % more.
_GAMMA_SLACK = 0.05


def exp3(agent: Any, world: World, T: int) -> Letters | str:
    """Exp3 with the gamma of Corollary 3.2, in any world with rewards in [0, 1]."""
    return _tuned_gamma(agent, "Exp3", agent.n_arms * math.log(agent.n_arms), T) or {"K": agent.n_arms}


def exp4(agent: Any, world: World, T: int) -> Letters | str:
    """Exp4 with its tuned gamma and a uniform expert among the experts, which every world's advice has."""
    wrong = _tuned_gamma(agent, "Exp4", agent.n_arms * math.log(agent.n_experts), T)
    return wrong or {"K": agent.n_arms, "N": agent.n_experts}


def exp4p(agent: Any, world: World, T: int) -> Letters | str:
    """Exp4P made for at least this horizon, with ln(N / delta) <= K T."""
    K, N = agent.n_arms, agent.n_experts
    if math.log(N / agent.delta) > K * agent.horizon:
        return f"its bound needs ln(N / delta) <= K T, and ln({N} / {agent.delta:g}) is more than {K * agent.horizon:,}"
    return _horizon(agent, T) or {"K": K, "N": N, "delta": agent.delta}


def per_context(agent: Any, world: World, T: int) -> Letters | str:
    """Exp3 inside, with the gamma that suits T / C rounds: then (e - 1) gamma T + C K ln K / gamma is the bound."""
    inner, K = agent.agent, agent.n_arms
    if type(inner).__name__ != "Exp3":
        return f"its bound is for Exp3 inside, and {type(inner).__name__} is inside"
    if "C" not in world:
        return _unstated("the number of contexts")
    C = world["C"]
    return _tuned_gamma(inner, "Exp3", C * K * math.log(K), T, f"{T:,} rounds on {C} contexts") or {"K": K, "C": C}


def policy_arms(agent: Any, world: World, T: int) -> Letters | str:
    """Exp3 over N policies, tuned to N arms; the policies are those that regret is measured against."""
    if type(agent.agent).__name__ != "Exp3":
        return f"its bound is for Exp3 inside, and {type(agent.agent).__name__} is inside"
    N = len(agent.policies)
    return _same_policies(agent.policies, world) or _tuned_gamma(agent.agent, "Exp3", N * math.log(N), T) or {"N": N}


def ucb1(agent: Any, world: World, T: int) -> Letters | str:
    """UCB1 with at least the published index: a larger one explores more, and its bound grows with it."""
    scale = agent.params().get("scale", getattr(agent, "alpha", 1.0))
    if scale < 1.0:
        return f"its bound is for the published width and wider, and this one is {scale:g} of it: UCB1.theoretical"
    return {"K": agent.n_arms, "scale": scale}


def beta_thompson(agent: Any, world: World, T: int) -> Letters | str:
    """An average over worlds whose rates are drawn from the agent's prior."""
    if tuple(world.get("prior", ())) != tuple(agent.prior):
        return (
            "its bound is an average over worlds drawn from its prior, and this world does not draw its rates from it"
        )
    return {"K": agent.n_arms}


def epsilon_greedy(agent: Any, world: World, T: int) -> Letters | str:
    """A constant epsilon above 0, and no model."""
    if agent.model is not None:
        return "its bound is for arms without contexts, and this agent has a model"
    if agent.epsilon == 0.0:
        return "its bound needs epsilon > 0: without exploring, an arm that began badly is never tried again"
    if agent.decay != 0.0:
        return f"its bound is for a constant epsilon, and this one decays as t^-{agent.decay:g}"
    return {"K": agent.n_arms, "epsilon": agent.epsilon}


def linucb(agent: Any, world: World, T: int) -> Letters | str:
    """LinUCB with an ellipsoid that covers the world's noise and norm, lam >= max(1, L^2), and no forgetting.

    With one model for each arm the ellipsoid's delta is each model's: all K hold with probability 1 - K delta.
    """
    alpha, lam = agent.alpha, agent.params().get("lam")
    if not hasattr(alpha, "norm"):
        return "its bound is for the width of the confidence ellipsoid, and this agent's is another: LinUCB.theoretical"
    facts = _linear(agent, world)
    if isinstance(facts, str):
        return facts
    S, L = facts
    models = agent.n_arms or 1
    wrong = _forgets(agent) or _scaled(agent, least=True) or _covers("ellipsoid", alpha.noise, alpha.norm, world, S)
    if wrong:
        return wrong
    if lam is None or lam < max(1.0, L**2):
        return f"its bound needs lam >= max(1, L^2) = {max(1.0, L**2):g}, and lam is {lam}"
    if models * alpha.delta >= 1.0:
        return f"each of its {models} models may fail with probability {alpha.delta:g}: give each delta / {models}"
    return {"d": agent.dim, "R": alpha.noise, "S": alpha.norm, "L": L, "lam": lam, "delta": models * alpha.delta,
            "models": models, "scale": agent.params().get("scale", 1.0)}  # fmt: skip


def lin_thompson(agent: Any, world: World, T: int) -> Letters | str:
    """LinThompson with the theorem's scale for the world's noise, lam = 1, one model, ||x|| and ||theta|| at most 1."""
    v, lam = agent.v, agent.params().get("lam")
    if not hasattr(v, "epsilon"):
        return "its bound is for the theorem's scale v_t, and this agent's is another: LinThompson.theoretical"
    if agent.n_arms is not None:
        return f"its bound is for one model, and this agent has {agent.n_arms}"
    facts = _linear(agent, world)
    if isinstance(facts, str):
        return facts
    wrong = _forgets(agent) or _scaled(agent) or _unit(*facts) or _covers("v_t", v.noise, None, world, 0.0)
    if wrong or lam != 1.0:
        return wrong or f"its bound needs lam = 1, and lam is {lam}"
    return {"d": agent.dim, "R": v.noise, "epsilon": v.epsilon, "delta": v.delta}


def staged_linear(agent: Any, world: World, T: int) -> Letters | str:
    """SupLinUCB and SupLinREL: linear rewards in [0, 1], ||x|| and ||theta|| at most 1, made for this horizon.

    ``delta`` of the letters is the agent's own: the bound fails with probability at most S delta, S the stages.
    """
    facts = _linear(agent, world)
    if isinstance(facts, str):
        return facts
    wrong = _scaled(agent) or _pooled(agent) or _unit_rewards(world) or _unit(*facts) or _horizon(agent, T)
    wrong = wrong or _stages(agent)
    return wrong or {"K": world["K"], "d": agent.dim, "delta": agent.delta, "failing": agent.n_stages * agent.delta}


def cofine_ucb(agent: Any, world: World, T: int) -> Letters | str:
    """CoFineUCB with widths that cover the error of both estimates, for a theta at a known distance from the subspace.

    theta = U theta~ + rest, ||theta~|| <= S_coarse, ||rest|| <= S_rest. The fine width covers the noise and the rest,
    the coarse one the noise, theta~ and what the rest adds to the coarse rewards (at most L S_rest sqrt(T)).
    """
    facts = _linear(agent, world)
    if isinstance(facts, str):
        return facts
    if "S_rest" not in world or "S_coarse" not in world:
        return (
            "its widths must cover how far theta lies from the subspace (S_rest) and along it (S_coarse), "
            "which nobody states"
        )
    (_, L), R, delta = facts, world["R"], world.get("delta", 0.05)
    U = float(np.linalg.norm(agent.subspace, 2))
    lam, lam_coarse = agent.params().get("lam"), agent.params().get("lam_coarse")
    if lam is None or lam_coarse is None or lam < L**2:
        return f"its bound needs lam >= L^2 = {L**2:g}, and lam is {lam}"
    scale = agent.params().get("scale", 1.0)
    alpha, coarse = scale * (agent.alpha or 0.0), scale * (agent.alpha_coarse or 0.0)
    d, k = agent.subspace.shape
    fine_least = _radius(R, d, L, lam, delta / 2, T) + math.sqrt(lam) * world["S_rest"]
    coarse_least = (
        _radius(R, k, U * L, lam_coarse, delta / 2, T)
        + math.sqrt(lam_coarse) * world["S_coarse"]
        + L * world["S_rest"] * math.sqrt(T)
    )
    if alpha < fine_least or coarse < coarse_least:
        return (
            f"its widths must be at least {fine_least:.3g} and {coarse_least:.3g} to cover the estimates' errors, "
            f"and they are {alpha:.3g} and {coarse:.3g}"
        )
    return {"d": d, "L": L, "U": U, "lam": lam, "lam_coarse": lam_coarse, "alpha": alpha, "alpha_coarse": coarse}


def spectral_ucb(agent: Any, world: World, T: int) -> Letters | str:
    """SpectralUCB on the world's own graph, with a norm and a noise that cover its rewards."""
    if "laplacian" not in world:
        return _unstated("a graph")
    mine, theirs = agent.laplacian, world["laplacian"]
    if mine.shape != theirs.shape or abs(mine - theirs).max() > 1e-9:
        return "its graph is not the world's"
    if agent.reduced:
        return "its bound is for the basis of all eigenvectors"
    norm = world["norm"](agent.lam)
    wrong = _scaled(agent) or _covers("width", agent.noise, agent.norm, world, norm) or _horizon(agent, T)
    return wrong or {"d": agent.effective_dimension, "R": agent.noise, "C": agent.norm, "lam": agent.lam,
                     "delta": agent.delta}  # fmt: skip


def gp_ucb(agent: Any, world: World, T: int) -> Letters | str:
    """GPUCB and CGPUCB with the world's kernel and noise: FiniteArmsBeta for a draw, AgnosticBeta for a known norm."""
    beta = agent.beta
    if not hasattr(beta, "delta"):
        return f"its bound is for FiniteArmsBeta or AgnosticBeta, and beta is {beta if beta is None else f'{beta:g}'}"
    if agent.budget is not None or agent.fit_at:
        return "its bound is for the exact posterior of a known kernel, without budget or fit_at"
    wrong = _scaled(agent) or _same_kernel(agent, world)
    if wrong:
        return wrong
    agnostic = hasattr(beta, "norm")
    if agnostic and "B" not in world:
        return "AgnosticBeta is for a function of known norm, and this world draws its function: FiniteArmsBeta"
    if agnostic and beta.norm < world["B"]:
        return f"its beta is for <f, f> <= {beta.norm:g}, and this world's is {world['B']:g}"
    if not agnostic and "B" in world:
        return "FiniteArmsBeta is for a draw from the process, and this world's function is none: AgnosticBeta"
    if agnostic and agent.noise < world["sigma"]:
        return (
            f"its noise must be at least the largest error of a reward, {world['sigma']:g}, and it is {agent.noise:g}"
        )
    if not agnostic and not math.isclose(agent.noise, world["sigma"], rel_tol=1e-9):
        return f"its noise is {agent.noise:g}, and this world's is {world['sigma']:g}"
    if world["kappa"] > 1.0 + 1e-9:
        return f"its bound needs k(x, x) <= 1, and it is {world['kappa']:g}"
    known: Letters = {"gamma_T": world["gamma_T"](agent.noise), "sigma": agent.noise, "delta": beta.delta}
    return known | ({"B": beta.norm, "K": world["K"]} if agnostic else {"K": world["K"]})


def sup_kernel_ucb(agent: Any, world: World, T: int) -> Letters | str:
    """SupKernelUCB with the world's kernel, rewards in [0, 1] and a norm that half of eta covers."""
    wrong = _same_kernel(agent, world) or _scaled(agent) or _pooled(agent)
    wrong = wrong or _unit_rewards(world) or _horizon(agent, T) or _stages(agent)
    if wrong:
        return wrong
    if agent.budget is not None:
        return "its bound is for the exact posterior, without budget"
    if "B" not in world:
        return "its bound is for a function of known norm, and this world draws its function"
    most = math.log(2 * agent.horizon * world["K"] / agent.delta) / 2
    if agent.gamma * world["B"] > most:
        return f"its bound needs gamma <f, f> <= {most:.3g}, and it is {agent.gamma * world['B']:.3g}"
    return {"N": world["K"], "d_tilde": world["d_tilde"], "gamma": agent.gamma, "delta": agent.delta,
            "kappa": world["kappa"], "failing": agent.n_stages * agent.delta}  # fmt: skip


def balancing(agent: Any, world: World, T: int) -> Letters | str:
    """D3RB and ED2RB with the published widths, around bases of which one is known to have regret d* sqrt(n)."""
    M = len(agent.agents)
    wrong = _scaled(agent, least=True) or _unit_rewards(world)
    if wrong:
        return wrong
    if agent.delta * 13.0 > M:
        return f"its widths cover all plays only for delta <= M / 13 = {M / 13:.3g}, and delta is {agent.delta:g}"
    if "d_star" not in world:
        return "its bound needs the regret coefficient of one of its bases (d_star), and none has its theorem here"
    return {"M": M, "d_star": max(agent.d_min, world["d_star"]), "delta": agent.delta, "d_min": agent.d_min,
            "failing": agent.delta + world.get("failing", 0.0)}  # fmt: skip


def corral(agent: Any, world: World, T: int) -> Letters | str:
    """Corral with a first rate that is small beside the regret d* sqrt(n) of a base whose theorem needs no rounds."""
    wrong = _unit_rewards(world) or _horizon(agent, T)
    if wrong:
        return wrong
    if "d_star" not in world:
        return "its bound needs a base with a theorem that holds whatever rounds it is drawn in (d_star), and has none"
    M, H, d_star = len(agent.agents), agent.horizon, world["d_star"]
    eta = agent.eta or math.sqrt(M / H)
    if math.isinf(bounds.corral(H, M, d_star, eta)):
        R = d_star * math.sqrt(H)
        most = bounds._corral_rate(H, R)
        return f"its bound needs eta below {most:.3g} for a base of regret {R:.3g}, and eta is {eta:.3g}"
    by_horizon: Any = agent.eta or (lambda T: math.sqrt(M / T))
    return {"M": M, "d_star": d_star, "eta": by_horizon, "fails": world.get("failing", 0.0)}


def epoch_greedy(agent: Any, world: World, T: int) -> Letters | str:
    """EpochGreedy over the world's policies, with counted epochs; the bound sums over them, whatever their lengths."""
    wrong = _same_policies(_policies(agent), world)
    if wrong:
        return wrong
    if agent.teaches != "uniform":
        return "its bound is for epochs that are counted: EpochGreedy.theoretical"
    known: Letters = {"K": agent.n_arms, "N": agent.oracle.n_policies, "delta": agent.delta}
    if callable(agent.schedule):
        return known | {"schedule": agent.schedule}
    return known | {"c": agent.schedule or 1.0 / agent.params().get("scale", 1.0)}


def policy_elimination(agent: Any, world: World, T: int) -> Letters | str:
    """PolicyElimination over the world's policies, with widths no smaller than the theorem's."""
    wrong = _same_policies(_policies(agent), world) or _scaled(agent)
    return wrong or {"K": agent.n_arms, "N": agent.policies.n_policies, "delta": agent.delta}


ORDER_ONLY = "its paper proves the order of its regret, and no constant"


def randomized_ucb(agent: Any, world: World, T: int) -> str:
    """RandomizedUCB: the paper proves an order and no constant, so there is no number to print."""
    return _same_policies(_policies(agent), world) or _scaled(agent) or ORDER_ONLY


def iltcb(agent: Any, world: World, T: int) -> Letters | str:
    """ILOVETOCONBANDITS over the world's policies with an exact oracle, psi >= 100 and epochs that at most double."""
    wrong = _same_policies(_policies(agent), world)
    if wrong:
        return wrong
    if agent.psi < 100.0:
        return f"its bound needs psi >= 100, and psi is {agent.psi:g}: ILoveToConBandits.theoretical"
    if not (isinstance(agent.epochs, (int, float)) and agent.epochs <= 2.0):
        return "its bound is for epochs that at most double"
    if agent.baseline:
        return "its bound is for r / p without a baseline: ILoveToConBandits.theoretical"
    return _scaled(agent) or {"K": agent.n_arms, "N": agent.oracle.n_policies, "delta": agent.delta, "psi": agent.psi}


def ve(agent: Any, world: World, T: int) -> Letters | str:
    """VE with two arms, for this horizon, over a class that holds the world's policies."""
    if agent.n_arms != 2:
        return f"its bound is for two arms, and there are {agent.n_arms}"
    if "policies" not in world:
        return _unstated("the policies")
    strangers = [policy for policy in world["policies"] if not agent.policy_class.holds(policy)]
    if strangers:
        return f"its class does not hold {strangers[0]!r:.60}, which this world measures against"
    return _horizon(agent, T) or {"d": agent.policy_class.dimension(2), "delta": agent.delta}


def squarecb(agent: Any, world: World, T: int) -> Letters | str:
    """SquareCB over ridge with the constant gamma of the bound, for linear rewards in [0, 1] of norm at most 1.

    With one model for each arm, d of the letters is K times the context's.
    """
    facts = _linear(agent, world)
    if isinstance(facts, str):
        return facts
    wrong = _unit_rewards(world) or _unit(*facts)
    if wrong:
        return wrong
    if agent.regressor is not None:
        return "its bound with numbers is for ridge, and this agent has another regressor"
    if agent.exponent != 0.0 or agent.gamma is None:
        return "its bound is for a constant gamma: SquareCB.theoretical"
    K, d = world["K"], agent.dim * (agent.n_arms or 1)
    gamma = agent.gamma / agent.scale if hasattr(agent, "gamma") else agent.scale
    lam = agent.params().get("lam")
    if lam is None:
        return "its bound is for a fixed ridge lam: SquareCB.theoretical"
    delta = world.get("delta", 0.05)
    best = math.sqrt(K * T / (bounds.ridge_regression(T, d, lam) + math.log(2 / delta)))
    if not math.isclose(gamma, best, rel_tol=1e-6):
        return f"its bound asks for gamma = {best:.3g} at T = {T:,} (SquareCB.theoretical), and gamma is {gamma:.3g}"
    return {"K": K, "d": d, "delta": delta, "lam": lam}


# ---------------------------------------------------------------------- what several theorems ask


def _unstated(what: str) -> str:
    return f"its bound needs {what}, which this world does not state"


def _tuned_gamma(agent: Any, name: str, complexity: float, T: int, rounds: str = "") -> str | None:
    best = min(1.0, math.sqrt(complexity / ((math.e - 1) * T)))
    if abs(agent.gamma / best - 1.0) <= _GAMMA_SLACK or complexity == 0.0:
        return None
    at = rounds or f"T = {T:,}"
    return f"its bound asks for gamma = {best:.3g} at {at} ({name}.theoretical), and gamma is {agent.gamma:g}"


def lagrange(agent: Any, world: World, T: int) -> Letters | str:
    """LagrangeCB with the constants of its bound, in a world that states its spend rate and has a null arm."""
    if agent.dual != "gradient" or agent.exponent != 0.0 or agent.gamma is None or agent.max_cost != 1.0:
        return "its bound is for a constant gamma, clipped estimates and prices by gradient: LagrangeCB.theoretical"
    wrong = _budgeted(agent, world, T)
    if wrong is not None:
        return wrong
    K, d, lam = agent.n_arms, agent.dim, agent.oracle.params().get("lam")
    if K is None or d is None or lam is None:
        return "its bound is for one ridge model per arm with a fixed lam: LagrangeCB.theoretical"
    rate, delta = agent.budget / T, world.get("delta", 0.05)
    best = math.sqrt(K * T / (bounds.lagrange_regression(T, K, d, rate, lam=lam) + math.log(2 / delta)))
    if not math.isclose(agent.gamma / agent.scale, best, rel_tol=1e-6):
        return f"its bound asks for gamma = {best:.3g} at T = {T:,} (LagrangeCB.theoretical), not {agent.gamma:.3g}"
    return {"K": K, "d": d, "rate": rate, "delta": delta, "lam": lam}


def lincbwk(agent: Any, world: World, T: int) -> Letters | str:
    """LinCBwK with Z = T / B and the ellipsoid's widths, in a world that states its spend rate and has a null arm."""
    if agent.alpha is None or agent.Z is None or agent.scale < 1.0:
        return "its bound is for the ellipsoid of its widths and Z = T / B: LinCBwK.theoretical"
    letters = {"d": agent.dim, "rate": agent.budget / T, "R": agent.alpha.noise, "models": agent.n_arms or 1}
    return _budgeted(agent, world, T) or letters


def _budgeted(agent: Any, world: World, T: int) -> str | None:
    if "rate" not in world or "null_arm" not in world:
        return "its bound needs a null arm and a spend rate, and this world does not state them"
    if agent.n_costs != 1:
        return f"its bound with numbers is for one resource, and these are {agent.n_costs}"
    return f"it is made for {agent.horizon:,} rounds, and these are {T:,}" if agent.horizon != T else None


def _horizon(agent: Any, T: int) -> str | None:
    return None if agent.horizon >= T else f"it is made for {agent.horizon:,} rounds, and these are {T:,}"


def _scaled(agent: Any, least: bool = False) -> str | None:
    """Require the theorem's exploration, or with ``least`` at least that much."""
    scale = agent.params().get("scale", 1.0)
    if scale == 1.0 or (least and scale > 1.0):
        return None
    return f"scale={scale:g} is the practical exploration; the bound is for {type(agent).__name__}.theoretical"


def _pooled(agent: Any) -> str | None:
    if agent.pooled:
        return f"its bound needs stages that share nothing, and pooled stages do: {type(agent).__name__}.theoretical"
    return None


def _stages(agent: Any) -> str | None:
    S = agent.n_stages
    if S * agent.delta >= 1.0:
        return f"each of its {S} stages may fail with probability {agent.delta:g}: give delta / {S}"
    return None


def _forgets(agent: Any) -> str | None:
    params = agent.params()
    if params.get("discount", 1.0) != 1.0 or params.get("window") is not None:
        return "its bound is for an agent that forgets nothing, and this one has a discount or a window"
    return None


def _linear(agent: Any, world: World) -> tuple[float, float] | str:
    """S and L of the rewards in the view that the agent has, if they are linear."""
    if "linear" not in world:
        return "its bound is for linear rewards, and this world does not state that its are"
    if agent.params().get("prior_mean") is not None:
        return "its widths must cover how far theta lies from prior_mean, which nobody states"
    S, L, K = world["S"], world["L"], world["K"]
    if agent.sees == world["linear"]:
        return S, L
    if agent.sees == "features":  # one block of coordinates for each arm: theta is all arms' side by side
        return S * math.sqrt(K), L
    return S, L * math.sqrt(K)  # the arms' rows side by side are one long context


def _covers(what: str, noise: float, norm: float | None, world: World, S: float) -> str | None:
    if "R" not in world:
        return _unstated("the noise of its rewards")
    if noise < world["R"] * (1 - 1e-9):
        return f"its {what} is for noise {noise:g}, and this world's is {world['R']:g}"
    if norm is not None and norm < S * (1 - 1e-9):
        return f"its {what} is for a parameter of norm {norm:g}, and this world's may have {S:.3g}"
    return None


def _unit(S: float, L: float) -> str | None:
    if S <= 1.0 + 1e-9 and L <= 1.0 + 1e-9:
        return None
    return f"its bound needs ||x|| <= 1 and ||theta|| <= 1, and this world states {L:.3g} and {S:.3g}"


def _unit_rewards(world: World) -> str | None:
    return None if world.get("span", 1.0) <= 1.0 else "its bound is for rewards in [0, 1], and this world's go further"


def _radius(R: float, d: int, L: float, lam: float, delta: float, T: int) -> float:
    """R sqrt(2 ln(det(A_T)^1/2 det(lam I)^-1/2 / delta)) at its largest after T rows of length L."""
    return R * math.sqrt(d * math.log1p(T * L**2 / (d * lam)) + 2 * math.log(1 / delta))


def _same_kernel(agent: Any, world: World) -> str | None:
    if "points" not in world:
        return _unstated("a kernel")
    points = world["points"]
    if not np.allclose(agent.kernel(points, points), world["covariance"], rtol=0.0, atol=1e-9):
        return "its kernel is not the one that this world's function comes from"
    return None


def _policies(agent: Any) -> Any:
    """The explicit policies of an oracle agent, or None where the oracle is not an exact one over a list."""
    oracle = getattr(agent, "oracle", None) or getattr(agent, "policies", None)
    return getattr(oracle, "policies", None)


def _same_policies(mine: Any, world: World) -> str | None:
    if "policies" not in world:
        return _unstated("the policies")
    if mine is None:
        return "its bound with numbers is for an explicit class of policies and an exact oracle"
    if any(not any(a is b or a == b for a in mine) for b in world["policies"]):
        return "it does not know all policies that this world measures against"
    return None
