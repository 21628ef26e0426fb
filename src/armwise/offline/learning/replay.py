"""Replay: a *learning* agent lives through the logged rounds that its own choices match (Li et al. 2011)."""

from __future__ import annotations

import copy
import math
import warnings
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.special import chdtrc, stdtr, stdtrit

from armwise.core.agent import Agent, Choice, Floats, count, fraction
from armwise.core.seeds import stream
from armwise.offline.evaluation.targets import ndim_of, views
from armwise.offline.intervals import intervals
from armwise.offline.logs.checks.balance import Balance, listed
from armwise.offline.logs.log import Log
from armwise.offline.logs.row_progress import bar
from armwise.offline.logs.rows import Ints, LogBlock, WeakLogWarning
from armwise.offline.results.cautions import distinct
from armwise.offline.results.terminal import number, percent, warning_block

_SHORT = 3000  # rows of a log that is replayed again and again without being asked
_SURELY = 500  # matched rows of equal reward beyond which an interval of 3/n is narrow enough
_FEW = 10  # rewards other than the most frequent, below which no interval is to be relied on


@dataclass(frozen=True)
class Replay:
    """The agent's rewards in the rounds that matched, and the agent at the end.

    >>> import armwise as aw
    >>> log = aw.offline.Log(arms=[0, 1] * 60, rewards=[1, 0, 0, 1] * 30, probabilities=[0.5] * 120, n_arms=2)
    >>> aw.offline.replay(log, aw.UCB1(n_arms=2, seed=0)).n
    120
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
    runs: int = 0  # resampled logs behind the interval; 0: this run alone
    columns: str | None = None  # the roles of the columns, if the log has names
    logged: float = math.nan  # the log's own mean reward
    remarks: tuple[str, ...] = ()  # how the log was read: rows that were left out, say

    @property
    def name(self) -> str:
        """The agent's class."""
        return type(self.agent).__name__

    @property
    def about(self) -> str:
        """Describe what the interval covers."""
        if self.runs:
            return f"over logs and runs of the agent, from {self.runs} resampled logs"
        return "of this one run: it leaves out how differently the agent might have learnt (runs=20 brings that in)"

    @property
    def cautions(self) -> list[str]:
        """Return all caveats of these numbers: distinct sentences, the most important first."""
        return distinct(("", text) for text in (*self.warnings, *self.remarks))

    def table(self) -> str:
        """The result as lines of text."""
        lines = [
            f"reward per decision  {number(self.value)}",
            f"{percent(self.level)} interval         {number(self.low)} to {number(self.high)}",
            f"rows matched         {self.matched:,} of {self.n:,} ({self.method})",
            f"the interval is {self.about}",
            *([f"the log earned       {number(self.logged)} per decision"] if math.isfinite(self.logged) else []),
            *([f"columns: {self.columns}"] if self.columns else []),
        ]
        return "\n".join([*lines, *warning_block(self.cautions)])

    __str__ = table

    def _repr_html_(self) -> str:
        from armwise.offline.results import html_pages

        return html_pages.replay_fragment(self)

    def plot(self, path: Any = None) -> Any:
        """The learning curve, as a matplotlib figure (written to ``path`` if there is one)."""
        from armwise.offline.results import figures, html_pages

        return html_pages.saved(figures.replay_figure(self), path)

    def report(self, path: Any) -> None:
        """One self-contained HTML page: the learning curve and the numbers."""
        from armwise.offline.results import html_pages

        html_pages.replay_report(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        numbers = {k: getattr(self, k) for k in ("value", "low", "high", "std_error", "logged")}
        plain = {k: v if math.isfinite(v) else None for k, v in numbers.items()}
        rest = {k: getattr(self, k) for k in ("matched", "n", "method", "level", "runs", "about", "columns")}
        return {**plain, **rest, "warnings": self.cautions}


def replay(
    log: Log,
    agent: Agent,
    *,
    horizon: int | None = None,
    floor: float | None = None,
    level: float = 0.95,
    runs: int | None = None,
    seed: int = 0,
    warn: bool = True,
    progress: bool = False,
) -> Replay:
    """Let a copy of ``agent`` choose in every logged round; where it picks the logged arm, it learns the reward.

    On a log whose arms were drawn uniformly (equal probabilities) the matching rounds are what the agent would have
    lived through. A log without probabilities is taken to be such a one, which the result says; it warns where the
    arms' frequencies or the contexts of their rows speak against it. With other probabilities p a match is accepted
    with probability floor / p (``floor`` at most the smallest p, which it is by default), so that every arm is as
    likely to be accepted as every other. A round that does not match leaves the agent as it was, apart from its random
    stream. ``horizon`` stops after so many matches; how many a log yields depends on the agent, so fix it when agents
    are compared.

    What one run earns depends on the log and on what the agent happened to learn from it. The interval covers both: it
    rests on ``runs`` further replays, each on a resampled log with another seed (by default 20 where the log has at
    most 3,000 rows, else none, and the result says that its interval is of this one run). ``warn`` as in ``evaluate``.

    >>> import armwise as aw
    >>> rng = np.random.default_rng(0)
    >>> arms = rng.integers(0, 2, 4000)
    >>> log = Log(arms=arms, rewards=rng.random(4000) < 0.2 + 0.6 * arms, probabilities=np.full(4000, 0.5), n_arms=2)
    >>> bool(aw.offline.replay(log, aw.UCB1(n_arms=2, seed=1)).value > 0.7)
    True
    """
    if not isinstance(agent, Agent):
        raise ValueError(f"agent must be an agent that learns, got {type(agent).__name__}; evaluate() judges policies")
    horizon = None if horizon is None else count("horizon", horizon)
    fraction("level", level)
    limit, notes = _floor(log, floor)
    notes = [*notes, *_outcomes_seen(log, agent)]
    learner, accept = copy.deepcopy(agent), stream(seed, "acceptance")
    rewards: list[float] = []
    matched: list[int] = []
    n, earned = 0, 0.0
    with bar(log, 1, progress) as advance:
        for rows in log.batches(contexts=agent.sees != "nothing"):
            done = _play(learner, rows, limit, accept, rewards, matched, horizon)
            n += done
            earned += float(rows.rewards[:done].sum())
            advance(done)
            if horizon is not None and len(rewards) == horizon:
                break
    if runs is None:
        runs = 20 if _is_short(log) else 0
    again = [_resampled(log, [agent], limit, horizon, seed, run)[0] for run in range(count("runs", runs, least=0))]
    result = _result(rewards, matched, n, notes, _method(log, limit), level, learner, again)
    if result.warnings and warn:
        warnings.warn(WeakLogWarning("; ".join(result.warnings)), stacklevel=2)
    mean = earned / n if n else math.nan
    return replace(result, columns=log.columns_used, logged=mean, remarks=tuple(log.remarks))


def compare_learners(
    log: Log,
    first: Agent,
    second: Agent,
    *,
    runs: int = 20,
    horizon: int | None = None,
    floor: float | None = None,
    level: float = 0.95,
    seed: int = 0,
    warn: bool = True,
) -> LearnerComparison:
    """Compare how two agents learn: both replay the same ``runs`` resampled logs, and are compared in pairs.

    ``compare`` freezes agents as they are; this lets copies of them learn from the rows that match. Give ``horizon``
    so that both learn from as many rows.

    >>> import armwise as aw
    >>> rng = np.random.default_rng(0)
    >>> arms = rng.integers(0, 2, 1000)
    >>> log = Log(arms=arms, rewards=rng.random(1000) < 0.2 + 0.6 * arms, probabilities=np.full(1000, 0.5), n_arms=2)
    >>> compare_learners(log, aw.UCB1(n_arms=2), aw.EpsilonGreedy(n_arms=2, epsilon=1.0), runs=8).better
    'first'
    """
    for name, agent in (("first", first), ("second", second)):
        if not isinstance(agent, Agent):
            raise ValueError(f"{name} must be an agent that learns, got {type(agent).__name__}")
    limit, notes = _floor(log, floor)
    both = np.array([_resampled(log, [first, second], limit, horizon, seed, run)
                     for run in range(count("runs", runs, least=2))])  # fmt: skip
    gaps = both[:, 0] - both[:, 1]
    value, spread = float(gaps.mean()), float(gaps.std(ddof=1))
    # one resampled log to the next differs as one log to the next does: the spread is not divided by the runs
    z = float(stdtrit(runs - 1, 0.5 + level / 2))
    p_value = 2.0 * float(stdtr(runs - 1, -abs(value) / spread)) if spread > 0 else float(value == 0)
    if notes and warn:
        warnings.warn(WeakLogWarning("; ".join(notes)), stacklevel=2)
    return LearnerComparison((type(first).__name__, type(second).__name__), (float(both[:, 0].mean()),
                             float(both[:, 1].mean())), value, value - z * spread, value + z * spread, p_value, runs,
                             level, (*notes, *log.remarks), _method(log, limit))  # fmt: skip


@dataclass(frozen=True)
class LearnerComparison:
    """The difference in reward per decision between two agents while both learn, over logs and runs.

    >>> LearnerComparison(("A", "B"), (0.5, 0.4), 0.1, 0.02, 0.18, 0.017, 20, 0.95, ()).better
    'first'
    """

    names: tuple[str, str]
    values: tuple[float, float]
    value: float
    low: float
    high: float
    p_value: float
    runs: int
    level: float
    warnings: tuple[str, ...]
    method: str = "every match"

    @property
    def better(self) -> str:
        """The name of the agent that learns better; empty if the interval contains 0."""
        return "first" if self.low > 0 else "second" if self.high < 0 else "neither"

    def table(self) -> str:
        """The comparison as lines of text."""
        ends = f"{number(self.low)} to {number(self.high)}"
        lines = [
            f"first, {self.names[0]}: {number(self.values[0])}",
            f"second, {self.names[1]}: {number(self.values[1])}",
            f"difference: {number(self.value)} ({percent(self.level)} interval {ends}, {self.runs} resampled logs)",
            f"better: {self.better} (p = {self.p_value:.2g})",
            f"rows that count: {self.method}",
        ]
        return "\n".join([*lines, *warning_block(distinct(("", text) for text in self.warnings))])

    __repr__ = __str__ = table

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**self.__dict__, "better": self.better, "warnings": list(self.warnings)}


