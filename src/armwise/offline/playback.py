"""Replay: a *learning* agent lives through the logged rounds that its own choices match (Li et al. 2011)."""

from __future__ import annotations

import copy
import html
import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import chisquare

from armwise.agent import Agent, Choice, Floats, count, fraction
from armwise.offline import intervals
from armwise.offline.diagnostics import WeakLogWarning
from armwise.offline.log import Log
from armwise.offline.progress import bar
from armwise.offline.rows import Ints, Rows
from armwise.offline.targets import ndim_of, views
from armwise.offline.views import number
from armwise.streams import stream


@dataclass(frozen=True)
class Replay:
    """What the agent earned in the rounds that matched, and the agent as it was at the end.

    >>> import armwise as aw
    >>> log = aw.offline.Log(arms=[0, 1, 0], rewards=[1, 0, 1], probabilities=[0.5] * 3, n_arms=2)
    >>> aw.offline.replay(log, aw.UCB1(n_arms=2, seed=0)).n
    3
    """

    value: float
    low: float
    high: float
    std_error: float
    matched: int
    n: int
    rewards: Floats
    rows: Ints  # the rows that matched
    method: str
    level: float
    warnings: tuple[str, ...]
    agent: Agent = field(repr=False)

    def table(self) -> str:
        """The result as lines of text."""
        lines = [
            f"reward a round   {number(self.value)}",
            f"{self.level:.0%} interval     {number(self.low)} to {number(self.high)}",
            f"rows matched     {self.matched:,} of {self.n:,} ({self.method})",
        ]
        return "\n".join([*lines, *(f"WARNING: {text}" for text in self.warnings)])

    __str__ = table

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.table())}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        numbers = {k: getattr(self, k) for k in ("value", "low", "high", "std_error")}
        plain = {k: v if math.isfinite(v) else None for k, v in numbers.items()}
        rest = {k: getattr(self, k) for k in ("matched", "n", "method", "level")}
        return {**plain, **rest, "warnings": list(self.warnings)}


def replay(
    log: Log,
    agent: Agent,
    *,
    horizon: int | None = None,
    floor: float | None = None,
    level: float = 0.95,
    seed: int = 0,
    progress: bool = False,
) -> Replay:
    """Let a copy of ``agent`` choose in every logged round; where it picks the logged arm, it learns the reward.

    On a log whose arms were drawn uniformly (equal probabilities, or none given) the matching rounds are what the
    agent would have lived through. With other probabilities p a match is accepted with probability floor / p
    (``floor`` at most the smallest p, which it is by default), so that every arm is as likely to be accepted as every
    other. A round that does not match leaves the agent as it was, apart from its random stream. ``horizon`` stops
    after so many matches; how many a log yields depends on the agent, so fix it when agents are compared.

    >>> import armwise as aw
    >>> rng = np.random.default_rng(0)
    >>> arms = rng.integers(0, 2, 4000)
    >>> log = Log(arms=arms, rewards=arms * 0.8, probabilities=np.full(4000, 0.5), n_arms=2)
    >>> bool(aw.offline.replay(log, aw.UCB1(n_arms=2, seed=1)).value > 0.7)
    True
    """
    if not isinstance(agent, Agent):
        raise ValueError(f"agent must be an agent that learns, got {type(agent).__name__}; evaluate() judges policies")
    horizon = None if horizon is None else count("horizon", horizon)
    fraction("level", level)
    limit, notes = _floor(log, floor)
    learner, accept = copy.deepcopy(agent), stream(seed, "acceptance")
    rewards: list[float] = []
    matched: list[int] = []
    n = 0
    with bar(log, 1, progress) as advance:
        for rows in log.batches(contexts=agent.sees != "nothing"):
            done = _play(learner, rows, limit, accept, rewards, matched, horizon)
            n += done
            advance(done)
            if horizon is not None and len(rewards) == horizon:
                break
    return _result(rewards, matched, n, notes, limit, level, learner)


