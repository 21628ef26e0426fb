"""Evaluation of a fixed policy on a log: one pass for the scores, shared code for intervals and comparisons."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from armwise.agent import Floats, count, fraction, positive
from armwise.offline import intervals
from armwise.offline.diagnostics import Diagnostics, WeakLogWarning, Weighing
from armwise.offline.estimators import DM, DR, Estimator, Facts, named
from armwise.offline.intervals import Blocks, ConfidenceSequence, IntervalKind, Moments
from armwise.offline.log import BATCH, Log
from armwise.offline.progress import bar
from armwise.offline.result import Comparison, Estimate, Evaluation
from armwise.offline.reward_models import Model, fitted_model
from armwise.offline.rows import Rows
from armwise.offline.targets import Target, of_logged, unsupported
from armwise.offline.threads import one_thread

Names = str | Estimator | Iterable[str | Estimator]


def evaluate(
    log: Log,
    policy: Any,
    estimators: Names = ("ips", "snips", "dm", "dr"),
    reward_model: Any = None,
    clip: float | None = None,
    interval: IntervalKind = "normal",
    level: float = 0.95,
    *,
    folds: int = 3,
    reward_range: tuple[float, float] = (0.0, 1.0),
    max_weight: float | None = None,
    resamples: int = 1000,
    seed: int = 0,
    progress: bool = False,
    warn: bool = True,
) -> Evaluation:
    """What ``policy`` would have earned in the rounds of ``log``, with intervals, diagnostics and a verdict.

    ``policy`` is a policy, an agent (frozen as it is), an (n, K) array of probabilities, or (n,) arms.
    ``clip`` replaces a logged probability p by max(p, clip) (Strehl et al. 2010): less variance, for a bias that the
    intervals do not know; the verdict says so where it matters. ``interval`` is "normal",
    "bootstrap", "bernstein" or "sequence" (valid at all times at once); the last two need ``reward_range`` and the
    largest possible weight: ``max_weight``, by default 1/clip, or one over the log's smallest probability.
    ``reward_model``: None for a ridge, a scikit-learn regressor or classifier (both cross-fitted), an object with
    ``predict(contexts) -> (n, K)``, or an (n, K) array. An interval does not know the bias of "dm".
    What speaks against the numbers is the result's ``verdict``, and a ``WeakLogWarning`` unless ``warn`` is False.

    >>> rng = np.random.default_rng(2)
    >>> arms = rng.integers(0, 2, 1000)
    >>> log = Log(arms=arms, rewards=rng.random(1000) < 0.2 + 0.5 * arms, probabilities=np.full(1000, 0.5), n_arms=2)
    >>> result = evaluate(log, [0.0, 1.0], estimators=["ips", "snips"])
    >>> bool(result["snips"].low < 0.7 < result["snips"].high)
    True
    """
    chosen = named(estimators)
    job = _Job(log, clip, interval, level, reward_range, max_weight, folds, seed)
    target = Target(policy, log)
    needs_model = any(e.needs_model for e in chosen)
    with bar(log, 1 + needs_model, progress) as advance, one_thread(log.streamed and reward_model is None):
        model = fitted_model(reward_model, log, folds, seed, advance) if needs_model else None
        tally = _Tally(job, [(e, target) for e in chosen])
        for rows in job.batches(model, [target]):
            tally.add(rows, model)
            advance(len(rows))
    found, diagnostics = tally.estimates(resamples, seed), tally.diagnostics()
    result = Evaluation({e.name: e for e in found}, diagnostics, target.name, interval, level)
    if result.weaknesses and warn:
        warnings.warn(WeakLogWarning(result.verdict), stacklevel=2)
    return result


def compare(
    log: Log,
    first: Any,
    second: Any,
    estimator: str | Estimator = "dr",
    reward_model: Any = None,
    clip: float | None = None,
    interval: IntervalKind = "normal",
    level: float = 0.95,
    *,
    folds: int = 3,
    reward_range: tuple[float, float] = (0.0, 1.0),
    max_weight: float | None = None,
    resamples: int = 1000,
    seed: int = 0,
    progress: bool = False,
) -> Comparison:
    """Is the first policy better than the second? The difference of their values, paired row by row.

    What both would have earned in the same round cancels, so the interval is narrower than two apart would say.

    >>> rng = np.random.default_rng(2)
    >>> arms = rng.integers(0, 2, 1000)
    >>> log = Log(arms=arms, rewards=rng.random(1000) < 0.2 + 0.5 * arms, probabilities=np.full(1000, 0.5), n_arms=2)
    >>> compare(log, [0.0, 1.0], [1.0, 0.0], "snips").better
    'first'
    """
    [chosen] = named(estimator)
    job = _Job(log, clip, interval, level, reward_range, max_weight, folds, seed)
    targets = [Target(first, log), Target(second, log)]
    with bar(log, 1 + chosen.needs_model, progress) as advance, one_thread(log.streamed and reward_model is None):
        model = fitted_model(reward_model, log, folds, seed, advance) if chosen.needs_model else None
        tally = _Tally(job, [(chosen, target) for target in targets])
        for rows in job.batches(model, targets):
            tally.add(rows, model)
            advance(len(rows))
    both = tally.estimates(resamples, seed)
    comparison = tally.difference(both, resamples, seed)
    if any(": biased" not in text for text in comparison.warnings):  # clipping was asked for
        warnings.warn(WeakLogWarning("; ".join(comparison.warnings)), stacklevel=2)
    return comparison


def scores(
    log: Log,
    policy: Any,
    estimator: str | Estimator = "ips",
    reward_model: Any = None,
    clip: float | None = None,
    *,
    folds: int = 3,
    seed: int = 0,
) -> Floats:
    """The per-round scores of an estimator: their mean is its value (linearised where it is self-normalised).

    >>> log = Log(arms=[0, 1], rewards=[1, 1], probabilities=[0.5, 0.5], n_arms=2)
    >>> scores(log, [1.0, 0.0], "ips")
    array([2., 0.])
    """
    [chosen] = named(estimator)
    job = _Job(log, clip, "normal", 0.95, (0.0, 1.0), None, folds, seed)
    target, model = Target(policy, log), None
    if chosen.needs_model:
        model = fitted_model(reward_model, log, folds, seed)
    parts = [job.facts(rows, target.answers(rows), model)[0] for rows in job.batches(model, [target])]
    whole = Facts(*(_concatenated([getattr(p, name) for p in parts]) for name in Facts.__dataclass_fields__))
    columns = np.stack(chosen.columns(whole), axis=-1)
    covariance = np.atleast_2d(np.cov(columns, rowvar=False))
    return chosen.settled(columns.mean(axis=0), covariance, len(columns)).scores(whole)


def _concatenated(parts: list[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)


class _Job:
    """The settings of an evaluation, checked once."""

    def __init__(
        self, log: Log, clip: float | None, interval: IntervalKind, level: float, reward_range: tuple[float, float],
        max_weight: float | None, folds: int, seed: int,
    ) -> None:  # fmt: skip
        if not isinstance(log, Log):
            raise ValueError(f"log must be an armwise.offline.Log, got {type(log).__name__}")
        if interval not in intervals.INTERVALS:
            raise ValueError(f"interval is {interval!r}, expected one of {', '.join(intervals.INTERVALS)}")
        count("folds", folds, least=2)
        self.log, self.interval, self.level = log, interval, fraction("level", level)
        self.clip = None if clip is None else fraction("clip", clip, one=True)
        self.low, self.high = (float(end) for end in reward_range)
        if not self.low < self.high:
            raise ValueError(f"reward_range must be (low, high) with low < high, got {reward_range}")
        self.bounded = interval in ("bernstein", "sequence")
        self.max_weight = positive("max_weight", max_weight) if max_weight is not None else self._largest_weight()

    def _largest_weight(self) -> float:
        if not self.bounded or not self.log.has_probabilities:
            return 1.0
        if self.clip is not None:
            return 1.0 / self.clip
        return 1.0 / min(float(rows.probabilities.min()) for rows in self.log.batches(contexts=False))  # type: ignore[union-attr]

    def batches(self, model: Model | None, targets: list[Target]) -> Iterable[Rows]:
        size = max(1, min(BATCH, 16_000_000 // self.log.n_arms))
        return self.log.batches(size, contexts=model is not None or any(t.needs_contexts for t in targets))

    def facts(self, rows: Rows, answers: np.ndarray, model: Model | None) -> tuple[Facts, Floats]:
        """What the estimators need of these rows, and the weights before clipping."""
        rewards = rows.rewards
        if self.bounded and len(rows) and not (rewards.min() >= self.low and rewards.max() <= self.high):
            row = int(np.argmax((rewards < self.low) | (rewards > self.high)))
            raise ValueError(
                f"row {rows.start + row}: the reward is {rewards[row]}, outside reward_range ({self.low:g}, "
                f"{self.high:g}), which interval={self.interval!r} rests on: give reward_range=(low, high)"
            )
        weights = raw = np.ones(len(rows))
        if rows.probabilities is not None:
            target = of_logged(answers, rows.arms)
            weights = raw = target / rows.probabilities
            if self.clip is not None:
                weights = target / np.maximum(rows.probabilities, self.clip)
        if model is None:
            return Facts(rewards, weights), raw
        q, every = model.predict(rows), np.arange(len(rows))
        under_target = q[every, answers] if answers.ndim == 1 else np.einsum("nk,nk->n", answers, q)
        return Facts(rewards, weights, q[every, rows.arms], under_target), raw


class _Tally:
    """Running sums of the columns of several (estimator, target) pairs, and what their intervals need besides."""

    def __init__(self, job: _Job, pairs: list[tuple[Estimator, Target]]) -> None:
        if not job.log.has_probabilities and any(e.needs_weights for e, _ in pairs):
            needy = ", ".join(sorted({e.name for e, _ in pairs if e.needs_weights}))
            raise ValueError(
                f"the log has no probabilities, which {needy} needs: estimate them with "
                "armwise.offline.PropensityModel, or ask for estimators=['dm'] only"
            )
        self._job, self._pairs = job, pairs
        ends = np.cumsum([e.n_columns() for e, _ in pairs])
        self._slices = [slice(end - e.n_columns(), end) for end, (e, _) in zip(ends, pairs, strict=True)]
        self._moments = Moments(int(ends[-1]))
        self._least, self._most = np.full(ends[-1], np.inf), np.full(ends[-1], -np.inf)
        self._blocks = Blocks(int(ends[-1])) if job.interval == "bootstrap" else None
        self._sequences = [self._sequence(e) for e, _ in pairs] if job.interval == "sequence" else []
        self._paired = self._paired_sequence() if job.interval == "sequence" and len(pairs) == 2 else None
        targets = list(dict.fromkeys(target for _, target in pairs))
        self._weighings = {target: Weighing(job.log.n_arms) for target in targets}

    # ------------------------------------------------------------------ the pass

    def add(self, rows: Rows, model: Model | None) -> None:
        if not len(rows):
            return
        facts = {}
        for target, weighing in self._weighings.items():
            answers = target.answers(rows)
            facts[target], raw = self._job.facts(rows, answers, model)
            if rows.probabilities is not None:
                weighing.add(rows, facts[target].weights, raw, unsupported(rows, answers))
        columns = np.column_stack([c for e, target in self._pairs for c in e.columns(facts[target])])
        self._moments.add(columns)
        if self._job.bounded:
            self._least = np.minimum(self._least, columns.min(axis=0))
            self._most = np.maximum(self._most, columns.max(axis=0))
        if self._blocks is not None:
            self._blocks.add(columns)
        inside = [self._within(e, facts[target]) for e, target in self._pairs] if self._sequences else []
        for (estimator, _), sequence, some in zip(self._pairs, self._sequences, inside, strict=False):
            if estimator.needs_model:
                sequence.update(_unbiased(estimator).columns(some)[0])
            else:
                sequence.update(some.rewards, some.weights)
        if self._paired is not None:
            one, other = (_unbiased(e).columns(some)[0] for (e, _), some in zip(self._pairs, inside, strict=True))
            self._paired.update(one - other)

    def _within(self, estimator: Estimator, facts: Facts) -> Facts:
        """The same facts with the model kept inside the range of the rewards: DR stays unbiased, and is bounded."""
        if facts.q_logged is None or facts.q_target is None:
            return facts
        low, high = self._job.low, self._job.high
        if isinstance(estimator, DM):
            low, high = estimator.score_range(low, high, 0.0)
        return Facts(facts.rewards, facts.weights, facts.q_logged.clip(low, high), facts.q_target.clip(low, high))

    def _sequence(self, estimator: Estimator) -> ConfidenceSequence:
        job = self._job
        if not estimator.needs_model:
            return ConfidenceSequence(job.level, job.low, job.high, job.max_weight)
        return ConfidenceSequence(job.level, *_unbiased(estimator).score_range(job.low, job.high, job.max_weight))

    def _paired_sequence(self) -> ConfidenceSequence:
        low, high = _unbiased(self._pairs[0][0]).score_range(self._job.low, self._job.high, self._job.max_weight)
        return ConfidenceSequence(self._job.level, low - high, high - low)

    # ------------------------------------------------------------------ the results

    def diagnostics(self, which: int = 0) -> Diagnostics | None:
        return list(self._weighings.values())[which].result() if self._job.log.has_probabilities else None

    @np.errstate(over="ignore", invalid="ignore")  # an estimate that is not finite says so itself
    def estimates(self, resamples: int, seed: int) -> list[Estimate]:
        n = self._moments.n
        if n == 0:
            raise ValueError("the log is empty: there is nothing to evaluate on")
        mean, covariance = self._moments.mean, self._moments.covariance
        self._settled = [
            e.settled(mean[s], covariance[s, s], n) for (e, _), s in zip(self._pairs, self._slices, strict=True)
        ]
        drawn = self._bootstrap([_on(e, s) for e, s in zip(self._settled, self._slices, strict=True)], resamples, seed)
        found = []
        for i, (estimator, s) in enumerate(zip(self._settled, self._slices, strict=True)):
            value, gradient = float(estimator.value(mean[s])), estimator.gradient(mean[s])
            variance = max(float(gradient @ covariance[s, s] @ gradient), 0.0)  # rounding may fall below zero
            if self._job.interval == "bootstrap":
                low, high = drawn[i]
            elif self._job.interval == "sequence":
                low, high = self._sequences[i].low, self._sequences[i].high
            elif self._job.interval == "bernstein":
                low, high = intervals.bernstein(value, variance, n, self._job.level, spread=self._spread(estimator, s))
            else:
                low, high = intervals.normal(value, variance, n, self._job.level)
            if self._job.bounded:  # the value itself lies in the range of the rewards
                low, high = max(low, self._job.low), min(high, self._job.high)
            diagnostics = self._weighings[self._pairs[i][1]].result() if self._job.log.has_probabilities else None
            found.append(
                Estimate.of(estimator, value, low, high, variance, n, diagnostics, self._job.interval, self._job.level)
            )
        return found

    def _spread(self, estimator: Estimator, columns: slice) -> float:
        low, high = estimator.score_range(self._job.low, self._job.high, self._job.max_weight)
        seen = float((self._most[columns] - self._least[columns]).max())  # a model may answer outside the range
        return max(high - low, seen)

    def _bootstrap(self, values: list[Callable[[Floats], Any]], resamples: int, seed: int) -> list[tuple[float, float]]:
        if self._blocks is None:
            return []
        count("resamples", resamples, least=2)
        return intervals.bootstrap(self._blocks, values, self._job.level, resamples=resamples, seed=seed)

    @np.errstate(over="ignore", invalid="ignore")
    def difference(self, both: list[Estimate], resamples: int, seed: int) -> Comparison:
        (one, other), (a, b) = self._settled, self._slices
        mean, covariance, n = self._moments.mean, self._moments.covariance, self._moments.n
        gradient = np.concatenate([one.gradient(mean[a]), -other.gradient(mean[b])])
        value, variance = both[0].value - both[1].value, max(float(gradient @ covariance @ gradient), 0.0)
        level = self._job.level
        if self._blocks is not None:
            first, second = _on(one, a), _on(other, b)
            [(low, high)] = self._bootstrap([lambda means: first(means) - second(means)], resamples, seed)
        elif self._paired is not None:
            low, high = self._paired.low, self._paired.high
        elif self._job.interval == "bernstein":
            low, high = intervals.bernstein(
                value, variance, n, level, spread=self._spread(one, a) + self._spread(other, b)
            )
        else:
            low, high = intervals.normal(value, variance, n, level)
        return Comparison.of(both[0], both[1], value, low, high, variance)


def _on(estimator: Estimator, columns: slice) -> Callable[[Floats], Any]:
    return lambda means: estimator.value(means[..., columns])


def _unbiased(estimator: Estimator) -> Estimator:
    """The mean-type estimator whose sequence covers the value: self-normalised and shrunk ones are not means."""
    if isinstance(estimator, DM):
        return estimator
    return DR() if estimator.needs_model else named("ips")[0]