def _resampled(
    log: Log, agents: list[Agent], limit: float | None, horizon: int | None, seed: int, run: int
) -> list[float]:
    """Return each agent's reward per decision on one resampled log."""
    rows = log.rows
    picked = stream(seed, f"resampled log {run}").integers(0, len(rows), len(rows))
    part, found = rows.take(picked), []
    for agent in agents:
        learner = copy.deepcopy(agent)
        _reseed(learner, seed, run)
        rewards: list[float] = []
        _play(learner, part, limit, stream(seed, f"acceptance {run}"), rewards, [], horizon)
        found.append(float(np.mean(rewards)) if rewards else math.nan)
    return found


def _reseed(agent: Agent, seed: int, run: int, depth: int = 0) -> None:
    """Another run's randomness for an agent and those it wraps."""
    agent._rng = stream(seed, f"run {run} of an agent at depth {depth}")
    for inner in agent.__dict__.values():
        if isinstance(inner, Agent):
            _reseed(inner, seed, run, depth + 1)


def _play(
    agent: Agent, rows: LogBlock, limit: float | None, accept: np.random.Generator, rewards: list[float],
    matched: list[int], horizon: int | None,
) -> int:  # fmt: skip
    """Replay a block of rows; return the number of matches."""
    contexts = views(agent.sees, rows)
    per_arm = rows.available is not None and ndim_of(contexts) == 3
    if rows.available is not None and not per_arm:
        raise ValueError(f"the log's arms change from row to row, but {type(agent).__name__} always has the same")
    for i, arm in enumerate(rows.arms.tolist()):
        context = contexts[i]
        if per_arm:  # the agent sees only the arms on offer, numbered from 0
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


