"""Experiments that are looked at after every unit: how often they are wrong, how soon they are right.

``python -m benchmarks.experiments nulls`` plays experiments without a difference, 1,000 runs of 20,000 units with a
look after every one, and prints the share of runs that ever stop for a difference, beside a t-test that is looked at
once a day (20 days of 1,000 units). ``power`` prints the units until the right stop beside those of a fixed test that
knew the effect; ``width`` the width at the planned size beside the formula of a published confidence sequence
(conjugate-mixture empirical Bernstein, as in the package confseq, written down here); ``mismatch`` alarms where 5 % of
an arm's units are lost, and where none are; ``kills``
a process that is killed at work, 200 times; ``sticky`` 100,000 units over restarts and a changed share, in two
processes on one PostgreSQL of its own (``--units``, ``--runs`` change these numbers).
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import special, stats

import armwise as aw
from armwise.offline.experiments.lifts import LiftSequence
from armwise.offline.experiments.mismatch import MismatchTest
from tests.service.database import Server

UNITS, RUNS, BLOCK, TOGETHER = 20_000, 1000, 1000, 250
AT_ONCE = {"name": "buy", "window": None}
Block = tuple[np.ndarray, np.ndarray, np.ndarray]  # arms, chances of both arms, values
World = Callable[[np.random.Generator, int, LiftSequence, int], Block]


def _fixed(draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]) -> World:
    def world(rng: np.random.Generator, runs: int, _: LiftSequence, start: int) -> Block:
        return rng.integers(0, 2, (runs, BLOCK)), np.array([0.5, 0.5]), draw(rng, (runs, BLOCK))

    return world


def _clicks(rate: float) -> World:
    return _fixed(lambda rng, shape: (rng.random(shape) < rate).astype(float))


def _clustered(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Clicks of a unit over 1 to 10 views, whose rate is the unit's own."""
    return rng.binomial(rng.integers(1, 11, shape), rng.beta(0.5, 4.5, shape)).astype(float)


