"""A call that makes each agent, in the user's sizes; the tests run every one."""

from __future__ import annotations

# T rounds, K arms, d features, N policies; rewards with noise R, a parameter of norm at most S.
_POLICIES = "[nr.Constant(i % {K}) for i in range({N})]"
_RBF = "nr.kernels.RBF(length_scale=1.0)"
CALLS = {
    "Exp3": "nr.Exp3.tuned(n_arms={K}, horizon={T})",
    "UCB1": "nr.UCB1(n_arms={K})",
    "BetaThompson": "nr.BetaThompson(n_arms={K})",
    "EpsilonGreedy": "nr.EpsilonGreedy(n_arms={K}, epsilon=0.1)",
    "PerContext": "nr.PerContext(nr.Exp3.tuned(n_arms={K}, horizon={T}))",
    "PolicyArms": f"nr.PolicyArms(nr.Exp3.tuned(n_arms={{N}}, horizon={{T}}), {_POLICIES}, n_arms={{K}})",
    "Doubling": 'nr.Doubling("Exp3.tuned", {{"n_arms": {K}}})',
    "Explore": "nr.Explore(nr.UCB1(n_arms={K}), epsilon=0.05)",
    "LinUCB": "nr.LinUCB(dim={d}, alpha=nr.Ellipsoid(noise={R}, norm={S}, delta={delta}))",
    "SupLinUCB": "nr.SupLinUCB(dim={d}, horizon={T}, delta={delta})",
    "LinREL": "nr.LinREL(dim={d}, horizon={T}, delta={delta})",
    "SupLinREL": "nr.SupLinREL(dim={d}, horizon={T}, delta={delta})",
    "CoFineUCB": "nr.CoFineUCB(dim={d}, subspace=np.eye({d})[:, :2])",
    "LinThompson": "nr.LinThompson(dim={d}, v=nr.ThompsonScale(noise={R}, epsilon=0.5, delta={delta}))",
    "LogisticThompson": "nr.LogisticThompson(dim={d}, lam=1.0, batch_size=1)",
    "SpectralUCB": (
        "nr.SpectralUCB(np.diag([1.0] + [2.0] * ({K} - 2) + [1.0]) - np.eye({K}, k=1) - np.eye({K}, k=-1), "
        "horizon={T}, delta={delta}, noise={R}, norm={S})"
    ),
    "GPUCB": f"nr.GPUCB({_RBF}, noise={{R}}, beta=nr.AgnosticBeta(norm={{S}}, delta={{delta}}))",
    "CGPUCB": f"nr.CGPUCB({_RBF}, {_RBF}, context_dim=1, noise={{R}}, beta=nr.FiniteArmsBeta(delta={{delta}}))",
    "KernelUCB": f"nr.KernelUCB({_RBF}, gamma=1.0, eta=1.0)",
    "SupKernelUCB": f"nr.SupKernelUCB({_RBF}, horizon={{T}}, delta={{delta}})",
    "EpochGreedy": f"nr.EpochGreedy(nr.FinitePolicies({_POLICIES}), n_arms={{K}})",
    "PolicyElimination": (
        f"nr.PolicyElimination({_POLICIES}, n_arms={{K}}, contexts=np.random.default_rng(0).random((100, {{d}})), "
        "delta={delta})"
    ),
    "RandomizedUCB": f"nr.RandomizedUCB({_POLICIES}, n_arms={{K}}, delta={{delta}})",
    "ILoveToConBandits": f"nr.ILoveToConBandits(nr.FinitePolicies({_POLICIES}), n_arms={{K}}, delta={{delta}})",
    "OnlineCover": "nr.OnlineCover(nr.LinearOracle(dim={d}, n_arms={K}), n_arms={K})",
    "SquareCB": "nr.SquareCB(dim={d}, n_arms={K})",
    "RegCB": "nr.RegCB(dim={d}, n_arms={K})",
    "Exp4": "nr.Exp4.tuned(n_experts={N}, n_arms={K}, horizon={T})",
    "Exp4P": "nr.Exp4P(n_experts={N}, n_arms={K}, horizon={T}, delta={delta})",
    "Advised": f"nr.Advised(nr.Exp4.tuned(n_experts={{N}}, n_arms={{K}}, horizon={{T}}), {_POLICIES})",
    "VE": "nr.VE(nr.policies.Stumps(dim={d}), n_arms=2, horizon={T}, delta={delta})",
}

# Agents around another take one that uses what is assumed.
CALLS_IF_LINEAR = {
    "Doubling": 'nr.Doubling("SupLinUCB", {{"dim": {d}, "delta": {delta}}})',
    "Explore": "nr.Explore(nr.LinUCB(dim={d}), epsilon=0.05)",
}