def _accepted(rows: LogBlock, i: int, limit: float | None, accept: np.random.Generator) -> bool:
    return limit is None or accept.random() * rows.probabilities[i] < limit  # type: ignore[index]


def _counters(agent: Agent) -> list[tuple[Agent, dict[str, Any]]]:
    """The numbers that choosing may have moved (EpochGreedy counts its choices), in the agent and those it wraps."""
    kept = {name: value for name in agent._learnt if isinstance(value := getattr(agent, name), (bool, int, float))}
    found = [(agent, kept)] if kept else []
    for inner in agent.__dict__.values():
        if _is_agent(type(inner)):  # type: ignore[arg-type]  # a class is hashable
            found += _counters(inner)
    return found


@cache  # asked of everything in every row, and an abstract class is slow to answer
def _is_agent(kind: Any) -> bool:
    return issubclass(kind, Agent)


def _restore(counters: list[tuple[Agent, dict[str, Any]]]) -> None:
    for agent, kept in counters:
        for name, value in kept.items():
            setattr(agent, name, value)


def _floor(log: Log, floor: float | None) -> tuple[float | None, list[str]]:
    """The acceptance floor (None where every match is accepted), and what speaks against the log."""
    if not log.has_probabilities:
        if floor is not None:
            raise ValueError("floor is given, but the log has no probabilities to compare it with")
        return None, _against_uniform(log)
    least, most = np.inf, 0.0
    for rows in log.batches(contexts=False):
        assert rows.probabilities is not None
        least, most = min(least, float(rows.probabilities.min())), max(most, float(rows.probabilities.max()))
    if floor is not None and not 0.0 < floor <= least:
        raise ValueError(f"floor must lie in (0, {least:g}], the smallest probability in the log, got {floor}")
    if floor is None and most - least <= 1e-9 * most:
        return None, []
    return (least if floor is None else float(floor)), []