def _money(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """5 % buy, for a lognormal amount: median 20, mean 33."""
    return (rng.random(shape) < 0.05) * rng.lognormal(math.log(20.0), 1.0, shape)


def _ramp(rng: np.random.Generator, runs: int, _: LiftSequence, start: int) -> Block:
    """1 % for 2,000 units, 10 % for 4,000, then 50 %, while the rate goes from 3 % to 9 %."""
    share = 0.01 if start < 2000 else 0.1 if start < 6000 else 0.5
    arms = (rng.random((runs, BLOCK)) < share).astype(np.int64)
    return arms, np.array([1.0 - share, share]), (rng.random((runs, BLOCK)) < 0.03 + 0.06 * start / UNITS).astype(float)


def _adaptive(rng: np.random.Generator, runs: int, lifts: LiftSequence, start: int, least: float = 0.1) -> Block:
    """The chance to be best, within 10 and 90 %, anew for every 1,000 units."""
    share = np.full(runs, 0.5)
    if start:
        error = np.maximum(np.sqrt((lifts.standard_errors**2).sum(axis=0)), 1e-9)
        share = least + (1.0 - 2.0 * least) * special.ndtr((lifts.means[1] - lifts.means[0]) / error)
    arms = (rng.random((runs, BLOCK)) < share[:, None]).astype(np.int64)
    table = np.broadcast_to(np.stack([1.0 - share, share], -1)[:, None, :], (runs, BLOCK, 2))
    return arms, table, (rng.random((runs, BLOCK)) < 0.05).astype(float)


def _bandit(rng: np.random.Generator, runs: int, lifts: LiftSequence, start: int) -> Block:
    """The same with hardly a limit, as Thompson sampling would: 0.5 and 99.5 %."""
    return _adaptive(rng, runs, lifts, start, least=0.005)


def _rare(rng: np.random.Generator, runs: int, _: LiftSequence, start: int) -> Block:
    """Amounts, a tenth of the units in the arm."""
    arms = (rng.random((runs, BLOCK)) < 0.1).astype(np.int64)
    return arms, np.array([0.9, 0.1]), _money(rng, (runs, BLOCK))


NULLS: dict[str, tuple[World, float | None]] = {
    "clicks at 1 %": (_clicks(0.01), 1.0),
    "clicks at 5 %": (_clicks(0.05), 1.0),
    "clicks at 50 %": (_clicks(0.5), 1.0),
    "clustered: clicks of a unit's views, at most 10": (_fixed(_clustered), 10.0),
    "ramp 1, 10, 50 % while the rate triples": (_ramp, 1.0),
    "adaptive split, 10 to 90 %": (_adaptive, 1.0),
    "amounts with a cap of 200": (_fixed(_money), 200.0),
    "amounts without a cap (asymptotic, from 500 units an arm)": (_fixed(_money), None),
    "amounts without a cap, a tenth of the units in the arm": (_rare, None),
    "bandit's split, 0.5 to 99.5 %": (_bandit, 1.0),
}


def nulls(runs: int, only: str) -> None:
    """False stops under the null."""
    for seed, (name, (world, cap)) in enumerate(NULLS.items()):
        if only not in name:
            continue
        rng, stopped, peeked, began = np.random.default_rng([seed, 33]), 0, 0, time.perf_counter()
        for first in range(0, runs, TOGETHER):
            some = min(TOGETHER, runs - first)
            lifts = LiftSequence(2, cap=cap, shape=(some,))
            sums = np.zeros((3, 2, some))
            significant = np.zeros(some, dtype=bool)
            for start in range(0, UNITS, BLOCK):
                arms, shares, values = world(rng, some, lifts, start)
                lifts.update(arms, shares, values)
                for a in (0, 1):
                    mine = arms == a
                    sums[:, a] += mine.sum(-1), (mine * values).sum(-1), (mine * values**2).sum(-1)
                n, mean = sums[0], sums[1] / sums[0]
                variance = (sums[2] / n - mean**2) * n / (n - 1)
                with np.errstate(invalid="ignore", divide="ignore"):
                    t = np.abs(mean[1] - mean[0]) / np.sqrt((variance / n).sum(0))
                significant |= t > stats.norm.ppf(0.975)
            stopped += int(((lifts.above[1] > 0) | (lifts.below[1] > 0)).sum())
            peeked += int(significant.sum())
        seconds = time.perf_counter() - began
        print(f"{name:58} false stops {stopped / runs:.3f}; t-test looked at daily {peeked / runs:.3f} "
              f"({runs:,} runs of {UNITS:,} units, {seconds:.0f} s)", flush=True)  # fmt: skip


POWER = ((0.01, 0.012), (0.05, 0.055), (0.05, 0.06), (0.1, 0.12), (0.5, 0.53), (0.2, 0.3))


def fixed_size(p: float, q: float, power: float = 0.8) -> float:
    """Units of a two-sided z-test at 5 % that has this power, in both arms together."""
    z = stats.norm.ppf(0.975) + stats.norm.ppf(power)
    return float(2.0 * z * z * (p * (1 - p) + q * (1 - q)) / (q - p) ** 2)


def power(runs: int) -> None:
    """Units to the right stop, with the default plan of 10,000 units and with one that knew the size."""
    for seed, (p, q) in enumerate(POWER):
        fixed, found = fixed_size(p, q), []
        for planned, variance in ((10_000.0, None), (fixed, p * (1 - p))):
            rng, stops, wrong = np.random.default_rng([seed, 34]), [], 0
            for _ in range(0, runs, 100):
                lifts = LiftSequence(2, planned=planned, variance=variance, shape=(100,))
                for _ in range(math.ceil(4 * fixed / 2000)):
                    arms = rng.integers(0, 2, (100, 2000))
                    lifts.update(arms, np.array([0.5, 0.5]), rng.random((100, 2000)) < np.where(arms == 1, q, p))
                    if np.all(lifts.above[1] > 0):
                        break
                stops += np.where(lifts.above[1] > 0, lifts.above[1], np.inf).tolist()
                wrong += int((lifts.below[1] > 0).sum())
            ends = np.quantile(stops, [0.5, 0.8])
            found.append(f"median {ends[0] / fixed:.2f}x, 80 % by {ends[1] / fixed:.2f}x, wrong {wrong / runs:.3f}")
        print(
            f"{p:g} -> {q:g}: fixed {fixed:,.0f}; default plan {found[0]}; planned {found[1]} ({runs} runs)", flush=True
        )


def published_bound(v: float, alpha: float, v_opt: float, c: float) -> float:
    """The gamma-exponential mixture bound of Howard et al. 2021, written from the paper: by bisection."""
    log = -2.0 * math.log(2.0 * alpha)
    rho = v_opt / (log + math.log1p(log))
    k = rho / c**2
    lead = k * math.log(k) - special.gammaln(k) - math.log(special.gammainc(k, k))

    def mixture(s: float) -> float:
        a, x = (v + rho) / c**2, (c * s + v) / c**2 + k
        return float(lead + special.gammaln(a) + math.log(special.gammainc(a, x)) - a * math.log(x) + x - k)

    low, high = 0.0, 1e6
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if mixture(middle) < math.log(1.0 / alpha) else (low, middle)
    return high


def width(runs: int) -> None:
    """Widths at the planned size, of an arm's mean and of the lift, beside the published sequence on the same data."""
    for p in (0.01, 0.05, 0.5):
        ours, theirs, lifts_ours, lifts_theirs = [], [], [], []
        n = 20_000
        for seed in range(runs):
            rng = np.random.default_rng([seed, 35])
            arms, y = rng.integers(0, 2, n), (rng.random(n) < p).astype(float)
            lifts = LiftSequence(2, planned=n, variance=p * (1 - p))
            lifts.update(arms, [0.5, 0.5], y)
            low, high = lifts.arm_interval(1)
            ours.append(high - low)
            lifts_ours.append(2.0 * float(lifts.half_width(1)))
            x = y[arms == 1]
            theirs.append(_published_width(x, 0.0, 1.0, len(x) * p * (1 - p), 0.5))
            score = y * np.where(arms == 1, 2.0, -2.0)  # inverse-propensity difference, in [-2, 2]
            lifts_theirs.append(_published_width(score, -2.0, 2.0, n * 4.0 * p / 16.0, 0.5))
        print(f"{p:g}, {n:,} units: an arm's mean {np.mean(ours):.5f}, published {np.mean(theirs):.5f} (ratio "
              f"{np.mean(ours) / np.mean(theirs):.3f}); lift {np.mean(lifts_ours):.5f}, published on weighted "
              f"differences {np.mean(lifts_theirs):.5f} (ratio {np.mean(lifts_ours) / np.mean(lifts_theirs):.3f}); "
              f"{runs} runs", flush=True)  # fmt: skip


def _published_width(x: np.ndarray, low: float, high: float, v_opt: float, first: float) -> float:
    y = (x - low) / (high - low)
    before = np.concatenate([[first], (first + np.cumsum(y)[:-1]) / np.arange(2, len(y) + 1)])
    v = float(np.square(y - before).sum())
    return 2.0 * (high - low) * published_bound(v, 0.025, v_opt, 1.0) / len(y)


def mismatch(runs: int) -> None:
    """Alarms within 50,000 units."""
    cases = (
        ("5 % of one arm's units (or of its outcomes, all reported) lost", 0.95 / 1.95),
        ("none lost", 0.5),
        ("3 % lost", 0.97 / 1.97),
    )
    for name, share in cases:
        rng, alarms, last = np.random.default_rng([int(1e6 * share), 36]), [], []
        for _ in range(0, runs, 250):
            test = MismatchTest(2, shape=(250,))
            for _ in range(25):
                test.update(rng.random((250, 2000)) < share, np.array([0.5, 0.5]))
            alarms += np.where(test.alarm > 0, test.alarm, np.inf).tolist()
            last += (test.p_now < test.risk).tolist()  # as for units with an outcome, whose alarm can end
        print(f"{name}: alarm before 50,000 units in {np.mean(np.isfinite(alarms)):.3f} of {runs:,} runs, "
              f"median {np.median(alarms):,.0f}; at 50,000 in {np.mean(last):.3f}", flush=True)  # fmt: skip


_ASSIGNING = """
import sys
import armwise as aw
url, k, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with aw.Experiment("colour", ["control", "green", "blue"], {"name": "buy", "window": None}, storage=url) as test:
    starts = range(0, n, 500)
    for start in starts if k == 0 else reversed(starts):  # towards each other: both are first for half of the units
        units = [f"user-{i}" for i in range(start, min(start + 500, n))]
        for unit, arm in zip(units, test.assign_many([(unit, {"process": k}) for unit in units]), strict=True):
            print(unit, arm)
"""


def sticky(n: int) -> None:
    """Units over three restarts and a changed share, assigned by two processes at once on one PostgreSQL."""
    known: dict[str, str] = {}
    with Server() as server:
        url = server.new_database()
        for turn in range(4):
            if turn == 2:
                with aw.Experiment("colour", ["control", "green", "blue"], AT_ONCE, storage=url) as test:
                    test.split([0.1, 0.1, 0.8])
            began = time.perf_counter()
            words = [sys.executable, "-c", _ASSIGNING, url]
            children = [subprocess.Popen([*words, str(k), str(n)], stdout=subprocess.PIPE, text=True) for k in (0, 1)]
            with ThreadPoolExecutor(2) as readers:
                answers = list(readers.map(lambda child: child.communicate()[0].splitlines(), children))
            for answer in answers:
                if len(answer) != n:
                    raise RuntimeError(f"a process assigned {len(answer)} of {n} units")
                for line in answer:
                    unit, arm = line.split()
                    if known.setdefault(unit, arm) != arm:
                        raise RuntimeError(f"{unit} has the arms {known[unit]} and {arm}")
            seconds = time.perf_counter() - began
            print(f"turn {turn}: {n:,} units in each of two processes, {seconds:.0f} s", flush=True)
    counts = np.array([list(known.values()).count(arm) for arm in ("control", "green", "blue")])
    chi = float(np.square(counts - n / 3).sum() / (n / 3))
    print(f"no unit changed its arm; shares {counts.tolist()}, chi-square {chi:.2f}, p {stats.chi2.sf(chi, 2):.2f}")


_CHILD = """
import sys
import armwise as aw
test = aw.Experiment("colour", ["control", "blue"], {"name": "buy", "window": None}, storage=sys.argv[1])
i = int(sys.argv[2])
while True:
    arm = test.assign(f"u{i}")
    print("arm", i, arm, flush=True)
    value = float(i % 3 == 0)
    test.outcome(f"u{i}", value)
    print("outcome", i, value, flush=True)
    i += 1
"""


def kills(n: int) -> None:
    """Kill a process that assigns and reports at a random moment, n times: nothing that it answered is lost."""
    rng = np.random.default_rng(37)
    arms: dict[int, str] = {}
    told: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(n):
            first = max(arms, default=-1) + 1
            words = [sys.executable, "-c", _CHILD, folder, str(first)]
            child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            assert child.stdout is not None
            lines = [child.stdout.readline()]  # it works; then it is killed
            time.sleep(float(rng.uniform(0.0, 0.15)))
            child.kill()
            lines += child.stdout.readlines()
            child.wait()
            for line in lines:
                kind, i, value = line.split()
                if kind == "arm":
                    arms[int(i)] = value
                else:
                    told[int(i)] = float(value)
        with aw.Experiment("colour", ["control", "blue"], {"name": "buy", "window": None}, storage=folder) as test:
            again = test.assign_many([f"u{i}" for i in arms])
            lost = sum(str(arm) != arms[i] for i, arm in zip(arms, again, strict=True))
            verdict = test.verdict()
            results = [verdict.result(arm, "buy") for arm in ("control", "blue")]
            bought = sum(r.units * r.mean for r in results if r.units)
            missing = len(told) - sum(r.units for r in results)  # others may be there, unanswered
        print(f"{n} kills, {len(arms):,} answered assignments: {lost} lost or changed; {len(told):,} answered "
              f"outcomes: {max(missing, 0)} lost; sum {bought:.0f}, answered {sum(told.values()):.0f}")  # fmt: skip


def main() -> None:
    """Run one of them, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["nulls", "power", "width", "mismatch", "sticky", "kills"])
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--units", type=int, default=100_000, help="of sticky")
    parser.add_argument("--only", default="", help="nulls with this in their name")
    args = parser.parse_args()
    match args.task:
        case "nulls":
            nulls(args.runs, args.only)
        case "power":
            power(args.runs)
        case "width":
            width(args.runs)
        case "mismatch":
            mismatch(args.runs)
        case "kills":
            kills(args.runs)
        case _:
            sticky(args.units)


if __name__ == "__main__":
    main()
