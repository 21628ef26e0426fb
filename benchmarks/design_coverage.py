"""Intervals of special designs where an assumption fails, and on healthy twins: ``-m benchmarks.design_coverage``.

For each setting and estimator: the share of runs whose interval holds the truth, its mean width, the share of runs that
the verdict warns of, and that share among the runs that miss. A twin has the same size and no fault.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import armwise as aw
from armwise.offline import (
    ContinuousLog,
    Log,
    SlateLog,
    adaptive,
    evaluate_continuous,
    evaluate_embedded,
    evaluate_slates,
)  # fmt: skip
from armwise.offline.results.estimates import Evaluation


class Judged(NamedTuple):
    """One run: the result, and the truth of each of its estimates."""

    found: Evaluation
    truth: dict[str, float]


Setting = Callable[[np.random.Generator], Judged]


def _demand(middle: float, scale: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda price: 1.0 / (1.0 + np.exp(-(middle - price) / scale))


def prices(n: int, demand: Callable[[np.ndarray], np.ndarray], price: float) -> Setting:
    """Prices drawn evenly from 0 to 10, what buyers pay, and the question what one price would have earned."""

    def run(rng: np.random.Generator) -> Judged:
        a = rng.uniform(0.0, 10.0, n)
        paid = a * (rng.random(n) < demand(a))
        log = ContinuousLog(actions=a, rewards=paid, densities=0.1, bounds=(0.0, 10.0))
        truth = price * float(demand(np.array([price]))[0])
        found = evaluate_continuous(log, price, warn=False)
        return Judged(found, dict.fromkeys(found, truth))

    return run


def drift(n: int, first: tuple[float, float], last: tuple[float, float], agent: Callable[[int], aw.Agent]) -> Setting:
    """The log of an agent while the arms' means go from the first to the last; the truth is their mean over it."""

    def run(rng: np.random.Generator) -> Judged:
        u = np.linspace(0.0, 1.0, n)[:, None]
        means = np.array(first) + u * (np.array(last) - np.array(first))
        played = agent(int(rng.integers(2**31))).play(None, (rng.random((n, 2)) < means).astype(float))
        log = Log(arms=played.arms, rewards=played.rewards, probabilities=played.probabilities, n_arms=2)
        return Judged(adaptive(log, warn=False), {f"arm {a}": float(means[:, a].mean()) for a in range(2)})

    return run


def many_arms(n: int, arms: int) -> Setting:
    """A uniform log of many arms: nothing is wrong with it."""

    def run(rng: np.random.Generator) -> Judged:
        played, means = rng.integers(0, arms, n), np.linspace(0.3, 0.6, arms)
        rewards = (rng.random(n) < means[played]).astype(float)
        found = adaptive(Log(arms=played, rewards=rewards, probabilities=1.0 / arms, n_arms=arms), warn=False)
        return Judged(found, {"arm 0": 0.3})

    return run


_WORTH, _SLOTS = np.array([0.1, 0.3, 0.5, 0.6]), 3
_RANKING = np.full((_SLOTS, 4), 0.025)
_RANKING[[0, 1, 2], [3, 2, 3]] = 0.925


def _clicks(actions: np.ndarray, above: float, below: float) -> np.ndarray:
    own = _WORTH[actions]
    before = np.cumsum(own, axis=1) - own
    after = own.sum(axis=1, keepdims=True) - own - before
    return np.asarray(own * (1.0 - above * before - below * after))


def slates(n: int, above: float = 0.0, below: float = 0.0) -> Setting:
    """Rankings whose slots lose clicks to good arms above or below them."""
    every = np.array(np.meshgrid(*[range(4)] * _SLOTS, indexing="ij")).reshape(_SLOTS, -1).T
    chance = np.prod([_RANKING[slot, every[:, slot]] for slot in range(_SLOTS)], axis=0)
    truth = float(chance @ _clicks(every, above, below).sum(axis=1))

    def run(rng: np.random.Generator) -> Judged:
        x = rng.normal(size=(n, 1))
        p = np.exp(0.15 * x * np.arange(4))
        p /= p.sum(axis=1, keepdims=True)
        drawn = [np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), 3) for _ in range(_SLOTS)]
        actions = np.stack(drawn, axis=1)
        rewards = (rng.random((n, _SLOTS)) < _clicks(actions, above, below)).astype(float)
        log = SlateLog(x, actions, rewards, np.take_along_axis(p, actions, axis=1), n_arms=4)
        found = evaluate_slates(log, np.broadcast_to(_RANKING, (n, _SLOTS, 4)), warn=False)
        return Judged(found, dict.fromkeys(found, truth))

    return run


