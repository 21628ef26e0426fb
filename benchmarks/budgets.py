"""Budgets that are held, and what holding them costs: python -m benchmarks.budgets [--paths 1000].

1. HardStop around three agents on ``paths`` synthetic worlds: the largest spend, as a share of the budget.
2. Pacing: mean spend over the target, with its error.
3. Regret of LagrangeCB and LinCBwK (hard stop) against the LP optimum at growing horizons, beside the bound.
4. Conservative: runs in which the promise was broken at any moment, and regret with and without it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import armwise as aw


def world(T: int, seed: int, rate: float = 0.2) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Contexts, rewards, costs, expected rewards and the LP optimum per decision."""
    blocks = list(aw.environments.Budgeted(n_arms=4, dim=3, rate=rate).blocks(T, seed=seed))
    parts = ([getattr(block, name) for block in blocks] for name in ("rewards", "costs", "expected"))
    contexts = np.concatenate([block.view("features") for block in blocks])
    return contexts, *(np.concatenate(part) for part in parts), float(blocks[0].competitors[0, 0])


def hard(paths: int) -> None:
    T, rate = 200, 0.2
    makes: dict[str, Callable[[int], aw.Agent]] = {
        "LinUCB": lambda s: aw.LinUCB(3, seed=s),
        "LagrangeCB": lambda s: aw.LagrangeCB(aw.SquareCB(3), T, rate * T, seed=s),
        "LinCBwK": lambda s: aw.LinCBwK(3, T, rate * T, seed=s),
    }
    most, over = dict.fromkeys(makes, 0.0), dict.fromkeys(makes, 0)
    for seed in range(paths):
        contexts, rewards, costs, _, _ = world(T, seed)
        for name, make in makes.items():
            agent = aw.HardStop(make(seed), rate * T, 1.0, fallback=0, seed=seed)
            paid = agent.play(contexts, rewards, costs).costs
            assert paid is not None
            most[name] = max(most[name], float(paid.sum()) / (rate * T))
            over[name] += bool(paid.sum() > rate * T)
    for name in makes:
        print(f"hard stop, {name}: {over[name]} of {paths} paths overspent; the largest spend is {most[name]:.3f} B")


def pacing(runs: int) -> None:
    shares = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        agent = aw.Pacing(aw.UCB1(3, seed=seed), 0.3, cheap=0, seed=seed)
        costs = rng.random((2000, 3)) * [0.02, 1.0, 2.0]
        paid = agent.play(None, np.tile([0.1, 0.5, 0.9], (2000, 1)), costs).costs
        assert paid is not None
        shares.append(paid.mean() / 0.3)
    print(f"pacing: spend / target {np.mean(shares):.4f} ± {np.std(shares) / np.sqrt(runs):.4f} over {runs} runs")


def regret(seeds: int) -> None:
    rate = 0.2
    for label, make in {
        "LagrangeCB": lambda T, s: aw.LagrangeCB(aw.SquareCB(3), T, rate * T, seed=s),
        "LinCBwK": lambda T, s: aw.LinCBwK(3, T, rate * T, seed=s),
        "LinCBwK.theoretical": lambda T, s: aw.LinCBwK.theoretical(3, T, rate * T, noise=0.5, seed=s),
    }.items():
        found = []
        for T in (500, 2000, 8000):
            lost = []
            for seed in range(seeds):
                contexts, rewards, costs, expected, best = world(T, 1000 + seed)
                agent = aw.HardStop(make(T, seed), rate * T, 1.0, fallback=0, seed=seed)
                arms = agent.play(contexts, rewards, costs).arms
                lost.append(best * T - expected[np.arange(T), arms].sum())
            found.append(np.mean(lost))
            bound = aw.bounds.lincbwk(T, 3, rate, 0.5) if "Lin" in label else aw.bounds.lagrange(T, 4, 3, rate)
            error, remark = np.std(lost) / np.sqrt(seeds), "" if bound < T else " (vacuous)"
            print(f"regret, {label}, T = {T:,}: {found[-1]:.1f} ± {error:.1f}; bound {bound:,.0f}{remark}")
        slope = np.polyfit(np.log([500, 2000, 8000]), np.log(np.maximum(found, 1e-9)), 1)[0]
        print(f"regret, {label}: slope {slope:.2f} on log-log axes")


def conservative(runs: int) -> None:
    means, T, alpha, delta = np.array([0.6, 0.8, 0.1, 0.2]), 1000, 0.1, 0.05
    base = 0.6 * np.arange(1, T + 1)
    broken, lost = {"Conservative": 0, "UCB1": 0}, {"Conservative": 0.0, "UCB1": 0.0}
    for seed in range(runs):
        rewards = (np.random.default_rng(seed).random((T, 4)) < means).astype(float)
        for name in broken:
            agent: aw.Agent = aw.UCB1(4, seed=seed)
            if name == "Conservative":
                agent = aw.Conservative(agent, 0, alpha, delta=delta, seed=seed)
            earned = np.cumsum(means[agent.play(None, rewards).arms])
            broken[name] += bool((earned < (1 - alpha) * base).any())
            lost[name] += (0.8 * T - earned[-1]) / runs
    for name in broken:
        print(f"baseline, {name}: promise broken in {broken[name]} of {runs} runs (allowed {delta * runs:.0f}); "
              f"regret {lost[name]:.1f} at T = {T:,}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paths", type=int, default=1000)
    parser.add_argument("--only", choices=["hard", "pacing", "regret", "conservative"])
    given = parser.parse_args()
    parts = {
        "hard": lambda: hard(given.paths),
        "pacing": lambda: pacing(max(2, given.paths // 20)),
        "regret": lambda: regret(max(2, given.paths // 125)),
        "conservative": lambda: conservative(given.paths),
    }
    for name, run in parts.items():
        if given.only in (None, name):
            run()


if __name__ == "__main__":
    main()
