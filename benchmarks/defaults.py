"""Agents as their constructors make them, on classification sets as bandits, beside Vowpal Wabbit on the same rows.

    python -m benchmarks.defaults --data FOLDER [--agents LinUCB RegCB] [--sets vowel yeast] [--rows 20000]

FOLDER holds Parquet sets (numbers, then ``label``) in the order in which they are played, and a JSON file of VW's
progressive losses of each set: ``default`` and ``best`` (of 36). A row is a round: the agent names a class and learns
only whether it was right. Columns of whole numbers with at most 12 values in the first 200 rows are one-hot; the
others are divided by their largest absolute value (``--numbers standard``: mean 0, deviation 1); a constant is added.

For each agent: the geometric mean of loss / VW's loss over the sets, and on how many sets it is significantly worse
(the difference of two progressive losses of n rounds, beyond 1.96 standard errors, as in the bake-off of Bietti,
Agarwal and Langford 2021). No argument of an agent is set here: what is measured is the default.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import armwise as aw
from armwise.ridge import Ridge
from benchmarks import common

FEW_VALUES, LOOKED_AT = 12, 200
Make = Callable[[int, int], aw.Agent]

AGENTS: dict[str, Make] = {
    "LinUCB": lambda d, K: aw.LinUCB(d, n_arms=K, seed=1),
    "LinThompson": lambda d, K: aw.LinThompson(d, n_arms=K, seed=1),
    "RegCB": lambda d, K: aw.RegCB(d, n_arms=K, seed=1),
    "RegCB elimination": lambda d, K: aw.RegCB(d, n_arms=K, elimination=True, seed=1),
    "SquareCB": lambda d, K: aw.SquareCB(d, n_arms=K, seed=1),
    "EpsilonGreedy": lambda d, K: aw.EpsilonGreedy(model=Ridge(d, n_models=K), seed=1),
    "OnlineCover": lambda d, K: aw.OnlineCover(aw.LinearOracle(d, intercept=False), K, seed=1),
    "EpochGreedy": lambda d, K: aw.EpochGreedy(aw.LinearOracle(d, intercept=False), K, seed=1),
    "ILoveToConBandits": lambda d, K: aw.ILoveToConBandits(aw.LinearOracle(d, intercept=False), K, seed=1),
}


def encoded(X: np.ndarray, numbers: str = "largest") -> np.ndarray:
    """Categories one-hot, numbers scaled, and a constant.

    >>> encoded(np.array([[1.0, 0.5], [3.0, 2.0]])).tolist()
    [[1.0, 0.0, 0.25, 1.0], [0.0, 1.0, 1.0, 1.0]]
    """
    columns = []
    for x in X.T:
        if np.all(x % 1 == 0) and np.unique(x[:LOOKED_AT]).size <= FEW_VALUES:
            columns += [(x == value).astype(float) for value in np.unique(x)]
        elif numbers == "standard":
            columns.append((x - x.mean()) / (x.std() or 1.0))
        else:
            columns.append(x / (np.abs(x).max() or 1.0))
    return np.ascontiguousarray(np.column_stack([*columns, np.ones(len(X))]))


def significantly_worse(ours: float, theirs: float, n: int) -> bool:
    """Whether a loss is above another's by more than 1.96 standard errors of their difference."""
    spread = math.sqrt((ours * (1 - ours) + theirs * (1 - theirs)) / n)
    return ours - theirs > 1.96 * spread


def losses(make: Make, folder: Path, names: list[str], rows: int, numbers: str) -> dict[str, tuple[float, int]]:
    """Progressive loss and number of rounds of each set."""
    found = {}
    for name in names:
        X, y = common.labelled(folder / f"{name}.parquet")
        X, y = encoded(X, numbers)[:rows], y[:rows]
        K = int(y.max()) + 1
        found[name] = (1.0 - float(make(X.shape[1], K).play(X, np.eye(K)[y]).rewards.mean()), len(y))
    return found


def compare(found: dict[str, tuple[float, int]], vw: dict[str, Any], which: str) -> tuple[float, list[str]]:
    """Geometric mean of the ratio of losses, and the sets on which ours is significantly worse."""
    ratios = [max(loss, 0.5 / n) / max(vw[name][which], 0.5 / n) for name, (loss, n) in found.items()]
    worse = [name for name, (loss, n) in found.items() if significantly_worse(loss, vw[name][which], n)]
    return float(np.exp(np.mean(np.log(ratios)))), worse


def main(arguments: list[str] | None = None) -> None:
    parser = common.parser(__doc__, data="Parquet sets and vw*.json")
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS))
    parser.add_argument("--sets", nargs="+", help="only these")
    parser.add_argument("--rows", type=int, default=20_000, help="of each set at most; VW's losses are of all rows")
    parser.add_argument("--numbers", choices=("largest", "standard"), default="largest")
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("--data is needed")
    vw = json.loads(next(options.data.glob("vw*.json")).read_text())
    names = options.sets or sorted(vw)
    for kind in options.agents:
        found = losses(AGENTS[kind], options.data, names, options.rows, options.numbers)
        for which in ("default", "best"):
            ratio, worse = compare(found, vw, which)
            what = f"{kind}: loss / VW's {which}, geometric mean of {len(found)} sets"
            common.report(what, f"{ratio:.3f}", "VW", "1", 1.0 / ratio, f"significantly worse on {len(worse)}: {worse}")


if __name__ == "__main__":
    main()
