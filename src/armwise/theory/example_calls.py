"""A call that makes each agent, in the user's sizes; the tests run every one."""

from __future__ import annotations

# T rounds, K arms, d features, N policies; rewards with noise R, a parameter of norm at most S.
_POLICIES = "[aw.Constant(i % {K}) for i in range({N})]"
_RBF = "aw.kernels.RBF(length_scale=1.0)"
CALLS = {
    "Auto": "aw.Auto(dim={d}, n_arms={K})",
    "Exp3": "aw.Exp3.theoretical(n_arms={K}, horizon={T})",
    "UCB1": "aw.UCB1(n_arms={K})",
    "BetaThompson": "aw.BetaThompson(n_arms={K})",
    "EpsilonGreedy": "aw.EpsilonGreedy(n_arms={K}, epsilon=0.1)",
    "PerContext": "aw.PerContext(aw.Exp3.theoretical(n_arms={K}, horizon={T}))",
    "PolicyArms": f"aw.PolicyArms(aw.Exp3.theoretical(n_arms={{N}}, horizon={{T}}), {_POLICIES}, n_arms={{K}})",
    "Doubling": 'aw.Doubling("Exp3.theoretical", {{"n_arms": {K}}})',
    "Explore": "aw.Explore(aw.UCB1(n_arms={K}), epsilon=0.05)",
    "D3RB": "aw.D3RB([aw.UCB1(n_arms={K}), aw.Exp3(n_arms={K})])",
    "ED2RB": "aw.ED2RB([aw.UCB1(n_arms={K}), aw.Exp3(n_arms={K})])",
    "Corral": "aw.Corral([aw.UCB1(n_arms={K}), aw.Exp3(n_arms={K})], horizon={T})",
    "Mapped": (
        "aw.Mapped(aw.LinUCB(65, n_arms={K}), "
        "aw.features.Join([aw.features.Fourier(64)]).fit(np.random.default_rng(0).random((100, {d}))))"
    ),
    "LinUCB": "aw.LinUCB(dim={d}, alpha=aw.Ellipsoid(noise={R}, norm={S}, delta={delta}))",
    "HybridLinUCB": "aw.HybridLinUCB(dim={d}, n_arms={K}, shared=1)",
    "SupLinUCB": "aw.SupLinUCB(dim={d}, horizon={T}, delta={delta})",
    "LinREL": "aw.LinREL(dim={d}, horizon={T}, delta={delta})",
    "SupLinREL": "aw.SupLinREL(dim={d}, horizon={T}, delta={delta})",
    "CoFineUCB": "aw.CoFineUCB(dim={d}, subspace=np.eye({d})[:, :2])",
    "LinThompson": "aw.LinThompson(dim={d}, v=aw.ThompsonScale(noise={R}, epsilon=0.5, delta={delta}))",
    "LogisticThompson": "aw.LogisticThompson(dim={d}, lam=1.0, batch_size=1)",
    "SpectralUCB": (
        "aw.SpectralUCB(np.diag([1.0] + [2.0] * ({K} - 2) + [1.0]) - np.eye({K}, k=1) - np.eye({K}, k=-1), "
        "horizon={T}, delta={delta}, noise={R}, norm={S})"
    ),
    "GPUCB": f"aw.GPUCB({_RBF}, noise={{R}}, beta=aw.AgnosticBeta(norm={{S}}, delta={{delta}}))",
    "CGPUCB": f"aw.CGPUCB({_RBF}, {_RBF}, context_dim=1, noise={{R}}, beta=aw.FiniteArmsBeta(delta={{delta}}))",
    "KernelUCB": f"aw.KernelUCB({_RBF}, gamma=1.0, eta=1.0)",
    "SupKernelUCB": f"aw.SupKernelUCB({_RBF}, horizon={{T}}, delta={{delta}})",
    "EpochGreedy": f"aw.EpochGreedy(aw.FinitePolicies({_POLICIES}), n_arms={{K}})",
    "PolicyElimination": (
        f"aw.PolicyElimination({_POLICIES}, n_arms={{K}}, contexts=np.random.default_rng(0).random((100, {{d}})), "
        "delta={delta})"
    ),
    "RandomizedUCB": f"aw.RandomizedUCB({_POLICIES}, n_arms={{K}}, delta={{delta}})",
    "ILoveToConBandits": f"aw.ILoveToConBandits(aw.FinitePolicies({_POLICIES}), n_arms={{K}}, delta={{delta}})",
    "OnlineCover": "aw.OnlineCover(aw.LinearOracle(dim={d}, n_arms={K}), n_arms={K})",
    "SquareCB": "aw.SquareCB(dim={d}, n_arms={K})",
    "FastCB": "aw.FastCB(dim={d}, n_arms={K})",
    "RegCB": "aw.RegCB(dim={d}, n_arms={K})",
    "Exp4": "aw.Exp4.theoretical(n_experts={N}, n_arms={K}, horizon={T})",
    "Exp4P": "aw.Exp4P(n_experts={N}, n_arms={K}, horizon={T}, delta={delta})",
    "Advised": f"aw.Advised(aw.Exp4.theoretical(n_experts={{N}}, n_arms={{K}}, horizon={{T}}), {_POLICIES})",
    "LagrangeCB": "aw.LagrangeCB(aw.SquareCB(dim={d}, n_arms={K}), horizon={T}, budget=0.5 * {T})",
    "LinCBwK": "aw.LinCBwK(dim={d}, horizon={T}, budget=0.5 * {T})",
    "HardStop": "aw.HardStop(aw.UCB1(n_arms={K}), budget=0.5 * {T}, max_cost=1.0, fallback=0)",
    "Pacing": "aw.Pacing(aw.UCB1(n_arms={K}), rate=0.5, cheap=0)",
    "Conservative": "aw.Conservative(aw.UCB1(n_arms={K}), baseline=0, alpha=0.1, delta={delta})",
    "VE": "aw.VE(aw.policies.Stumps(dim={d}), n_arms=2, horizon={T}, delta={delta})",
}

# Agents around another take one that uses what is assumed.
CALLS_IF_LINEAR = {
    "Doubling": 'aw.Doubling("SupLinUCB", {{"dim": {d}, "delta": {delta}}})',
    "Explore": "aw.Explore(aw.LinUCB(dim={d}), epsilon=0.05)",
}
