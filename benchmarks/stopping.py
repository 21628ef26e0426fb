"""Rounds until agents name the best arm, on the two problems of Garivier and Kaufmann (2016), delta = 0.1.

    python -m benchmarks.stopping run --problem A --threshold heuristic --runs 200 --output times.csv
    python -m benchmarks.stopping table times.csv [more.csv ...]

With the paper's heuristic threshold, beside the times that the paper prints (means of 3,000 runs); with the proved one,
beside the least mean time of any correct rule. ``run`` appends a line for each run, so that runs of other seeds
(``--first``) can be added; agents of PyMAB that name a best arm are run where PyMAB is installed.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import armwise as aw
from armwise.theory.stopping import least_stopping_time

DELTA = 0.1
PROBLEMS = {"A": [0.5, 0.45, 0.43, 0.4], "B": [0.3, 0.21, 0.2, 0.19, 0.18]}
PUBLISHED = {"TrackAndStop": {"A": 4052, "B": 1406}, "LUCB": {"A": 8437, "B": 2716}}
AGENTS: dict[str, Callable[..., Any]] = {
    "TrackAndStop": aw.TrackAndStop, "TopTwoThompson": aw.TopTwoThompson, "LUCB": aw.LUCB,
    "SuccessiveElimination": aw.SuccessiveElimination,
}  # fmt: skip
PYMAB = ("PyMAB SuccessiveElimination", "PyMAB MedianElimination")
FIELDS = ("problem", "threshold", "agent", "seed", "rounds", "wrong")


def stopping_time(name: str, means: list[float], threshold: str, seed: int) -> tuple[int, bool]:
    """Rounds until the search stops, and whether its answer is wrong."""
    agent = AGENTS[name](len(means), DELTA, threshold=threshold, seed=seed)
    rng = np.random.default_rng([seed, 1])
    while agent.answer is None:
        agent.play(None, (rng.random((200, len(means))) < means).astype(float))
    return agent.stopped_at, agent.answer != 0


def pymab_time(name: str, means: list[float], seed: int) -> tuple[int, bool]:
    """The same for a policy of PyMAB: until one arm is left. Median elimination gets half of the gap as its epsilon."""
    from pymab.policies import MedianEliminationPolicy, SuccessiveEliminationPolicy

    if name == PYMAB[0]:
        policy = SuccessiveEliminationPolicy(n_arms=len(means), delta=DELTA)
    else:
        policy = MedianEliminationPolicy(n_arms=len(means), epsilon=0.5 * (means[0] - means[1]), delta=DELTA)
    policy.reset()
    rng, rounds = np.random.default_rng([seed, 1]), 0
    while policy.active.sum() > 1:
        action = int(policy.select_action(rng=rng))
        policy.update(action=action, reward=float(rng.random() < means[action]))
        rounds += 1
    return rounds, policy.recommend_action() != 0


def run(args: argparse.Namespace) -> None:
    """Play, and append a line for each run."""
    means = PROBLEMS[args.problem]
    path = Path(args.output)
    with path.open("a", newline="") as file:
        out = csv.writer(file)
        if path.stat().st_size == 0:
            out.writerow(FIELDS)
        for seed in range(args.first, args.first + args.runs):
            for name in args.agents:
                if name in PYMAB:
                    rounds, wrong = pymab_time(name, means, seed)
                else:
                    rounds, wrong = stopping_time(name, means, args.threshold, seed)
                out.writerow([args.problem, args.threshold, name, seed, rounds, int(wrong)])
            file.flush()


def table(paths: list[str]) -> None:
    """Means over all runs, in Markdown."""
    found: dict[tuple[str, str, str], dict[int, tuple[int, int]]] = {}
    for path in paths:
        for row in csv.DictReader(Path(path).read_text().splitlines()):
            key = row["problem"], row["threshold"], row["agent"]
            found.setdefault(key, {})[int(row["seed"])] = int(row["rounds"]), int(row["wrong"])
    print("| problem | threshold | agent | mean rounds | median | wrong | published | of it | of the least |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|")
    names = [*AGENTS, *PYMAB]
    for (problem, threshold, name), runs in sorted(
        found.items(), key=lambda each: (each[0][:2], names.index(each[0][2]))
    ):
        times = np.array([rounds for rounds, _ in runs.values()])
        wrong, n = sum(bad for _, bad in runs.values()), len(runs)
        published = PUBLISHED.get(name, {}).get(problem) if threshold == "heuristic" else None
        said = ["-", "-"] if published is None else [f"{published:,}", f"{times.mean() / published:.2f}"]
        least = least_stopping_time(PROBLEMS[problem], DELTA)
        mean = f"{times.mean():,.0f} ± {times.std(ddof=1) / np.sqrt(n):,.0f}"
        ratios = " | ".join([*said, f"{times.mean() / least:.2f}"])
        print(f"| {problem} | {threshold} | {name} | {mean} | {np.median(times):,.0f} | {wrong} of {n} | {ratios} |")


def main() -> None:
    """Run agents, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = parser.add_subparsers(dest="task", required=True)
    runs = tasks.add_parser("run")
    runs.add_argument("--problem", choices=PROBLEMS, required=True)
    runs.add_argument("--threshold", choices=("heuristic", "proved"), required=True)
    runs.add_argument("--agents", nargs="+", choices=[*AGENTS, *PYMAB], default=list(AGENTS))
    runs.add_argument("--runs", type=int, default=200)
    runs.add_argument("--first", type=int, default=0, help="the first seed")
    runs.add_argument("--output", required=True)
    tasks.add_parser("table").add_argument("paths", nargs="+")
    args = parser.parse_args()
    if args.task == "table":
        table(args.paths)
        return
    if any(name in PYMAB for name in args.agents) and importlib.util.find_spec("pymab") is None:
        parser.error("PyMAB is not installed: pip install pymab")
    run(args)


if __name__ == "__main__":
    main()
