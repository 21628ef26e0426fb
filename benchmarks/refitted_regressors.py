"""What a decision costs over a scikit-learn regressor that is fitted again at doubling times.

    python -m benchmarks.refitted_regressors [--rounds 10000] [--arms 3]

Processor time of ``play`` (choosing, learning and fitting together) over the rounds, on a generated world whose rewards
are not linear; OpenMP is left as the machine has it, so that a missing thread limit would show.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

import armwise as aw


def world(T: int, K: int, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    contexts = rng.random((T, d))
    means = np.column_stack([0.2 + 0.6 * (contexts[:, a % d] > contexts[:, (a + 1) % d]) for a in range(K)])
    return contexts, (rng.random((T, K)) < means).astype(float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--arms", type=int, default=3)
    args = parser.parse_args()
    contexts, rewards = world(args.rounds, args.arms)
    regressors = {
        "Ridge": Ridge(),
        "DecisionTree(max_depth=5)": DecisionTreeRegressor(max_depth=5, random_state=0),
        "HistGradientBoosting": HistGradientBoostingRegressor(random_state=0),
        "RandomForest(20 trees)": RandomForestRegressor(20, min_samples_leaf=5, random_state=0),
    }
    print(f"{args.rounds} rounds, {args.arms} arms, refit=2: milliseconds per decision, reward per decision")
    for name, regressor in regressors.items():
        for agent in (
            aw.SquareCB(6, n_arms=args.arms, regressor=regressor, refit=2.0, seed=1),
            aw.RegCB(6, n_arms=args.arms, regressor=regressor, refit=2.0, seed=1),
        ):
            before = time.process_time()
            reward = agent.play(contexts, rewards).rewards.mean()
            spent = 1e3 * (time.process_time() - before) / args.rounds
            print(f"{type(agent).__name__:9s} {name:27s} {spent:7.3f} ms  {reward:.3f}")


if __name__ == "__main__":
    main()
