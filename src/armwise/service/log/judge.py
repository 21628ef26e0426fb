"""Evaluate other policies on decisions of the journal by inverse propensities (IPS and SNIPS)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from armwise.service.journal.events import Decision, Row
from armwise.service.log.export_journal import stamp
from armwise.service.model.drawing.encoded import offered
from armwise.service.model.model import DrawRequest, Model

if TYPE_CHECKING:
    from armwise.offline import Log

BUCKETS = 24  # points of a time series
Rounds = list[tuple[Row, Decision, float]]
Distribution = list[float] | str  # a policy's distribution over the arms of a round, or why it has none


def followed(model: Model, rounds: Rounds) -> list[Distribution]:
    """A model's answer in every round, after which it learns the logged action."""
    table: list[Distribution] = []
    for _, decision, reward in rounds:
        try:
            [drawn] = model.decide([DrawRequest(bytes(decision.context), offered(decision), 0.5)])
            model.observe_decision(decision)
        except (ValueError, ArithmeticError) as error:  # other arms than it was made for, say
            table.append(str(error) or type(error).__name__)
            continue
        table.append(drawn.p.tolist())
        model.learn(msgspec.structs.replace(decision, note=None, scaling=drawn.seen.scaling.packed), reward)
    return table


def missed(table: list[Distribution]) -> str:
    """The number of rounds without an answer of a policy, and why; empty if there are none."""
    reasons = [answer for answer in table if isinstance(answer, str)]
    if not reasons:
        return ""
    return f"it could not answer {len(reasons)} of {len(table)} decisions ({reasons[-1]}), which are left out"


def as_log(rounds: Rounds, table: list[Any]) -> tuple[Log, np.ndarray]:
    """Convert rounds to a log with its propensities, and a policy's answers to an array."""
    n, K = len(rounds), max(len(decision.p) for _, decision, _ in rounds)
    targets, available, support = np.zeros((n, K)), np.zeros((n, K), np.bool_), np.zeros((n, K), np.bool_)
    for i, ((_, decision, _), distribution) in enumerate(zip(rounds, table, strict=True)):
        k = len(decision.p)
        targets[i, :k], available[i, :k], support[i, :k] = distribution, True, np.array(decision.p) > 0.0
    from armwise.offline import Log  # slow to import

    log = Log(
        arms=np.array([decision.arm for _, decision, _ in rounds]),
        rewards=np.array([reward for _, _, reward in rounds]),
        probabilities=np.array([decision.p[decision.arm] for _, decision, _ in rounds]),
        n_arms=K, available=available, support=support,
    )  # fmt: skip
    return log, targets


def judged(rounds: Rounds, table: list[Any]) -> tuple[dict[str, Any], str]:
    """The sums and estimates of one policy, in all and over time, and what speaks against trusting them."""
    log, targets = as_log(rounds, table)
    from armwise.offline import evaluate  # slow to import, and the first decision does not need it

    found = evaluate(log, targets, estimators=["ips", "snips"], warn=False)  # told in the description
    arms, rewards = log.arms, log.rewards
    weights = targets[np.arange(len(arms)), arms] / np.array([d.p[d.arm] for _, d, _ in rounds])
    times = np.array([row.time for row, _, _ in rounds])
    total = _sums(weights, rewards) | {"timeStamp": stamp(int(times[0]))}
    snips = found["snips"]
    total |= {"averageReward": _plain(snips.value), "low": _plain(snips.low), "high": _plain(snips.high)}
    width = max(300_000, -(-int(times[-1] - times[0] + 1) // BUCKETS // 300_000) * 300_000)
    series = []
    buckets = (times - times[0]) // width
    for bucket in np.unique(buckets):
        inside = buckets == bucket
        sums = _sums(weights[inside], rewards[inside])
        top, bottom = sums["ipsEstimatorNumerator"], sums["snipsEstimatorDenominator"]
        average = top / bottom if bottom > 0.0 else None
        series.append(sums | {"timeStamp": stamp(int(times[0] + bucket * width)), "averageReward": average})
    return {"total": total, "series": series, "minutes": width // 60_000}, found.verdict


def _sums(weights: np.ndarray, rewards: np.ndarray) -> dict[str, Any]:
    return {
        "ipsEstimatorNumerator": float(weights @ rewards),
        "ipsEstimatorDenominator": float(len(weights)),
        "snipsEstimatorDenominator": float(weights.sum()),
        "nonZeroProbability": float((weights > 0.0).mean()),
        "sumOfSquares": float(((weights * rewards) ** 2).sum()),
    }


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
