"""What ``offline.fit`` learns from a log: accuracy on unseen rows of a multiclass table, beside weighted regression.

    python -m benchmarks.fit_multiclass FILE [--label COLUMN] [--seeds 3] [--first-seed 100]

FILE is any CSV or Parquet table with a column of classes (``--label``; by default "target", "class", "label", or the
last) and numbers. Of the rows, 70 % become a uniform log: each shows one class at random and says whether it was right.
``fit`` learns from that log alone, with its defaults (its number of radial features was chosen on the digits and
letters of UCI, with other splits); so does logistic regression on scaled numbers, weighted by reward / p. Both are
asked about the other 30 %. A share of 1 is every row right; guessing has 1 / classes.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

import armwise as aw

_LABELS = ("target", "class", "label")


def table(path: Path, label: str | None) -> tuple[np.ndarray, np.ndarray]:
    """The numbers (n, d) and the classes 0, ..., K - 1."""
    import pandas as pd

    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, sep=None, engine="python")
    name = label or next((each for each in _LABELS if each in frame.columns), frame.columns[-1])
    classes = np.unique(frame[name].astype(str), return_inverse=True)[1]
    return frame.drop(columns=name).select_dtypes("number").to_numpy(np.float64), classes


def accuracies(X: np.ndarray, classes: np.ndarray, seed: int) -> tuple[float, float, str]:
    """The share of unseen rows that ``fit`` and weighted logistic regression get right, and how ``fit`` learnt."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng, K = np.random.default_rng([seed, len(X)]), int(classes.max()) + 1
    order = rng.permutation(len(X))
    train, test = order[: int(0.7 * len(X))], order[int(0.7 * len(X)) :]
    arms = rng.integers(0, K, len(train))
    right = (arms == classes[train]).astype(float)
    log = aw.offline.Log(
        contexts=X[train], arms=arms, rewards=right, probabilities=np.full(len(train), 1 / K), n_arms=K
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = aw.offline.fit(log, seed=seed)
    plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    plain.fit(X[train][right > 0], arms[right > 0])
    ours = float(np.mean(np.asarray(fitted.policy.many(X[test])) == classes[test]))
    return ours, float(np.mean(plain.predict(X[test]) == classes[test])), fitted.learner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--label")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=100)
    args = parser.parse_args()
    X, classes = table(args.file, args.label)
    print(f"{args.file.name}: {len(X):,} rows, {X.shape[1]} numbers, {int(classes.max()) + 1} classes")
    found = []
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        ours, plain, how = accuracies(X, classes, seed)
        found.append((ours, plain))
        print(f"seed {seed}: fit {ours:.4f} ({how}), weighted logistic regression {plain:.4f}", flush=True)
    ours, plain = np.mean(found, axis=0)
    print(f"mean of {len(found)}: fit {ours:.4f}, weighted logistic regression {plain:.4f}")


if __name__ == "__main__":
    main()
