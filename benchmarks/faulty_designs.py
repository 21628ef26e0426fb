"""Special designs where an assumption fails, each with its healthy twin: what ``benchmarks.silent_misses`` runs.

Continuous actions, agents that learn while rewards drift, rankings, arms with embeddings, and certificates of regret.
Each world answers as those of ``benchmarks.faulty_logs`` do.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np

import armwise as aw
from armwise.models.ridge import Ridge
from armwise.offline import (
    ContinuousLog,
    Log,
    SlateLog,
    adaptive,
    evaluate,
    evaluate_continuous,
    evaluate_embedded,
    evaluate_slates,
)
from armwise.theory.certificate import RejectedCertificateWarning
from benchmarks.faulty_logs import Answer, Answers, Rng, answer_of

# ---------------------------------------------------------------------- continuous actions

Demand = Callable[[np.ndarray], np.ndarray]


def _logistic(middle: float, scale: float) -> Demand:
    return lambda price: 1.0 / (1.0 + np.exp(-(middle - price) / scale))


DEMANDS: dict[str, tuple[Demand, float]] = {  # and the price that is asked for
    "logistic": (_logistic(5.0, 0.7), 4.0),
    "flat": (_logistic(5.0, 1.0), 5.0),
    "steep": (_logistic(4.5, 0.3), 4.0),
    "very steep": (_logistic(4.0, 0.1), 3.8),
    "jump": (lambda a: 0.1 + 0.8 * (a < 4.0), 3.9),
    "wavy": (lambda a: 0.5 + 0.4 * np.sin(2.0 * a), 0.8),
    "linear": (lambda a: 1.0 - a / 12.0, 4.0),
}


def _smoothed(a: np.ndarray, r: np.ndarray, p: np.ndarray, at: float, truth: float, model: bool) -> Answer:
    """The plain kernel interval with the bandwidth .6 span n^(-1/3), known to cover where nothing jumps."""
    h = 0.6 * float(np.ptp(a)) * len(a) ** (-1.0 / 3.0)
    w = 0.75 * np.clip(1.0 - ((a - at) / h) ** 2, 0.0, None) / (h * p)
    q = np.polynomial.Polynomial.fit(a, r, 3) if model else lambda a: np.full(np.shape(a), r @ w / w.sum())
    scores = q(np.array([at])) + w * (r - q(a))
    half = 1.96 * scores.std() / math.sqrt(len(a))
    return bool(abs(scores.mean() - truth) <= half), 2.0 * float(half), False


def prices(rng: Rng, healthy: bool, n: int = 4000, kind: str = "logistic", even: bool = True) -> Answers:
    """Prices, what buyers pay, and the question what one price would have earned; the twin's demand is linear."""
    demand, at = DEMANDS["linear" if healthy else kind]
    if even:
        a, p = rng.uniform(0.0, 10.0, n), np.full(n, 0.1)
    else:  # prices near 5, within the same bounds
        u = rng.random(n) * (np.tanh(2.5) * 2.0) - np.tanh(2.5)
        a = 5.0 + 2.0 * np.arctanh(u)
        p = 1.0 / (2.0 * np.cosh((a - 5.0) / 2.0) ** 2 * 2.0 * np.tanh(2.5))
    paid = a * (rng.random(n) < demand(a))
    log = ContinuousLog(actions=a, rewards=paid, densities=p, bounds=(0.0, 10.0))
    truth = at * float(demand(np.array([at]))[0])
    result = evaluate_continuous(log, at, warn=False)
    found = {name: answer_of(result[name], truth, result.verdict) for name in result}
    for name in ("kernel-snips", "kernel-dr"):
        found[f"{name} by undersmoothing"] = _smoothed(a, paid, p, at, truth, name == "kernel-dr")
    return found


def doses(rng: Rng, healthy: bool, n: int = 4000, width: float = 0.5, slope: float = 1.5) -> Answers:
    """Doses, whose best depends on the patient, and a policy that follows it; the twin's curve is wide."""
    x = rng.normal(size=(n, 2))
    best = np.clip(slope * x[:, 0], -4.0, 4.0)
    a = rng.normal(0.0, 2.5, n)
    p = np.exp(-(a**2) / 12.5) / (2.5 * math.sqrt(2.0 * math.pi))
    wide = 4.0 if healthy else width
    rewards = np.exp(-((a - best) ** 2) / (2.0 * wide**2)) + rng.normal(0.0, 0.2, n)
    log = ContinuousLog(contexts=x, actions=a, rewards=rewards, densities=p)
    result = evaluate_continuous(log, np.clip(best + 0.3, -4.0, 4.0), warn=False)
    off = np.clip(slope * np.random.default_rng(1).normal(size=1_000_000), -4.0, 4.0)
    truth = float(np.exp(-((np.clip(off + 0.3, -4.0, 4.0) - off) ** 2) / (2.0 * wide**2)).mean())
    return {name: answer_of(result[name], truth, result.verdict) for name in result}


# ---------------------------------------------------------------------- agents that learn

