"""Which language model for which prompt, at seven budgets: python -m benchmarks.routing FOLDER [--orders 5].

FOLDER holds ``four_models_costs.parquet``: columns ``prompt`` and, per model, ``reward MODEL`` and ``cost MODEL``. Each
budget is a mean cost per prompt, spaced evenly (in logarithms) between the cheapest and the dearest model. The agent
sees what ``examples/router`` sees of a prompt (its shape and hashed words) and learns from the model it chose, once
(``--times``) through all prompts of the table in a random order. It knows a price list beforehand, and nothing else; a
dearer model is expected to be better until answers say otherwise. Beside it: the best fixed mixture of models that
costs as much as the agent spent, by LP on the whole table (it knows every mean beforehand), and the same agent without
the prompt, which says what context buys. Two errors of the lead: over the orders, and over the prompts (one order's
lead as a mean over prompts).

``--example`` does the same with the router of ``examples/router`` as it is, with a price list and without.
``--journals N`` asks the router of ``examples/router`` instead: N journals of its own, and how often the intervals
of what-if questions cover the truth. ``--nine`` reads ``nine_models_scores.parquet``, which has no costs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import armwise as aw

# Dollars per million tokens of answer as the four models announced them, as far as we remember (the table has dollars
# per answer and no price list to check against), the cheapest first, and tokens per answer as one would guess them: a
# model that thinks before it answers writes more. Means of the table are 0.03, 0.49, 0.90 and 15 dollars per thousand
# answers, this says 0.015, 0.45, 0.75 and 10: a list that is too low by a tenth to a half, as lists are.
PRICE_LIST = np.array([0.05, 1.5, 2.5, 10.0])
ANSWER = np.array([300.0, 300.0, 300.0, 1000.0])
BUDGET, AIM = 0.99, 0.97  # of the target, and of that: costs have long tails
DEARER = 0.15  # what a model ten times as dear is expected to be better by

# What ridge regression believes before it has seen anything is the scale of its features, in deviations of the noise:
# a level that all models share, one of each model, what words do to all models alike, and to each model. These and the
# constants above were chosen on worlds made of the other table (nine models, costs invented) and on orders from 100 on
# of this one; the orders that are reported chose nothing.
BELIEFS = 3.0, 0.5, 0.3, 0.3


def router_example() -> Any:
    """``examples/router/router.py``, whose features these are."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "router"))
    import router

    return router


def hashed(prompts: list[str], size: int) -> np.ndarray:
    """The log length, and signed hashed words of length 1."""
    words = router_example().hashed_words
    return np.array([[0.5 * (np.log1p(len(prompt)) - 5.5), *words(prompt, size)] for prompt in prompts])


def described(prompts: list[str]) -> np.ndarray:
    """The shape of each prompt (digits, signs, lines, choices, code), and its hashed words at half the weight."""
    example = router_example()
    return np.array([
        [*example.shape(prompt).values(), *(0.5 * value for value in example.hashed_words(prompt))]
        for prompt in prompts
    ])  # fmt: skip


def nested(words: np.ndarray, n_models: int) -> np.ndarray:
    """(n, K, d): features per model whose ridge regression starts as one mean, and lets models and words in later."""
    (n, d), K = words.shape, n_models
    level, each, alike, own = BELIEFS
    rows = np.zeros((n, K, 1 + K + d + K * d))
    rows[:, :, 0] = level
    rows[:, :, 1 + K : 1 + K + d] = alike * words[:, None]
    for k in range(K):
        rows[:, k, 1 + k] = each
        rows[:, k, 1 + K + (k + 1) * d : 1 + K + (k + 2) * d] = own * words
    return rows


def read_table(folder: Path) -> tuple[list[str], list[str], np.ndarray, np.ndarray]:
    """Prompts, models, and (n, K) rewards and dollars, the cheapest model first."""
    import pandas as pd

    table = pd.read_parquet(folder / "four_models_costs.parquet")
    models = [name.removeprefix("reward ") for name in map(str, table) if name.startswith("reward ")]
    models.sort(key=lambda name: table[f"cost {name}"].mean())
    rewards, costs = (table[[f"{kind} {name}" for name in models]].to_numpy(float) for kind in ("reward", "cost"))
    return table["prompt"].tolist(), models, rewards, costs


