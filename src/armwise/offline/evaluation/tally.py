"""Estimates, intervals, lifts and checks of an evaluation, computed from the sums of one pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armwise.core.agent import Floats, count
from armwise.offline.estimators.estimators import DM, DR, IPS, SNDR, SNIPS, Estimator, Facts
from armwise.offline.evaluation.settings import EvaluationSettings, Logged
from armwise.offline.evaluation.sums import Sums
from armwise.offline.evaluation.targets import Target, unsupported
from armwise.offline.intervals import intervals
from armwise.offline.intervals.bounded import Bets, Reach, cressie_read
from armwise.offline.intervals.intervals import Clusters
from armwise.offline.intervals.simultaneous import simultaneous_level, simultaneous_p
from armwise.offline.logs.checks.balance import Balance
from armwise.offline.logs.rows import LogBlock
from armwise.offline.results.diagnostics import HEAVY_PRODUCT, Diagnostics, Weighing
from armwise.offline.results.estimates import Estimate

_UNBOUNDED = ("normal", "skew-corrected")
_ONE_ROW = 0.04  # share of the variance from which on the tail of the rewards matters
_ENOUGH_CLUSTERS = 20  # effective ones, below which no interval is to be relied on
_MOVED = 1.63  # the largest cumulated deviation, in standard deviations, that one log in a hundred reaches by chance
_FAR_OFF = 5.0  # standard errors between the model and its corrected value, beyond which the model is wrong
_SMALL_GAP = 0.05  # of the value: a smaller one is no reason to warn
_DISAGREE = 4.0  # standard errors between the weights' answer and the model's that chance does not explain


class Tally:
    """Running sums of the columns of several (estimator, target) pairs, and the inputs of their intervals."""

    def __init__(self, job: EvaluationSettings, pairs: list[tuple[Estimator, Target]], model: bool) -> None:
        if not job.log.has_probabilities and any(e.needs_weights for e, _ in pairs):
            needy = ", ".join(sorted({e.name for e, _ in pairs if e.needs_weights}))
            raise ValueError(
                f"the log has no probabilities, which {needy} needs: for a randomised trial say "
                "probabilities=1/3 (--probability 1/3) when reading it; otherwise estimate them with "
                "armwise.offline.PropensityModel (--estimate-probabilities), or ask for estimators=['dm'] only"
            )
        self._job, self.pairs = job, list(pairs)
        self._targets = list(dict.fromkeys(target for _, target in pairs))
        self._hidden: dict[tuple[str, Target], int] = {}  # for intervals and checks, whatever was asked for
        if job.log.has_probabilities:
            for target in self._targets:
                for each in (SNIPS(), *([SNDR()] if model else [])):
                    self._hidden[each.name, target] = len(self.pairs)
                    self.pairs.append((each, target))
        self._least_probability = 1.0
        self.sums = Sums(job.log.n_arms, len(self._targets), clustered=job.clustered)
        self._bets: dict[tuple[Target, str], Bets] = {}
        for e, target in pairs if job.in_order else []:
            self._bets.setdefault((target, _bet_of(e)), self._betting(e))
        self._paired = self._betting_on_a_difference(pairs[0][0]) if job.in_order and len(self._targets) == 2 else None

    # ------------------------------------------------------------------ the pass

    def add(
        self, rows: LogBlock, answers: dict[Target, np.ndarray], q: Floats | None, clusters: Any = None,
        numbers: Any = None,
    ) -> None:  # fmt: skip
        """Take in a block: what each target plays in its rows, and the model's rewards; rows of a segment by number."""
        if not len(rows):
            return
        facts = {}
        for target, weighing, (logged, under_target) in zip(
            self._targets, self.sums.weighings, self.sums.q, strict=True
        ):
            facts[target], raw = self._job.facts(rows, answers[target], q)
            if rows.probabilities is not None:
                weighing.add(rows, facts[target].weights, raw, unsupported(rows, answers[target]), numbers)
            if q is not None:
                logged.add(facts[target].q_logged)
                under_target.add(facts[target].q_target)
        arrays: dict[int, tuple[int, Floats]] = {}  # columns that several estimators share are summed once
        self.sums.places = [
            [arrays.setdefault(id(c), (len(arrays), c))[0] for c in e.columns(facts[t])] for e, t in self.pairs
        ]
        columns = np.stack([c for _, c in arrays.values()]).T  # each column in one piece: sums run along them
        self.sums.add(columns, rows.rewards, clusters)
        if self._job.interval == "bernstein":
            self.sums.add_extremes(columns)
        done: set[tuple[Target, str]] = set()
        for estimator, target in self.pairs:
            key = (target, _bet_of(estimator))
            if key in self._bets and key not in done:
                done.add(key)
                self._bet(self._bets[key], estimator, facts[target])
        if self._paired is not None:
            one, other = (self._scores(e, facts[t]) for e, t in self.pairs[:2])
            low, high = self._score_range(self.pairs[0][0])
            self._paired.add(one - other - (low - high), (high - low) - (one - other))

    def _betting(self, estimator: Estimator) -> Bets:
        job = self._job
        n = len(job.log) if job.interval == "betting" else None
        if not estimator.needs_model:
            return Bets(job.low, job.high, job.level, n, scale=job.max_weight or 1.0)
        floor, ceiling = self._score_range(estimator)
        return Bets(job.low, job.high, job.level, n, floor=floor, ceiling=ceiling)

    def _betting_on_a_difference(self, estimator: Estimator) -> Bets:
        job, width = self._job, self._job.high - self._job.low
        low, high = self._score_range(estimator)
        n = len(job.log) if job.interval == "betting" else None
        return Bets(-width, width, job.level, n, floor=low - high, ceiling=high - low)

    def _bet(self, bets: Bets, estimator: Estimator, facts: Facts) -> None:
        low, high = self._job.low, self._job.high
        if not estimator.needs_model:
            bets.add(facts.weights * (facts.rewards - low), facts.weights * (high - facts.rewards))
            return
        floor, ceiling = self._score_range(estimator)
        scores = self._scores(estimator, facts)
        bets.add(scores - floor, ceiling - scores)

    def _scores(self, estimator: Estimator, facts: Facts) -> Floats:
        """The rows' scores for a betting interval, with the policy's value as mean.

        The reward model is clipped to the range of the rewards, so that the scores of DR are bounded too.
        """
        if not estimator.needs_model:
            return facts.weighted_rewards
        assert facts.q_logged is not None
        assert facts.q_target is not None
        low, high = self._job.low, self._job.high
        scores = facts.q_target.clip(low, high)
        if isinstance(estimator, DM):
            return scores
        corrected: Floats = scores + facts.weights * (facts.rewards - facts.q_logged.clip(low, high))
        return corrected

    # ------------------------------------------------------------------ the results

    def finish(self, balance: Balance | None, whole: Tally) -> None:
        """Means and covariances: of rows, or where rows come in clusters what clusters make of them.

        ``whole`` is the tally of the whole log, also where this is a segment of it.
        """
        self._balance, self._least_probability = balance, whole.least_probability
        self._possible = [weighing.possible_weight for weighing in whole.sums.weighings]
        self._diagnosed: dict[Target, Diagnostics] = {}
        sums, self.n = self.sums, self.sums.n
        if self.n == 0:
            raise ValueError("the log is empty: there is nothing to evaluate on")
        self.mean, self.covariance, self.units = sums.moments.mean, sums.moments.covariance, float(self.n)
        if isinstance(sums.blocks, Clusters):
            self.covariance = sums.blocks.covariance(self.mean, self.n)
            self.units = sums.blocks.effective(sums.blocks.counts)
        self.settled = [
            e.settled(self.mean[p], self.covariance[np.ix_(p, p)], self.n)
            for (e, _), p in zip(self.pairs, self.sums.places, strict=True)
        ]

    def _weighing(self, target: Target) -> Weighing:
        return self.sums.weighings[self._targets.index(target)]

    @property
    def least_probability(self) -> float:
        """The smallest probability with which a logged arm was drawn."""
        return min((each.least_probability for each in self.sums.weighings), default=1.0)

    @property
    def bounded(self) -> bool:
        """Whether the rewards have limits: those that were stated, or 0 and 1 where all of them lie between."""
        return self._job.stated_range or (self.sums.rewards.low >= 0.0 and self.sums.rewards.high <= 1.0)

    @property
    def kind(self) -> str:
        """The kind of interval: "auto" is Cressie-Read for bounded rewards, normal but for its skewness for others."""
        if self._job.interval != "auto":
            return self._job.interval
        if not self._job.log.has_probabilities:
            return "normal"
        return "cressie-read" if self.bounded else "skew-corrected"

    def diagnostics(self, target: Target) -> Diagnostics | None:
        """Return the diagnostics of a target's weights, shared by all of its estimates."""
        if not self._job.log.has_probabilities:
            return None
        if target not in self._diagnosed:
            self._diagnosed[target] = self._diagnose(target)
        return self._diagnosed[target]

    def _diagnose(self, target: Target) -> Diagnostics:
        found = self._weighing(target).result(self.kind)
        if self._balance is not None:
            found = replace(found.with_verdict(*self._balance.verdicts()), balance=tuple(self._balance.worst()[:30]))
        z = self.disagreement(target)
        if z is not None and abs(z) > _DISAGREE:
            found = found.with_verdict(
                f"the reward model and the weights disagree by {abs(z):.1f} standard errors (SNIPS against SNDR): a "
                "context may be an outcome, known only after the arm was played, or the probabilities are wrong"
            )
        return found.with_verdict(*self._against_model(target), *self._against_interval(target))

    def _against_model(self, target: Target) -> list[str]:
        """Return whether the reward model alone, where it was asked for, is far from what its correction says."""
        alone = [i for i, (e, t) in enumerate(self.pairs) if isinstance(e, DM) and t is target]
        if not alone or ("sndr", target) not in self._hidden:
            return []
        gap, variance = self.combination([(alone[0], 1.0), (self._hidden["sndr", target], -1.0)])
        far = max(_FAR_OFF * math.sqrt(variance / self.n), _SMALL_GAP * abs(self.value(alone[0])))
        if not variance > 0.0 or not abs(gap) > far:
            return []
        z = abs(gap) / math.sqrt(variance / self.n)
        return [
            f"the reward model alone (dm) is {z:.0f} standard errors from its corrected value (sndr): do not use dm"
        ]

    def _against_interval(self, target: Target) -> list[str]:
        """Return warnings about the interval: heavy-tailed rewards, drift, few clusters."""
        pair, found = self._hidden["snips", target], []
        blocks = self.sums.blocks
        centred = blocks.influence(self.mean, self.gradient(pair))
        square = float(centred @ centred)
        if not square > 0.0 or not math.isfinite(square):
            return []
        if not self.bounded:
            k, share = self._weighing(target).product_k, float(np.max(centred**2)) / square
            if k > HEAVY_PRODUCT and share > _ONE_ROW:
                found.append("a few rows decide the answer: weight times reward has a heavy tail (Pareto k "
                             f"{k:.2f}, above {HEAVY_PRODUCT:g}); one row is {share:.0%} of the variance")  # fmt: skip
        if isinstance(blocks, Clusters):
            effective = self._effective(target)
            if effective < _ENOUGH_CLUSTERS:
                found.append(f"few clusters: the rows come from {blocks.n} ({effective:.0f} effective), where an "
                             f"interval needs about {_ENOUGH_CLUSTERS}")  # fmt: skip
        elif self._job.in_order:
            moved = float(np.max(np.abs(np.cumsum(centred)))) / math.sqrt(square)
            if moved > _MOVED:
                found.append("the mean moves over the log, but this interval assumes that it does not: "
                             f"CUSUM {moved:.1f}, above {_MOVED:g}")  # fmt: skip
        return found

    @np.errstate(over="ignore", invalid="ignore")
    def disagreement(self, target: Target) -> float | None:
        """Return SNIPS minus SNDR in standard errors: about normal if contexts and probabilities are right."""
        if ("sndr", target) not in self._hidden:
            return None
        value, variance = self.combination([(self._hidden["snips", target], 1.0), (self._hidden["sndr", target], -1.0)])
        return value / math.sqrt(variance / self.n) if variance > 0 and math.isfinite(value) else None

    def gradient(self, pair: int, *, interval: bool = False) -> Floats:
        """The derivative of a pair's value by the column means."""
        p, e, whole = self.sums.places[pair], self.settled[pair], np.zeros(len(self.mean))
        np.add.at(whole, p, e.interval_gradient(self.mean[p]) if interval else e.gradient(self.mean[p]))
        return whole

    def value(self, pair: int) -> float:
        return float(self.settled[pair].value(self.mean[self.sums.places[pair]]))

    @np.errstate(over="ignore", invalid="ignore")
    def combination(self, terms: list[tuple[int, float]]) -> tuple[float, float]:
        """A linear combination of pairs' values, and its variance per row."""
        gradient = np.sum([c * self.gradient(i) for i, c in terms], axis=0)
        return sum(c * self.value(i) for i, c in terms), max(float(gradient @ self.covariance @ gradient), 0.0)

    @np.errstate(over="ignore", invalid="ignore")  # an estimate that is not finite says so itself
    def estimate(self, pair: int, level: float, resamples: int, seed: int, together: float | None = None) -> Estimate:
        """One pair's estimate; ``level`` is that of its own interval, ``together`` that of all at once."""
        (_, target), e, p = self.pairs[pair], self.settled[pair], self.sums.places[pair]
        value, variance = self.value(pair), self._variance(self.gradient(pair, interval=True))
        kind = self.kind if e.needs_weights or self._job.interval != "auto" else "normal"
        centre = float(e.interval_value(self.mean[p]))
        low, high = self._moment_ends(kind, centre, variance, self.gradient(pair, interval=True), [pair], level)
        if kind == "bootstrap":
            stretched = self._stretched(lambda means: e.interval_value(means[..., p]), centre, [pair], level)
            # A resample knows no more than the rows, so its percentiles fall short where these are few.
            low, high = _hull((low, high), self._bootstrap(stretched, level, resamples, seed))
        elif kind == "cressie-read":
            low, high = self._cressie_read(e, target, level)
        elif self._job.in_order:
            bets = self._bets[target, _bet_of(e)]
            low, high = sorted((bets.low, bets.high))  # crossed ends say that the mean moved, as the verdict does
        elif kind == "bernstein":
            low, high = intervals.bernstein(centre, variance, self.n, level, spread=self._spread(e, p))
        if kind in ("cressie-read", "bernstein", "betting", "sequence"):  # the value itself lies in the rewards' range
            low, high = max(low, self._job.low), min(high, self._job.high)
        low, high = self._unseen(target, low, high, level, e)
        diagnostics = self.diagnostics(target)
        # Cressie-Read knows that the weights average 1 and IPS does not: on a weak log its value may lie outside.
        apart = kind == "cressie-read" and isinstance(e, IPS) and diagnostics is not None and diagnostics.verdicts
        if math.isfinite(value) and not apart:
            inside = value if kind in _UNBOUNDED or not self.bounded else min(max(value, self._job.low), self._job.high)
            low, high = min(low, inside), max(high, inside)
        corrected = ""
        if isinstance(e, DM) and self._job.interval == "auto" and ("sndr", target) in self._hidden:
            right = self.estimate(self._hidden["sndr", target], level, resamples, seed)
            (low, high), corrected = _hull((low, high), (right.low, right.high)), "sndr"
        own = self._variance(self.gradient(pair))
        return Estimate.of(e, value, low, high, own, self.n, diagnostics, kind, together or level, corrected)

    def _small_sample(self, variance: float, pairs: list[int]) -> tuple[float, float]:
        """The variance as few effective rows u leave it open, and u, for Student's quantile.

        Weighted residuals from a fitted mean are too small by the leverage 1/u of a row (HC3: MacKinnon & White 1985).
        """
        effective = [self._effective(t) for e, t in (self.pairs[i] for i in pairs) if e.needs_weights]
        units = max(min([self.units, *effective]), 2.0)
        return (variance, self.units) if units >= self.units else (variance * (units / (units - 1.0)) ** 2, units)

    def _effective(self, target: Target) -> float:
        """The effective number of a target's rows, or of clusters that have such rows."""
        ess, blocks = self._weighing(target).ess, self.sums.blocks
        if not isinstance(blocks, Clusters):
            return ess
        return min(ess, blocks.effective(blocks.sums[:, self.sums.places[self._hidden["snips", target]][1]]))

    def _moment_ends(
        self, kind: str, centre: float, variance: float, gradient: Floats, pairs: list[int], level: float
    ) -> tuple[float, float]:
        """The interval from the variance of a value, and from its skewness where that is asked for."""
        spread, units = self._small_sample(variance, pairs)
        if kind != "skew-corrected":
            return intervals.normal(centre, spread, self.n, level, units=units)
        influence = self.sums.blocks.influence(self.mean, gradient)
        error = math.sqrt(spread / self.n)
        return intervals.skewed_interval(centre, influence, level, error=error, units=units)

    def _stretched(
        self, value: Callable[[Floats], Any], centre: float, pairs: list[int], level: float
    ) -> Callable[[Floats], Any]:
        """A resampled value, as much farther from the centre as few effective rows make a normal interval wider."""
        variance, units = self._small_sample(1.0, pairs)
        wide = intervals.normal(0.0, variance * self.n, self.n, level, units=units)[1]
        factor = float(wide / intervals.normal(0.0, float(self.n), self.n, level)[1])
        return lambda means: centre + factor * (value(means) - centre)

    def _variance(self, gradient: Floats) -> float:
        return max(float(gradient @ self.covariance @ gradient), 0.0)  # rounding may fall below zero

    @property
    def mean_reward(self) -> float:
        """The logged policy's mean reward per decision."""
        return self.sums.total / self.n

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The range of the rewards if they are bounded."""
        return (self._job.low, self._job.high) if self.bounded else None

    def _unseen(self, target: Target, low: float, high: float, level: float, e: Estimator) -> tuple[float, float]:
        """Widen an interval of rows that all have the same reward: so many rows leave at least this much open."""
        weighing = self._weighing(target)
        if not (e.needs_weights and self.bounded and self._job.log.has_probabilities and weighing.constant):
            return low, high
        ess = weighing.ess
        slack = (1.0 - (1.0 - level) ** (1.0 / max(ess, 1.0))) * (self._job.high - self._job.low)
        reward = weighing.common_reward
        return min(low, max(reward - slack, self._job.low)), max(high, min(reward + slack, self._job.high))

    def _cressie_read(self, e: Estimator, target: Target, level: float) -> tuple[float, float]:
        low, high = self._likely(self._scored(target, e.needs_model), level)
        return max(low, self._job.low), min(high, self._job.high)

    def _likely(self, scored: _Scored, level: float) -> tuple[float, float]:
        rows = np.stack([scored.weight, scored.score])
        mean, covariance = rows @ self.mean, rows @ self.covariance @ rows.T
        mean[0] += scored.offset
        low, high = cressie_read(self.n, mean, covariance, scored.low, scored.high, level, units=self.units)
        if not (math.isfinite(low) and math.isfinite(high)):  # no weights with mean 1 fit: the verdict says so
            return -math.inf, math.inf
        return min(low, high), max(low, high)

    def _scored(self, target: Target, with_model: bool) -> _Scored:
        """The weights and scores of a target's rows, and how far a row that was not seen may go."""
        job, most = self._job, self._largest_possible(target)
        if not with_model:
            of_rewards, of_weights = self.sums.places[self._hidden["snips", target]]
            low, high = Reach(0.0, job.low, most), Reach(0.0, job.high, most)
            return _Scored(self._unit(of_weights), self._unit(of_rewards), low, high)
        of_model, of_corrections, of_weights = self.sums.places[self._hidden["sndr", target]]
        q, q_target = self.sums.q[self._targets.index(target)]
        low = Reach(q_target.low, job.low - q.high, most)
        high = Reach(q_target.high, job.high - q.low, most)
        return _Scored(self._unit(of_weights), self._unit(of_model, of_corrections), low, high)

    def _largest_possible(self, target: Target) -> float:
        """The largest weight that a row may have had: one that was given, or what the log's probabilities allow."""
        weighing = self._weighing(target)
        if self._job.given_weight:
            return max(self._job.given_weight, weighing.largest_weight)
        most = max(weighing.possible_weight, self._possible[self._targets.index(target)])
        return max(min(most, self._job.max_weight or math.inf), weighing.largest_weight)

    def _unit(self, *places: int) -> Floats:
        vector = np.zeros(len(self.mean))
        np.add.at(vector, list(places), 1.0)
        return vector

    def _likely_difference(self, one: int, other: int, level: float) -> tuple[float, float]:
        """Cressie-Read's interval for a difference: a row that was not seen may have counted for either."""
        (e, t), (f, u) = self.pairs[one], self.pairs[other]
        first, job = self._scored(t, e.needs_model), self._job
        if isinstance(f, Logged):
            score = first.score - self._unit(*self.sums.places[other])
            low = replace(first.low, offset=first.low.offset - job.high)
            high = replace(first.high, offset=first.high.offset - job.low)
            return self._likely(replace(first, score=score, low=low, high=high), level)
        second = self._scored(u, f.needs_model)
        weight, score = first.weight - second.weight, first.score - second.score
        least, most = first.low.offset - second.high.offset, first.high.offset - second.low.offset
        found = []
        ends = ((1.0, first.low.slope, first.high.slope, first.low.max_weight),
                (-1.0, -second.high.slope, -second.low.slope, second.low.max_weight))  # fmt: skip
        for sign, below, above, limit in ends:
            # 1 + the difference of the weights averages 1; one more row of this sign
            low, high = Reach(least - below, below, 1.0 + limit), Reach(most - above, above, 1.0 + limit)
            found.append(self._likely(_Scored(sign * weight, score, low, high, 1.0), level))
        return _hull(*found)

    def _spread(self, estimator: Estimator, columns: list[int]) -> float:
        low, high = self._score_range(DR() if estimator.by_dr else estimator)
        ends = [self.sums.columns[i] for i in (columns[:1] if estimator.by_dr else columns)]
        seen = sum(end.high - end.low for end in ends)  # a model may answer outside the range
        return max(high - low, seen)

    def _bootstrap(
        self, value: Callable[[Floats], Any], level: float, resamples: int, seed: int
    ) -> tuple[float, float]:
        [ends] = intervals.bootstrap(
            self.sums.blocks, [value], level, resamples=count("resamples", resamples, least=2), seed=seed
        )
        return ends

    @np.errstate(over="ignore", invalid="ignore")
    def difference(self, one: int, other: int, level: float, resamples: int, seed: int) -> Difference:
        """The paired difference of two pairs: its value, interval, variance and two-sided p-value, all of one kind."""
        value, variance = self.combination([(one, 1.0), (other, -1.0)])
        kind = self._kind_of_difference(one, other)
        spread, units = self._small_sample(variance, [one, other])
        low, high = intervals.normal(value, spread, self.n, level, units=units)
        p_value = intervals.normal_p(value, spread, self.n, units=units)
        if kind == "bootstrap":
            a, b, pa, pb = self.settled[one], self.settled[other], self.sums.places[one], self.sums.places[other]

            def gap(means: Floats) -> Any:
                return a.value(means[..., pa]) - b.value(means[..., pb])

            stretched = self._stretched(gap, value, [one, other], level)
            low, high = _hull((low, high), self._bootstrap(stretched, level, resamples, seed))
            p_value = max(p_value, intervals.bootstrap_p(self.sums.blocks, stretched, resamples=resamples, seed=seed))
        elif self._paired is not None:
            low, high = sorted((self._paired.low, self._paired.high))
            p_value = math.nan  # bets at one level have none
        elif kind == "bernstein":
            reach = self._spread_of(one) + self._spread_of(other)
            low, high = intervals.bernstein(value, variance, self.n, level, spread=reach)
            p_value = intervals.bernstein_p(value, variance, self.n, reach)
        elif kind in ("cressie-read", "skew-corrected"):
            gradient = self.gradient(one) - self.gradient(other)

            def ends(at: float) -> tuple[float, float]:
                if kind == "cressie-read":
                    return _hull(self._likely_difference(one, other, at), (value, value))
                return self._moment_ends(kind, value, variance, gradient, [one, other], at)

            (low, high), p_value = ends(level), intervals.p_value_of(ends)
        if kind == "cressie-read":  # it knows that a row was not seen, and not how many may be
            below, above, least = self._open_still(one, other, value, value, 0.0, level)
            (low, high), p_value = _hull((low, high), (below, above)), max(p_value, least)
        elif kind in ("normal", "bootstrap", "skew-corrected"):
            low, high, p_value = self._open_still(one, other, low, high, p_value, level)
        if self.bounded:  # no difference is larger than that of the rewards
            width = self._job.high - self._job.low
            low, high = min(max(low, -width), width), max(min(high, width), -width)
        return Difference(value, float(low), float(high), variance, p_value, kind)

    def _kind_of_difference(self, one: int, other: int) -> str:
        if self._job.interval not in ("auto", "cressie-read"):
            return self._job.interval
        weighted = all(e.needs_weights or isinstance(e, Logged) for e, _ in (self.pairs[one], self.pairs[other]))
        return self.kind if weighted else "normal"

    def _open_still(
        self, one: int, other: int, low: float, high: float, p_value: float, level: float
    ) -> tuple[float, float, float]:
        """Widen a difference's interval where all rows of a policy have one reward, and thus no spread."""

        def slack(share: float) -> tuple[float, float]:
            (e, t), (f, u) = self.pairs[one], self.pairs[other]
            a, b = self.value(one), self.value(other)
            (down, up), (less, more) = self._unseen(t, a, a, share, e), self._unseen(u, b, b, share, f)
            return (a - down) + (more - b), (up - a) + (b - less)

        below, above = slack(0.5 + level / 2.0)  # half of the failures for each policy
        if not (below > 0.0 or above > 0.0):
            return low, high, p_value
        low, high = low - below, high + above
        if low > 0.0 or high < 0.0:  # the p-value that goes with it: where slack alone reaches 0
            gap = low + below if low > 0.0 else -(high - above)
            shares = np.geomspace(1e-12, 1.0 - level, 200)
            reach = np.array([max(slack(1.0 - share / 2.0)) for share in shares])
            return low, high, max(p_value, float(shares[int(np.argmax(reach < gap))]))
        return low, high, max(p_value, 1.0 - level)

    def _score_range(self, estimator: Estimator) -> tuple[float, float]:
        job = self._job
        return estimator.score_range(job.low, job.high, job.max_weight or 1.0 / self._least_probability)

    def _spread_of(self, pair: int) -> float:
        low, high = self._score_range(self.pairs[pair][0])
        return high - low

    @np.errstate(over="ignore", invalid="ignore")
    def simultaneous_level(self, gradients: list[Floats], level: float, seed: int) -> float:
        """The level at which single intervals cover all of these at once."""
        if len(gradients) < 2:
            return level
        each = np.stack(gradients)
        return simultaneous_level(each @ self.covariance @ each.T, level, seed)

    def simultaneous_p(self, gradients: list[Floats], p_values: list[float], seed: int) -> list[float]:
        """The p-values of these, as their intervals at once have them."""
        if len(gradients) < 2:
            return p_values
        each = np.stack(gradients)
        return simultaneous_p(each @ self.covariance @ each.T, np.array(p_values), seed).tolist()  # type: ignore[no-any-return]


def _hull(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """The shortest interval that holds both."""
    return float(np.fmin(one[0], other[0])), float(np.fmax(one[1], other[1]))


def _bet_of(estimator: Estimator) -> str:
    """Which scores an estimator's bets are on: those of IPS, of DR or of the model alone."""
    if not estimator.needs_model:
        return "weights"
    return "model" if isinstance(estimator, DM) else "both"


@dataclass(frozen=True)
class _Scored:
    """The gradients of rows' weights and scores by the columns, and the lowest and highest row that was not seen."""

    weight: Floats
    score: Floats
    low: Reach
    high: Reach
    offset: float = 0.0  # added to the weights, so that they average 1


@dataclass(frozen=True)
class Difference:
    """A difference of two values, first minus second."""

    value: float
    low: float
    high: float
    variance: float
    p_value: float
    kind: str
