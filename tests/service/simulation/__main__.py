"""Runs schedules: ``python -m tests.service.simulation --schedules 1000`` (part of ``make torture``).

A violation is printed with its seed; ``--seed N --schedules 1`` runs exactly that schedule again. ``--bugs`` plants
each of the bugs in turn, and says how many schedules it took to find it.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator

from tests.service.simulation.bugs import BUGS
from tests.service.simulation.schedule import LEFT_OUT, Outcome, run, unasked


def _run(asked: tuple[int, str]) -> tuple[int, Outcome]:
    seed, bug = asked
    sys.unraisablehook = lambda _: None  # what a killed process was in the middle of is thrown away
    with BUGS[bug]() if bug else contextlib.nullcontext():
        return seed, run(seed)


def outcomes(seeds: Iterable[int], bug: str = "", workers: int = 1) -> Iterator[tuple[int, Outcome]]:
    """What came of the schedules, in order."""
    asked = [(seed, bug) for seed in seeds]
    if workers == 1:
        yield from map(_run, asked)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield from pool.imap(_run, asked)


def found(bug: str, first: int, most: int, workers: int = 1) -> tuple[int, Outcome] | None:
    """The first schedule that finds a planted bug."""
    return next(((seed, it) for seed, it in outcomes(range(first, first + most), bug, workers) if it.problems), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--bug", choices=sorted(BUGS), default="")
    parser.add_argument("--bugs", action="store_true")
    parser.add_argument("--routes", action="store_true", help="ask for every route, without faults")
    args = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is a part of a schedule
        os.execve(sys.executable, [sys.executable, "-m", "tests.service.simulation", *sys.argv[1:]],
                  os.environ | {"PYTHONHASHSEED": "0"})  # fmt: skip
    if args.routes:
        missing, problems = unasked(args.seed)
        print(
            f"routes that no request asks for: {missing or 'none'}; left out: {sorted(LEFT_OUT)}", *problems, sep="\n"
        )
        return int(bool(missing or problems))
    if args.bugs:
        missed = 0
        for bug in BUGS:
            if (hit := found(bug, args.seed, args.schedules, args.workers)) is None:
                missed += 1
                print(f"{bug}: not found in {args.schedules} schedules", flush=True)
            else:
                print(f"{bug}: found after {hit[0] - args.seed + 1} schedules: {hit[1].problems[0]}", flush=True)
        return int(missed > 0)
    began, acknowledged, simulated, wrong = time.monotonic(), 0, 0.0, 0
    for done, (seed, it) in enumerate(
        outcomes(range(args.seed, args.seed + args.schedules), args.bug, args.workers), 1
    ):
        acknowledged, simulated = acknowledged + it.acknowledged, simulated + it.seconds
        if it.problems:
            wrong += 1
            print(f"seed {seed}: {len(it.problems)} violations; the first: {it.problems[0]}", flush=True)
            print(f"  again: python -m tests.service.simulation --seed {seed} --schedules 1", flush=True)
        if done % 20 == 0 or done == args.schedules:
            minutes = (time.monotonic() - began) / 60.0
            rate, hours = done / minutes, simulated / 3600.0
            print(f"{done} schedules, {rate:.0f} per minute, {acknowledged} acknowledgements, {hours:.1f} simulated "
                  f"hours, {wrong} with a violation; trace {it.trace:x}", flush=True)  # fmt: skip
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
