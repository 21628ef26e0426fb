"""A case, or several, for every public agent: lam is never 1, so that a ridge taken for its inverse shows."""

from __future__ import annotations

import numpy as np

import noregret as nr
from checks import Case, D, K, N

PATH = np.diag([1.0, 2.0, 2.0, 1.0]) - np.eye(K, k=1) - np.eye(K, k=-1)  # the graph 0 - 1 - 2 - 3
POLICIES = [
    nr.Stump(0, 0.0, 2, 1),  # the right one
    nr.Stump(1, 0.0, 0, 3),
    nr.Stump(0, 0.0, 1, 2),
    nr.Constant(0),
    nr.Constant(3),
]
SUBSPACE = np.array([[1.0, 0.0], [-0.8, 0.0], [0.0, 1.0]])
SAMPLE = np.random.default_rng(0).uniform(-1, 1, (40, D))

CASES = [
    Case("Exp3", lambda s: nr.Exp3(K, 0.1, seed=s), horizon=1500),
    Case("UCB1", lambda s: nr.UCB1(K, seed=s)),
    Case("BetaThompson", lambda s: nr.BetaThompson(K, seed=s), sampled=True),
    Case("BetaThompson, 20 draws", lambda s: nr.BetaThompson(K, draws=20, seed=s), sampled=True),
    Case("EpsilonGreedy", lambda s: nr.EpsilonGreedy(K, 0.1, seed=s)),
    Case("PerContext", lambda s: nr.PerContext(nr.UCB1(K), seed=s)),
    Case("PolicyArms", lambda s: nr.PolicyArms(nr.UCB1(N, seed=s), POLICIES, K, seed=s), symmetric=False),
    Case(
        "PolicyArms of Exp3",
        lambda s: nr.PolicyArms(nr.Exp3(N, seed=s), POLICIES, K, seed=s),
        symmetric=False,
        horizon=2000,
    ),
    Case("Doubling", lambda s: nr.Doubling("Exp3.tuned", {"n_arms": K}, seed=s), horizon=2000),
    Case("Explore", lambda s: nr.Explore(nr.LinUCB(D, 0.5, 0.3, seed=s), 0.2, seed=s)),
    Case("Explore over Exp3", lambda s: nr.Explore(nr.Exp3(K, 0.1, seed=s), 0.2, seed=s), horizon=1500),
    Case("LinUCB", lambda s: nr.LinUCB(D, 0.5, 0.3, seed=s)),
    Case("LinUCB, disjoint", lambda s: nr.LinUCB(D, 0.5, 0.3, n_arms=K, seed=s)),
    Case("LinUCB, ellipsoid", lambda s: nr.LinUCB(D, nr.Ellipsoid(0.1, 1.0, 0.1), 2.0, seed=s)),
    Case("LinUCB, fading", lambda s: nr.LinUCB(D, 0.5, 0.3, discount=0.99, seed=s)),
    Case("SupLinUCB", lambda s: nr.SupLinUCB(D, 6000, 0.1, seed=s), horizon=6000),
    Case("LinREL", lambda s: nr.LinREL(D, 2000, 0.1, seed=s), horizon=2000),
    Case("SupLinREL", lambda s: nr.SupLinREL(D, 6000, 0.1, seed=s), horizon=6000),
    Case("CoFineUCB", lambda s: nr.CoFineUCB(D, SUBSPACE, 0.3, 0.7, 0.5, 0.5, seed=s)),
    Case("LinThompson", lambda s: nr.LinThompson(D, 0.3, 0.3, seed=s), sampled=True),
    Case("LinThompson, 20 draws", lambda s: nr.LinThompson(D, 0.3, 0.3, draws=20, seed=s), sampled=True),
    Case("LinThompson, disjoint", lambda s: nr.LinThompson(D, 0.3, 0.3, n_arms=K, seed=s), sampled=True),
    Case("LogisticThompson", lambda s: nr.LogisticThompson(D, 0.3, 1, seed=s), sampled=True),
    Case("SpectralUCB", lambda s: nr.SpectralUCB(PATH, 600, lam=0.3, noise=0.3, seed=s), symmetric=False),
    Case("GPUCB", lambda s: nr.GPUCB(nr.kernels.RBF(1.0), 0.3, 1.0, seed=s), horizon=300),
    Case("CGPUCB", lambda s: nr.CGPUCB(nr.kernels.RBF(1.0), nr.kernels.Linear(), 1, 0.3, 1.0, seed=s), horizon=300),
    Case("KernelUCB", lambda s: nr.KernelUCB(nr.kernels.RBF(1.0), 0.3, 0.5, seed=s), horizon=300),
    Case("KernelUCB, budget", lambda s: nr.KernelUCB(nr.kernels.RBF(1.0), 0.3, 0.5, budget=20, seed=s), horizon=300),
    Case(
        "SupKernelUCB", lambda s: nr.SupKernelUCB(nr.kernels.Linear(), 8000, 0.1, 0.5, budget=8, seed=s), horizon=8000
    ),
    Case(
        "EpochGreedy",
        lambda s: nr.EpochGreedy(nr.FinitePolicies(POLICIES, K), K, seed=s),
        symmetric=False,
        horizon=1500,
    ),
    Case(
        "EpochGreedy, linear", lambda s: nr.EpochGreedy(nr.LinearOracle(D, K), K, seed=s), symmetric=False, horizon=1500
    ),
    Case(
        "PolicyElimination",
        lambda s: nr.PolicyElimination(POLICIES, K, SAMPLE, 0.1, seed=s),
        symmetric=False,
        horizon=16000,
    ),
    Case(
        "RandomizedUCB",
        lambda s: nr.RandomizedUCB(POLICIES, K, 0.1, seed=s),
        symmetric=False,
        horizon=2000,
        margin=0.01,
    ),
    Case(
        "ILoveToConBandits",
        lambda s: nr.ILoveToConBandits(nr.FinitePolicies(POLICIES, K), K, 0.1, seed=s),
        symmetric=False,
        horizon=2000,
    ),
    Case("SquareCB", lambda s: nr.SquareCB(D, seed=s)),
    Case("SquareCB, disjoint", lambda s: nr.SquareCB(D, n_arms=K, seed=s)),
    Case("RegCB", lambda s: nr.RegCB(D, seed=s)),
    Case("RegCB, disjoint", lambda s: nr.RegCB(D, n_arms=K, seed=s)),
    Case("OnlineCover", lambda s: nr.OnlineCover(nr.LinearOracle(D, K), K, seed=s)),
    Case("Exp4", lambda s: nr.Exp4(N, K, 0.1, seed=s), horizon=2000, margin=0.02),
    Case("Exp4P", lambda s: nr.Exp4P(N, K, 4000, 0.1, seed=s), horizon=4000, margin=0.01),
    Case("VE", lambda s: nr.VE(nr.policies.Stumps(D), K, 1000, 0.1, seed=s), symmetric=False, horizon=1000),
    Case("Advised", lambda s: nr.Advised(nr.Exp4(N, K, 0.1, seed=s), POLICIES, seed=s), symmetric=False, horizon=1500),
]
