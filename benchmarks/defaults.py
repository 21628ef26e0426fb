"""Agents as their constructors make them, on classification sets as bandits, beside Vowpal Wabbit on the same rows.

    python -m benchmarks.defaults --data FOLDER [--agents LinUCB RegCB] [--sets vowel yeast] [--results FILE]

FOLDER holds Parquet sets (numbers, then ``label``) in the order in which they are played, and a JSON file of VW's
progressive losses of each set: ``default`` and ``best`` (of 36). A row is a round: the agent names a class and learns
only whether it was right. Columns of whole numbers with at most 12 values in the first 200 rows are one-hot; the
others are divided by their largest absolute value (``--numbers standard``: mean 0, deviation 1); a constant is added.

For each agent: the geometric mean of loss / VW's loss over the sets, and on how many sets it is significantly worse
(the difference of two progressive losses of n rounds, beyond 1.96 standard errors, as in the bake-off of Bietti,
Agarwal and Langford 2021). No argument of an agent is set here: what is measured is the default. The same numbers are
given for the sets with 100 columns or more after encoding, and for a third of the sets, by a hash of the name. That
third was meant to be held out since the split was made, but settings of EpochGreedy, OnlineCover and ILoveToConBandits
were tried on sets that fall into it, so for these three it is no test. With ``--results FILE`` (one JSON line per agent
and set) a run that was interrupted continues where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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


class Result(NamedTuple):
    """An agent's progressive loss on one set, over ``n`` rounds and ``dim`` columns."""

    loss: float
    n: int
    dim: int


def played(make: Make, path: Path, rows: int, numbers: str) -> Result:
    """The progressive loss of a set's rows in their order."""
    X, y = common.labelled(path)
    X, y = encoded(X, numbers)[:rows], y[:rows]
    K = int(y.max()) + 1
    rewards = make(X.shape[1], K).play(X, np.eye(K)[y]).rewards
    return Result(1.0 - float(rewards.mean()), len(y), X.shape[1])


def compare(found: dict[str, Result], vw: dict[str, Any], which: str) -> tuple[float, list[str]]:
    """Geometric mean of the ratio of losses, and the sets on which ours is significantly worse."""
    ratios = [max(loss, 0.5 / n) / max(vw[name][which], 0.5 / n) for name, (loss, n, _) in found.items()]
    worse = [name for name, (loss, n, _) in found.items() if significantly_worse(loss, vw[name][which], n)]
    return float(np.exp(np.mean(np.log(ratios)))), worse


def in_the_third(name: str) -> bool:
    """Whether a set is in the third by which settings are judged, not chosen.

    >>> [in_the_third(name) for name in ("vowel", "yeast", "adult")].count(True) < 3
    True
    """
    return hashlib.sha256(name.encode()).digest()[0] % 3 == 0


PARTS: dict[str, Callable[[str, Result], bool]] = {
    "all": lambda name, result: True,
    "100 columns or more": lambda name, result: result.dim >= 100,
    "the third": lambda name, result: in_the_third(name),
}


def main(arguments: list[str] | None = None) -> None:
    parser = common.parser(__doc__, data="Parquet sets and vw*.json")
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS))
    parser.add_argument("--sets", nargs="+", help="only these")
    parser.add_argument("--rows", type=int, default=20_000, help="of each set at most; VW's losses are of all rows")
    parser.add_argument("--numbers", choices=("largest", "standard"), default="largest")
    parser.add_argument("--results", type=Path, help="a file of results, continued where it stopped")
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("--data is needed")
    vw = json.loads(next(options.data.glob("vw*.json")).read_text())
    names = options.sets or sorted(vw)
    settings = [options.rows, options.numbers]
    known: dict[tuple[str, str], Result] = {}
    if options.results is not None and options.results.exists():
        for line in options.results.read_text().splitlines():
            row = json.loads(line)
            if row["settings"] == settings:
                known[row["agent"], row["set"]] = Result(*row["result"])
    for kind in options.agents:
        found: dict[str, Result] = {}
        for name in names:
            result = known.get((kind, name))
            if result is None:
                result = played(AGENTS[kind], options.data / f"{name}.parquet", options.rows, options.numbers)
                if options.results is not None:
                    row = {"agent": kind, "set": name, "settings": settings, "result": result}
                    with options.results.open("a") as file:
                        file.write(json.dumps(row) + "\n")
            found[name] = result
        for part, holds in PARTS.items():
            chosen = {name: result for name, result in found.items() if holds(name, result)}
            for which in ("default", "best") if chosen else ():
                ratio, worse = compare(chosen, vw, which)
                what = f"{kind}: loss / VW's {which}, {part} ({len(chosen)} sets)"
                note = f"significantly worse on {len(worse)}: {worse}"
                common.report(what, f"{ratio:.3f}", "VW", "1", 1.0 / ratio, note)


if __name__ == "__main__":
    main()
