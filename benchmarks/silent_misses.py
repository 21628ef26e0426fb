"""Intervals that would be wrong in silence, each beside its healthy twin: ``python -m benchmarks.silent_misses``.

A setting makes a log with a fault (an interaction that the probabilities lack, rewards with a heavy tail, drift, users
whose rows belong together, ...) and its twin, the same log without the fault. For each are shown, over the runs: how
often the interval holds the truth, of the misses the share of which the verdict warns, the share of all runs with a
warning, and the mean width. A fault must be covered or warned of; a twin must seldom be warned of.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from armwise.offline import Log, PropensityModel, compare, evaluate, fit

Answer = tuple[bool, float, bool]  # whether the interval holds the truth, its width, whether the verdict warns
Answers = dict[str, Answer]
Rng = np.random.Generator


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def _answer(estimate: Any, truth: float, verdict: str) -> Answer:
    return bool(estimate.low <= truth <= estimate.high), float(estimate.high - estimate.low), bool(verdict)


def judged(
    log: Log, policy: Any, truth: float, names: tuple[str, ...] = ("ips", "snips", "dr"), **options: Any
) -> Answers:
    """Each estimator's interval, and whether the evaluation warns."""
    found = evaluate(log, policy, names, warn=False, **options)
    return {name: _answer(found[name], truth, found.verdict) for name in names}


# ---------------------------------------------------------------------- probabilities without an interaction


def interaction(
    rng: Rng, healthy: bool, n: int = 20_000, kind: str = "xor", d: int = 3, estimated: bool = True
) -> Answers:
    """Arm 1 depends on a product of signs (or another shape) that a linear model of the arms does not see."""
    x = rng.normal(size=(n, d))
    shape = {
        "xor": np.sign(x[:, 0] * x[:, 1]),
        "three": np.sign(x[:, 0] * x[:, 1] * x[:, 2]),
        "sine": np.sign(np.sin(3.0 * x[:, 0])),
        "band": np.where(np.abs(x[:, 0]) < 0.67, 1.0, -1.0),
        "step": np.where(x[:, 0] > 1.0, 1.0, -1.0),
    }[kind]
    p = np.full(n, 0.5) if healthy else 0.5 + 0.3 * shape
    p = 0.9 * p + 0.1 * _sigmoid(x[:, 0])
    arms = (rng.random(n) < p).astype(int)
    rewards = (rng.random(n) < 0.5 + 0.3 * shape * (2 * arms - 1)).astype(float)
    if estimated:
        log = PropensityModel().fill(Log(contexts=x, arms=arms, rewards=rewards, n_arms=2))
    else:
        logged = 0.9 * 0.5 + 0.1 * _sigmoid(x[:, 0])
        log = Log(
            contexts=x, arms=arms, rewards=rewards, probabilities=np.where(arms == 1, logged, 1 - logged), n_arms=2
        )
    return judged(log, [0.0, 1.0], 0.5 + 0.3 * (2.0 * 0.158655 - 1.0) if kind == "step" else 0.5)


def model_alone(rng: Rng, healthy: bool, n: int = 1000) -> Answers:
    """Rewards with a band that a ridge does not see; in the twin they are linear."""
    x = rng.normal(size=(n, 2))
    p = _sigmoid(x[:, 0])
    arms = (rng.random(n) < p).astype(int)
    base = 0.4 + 0.2 * x[:, 0] if healthy else 0.8 * (np.abs(x[:, 0]) < 0.7)
    rewards = base * (0.5 + 0.3 * arms) + rng.normal(0.0, 0.2, n)
    log = Log(contexts=x, arms=arms, rewards=rewards, probabilities=np.where(arms == 1, p, 1 - p), n_arms=2)
    return judged(log, [0.0, 1.0], 0.8 * (0.4 if healthy else 0.8 * 0.516073), ("dm", "snips", "dr"))