def router(dim: int, horizon: int, rate: float, seed: int) -> aw.Agent:
    """The agent of this benchmark: a level, then models, then words; a price list; little exploration."""
    expected = PRICE_LIST * ANSWER / 1e6
    return aw.LagrangeCB(
        aw.LinUCB(dim, alpha=1.0, lam=1.0), horizon, BUDGET * rate * horizon, aim=AIM, weighting="wins", scale=2.0,
        prior=0.5 + DEARER * np.log10(expected / expected.max()), expected_costs=expected, seed=seed,
    )  # fmt: skip


def four(folder: Path, first: int, orders: int, times: int, picture: Path | None) -> None:
    prompts, _, rewards, costs = read_table(folder)
    T, K = rewards.shape
    known = described(prompts)
    words, plain = nested(known, K), nested(known[:, :0], K)
    each, paid = rewards.mean(axis=0), costs.mean(axis=0)
    rates = np.geomspace(paid.min(), paid.max(), 9)[1:-1]
    print(f"{T:,} prompts {times}x, {K} models; {orders} orders from {first}; mean ± standard error, orders (prompts)")
    print("budget $/1000  spent $/1000 (most)   reward          mixture   lead                         without prompt")
    points = []
    for rate in rates:
        rows = []
        for order in range(first, first + orders):
            rng = np.random.default_rng([20, order])
            now = np.concatenate([rng.permutation(T) for _ in range(times)])
            line = []
            for contexts in (words, plain):
                agent = router(contexts.shape[2], len(now), float(rate), order)
                played = agent.play(np.ascontiguousarray(contexts[now]), rewards[now], costs[now])
                assert played.costs is not None
                best = aw.budget_optimum(each[None], paid[None], max(played.costs.mean(), paid.min() * (1 + 1e-12)))
                lead = played.rewards - rewards[now] @ best.policy[0]
                line += [played.rewards.mean(), played.costs.mean(), best.value]
                line += [lead.mean(), lead.std() / np.sqrt(len(now))]
            rows.append(line)
        mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows))
        most = max(row[1] for row in rows)
        points.append([rate, mean[1], mean[0], error[0]])
        print(f"{1000 * rate:12.4f}  {1000 * mean[1]:8.4f} ({1000 * most:8.4f})  {mean[0]:.4f} ± {error[0]:.4f}  "
              f"{mean[2]:.4f}  {mean[3]:+.4f} ± {error[3]:.4f} (± {mean[4]:.4f})  "
              f"{mean[8]:+.4f} ± {error[8]:.4f}", flush=True)  # fmt: skip
    if picture is not None:
        draw(np.array(points), each, paid, picture)


def draw(points: np.ndarray, each: np.ndarray, paid: np.ndarray, path: Path) -> None:
    """Reward over dollars: the models, the best mixtures of them, the router."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    grid = np.geomspace(paid.min() * 1.000001, paid.max(), 200)
    mixed = [aw.budget_optimum(each[None], paid[None], rate).value for rate in grid]
    axes.plot(1000 * grid, mixed, color="0.6", label="best fixed mixture (knows every mean)")
    axes.plot(1000 * paid, each, "s", color="0.3", label="one model for every prompt")
    axes.errorbar(1000 * points[:, 1], points[:, 2], yerr=2 * points[:, 3], fmt="o", color="C0", capsize=3,
                  label="router, five orders (2 standard errors)")  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlabel("dollars per 1,000 prompts")
    axes.set_ylabel("mean reward")
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(path, dpi=150)


def nine(folder: Path, first: int, orders: int) -> None:
    """Nine models without costs: does knowing the prompt's words beat the best model for all of them?"""
    import pandas as pd

    table = pd.read_parquet(folder / "nine_models_scores.parquet")
    scores = table[[name for name in map(str, table) if name.startswith("score ")]].to_numpy(float)
    words = np.hstack([np.ones((len(scores), 1)), hashed(table["prompt"].tolist(), 64)])
    best = scores.mean(axis=0).max()
    print(f"{len(scores):,} prompts, {scores.shape[1]} models, no costs; the best model for every prompt: {best:.4f}")
    for label, contexts in (("with words", words), ("without words", words[:, :1])):
        found = []
        for order in range(first, first + orders):
            now = np.random.default_rng([9, order]).permutation(len(scores))
            agent = aw.SquareCB(contexts.shape[1], n_arms=scores.shape[1], seed=order)
            found.append(agent.play(np.ascontiguousarray(contexts[now]), scores[now]).rewards.mean() - best)
        print(
            f"SquareCB {label}: lead {np.mean(found):+.4f} ± {np.std(found, ddof=1) / np.sqrt(orders):.4f}", flush=True
        )


