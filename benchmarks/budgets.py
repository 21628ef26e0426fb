"""Budgets that are held, and what holding them costs: python -m benchmarks.budgets [--paths 1000].

1. HardStop around three agents on ``paths`` paths, synthetic and (with ``--data FOLDER``) of the routing table: costs
   at once; late, lost and several under way; beyond the announced largest. The largest spend, as a share of the budget.
2. Pacing: mean spend over the target, with its error.
3. Regret of LagrangeCB and LinCBwK (hard stop) against the LP optimum at growing horizons, with its slope; and
   (``bounded``) of their theoretical versions on worlds so small that the bound is below T, beside the bound;
   (``long``) of LagrangeCB's at horizons of a million, many seeds at once; (``linear``) of LinCBwK's at 320,000.
4. Conservative: runs in which the promise was broken at any moment, and regret with and without it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import armwise as aw


def world(T: int, seed: int, rate: float = 0.2) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Contexts, rewards, costs, expected rewards and the LP optimum per decision."""
    blocks = list(aw.environments.Budgeted(n_arms=4, dim=3, rate=rate).blocks(T, seed=seed))
    contexts, rewards, costs, expected = (
        np.concatenate([np.asarray(part) for part in parts])
        for parts in zip(*((block.view("features"), block.rewards, block.costs, block.expected) for block in blocks))
    )
    return contexts, rewards, costs, expected, float(blocks[0].competitors[0, 0])


Makes = dict[str, Callable[[int], aw.Agent]]
LATE = "late, lost, several under way"


def follow(agent: aw.Agent, contexts: np.ndarray, rewards: np.ndarray, costs: np.ndarray, seed: int) -> np.ndarray:
    """The costs of a path on which several decisions are under way: costs come late, in any order, or never (1 in 10).

    A first part of the decisions is made before any of their costs is known.
    """
    rng, waiting, paid = np.random.default_rng(seed), [], []
    for t in range(len(rewards)):
        choice = agent.choose(contexts[t])
        paid.append(costs[t, choice.arm])
        if rng.random() < 0.9:
            waiting.append((t, choice))
        while t > len(rewards) // 10 and waiting and rng.random() < 0.55:
            at, done = waiting.pop(rng.integers(len(waiting)))
            agent.learn(contexts[at], done, rewards[at, done.arm], costs[at, done.arm])
    return np.array(paid)