def _outcomes_seen(log: Log, agent: Agent) -> list[str]:
    """Return a warning if a context column reveals the reward; judged by the first rows."""
    rows = next(iter(log.batches()), None) if agent.sees != "nothing" else None
    if rows is None:
        return []
    balance = Balance(log.n_arms, log.context_names)
    balance.add(rows if rows.probabilities is not None else replace(rows, probabilities=np.ones(len(rows))))
    found = dict.fromkeys([*balance.copies(), *balance.implying()])
    return [f"{listed(list(found))}: known only with the reward, so the agent sees what it is about to earn; leave "
            "outcomes out of contexts"] if found else []  # fmt: skip


def _against_uniform(log: Log) -> list[str]:
    """Evidence that a log without probabilities did not draw its arms uniformly: counts, contexts by arm."""
    counts, balance = np.zeros(log.n_arms), Balance(log.n_arms, log.context_names)
    for rows in log.batches():
        counts += np.bincount(rows.arms, minlength=log.n_arms)
        balance.add(replace(rows, probabilities=np.full(len(rows), 1.0 / log.n_arms)))
    even = counts.mean()
    if even > 0 and chdtrc(len(counts) - 1, ((counts - even) ** 2).sum() / even) < 1e-6:
        return ["the log has no probabilities and its arms are not equally frequent: replay needs a uniform log, or "
                "the probabilities (Log(..., probabilities=...), or PropensityModel().fill(log))"]  # fmt: skip
    differing = balance.unequal()
    if differing:
        return [f"the log has no probabilities and its arms differ in {listed(differing)}: they follow the context, so "
                "this is not what the agent would earn; replay needs a uniform log, or the probabilities "
                "(Log(..., probabilities=...), or PropensityModel().fill(log))"]  # fmt: skip
    return []


def _method(log: Log, limit: float | None) -> str:
    """Describe which matches count, and the assumptions."""
    if not log.has_probabilities:
        return "every match; the log has no probabilities and is taken to be uniform"
    return "every match" if limit is None else f"matches accepted with probability {limit:.3g} / p"


def _is_short(log: Log) -> bool:
    """Return whether the log, in memory or not, has few enough rows to replay it again and again."""
    n = 0
    for rows in log.batches(_SHORT + 1, contexts=False):
        n += len(rows)
        if n > _SHORT:
            return False
    return True


def _result(
    rewards: list[float], matched: list[int], n: int, notes: list[str], method: str, level: float,
    agent: Agent, again: list[float],
) -> Replay:  # fmt: skip
    got, m = np.array(rewards), len(rewards)
    if m < 0.01 * n and m < 1000:
        notes = [*notes, f"this log cannot answer the question: only {m:,} of {n:,} rows match the agent's choices"]
    value = float(got.mean()) if m else math.nan
    variance = float(got.var(ddof=1)) if m > 1 else math.nan
    error = math.sqrt(variance / m) if m else math.nan
    others = np.array([v for v in again if math.isfinite(v)])
    if len(others) >= 2 and m:
        # a run on another log by another draw of the agent's randomness differs by as much as these do
        error = max(error if math.isfinite(error) else 0.0, float(others.std(ddof=1)))
        half = float(stdtrit(len(others) - 1, 0.5 + level / 2)) * error
        low, high = value - half, value + half
    else:
        low, high = intervals.normal(value, variance, m, level) if m else (math.nan, math.nan)
    rare = min(int(np.count_nonzero(got != end)) for end in (got.min(), got.max())) if m else 0
    if m and rare < _FEW and (rare or m < _SURELY):
        notes = [*notes, f"few different rewards: {rare} of {m:,} matched rows are not the most frequent reward, "
                         f"where an interval needs about {_FEW}"]  # fmt: skip
    if m and rare == 0 and got.min() >= 0.0 and got.max() <= 1.0:  # equal rows leave at least this much open
        slack = 1.0 - (1.0 - level) ** (1.0 / m)
        low, high = max(min(low, value - slack), 0.0), min(max(high, value + slack), 1.0)
    return Replay(value, float(low), float(high), error, m, n, got, np.array(matched, np.int64), method, level,
                  tuple(notes), agent, len(others))  # fmt: skip
