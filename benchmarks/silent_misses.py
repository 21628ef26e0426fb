"""Intervals that would be wrong in silence, each beside its healthy twin: ``python -m benchmarks.silent_misses``.

A setting makes a log with a fault and its twin, the same log without it (``benchmarks.faulty_logs``,
``benchmarks.faulty_designs``). For each are shown, over the runs: how often the interval holds the truth, of the misses
the share of which the verdict warns, the share of all runs with a warning, the mean width, and the width over that of
an interval known to cover. A fault must be covered (.93) or warned of (.95 of the misses); a twin must be covered and
seldom be warned of (.05).

    python -m benchmarks.silent_misses --core --part 1/2 --to ONE &    # appends in pieces; one that ended goes on
    python -m benchmarks.silent_misses --core --part 2/2 --to TWO
    python -m benchmarks.silent_misses --from ONE TWO > benchmarks/SILENT_MISSES.md
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import faulty_designs as designs
from benchmarks import faulty_logs as logs

_PIECE = 25  # runs between two lines of the file
_COVERS, _TOLD, _FALSE, _WIDE = 0.93, 0.95, 0.05, 1.2


@dataclass(frozen=True)
class Setting:
    """A world with a fault, a healthy one, or both."""

    make: Callable[..., logs.Answers]
    options: dict[str, Any]
    twin: bool = True
    fault: bool = True


SETTINGS: dict[str, Setting] = {
    "xor, estimated, 20,000": Setting(logs.interaction, {}),
    "xor, logged, 20,000": Setting(logs.interaction, {"estimated": False}),
    "xor, estimated, 4,000": Setting(logs.interaction, {"n": 4000}),
    "xor of 2 in 10 columns, logged, 6,000": Setting(logs.interaction, {"n": 6000, "d": 10, "estimated": False}),
    "three signs, logged, 20,000": Setting(logs.interaction, {"kind": "three", "estimated": False}),
    "sine, estimated, 20,000": Setting(logs.interaction, {"kind": "sine"}),
    "band, estimated, 4,000": Setting(logs.interaction, {"kind": "band", "n": 4000}),
    "step, logged, 2,000": Setting(logs.interaction, {"kind": "step", "n": 2000, "estimated": False}),
    "step, estimated, 4,000": Setting(logs.interaction, {"kind": "step", "n": 4000}),
    "model alone, 1,000": Setting(logs.model_alone, {}),
    "model alone, 10,000": Setting(logs.model_alone, {"n": 10_000}),
    "lognormal 2, 5 %, 2,000": Setting(logs.heavy, {}),
    "lognormal 2, all, 500": Setting(logs.heavy, {"share": 1.0, "n": 500}),
    "pareto 1.5, all, 10,000": Setting(logs.heavy, {"kind": "pareto 1.5", "share": 1.0, "n": 10_000,
                                                    "twin": "normal 1"}),
    "lognormal 2, 5 %, 20,000": Setting(logs.heavy, {"n": 20_000}),
    "lognormal 1.5, 10 %, 5,000": Setting(logs.heavy, {"n": 5000, "kind": "lognormal 1.5", "share": 0.1}),
    "lognormal 2, all, 2,000": Setting(logs.heavy, {"share": 1.0}),
    "pareto 2.2, all, 2,000": Setting(logs.heavy, {"kind": "pareto 2.2", "share": 1.0, "twin": "normal 1"}),
    "pareto 1.5, 20 %, 10,000, p .2": Setting(logs.heavy, {"n": 10_000, "kind": "pareto 1.5", "share": 0.2, "p": 0.2}),
    "comparison, lognormal 2, 5 %, 2,000": Setting(logs.heavy_comparison, {}),
    "comparison, lognormal 2, all, 2,000": Setting(logs.heavy_comparison, {"share": 1.0}),
    "30 policies, gamma .3, 2,000": Setting(logs.many_policies, {}),
    "30 policies, gamma .3, 6,000": Setting(logs.many_policies, {"n": 6000}),
    "betting, line": Setting(logs.drift, {}),
    "betting, hill": Setting(logs.drift, {"kind": "hill"}),
    "betting, step, 500": Setting(logs.drift, {"kind": "step", "n": 500}),
    "sequence, wave": Setting(logs.drift, {"kind": "wave", "interval": "sequence"}),
    "betting, slow": Setting(logs.drift, {"kind": "slow"}),
    "ten clusters": Setting(logs.few_clusters, {}),
    "six clusters": Setting(logs.few_clusters, {"users": 6}),
    "neighbours across folds": Setting(logs.neighbours, {}),
    "fit with users": Setting(logs.learnt, {}),
    "segments of few": Setting(logs.segments, {}),
    "rare arm, 50,000": Setting(logs.rare, {}),
    "rare arm, 20,000, p .01": Setting(logs.rare, {"n": 20_000, "p": 0.01}),
    "rare arm, 5 arms": Setting(logs.rare, {"K": 5}),
    "skewed probabilities, clicks": Setting(logs.skewed_probabilities, {}, fault=False),
    "skewed probabilities, amounts": Setting(logs.skewed_probabilities, {"clicks": False}, fault=False),
    "skewed probabilities, 5,000": Setting(logs.skewed_probabilities, {"n": 5000, "slope": 2.5}, fault=False),
    "product, logged, 5,000": Setting(logs.interaction, {"kind": "product", "n": 5000, "estimated": False}),
    "xor at half strength, logged, 20,000": Setting(logs.interaction, {"strength": 0.15, "estimated": False}),
    "xor at half strength, estimated, 4,000": Setting(logs.interaction, {"strength": 0.15, "n": 4000}),
    "rewards to 5 % of their limit": Setting(logs.wide_range, {}, fault=False),
    **{f"{kind} demand, {n:,}": Setting(designs.prices, {"kind": kind, "n": n}) for n in (500, 4000, 20_000)
       for kind in ("logistic", "flat", "steep", "very steep", "jump", "wavy")},
    "logistic demand, 4,000, prices near 5": Setting(designs.prices, {"even": False}),
    "steep demand, 4,000, prices near 5": Setting(designs.prices, {"even": False, "kind": "steep"}),
    "doses of a narrow effect, 1,000": Setting(designs.doses, {"n": 1000}),
    "doses of a narrow effect, 8,000": Setting(designs.doses, {"n": 8000}),
    **{f"{agent}, {kind}": Setting(designs.learning, {"agent": agent, "kind": kind})
       for agent in ("thompson", "thompson, floor", "greedy", "exp3") for kind in ("rise", "apart", "cross", "step")},
    "greedy, wave": Setting(designs.learning, {"agent": "greedy", "kind": "wave"}),
    **{f"{agent}, {kind}, {interval}": Setting(designs.learning, {"agent": agent, "kind": kind, "interval": interval})
       for agent, kind in (("thompson", "rise"), ("uniform", "rise"), ("greedy", "cross"))
       for interval in ("betting", "sequence")},
    "thompson, rise, stable weights": Setting(designs.learning, {"weights": "stable"}),
    "uniform, 10 arms": Setting(designs.many_arms, {}, fault=False),
    "uniform, 20 arms": Setting(designs.many_arms, {"arms": 20}, fault=False),
    "uniform, 3 arms, 300": Setting(designs.many_arms, {"arms": 3, "n": 300}, fault=False),
    "exp3, 10 arms": Setting(designs.many_arms, {"agent": "exp3"}, fault=False),
    "any time, rate .1": Setting(designs.at_any_time, {}, fault=False),
    "any time, rate .02, greedy": Setting(designs.at_any_time, {"rate": 0.02, "agent": "greedy"}, fault=False),
    "any time, rate .5, exp3": Setting(designs.at_any_time, {"rate": 0.5, "agent": "exp3"}, fault=False),
    "any time, amounts": Setting(designs.at_any_time, {"amounts": True}, fault=False),
    "rare arm of an agent": Setting(designs.rare_agent, {}, fault=False),
    "linear demand, 4,000": Setting(designs.prices, {}, fault=False),
    "sequence of a rare arm": Setting(designs.rare_sequence, {}, fault=False),
    "rankings, above .3": Setting(designs.rankings, {"above": 0.3}),
    "rankings, below .3": Setting(designs.rankings, {"below": 0.3}),
    "rankings, below .6": Setting(designs.rankings, {"below": 0.6}),
    "rankings, all .3": Setting(designs.rankings, {"above": 0.3, "below": 0.3}),
    "rankings, above .3, 3,000": Setting(designs.rankings, {"above": 0.3, "n": 3000}),
    "rankings, below .3, 20,000": Setting(designs.rankings, {"below": 0.3, "n": 20_000}),
    "embedded, apart .15": Setting(designs.embedded, {}),
    "embedded, apart .4": Setting(designs.embedded, {"direct": 0.4}),
    "embedded, apart .3, 50 arms": Setting(designs.embedded, {"direct": 0.3, "arms": 50, "groups": 5}),
    "embedded, apart .4, unknown logger": Setting(designs.embedded, {"direct": 0.4, "known": False}),
    **{f"certificate, {kind}": Setting(designs.certified, {"kind": kind})
       for kind in ("bend", "product", "step", "later")},
    "certificate, bend, greedy": Setting(designs.certified, {"agent": "greedy"}),
    "trial": Setting(logs.trial, {}, twin=False),
    "trial, rewards to 100": Setting(logs.trial, {"top": 100.0}, twin=False),
}  # fmt: skip


CORE = (
    "xor, estimated, 20,000", "xor, logged, 20,000", "lognormal 2, 5 %, 2,000", "lognormal 2, 5 %, 20,000",
    "comparison, lognormal 2, 5 %, 2,000", "30 policies, gamma .3, 2,000", "betting, line", "thompson, apart",
    "thompson, rise, betting", "any time, rate .1", "ten clusters", "neighbours across folds", "fit with users",
    "segments of few", "rare arm, 50,000", "rankings, above .3", "rankings, below .3", "embedded, apart .15",
    "model alone, 1,000", "uniform, 10 arms", "sequence of a rare arm", "certificate, bend", "trial",
    "trial, rewards to 100", "rewards to 5 % of their limit", "linear demand, 4,000",
    *(f"{kind} demand, {n}" for kind in ("logistic", "steep") for n in ("500", "4,000", "20,000")),
)  # fmt: skip


def answers(name: str, healthy: bool, first: int, runs: int) -> dict[str, list[logs.Answer]]:
    """What each run says of each estimate."""
    setting, found = SETTINGS[name], dict[str, list[logs.Answer]]()
    for run in range(first, first + runs):
        for key, answer in setting.make(np.random.default_rng([run, 30]), healthy, **setting.options).items():
            found.setdefault(key, []).append(answer)
    return found


def measure(
    name: str, runs: int, healthy: bool = False, first: int = 0
) -> dict[str, tuple[float, float, float, float]]:
    """{estimator: (coverage, share of misses warned of, share of runs with a warning, mean width)}."""
    return {key: _summary(each) for key, each in answers(name, healthy, first, runs).items()}


def _summary(found: list[logs.Answer]) -> tuple[float, float, float, float]:
    missed = [warned for covers, _, warned in found if not covers]
    covers, width, warned = (np.array(column, np.float64) for column in zip(*found, strict=True))
    finite = width[np.isfinite(width)]
    mean = float(finite.mean()) if finite.size else float("inf")
    return float(covers.mean()), float(np.mean(missed)) if missed else 1.0, float(warned.mean()), mean


def lines(name: str, healthy: bool, found: dict[str, list[logs.Answer]]) -> Iterator[str]:
    """What to print of a setting: an interval known to cover is named as "estimator by ..."."""
    each = {key: _summary(answers) for key, answers in found.items()}
    for key, (covers, told, warned, width) in each.items():
        beside = next((other for other in each if other.startswith((f"{key} by ", "by "))), key)
        wide = "" if beside == key or " by " in key else f"{width / each[beside][3]:.2f}"
        runs = len(found[key])
        fails = [] if " by " in f" {key}" or told >= _TOLD else _below("covers", covers, _COVERS, runs)
        sure = beside != key and each[beside][0] >= _COVERS  # one that does not cover is no measure of width
        fails += _below("warned", 1.0 - warned, 1.0 - _FALSE, runs) if healthy else []
        fails += ["wide"] * (bool(wide) and sure and float(wide) > _WIDE)
        label = f"{name}{' (twin)' if healthy else ''}"
        of_misses = f"{told:.2f}" if covers < 1.0 else ""
        mark = "FAILS: " * any("?" not in word for word in fails) + ", ".join(fails)
        yield (f"| {label} | {key} | {runs} | {covers:.3f} | {of_misses} | {warned:.3f} | {width:.4g} | {wide} "
               f"| {mark} |")  # fmt: skip


def _below(what: str, share: float, wanted: float, runs: int) -> list[str]:
    """What falls short; with a question mark where the runs are too few to say so (two standard errors)."""
    if share >= wanted:
        return []
    error = (wanted * (1.0 - wanted) / max(runs, 1)) ** 0.5
    return [what if share < wanted - 2.0 * error else f"{what}?"]


PAGE = """# Intervals that would be wrong in silence

