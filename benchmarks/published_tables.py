"""Mistakes on mushroom, shuttle, magic and adult at T = 10,000, beside the totals that papers print.

    python -m benchmarks.published_tables --data FOLDER [FOLDER ...] [--orders 5] [--sets NAME ...] [--agents NAME ...]

The folders hold mushroom, shuttle, magic and adult as Parquet files with a column ``label`` or ``class`` (the reader of
``armwise race --data``: categories become indicators, numbers stay). An agent names a class and learns only whether it
was right; a mistake costs 1. Each order is another permutation of the rows. Auto is given the raw columns; the others
see them divided by their largest absolute value, and a constant.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import armwise as aw
from armwise.environments.frames import labelled_sets
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
DIFFERENCES = """\
What differs from the papers, as far as it is known: rows and their encoding (PMLB's copies of shuttle, magic and adult,
at most 20,000 rows each, adult with the codes of its categories as numbers; mushroom's 22 categories as indicators);
the order of the rows; five orders here, other numbers of runs there; a context per class in NeuralTS (the row put in
the place of the class, zeros elsewhere), one row seen by all arms here; settings searched over there, as they come
here. A difference of a few per cent says nothing."""


def errors(X: np.ndarray, y: np.ndarray, make: Callable[[int, int, int], aw.Agent], raw: bool, order: int) -> int:
    """Mistakes of one agent over one order of the rows."""
    rows = np.random.default_rng(order).permutation(len(X))[:ROUNDS]
    rewards = np.zeros((len(rows), int(y.max()) + 1))
    rewards[np.arange(len(rows)), y[rows]] = 1.0
    seen = X[rows] if raw else scaled(X)[rows]
    agent = make(X.shape[1] + 1, rewards.shape[1], order)
    contexts = np.ascontiguousarray(seen) if agent.sees != "nothing" else None
    return int(len(rows) - agent.play(contexts, rewards).rewards.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", required=True, metavar="FOLDER")
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--agents", nargs="+", choices=list(AGENTS), default=OURS)
    args = parser.parse_args()
    files: dict[str, Path] = {}
    for folder in args.data:
        files = labelled_sets(folder) | files
    print("| agent | " + " | ".join(args.sets) + " |\n|---|" + "---:|" * len(args.sets))
    for name, totals in PUBLISHED.items():
        printed = dict(zip(SETS, totals, strict=True))
        print(f"| {name}, as printed | " + " | ".join(f"{printed[each]:,}" for each in args.sets) + " |")
    sets = {each: read(files[each]) for each in args.sets}
    for name in args.agents:
        cells, before = [], time.process_time()
        for X, y in sets.values():
            totals = [errors(X, y, AGENTS[name], name == "Auto", order) for order in range(args.orders)]
            cells.append(f"{np.mean(totals):,.0f} ± {np.std(totals, ddof=1) / np.sqrt(len(totals)):,.0f}")
        decisions = args.orders * sum(min(ROUNDS, len(X)) for X, _ in sets.values())
        spent = 1e6 * (time.process_time() - before) / decisions
        print(f"| {name} | " + " | ".join(cells) + f" | <!-- {spent:.0f} us per decision -->", flush=True)
    print(f"\n{DIFFERENCES}")


if __name__ == "__main__":
    main()
