"""The oracle agents at length: what takes too long for the tests, with the numbers printed.

    python -m benchmarks.oracle_bench [calls] [constraints] [elimination] [regret] [long] [scale]

calls        ILoveToConBandits' oracle calls on 1,000 policies up to T = 50,000, and the fitted exponent
constraints  RandomizedUCB's and PolicyElimination's worst violation over random instances, N to 500, K to 10
elimination  200 seeded runs of PolicyElimination at delta = 0.05: how often the best policy is eliminated
regret       EpochGreedy, RandomizedUCB, ILoveToConBandits on the same 20 seeds, T = 20,000, two kinds of classes
long         the same three up to T = 320,000: where the curves cross
scale        10,000 explicit policies: seconds for 5,000 rounds
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import armwise as aw
from armwise.agents.oracle.cutting_planes import LeastGap
from armwise.agents.oracle.variance import Sample, spread


class World(NamedTuple):
    """Contexts are rows of ``table``, where policy h plays ``table[i, h]``; policy ``best`` is right everywhere."""

    table: np.ndarray
    means: np.ndarray
    best: int

    def rounds(self, T: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng([1, seed])
        rows = rng.integers(len(self.table), size=T)
        rewards = (rng.random((T, self.means.shape[1])) < self.means[rows]).astype(float)
        return rows[:, None].astype(float), rewards

    def regret(self, contexts: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Pseudo-regret against the best policy, accumulated."""
        rows = contexts[:, 0].astype(int)
        return np.cumsum(self.means[rows].max(axis=1) - self.means[rows, arms])


def planted(n_contexts: int, N: int, K: int, seed: int, agree: float, gap: float = 0.5) -> World:
    """Policies play at random, but each as the best one does in a share ``agree`` of the contexts."""
    rng = np.random.default_rng([0, seed])
    right = rng.integers(K, size=n_contexts)
    table = rng.integers(K, size=(n_contexts, N))
    table = np.where(rng.random((n_contexts, N)) < agree, right[:, None], table)
    best = int(rng.integers(N))
    table[:, best] = right
    means = np.full((n_contexts, K), 0.5 - gap / 2)
    means[np.arange(n_contexts), right] += gap
    return World(table, means, best)


def calls() -> None:
    for agree in (0.0, 0.9):
        world = planted(200, 1000, 5, seed=0, agree=agree)
        contexts, rewards = world.rounds(50_000, seed=0)
        agent = aw.ILoveToConBandits(aw.FinitePolicies(world.table), 5, seed=0)
        counted: list[tuple[int, int]] = []
        start, T = time.perf_counter(), 0
        for end in [*(2**m for m in range(6, 16)), 50_000]:
            agent.play(contexts[T:end], rewards[T:end])
            T = end
            counted.append((T, agent.oracle_calls))
        seconds = time.perf_counter() - start
        slope = np.polyfit(np.log([t for t, _ in counted]), np.log([c for _, c in counted]), 1)[0]
        print(f"agreement {agree}: calls {counted}")
        print(f"  fitted exponent {slope:.2f} (the paper: 0.5 up to logarithms), {len(agent.weights)} policies in Q, "
              f"{seconds:.1f} s for 50,000 rounds")  # fmt: skip


def constraints(instances: int = 20) -> None:
    rng = np.random.default_rng(0)
    worst_single = worst_mixture = worst_spread = -np.inf
    worst_gap, slowest = 0.0, 0.0
    for _ in range(instances):
        N, K, J = int(rng.integers(2, 501)), int(rng.integers(2, 11)), int(rng.integers(10, 400))
        world = planted(J, N, K, seed=int(rng.integers(1 << 30)), agree=float(rng.choice([0.0, 0.5, 0.9])))
        sample = Sample(world.table.astype(np.uint8), rng.integers(1, 5, size=J).astype(float), K)
        gaps, mu = rng.random(N) * 0.5, 10.0 ** rng.uniform(-2, -0.4) / K
        gaps -= gaps.min()
        c = float(rng.choice([0.0, 10.0 ** rng.uniform(-2, 3)]))
        start = time.perf_counter()
        solved = LeastGap(sample, gaps, mu, c).solve()
        slowest = max(slowest, time.perf_counter() - start)
        v = sample.variances(solved.P, mu)
        Q = rng.dirichlet(np.full(N, 0.05), size=2000)
        worst_single = max(worst_single, float((v - np.maximum(4 * K, c * gaps**2)).max()))
        worst_mixture = max(worst_mixture, float((Q @ v - np.maximum(4 * K, c * (Q @ gaps) ** 2)).max()))
        worst_gap = max(worst_gap, solved.gap)
        worst_spread = max(worst_spread, spread(sample, mu, np.full(N, 1 / N))[1] - 2 * K)
    print(f"RandomizedUCB, {instances} instances: worst violation of a policy {worst_single:.1e}, of 2,000 sampled Q "
          f"each {worst_mixture:.1e} (allowed 1e-6)")  # fmt: skip
    print(f"  objective within {worst_gap:.1e} of the least, slowest {slowest:.1f} s")
    print(f"PolicyElimination: worst v - 2K {worst_spread:.1e}")


