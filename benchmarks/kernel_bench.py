"""The kernel agents measured: against refitting, at a flat cost, in regret, and on digits.

    python -m benchmarks.kernel_bench [--only repeated refit ...] [--data FOLDER] [--seeds 20] [--rounds 2000]

- ``repeated``: a decision where the same rows come back, in any order, beside the same rows in one order.
- ``refit``: rounds of GPUCB without a budget beside scikit-learn's GaussianProcessRegressor refitted every round on the
  same data (its kernel fixed: ``optimizer=None``), both timed round by round in one loop.
- ``flat``: the time of a step with a budget after 2,000 rounds and after 20,000.
- ``regret``: GPUCB with a budget and with the exact posterior on functions drawn from a Gaussian process.
- ``digits``: progressive error on optdigits.parquet of FOLDER as a bandit, CGPUCB with a budget beside the
  best of a grid of linear agents (each agent sees the same order of the digits).
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import armwise as aw
from armwise.core import saving
from armwise.models import kernels
from benchmarks import common


def gp_rounds(kernel: kernels.Kernel, dim: int, noise: float, seed: int, T: int, K: int) -> tuple[np.ndarray, ...]:
    """Contexts (T, K, dim), expected rewards and rewards (T, K) of a function drawn from the process."""
    rng = np.random.default_rng(seed)
    Z = rng.random((400, dim))
    gram = kernel(Z) + 1e-8 * np.eye(len(Z))
    weights = np.linalg.solve(gram, np.linalg.cholesky(gram) @ rng.standard_normal(len(Z)))
    X = rng.random((T, K, dim))
    values = (kernel(X.reshape(T * K, dim), Z) @ weights).reshape(T, K)
    return X, values, values + noise * rng.standard_normal((T, K))


def repeated(T: int = 2000, K: int = 20) -> None:
    """Processor time per decision at round T, of ``play`` over five times 500 rounds."""
    rng, kernel = np.random.default_rng(0), kernels.RBF(0.3)
    arms, contexts = rng.random((K, 3)), rng.random((20, 2))
    fixed = np.repeat(arms[None], T + 2500, axis=0)
    shuffled = np.array([arms[rng.permutation(K)] for _ in range(T + 2500)])
    pairs = np.array([aw.CGPUCB.rows(contexts[rng.integers(20)], arms[:5]) for _ in range(T + 2500)])
    hundred = np.array([np.hstack([contexts[i // 5], arms[i % 5]]) for i in range(100)])

    def per_decision(agent: aw.Agent, X: np.ndarray) -> float:
        rewards = np.sin(5 * X.sum(axis=2)) + 0.1 * rng.standard_normal(X.shape[:2])
        agent.play(X[:T], rewards[:T])
        best = np.inf
        for start in range(T, T + 2500, 500):
            began = time.process_time()
            agent.play(X[start : start + 500], rewards[start : start + 500])
            best = min(best, (time.process_time() - began) / 500)
        return best

    one = per_decision(aw.GPUCB(kernel, seed=0), fixed)
    all_rows = per_decision(aw.GPUCB(kernel, seed=0), np.repeat(hundred[None], T + 2500, axis=0))
    kernel_ucb = per_decision(aw.KernelUCB(kernel, seed=0), fixed)
    for name, agent, X, base, what in (
        ("GPUCB, 20 arms shuffled", aw.GPUCB(kernel, seed=0), shuffled, one, "in one order"),
        ("CGPUCB, 100 distinct rows", aw.CGPUCB(kernel, kernel, context_dim=2, seed=0), pairs, all_rows,
         "GPUCB over the 100 rows"),
        ("SupKernelUCB, 20 fixed arms", aw.SupKernelUCB(kernel, horizon=T + 2500, seed=0), fixed, kernel_ucb,
         "KernelUCB"),
        ("SupKernelUCB, 20 arms shuffled", aw.SupKernelUCB(kernel, horizon=T + 2500, seed=0), shuffled, kernel_ucb,
         "KernelUCB"),
    ):  # fmt: skip
        took = per_decision(agent, X)
        print(f"repeated: {name} {took * 1e6:.2f} us per decision, {what} {base * 1e6:.2f} us: {took / base:.2f}x")


def refit(T: int = 2000, K: int = 20) -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    X, _, rewards = gp_rounds(kernels.RBF(0.3), 3, 0.1, seed=0, T=T, K=K)
    aw.GPUCB(kernels.RBF(0.3), noise=0.1).play(X[:5], rewards[:5])  # compile before the clock starts
    agent = aw.GPUCB(kernels.RBF(0.3), noise=0.1, beta=2.0, seed=0)
    points, got, ours, theirs, apart = [], [], 0.0, 0.0, 0.0
    for t in range(T):
        start = time.perf_counter()
        choice = agent.choose(X[t])
        agent.learn(X[t], choice, rewards[t, choice.arm])
        ours += time.perf_counter() - start
        if t:
            start = time.perf_counter()
            model = GaussianProcessRegressor(RBF(0.3), alpha=0.01, optimizer=None).fit(np.array(points), got)
            mean, deviation = model.predict(X[t], return_std=True)
            scores = mean + np.sqrt(2.0) * deviation
            theirs += time.perf_counter() - start
            apart = max(apart, float(scores.max() - scores[choice.arm]))
        points.append(X[t, choice.arm])
        got.append(rewards[t, choice.arm])
        if (t + 1) % 250 == 0:
            print(f"refit: after {t + 1} rounds {ours:.2f} s and {theirs:.2f} s, ratio {theirs / ours:.1f}", flush=True)
    common.report(f"GPUCB, {T:,} rounds of {K} new arms, exact", common.duration(ours), "scikit-learn, refitted",
                  common.duration(theirs), theirs / ours, f"largest loss of score by our arm {apart:.1e}")  # fmt: skip
    fixed = np.repeat(X[:1], T, axis=0)
    start = time.perf_counter()
    aw.GPUCB(kernels.RBF(0.3), noise=0.1, beta=2.0, seed=0).play(fixed, rewards)
    print(f"refit: the same number of rounds over {K} fixed arms: {time.perf_counter() - start:.4f} s")


def flat(budget: int = 200, K: int = 10, early: int = 2000, late: int = 20_000, window: int = 1000) -> None:
    kernel = kernels.Matern(0.3, nu=1.5)  # rough: the budget is full long before round 2,000
    X, _, rewards = gp_rounds(kernel, 3, 0.1, seed=1, T=late + window, K=K)
    agent = aw.GPUCB(kernel, noise=0.1, beta=2.0, budget=budget, seed=0)
    agent.play(X[:early], rewards[:early])
    young = saving.loads(saving.dumps(agent))
    agent.play(X[early:late], rewards[early:late])
    # The two take turns on the same rounds, so that other work on the machine slows both alike.
    steps = np.empty((window, 2))
    for i, t in enumerate(range(late, late + window)):
        for column, one in enumerate((young, agent)):
            start = time.perf_counter()
            choice = one.choose(X[t])
            one.learn(X[t], choice, rewards[t, choice.arm])
            steps[i, column] = time.perf_counter() - start
    before, after = np.median(steps, axis=0)
    what = f"GPUCB, budget {budget}, K={K}: a step after {late} rounds"
    other = f"itself after {early} rounds"
    common.report(what, common.duration(after), other, common.duration(before), before / after, "flat: 1")


def regret(seeds: int, T: int = 3000, K: int = 8, budget: int = 60) -> None:
    kernel = kernels.RBF(0.2)
    totals = np.empty((seeds, 2))
    for seed in range(seeds):
        X, values, rewards = gp_rounds(kernel, 2, 0.1, seed=seed, T=T, K=K)
        for column, m in enumerate((None, budget)):
            agent = aw.GPUCB(kernel, noise=0.1, beta=aw.FiniteArmsBeta(delta=0.1), budget=m, seed=seed)
            arms = agent.play(X, rewards).arms
            totals[seed, column] = (values.max(axis=1) - values[np.arange(T), arms]).sum()
        print(f"regret: world {seed}: exact {totals[seed, 0]:.2f}, budget {totals[seed, 1]:.2f}", flush=True)
    exact, budgeted = totals.mean(axis=0)
    print(f"regret: T={T}, {seeds} worlds: exact {exact:.2f}, budget {budget}: {budgeted:.2f}, "
          f"{100 * (budgeted / exact - 1):+.2f} % (wanted <= +5 %)")  # fmt: skip


def digits(data: Path, budget: int = 600) -> None:
    import pandas as pd

    table = pd.read_parquet(common.find(data, "optdigits.parquet")).sample(frac=1.0, random_state=0)
    Z = table.iloc[:, :64].to_numpy(float) / 16.0
    rewards = (table.iloc[:, 64].astype(int).to_numpy()[:, None] == np.arange(10)).astype(float)
    with_one = np.hstack([Z, np.ones((len(Z), 1))])
    errors = {}
    for lam in (0.1, 1.0, 10.0):
        for alpha in (0.0, 0.03, 0.1, 0.3, 1.0):
            agent: aw.Agent = aw.LinUCB(65, alpha, lam, n_arms=10, seed=0)
            errors[f"LinUCB, disjoint, alpha={alpha}, lam={lam}"] = 1 - agent.play(with_one, rewards).rewards.mean()
        for v in (0.03, 0.1, 0.3):
            agent = aw.LinThompson(65, v, lam, n_arms=10, seed=0)
            errors[f"LinThompson, disjoint, v={v}, lam={lam}"] = 1 - agent.play(with_one, rewards).rewards.mean()
    for name, error in sorted(errors.items(), key=lambda item: item[1])[:5]:
        print(f"digits: {error:.4f} {name}")
    X = np.concatenate([np.repeat(Z[:, None], 10, axis=1), np.repeat(np.eye(10)[None], len(Z), axis=0)], axis=2)
    kernel_agent = aw.CGPUCB(kernels.RBF(2.0), kernels.Linear(), 64, noise=0.2, beta=0.3, budget=budget, seed=0)
    start = time.perf_counter()
    error = 1 - kernel_agent.play(X, rewards).rewards.mean()
    print(f"digits: progressive error {error:.4f} for CGPUCB with a budget of {budget} ({len(Z)} rounds in "
          f"{time.perf_counter() - start:.1f} s), {min(errors.values()):.4f} for the best linear agent")  # fmt: skip


if __name__ == "__main__":
    parser = common.parser(__doc__, data="optdigits.parquet")
    parser.add_argument("--only", nargs="+", choices=["repeated", "refit", "flat", "regret", "digits"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2000, help="of refit")
    given = parser.parse_args()
    chosen = given.only or ["repeated", "refit", "flat", "regret", *(["digits"] if given.data else [])]
    if "digits" in chosen and given.data is None:
        parser.error("digits needs --data FOLDER")
    if "repeated" in chosen:
        repeated()
    if "refit" in chosen:
        refit(given.rounds)
    if "flat" in chosen:
        flat()
    if "regret" in chosen:
        regret(given.seeds)
    if "digits" in chosen:
        digits(given.data)