Faults that make an interval wrong, each beside its healthy twin, 95 % intervals. Written by `python -m
benchmarks.silent_misses`, whose docstring explains the columns: a fault must be covered (.93) or warned of (.95 of the
misses), a twin covered and seldom warned of (.05), and a width at most 1.2 of that of an interval known to cover.
What falls short is named in the last column; a question mark says that it does so by less than two standard errors of
these runs.

All rows are of one state of the code. All settings of one number of prices share their seeds: over 2,000 logs of other
seeds (`--first 50000 --runs 2000`) kernel-dr covers .952 and its twin .949 at 500 prices.
"""
HEAD = """| setting | estimate | runs | covers | misses warned of | warned | width | over known | |
|---|---|---:|---:|---:|---:|---:|---:|---|"""


def read(files: list[Path]) -> dict[tuple[str, bool], dict[str, list[logs.Answer]]]:
    """The answers in these files, each run once."""
    seen, found = set[tuple[str, bool, int]](), dict[tuple[str, bool], dict[str, list[logs.Answer]]]()
    for line in (line for file in files if file.exists() for line in file.read_text().splitlines()):
        piece = json.loads(line)
        key = piece["setting"], piece["healthy"], piece["first"]
        if key not in seen:
            seen.add(key)
            own = found.setdefault(key[:2], {})
            for name, each in piece["answers"].items():
                own.setdefault(name, []).extend(tuple(answer) for answer in each)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first seed: choose settings on others than these")
    parser.add_argument("--settings", nargs="+", default=[""], metavar="NAME", help="those whose name holds one")
    parser.add_argument("--core", action="store_true", help="the first settings of each family alone")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="every N-th setting alone, from the I-th")
    parser.add_argument("--to", type=Path, help="a file of JSON lines, which is added to")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no piece begins")
    parser.add_argument("--from", dest="files", nargs="+", type=Path, help="print the table of these files alone")
    args = parser.parse_args()
    names = [name for name in SETTINGS if any(wanted in name for wanted in args.settings)]
    names = [name for name in names if name in CORE or not args.core]
    both = [(name, healthy) for name in names for healthy in (False, True)
            if (SETTINGS[name].twin if healthy else SETTINGS[name].fault)]  # fmt: skip
    if args.files:
        print(PAGE)
    print(HEAD, flush=True)
    if args.files:
        known = read(args.files)
        for key in both:
            for line in lines(*key, known.get(key, {})):
                print(line)
        return
    part, parts = (int(number) for number in args.part.split("/"))
    both = both[part - 1 :: parts]
    end, done = time.monotonic() + 60.0 * args.minutes, read([args.to] if args.to else [])
    for name, healthy in both:
        found = done.get((name, healthy), dict[str, list[logs.Answer]]())
        for first in range(len(next(iter(found.values()), [])), args.runs, _PIECE):
            if time.monotonic() > end:
                return
            more = answers(name, healthy, args.first + first, min(_PIECE, args.runs - first))
            for estimate, each in more.items():
                found.setdefault(estimate, []).extend(each)
            if args.to:
                with args.to.open("a") as file:
                    file.write(
                        json.dumps({"setting": name, "healthy": healthy, "first": args.first + first, "answers": more})
                        + "\n"
                    )
        for line in lines(name, healthy, found):
            print(line, flush=True)


if __name__ == "__main__":
    main()