def example(folder: Path, first: int, orders: int) -> None:
    """The router of ``examples/router`` as its users have it, with a price list and without."""
    prompts, models, rewards, costs = read_table(folder)
    each, paid = rewards.mean(axis=0), costs.mean(axis=0)
    prices = dict(zip(models, (PRICE_LIST * ANSWER / 1e3).tolist()))
    print(f"examples/router, {len(prompts):,} prompts; {orders} orders from {first}; mean ± standard error over orders")
    print("budget $/1000   with prices: spent (most)  lead                without: spent (most)  lead")
    for rate in np.geomspace(paid.min(), paid.max(), 9)[1:-1]:
        said = f"{1000 * rate:12.4f}"
        for listed in (prices, None):
            found = []
            for order in range(first, first + orders):
                router = router_example().Router(
                    models, 1000 * rate, prompts=len(prompts), prices=listed, seed=order + 1
                )
                now, got = np.random.default_rng([20, order]).permutation(len(prompts)), []
                for i in now:
                    decided = router.route(prompts[i])
                    arm = models.index(decided.arm)
                    router.outcome(decided.id, rewards[i, arm], costs[i, arm])
                    got.append((rewards[i, arm], costs[i, arm]))
                earned, spent = np.mean(got, axis=0)
                best = aw.budget_optimum(each[None], paid[None], max(spent, paid.min() * (1 + 1e-12))).value
                found.append([earned - best, spent / rate])
            lead, spent = np.mean(found, axis=0)
            error = np.std(found, axis=0, ddof=1)[0] / np.sqrt(orders)
            said += f"   {spent:.3f} ({max(row[1] for row in found):.3f})  {lead:+.4f} ± {error:.4f}   "
        print(said, flush=True)


def journals(folder: Path, runs: int, first: int, explore: float) -> None:
    """The router of the example, a journal per run: how often what-if intervals of 95 % cover the truth."""
    make_router = router_example().Router
    prompts, models, rewards, costs = read_table(folder)
    each, paid = rewards.mean(axis=0), costs.mean(axis=0)
    tables: dict[str, Any] = {
        "always small": [1, 0, 0, 0], "always large": [0, 0, 0, 1], "my table": [0.2, 0.4, 0.3, 0.1],
    }  # fmt: skip
    rate, T = 4e-3, 800
    best = aw.budget_optimum(each[None], paid[None], rate).value
    covered: dict[str, list[tuple[bool, bool]]] = {}
    for run in range(first, first + runs):
        now = np.random.default_rng([21, run]).choice(len(prompts), T)
        router = make_router(models, 1000 * rate, prompts=T, seed=run, explore=explore)
        for i in now:
            decided = router.route(prompts[i])
            arm = models.index(decided.arm)
            router.outcome(decided.id, rewards[i, arm], costs[i, arm])
        found = router.what_if(tables)
        for name, shares in tables.items():
            for kind, truth, judged in (("reward", each, found[name].value), ("dollars", paid, found[name].cost)):
                covers = judged.low <= np.dot(shares, truth) <= judged.high
                covered.setdefault(f"{name}, {kind}", []).append((covers, bool(judged.warnings)))
        only = {name: np.eye(len(models))[k] for k, name in enumerate(models)}
        mix = aw.offline.best_mixture(router.decider.log(), only, rate)
        covered.setdefault("LP optimum", []).append((mix.low <= best <= mix.high, False))
    for name, rows in covered.items():
        hits, warned = np.array(rows).T
        error = hits.std() / np.sqrt(runs)
        print(f"{name}: covered in {hits.sum()} of {runs} journals ({hits.mean():.3f} ± {error:.3f}); "
              f"{warned.sum()} journals and {(warned & ~hits).sum()} of the {(~hits).sum()} misses had a warning",
              flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--times", type=int, default=1, help="how often the agent goes through the table")
    parser.add_argument("--nine", action="store_true")
    parser.add_argument("--example", action="store_true", help="the router of examples/router as it is")
    parser.add_argument("--journals", type=int, default=0)
    parser.add_argument("--explore", type=float, default=0.1, help="share of the prompts of --journals to any model")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    if given.journals:
        journals(given.folder, given.journals, given.first, given.explore)
    elif given.example:
        example(given.folder, given.first, given.orders)
    elif given.nine:
        nine(given.folder, given.first, given.orders)
    else:
        four(given.folder, given.first, given.orders, given.times, given.picture)


if __name__ == "__main__":
    main()