AGENTS: dict[str, Callable[[int, int], aw.Agent]] = {
    "greedy": lambda K, seed: aw.EpsilonGreedy(n_arms=K, epsilon=0.1, seed=seed),
    "exp3": lambda K, seed: aw.Exp3(n_arms=K, gamma=0.1, seed=seed),
    "thompson": lambda K, seed: aw.BetaThompson(K, draws=100, seed=seed),
    "thompson, floor": lambda K, seed: aw.Explore(aw.BetaThompson(K, draws=100, seed=seed), 0.1, seed=seed),
    "uniform": lambda K, seed: aw.EpsilonGreedy(n_arms=K, epsilon=1.0, seed=seed),
}  # fmt: skip


def _moving(kind: str, n: int) -> np.ndarray:
    t = np.linspace(0.0, 1.0, n)
    one, other = {
        "rise": (0.1 + 0.8 * t, 0.15 + 0.7 * t),
        "apart": (0.5 - 0.15 * t, 0.45 + 0.1 * t),
        "cross": (0.7 - 0.4 * t, 0.3 + 0.4 * t),
        "step": (np.where(t < 0.6, 0.3, 0.6), np.where(t < 0.6, 0.4, 0.5)),
        "wave": (0.5 + 0.3 * np.sin(7.0 * t), 0.5 + 0 * t),
    }[kind]
    return np.column_stack([one, other])


def learning(rng: Rng, healthy: bool, n: int = 2000, agent: str = "thompson", kind: str = "rise",
             **options: str) -> Answers:  # fmt: skip
    """The log of an agent that learns, while the arms' means move; the truth is their mean over these rounds."""
    means = np.broadcast_to([0.4, 0.5], (n, 2)) if healthy else _moving(kind, n)
    played = AGENTS[agent](2, int(rng.integers(2**31))).play(None, (rng.random((n, 2)) < means).astype(float))
    log = Log(arms=played.arms, rewards=played.rewards, probabilities=played.probabilities, n_arms=2)
    found, plain = adaptive(log, warn=False, **options), adaptive(log, weights="equal", interval="normal", warn=False)  # type: ignore[arg-type]
    answers = {}
    for a in range(2):
        truth = float(means[:, a].mean())
        answers[f"arm {a}"] = answer_of(found[f"arm {a}"], truth, found.verdict)
        if "interval" not in options:  # a guaranteed interval is wider
            answers[f"arm {a} by equal weights"] = answer_of(plain[f"arm {a}"], truth, "")
    return answers


def many_arms(rng: Rng, healthy: bool, n: int = 1000, arms: int = 10, agent: str = "uniform") -> Answers:
    """A log of many arms: nothing is wrong with it."""
    means = np.linspace(0.3, 0.6, arms)
    played = AGENTS[agent](arms, int(rng.integers(2**31))).play(None, (rng.random((n, arms)) < means).astype(float))
    log = Log(arms=played.arms, rewards=played.rewards, probabilities=played.probabilities, n_arms=arms)
    found = adaptive(log, warn=False)
    return {f"arm {a}": answer_of(found[f"arm {a}"], means[a], found.verdict) for a in (0, arms - 1)}


def at_any_time(rng: Rng, healthy: bool, n: int = 5000, rate: float = 0.1, agent: str = "uniform",
                amounts: bool = False) -> Answers:  # fmt: skip
    """An interval that may be looked at whenever one likes: a miss is one at any row."""
    drawn = rng.lognormal(0.0, 1.0, (n, 2)) if amounts else np.ones((n, 2))
    rewards, truth = (rng.random((n, 2)) < rate) * drawn, rate * (math.exp(0.5) if amounts else 1.0)
    if agent == "uniform":
        arms = rng.integers(0, 2, n)
        log = Log(arms=arms, rewards=rewards[np.arange(n), arms], probabilities=0.5, n_arms=2)
    else:
        played = AGENTS[agent](2, int(rng.integers(2**31))).play(None, rewards)
        log = Log(arms=played.arms, rewards=played.rewards, probabilities=played.probabilities, n_arms=2)
    found = adaptive(log, interval="asymptotic", warn=False)
    answers = {}
    for name in found:
        low, high = found.path(name)
        inside = bool(((low <= truth) & (truth <= high)).all())
        answers[name] = inside, min(float(high[-1] - low[-1]), 1e9), bool(found.verdict)
    return answers


def rare_sequence(rng: Rng, healthy: bool, n: int = 2000, p: float = 0.05) -> Answers:
    """An arm that is drawn seldom, in an interval for all times: as narrow here as in ``evaluate``."""
    arms = (rng.random(n) < p).astype(int)
    rewards = (rng.random(n) < 0.4) * 1.0
    log = Log(arms=arms, rewards=rewards, probabilities=np.where(arms == 1, p, 1 - p), n_arms=2)
    found = adaptive(log, interval="sequence", warn=False)
    other = evaluate(log, [0.0, 1.0], "ips", interval="sequence", warn=False)
    return {
        "arm 1": answer_of(found["arm 1"], 0.4, found.verdict),
        "arm 1 by evaluate": answer_of(other["ips"], 0.4, ""),
    }