def skewed_probabilities(rng: Rng, healthy: bool, n: int = 1000, slope: float = 2.0, clicks: bool = True) -> Answers:
    """Probabilities that differ much between rows: nothing is wrong with them."""
    x = rng.uniform(-1.6, 1.6, n)
    p = _sigmoid(slope * x)
    arms = (rng.random(n) < p).astype(int)
    rewards = (rng.random(n) < 0.3) * 1.0 if clicks else rng.normal(0.3, 1.0, n)
    log = Log(contexts=x[:, None], arms=arms, rewards=rewards, probabilities=np.where(arms == 1, p, 1 - p), n_arms=2)
    return judged(log, [0.0, 1.0], 0.3)


# ---------------------------------------------------------------------- rewards with a heavy tail


def _rewards(rng: Rng, n: int, kind: str, share: float) -> tuple[np.ndarray, float]:
    name, _, number = kind.partition(" ")
    a = float(number)
    drawn, mean = {
        "lognormal": lambda: (rng.lognormal(0.0, a, n), np.exp(a * a / 2)),
        "pareto": lambda: (rng.pareto(a, n) + 1.0, a / (a - 1.0)),
        "gamma": lambda: (rng.gamma(a, 1.0, n), a),
        "normal": lambda: (rng.normal(2.0, a, n), 2.0),
    }[name]()
    return (rng.random(n) < share) * drawn, share * float(mean)


def heavy(rng: Rng, healthy: bool, n: int = 2000, kind: str = "lognormal 2", share: float = 0.05, twin: str = "gamma 2",
          p: float = 0.5) -> Answers:  # fmt: skip
    """Few rows with a reward, and those of very different sizes."""
    rewards, mean = _rewards(rng, n, twin if healthy else kind, share)
    arms = (rng.random(n) < p).astype(int)
    x = rng.normal(size=(n, 2))
    log = Log(contexts=x, arms=arms, rewards=rewards, probabilities=np.where(arms == 1, p, 1 - p), n_arms=2)
    return judged(log, [0.0, 1.0], mean)


def heavy_comparison(rng: Rng, healthy: bool, n: int = 2000, kind: str = "lognormal 2", share: float = 0.05,
                     p: float = 0.2) -> Answers:  # fmt: skip
    """Two arms that earn the same, one of them rarely tried."""
    rewards, _ = _rewards(rng, n, "gamma 2" if healthy else kind, share)
    arms = (rng.random(n) < p).astype(int)
    x = rng.normal(size=(n, 2))
    log = Log(contexts=x, arms=arms, rewards=rewards, probabilities=np.where(arms == 1, p, 1 - p), n_arms=2)
    found = {
        level: compare(
            log,
            [0.0, 1.0],
            [1.0, 0.0],
            level=level,
        )
        for level in (0.95, 0.99)
    }
    return {
        f"difference at {level:.0%}": _answer(each, 0.0, "; ".join(each.weaknesses)) for level, each in found.items()
    }


def many_policies(rng: Rng, healthy: bool, n: int = 2000, policies: int = 30, kind: str = "gamma 0.3") -> Answers:
    """All intervals at once."""
    rewards, mean = _rewards(rng, n, "normal 1" if healthy else kind, 1.0)
    arms = rng.integers(0, policies, n)
    log = Log(arms=arms, rewards=rewards, probabilities=np.full(n, 1.0 / policies), n_arms=policies)
    found = evaluate(log, {str(k): np.eye(policies)[k] for k in range(policies)}, "snips", warn=False)
    each = [_answer(found[name]["snips"], mean, found.verdict) for name in found]
    return {"all": (all(e[0] for e in each), float(np.mean([e[1] for e in each])), bool(found.verdict))}


# ---------------------------------------------------------------------- drift


