"""What the benchmarks share: arguments, turns on the clock, where the data are, and rows for RESULTS.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

ROWS = "ARMWISE_BENCH_ROWS"  # names a file: rows are then collected there too (python -m benchmarks does)


def parser(doc: str | None, *, data: str = "", peers: bool = False) -> argparse.ArgumentParser:
    """The arguments that benchmarks have in common: ``data`` says what the folder holds."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if data:
        made.add_argument("--data", type=Path, metavar="FOLDER", help=f"folder with {data} (or a subfolder with it)")
    if peers:
        made.add_argument("--peers-python", metavar="PYTHON", help="an interpreter that has the peers (default: made)")
    return made


def report(what: str, ours: str, peer: str, theirs: str, ratio: float | None, note: str = "") -> None:
    """Print one comparison; the ratio says how many times better armwise is, in whatever is measured."""
    shown = "" if ratio is None else f"{ratio:.3g}x"
    print(f"{what:52s} armwise {ours:>20s}   {peer} {theirs:>18s}   {shown:>6s}  {note}".rstrip(), flush=True)
    if ROWS in os.environ:
        row = {"what": what, "ours": ours, "peer": peer, "theirs": theirs, "ratio": ratio, "note": note}
        with open(os.environ[ROWS], "a") as file:
            file.write(json.dumps(row) + "\n")


def in_turns(ours: Callable[[int], Any], theirs: Callable[[int], Any], turns: int) -> tuple[list[float], list[float]]:
    """Seconds of each turn of both sides, one after the other, so that both meet the same machine. Turn -1 warms up."""
    ours(-1), theirs(-1)
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(turns):
        for side, step in zip(times, (ours, theirs), strict=True):
            start = time.perf_counter()
            step(turn)
            side.append(time.perf_counter() - start)
    return times


def compare(what: str, peer: str, sides: tuple[list[float], list[float]], each: int = 1, note: str = "") -> None:
    """Report two lists of seconds, each for ``each`` decisions: medians, their ratio, and that of the fastest turns."""
    mine, other = (statistics.median(side) / each for side in sides)
    fastest = min(sides[1]) / min(sides[0])
    note = f"fastest turns {fastest:.3g}x" + (f"; {note}" if note else "")
    report(what, duration(mine), peer, duration(other), other / mine, note)


def duration(seconds: float) -> str:
    """A time with three digits and a unit.

    >>> duration(0.00001234), duration(2.5)
    ('12.3 us', '2.5 s')
    """
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale or unit == "us":
            return f"{seconds / scale:.3g} {unit}"
    raise AssertionError


def find(folder: Path, name: str) -> Path:
    """A file of the data folder, wherever it lies in it; of several the first, and which one is said."""
    found = sorted(folder.rglob(name))
    if not found:
        raise SystemExit(f"{folder} has no {name}")
    if len(found) > 1:
        where = ", ".join(str(path.parent.relative_to(folder)) for path in found)
        print(f"{folder} has {name} in {where}: the first is read", file=sys.stderr, flush=True)
    return found[0]


def labelled(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels 0..K-1 of a Parquet file whose label column is ``label`` or ``class``, or else the last."""
    import pandas as pd

    frame = pd.read_parquet(path)
    label = next((name for name in ("label", "class") if name in frame), frame.columns[-1])
    return frame.drop(columns=label).to_numpy(float), pd.factorize(frame[label], sort=True)[0].astype(np.int64)


def as_rounds(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features scaled to [0, 1] with a constant, labels, rewards (T, K); shuffled."""
    spread = X.max(axis=0) - X.min(axis=0)
    X = np.column_stack([(X - X.min(axis=0)) / np.where(spread > 0, spread, 1.0), np.ones(len(X))])
    order = np.random.default_rng(seed).permutation(len(X))
    return np.ascontiguousarray(X[order]), y[order], np.eye(int(y.max()) + 1)[y[order]]


def vw_lines(X: np.ndarray, y: np.ndarray) -> list[str]:
    """VW's multiclass text (for --cbify): its own constant takes the place of ours.

    Names, not numbers: VW hashes a name, but takes a number for the index itself, and then the copies of a row that
    --cbify makes for the arms collide (on optdigits that costs it 0.4 of error).
    """
    return [
        f"{label + 1} | " + " ".join(f"f{j}:{v:.6g}" for j, v in enumerate(row[:-1]) if v)
        for row, label in zip(X, y, strict=True)
    ]


def machine() -> str:
    """The processor, its cores, the system and Python, in one line."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


def versions(*names: str) -> dict[str, str]:
    """The versions of those packages that are installed here."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