def embedded(n: int, arms: int, groups: int, direct: float) -> Setting:
    """Many arms, of which half earn more and half less than their group, and a target that prefers the better half."""
    better = np.random.default_rng(1).random(arms) < 0.5
    group = np.arange(arms) % groups
    means = (0.15 + 0.3 * group / groups) * np.where(better, 1.0 + direct, 1.0 - direct)
    target = np.where(better, 2.0, 0.5)
    target /= target.sum()

    def run(rng: np.random.Generator) -> Judged:
        played = rng.integers(0, arms, n)
        log = Log(arms=played, rewards=(rng.random(n) < means[played]).astype(float), n_arms=arms)
        found = evaluate_embedded(log, target, group, logging=np.full(arms, 1.0 / arms), warn=False)
        return Judged(found, dict.fromkeys(found, float(target @ means)))

    return run


def _greedy(seed: int) -> aw.Agent:
    return aw.EpsilonGreedy(n_arms=2, epsilon=0.1, seed=seed)


def _exp3(seed: int) -> aw.Agent:
    return aw.Exp3(n_arms=2, gamma=0.1, seed=seed)


SIZES = (500, 4_000, 20_000)
SETTINGS: dict[str, Setting] = {
    **{f"logistic demand {n:,}": prices(n, _demand(5.0, 0.7), 4.0) for n in SIZES},
    **{f"flat logistic demand {n:,}": prices(n, _demand(5.0, 1.0), 5.0) for n in SIZES},
    **{f"steep demand {n:,}": prices(n, _demand(4.5, 0.3), 4.0) for n in SIZES},
    **{f"very steep demand {n:,}": prices(n, _demand(4.0, 0.1), 3.8) for n in SIZES},
    **{f"jump {n:,}": prices(n, lambda a: 0.1 + 0.8 * (a < 4.0), 3.9) for n in SIZES},
    **{f"linear demand (twin) {n:,}": prices(n, lambda a: 1.0 - a / 12.0, 4.0) for n in SIZES},
    "drift .1 to .9, greedy": drift(2_000, (0.1, 0.15), (0.9, 0.85), _greedy),
    "drift .5 to .35, greedy": drift(2_000, (0.5, 0.45), (0.35, 0.55), _greedy),
    "drift crossing, exp3": drift(2_000, (0.7, 0.3), (0.3, 0.7), _exp3),
    "no drift (twin), greedy": drift(2_000, (0.4, 0.5), (0.4, 0.5), _greedy),
    "no drift (twin), exp3": drift(2_000, (0.4, 0.5), (0.4, 0.5), _exp3),
    "uniform, 10 arms (twin)": many_arms(1_000, 10),
    "slates, above .3": slates(5_000, above=0.3),
    "slates, below .3": slates(5_000, below=0.3),
    "slates, below .6": slates(5_000, below=0.6),
    "slates, all .3": slates(5_000, above=0.3, below=0.3),
    "slates (twin)": slates(5_000),
    "embedded, direct .15": embedded(4_000, 200, 10, 0.15),
    "embedded, direct .4": embedded(4_000, 200, 10, 0.4),
    "embedded (twin)": embedded(4_000, 200, 10, 0.0),
}


def measure(setting: Setting, runs: int) -> dict[str, list[float]]:
    """Of each estimator: coverage, mean width, share warned of, and of the misses (NaN if there are none)."""
    rows: dict[str, list[tuple[bool, float, bool]]] = {}
    for seed in range(runs):
        found, truth = setting(np.random.default_rng([seed, 2_030]))
        warned = bool(found.verdict)
        for name, value in truth.items():
            e = found[name]
            rows.setdefault(name, []).append((e.low <= value <= e.high, e.high - e.low, warned))
    answers = {}
    for name, each in rows.items():
        held, width, warned_of = (np.array(column, float) for column in zip(*each, strict=True))
        missed = warned_of[held == 0.0]
        answers[name] = [held.mean(), width.mean(), warned_of.mean(), missed.mean() if len(missed) else np.nan]
    return answers


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=500)
    options.add_argument("--only", default="", help="settings whose name holds this")
    given = options.parse_args()
    print(f"{'setting':34} {'estimator':12} covers  width  warned  misses warned of")
    for label, setting in SETTINGS.items():
        if given.only not in label:
            continue
        for name, (held, width, warned, missed) in measure(setting, given.runs).items():
            print(f"{label:34} {name:12} {held:6.3f} {width:6.3f} {warned:7.3f} {missed:8.2f}", flush=True)


if __name__ == "__main__":
    main()