def _play(
    agent: Agent, rows: Rows, limit: float | None, accept: np.random.Generator, rewards: list[float],
    matched: list[int], horizon: int | None,
) -> int:  # fmt: skip
    """Live through a block of rows; how many it took."""
    contexts = views(agent.sees, rows)
    per_arm = rows.available is not None and ndim_of(contexts) == 3
    if rows.available is not None and not per_arm:
        raise ValueError(f"the log's arms change from row to row, but {type(agent).__name__} always has the same")
    for i in range(len(rows)):
        context, arm = contexts[i], int(rows.arms[i])
        if per_arm:  # the agent sees only what was on offer, numbered from 0
            offered = rows.available[i]  # type: ignore[index]
            context, arm = context[offered], int(np.count_nonzero(offered[:arm]))
        before = _counters(agent)
        choice = agent.choose(context)
        if choice.arm != arm or not _accepted(rows, i, limit, accept):
            _restore(before)
            continue
        reward = float(rows.rewards[i])
        try:
            agent.learn(context, Choice(arm, choice.probability, choice.note), reward)
        except ValueError as error:
            raise ValueError(f"row {rows.start + i}: {error}") from None
        rewards.append(reward)
        matched.append(rows.start + i)
        if len(rewards) == horizon:
            return i + 1
    return len(rows)


def _accepted(rows: Rows, i: int, limit: float | None, accept: np.random.Generator) -> bool:
    return limit is None or accept.random() * rows.probabilities[i] < limit  # type: ignore[index]


def _counters(agent: Agent) -> list[tuple[Agent, dict[str, Any]]]:
    """The numbers that choosing may have moved (EpochGreedy counts its choices), in the agent and those it wraps."""
    kept = {name: value for name in agent._learnt if isinstance(value := getattr(agent, name), (bool, int, float))}
    found = [(agent, kept)] if kept else []
    for inner in agent.__dict__.values():
        if isinstance(inner, Agent):
            found += _counters(inner)
    return found


def _restore(counters: list[tuple[Agent, dict[str, Any]]]) -> None:
    for agent, kept in counters:
        for name, value in kept.items():
            setattr(agent, name, value)


def _floor(log: Log, floor: float | None) -> tuple[float | None, list[str]]:
    """The acceptance floor (None where every match is accepted), and what speaks against the log."""
    if not log.has_probabilities:
        if floor is not None:
            raise ValueError("floor is given, but the log has no probabilities to compare it with")
        counts = np.zeros(log.n_arms)
        for rows in log.batches(contexts=False):
            counts += np.bincount(rows.arms, minlength=log.n_arms)
        if counts.any() and chisquare(counts).pvalue < 1e-6:
            return None, [
                "the log has no probabilities and its arms are not equally frequent: replay needs a uniform log"
            ]
        return None, []
    least, most = np.inf, 0.0
    for rows in log.batches(contexts=False):
        assert rows.probabilities is not None
        least, most = min(least, float(rows.probabilities.min())), max(most, float(rows.probabilities.max()))
    if floor is not None and not 0.0 < floor <= least:
        raise ValueError(f"floor must lie in (0, {least:g}], the smallest probability in the log, got {floor}")
    if floor is None and most - least <= 1e-9 * most:
        return None, []
    return (least if floor is None else float(floor)), []


def _result(
    rewards: list[float], matched: list[int], n: int, notes: list[str], limit: float | None, level: float, agent: Agent
) -> Replay:
    got, m = np.array(rewards), len(rewards)
    if m < 0.01 * n and m < 1000:
        notes = [*notes, f"this log cannot answer the question: only {m:,} of {n:,} rows match the agent's choices"]
    value = float(got.mean()) if m else math.nan
    variance = float(got.var(ddof=1)) if m > 1 else math.nan
    low, high = intervals.normal(value, variance, m, level) if m else (math.nan, math.nan)
    if notes:
        warnings.warn(WeakLogWarning("; ".join(notes)), stacklevel=3)
    method = "every match" if limit is None else f"matches accepted with probability {limit:.3g} / p"
    error = math.sqrt(variance / m) if m else math.nan
    return Replay(value, float(low), float(high), error, m, n, got, np.array(matched, np.int64), method, level,
                  tuple(notes), agent)  # fmt: skip
