"""A case, or several, for every public agent: lam is never 1, so that a ridge taken for its inverse shows."""

from __future__ import annotations

import numpy as np

import armwise as aw
from armwise.testing.checks import Case, D, K, N

PATH = np.diag([1.0, 2.0, 2.0, 1.0]) - np.eye(K, k=1) - np.eye(K, k=-1)  # the graph 0 - 1 - 2 - 3
POLICIES = [
    aw.Stump(0, 0.0, 2, 1),  # the right one
    aw.Stump(1, 0.0, 0, 3),
    aw.Stump(0, 0.0, 1, 2),
    aw.Constant(0),
    aw.Constant(3),
]
SUBSPACE = np.array([[1.0, 0.0], [-0.8, 0.0], [0.0, 1.0]])
THETA_0 = np.array([0.1, 0.2, 0.1])  # a prior mean that is wrong in one sign
SAMPLE = np.random.default_rng(0).uniform(-1, 1, (40, D))
FEATURES = aw.features.Join([aw.features.Fourier(24)]).fit(SAMPLE)

CASES = [
    Case("Exp3", lambda s: aw.Exp3(K, 0.1, seed=s), horizon=1500),
    Case("UCB1", lambda s: aw.UCB1(K, seed=s)),
    Case("BetaThompson", lambda s: aw.BetaThompson(K, seed=s), sampled=True),
    Case("BetaThompson, 20 draws", lambda s: aw.BetaThompson(K, draws=20, seed=s), sampled=True),
    Case("EpsilonGreedy", lambda s: aw.EpsilonGreedy(K, 0.1, seed=s)),
    Case("TrackAndStop", lambda s: aw.TrackAndStop(K, 0.2, seed=s), horizon=1500),
    Case("TrackAndStop, amounts", lambda s: aw.TrackAndStop(K, 0.2, noise=0.5, seed=s), horizon=1500),
    Case("TopTwoThompson", lambda s: aw.TopTwoThompson(K, 0.2, seed=s), horizon=1500),
    Case("TopTwoThompson, amounts", lambda s: aw.TopTwoThompson(K, 0.2, noise=0.5, seed=s), horizon=1500),
    Case("LUCB", lambda s: aw.LUCB(K, 0.2, seed=s), horizon=2000),
    Case("SuccessiveElimination", lambda s: aw.SuccessiveElimination(K, 0.2, seed=s), horizon=2000),
    Case("PerContext", lambda s: aw.PerContext(aw.UCB1(K, seed=s), seed=s)),
    Case("PolicyArms", lambda s: aw.PolicyArms(aw.UCB1(N, seed=s), POLICIES, K, seed=s), symmetric=False),
    Case(
        "PolicyArms of Exp3",
        lambda s: aw.PolicyArms(aw.Exp3(N, seed=s), POLICIES, K, seed=s),
        symmetric=False,
        horizon=2000,
    ),
    Case("Doubling", lambda s: aw.Doubling("Exp3.theoretical", {"n_arms": K}, seed=s), horizon=2000),
    Case("Explore", lambda s: aw.Explore(aw.LinUCB(D, 0.5, 0.3, seed=s), 0.2, seed=s)),
    Case("Explore over Exp3", lambda s: aw.Explore(aw.Exp3(K, 0.1, seed=s), 0.2, seed=s), horizon=1500),
    Case("Auto", lambda s: aw.Auto(D, seed=s)),
    Case("Auto, disjoint, with a floor", lambda s: aw.Auto(D, K, floor=0.1, seed=s)),
    Case("LagrangeCB", lambda s: aw.LagrangeCB(aw.SquareCB(D), 2000, 90.0, seed=s)),
    Case("LagrangeCB, theoretical", lambda s: aw.LagrangeCB.theoretical(D, K, 4000, 4000.0, seed=s), horizon=4000),
    Case(
        "LagrangeCB, two resources",
        lambda s: aw.LagrangeCB(aw.SquareCB(D, n_arms=K), 2000, [90.0, 60.0], covering=[False, True], seed=s),
    ),
    Case("LinCBwK", lambda s: aw.LinCBwK(D, 2000, 90.0, lam=0.3, seed=s)),
    Case("LinCBwK, disjoint", lambda s: aw.LinCBwK(D, 2000, [90.0, 90.0], n_arms=K, max_cost=0.1, seed=s)),
    Case(
        "HardStop",
        lambda s: aw.HardStop(
            aw.LinUCB(D, 0.5, 0.3, n_arms=K, seed=s), 120.0, np.full(K, 0.1), 0, horizon=1000, seed=s
        ),
        symmetric=False,
    ),
    Case("Pacing", lambda s: aw.Pacing(aw.LinUCB(D, 0.5, 0.3, seed=s), 0.05, 0, seed=s), symmetric=False),
    Case(
        "Conservative",
        lambda s: aw.Conservative(aw.UCB1(K, seed=s), 1, 0.5, noise=0.2, seed=s),
        symmetric=False,
        horizon=2000,
    ),
    Case(
        "Conservative, features",
        lambda s: aw.Conservative(aw.LinUCB(D, 0.5, 0.3, seed=s), 0, 0.5, noise=0.1, seed=s),
        symmetric=False,
        horizon=2000,
    ),
    Case("D3RB", lambda s: aw.D3RB([aw.LinUCB(D, 0.5, 0.3), aw.SquareCB(D)], seed=s)),
    Case("ED2RB", lambda s: aw.ED2RB([aw.LinUCB(D, 0.5, 0.3), aw.SquareCB(D)], seed=s)),
    Case("Mapped", lambda s: aw.Mapped(aw.LinUCB(25, 0.5, 0.3), FEATURES, seed=s)),
    Case("Corral", lambda s: aw.Corral([aw.LinUCB(D, 0.5, 0.3), aw.SquareCB(D)], 600, seed=s)),
    Case("LinUCB", lambda s: aw.LinUCB(D, 0.5, 0.3, seed=s)),
    Case("LinUCB, disjoint", lambda s: aw.LinUCB(D, 0.5, 0.3, n_arms=K, seed=s)),
    Case("RandUCB", lambda s: aw.RandUCB(D, 0.3, seed=s)),
    Case("RandUCB, disjoint", lambda s: aw.RandUCB(D, n_arms=K, seed=s)),
    Case("LinUCB, ellipsoid", lambda s: aw.LinUCB(D, aw.Ellipsoid(0.1, 1.0, 0.1), 2.0, seed=s)),
    Case("LinUCB, fading", lambda s: aw.LinUCB(D, 0.5, 0.3, discount=0.99, seed=s)),
    Case("HybridLinUCB", lambda s: aw.HybridLinUCB(D, K, 2, 0.5, 0.3, seed=s), symmetric=False),
    Case("HybridLinUCB, practical", lambda s: aw.HybridLinUCB(D, K, 1, seed=s), symmetric=False),
    Case("SupLinUCB", lambda s: aw.SupLinUCB(D, 6000, 0.1, seed=s), horizon=6000),
    Case("LinREL", lambda s: aw.LinREL(D, 2000, 0.1, seed=s), horizon=2000),
    Case("SupLinREL", lambda s: aw.SupLinREL(D, 6000, 0.1, seed=s), horizon=6000),
    Case("CoFineUCB", lambda s: aw.CoFineUCB(D, SUBSPACE, 0.3, 0.7, 0.5, 0.5, seed=s)),
    Case("LinREL, prior mean", lambda s: aw.LinREL(D, 2000, 0.1, prior_mean=THETA_0, seed=s), horizon=2000),
    Case("CoFineUCB, prior mean", lambda s: aw.CoFineUCB(D, SUBSPACE, 0.3, 0.7, 0.5, 0.5, prior_mean=THETA_0, seed=s)),
    Case(
        "HybridLinUCB, prior mean",
        lambda s: aw.HybridLinUCB(D, K, 2, 0.5, 0.3, prior_mean=THETA_0, seed=s),
        symmetric=False,
    ),
    Case("LinThompson", lambda s: aw.LinThompson(D, 0.3, 0.3, seed=s), sampled=True),
    Case("LinThompson, 20 draws", lambda s: aw.LinThompson(D, 0.3, 0.3, draws=20, seed=s), sampled=True),
    Case("LinThompson, disjoint", lambda s: aw.LinThompson(D, 0.3, 0.3, n_arms=K, seed=s), sampled=True),
    Case("LogisticThompson", lambda s: aw.LogisticThompson(D, 0.3, 1, seed=s), sampled=True),
    Case("LogisticThompson, an arm each", lambda s: aw.LogisticThompson(D, 0.3, 1, n_arms=K, seed=s), sampled=True),
    Case("SpectralUCB", lambda s: aw.SpectralUCB(PATH, 600, lam=0.3, noise=0.3, seed=s), symmetric=False),
    Case("GPUCB", lambda s: aw.GPUCB(aw.kernels.RBF(1.0), 0.3, 1.0, seed=s), horizon=300),
    Case("CGPUCB", lambda s: aw.CGPUCB(aw.kernels.RBF(1.0), aw.kernels.Linear(), 1, 0.3, 1.0, seed=s), horizon=300),
    Case("KernelUCB", lambda s: aw.KernelUCB(aw.kernels.RBF(1.0), 0.3, 0.5, seed=s), horizon=300),
    Case("KernelUCB, budget", lambda s: aw.KernelUCB(aw.kernels.RBF(1.0), 0.3, 0.5, budget=20, seed=s), horizon=300),
    Case(
        "SupKernelUCB", lambda s: aw.SupKernelUCB(aw.kernels.Linear(), 8000, 0.1, 0.5, budget=8, seed=s), horizon=8000
    ),
    Case(
        "EpochGreedy",
        lambda s: aw.EpochGreedy(aw.FinitePolicies(POLICIES, K), K, seed=s),
        symmetric=False,
        horizon=1500,
    ),
    Case(
        "EpochGreedy, linear", lambda s: aw.EpochGreedy(aw.LinearOracle(D, K), K, seed=s), symmetric=False, horizon=1500
    ),
    Case(
        "PolicyElimination",
        lambda s: aw.PolicyElimination(POLICIES, K, SAMPLE, 0.1, seed=s),
        symmetric=False,
        horizon=16000,
    ),
    Case(
        "RandomizedUCB",
        lambda s: aw.RandomizedUCB(POLICIES, K, 0.1, seed=s),
        symmetric=False,
        horizon=2000,
        margin=0.01,
    ),
    Case(
        "ILoveToConBandits",
        lambda s: aw.ILoveToConBandits(aw.FinitePolicies(POLICIES, K), K, 0.1, seed=s),
        symmetric=False,
        horizon=2000,
    ),
    Case("SquareCB, first order", lambda s: aw.SquareCB(D, lam=0.3, first_order=True, seed=s)),
    Case("SquareCB", lambda s: aw.SquareCB(D, seed=s)),
    Case("SquareCB, disjoint", lambda s: aw.SquareCB(D, n_arms=K, seed=s)),
    Case("FastCB", lambda s: aw.FastCB(D, seed=s)),
    Case("FastCB, disjoint", lambda s: aw.FastCB(D, n_arms=K, lam=0.3, seed=s)),
    Case("RegCB", lambda s: aw.RegCB(D, seed=s)),
    Case("RegCB, disjoint", lambda s: aw.RegCB(D, n_arms=K, seed=s)),
    Case("OnlineCover", lambda s: aw.OnlineCover(aw.LinearOracle(D, K), K, seed=s)),
    Case("Exp4", lambda s: aw.Exp4(N, K, 0.1, seed=s), horizon=2000, margin=0.02),
    Case("Exp4P", lambda s: aw.Exp4P(N, K, 4000, 0.1, seed=s), horizon=4000, margin=0.01),
    Case("VE", lambda s: aw.VE(aw.policies.Stumps(D), K, 1000, 0.1, seed=s), symmetric=False, horizon=1000),
    Case("Advised", lambda s: aw.Advised(aw.Exp4(N, K, 0.1, seed=s), POLICIES, seed=s), symmetric=False, horizon=1500),
]
