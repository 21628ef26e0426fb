"""LogisticThompson on hashed features: the time of a decision and of a reward must not grow with the dimension.

    python -m benchmarks.logistic_sparse [--rounds 3000] [--arms 10] [--non-zeros 50] [--batch-size 1]

Prints microseconds per decision (choose) and per reward (learn) at 2^14, 2^16 and 2^18 features, and their
ratio to the smallest.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.sparse import csr_array

import armwise as aw
from benchmarks import common


def worlds(rng: np.random.Generator, dim: int, arms: int, non_zeros: int, rounds: int) -> list[csr_array]:
    """Contexts whose every arm has ``non_zeros`` features at random of ``dim``."""
    indptr = np.arange(0, (arms + 1) * non_zeros, non_zeros)
    contexts = []
    for _ in range(rounds):
        indices = np.concatenate([np.sort(rng.choice(dim, non_zeros, replace=False)) for _ in range(arms)])
        contexts.append(csr_array((rng.normal(size=indices.size), indices, indptr), shape=(arms, dim)))
    return contexts


def measure(dim: int, arms: int, non_zeros: int, rounds: int, batch_size: int) -> tuple[float, float]:
    """Median microseconds of ``choose``, and of ``learn`` averaged over a batch (the last of which fits it)."""
    rng = np.random.default_rng(0)
    contexts = worlds(rng, dim, arms, non_zeros, rounds)
    rewards = (rng.random(rounds) < 0.5).astype(float)
    agent = aw.LogisticThompson(dim, batch_size=batch_size, seed=1)
    choosing, learning = np.empty(rounds), np.empty(rounds)
    for t, X in enumerate(contexts):
        start = time.perf_counter()
        choice = agent.choose(X)
        chosen = time.perf_counter()
        agent.learn(X, choice, rewards[t])
        learning[t] = time.perf_counter() - chosen
        choosing[t] = chosen - start
    batches = learning[: rounds // batch_size * batch_size].reshape(-1, batch_size).mean(axis=1)
    return 1e6 * float(np.median(choosing)), 1e6 * float(np.median(batches))


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = common.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--arms", type=int, default=10)
    parser.add_argument("--non-zeros", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=1)
    asked = parser.parse_args(arguments)
    measure(2**10, asked.arms, asked.non_zeros, 2 * asked.batch_size, asked.batch_size)  # compiles
    first = None
    for power in (14, 16, 18):
        runs = [measure(2**power, asked.arms, asked.non_zeros, asked.rounds, asked.batch_size) for _ in range(3)]
        choose, learn = 1e-6 * np.min(runs, axis=0)  # of three: the least disturbed
        if first is None:
            first = choose, learn
            continue
        for step, now, then in (("choose", choose, first[0]), ("learn", learn, first[1])):
            common.report(f"LogisticThompson, {asked.arms} arms, 2^{power} features: {step}", common.duration(now),
                          "itself at 2^14", common.duration(then), then / now, "flat: 1")  # fmt: skip


if __name__ == "__main__":
    main()
