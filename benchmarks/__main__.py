"""Everything measured side by side, in one run; writes benchmarks/RESULTS.md.

    python -m benchmarks [--data FOLDER] [--peers-python PYTHON] [--only NAME ...] [--quick] [--output FILE]

FOLDER adds real data (letter.parquet, optdigits.parquet, mushroom.parquet, anywhere in it) to what scikit-learn brings.
The peers live in an environment of their own, made on the first run. --quick is for trying the command out. --only
renews some parts and leaves the others as FILE has them; every part says when, where and under which load it was run.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import common, peers

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Part:
    """One benchmark: its module and arguments, the title of its table, and how the sides were set up."""

    name: str
    title: str
    module: str
    how: str
    arguments: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()  # of "data" and "peers", what its command line takes
    needs_data: bool = False


PARTS = [
    Part("decisions", "One decision at a time", "linucb",
         "Choose an arm, learn its reward, one round after the other, from Python. The two sides take turns of 50 "
         "decisions; times are medians of the turns. All run LinUCB with alpha = 1 and lambda = 1 (VW: SquareCB, its "
         "recommended exploration, fed text, which is its Python interface). MABWiser and contextualbandits are made "
         "for batches; here they decide one at a time, as a service has to.",
         ("--only", "decisions"), ("--only", "decisions"), ("data", "peers")),
    Part("bulk", "Whole data sets, natively", "linucb",
         "A set with labels, played as a bandit: armwise's `play` (disjoint LinUCB, exact ridge) beside VW's own "
         "driver reading its file from the cache (`--cbify --cb_explore_adf --epsilon 0`, its cheapest exploration). "
         "Turns of one pass each.",
         ("--only", "bulk"), ("--only", "bulk"), ("data", "peers")),
    Part("quality", "Progressive error, everybody at their best", "quality",
         "The same rows in the same order for all, learning after every round. Each side gets the best of its own "
         "small grid on that order: armwise, contextualbandits and MABWiser the same grid for LinUCB (exploration "
         "0.1, 0.3, 1; ridge 0.1, 1) and Thompson sampling (scale 0.1, 0.3), armwise also SquareCB and RegCB; "
         "VW greedy, epsilon, SquareCB, RegCB and cover over their own parameter, the learning rate, and costs 0/1 and "
         "-1/0. Sets under 1,000 rows: mean of three orders. The note has the settings that won. A ratio is the peer's "
         "error over armwise's. LinUCB is the same algorithm in three of the four: there a ratio near 1 is right, and "
         "what is left is luck (an error of 0.2 over 1,000 rounds has a standard error of 0.013).",
         (), ("--rows", "150", "--sets", "iris"), ("data", "peers")),
    Part("regression", "The regression agents on whole sets, with default settings", "regression_bench",
         "SquareCB, RegCB and OnlineCover as they come beside the better of VW's grid here and the best that is known "
         "of VW 9.11.9 from a larger search (learning rates, exploration parameters).",
         (), (), ("data", "peers"), needs_data=True),
    Part("mushroom", "Mushroom, beside the published run", "mushroom",
         "The protocol and the 2,000 rounds of Riquelme et al. 2018; settings chosen on ten other draws.",
         (), (), ("data",), needs_data=True),
    Part("race", "A race of agents", "race_bench",
         "The same simulation in coba, on the worlds of our race drawn beforehand (its time excludes making them).",
         ("--peer-seeds", "1", "--turns", "3"), ("--peer-seeds", "1", "--turns", "1"), ("peers",)),
    Part("ope", "Offline evaluation of a large log", "ope_bench",
         "IPS and SNIPS, and DR with a cross-fitted ridge, streamed from Parquet, beside reading the file and doing "
         "nothing (pyarrow, the same columns and blocks). A ratio of 1 would be free.",
         ("--rows", "1000000"), ("--rows", "50000")),
    Part("dr", "Doubly robust, beside a peer", "ope_peers",
         "A log in memory. Each side as its documentation has it: contextualbandits fits a logistic regression for "
         "each arm on the rows it then evaluates; armwise a ridge for each arm, cross-fitted in three folds.",
         (), ("--rows", "2000", "--turns", "1"), ("peers",)),
    Part("kernel", "A step of a kernel agent", "kernel_bench",
         "GPUCB beside scikit-learn's GaussianProcessRegressor refitted every round on the same data with the same "
         "fixed kernel; and a step with a budget, early and late.",
         ("--only", "refit", "flat", "--rounds", "1000"), ("--only", "refit", "--rounds", "60")),
    Part("sparse", "Hashed features", "logistic_sparse",
         "A decision and a reward of LogisticThompson must not cost more when the dimension grows.",
         ("--rounds", "1000"), ("--rounds", "50")),
    Part("service", "The decision service", "serve_load",
         "`armwise serve` beside the least that any durable service has to do: Starlette, msgspec, and one SQLite row "
         "on disk before each reply. wrk on the same machine, turns of five seconds.",
         ("--seconds", "5", "--turns", "3"), ("--seconds", "1", "--turns", "1")),
]  # fmt: skip


def run(part: Part, options: Any) -> tuple[list[dict[str, Any]], float, str]:
    """The rows of a part, its seconds, and what went wrong (nothing, if empty)."""
    words = list(part.quick if options.quick else part.arguments)
    if options.data and "data" in part.takes:
        words += ["--data", str(options.data.resolve())]
    if "peers" in part.takes:
        words += ["--peers-python", peers.interpreter(options.peers_python)]
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows")
        environment = os.environ | {
            common.ROWS: str(rows),
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "OPENBLAS_NUM_THREADS": "1",
        }
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", f"benchmarks.{part.module}", *words], cwd=ROOT, env=environment)
        seconds = time.perf_counter() - start
        found = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
    return found, seconds, f"failed with exit code {done.returncode}" if done.returncode else ""


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as a Markdown table; the notes that differ get a column."""
    lines = ["| what | armwise | peer | | ratio | note |", "|---|---:|---|---:|---:|---|"]
    for row in rows:
        ratio = (
            "" if row["ratio"] is None else f"**{row['ratio']:.3g}**" if row["ratio"] >= 1 else f"{row['ratio']:.3g}"
        )
        cells = [row["what"], row["ours"], row["peer"], row["theirs"], ratio, row["note"]]
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    return "\n".join(lines)


