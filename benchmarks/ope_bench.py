"""Offline evaluation of big logs: IPS, SNIPS and DR (ridge) from Parquet, beside reading the file and doing nothing.

    python -m benchmarks.ope_bench [--rows 1000000 3000000 10000000] [--folder FOLDER]

Each measurement runs in a process of its own, so that its peak memory is its own. The target is a linear policy that
reads all 20 features. Reading alone is ``pyarrow``'s iteration over the same columns in blocks of the same size, with
and without its read-ahead, whichever is faster. Processor seconds stand beside those of the clock: on a busy machine
they are the ones to trust.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import common

ARMS, FEATURES, GROUP = 10, 20, 131_072
NAMES = [f"x{j}" for j in range(FEATURES)]


def write(path: Path, rows: int) -> None:
    """A log of a softmax policy over random contexts, in double precision."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    weights, logging = rng.normal(size=(ARMS, FEATURES)) / 4, rng.normal(size=(ARMS, FEATURES)) / 8
    writer = None
    for start in range(0, rows, GROUP):
        n = min(GROUP, rows - start)
        x = rng.normal(size=(n, FEATURES))
        p = np.exp(x @ logging.T)
        p /= p.sum(axis=1, keepdims=True)
        arms = np.minimum((p.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1), ARMS - 1)
        chosen = np.arange(n), arms
        rewards = (rng.random(n) < 1 / (1 + np.exp(-(x @ weights.T)[chosen]))).astype(float)
        columns = {name: x[:, j] for j, name in enumerate(NAMES)}
        table = pa.table(columns | {"arm": arms, "reward": rewards, "probability": p[chosen]})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def processor() -> float:
    """Seconds of processor time so far, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def read_alone(path: str, ahead: bool) -> dict[str, Any]:
    """Every column, block after block, and nothing done with them."""
    import pyarrow.parquet as pq

    from armwise.offline.logs.log import BATCH

    rows = 0
    with pq.ParquetFile(path, pre_buffer=ahead) as file:
        start, used = time.perf_counter(), processor()
        for batch in file.iter_batches(batch_size=BATCH):
            rows += batch.num_rows
    return {"seconds": time.perf_counter() - start, "processor": processor() - used, "rows": rows}


def judge(path: str, estimators: list[str]) -> dict[str, Any]:
    """Evaluate a linear policy on the file."""
    import pyarrow.parquet  # noqa: F401
    import threadpoolctl  # noqa: F401

    import armwise as aw

    policy = aw.Linear(np.random.default_rng(1).normal(size=(ARMS, FEATURES)))
    small = aw.offline.Log(
        contexts=np.zeros((4, FEATURES)), arms=[0] * 4, rewards=[0] * 4, probabilities=[0.5] * 4, n_arms=ARMS
    )
    aw.offline.evaluate(small, np.eye(ARMS)[[0] * 4], ["ips"])  # imports are not what is measured
    start, used = time.perf_counter(), processor()
    log = aw.offline.Log.from_parquet(path, contexts=NAMES, n_arms=ARMS)
    result = aw.offline.evaluate(log, policy, estimators)
    values = {e: result[e].value for e in estimators}
    return {"seconds": time.perf_counter() - start, "processor": processor() - used, "values": values}


JOBS = {
    "read": lambda path: read_alone(path, ahead=False),
    "read ahead": lambda path: read_alone(path, ahead=True),
    "ips+snips": lambda path: judge(path, ["ips", "snips"]),
    "ips+snips+dr": lambda path: judge(path, ["ips", "snips", "dr"]),
}


def measure(job: str, path: Path) -> dict[str, Any]:
    """The best of two runs in fresh processes."""
    found = []
    for _ in range(2):
        words = [sys.executable, "-m", "benchmarks.ope_bench", "--job", job, "--file", str(path)]
        found.append(json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout))
    return min(found, key=lambda each: each["seconds"])


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 3_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path, help="where the files go (1.9 GB for ten million rows); kept if given")
    parser.add_argument("--job", choices=list(JOBS), help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        found = JOBS[args.job](args.file)
        found["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        print("rows         job           seconds  x reading   processor s  x reading   peak MiB")
        for rows in args.rows:
            path = folder / f"log-{rows}.parquet"
            if not path.exists():
                write(path, rows)
            found = {job: measure(job, path) for job in JOBS}
            clock, used = (min(found[job][key] for job in ("read", "read ahead")) for key in ("seconds", "processor"))
            for job, one in found.items():
                times = f"{one['seconds']:7.2f} {one['seconds'] / clock:10.2f}"
                cpu = f"{one['processor']:13.2f} {one['processor'] / used:10.2f}"
                print(f"{rows:<12,} {job:<13} {times} {cpu} {one['peak_mib']:10.0f}", flush=True)
                if not job.startswith("read"):
                    note = f"{1e9 * one['seconds'] / rows:.0f} ns per row, peak memory {one['peak_mib']:.0f} MiB"
                    common.report(f"{job} of {rows:,} rows of Parquet, 20 features", common.duration(one["seconds"]),
                                  "reading it alone", common.duration(clock), clock / one["seconds"], note)  # fmt: skip


if __name__ == "__main__":
    main()
