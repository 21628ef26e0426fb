"""The bake-off: every agent as it comes, and Auto, over a folder of sets with labels, beside Vowpal Wabbit.

    python -m benchmarks.bakeoff --data FOLDER [--agents NAME ...] [--sets NAME ...] [--workers 2] [--fresh] [--peers]
                                 [--vw auto|run|file|none]

FOLDER holds Parquet or CSV files: a column ``label`` (``class``, ``target``, or else the last one), the others are the
context, as ``armwise race --data`` reads them (categories and texts become indicators). Rows are played in the file's
order: the agent names a class and learns only whether it was right. Auto is given the raw columns; the others see them
divided by their largest absolute value, and a constant. Vowpal Wabbit (both defaults, and the best of 36 settings on
each set; see bakeoff_vw.py) runs too, 38 times per set, except on sets whose losses are in a ``vw_*.json`` beside them:
{set: {"n": rows, "default": loss, "default_squarecb": loss, "best": loss}}. ``--vw run`` runs it on every set,
``--vw file`` only reads, ``--vw none`` leaves it out.

Finished rows are kept in a JSON file (``--rows``), so that a run that was stopped goes on where it was; a set whose
file changed, or an agent whose settings did, runs again. ``--fresh`` runs everything again, as a change of code needs.
``--peers`` (or ``--peers-python``) adds MABWiser, contextualbandits and bayesianbandits on the sets of at most
``--peers-rows`` rows, in an environment of their own; what takes longer than ``--peers-seconds`` on one set is named
and has no loss.
Writes benchmarks/BAKEOFF.md and benchmarks/BAKEOFF.html.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import armwise as aw
from armwise.environments.data.frames import labelled_sets, read_labelled
from armwise.models.ridge import Ridge
from benchmarks import bakeoff_page, bakeoff_peers, bakeoff_vw, common, peers

HERE = Path(__file__).parent
VW_NAMES = {"default": "VW default", "default_squarecb": "VW SquareCB", "best": bakeoff_vw.BEST}

BASES = (aw.LinUCB, aw.SquareCB, aw.RegCB)  # of D3RB and ED2RB

# d counts the constant. Every agent that learns from one context and a model or policy per arm, over all rows of all
# sets; those over features of arms and kernels need crossed columns and take hours: benchmarks.defaults has them.
AGENTS: dict[str, Callable[[int, int, int], aw.Agent]] = {
    "Auto": lambda d, K, seed: aw.Auto(d - 1, n_arms=K, seed=seed),
    "LinUCB": lambda d, K, seed: aw.LinUCB(d, n_arms=K, seed=seed),
    "LinThompson": lambda d, K, seed: aw.LinThompson(d, n_arms=K, seed=seed),
    "SquareCB": lambda d, K, seed: aw.SquareCB(d, n_arms=K, seed=seed),
    "FastCB": lambda d, K, seed: aw.FastCB(d, n_arms=K, seed=seed),
    "RegCB": lambda d, K, seed: aw.RegCB(d, n_arms=K, seed=seed),
    "OnlineCover": lambda d, K, seed: aw.OnlineCover(aw.LinearOracle(d, intercept=False), K, seed=seed),
    "EpochGreedy": lambda d, K, seed: aw.EpochGreedy(aw.LinearOracle(d, K, intercept=False), K, seed=seed),
    "RegCB elimination": lambda d, K, seed: aw.RegCB(d, n_arms=K, elimination=True, seed=seed),
    "SquareCB first order": lambda d, K, seed: aw.SquareCB(d, n_arms=K, first_order=True, seed=seed),
    "EpsilonGreedy": lambda d, K, seed: aw.EpsilonGreedy(model=Ridge(d, n_models=K), seed=seed),
    "ILoveToConBandits": lambda d, K, seed: aw.ILoveToConBandits(aw.LinearOracle(d, intercept=False), K, seed=seed),
    "D3RB": lambda d, K, seed: aw.D3RB([base(d, n_arms=K) for base in BASES], seed=seed),
    "ED2RB": lambda d, K, seed: aw.ED2RB([base(d, n_arms=K) for base in BASES], seed=seed),
    "UCB1, blind": lambda d, K, seed: aw.UCB1(K, seed=seed),
    "BetaThompson, blind": lambda d, K, seed: aw.BetaThompson(K, seed=seed),
    "EpsilonGreedy, blind": lambda d, K, seed: aw.EpsilonGreedy(K, 0.05, seed=seed),
    "Exp3, blind": lambda d, K, seed: aw.Exp3(K, seed=seed),
}


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The columns as ``armwise race --data`` reads them, and the labels as 0..K-1."""
    X, labels = read_labelled(path)
    return X, np.unique(labels, return_inverse=True)[1].astype(np.int64)


