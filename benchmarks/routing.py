"""Which language model for which prompt, at seven budgets: python -m benchmarks.routing FOLDER [--orders 5].

FOLDER holds ``four_models_costs.parquet``: columns ``prompt`` and, per model, ``reward MODEL`` and ``cost MODEL``. Each
budget is a mean cost per prompt, spaced evenly (in logarithms) between the cheapest and the dearest model. The agent
sees hashed words of the prompt and learns from the model it chose, once through the table in a random order. Beside it:
the best fixed mixture of models that costs as much as the agent spent, by LP on the whole table (it knows every mean
beforehand), and the same agent without the words, which says what context buys.
"""

from __future__ import annotations

import argparse
import re
import zlib
from pathlib import Path

import numpy as np

import armwise as aw


def hashed(prompts: list[str], size: int) -> np.ndarray:
    """A constant, the log length, and signed hashed words of unit length."""
    rows = np.zeros((len(prompts), size + 2))
    for row, prompt in zip(rows, prompts):
        for word in re.findall(r"[a-z]+|[0-9]|[^\sa-z0-9]", prompt.lower()[:2000]):
            code = zlib.crc32(word.encode())
            row[2 + code % size] += 1.0 if code >> 31 else -1.0
        row[2:] /= max(np.linalg.norm(row[2:]), 1e-9)
        row[0], row[1] = 1.0, np.log1p(len(prompt)) / 10.0
    return rows


def read_table(folder: Path) -> tuple[list[str], list[str], np.ndarray, np.ndarray]:
    """Prompts, models, and (n, K) rewards and dollars, the cheapest model first."""
    import pandas as pd

    table = pd.read_parquet(folder / "four_models_costs.parquet")
    models = [name.removeprefix("reward ") for name in table if name.startswith("reward ")]
    models.sort(key=lambda name: table[f"cost {name}"].mean())
    rewards, costs = (table[[f"{kind} {name}" for name in models]].to_numpy(float) for kind in ("reward", "cost"))
    return table["prompt"].tolist(), models, rewards, costs


def router(dim: int, n_arms: int, horizon: int, rate: float, margin: float, seed: int) -> aw.Agent:
    """The agent of this benchmark: settings chosen on orders 100 to 102, reported on orders 0 to 4."""
    oracle = aw.SquareCB(dim=dim, n_arms=n_arms)
    return aw.LagrangeCB(oracle, horizon, margin * rate * horizon, prior=1.0, scale=0.3, seed=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--margin", type=float, default=0.96, help="share of the budget that the prices aim at")
    given = parser.parse_args()
    import pandas as pd

    table = pd.read_parquet(given.folder / "four_models_costs.parquet")
    models = [name.removeprefix("reward ") for name in table if name.startswith("reward ")]
    rewards = table[[f"reward {name}" for name in models]].to_numpy(float)
    costs = table[[f"cost {name}" for name in models]].to_numpy(float)
    words = hashed(table["prompt"].tolist(), given.size)
    T, K = rewards.shape
    low, high = costs.mean(axis=0).min(), costs.mean(axis=0).max()
    rates = np.geomspace(low, high, 9)[1:-1]
    print(f"{T:,} prompts, {K} models; {given.orders} orders; mean and standard error over the orders")
    print("budget $/1000  spent $/1000 (max)   reward          mixture   lead            without words")
    for rate in rates:
        rows = []
        for order in range(given.first, given.first + given.orders):
            now = np.random.default_rng([20, order]).permutation(T)
            line = []
            for contexts in (words, words[:, :1]):
                agent = router(contexts.shape[1], K, T, float(rate), given.margin, order)
                played = agent.play(np.ascontiguousarray(contexts[now]), rewards[now], costs[now])
                line += [played.rewards.mean(), played.costs.mean()]
            means = rewards.mean(axis=0, keepdims=True), costs.mean(axis=0, keepdims=True)
            mixture = aw.budget_optimum(*means, max(line[1], low)).value
            rows.append([line[0], line[1], mixture, line[0] - mixture, line[2]])
        mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows))
        worst = max(row[1] for row in rows)
        print(f"{1000 * rate:12.4f}  {1000 * mean[1]:8.4f} ({1000 * worst:8.4f})  {mean[0]:.4f} ± {error[0]:.4f}  "
              f"{mean[2]:.4f}  {mean[3]:+.4f} ± {error[3]:.4f}  {mean[4]:.4f} ± {error[4]:.4f}")  # fmt: skip


if __name__ == "__main__":
    main()
