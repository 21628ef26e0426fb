"""Rounds until agents name the best arm, on the two problems of Garivier and Kaufmann (2016), delta = 0.1.

    python -m benchmarks.stopping [--runs 100]

With the paper's heuristic threshold, beside the times that the paper prints; with the proved one, beside the least mean
time of any correct rule.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import armwise as aw
from armwise.theory.stopping import least_stopping_time

PROBLEMS = {"A": [0.5, 0.45, 0.43, 0.4], "B": [0.3, 0.21, 0.2, 0.19, 0.18]}
PUBLISHED = {"TrackAndStop": {"A": 4052, "B": 1406}, "LUCB": {"A": 8437, "B": 2716}}
AGENTS: dict[str, Callable[..., aw.Agent]] = {
    "TrackAndStop": aw.TrackAndStop, "TopTwoThompson": aw.TopTwoThompson, "LUCB": aw.LUCB,
    "SuccessiveElimination": aw.SuccessiveElimination,
}  # fmt: skip


def stopping_time(make: Callable[..., aw.Agent], means: list[float], threshold: str, seed: int) -> tuple[int, bool]:
    """Rounds until the search stops, and whether its answer is wrong."""
    agent = make(len(means), 0.1, threshold=threshold, seed=seed)
    rng = np.random.default_rng([seed, 1])
    while agent.answer is None:  # type: ignore[attr-defined]
        agent.play(None, (rng.random((200, len(means))) < means).astype(float))
    return agent.stopped_at, agent.answer != 0  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    print("| problem | threshold | agent | mean rounds | std. error | wrong | published | least mean time |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    for problem, means in PROBLEMS.items():
        for threshold in ("heuristic", "proved"):
            for name, make in AGENTS.items():
                found = [stopping_time(make, means, threshold, seed) for seed in range(runs)]
                times = np.array([time for time, _ in found])
                wrong = sum(bad for _, bad in found)
                published = PUBLISHED.get(name, {}).get(problem, "-") if threshold == "heuristic" else "-"
                error = times.std(ddof=1) / np.sqrt(runs)
                print(f"| {problem} | {threshold} | {name} | {times.mean():,.0f} | {error:,.0f} | {wrong} of {runs} "
                      f"| {published} | {least_stopping_time(means, 0.1):,.0f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