def readable(folder: Path, names: list[str] | None = None) -> dict[str, Path]:
    """The sets of a folder, or those of these names, that can be read; the others are said to be left out."""
    found = {name: path for name, path in labelled_sets(folder).items() if not names or name in names}
    for name, path in list(found.items()):
        try:
            read(path)
        except (ValueError, OSError) as error:  # the others are played; pyarrow's errors are ValueErrors
            print(f"left out: {path.name}: {error}", file=sys.stderr, flush=True)
            del found[name]
    if not found:
        raise ValueError(f"no files of these names that can be read in {folder}")
    return found


def scaled(X: np.ndarray) -> np.ndarray:
    """The columns divided by their largest absolute value, and a constant."""
    largest = np.abs(X).max(axis=0)
    return np.column_stack([X / np.where(largest > 0, largest, 1.0), np.ones(len(X))])


def play_peer(path: Path, name: str, seed: int, python: str, seconds: float) -> dict[str, Any]:
    """One peer on one set, in its own interpreter."""
    X, y = read(path)
    row: dict[str, Any] = {"set": path.stem, "agent": name, "n": len(X), "K": int(y.max()) + 1, "d": X.shape[1]}
    row |= {"key": "peer", "constant": 1.0 - float(np.bincount(y).max()) / len(y)}
    return row | ask_peer({"X": scaled(X), "y": y}, name, seed, python, seconds)


def ask_peer(arrays: dict[str, Any], name: str, seed: int, python: str, seconds: float) -> dict[str, Any]:
    """What a peer makes of these columns and labels in its own interpreter: loss and time, or an error."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "set.npz"
        np.savez(file, **arrays)
        words = [python, "-W", "ignore", str(HERE / "bakeoff_peers.py"), str(file), name, str(seed)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return {"error": f"not done after {seconds:g} s"}
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1][:200]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def run_peers(
    sets: list[Path], names: list[str], python: str, rows_file: Path, seed: int, most: int, seconds: float
) -> list[Any]:
    """The peers' rows on the sets of at most ``most`` rows; those that ended before, or timed out, stand."""
    kept = json.loads(rows_file.read_text()) if rows_file.exists() else []
    done = {(row["set"], row["agent"]): row for row in kept if row["key"] == "peer"}
    rows = []
    for path in sets:
        for name in names if len(read(path)[1]) <= most else ():
            if (path.stem, name) not in done:
                row = play_peer(path, name, seed, python, seconds)
                kept.append(row)
                write(rows_file, json.dumps(kept, indent=0))
                print(f"{row['set']}, {name}: {row.get('error') or row['loss']}", file=sys.stderr, flush=True)
                done[path.stem, name] = row
            rows.append(done[path.stem, name])
    return rows


def play(path: Path, name: str, seed: int) -> dict[str, Any]:
    """One agent on one set: its progressive loss and processor time per decision, or what went wrong."""
    X, y = read(path)
    n, d, K = len(X), X.shape[1], int(y.max()) + 1
    row: dict[str, Any] = {"set": path.stem, "agent": name, "n": n, "K": K, "d": d, "key": key(path, name, seed)}
    row["constant"] = 1.0 - float(np.bincount(y).max()) / n  # the best arm in hindsight, always played
    try:
        if name in bakeoff_vw.NAMES:
            start = time.process_time()
            loss = bakeoff_vw.loss(X, y, name)
        else:
            agent = AGENTS[name](d + 1, K, seed)
            contexts: Any = None if agent.sees == "nothing" else (X if name == "Auto" else scaled(X))
            start = time.process_time()
            loss = 1.0 - float(agent.play(contexts, np.eye(K)[y]).rewards.mean())
    except Exception as error:  # one agent that fails must not end the run: the page names it
        return row | {"error": f"{type(error).__name__}: {error}"[:200]}
    return row | {"loss": loss, "us": (time.process_time() - start) / n * 1e6}


def key(path: Path, name: str, seed: int) -> str:
    """What a finished row depends on: the set's bytes, the agent's settings, the seed."""
    if name in bakeoff_vw.NAMES:
        return hashlib.sha256(path.read_bytes() + f"{name} {bakeoff_vw.version()}".encode()).hexdigest()[:16]
    settings = re.sub(r"<[\w.]*?(\w+) object at [^,]*", r"\1", repr(AGENTS[name](3, 2, seed)))  # no addresses
    return hashlib.sha256(path.read_bytes() + f"{name} {settings} {seed}".encode()).hexdigest()[:16]


def in_files(folder: Path) -> set[str]:
    """The sets of which a ``vw_*.json`` has both defaults and the best."""
    return {name for path in folder.glob("vw_*.json") for name, entry in json.loads(path.read_text()).items()
            if set(VW_NAMES) <= set(entry)}  # fmt: skip


def vw_rows(folder: Path, sizes: dict[str, int]) -> list[dict[str, Any]]:
    """The losses of ``vw_*.json`` for the sets of this run; a number of rows that differs is refused."""
    rows = []
    for path in sorted(folder.glob("vw_*.json")):
        for name, entry in json.loads(path.read_text()).items():
            if name not in sizes:
                continue
            if entry.get("n", sizes[name]) != sizes[name]:
                raise SystemExit(f"{path.name}: {name} has {entry['n']} rows, and the set has {sizes[name]}")
            rows += [{"set": name, "agent": VW_NAMES[column], "n": sizes[name], "loss": float(entry[column])}
                     for column in VW_NAMES if column in entry]  # fmt: skip
    return rows


