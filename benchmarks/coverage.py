"""Coverage and width of offline intervals where they are known to fail: ``python -m benchmarks.coverage``.

K = 5 arms, a deterministic target. For each setting: the share of runs whose interval holds the truth, its mean width,
and of the runs that miss the share that the verdict warned of. With vw-estimators installed its Cressie-Read interval
is measured on the same logs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from armwise.offline import Log, evaluate

K = 5
_DIRECTIONS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [0.5, 0.5]])
Round = tuple[Log, np.ndarray, float]


def _drawn(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    arms: np.ndarray = np.minimum((p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1), K - 1)
    return arms


def _log(
    x: np.ndarray, p: np.ndarray, q: np.ndarray, target: np.ndarray, rng: np.random.Generator, top: float
) -> Round:
    rows, arms = np.arange(len(x)), _drawn(p, rng)
    rewards = top * (rng.random(len(x)) < q[rows, arms])
    log = Log(contexts=x, arms=arms, rewards=rewards, probabilities=p[rows, arms], n_arms=K)
    return log, target, top * float(q[rows, target].mean())


def softmax_logger(n: int, rng: np.random.Generator, low: float = 0.2, high: float = 0.8, top: float = 1.0) -> Round:
    """A logger that prefers good arms mildly, never below 0.1; rewards are 0 or ``top``."""
    x = rng.normal(size=(n, 2))
    s = x @ _DIRECTIONS.T
    p = np.exp(0.5 * s)
    p = 0.5 * p / p.sum(axis=1, keepdims=True) + 0.1
    return _log(x, p, low + (high - low) / (1.0 + np.exp(-s)), s.argmax(axis=1), rng, top)


def steep_logger(n: int, rng: np.random.Generator) -> Round:
    """A logger that plays the target's arm with probability sigma(4 x): weights without a variance."""
    x = rng.normal(size=(n, 1))
    own = 1.0 / (1.0 + np.exp(-4.0 * x))
    p = np.hstack([own, np.repeat((1.0 - own) / (K - 1), K - 1, axis=1)])
    q = np.hstack([0.3 + 0.4 * (x < 0), np.full((n, K - 1), 0.5)])
    return _log(x, p, q, np.zeros(n, np.int64), rng, 1.0)


SETTINGS: dict[str, tuple[Callable[[np.random.Generator], Round], tuple[float, float] | None]] = {
    "mild 200": (lambda rng: softmax_logger(200, rng), None),
    "mild 1,000": (lambda rng: softmax_logger(1000, rng), None),
    "heavy tails 2,000": (lambda rng: steep_logger(2000, rng), None),
    "1.5 % clicks 200": (lambda rng: softmax_logger(200, rng, 0.005, 0.025), None),
    "1.5 % clicks 2,000": (lambda rng: softmax_logger(2000, rng, 0.005, 0.025), None),
    "rewards in [0, 10] 1,000": (lambda rng: softmax_logger(1000, rng, top=10.0), (0.0, 10.0)),
}


def truth_of(setting: str) -> float:
    """The target's value, over many contexts."""
    rng = np.random.default_rng([1, len(setting)])
    return float(np.mean([SETTINGS[setting][0](rng)[2] for _ in range(max(20, 400_000 // 2000))]))


def measure(
    setting: str, runs: int, intervals: tuple[Any, ...], names: tuple[str, ...] = ("ips", "snips", "dr")
) -> dict[tuple[str, str], tuple[float, float, float]]:
    """{(interval, estimator): (coverage, mean width, warned share of misses)}."""
    make, limits = SETTINGS[setting]
    truth = truth_of(setting)
    found: dict[tuple[str, str], list[tuple[bool, float, bool]]] = {}
    for run in range(runs):
        log, target, _ = make(np.random.default_rng([run, 7]))
        for kind in intervals:
            result = evaluate(log, target, names, interval=kind, reward_range=limits, warn=False)
            for name in names:
                e = result[name]
                found.setdefault((kind, name), []).append(
                    (e.low <= truth <= e.high, e.high - e.low, bool(result.verdict))
                )
        peer = _vw(log, target, limits or (0.0, 1.0))
        if peer is not None:
            found.setdefault(("vw-estimators", "ips"), []).append(
                (peer[0] <= truth <= peer[1], peer[1] - peer[0], False)
            )
    return {key: _summary(values) for key, values in found.items()}


def _summary(values: list[tuple[bool, float, bool]]) -> tuple[float, float, float]:
    misses = [warned for covered, _, warned in values if not covered]
    return (
        float(np.mean([covered for covered, _, _ in values])),
        float(np.mean([width for _, width, _ in values])),
        float(np.mean(misses)) if misses else 1.0,
    )


def _vw(log: Log, target: np.ndarray, limits: tuple[float, float]) -> tuple[float, float] | None:
    try:
        from estimators.bandits.cressieread import IntervalImpl
    except ModuleNotFoundError:
        return None
    interval = IntervalImpl(0.0, np.inf, *limits, False)
    assert log.probabilities is not None
    for w, r in zip((log.arms == target) / log.probabilities, log.rewards, strict=True):
        interval.add(float(w), float(r), 0, 0)
    low, high = interval.get(0.05)
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--intervals", default="auto,normal,bootstrap,bernstein,betting,sequence")
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    args = parser.parse_args()
    kinds = tuple(args.intervals.split(","))
    for setting in args.settings:
        print(setting, flush=True)
        for (kind, name), (covered, width, warned) in measure(setting, args.runs, kinds).items():
            print(
                f"  {kind:14} {name:6} covers {covered:.3f}  width {width:.4f}  warned of misses {warned:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