def hard(paths: int) -> None:
    """Every path under a hard stop; the costs that come are checked at once, late and lost, and beyond max_cost."""
    T, rate, budget = 100, 0.2, 20.0
    makes: Makes = {
        "LinUCB": lambda s: aw.LinUCB(3, seed=s),
        "LagrangeCB": lambda s: aw.LagrangeCB(aw.SquareCB(3), T, budget, seed=s),
        "LinCBwK": lambda s: aw.LinCBwK(3, T, budget, seed=s),
    }
    spent: dict[tuple[str, str], list[float]] = {}
    for start in range(0, paths, 10):  # ten paths per world: the world's own LP costs more than its paths
        contexts, rewards, costs, _, _ = world(10 * T, start, rate)
        for seed in range(start, min(start + 10, paths)):
            now = slice((seed - start) * T, (seed - start + 1) * T)
            beyond = costs[now] * (1.0 + (np.random.default_rng(seed).random((T, 4)) < 0.05))  # 1 in 20 costs twice
            for name, make in makes.items():
                stop = [aw.HardStop(make(seed), budget, 1.0, fallback=0, seed=seed) for _ in range(2)]
                at_once = np.asarray(stop[0].play(contexts[now], rewards[now], costs[now]).costs)
                late = follow(stop[1], contexts[now], rewards[now], costs[now], seed)
                spent.setdefault((name, "costs at once"), []).append(at_once.sum() / budget)
                spent.setdefault((name, LATE), []).append(late.sum() / budget)
            agent = aw.HardStop(aw.LinUCB(3, seed=seed), budget, 1.0, fallback=0, seed=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                more = follow(agent, contexts[now], rewards[now], beyond, seed)
            excess = np.maximum(more - 1.0, 0.0).sum()
            spent.setdefault(("LinUCB", "beyond max_cost, less the excess"), []).append((more.sum() - excess) / budget)
    show_hard(spent)


def show_hard(spent: dict[tuple[str, str], list[float]]) -> None:
    for (name, kind), shares in spent.items():
        over = int(np.sum(np.array(shares) > 1.0))
        print(f"hard stop, {name}, {kind}: {over} of {len(shares)} paths overspent; spent {np.mean(shares):.3f} of the "
              f"budget on average, {max(shares):.4f} at most", flush=True)  # fmt: skip


def hard_routing(paths: int, folder: Path) -> None:
    """The same on paths through the table of models and dollars, at budgets between the cheapest and the dearest."""
    from benchmarks.routing import hashed, read_table

    prompts, _, rewards, costs = read_table(folder)
    words, T, most = np.hstack([np.ones((len(rewards), 1)), hashed(prompts, 16)]), 100, costs.max(axis=0)
    low, high = T * most.min(), T * costs.mean(axis=0).max()  # the fallback is kept for every decision that may come
    d = words.shape[1]
    spent: dict[tuple[str, str], list[float]] = {}
    for seed in range(paths):
        rng = np.random.default_rng([20, seed])
        now = rng.permutation(len(rewards))[:T]
        budget = float(np.exp(rng.uniform(np.log(1.2 * low), np.log(high))))
        makes: Makes = {
            "LinUCB": lambda s: aw.LinUCB(d, n_arms=4, seed=s),
            "LagrangeCB": lambda s: aw.LagrangeCB(aw.SquareCB(d, n_arms=4), T, budget, seed=s),  # noqa: B023
        }
        x, r, c = np.ascontiguousarray(words[now]), rewards[now], costs[now]
        for name, make in makes.items():
            stop = [aw.HardStop(make(seed), budget, most, fallback=0, horizon=T, seed=seed) for _ in range(2)]
            at_once, late = np.asarray(stop[0].play(x, r, c).costs), follow(stop[1], x, r, c, seed)
            spent.setdefault((f"routing, {name}", "costs at once"), []).append(at_once.sum() / budget)
            spent.setdefault((f"routing, {name}", LATE), []).append(late.sum() / budget)
    show_hard(spent)


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


def slope(horizons: tuple[int, ...], lost: list[list[float]]) -> str:
    """The slope of mean regret on log-log axes, over all horizons and over the last two, and quantiles over seeds."""
    rng = np.random.default_rng(0)
    means = np.stack([np.array(row)[rng.integers(len(row), size=(2000, len(row)))].mean(axis=1) for row in lost])
    table, logs = np.column_stack([[np.mean(row) for row in lost], means]), np.log(horizons)
    said = []
    for label, last in (("", len(horizons)), ("of the last step ", 2)):
        found = np.polyfit(logs[-last:], np.log(np.maximum(table[-last:], 1e-9)), 1)[0]
        low, high = np.quantile(found[1:], [0.025, 0.975])
        said.append(f"slope {label}{found[0]:.2f} (95 %: {low:.2f} to {high:.2f})")
    return f"{', '.join(said)}, log-log, {'/'.join(str(len(row)) for row in lost)} seeds"


def until(bound: Callable[[int], float]) -> int:
    """The horizon from which on a bound is below T."""
    low, high = 1, 10**12
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) < middle else (middle + 1, high)
    return low


