"""Auto beside the agent that is right for each world, well set: linear, Gaussian process, and no signal at all.

    python -m benchmarks.auto_worlds [--seeds 20] [--first 100] [--worlds NAME ...]

The specialist is given what Auto has to find out: LinUCB the best of 16 settings (alpha, lam) on that very world and
horizon, GPUCB the world's own kernel and noise and the best of four widths, UCB1 that contexts do not matter. Regret
is expected regret, the mean over seeds; the standard error of the ratio comes from the paired seeds. Beside it stands
the median of the ratios seed by seed: one stuck run of either moves the mean. Where there is no signal, BetaThompson,
textbook Thompson sampling without the columns, has a line of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import armwise as aw
from armwise.environments.environment import Block
from benchmarks import common

Make = Callable[[int], aw.Agent]


class NoSignal(aw.environments.Environment):
    """Bernoulli arms with chances of their own, and columns that say nothing about them."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self.n_arms, self.dim = n_arms, dim

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Any:
        p = rng.uniform(0.2, 0.8, self.n_arms)
        expected = np.tile(p, (horizon, 1))
        rewards = (rng.random(expected.shape) < expected).astype(float)
        yield Block({"shared": rng.normal(size=(horizon, self.dim))}, rewards, expected)


def linear(K: int, d: int, noise: float, disjoint: bool) -> tuple[Any, Make, dict[str, Make]]:
    world = aw.environments.Linear(K, d, noise=noise, disjoint=disjoint)
    arms = {"n_arms": K} if disjoint else {}
    grid = [(alpha, lam) for alpha in (0.05, 0.1, 0.2, 0.4) for lam in (0.1, 0.3, 1.0, 3.0)]
    settings: dict[str, Make] = {
        f"LinUCB(alpha={alpha}, lam={lam})": lambda seed, a=alpha, b=lam: aw.LinUCB(d, a, b, seed=seed, **arms)
        for alpha, lam in grid
    }
    return world, lambda seed: aw.Auto(d, seed=seed, **arms), settings


def gaussian(K: int, contexts: int, length: float) -> tuple[Any, Make, dict[str, Make]]:
    both = {"n_contexts": contexts, "context_dim": 2} if contexts > 1 else {}
    world = aw.environments.GaussianProcess(K, 2, length_scale=length, **both)
    d = world.points.shape[2]
    kernel = aw.kernels.RBF(length_scale=length)
    settings: dict[str, Make] = {
        f"GPUCB(beta={beta})": lambda seed, b=beta: aw.GPUCB(kernel, noise=0.1, beta=b, dim=d, seed=seed)
        for beta in (0.25, 1.0, 2.0, 4.0)
    }
    return world, lambda seed: aw.Auto(d, seed=seed), settings


def nothing(K: int, d: int) -> tuple[Any, Make, dict[str, Make]]:
    return NoSignal(K, d), lambda seed: aw.Auto(d, K, seed=seed), {"UCB1()": lambda seed: aw.UCB1(K, seed=seed)}


# name: (the world and its agents, horizon, the ratio that is promised)
WORLDS: dict[str, tuple[Callable[[], Any], int, float]] = {
    "linear, 5 arms, 5 features, noise .25": (lambda: linear(5, 5, 0.25, False), 5000, 1.3),
    "linear, 5 arms, 5 features, noise .1": (lambda: linear(5, 5, 0.1, False), 5000, 1.3),
    "linear, 10 arms, 20 features, noise .1": (lambda: linear(10, 20, 0.1, False), 5000, 1.3),
    "linear per arm, 5 arms, 5 features, noise .25": (lambda: linear(5, 5, 0.25, True), 5000, 1.3),
    "linear per arm, 5 arms, 5 features, noise .1": (lambda: linear(5, 5, 0.1, True), 5000, 1.3),
    "linear per arm, 10 arms, 20 features, noise .1": (lambda: linear(10, 20, 0.1, True), 5000, 1.3),
    "Gaussian process, 30 arms": (lambda: gaussian(30, 1, 0.3), 2000, 1.5),
    "Gaussian process, 10 arms x 20 contexts": (lambda: gaussian(10, 20, 0.5), 1500, 1.5),
    "no signal, 2 arms, 5 columns": (lambda: nothing(2, 5), 5000, 1.5),
    "no signal, 5 arms, 10 columns": (lambda: nothing(5, 10), 5000, 1.5),
    "no signal, 10 arms, 20 columns": (lambda: nothing(10, 20), 5000, 1.5),
}


def regret(world: Any, make: Make, horizon: int, seed: int) -> float:
    agent, total = make(seed), 0.0
    for block in world.blocks(horizon=horizon, seed=seed):
        contexts = None if agent.sees == "nothing" else block.view(agent.sees)
        arms = agent.play(contexts, block.rewards).arms
        total += float((block.expected.max(axis=1) - block.expected[np.arange(len(arms)), arms]).sum())
    return total


def blind_to(n_arms: int) -> Make:
    return lambda seed: aw.BetaThompson(n_arms, seed=seed)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=100, metavar="SEED")
    parser.add_argument("--worlds", nargs="+", metavar="WORD", help="worlds whose name begins with one of these")
    options = parser.parse_args()
    for name, (build, horizon, promised) in WORLDS.items():
        if options.worlds and not name.startswith(tuple(options.worlds)):
            continue
        world, auto, settings = build()
        seeds = range(options.first, options.first + options.seeds)
        rival = {label: np.array([regret(world, make, horizon, seed) for seed in seeds])
                 for label, make in settings.items()}  # fmt: skip
        best = min(rival, key=lambda label: rival[label].mean())
        start = time.process_time()
        ours = np.array([regret(world, auto, horizon, seed) for seed in seeds])
        us = (time.process_time() - start) / (options.seeds * horizon) * 1e6
        ratio = ours.mean() / rival[best].mean()
        error = (ours - ratio * rival[best]).std(ddof=1) / np.sqrt(options.seeds) / rival[best].mean()
        median = np.median(ours / rival[best])
        if isinstance(world, NoSignal):
            textbook = np.array([regret(world, blind_to(world.n_arms), horizon, seed) for seed in seeds])
            ratio_to = ours.mean() / textbook.mean()
            spread = (ours - ratio_to * textbook).std(ddof=1) / np.sqrt(options.seeds) / textbook.mean()
            note = f"ratio {ratio_to:.2f} +- {spread:.2f}"
            common.report(name, f"{ours.mean():.1f}", "BetaThompson", f"{textbook.mean():.1f}", 1.0 / ratio_to, note)
        common.report(name, f"{ours.mean():.1f}", best, f"{rival[best].mean():.1f}", 1.0 / ratio,
                      f"ratio {ratio:.2f} +- {error:.2f}, median {median:.2f} (promised {promised}); "
                      f"T={horizon}, {us:.0f} us")  # fmt: skip


if __name__ == "__main__":
    main()
