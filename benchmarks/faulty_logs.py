"""Logs with a fault that makes intervals wrong, each with its healthy twin: what ``benchmarks.silent_misses`` runs.

A world makes one log with the fault (an interaction that the probabilities lack, rewards with a heavy tail, drift,
users whose rows belong together, ...) or the same log without it. It says of each estimate whether its interval holds
the truth, how wide it is, and whether the verdict warns; "estimate by ..." is an interval known to cover.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from armwise.offline import Log, PropensityModel, WeakLogWarning, compare, evaluate, fit

Answer = tuple[bool, float, bool]  # whether the interval holds the truth, its width, whether the verdict warns
Answers = dict[str, Answer]
Rng = np.random.Generator


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def answer_of(estimate: Any, truth: float, verdict: str) -> Answer:
    return bool(estimate.low <= truth <= estimate.high), float(estimate.high - estimate.low), bool(verdict)


def judged(
    log: Log, policy: Any, truth: float, names: tuple[str, ...] = ("ips", "snips", "dr"), **options: Any
) -> Answers:
    """Each estimator's interval, and whether the evaluation warns."""
    found = evaluate(log, policy, names, warn=False, **options)
    return {name: answer_of(found[name], truth, found.verdict) for name in names}


# ---------------------------------------------------------------------- probabilities without an interaction


def interaction(
    rng: Rng, healthy: bool, n: int = 20_000, kind: str = "xor", d: int = 3, estimated: bool = True,
    strength: float = 0.3,
) -> Answers:  # fmt: skip
    """Arm 1 depends on a product of signs (or another shape) that a linear model of the arms does not see."""
    x = rng.normal(size=(n, d))
    shape = {
        "xor": np.sign(x[:, 0] * x[:, 1]),
        "three": np.sign(x[:, 0] * x[:, 1] * x[:, 2]),
        "sine": np.sign(np.sin(3.0 * x[:, 0])),
        "band": np.where(np.abs(x[:, 0]) < 0.67, 1.0, -1.0),
        "step": np.where(x[:, 0] > 1.0, 1.0, -1.0),
        "product": np.tanh(x[:, 0] * x[:, 1]),
    }[kind]
    p = np.full(n, 0.5) if healthy else 0.5 + strength * shape
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


def _bootstrap_t(weights: np.ndarray, rewards: np.ndarray, truth: float, seed: int, normalised: bool) -> Answer:
    """The bootstrap-t interval of IPS, or of SNIPS: what is known to cover means of skewed amounts."""
    cells, times = np.unique(np.column_stack([weights, weights * rewards]), axis=0, return_counts=True)
    n = int(times.sum())
    counts = np.random.default_rng([seed, 5]).multinomial(n, times / n, 400)

    def of(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        top, bottom = counts @ cells[:, 1] / n, counts @ cells[:, 0] / n
        value = top / bottom if normalised else top
        a = (cells[:, 1] - value[:, None] * cells[:, 0] if normalised else cells[:, 1] - value[:, None]) ** 2
        return value, np.sqrt((counts * a).sum(axis=1)) / n / (bottom if normalised else 1.0)

    (value,), (error,) = of(times[None])
    drawn, errors = of(counts)
    t = (drawn - value) / np.maximum(errors, 1e-300)
    low, high = value - np.quantile(t, [0.975, 0.025]) * error
    return bool(low <= truth <= high), float(high - low), False


def heavy(rng: Rng, healthy: bool, n: int = 2000, kind: str = "lognormal 2", share: float = 0.05, twin: str = "gamma 2",
          p: float = 0.5) -> Answers:  # fmt: skip
    """Few rows with a reward, and those of very different sizes."""
    rewards, mean = _rewards(rng, n, twin if healthy else kind, share)
    arms = (rng.random(n) < p).astype(int)
    x = rng.normal(size=(n, 2))
    log = Log(contexts=x, arms=arms, rewards=rewards, probabilities=np.where(arms == 1, p, 1 - p), n_arms=2)
    found, weights = judged(log, [0.0, 1.0], mean), (arms == 1) / p
    for name in ("ips", "snips") if share < 1.0 or n <= 2000 else ():
        found[f"{name} by bootstrap-t"] = _bootstrap_t(weights, rewards, mean, n, name == "snips")
    return found


def heavy_comparison(rng: Rng, healthy: bool, n: int = 2000, kind: str = "lognormal 2", share: float = 0.05,
                     p: float = 0.2) -> Answers:  # fmt: skip
    """Two arms that earn the same, one of them rarely tried."""
    rewards, _ = _rewards(rng, n, "gamma 2" if healthy else kind, share)
    arms = (rng.random(n) < p).astype(int)
    x = rng.normal(size=(n, 2))
    log = Log(contexts=x, arms=arms, rewards=rewards, probabilities=np.where(arms == 1, p, 1 - p), n_arms=2)
    found = {}
    for level in (0.95, 0.99):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WeakLogWarning)
            found[level] = compare(log, [0.0, 1.0], [1.0, 0.0], level=level)
    return {
        f"difference at {level:.0%}": answer_of(each, 0.0, "; ".join(each.weaknesses)) for level, each in found.items()
    }