def header(options: Any) -> str:
    names = [package.split("==")[0] for package in peers.PACKAGES]
    script = f"import json; from benchmarks import common; print(json.dumps(common.versions(*{names})))"
    there = subprocess.run([peers.interpreter(options.peers_python), "-c", script], cwd=ROOT, text=True, check=True,
                           stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)}).stdout  # fmt: skip
    ours = common.versions("numpy", "scipy", "scikit-learn", "pyarrow")
    import armwise

    def listed(found: dict[str, str]) -> str:
        return ", ".join(f"{name} {version}" for name, version in found.items())

    quick = " **Sizes for trying the command out (--quick), not for quoting.**" if options.quick else ""
    return f"""# Benchmarks

Made by `python -m benchmarks`; nothing here is typed by hand.{quick}

- on {common.machine()}, unless a part says otherwise
- armwise {armwise.__version__}, {listed(ours)}
- peers: {listed(json.loads(there))}
- BLAS on one thread for everybody.

A ratio says how many times better armwise is (faster, fewer errors); below 1 the peer is better.
Where two sides are timed they take turns. Other work on the machine interrupts the slower side more often, which helps
armwise's ratio: compare it with that of the fastest turns, and the load with the cores, before you trust it.
"""


def stamp() -> str:
    """When a part is run, and how busy the machine is then."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC, load {load}"


def parts_of(output: Path) -> dict[str, str]:
    """The parts that a file of results has, by title."""
    if not output.exists():
        return {}
    _, *found = output.read_text().split("\n## ")
    return {text.partition("\n")[0]: f"## {text.rstrip()}\n" for text in found}


def main(arguments: list[str] | None = None) -> int:
    parser = common.parser(__doc__, data="letter.parquet, optdigits.parquet, mushroom.parquet", peers=True)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[part.name for part in PARTS],
                        help=", ".join(part.name for part in PARTS))  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="small sizes: tries the command out, measures little")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "RESULTS.md", metavar="FILE")
    options = parser.parse_args(arguments)
    text, failed, before = [header(options)], False, parts_of(options.output) if options.only else {}
    for part in PARTS:
        if options.only and part.name not in options.only:
            text += [before[part.title]] if part.title in before else []
            continue
        print(f"--- {part.name}: {part.title}", flush=True)
        if part.needs_data and not options.data:
            print("not run: needs --data FOLDER")
            text.append(f"## {part.title}\n\nNot run: needs `--data FOLDER`.\n")
            continue
        began = stamp()
        rows, seconds, wrong = run(part, options)
        failed = failed or bool(wrong)
        said = f"\n\n**`benchmarks.{part.module}` {wrong}.**" if wrong else ""
        text.append(
            f"## {part.title}\n\n{part.how}{said}\n\n{table(rows)}\n\n`{part.name}` took {seconds:.0f} s ({began}).\n"
        )
        left = [before[later.title] for later in PARTS[PARTS.index(part) + 1 :] if later.title in before]
        options.output.write_text("\n".join(text + left))  # after each part: an interrupted run keeps what it has
    options.output.write_text("\n".join(text))
    print(f"wrote {options.output}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
