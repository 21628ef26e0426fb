"""Defaults on worlds of noise: clicks, amounts, categories, linear and logistic rewards, revenue.

    python -m benchmarks.noise_worlds [--part chosen|reported|all] [--agents NAME ...] [--worlds WORD ...]
                                      [--runs 100] [--rounds 20000] [--first 1000] [--growth] [--results FILE]

The worlds were written down before any rule of exploration was tried on them. Settings are chosen on the half marked
"chosen"; the half marked "reported" is only for the report. Beside each world stands textbook Thompson sampling with
the true noise: one ridge model per arm with lam = 1, draws of the full deviation, and rewards around their true middle.

For each world: expected regret, the share of runs that are stuck (the best arm in under half of the last tenth of the
rounds), and with ``--growth`` the exponent of the regret from a tenth of the rounds to all of them. At the end: the
geometric mean over the worlds of regret / textbook's regret.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import armwise as aw
from benchmarks import common


class Draw(NamedTuple):
    """One run of a world: contexts (T, d), rewards and expected rewards (T, K)."""

    contexts: np.ndarray
    rewards: np.ndarray
    expected: np.ndarray


class World(NamedTuple):
    """How a run is drawn, its sizes, the true deviation of the rewards and their middle, and what it is used for."""

    draw: Callable[[int, np.random.Generator], Draw]
    d: int
    K: int
    noise: float
    middle: float
    chosen: bool


def _clicks(contexts: np.ndarray, p: np.ndarray, rng: np.random.Generator) -> Draw:
    return Draw(contexts, (rng.random(p.shape) < p).astype(float), p)


def clicks(rates: list[float], chosen: bool) -> World:
    """Arms with fixed rates of clicks, and a constant context."""
    p = np.array(rates)

    def draw(T: int, rng: np.random.Generator) -> Draw:
        return _clicks(np.ones((T, 1)), np.tile(rng.permutation(p), (T, 1)), rng)

    return World(draw, 1, len(p), float(np.sqrt((p * (1 - p)).mean())), float(p.mean()), chosen)


def amounts(means: list[float], sd: float, chosen: bool) -> World:
    """Arms with fixed means and normal noise, and a constant context."""
    m = np.array(means)

    def draw(T: int, rng: np.random.Generator) -> Draw:
        expected = np.tile(rng.permutation(m), (T, 1))
        return Draw(np.ones((T, 1)), rng.normal(expected, sd), expected)

    return World(draw, 1, len(m), sd, float(m.mean()), chosen)


def categories(n: int, rates: list[float], chosen: bool) -> World:
    """One-hot categories; in each of them the arms have these rates in another order."""
    p = np.array(rates)

    def draw(T: int, rng: np.random.Generator) -> Draw:
        table = np.array([rng.permutation(p) for _ in range(n)])
        mine = rng.integers(n, size=T)
        return _clicks(np.eye(n)[mine], table[mine], rng)

    return World(draw, n, len(p), float(np.sqrt((p * (1 - p)).mean())), float(p.mean()), chosen)


def linear(K: int, d: int, sd: float, middle: float, chosen: bool) -> World:
    """One linear function per arm of d - 1 columns in [-1, 1] and a constant; around ``middle``."""

    def draw(T: int, rng: np.random.Generator) -> Draw:
        theta = rng.normal(0.0, 0.5, (K, d)) / math.sqrt(d)
        X = np.column_stack([rng.uniform(-1.0, 1.0, (T, d - 1)), np.ones(T)])
        expected = middle + X @ theta.T
        return Draw(X, rng.normal(expected, sd), expected)

    return World(draw, d, K, sd, middle, chosen)


def logistic(K: int, d: int, useful: int, rate: float, chosen: bool) -> World:
    """Clicks: the logit of each arm is linear in ``useful`` of the d - 1 normal columns, around a rate."""

    def draw(T: int, rng: np.random.Generator) -> Draw:
        theta = np.zeros((K, d))
        theta[:, :useful] = rng.normal(0.0, 0.5, (K, useful))
        theta[:, -1] = math.log(rate / (1 - rate)) + rng.normal(0.0, 0.3, K)
        X = np.column_stack([rng.normal(size=(T, d - 1)), np.ones(T)])
        return _clicks(X, 1.0 / (1.0 + np.exp(-X @ theta.T)), rng)

    return World(draw, d, K, math.sqrt(rate * (1 - rate)), rate, chosen)


def revenue(rates: list[float], amount: float, segments: int, chosen: bool) -> World:
    """Mostly 0; with an arm's rate a purchase of a gamma amount. With segments, one-hot, rates are in another order."""
    p = np.array(rates)
    variance = float((p * 1.5 * amount**2 - (p * amount) ** 2).mean())  # E[gamma(2, a / 2)^2] = 1.5 a^2

    def draw(T: int, rng: np.random.Generator) -> Draw:
        table = np.array([rng.permutation(p) for _ in range(segments)])
        mine = rng.integers(segments, size=T)
        buys = rng.random((T, len(p))) < table[mine]
        return Draw(np.eye(segments)[mine], buys * rng.gamma(2.0, amount / 2.0, buys.shape), amount * table[mine])

    return World(draw, segments, len(p), math.sqrt(variance), amount * float(p.mean()), chosen)