def many_policies(rng: Rng, healthy: bool, n: int = 2000, policies: int = 30, kind: str = "gamma 0.3") -> Answers:
    """All intervals at once."""
    rewards, mean = _rewards(rng, n, "normal 1" if healthy else kind, 1.0)
    arms = rng.integers(0, policies, n)
    log = Log(arms=arms, rewards=rewards, probabilities=np.full(n, 1.0 / policies), n_arms=policies)
    found = evaluate(log, {str(k): np.eye(policies)[k] for k in range(policies)}, "snips", warn=False)
    each = [answer_of(found[name]["snips"], mean, found.verdict) for name in found]
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
    return {"ips": answer_of(fitted, 0.5, fitted.estimate.verdict)}  # a new user is a coin


# ---------------------------------------------------------------------- segments, rare arms, trials


def segments(rng: Rng, healthy: bool, n: int = 400, parts: int = 8) -> Answers:
    """Segments in which few rows answer; the twin has two of them."""
    parts, p = (2, 0.5) if healthy else (parts, 0.28)
    x = rng.integers(0, parts, n)
    arms = (rng.random(n) < p).astype(int)
    rewards = (rng.random(n) < 0.3).astype(float)
    log = Log(arms=arms, rewards=rewards, probabilities=np.where(arms == 1, p, 1 - p), n_arms=2)
    found = evaluate(log, [0.0, 1.0], ("snips",), by=x, warn=False)
    each = [answer_of(s["snips"], 0.3, found.verdict) for s in found.segments.values()]
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
    return {name: answer_of(found[name], truth, found.verdict) for name in found} | {
        "lift": answer_of(found.lift, truth - logged, found.verdict)
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
    return found | {"by exact": (low <= mean <= high, top * (high - low), False)}


def wide_range(rng: Rng, healthy: bool, n: int = 2000, top: float = 100.0) -> Answers:
    """Rewards that stay far below their stated limit, and probabilities that differ: nothing is wrong with them."""
    x = rng.uniform(-1.0, 1.0, n)
    p = _sigmoid(1.5 * x)
    arms = (rng.random(n) < p).astype(int)
    rewards = rng.gamma(2.0, 2.5, n).clip(0.0, top)
    log = Log(contexts=x[:, None], arms=arms, rewards=rewards, probabilities=np.where(arms == 1, p, 1 - p), n_arms=2)
    found = judged(log, [0.0, 1.0], 5.0, reward_range=(0.0, top))
    for name, by in judged(log, [0.0, 1.0], 5.0, reward_range=(0.0, top), max_weight=1.0 + np.exp(1.5)).items():
        found[f"{name} by max_weight"] = by
    return found
