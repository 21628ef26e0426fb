"""Several loggers: against explicit sums, unbiased, and balanced with the least variance."""

# mypy: disable-error-code="var-annotated"

from __future__ import annotations

import numpy as np
import pytest

from armwise.offline import Log, evaluate_loggers
from tests.offline.worlds import K, draw_arms, expected, logging, softmax, target, truth


def other(x):
    return 0.4 * softmax(-x[:, [0, 1, 2, 0]]) + 0.15


def make(n, seed, policy):
    rng = np.random.default_rng([seed, 6])
    x = rng.normal(size=(n, 3))
    p = policy(x)
    arms = draw_arms(p, rng)
    rewards = (rng.random(n) < expected(x)[np.arange(n), arms]).astype(float)
    return Log(contexts=x, arms=arms, rewards=rewards, probabilities=p[np.arange(n), arms], n_arms=K)


class Many:
    def __init__(self, policy):
        self.many = policy


def test_estimates_equal_sums_over_the_rows():
    logs = [make(120, 1, logging), make(80, 2, other)]
    q = np.full((200, K), 0.4)
    total = {"naive-ips": 0.0, "balanced-ips": 0.0, "naive-dr": 0.0, "balanced-dr": 0.0}
    by_log: list[list[float]] = [[], []]
    for j, log in enumerate(logs):
        for i in range(len(log)):
            x, a, r = log.contexts[i : i + 1], log.arms[i], log.rewards[i]
            pi = target(x)[0, a]
            mixture = 0.6 * logging(x)[0, a] + 0.4 * other(x)[0, a]
            total["naive-ips"] += pi / log.probabilities[i] * r
            total["balanced-ips"] += pi / mixture * r
            total["naive-dr"] += 0.4 + pi / log.probabilities[i] * (r - 0.4)
            total["balanced-dr"] += 0.4 + pi / mixture * (r - 0.4)
            by_log[j].append(pi / log.probabilities[i] * r)
    precision = [len(s) / np.var(s, ddof=1) for s in by_log]
    weighted = sum(w * np.mean(s) for w, s in zip(precision, by_log, strict=True)) / sum(precision)
    found = evaluate_loggers(
        logs, Many(target), [*total, "weighted-ips"], loggers=[Many(logging), Many(other)], reward_model=q, warn=False
    )
    for name, value in total.items():
        assert found[name].value == pytest.approx(value / 200, rel=1e-12), name
    assert found["weighted-ips"].value == pytest.approx(weighted, rel=1e-12)
    error = np.sqrt(1 / sum(precision))
    assert found["weighted-ips"].std_error == pytest.approx(error, rel=0.01)


def test_intervals_hold_the_truth_and_balanced_has_the_least_variance():
    right, held, errors = truth(), {}, {}
    for run in range(150):
        logs = {"a": make(300, 10 + run, logging), "b": make(300, 1000 + run, other)}
        names = ["naive-ips", "weighted-ips", "balanced-ips", "balanced-dr"]
        found = evaluate_loggers(logs, Many(target), names, loggers=[Many(logging), Many(other)], warn=False)
        for name in names:
            held[name] = held.get(name, 0) + (found[name].low <= right <= found[name].high)
            errors.setdefault(name, []).append(found[name].value - right)
    assert min(held.values()) >= 0.89 * 150, held  # 3.5 standard errors below 95 %
    assert np.std(errors["balanced-ips"]) < 0.9 * np.std(errors["naive-ips"])
    assert np.std(errors["balanced-dr"]) < np.std(errors["balanced-ips"])
    assert abs(np.mean(errors["balanced-ips"])) < 4 * np.std(errors["balanced-ips"]) / np.sqrt(150)


def test_what_is_missing_is_named():
    logs = [make(50, 1, logging), make(50, 2, other)]
    with pytest.raises(ValueError, match="balanced-ips needs loggers="):
        evaluate_loggers(logs, Many(target), "balanced-ips")
    with pytest.raises(ValueError, match="loggers has 1 policies, expected 2"):
        evaluate_loggers(logs, Many(target), loggers=[Many(logging)])
    with pytest.raises(ValueError, match="but its own log says"):
        evaluate_loggers(logs, Many(target), loggers=[Many(other), Many(logging)])
    with pytest.raises(ValueError, match="log 0 has no probabilities"):
        evaluate_loggers([Log(arms=[0, 1], rewards=[0, 1])], [0.5, 0.5])
    assert set(evaluate_loggers(logs, Many(target), warn=False)) == {"naive-ips", "weighted-ips"}
