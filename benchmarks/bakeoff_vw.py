"""Vowpal Wabbit in the bake-off: its native driver with --cbify over a set, as it comes and at the best of 36.

The 36 are six algorithms x learning rates 1, 3, 10 x two encodings, with costs -1 and 0 (the better of the two codings
of the bake-off paper); ``VW default`` and ``VW SquareCB`` are --cb_explore_adf without and with --squarecb, categories,
and VW's own costs 0 and 1. Numbers are divided by their largest absolute value; as categories, columns of whole numbers
with at most 12 values in the first 200 rows become names.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ALGORITHMS = (
    "--epsilon 0 --cb_type mtr",
    "--epsilon 0.02 --cb_type mtr",
    "--bag 4 --greedify --epsilon 0 --cb_type mtr",
    "--cover 4 --nounif --psi 0.1 --cb_type dr",
    "--regcbopt --mellowness 1e-3 --cb_type mtr",
    "--squarecb --gamma_scale 100 --cb_type mtr",
)
DEFAULTS = {"VW default": "categories", "VW SquareCB": "categories --squarecb"}
GRID = tuple(
    f"{encoding} {algorithm} -l {rate}"
    for encoding in ("numbers", "categories")
    for algorithm in ALGORITHMS
    for rate in (1, 3, 10)
)
BEST = f"VW best of {len(GRID)}"
NAMES = (*DEFAULTS, *(f"VW {setting}" for setting in GRID))
_CATEGORIES, _LOOK = 12, 200  # values at most, in so many rows


def lines(X: np.ndarray, y: np.ndarray, encoding: str) -> list[str]:
    """The set as VW's multiclass text.

    >>> lines(np.array([[1.0, 0.5], [2.0, -1.0]]), np.array([0, 1]), "categories")
    ['1 | x0=1 x1:0.5', '2 | x0=2 x1:-1']
    >>> lines(np.array([[1.0, 0.5], [2.0, -1.0]]), np.array([0, 1]), "numbers")
    ['1 | x0:0.5 x1:0.5', '2 | x0:1 x1:-1']
    """
    some, largest = X[:_LOOK], np.abs(X).max(axis=0)
    scaled = X / np.where(largest > 0, largest, 1.0)
    names = [
        encoding == "categories" and bool((column == np.round(column)).all()) and len(np.unique(column)) <= _CATEGORIES
        for column in some.T
    ]
    text = []
    for row, numbers, label in zip(X, scaled, y, strict=True):
        words = [
            f"x{j}={value:g}" if name else f"x{j}:{number:.6g}"
            for j, (name, value, number) in enumerate(zip(names, row, numbers, strict=True))
            if name or number
        ]
        text.append(f"{label + 1} | {' '.join(words)}")
    return text


def loss(X: np.ndarray, y: np.ndarray, name: str) -> float:
    """The progressive 0/1 loss of one of ``NAMES`` on a set."""
    import vowpalwabbit

    encoding, *flags = DEFAULTS.get(name, name.removeprefix("VW ")).split()
    if name not in DEFAULTS:
        flags += ["--loss0", "-1", "--loss1", "0"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "set.vw"
        file.write_text("\n".join(lines(X, y, encoding)) + "\n")
        # The whole file is read while the workspace is made.
        driver = vowpalwabbit.Workspace(
            f"--cbify {int(y.max()) + 1} --cb_explore_adf {' '.join(flags)} --quiet -d {file}"
        )
        total = float(driver.get_sum_loss())
        driver.finish()
    return total / len(y)


def version() -> str:
    """Of the package that runs: losses of another one are not comparable to the last digit."""
    import vowpalwabbit

    return str(vowpalwabbit.__version__)


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """VW's rows of each set as three: both defaults, and the best of the grid, with its setting.

    >>> own = {"set": "s", "n": 9}
    >>> rows = [own | {"agent": f"VW {setting}", "loss": 0.5 - 0.01 * i} for i, setting in enumerate(GRID)]
    >>> summary([*rows, own | {"agent": "VW default", "loss": 0.7}])
    [{'set': 's', 'n': 9, 'agent': 'VW default', 'loss': 0.7}, {'set': 's', 'n': 9, 'agent': 'VW best of 36', \
'loss': 0.15, 'flags': 'categories --squarecb --gamma_scale 100 --cb_type mtr -l 10'}]
    """
    kept = [row for row in rows if row["agent"] in DEFAULTS]
    for name in sorted({row["set"] for row in rows}):
        grid = [row for row in rows if row["set"] == name and row["agent"] not in DEFAULTS]
        broken = [row for row in grid if "loss" not in row]
        if broken:  # the best of fewer is another number
            kept.append(broken[0] | {"agent": BEST})
        elif grid:
            best = min(grid, key=lambda row: row["loss"])
            kept.append({k: v for k, v in best.items() if k != "us"}
                        | {"agent": BEST, "flags": best["agent"].removeprefix("VW ")})  # fmt: skip
    return kept