WORLDS: dict[str, World] = {
    "clicks .5 .6": clicks([0.5, 0.6], True),
    "clicks 1 to 3 %": clicks([0.01, 0.015, 0.02, 0.025, 0.03], True),
    "amounts, gap .2, sd 2": amounts([0.0, 0.2], 2.0, True),
    "20 segments .5 .7": categories(20, [0.5, 0.7], True),
    "linear, 5 arms, d 5, sd .5": linear(5, 5, 0.5, 0.0, True),
    "logistic, 4 arms, d 6, 30 %": logistic(4, 6, 5, 0.3, True),
    "revenue, 3 arms": revenue([0.03, 0.04, 0.06], 40.0, 1, True),
    "clicks .9 .95": clicks([0.9, 0.95], False),
    "clicks, ten arms .5, one .6": clicks([0.5] * 9 + [0.6], False),
    "amounts around 100, 5 arms, sd 1": amounts([99.8, 99.9, 100.0, 100.1, 100.3], 1.0, False),
    "3 devices, 4 arms, 10 to 25 %": categories(3, [0.10, 0.15, 0.20, 0.25], False),
    "linear around .5, 3 arms, d 10, sd .3": linear(3, 10, 0.3, 0.5, False),
    "logistic, 3 arms, 4 of 12 useful, 8 %": logistic(3, 13, 4, 0.08, False),
    "revenue, 4 segments, 3 arms": revenue([0.05, 0.08, 0.12], 20.0, 4, False),
}

Make = Callable[[World, int], aw.Agent]
TEXTBOOK = "textbook"
AGENTS: dict[str, Make] = {
    TEXTBOOK: lambda w, seed: aw.LinThompson(w.d, w.noise, 1.0, n_arms=w.K, seed=seed),
    "LinUCB": lambda w, seed: aw.LinUCB(w.d, n_arms=w.K, seed=seed),
    "LinThompson": lambda w, seed: aw.LinThompson(w.d, n_arms=w.K, seed=seed),
    "RegCB": lambda w, seed: aw.RegCB(w.d, n_arms=w.K, seed=seed),
    "SquareCB": lambda w, seed: aw.SquareCB(w.d, n_arms=w.K, seed=seed),
    "Auto": lambda w, seed: aw.Auto(w.d, n_arms=w.K, seed=seed),
    "RandUCB": lambda w, seed: aw.RandUCB(w.d, n_arms=w.K, seed=seed),
}


class Run(NamedTuple):
    """The regret of a run, that of its first tenth, and the share of best arms in its last tenth."""

    regret: float
    early: float
    late_share: float


def run(world: World, make: Make, T: int, seed: int, textbook: bool) -> Run:
    """One agent in one draw of a world; all agents meet the same draw."""
    contexts, rewards, expected = world.draw(T, np.random.default_rng([seed, world.d, world.K]))
    played = make(world, seed).play(contexts, rewards - world.middle if textbook else rewards)
    got = expected[np.arange(T), played.arms]
    lost = expected.max(axis=1) - got
    return Run(float(lost.sum()), float(lost[: T // 10].sum()), float((lost[-(T // 10) :] < 1e-12).mean()))


def summary(runs: list[Run]) -> tuple[float, float, float]:
    """Mean regret, the share of runs that are stuck, and the growth exponent."""
    regret, early, share = (np.array(column) for column in zip(*runs))
    return float(regret.mean()), float((share < 0.5).mean()), math.log10(regret.mean() / max(early.mean(), 1e-9))


def main(arguments: list[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--part", choices=("chosen", "reported", "all"), default="all")
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS))
    parser.add_argument("--worlds", nargs="+", metavar="WORD", help="worlds whose name begins with one of these")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=1000, metavar="SEED")
    parser.add_argument("--growth", action="store_true", help="print growth exponents too")
    parser.add_argument("--results", type=Path, help="a file of results (JSON lines), read first and added to")
    options = parser.parse_args(arguments)
    known: dict[tuple[str, ...], list[Run]] = {}
    if options.results is not None and options.results.exists():
        for line in options.results.read_text().splitlines():
            row = json.loads(line)
            known[tuple(row["key"])] = [Run(*each) for each in row["runs"]]
    names = [TEXTBOOK, *(name for name in options.agents if name != TEXTBOOK)]
    ratios: dict[str, list[float]] = {name: [] for name in names}
    shown = {
        title: world
        for title, world in WORLDS.items()
        if (options.part == "all" or world.chosen == (options.part == "chosen"))
        and (not options.worlds or title.startswith(tuple(options.worlds)))
    }
    for title, world in shown.items():
        base = 1.0
        for name in names:
            key = (title, name, str(options.rounds), str(options.runs), str(options.first))
            if key not in known:
                seeds = range(options.first, options.first + options.runs)
                known[key] = [run(world, AGENTS[name], options.rounds, seed, name == TEXTBOOK) for seed in seeds]
                if options.results is not None:
                    with options.results.open("a") as file:
                        file.write(json.dumps({"key": key, "runs": known[key]}) + "\n")
            regret, stuck, growth = summary(known[key])
            base = regret if name == TEXTBOOK else base
            ratios[name].append(regret / base)
            what = f"{title}, {'chosen' if world.chosen else 'reported'}: {name}"
            note = f"stuck {stuck:.3f}" + (f", growth {growth:.2f}" if options.growth else "")
            common.report(what, f"{regret:.1f}", TEXTBOOK, f"{base:.1f}", base / regret, note)
    for name in names[1:]:
        for half in (True, False):
            mine = [r for r, w in zip(ratios[name], shown.values()) if w.chosen == half]
            if mine:
                mean = math.exp(float(np.mean(np.log(mine))))
                what = f"{name}, geometric mean, {'chosen' if half else 'reported'} ({len(mine)} worlds)"
                common.report(what, f"{mean:.3f}", TEXTBOOK, "1", 1.0 / mean, f"worst {max(mine):.2f}")


if __name__ == "__main__":
    main()