def rare_agent(rng: Rng, healthy: bool, n: int = 1000, p: float = 0.02) -> Answers:
    """An arm that an agent drew about twenty times: its interval is wide, and nothing is wrong with it."""
    arms = (rng.random(n) < p).astype(int)
    log = Log(arms=arms, rewards=(rng.random(n) < 0.5) * 1.0, probabilities=np.where(arms == 1, p, 1 - p), n_arms=2)
    found = adaptive(log, warn=False)
    return {"arm 1": answer_of(found["arm 1"], 0.5, found.verdict)}


# ---------------------------------------------------------------------- rankings and arms with embeddings

_WORTH, _SLOTS = np.array([0.1, 0.3, 0.5, 0.6]), 3
_RANKING = np.full((_SLOTS, 4), 0.025)
_RANKING[[0, 1, 2], [3, 2, 3]] = 0.925
_EVERY = np.array(np.meshgrid(*[range(4)] * _SLOTS, indexing="ij")).reshape(_SLOTS, -1).T
_CHANCE = np.prod([_RANKING[slot, _EVERY[:, slot]] for slot in range(_SLOTS)], axis=0)


def _clicks(actions: np.ndarray, above: float, below: float) -> np.ndarray:
    own = _WORTH[actions]
    before = np.cumsum(own, axis=1) - own
    after = own.sum(axis=1, keepdims=True) - own - before
    return np.asarray(own * (1.0 - above * before - below * after))


def rankings(rng: Rng, healthy: bool, n: int = 5000, above: float = 0.0, below: float = 0.0) -> Answers:
    """Rankings whose slots lose clicks to good arms above or below them; in the twin they do not."""
    above, below = (0.0, 0.0) if healthy else (above, below)
    truth = float(_CHANCE @ _clicks(_EVERY, above, below).sum(axis=1))
    x = rng.normal(size=(n, 1))
    p = np.exp(0.15 * x * np.arange(4))
    p /= p.sum(axis=1, keepdims=True)
    drawn = [np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), 3) for _ in range(_SLOTS)]
    actions = np.stack(drawn, axis=1)
    rewards = (rng.random((n, _SLOTS)) < _clicks(actions, above, below)).astype(float)
    log = SlateLog(x, actions, rewards, np.take_along_axis(p, actions, axis=1), n_arms=4)
    found = evaluate_slates(log, np.broadcast_to(_RANKING, (n, _SLOTS, 4)), warn=False)
    return {name: answer_of(found[name], truth, found.verdict) for name in found}


def embedded(rng: Rng, healthy: bool, n: int = 4000, arms: int = 200, groups: int = 10, direct: float = 0.15,
             known: bool = True) -> Answers:  # fmt: skip
    """Many arms, half of which earn more and half less than their group, and a target that prefers the better half."""
    direct = 0.0 if healthy else direct
    better = np.random.default_rng(1).random(arms) < 0.5
    group = np.arange(arms) % groups
    means = (0.15 + 0.3 * group / groups) * np.where(better, 1.0 + direct, 1.0 - direct)
    target = np.where(better, 2.0, 0.5)
    target /= target.sum()
    played = rng.integers(0, arms, n)
    log = Log(arms=played, rewards=(rng.random(n) < means[played]).astype(float), n_arms=arms)
    logging = np.full(arms, 1.0 / arms) if known else None
    found = evaluate_embedded(log, target, group, logging=logging, warn=False)
    return {name: answer_of(found[name], float(target @ means), found.verdict) for name in found}


# ---------------------------------------------------------------------- certificates


def certified(rng: Rng, healthy: bool, n: int = 3000, kind: str = "bend", agent: str = "LinUCB") -> Answers:
    """A certificate of regret of a world that is not linear: it must hold, or be rejected with a warning."""
    X = rng.uniform(-1.0, 1.0, (n, 4, 3))
    theta = np.array([0.5, -0.3, 0.2])
    beyond = {"bend": X[..., 0] ** 2, "product": X[..., 0] * X[..., 1], "step": (X[..., 0] > 0.3) * 1.0,
              "later": (np.arange(n) > n / 2)[:, None] * -2.0 * X[..., 0]}[kind]  # fmt: skip
    means = X @ theta + (0.0 if healthy else 0.6) * beyond
    seed = int(rng.integers(2**31))
    made = aw.LinUCB(3, seed=seed) if agent == "LinUCB" else aw.EpsilonGreedy(model=Ridge(3), epsilon=0.1, seed=seed)
    played = made.play(X, means + rng.normal(0.0, 0.3, (n, 4)))
    regret = float((means.max(axis=1) - means[np.arange(n), played.arms]).sum())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = aw.certificate(X, played.arms, played.rewards, noise=0.3, norm=1.0)
    warned = any(issubclass(each.category, RejectedCertificateWarning) for each in told)
    return {"certificate": (regret <= found.regret, min(found.regret, found.claimed), warned)}
