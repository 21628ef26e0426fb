"""What ``dim`` is worth: the reward of ``Decider`` per number of hashed positions, in worlds of 5 to 5,000 tokens.

    python -m benchmarks.decider_dims --seeds 5 --decisions 3000 --dims 64 128 256 512

Ten named arms, rewards 0 or 1. ``numbers``: every decision has all of the names, ten of which say something about each
arm. ``texts``: every decision has five texts (ten where there are 5,000), each of equally many values, and each value
has an effect of its own on each arm. Expected reward per decision over the second half, as a share of the way from
uniform choice (0) to the best arm of every decision (1), with its standard error over the seeds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import armwise as aw

ARMS = [f"arm{k}" for k in range(10)]
World = tuple[Callable[[], tuple[dict[str, Any], np.ndarray]], str]


def numbers(rng: np.random.Generator, n: int) -> Callable[[], tuple[dict[str, Any], np.ndarray]]:
    weights = np.zeros((len(ARMS), n))
    for row in weights:
        row[rng.permutation(n)[:10]] = rng.normal(0.0, 0.3 / np.sqrt(min(n, 10)), min(n, 10))
    names = [f"f{i}" for i in range(n)]

    def draw() -> tuple[dict[str, Any], np.ndarray]:
        x = rng.normal(size=n)
        return dict(zip(names, x.tolist())), np.clip(0.4 + weights @ x, 0.0, 1.0)

    return draw


def texts(rng: np.random.Generator, n: int) -> Callable[[], tuple[dict[str, Any], np.ndarray]]:
    fields = 10 if n >= 5000 else 5
    effects = rng.normal(0.0, 0.3 / np.sqrt(fields), (fields, n // fields, len(ARMS)))

    def draw() -> tuple[dict[str, Any], np.ndarray]:
        values = rng.integers(n // fields, size=fields)
        paid = 0.4 + sum(effects[f, v] for f, v in enumerate(values))
        return {f"f{f}": f"v{v}" for f, v in enumerate(values)}, np.clip(paid, 0.0, 1.0)

    return draw


WORLDS: dict[str, tuple[Any, int]] = {
    "5 numbers": (numbers, 5), "50 numbers": (numbers, 50), "500 numbers": (numbers, 500),
    "4,000 numbers": (numbers, 4000), "50 texts": (texts, 50), "500 texts": (texts, 500), "5,000 texts": (texts, 5000),
}  # fmt: skip


def share(world: str, dim: int | None, seed: int, n: int) -> tuple[float, float]:
    """The share of what could be earned, and the microseconds per decision and reward."""
    rng = np.random.default_rng(seed)
    make, size = WORLDS[world]
    draw, shop = make(rng, size), aw.Decider(dim=dim, seed=seed)
    got, best, uniform, used = 0.0, 0.0, 0.0, 0.0
    for t in range(n):
        context, paid = draw()
        luck = rng.random()
        started = time.process_time()
        made = shop.decide(context, ARMS)
        mine = paid[int(made.arm[3:])]
        shop.reward(made, float(luck < mine))
        used += time.process_time() - started
        if t >= n // 2:
            got, best, uniform = got + mine, best + paid.max(), uniform + paid.mean()
    return (got - uniform) / (best - uniform), used / n * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--decisions", type=int, default=3000)
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 128, 256, 512], help="0: automatic")
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS))
    args = parser.parse_args()
    for world in args.worlds:
        for dim in args.dims:
            seeds = range(args.first, args.first + args.seeds)
            runs = np.array([share(world, dim or None, seed, args.decisions) for seed in seeds])
            error = runs[:, 0].std(ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else float("nan")
            mean, used = runs[:, 0].mean(), runs[:, 1].min()
            print(f"{world:14} dim {dim:5}: {mean:.3f} +- {error:.3f}   {used:8.0f} us", flush=True)


if __name__ == "__main__":
    main()