def write(path: Path, text: str) -> None:
    """All of it or nothing: a run that is stopped here leaves the file as it was."""
    draft = path.with_name(path.name + ".new")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)


def played(jobs: list[tuple[Path, str]], workers: int, seed: int) -> Iterator[dict[str, Any]]:
    """The rows of these jobs as they finish."""
    if workers == 1:
        yield from (play(path, name, seed) for path, name in jobs)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:  # to read OPENBLAS_NUM_THREADS
        for future in as_completed([pool.submit(play, path, name, seed) for path, name in jobs]):
            yield future.result()


def run(jobs: list[tuple[Path, str]], rows_file: Path, workers: int, seed: int, fresh: bool) -> list[Any]:
    """The rows of sets and agents: those that were finished before, and the others, played now."""
    before = json.loads(rows_file.read_text()) if rows_file.exists() and not fresh else []
    done = {(row["set"], row["agent"], row["key"]): row for row in before
            if "error" not in row or row["key"] == "peer"}  # fmt: skip
    wanted = [(path, name, (path.stem, name, key(path, name, seed))) for path, name in jobs]
    todo = [(path, name) for path, name, at in wanted if at not in done]
    todo.sort(key=lambda job: -job[0].stat().st_size)  # the longest first, so that both cores end together
    print(f"{len(wanted) - len(todo)} rows finished before, {len(todo)} to play", file=sys.stderr, flush=True)
    for i, row in enumerate(played(todo, workers, seed), start=1):
        done[row["set"], row["agent"], row["key"]] = row
        write(rows_file, json.dumps(list(done.values()), indent=0))
        result = row.get("error") or f"loss {row['loss']:.4f}, {row['us']:.0f} us per decision"
        print(f"{i}/{len(todo)} {row['set']}, {row['agent']}: {result}", file=sys.stderr, flush=True)
    return [done[at] for _, _, at in wanted]


def main() -> None:
    parser = common.parser(__doc__, data="sets with labels, as Parquet files", peers=True)
    parser.add_argument(
        "--peers", action="store_true", help="MABWiser, contextualbandits and bayesianbandits too, on small sets"
    )
    how = "run Vowpal Wabbit, read its losses from a file, neither; or run it where no file has them (the default)"
    parser.add_argument("--vw", choices=["run", "file", "none", "auto"], default="auto", help=how)
    parser.add_argument("--peers-rows", type=int, default=1000, metavar="N")
    parser.add_argument("--peers-seconds", type=float, default=60.0, metavar="S")
    parser.add_argument("--agents", nargs="+", choices=sorted(AGENTS), default=list(AGENTS), metavar="NAME")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="names of files, without their ending (default: all)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fresh", action="store_true", help="play everything again")
    parser.add_argument("--rows", type=Path, default=HERE / ".bakeoff.json", metavar="FILE")
    parser.add_argument("--output", type=Path, default=HERE / "BAKEOFF.md", metavar="FILE", help="the HTML lies beside")
    options = parser.parse_args()
    if options.data is None:
        parser.error("--data is needed")
    try:
        found = readable(options.data, options.sets)
    except ValueError as error:
        parser.error(f"--data: {error}")
    sets = list(found.values())
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # one core per worker
    filed = {"auto": in_files(options.data), "file": set(found)}.get(options.vw, set())
    jobs = [(path, name) for path in sets for name in options.agents]
    if options.vw in ("auto", "run"):
        if find_spec("vowpalwabbit") is None:
            parser.error("--vw: the package vowpalwabbit is not here; install it, or give --vw file or --vw none")
        jobs += [(path, name) for path in sets if path.stem not in filed for name in bakeoff_vw.NAMES]
    rows = run(jobs, options.rows, options.workers, options.seed, options.fresh)
    if options.peers or options.peers_python:
        python = peers.interpreter(options.peers_python)
        names = bakeoff_peers.of(peers.installed(python, bakeoff_peers.PACKAGES))
        rows += run_peers(sets, names, python, options.rows, options.seed, options.peers_rows, options.peers_seconds)
    rows = [row for row in rows if row["agent"] not in bakeoff_vw.NAMES] + bakeoff_vw.summary(
        [row for row in rows if row["agent"] in bakeoff_vw.NAMES]
    )
    rows += vw_rows(options.data, {row["set"]: row["n"] for row in rows if row["set"] in filed})
    about = f"armwise {aw.__version__}, {common.machine()}, {options.workers} workers, seed {options.seed}."
    write(options.output, bakeoff_page.markdown(rows, about))
    write(options.output.with_suffix(".html"), bakeoff_page.html(rows, about))


if __name__ == "__main__":
    main()
