"""Mistakes on mushroom, shuttle, magic and adult at T = 10,000, beside the totals that papers print.

    python -m benchmarks.published_tables --data FOLDER [FOLDER ...] [--orders 5] [--sets NAME ...] [--agents NAME ...]
                                          [--encoding indicators|codes]

The folders hold mushroom, shuttle, magic and adult as Parquet files with a column ``label`` or ``class``. An agent
names a class and learns only whether it was right; a mistake costs 1. Each order is another permutation of the rows.

``--encoding indicators`` (default): the reader of ``armwise race --data`` turns each category into a column of 0 and 1.
Auto is given these columns; the other agents see them divided by their largest absolute value, and a constant.
``--encoding codes``: each categorical column becomes one column of numbers, the category's position in the alphabet
(-1 where the value is missing), and no column is scaled. The authors of Bayesian forest Thompson sampling encode their
rows like this. The agents other than Auto also see a constant.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import armwise as aw
from armwise.environments.data.frames import labelled_sets
from benchmarks.bakeoff import AGENTS, read, scaled

ROUNDS = 10_000
SETS = ("mushroom", "shuttle", "magic", "adult")
OURS = ("Auto", "LinUCB", "LinThompson", "SquareCB", "FastCB", "RegCB")
# Totals at T = 10,000 (mushroom: all 8,124 rows), as printed; none of them was run here.
PUBLISHED = {
    "NeuralTS (Zhang et al. 2021)": (115, 232, 2_010, 1_760),
    "tree ensembles with Thompson sampling": (69, 170, 1_590, 1_560),
    "Bayesian forest Thompson sampling": (54, 107, 1_490, 1_540),
}
MISSING = "?"  # how mushroom marks a value that nobody recorded


def codes(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The columns with category codes in place of indicators, unscaled, and the labels as 0..K-1."""
    import pandas as pd

    frame = pd.read_parquet(path)
    labels = frame.pop(next(name for name in ("label", "class", "target") if name in frame))
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = pd.Categorical(frame[name].where(frame[name] != MISSING)).codes
    return frame.to_numpy(np.float64), np.unique(labels, return_inverse=True)[1].astype(np.int64)


def errors(X: np.ndarray, y: np.ndarray, make: Callable[[int, int, int], aw.Agent], order: int) -> int:
    """Mistakes of one agent over one order of the rows ``X``, which it sees as they are."""
    rows = np.random.default_rng(order).permutation(len(X))[:ROUNDS]
    rewards = np.zeros((len(rows), int(y.max()) + 1))
    rewards[np.arange(len(rows)), y[rows]] = 1.0
    agent = make(X.shape[1], rewards.shape[1], order)
    contexts = np.ascontiguousarray(X[rows]) if agent.sees != "nothing" else None
    return int(len(rows) - agent.play(contexts, rewards).rewards.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", required=True, metavar="FOLDER")
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--agents", nargs="+", choices=list(AGENTS), default=OURS)
    parser.add_argument("--encoding", choices=("indicators", "codes"), default="indicators")
    args = parser.parse_args()
    files: dict[str, Path] = {}
    for folder in args.data:
        files = labelled_sets(folder) | files
    print("| agent | " + " | ".join(args.sets) + " |\n|---|" + "---:|" * len(args.sets))
    for name, totals in PUBLISHED.items():
        printed = dict(zip(SETS, totals, strict=True))
        print(f"| {name}, as printed | " + " | ".join(f"{printed[each]:,}" for each in args.sets) + " |")
    unscaled = args.encoding == "codes"
    sets = {each: (codes if unscaled else read)(files[each]) for each in args.sets}
    makers = AGENTS | {"Auto": lambda d, K, seed: aw.Auto(d, n_arms=K, seed=seed)}  # AGENTS count a constant column
    for name in args.agents:
        cells, before = [], time.process_time()
        for columns, y in sets.values():
            X = columns
            if name != "Auto":
                X = np.column_stack([X, np.ones(len(X))]) if unscaled else scaled(X)
            totals = [errors(X, y, makers[name], order) for order in range(args.orders)]
            cells.append(f"{np.mean(totals):,.0f} ± {np.std(totals, ddof=1) / np.sqrt(len(totals)):,.0f}")
        decisions = args.orders * sum(min(ROUNDS, len(X)) for X, _ in sets.values())
        spent = 1e6 * (time.process_time() - before) / decisions
        print(f"| {name} | " + " | ".join(cells) + f" | <!-- {spent:.0f} us per decision -->", flush=True)


if __name__ == "__main__":
    main()
