"""Several loggers: logs that different policies made, pooled (Agarwal et al. 2017; Kallus, Saito & Uehara 2021)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from armwise.core.agent import Floats, count, fraction
from armwise.offline.estimators.reward_models import fitted_model
from armwise.offline.evaluation.per_round_scores import Scored, evaluation, known_estimators
from armwise.offline.evaluation.targets import Target, of_logged
from armwise.offline.logs.log import Log
from armwise.offline.logs.rows import Ints, LogBlock, WeakLogWarning, joined
from armwise.offline.results.estimates import Evaluation

ESTIMATORS = ("naive-ips", "balanced-ips", "weighted-ips", "naive-dr", "balanced-dr", "weighted-dr")


def evaluate_loggers(
    logs: Sequence[Log] | Mapping[str, Log],
    policy: Any,
    estimators: str | Iterable[str] | None = None,
    *,
    loggers: Sequence[Any] | None = None,
    reward_model: Any = None,
    level: float = 0.95,
    folds: int = 3,
    seed: int = 0,
    warn: bool = True,
) -> Evaluation:
    """Estimate a policy's value from the logs of several logging policies together.

    "naive" weighs each row by its own logger's probability; "weighted" weighs the logs by the inverse of their
    estimates' variance; "balanced" divides by the mixture of all loggers, sum_j n_j p_j(a | x) / n, which no row of a
    rare arm can blow up: the least variance of the three. It needs to know what every logger would have done in the
    rows of the others: ``loggers``, one policy per log in any form that ``policy`` may have (arrays have the rows of
    all logs, one log after the other). "-dr" adds a cross-fitted model of the rewards. By default all of IPS that can
    be had.

    >>> p = [0.75, 0.75, 0.75, 0.25]
    >>> one = Log(arms=[0, 0, 0, 1] * 50, rewards=[1, 1, 1, 0] * 50, probabilities=p * 50, n_arms=2)
    >>> two = Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=[0.5] * 100, n_arms=2)
    >>> found = evaluate_loggers([one, two], [0.5, 0.5], loggers=[[0.75, 0.25], [0.5, 0.5]])
    >>> round(found["balanced-ips"].value, 12)
    0.5
    """
    every = list(logs.values()) if isinstance(logs, Mapping) else list(logs)
    _check(every)
    fraction("level", level)
    count("folds", folds, least=2)
    names = _names(estimators, loggers, len(every))
    stratum: Ints = np.repeat(np.arange(len(every)), [len(log) for log in every])
    pooled = _pooled(every)
    rows, target = pooled.rows, Target(policy, pooled)
    answers = target.answers(rows)
    own = of_logged(answers, rows.arms)
    assert rows.probabilities is not None
    weights = {"naive": own / rows.probabilities, "weighted": own / rows.probabilities}
    if loggers is not None:
        weights["balanced"] = own / _mixture(loggers, pooled, stratum)
    base, correction = np.zeros(len(rows)), rows.rewards
    found = {}
    model = fitted_model(reward_model, pooled, folds, seed) if any(name.endswith("-dr") for name in names) else None
    for name in names:
        kind, _, how = name.partition("-")
        if how == "dr" and model is not None:
            q, each = model.predict(rows), np.arange(len(rows))
            base = q[each, answers] if answers.ndim == 1 else np.einsum("nk,nk->n", answers, q)
            correction = rows.rewards - q[each, rows.arms]
        else:
            base, correction = np.zeros(len(rows)), rows.rewards
        found[name] = _scored(base + weights[kind] * correction, weights[kind], stratum, kind == "weighted")
    result = evaluation(found, target.name, level, rewards=rows.rewards)
    if result.weaknesses and warn:
        warnings.warn(WeakLogWarning(result.verdict), stacklevel=2)
    return result


def _check(logs: list[Any]) -> None:
    if not logs or not all(isinstance(log, Log) for log in logs):
        raise ValueError(f"logs must be armwise.offline.Logs, one per logger, got {[type(x).__name__ for x in logs]}")
    for i, log in enumerate(logs):
        if not log.has_probabilities:
            raise ValueError(f"log {i} has no probabilities: estimate them with armwise.offline.PropensityModel")
        if len(log) < 2:
            raise ValueError(f"log {i} has {len(log)} rows, too few for a variance")
        if log.n_arms != logs[0].n_arms or log.arm_names != logs[0].arm_names:
            raise ValueError(
                f"log {i} has other arms than log 0 ({log.n_arms} and {logs[0].n_arms}): give both the same n_arms and "
                "arm_names"
            )


def _names(estimators: str | Iterable[str] | None, loggers: Any, n: int) -> list[str]:
    if loggers is not None and len(loggers) != n:
        raise ValueError(f"loggers has {len(loggers)} policies, expected {n}, one per log")
    if estimators is None:
        return ["naive-ips", "weighted-ips", *(["balanced-ips"] if loggers is not None else [])]
    names = known_estimators(estimators, ESTIMATORS)
    for name in names:
        if name.startswith("balanced") and loggers is None:
            raise ValueError(f"{name} needs loggers=, the policies that made the logs, to mix their probabilities")
    return names


def _pooled(logs: list[Log]) -> Log:
    """All rows, one log after the other."""
    blocks = [replace(log.rows, start=0) for log in logs]
    for field in fields(LogBlock):
        if len({getattr(block, field.name) is None for block in blocks}) > 1:
            raise ValueError(f"some of the logs have {field.name} and others have none: give all of them the same")
    return logs[0]._like(joined(blocks, logs[0].n_arms))


def _mixture(loggers: Sequence[Any], pooled: Log, stratum: Ints) -> Floats:
    """sum_j (n_j / n) p_j(a | x) of each row's arm."""
    share = np.bincount(stratum, minlength=len(loggers)) / len(stratum)
    rows = pooled.rows
    total = np.zeros(len(rows))
    for j, logger in enumerate(loggers):
        p = of_logged(Target(logger, pooled).answers(rows), rows.arms)
        mine = np.flatnonzero(stratum == j)
        off = np.abs(p[mine] - rows.probabilities[mine]) > 1e-3  # type: ignore[index]
        if off.any():
            row = int(mine[np.argmax(off)])
            raise ValueError(
                f"loggers, policy {j}: it plays arm {rows.arms[row]} with {p[row]:.6g}, but its own log says "
                f"{rows.probabilities[row]:.6g} ({int(off.sum())} such rows)"  # type: ignore[index]
            )
        total += share[j] * p
    return total


def _scored(scores: Floats, weights: Floats, stratum: Ints, by_variance: bool) -> Scored:
    """Scores whose mean is the estimate; around each log's own mean for the interval, as the logs are not mixed."""
    n = len(scores)
    size = np.bincount(stratum).astype(np.float64)
    mean = np.bincount(stratum, scores) / size
    factor = np.ones(len(size))
    if by_variance:
        variance = np.bincount(stratum, (scores - mean[stratum]) ** 2) / (size - 1)
        precision = size / np.maximum(variance, 1e-12)
        factor = precision / precision.sum() * n / size
    value = float((factor * size * mean).sum() / n)
    centre = factor[stratum] * (scores - mean[stratum]) + value
    return Scored(factor[stratum] * scores, weights, centre=centre)