def drift(rng: Rng, healthy: bool, n: int = 2000, kind: str = "line", interval: str = "betting") -> Answers:
    """A uniform log whose rewards move."""
    t = np.linspace(0.0, 1.0, n)
    mean = {"line": 0.1 + 0.8 * t, "step": np.where(t < 0.7, 0.2, 0.8), "wave": 0.5 + 0.4 * np.sin(2 * np.pi * t),
            "hill": 0.1 + 0.8 * np.sin(np.pi * t), "slow": 0.35 + 0.3 * t}[kind]  # fmt: skip
    truth = float(mean.mean())
    mean = np.full(n, truth) if healthy else mean
    arms = rng.integers(0, 2, n)
    log = Log(arms=arms, rewards=(rng.random(n) < mean) * 1.0, probabilities=np.full(n, 0.5), n_arms=2)
    return judged(log, [0.0, 1.0], truth, ("ips", "snips"), interval=interval)


# ---------------------------------------------------------------------- clusters


def _users(rng: Rng, users: int, each: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """The user of each row, and the user's own level of rewards."""
    user = np.repeat(np.arange(users), each)
    return user, rng.normal(0.0, spread, users)[user]


def few_clusters(rng: Rng, healthy: bool, users: int = 10, n: int = 2000) -> Answers:
    """Few users with many rows each; the twin has as many rows of many users."""
    users = 400 if healthy else users
    user, level = _users(rng, users, n // users, 0.5)
    arms = rng.integers(0, 2, len(user))
    rewards = 1.0 + level + 0.3 * arms + rng.normal(0.0, 1.0, len(user))
    log = Log(contexts=rng.normal(size=(len(user), 2)), arms=arms, rewards=rewards, probabilities=0.5, n_arms=2)
    return judged(log, [0.0, 1.0], 1.3, cluster=user)


def neighbours(rng: Rng, healthy: bool, users: int = 100, each: int = 10) -> Answers:
    """A model that remembers users, fitted across the folds."""
    from sklearn.neighbors import KNeighborsRegressor

    users, each = (users * each, 1) if healthy else (users, each)
    user, level = _users(rng, users, each, 1.0)
    x = rng.normal(size=(users, 3))[user]
    arms = rng.integers(0, 2, len(user))
    rewards = 1.0 + level + 0.3 * arms + rng.normal(0.0, 0.3, len(user))
    log = Log(contexts=x, arms=arms, rewards=rewards, probabilities=0.5, n_arms=2)
    return judged(log, [0.0, 1.0], 1.3, ("dr",), reward_model=KNeighborsRegressor(3), cluster=user)


def learnt(rng: Rng, healthy: bool, users: int = 150, each: int = 10) -> Answers:
    """A policy that may learn each user by heart, and is judged on other rows."""
    from sklearn.tree import DecisionTreeClassifier

    from armwise import ClassifierOracle

    users, each = (users * each, 1) if healthy else (users, each)
    user = np.repeat(np.arange(users), each)
    x = rng.normal(size=(users, 3))[user]
    best = rng.integers(0, 2, users)[user]
    arms = rng.integers(0, 2, len(user))
    rewards = (rng.random(len(user)) < 0.3 + 0.4 * (arms == best)).astype(float)
    log = Log(contexts=x, arms=arms, rewards=rewards, probabilities=0.5, n_arms=2)
    fitted = fit(log, ClassifierOracle(DecisionTreeClassifier(random_state=0)), "ips", cluster=user, warn=False)
    return {"ips": _answer(fitted, 0.5, fitted.estimate.verdict)}  # a new user is a coin


# ---------------------------------------------------------------------- segments, rare arms, trials


def segments(rng: Rng, healthy: bool, n: int = 400, parts: int = 8) -> Answers:
    """Segments in which few rows answer; the twin has two of them."""
    parts, p = (2, 0.5) if healthy else (parts, 0.28)
    x = rng.integers(0, parts, n)
    arms = (rng.random(n) < p).astype(int)
    rewards = (rng.random(n) < 0.3).astype(float)
    log = Log(arms=arms, rewards=rewards, probabilities=np.where(arms == 1, p, 1 - p), n_arms=2)
    found = evaluate(log, [0.0, 1.0], ("snips",), by=x, warn=False)
    each = [_answer(s["snips"], 0.3, found.verdict) for s in found.segments.values()]
    return {"all": (all(e[0] for e in each), float(np.mean([e[1] for e in each])), bool(found.verdict))}


def rare(rng: Rng, healthy: bool, n: int = 50_000, share: float = 0.01, p: float = 0.004, K: int = 2) -> Answers:
    """In a few contexts the arm of the target is hardly ever drawn, and earns far more there."""
    special = rng.random(n) < share
    own = np.where(special, 0.5 if healthy else p, 0.5)
    arms = np.where(rng.random(n) < own, 1, 0)
    if K > 2:
        others = rng.integers(0, K - 1, n)
        arms = np.where(arms == 1, 1, others + (others >= 1))
    mean = np.where(special, 0.95, 0.1)
    rewards = (rng.random(n) < np.where(arms == 1, mean, 0.1)).astype(float)
    other = (1.0 - own) / (K - 1) if K > 2 else 1.0 - own
    log = Log(contexts=np.column_stack([special, rng.normal(size=n)]), arms=arms, rewards=rewards,
              probabilities=np.where(arms == 1, own, other), n_arms=K)  # fmt: skip
    truth = share * 0.95 + (1 - share) * 0.1
    target = np.eye(K)[1]
    found = evaluate(log, target, ("ips", "snips", "dr"), warn=False, baseline="logged")
    logged = float((own * mean + (1 - own) * 0.1).mean())
    assert found.lift is not None
    return {name: _answer(found[name], truth, found.verdict) for name in found} | {
        "lift": _answer(found.lift, truth - logged, found.verdict)
    }


def trial(rng: Rng, healthy: bool, n: int = 2000, top: float = 1.0, mean: float = 0.113) -> Answers:
    """A plain 50/50 trial: nothing is wrong with it, and its interval is to be as narrow as the exact one."""
    from scipy.special import betaincinv

    arms = rng.integers(0, 2, n)
    rewards = top * (rng.random(n) < mean)
    log = Log(contexts=rng.normal(size=(n, 1)), arms=arms, rewards=rewards, probabilities=0.5, n_arms=2)
    found = judged(log, [0.0, 1.0], top * mean, reward_range=(0.0, top))
    m, k = int((arms == 1).sum()), int((rewards[arms == 1] > 0).sum())
    low, high = float(betaincinv(k, m - k + 1, 0.025)), float(betaincinv(k + 1, m - k, 0.975))
    return found | {"exact": (low <= mean <= high, top * (high - low), False)}


@dataclass(frozen=True)
class Setting:
    """A world with a fault, a healthy one, or both."""

    make: Callable[..., Answers]
    options: dict[str, Any]
    twin: bool = True
    fault: bool = True


SETTINGS: dict[str, Setting] = {
    "xor, estimated, 20,000": Setting(interaction, {}),
    "xor, logged, 20,000": Setting(interaction, {"estimated": False}),
    "xor, estimated, 4,000": Setting(interaction, {"n": 4000}),
    "xor of 2 in 10 columns, logged, 6,000": Setting(interaction, {"n": 6000, "d": 10, "estimated": False}),
    "three signs, logged, 20,000": Setting(interaction, {"kind": "three", "estimated": False}),
    "sine, estimated, 20,000": Setting(interaction, {"kind": "sine"}),
    "band, estimated, 4,000": Setting(interaction, {"kind": "band", "n": 4000}),
    "step, logged, 2,000": Setting(interaction, {"kind": "step", "n": 2000, "estimated": False}),
    "step, estimated, 4,000": Setting(interaction, {"kind": "step", "n": 4000}),
    "model alone, 1,000": Setting(model_alone, {}),
    "model alone, 10,000": Setting(model_alone, {"n": 10_000}),
    "lognormal 2, 5 %, 2,000": Setting(heavy, {}),
    "lognormal 2, all, 500": Setting(heavy, {"share": 1.0, "n": 500}),
    "pareto 1.5, all, 10,000": Setting(heavy, {"kind": "pareto 1.5", "share": 1.0, "n": 10_000, "twin": "normal 1"}),
    "lognormal 2, 5 %, 20,000": Setting(heavy, {"n": 20_000}),
    "lognormal 1.5, 10 %, 5,000": Setting(heavy, {"n": 5000, "kind": "lognormal 1.5", "share": 0.1}),
    "lognormal 2, all, 2,000": Setting(heavy, {"share": 1.0}),
    "pareto 2.2, all, 2,000": Setting(heavy, {"kind": "pareto 2.2", "share": 1.0, "twin": "normal 1"}),
    "pareto 1.5, 20 %, 10,000, p .2": Setting(heavy, {"n": 10_000, "kind": "pareto 1.5", "share": 0.2, "p": 0.2}),
    "comparison, lognormal 2, 5 %, 2,000": Setting(heavy_comparison, {}),
    "comparison, lognormal 2, all, 2,000": Setting(heavy_comparison, {"share": 1.0}),
    "30 policies, gamma .3, 2,000": Setting(many_policies, {}),
    "30 policies, gamma .3, 6,000": Setting(many_policies, {"n": 6000}),
    "betting, line": Setting(drift, {}),
    "betting, hill": Setting(drift, {"kind": "hill"}),
    "betting, step, 500": Setting(drift, {"kind": "step", "n": 500}),
    "sequence, wave": Setting(drift, {"kind": "wave", "interval": "sequence"}),
    "betting, slow": Setting(drift, {"kind": "slow"}),
    "ten clusters": Setting(few_clusters, {}),
    "six clusters": Setting(few_clusters, {"users": 6}),
    "neighbours across folds": Setting(neighbours, {}),
    "fit with users": Setting(learnt, {}),
    "segments of few": Setting(segments, {}),
    "rare arm, 50,000": Setting(rare, {}),
    "rare arm, 20,000, p .01": Setting(rare, {"n": 20_000, "p": 0.01}),
    "rare arm, 5 arms": Setting(rare, {"K": 5}),
    "skewed probabilities, clicks": Setting(skewed_probabilities, {}, fault=False),
    "skewed probabilities, amounts": Setting(skewed_probabilities, {"clicks": False}, fault=False),
    "skewed probabilities, 5,000": Setting(skewed_probabilities, {"n": 5000, "slope": 2.5}, fault=False),
    "trial": Setting(trial, {}, twin=False),
    "trial, rewards to 100": Setting(trial, {"top": 100.0}, twin=False),
}  # fmt: skip


def measure(
    name: str, runs: int, healthy: bool = False, first: int = 0
) -> dict[str, tuple[float, float, float, float]]:
    """{estimator: (coverage, share of misses warned of, share of runs with a warning, mean width)}."""
    setting, found = SETTINGS[name], dict[str, list[Answer]]()
    for run in range(first, first + runs):
        for key, answer in setting.make(np.random.default_rng([run, 30]), healthy, **setting.options).items():
            found.setdefault(key, []).append(answer)
    return {key: _summary(answers) for key, answers in found.items()}


def _summary(answers: list[Answer]) -> tuple[float, float, float, float]:
    missed = [warned for covers, _, warned in answers if not covers]
    covers, width, warned = (float(np.mean(column)) for column in zip(*answers, strict=True))
    return covers, float(np.mean(missed)) if missed else 1.0, warned, width


def lines(name: str, runs: int) -> Iterator[str]:
    """What to print of a setting."""
    for healthy in [False] * SETTINGS[name].fault + [True] * SETTINGS[name].twin:
        for key, (covers, told, warned, width) in measure(name, runs, healthy).items():
            fine = covers >= 0.93 or told >= 0.95
            fine = fine if not healthy else warned <= 0.05
            yield (f"  {'twin ' if healthy else 'fault'} {key:18} covers {covers:.3f}  misses warned {told:.2f}  "
                   f"warned {warned:.3f}  width {width:.4f}  {'' if fine else 'FAILS'}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), metavar="NAME")
    args = parser.parse_args()
    for name in SETTINGS:
        if any(wanted in name for wanted in args.settings):
            print(name, flush=True)
            for line in lines(name, args.runs):
                print(line, flush=True)


if __name__ == "__main__":
    main()