def regret(seeds: int) -> None:
    rate, horizons = 0.2, (500, 2_000, 8_000, 32_000)
    for label, make in {
        "LagrangeCB": lambda T, s: aw.LagrangeCB(aw.SquareCB(3), T, rate * T, seed=s),
        "LinCBwK": lambda T, s: aw.LinCBwK(3, T, rate * T, seed=s),
        "LinCBwK.theoretical": lambda T, s: aw.LinCBwK.theoretical(3, T, rate * T, noise=0.5, seed=s),
    }.items():
        lost: list[list[float]] = []
        for T in horizons:
            lost.append([])
            for seed in range(min(seeds, max(2, 320_000 // T))):
                contexts, rewards, costs, expected, best = world(T, 1000 + seed)
                agent = aw.HardStop(make(T, seed), rate * T, 1.0, fallback=0, seed=seed)
                arms = agent.play(contexts, rewards, costs).arms
                lost[-1].append(best * T - expected[np.arange(T), arms].sum())
            error = np.std(lost[-1]) / np.sqrt(len(lost[-1]))
            print(f"regret, {label}, T = {T:,}: {np.mean(lost[-1]):.1f} ± {error:.1f}", flush=True)
        lin = "Lin" in label
        last = until(lambda T: aw.bounds.lincbwk(T, 3, rate, 0.5) if lin else aw.bounds.lagrange(T, 4, 3, rate))  # noqa: B023
        print(f"regret, {label}: {slope(horizons, lost)}; the bound is vacuous until T = {last:,}", flush=True)


World = tuple[np.ndarray, np.ndarray, np.ndarray, float]  # contexts, chances of a reward and of a cost, optimum


def mixes(T: int, rng: np.random.Generator) -> World:
    return np.ones((T, 1)), np.tile([0.0, 0.9, 0.5], (T, 1)), np.tile([0.0, 1.0, 0.5], (T, 1)), 0.74


def skips(T: int, rng: np.random.Generator) -> World:
    x, contexts = rng.random(T), np.zeros((T, 2, 2))
    contexts[:, 1] = np.stack([0.8 * x, np.full(T, 0.6)], axis=1)
    return contexts, 0.8 * np.outer(x, [0.0, 1.0]), np.tile([0.0, 0.6], (T, 1)), 0.4 * (1.0 - (1.0 / 6.0) ** 2)


def lost_of(
    agent: aw.Agent, draw: Callable[[int, np.random.Generator], World], T: int, rate: float, seed: int
) -> float:
    """The regret of one run under a hard stop."""
    rng = np.random.default_rng([3, seed])
    contexts, worth, paid, best = draw(T, rng)
    rewards, costs = ((rng.random(mean.shape) < mean).astype(float) for mean in (worth, paid))
    arms = aw.HardStop(agent, rate * T, 1.0, fallback=0, seed=seed).play(contexts, rewards, costs).arms
    return float(best * T - worth[np.arange(T), arms].sum())


def bounded(seeds: int) -> None:
    """Small worlds, long enough that the bounds of ``theoretical`` are below T: regret beside them.

    Arm 0 is free and worth nothing. LagrangeCB sees a constant: two more arms pay 1 with chances 0.9 and 0.5 and cost
    1 with chances 1 and 0.5, at a rate of 0.8, so the best policy mixes the two. LinCBwK sees one more arm, which pays
    1 with chance 0.8 x and costs 1 with chance 0.6, at a rate of 0.5: the best policy skips the smallest x.
    """

    for label, make, draw, rate, bound, horizons in (
        ("LagrangeCB", lambda T, s: aw.LagrangeCB.theoretical(1, 3, T, 0.8 * T, seed=s), mixes, 0.8,
         lambda T: aw.bounds.lagrange(T, 3, 1, 0.8), (1_250, 5_000, 20_000, 80_000)),
        ("LinCBwK", lambda T, s: aw.LinCBwK.theoretical(2, T, 0.5 * T, noise=0.5, seed=s), skips, 0.5,
         lambda T: aw.bounds.lincbwk(T, 2, 0.5, 0.5), (1_600, 6_400, 25_600, 102_400)),
    ):  # fmt: skip
        lost: list[list[float]] = []
        for T in horizons:
            lost.append([])
            for seed in range(min(seeds, max(2, 1_300_000 // T))):
                lost[-1].append(lost_of(make(T, seed), draw, T, rate, seed))
            print(f"regret, {label}.theoretical, T = {T:,}: {np.mean(lost[-1]):.0f} ± "
                  f"{np.std(lost[-1]) / np.sqrt(len(lost[-1])):.0f}, at most {max(lost[-1]):.0f}; bound {bound(T):,.0f}"
                  f"{'' if bound(T) < T else ' (vacuous)'}", flush=True)  # fmt: skip
        print(f"regret, {label}.theoretical: {slope(horizons, lost)}; "
              f"the bound is vacuous until T = {until(bound):,}", flush=True)  # fmt: skip


def side_by_side(T: int, seeds: int) -> np.ndarray:
    """Regrets of ``LagrangeCB.theoretical`` under its hard stop in the first world of ``bounded``, all seeds at once.

    The agent's own arithmetic for a context that is the constant 1 (a test compares the two), with other draws: the
    loop over agents would take days at these horizons.
    """
    rng, rate, budget = np.random.default_rng([4, T]), 0.8, 0.8 * T * (1.0 - 1e-12)
    gamma = aw.LagrangeCB.theoretical(1, 3, T, 0.8 * T).gamma
    worth, dear = np.array([0.0, 0.9, 0.5]), np.array([0.0, 1.0, 0.5])
    n, earned, paid = np.ones((seeds, 3)), np.zeros((seeds, 3)), np.zeros((seeds, 3))  # lam = 1
    price, spent, regret, rows = np.zeros(seeds), np.zeros(seeds), np.zeros(seeds), np.arange(seeds)
    for start in range(0, T, 10_000):
        draws = rng.random((min(10_000, T - start), 3, seeds))
        for u, v, w in draws:
            lagrangian = earned / n - (price / rate)[:, None] * paid / n
            best = lagrangian.argmax(axis=1)
            p = 1.0 / (3.0 + gamma * (lagrangian[rows, best][:, None] - lagrangian))
            p[rows, best] = 0.0
            p[rows, best] = 1.0 - p.sum(axis=1)
            arm = (u[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)
            arm = np.where(spent + 1.0 <= budget, arm, 0)  # only the null arm is covered
            reward, cost = (v < worth[arm]).astype(float), (w < dear[arm]).astype(float)
            n[rows, arm] += 1.0
            earned[rows, arm] += reward
            paid[rows, arm] += cost
            spent += cost
            price = np.clip(price + (cost - rate) / np.sqrt(T), 0.0, 1.0)
            regret += 0.74 - worth[arm]
    return regret


def long_run(seeds: int) -> None:
    """``side_by_side`` at horizons at which the bound is far below T."""
    horizons = (20_000, 80_000, 320_000, 1_280_000)
    lost: list[list[float]] = []
    for T in horizons:
        lost.append(side_by_side(T, seeds).tolist())
        print(f"regret, LagrangeCB.theoretical, side by side, T = {T:,}: {np.mean(lost[-1]):.0f} ± "
              f"{np.std(lost[-1]) / np.sqrt(seeds):.0f}, at most {max(lost[-1]):.0f}; "
              f"bound {aw.bounds.lagrange(T, 3, 1, 0.8):,.0f}", flush=True)  # fmt: skip
    print(f"regret, LagrangeCB.theoretical, side by side: {slope(horizons, lost)}", flush=True)


def long_linear(seeds: int) -> None:
    """LinCBwK itself at horizons at which its bound is far below T: in the second world of ``bounded``."""
    horizons = (20_000, 80_000, 320_000)
    for label, make in {
        "LinCBwK.theoretical": lambda T, s: aw.LinCBwK.theoretical(2, T, 0.5 * T, noise=0.5, seed=s),
        "LinCBwK": lambda T, s: aw.LinCBwK(2, T, 0.5 * T, seed=s),
    }.items():
        lost: list[list[float]] = []
        for T in horizons:
            lost.append([lost_of(make(T, seed), skips, T, 0.5, seed) for seed in range(seeds)])
            print(f"regret, {label}, T = {T:,}: {np.mean(lost[-1]):.1f} ± {np.std(lost[-1]) / np.sqrt(seeds):.1f}, "
                  f"at most {max(lost[-1]):.1f}; bound of theoretical {aw.bounds.lincbwk(T, 2, 0.5, 0.5):,.0f}",
                  flush=True)  # fmt: skip
        print(f"regret, {label}: {slope(horizons, lost)}", flush=True)


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
    parser.add_argument("--only", choices=["hard", "pacing", "regret", "bounded", "long", "linear", "conservative"])
    parser.add_argument("--data", type=Path, help="folder with four_models_costs.parquet")
    given = parser.parse_args()

    def stops() -> None:
        hard(given.paths)
        if given.data is not None:
            hard_routing(given.paths, given.data)

    parts = {
        "hard": stops,
        "pacing": lambda: pacing(max(2, given.paths // 20)),
        "regret": lambda: regret(max(2, given.paths // 50)),
        "bounded": lambda: bounded(max(2, given.paths // 50)),
        "long": lambda: long_run(20),
        "linear": lambda: long_linear(max(2, given.paths // 50)),
        "conservative": lambda: conservative(given.paths),
    }
    for name, run in parts.items():
        if given.only in (None, name):
            run()


if __name__ == "__main__":
    main()