def elimination(runs: int = 200, T: int = 3000) -> None:
    lost = dropped = 0
    start = time.perf_counter()
    for seed in range(runs):
        world = planted(2, 10, 2, seed=seed, agree=0.0, gap=0.9)
        agent = aw.PolicyElimination(aw.FinitePolicies(world.table), 2, contexts=[[0.0], [1.0]], seed=seed)
        agent.play(*world.rounds(T, seed))
        lost += world.best not in agent.survivors
        dropped += 10 - len(agent.survivors)
    seconds = time.perf_counter() - start
    print(f"PolicyElimination, {runs} runs of {T} rounds: the best policy eliminated in {lost} (delta allows "
          f"{runs / 20:.0f}), {dropped / runs:.1f} of 10 policies a run, {seconds:.0f} s")  # fmt: skip


AGENTS: dict[str, Callable[[aw.FinitePolicies, int, int], aw.Agent]] = {
    "EpochGreedy, c = 1": lambda oracle, K, seed: aw.EpochGreedy(oracle, K, seed=seed),
    # 2 epsilon_l s(l) <= 1, as the proof asks, with epsilon_l = sqrt(2 K ln(N / delta) / l)
    "EpochGreedy, c = 0.35": lambda oracle, K, seed: aw.EpochGreedy(oracle, K, scale=8**0.5, seed=seed),
    "RandomizedUCB": lambda oracle, K, seed: aw.RandomizedUCB(oracle, K, seed=seed),
    "ILoveToConBandits": lambda oracle, K, seed: aw.ILoveToConBandits(oracle, K, seed=seed),
    # the proof's psi = 100 keeps every b_pi far below 2K at these horizons: Q explores all policies alike
    "ILoveToCon..., psi = 0.3": lambda oracle, K, seed: aw.ILoveToConBandits(oracle, K, psi=0.3, seed=seed),
}


def best_found(agent: aw.Agent) -> int:
    if isinstance(agent, aw.ILoveToConBandits):
        return int(agent.leader)
    return int(agent._own().best())  # type: ignore[attr-defined]


def regret(seeds: int = 20, T: int = 20_000) -> None:
    for agree, K, N in ((0.9, 2, 100), (0.0, 2, 100)):
        print(f"{N} policies that agree with the best in {agree:.0%} of 50 contexts, K = {K}, T = {T}, {seeds} seeds; "
              f"uniform arms lose {0.5 * (1 - 1 / K) * T:.0f}")  # fmt: skip
        for name, make in AGENTS.items():
            losses, found = [], 0
            for seed in range(seeds):
                world = planted(50, N, K, seed, agree)
                contexts, rewards = world.rounds(T, seed)
                agent = make(aw.FinitePolicies(world.table), K, seed)
                losses.append(world.regret(contexts, agent.play(contexts, rewards).arms)[-1])
                found += np.array_equal(world.table[:, best_found(agent)], world.table[:, world.best])
            error = np.std(losses, ddof=1) / np.sqrt(seeds)
            print(
                f"  {name:<22} regret {np.mean(losses):6.0f} +- {error:.0f}, best policy found in {found}", flush=True
            )


def long(seeds: int = 1, T: int = 320_000) -> None:
    ends = [20_000, 40_000, 80_000, 160_000, 320_000]
    print(f"mean regret of {seeds} seeds, 100 policies, K = 2, agreement 0.9, at T = {ends}")
    for name, make in AGENTS.items():
        curves = []
        for seed in range(seeds):
            world = planted(50, 100, 2, seed, 0.9)
            contexts, rewards = world.rounds(T, seed)
            arms = make(aw.FinitePolicies(world.table), 2, seed).play(contexts, rewards).arms
            curves.append(world.regret(contexts, arms)[[end - 1 for end in ends]])
        means = np.mean(curves, axis=0)
        slope = np.polyfit(np.log(ends), np.log(means), 1)[0]
        print(f"  {name:<22} {means.round().astype(int).tolist()}, exponent {slope:.2f}", flush=True)


def scale(N: int = 10_000, K: int = 5, T: int = 5000) -> None:
    for agree in (0.9, 0.0):
        world = planted(1000, N, K, seed=0, agree=agree)
        contexts, rewards = world.rounds(T, seed=0)
        oracle = aw.FinitePolicies(world.table)
        agents = [make(oracle, K, 0) for name, make in AGENTS.items() if "," not in name or name.endswith("c = 1")]
        agents.append(aw.PolicyElimination(oracle, K, contexts=np.arange(1000)[:, None], seed=0))
        for agent in agents:
            start = time.perf_counter()
            agent.play(contexts, rewards)
            print(f"N = {N}, K = {K}, 1,000 contexts, agreement {agree}: {type(agent).__name__} {T} rounds in "
                  f"{time.perf_counter() - start:.1f} s", flush=True)  # fmt: skip


SECTIONS = {f.__name__: f for f in (calls, constraints, elimination, regret, long, scale)}


def main(arguments: list[str] | None = None) -> None:
    """Run the sections named, or all but the long one."""
    asked = sys.argv[1:] if arguments is None else arguments
    if unknown := [name for name in asked if name not in SECTIONS]:
        sys.exit(f"unknown section {unknown[0]!r}: expected some of {', '.join(SECTIONS)}\n{__doc__}")
    for name in asked or [name for name in SECTIONS if name != "long"]:
        print(f"--- {name}")
        SECTIONS[name]()


if __name__ == "__main__":
    main()
