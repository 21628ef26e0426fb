"""What one pass over a log says: every estimate, interval, lift and check of an evaluation, from its sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armwise.core.agent import Floats, count
from armwise.offline.estimators.estimators import DM, DR, IPS, SNDR, SNIPS, Estimator, Facts
from armwise.offline.evaluation.balance import Balance
from armwise.offline.evaluation.diagnostics import Diagnostics, Weighing
from armwise.offline.evaluation.settings import Settings
from armwise.offline.evaluation.sums import Sums
from armwise.offline.evaluation.targets import Target, unsupported
from armwise.offline.intervals import intervals
from armwise.offline.intervals.bounded import Bets, Reach, cressie_read
from armwise.offline.intervals.intervals import Clusters
from armwise.offline.intervals.simultaneous import simultaneous_level
from armwise.offline.logs.rows import LogBlock
from armwise.offline.results.estimates import Estimate

_DISAGREE = 4.0  # standard errors between the weights' answer and the model's that chance does not explain


class Tally:
    """Running sums of the columns of several (estimator, target) pairs, and what their intervals need besides."""

    def __init__(self, job: Settings, pairs: list[tuple[Estimator, Target]], model: bool) -> None:
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
        resampled = job.interval == "bootstrap"
        self.sums = Sums(job.log.n_arms, len(self._targets), resampled=resampled, clustered=job.clustered)
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
        """Scores whose mean is the value: the model held inside the rewards' range, so that DR's are bounded too."""
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

    def finish(self, balance: Balance | None, least_probability: float) -> None:
        """Means and covariances: of rows, or where rows come in clusters what clusters make of them.

        ``least_probability`` is that of the whole log, also where this is a segment of it.
        """
        self._balance, self._least_probability = balance, least_probability
        self._diagnosed: dict[Target, Diagnostics] = {}
        sums, self.n = self.sums, self.sums.n
        if self.n == 0:
            raise ValueError("the log is empty: there is nothing to evaluate on")
        self.mean, self.covariance, self.units = sums.moments.mean, sums.moments.covariance, float(self.n)
        if isinstance(sums.blocks, Clusters):
            self.covariance, self.units = sums.blocks.covariance(self.mean, self.n), float(sums.blocks.n)
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
        """The kind of interval: "auto" is Cressie-Read for bounded rewards, normal for others."""
        if self._job.interval != "auto":
            return self._job.interval
        return "cressie-read" if self.bounded and self._job.log.has_probabilities else "normal"

    def diagnostics(self, target: Target) -> Diagnostics | None:
        """What the weights of a target say of the log: the same for each of its estimates."""
        if not self._job.log.has_probabilities:
            return None
        if target not in self._diagnosed:
            self._diagnosed[target] = self._diagnose(target)
        return self._diagnosed[target]

    def _diagnose(self, target: Target) -> Diagnostics:
        found = self._weighing(target).result()
        if self._balance is not None:
            found = replace(found.with_verdict(*self._balance.verdicts()), balance=tuple(self._balance.worst()[:30]))
        z = self.disagreement(target)
        if z is not None and abs(z) > _DISAGREE:
            found = found.with_verdict(
                f"the reward model and the weights disagree by {abs(z):.1f} standard errors (SNIPS against SNDR): a "
                "context may be an outcome, known only after the arm was played, or the probabilities are wrong"
            )
        return found

    @np.errstate(over="ignore", invalid="ignore")
    def disagreement(self, target: Target) -> float | None:
        """By how many standard errors SNIPS and SNDR differ: about normal if contexts and probabilities are right."""
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
        spread, units = self._small_sample(variance, [pair])
        low, high = intervals.normal(centre, spread, self.n, level, units=units)
        if kind == "bootstrap":
            stretched = self._stretched(lambda means: e.interval_value(means[..., p]), centre, [pair], level)
            # A resample knows no more than the rows, so its percentiles fall short where these are few.
            low, high = _hull((low, high), self._bootstrap(stretched, level, resamples, seed))
        elif kind == "cressie-read":
            low, high = self._cressie_read(e, target, level)
        elif self._job.in_order:
            bets = self._bets[target, _bet_of(e)]
            low, high = bets.low, bets.high
        elif kind == "bernstein":
            low, high = intervals.bernstein(centre, variance, self.n, level, spread=self._spread(e, p))
        if kind in ("cressie-read", "bernstein", "betting", "sequence"):  # the value itself lies in the rewards' range
            low, high = max(low, self._job.low), min(high, self._job.high)
        low, high = self._unseen(target, low, high, level, e)
        diagnostics = self.diagnostics(target)
        # Cressie-Read knows that the weights average 1 and IPS does not: on a weak log its value may lie outside.
        apart = kind == "cressie-read" and isinstance(e, IPS) and diagnostics is not None and diagnostics.verdicts
        if math.isfinite(value) and not apart:
            inside = value if kind == "normal" or not self.bounded else min(max(value, self._job.low), self._job.high)
            low, high = min(low, inside), max(high, inside)
        own = self._variance(self.gradient(pair))
        return Estimate.of(e, value, low, high, own, self.n, diagnostics, kind, together or level)

    def _small_sample(self, variance: float, pairs: list[int]) -> tuple[float, float]:
        """The variance as few effective rows u leave it open, and u, for Student's quantile.

        Weighted residuals from a fitted mean are too small by the leverage 1/u of a row (HC3: MacKinnon & White 1985).
        """
        weighing = [self._weighing(t).ess for e, t in (self.pairs[i] for i in pairs) if e.needs_weights]
        units = max(min([self.units, *weighing]), 2.0)
        return (variance, self.units) if units >= self.units else (variance * (units / (units - 1.0)) ** 2, units)

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
        """What the log itself earned per decision."""
        return self.sums.total / self.n

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """Between which numbers the rewards lie, where they are bounded."""
        return (self._job.low, self._job.high) if self.bounded else None

    def _unseen(self, target: Target, low: float, high: float, level: float, e: Estimator) -> tuple[float, float]:
        """Where every row that counts has the same reward, as many rows as count leave at least this much open."""
        weighing = self._weighing(target)
        if not (e.needs_weights and self.bounded and self._job.log.has_probabilities and weighing.constant):
            return low, high
        ess = weighing.ess
        slack = (1.0 - (1.0 - level) ** (1.0 / max(ess, 1.0))) * (self._job.high - self._job.low)
        reward = weighing.common_reward
        return min(low, max(reward - slack, self._job.low)), max(high, min(reward + slack, self._job.high))

    def _cressie_read(self, e: Estimator, target: Target, level: float) -> tuple[float, float]:
        """For a doubly robust estimate the narrower of its own interval and that of IPS, which has the same value."""
        own = [self._likely(target, level, with_model=False)]
        if e.needs_model:
            own.append(self._likely(target, level, with_model=True))
        low, high = self._job.low, self._job.high
        inside = [(max(a, low), min(b, high)) for a, b in own]
        return min(inside, key=lambda ends: ends[1] - ends[0])

    def _likely(self, target: Target, level: float, *, with_model: bool) -> tuple[float, float]:
        job, weighing = self._job, self._weighing(target)
        if with_model:
            p = self.sums.places[self._hidden["sndr", target]]  # q, corrections, weights
            rows = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
            (q, q_target) = self.sums.q[self._targets.index(target)]
            most = job.given_weight or 1.0 / weighing.least_probability
            low = Reach(q_target.low, job.low - q.high, max(most, weighing.largest_weight))
            high = Reach(q_target.high, job.high - q.low, max(most, weighing.largest_weight))
        else:
            p = self.sums.places[self._hidden["snips", target]]  # weighted rewards, weights
            rows = np.array([[0.0, 1.0], [1.0, 0.0]])
            most = max(job.given_weight, weighing.largest_weight) if job.given_weight else math.inf
            low, high = Reach(0.0, job.low, most), Reach(0.0, job.high, most)
        mean, covariance = rows @ self.mean[p], rows @ self.covariance[np.ix_(p, p)] @ rows.T
        return cressie_read(self.n, mean, covariance, low, high, level, units=self.units)

    def _spread(self, estimator: Estimator, columns: list[int]) -> float:
        low, high = self._score_range(DR() if estimator.by_dr else estimator)
        ends = [self.sums.columns[i] for i in (columns[:1] if estimator.by_dr else columns)]
        seen = sum(end.high - end.low for end in ends)  # a model may answer outside the range
        return max(high - low, seen)

    def _bootstrap(
        self, value: Callable[[Floats], Any], level: float, resamples: int, seed: int
    ) -> tuple[float, float]:
        assert self.sums.blocks is not None
        [ends] = intervals.bootstrap(
            self.sums.blocks, [value], level, resamples=count("resamples", resamples, least=2), seed=seed
        )
        return ends

    @np.errstate(over="ignore", invalid="ignore")
    def difference(self, one: int, other: int, level: float, resamples: int, seed: int) -> Difference:
        """The paired difference of two pairs: its value, interval, variance and two-sided p-value, all of one kind."""
        value, variance = self.combination([(one, 1.0), (other, -1.0)])
        kind = self._job.interval
        spread, units = self._small_sample(variance, [one, other])
        low, high = intervals.normal(value, spread, self.n, level, units=units)
        p_value = intervals.normal_p(value, spread, self.n, units=units)
        if kind == "bootstrap":
            a, b, pa, pb = self.settled[one], self.settled[other], self.sums.places[one], self.sums.places[other]

            def gap(means: Floats) -> Any:
                return a.value(means[..., pa]) - b.value(means[..., pb])

            stretched = self._stretched(gap, value, [one, other], level)
            low, high = _hull((low, high), self._bootstrap(stretched, level, resamples, seed))
            assert self.sums.blocks is not None
            p_value = max(p_value, intervals.bootstrap_p(self.sums.blocks, stretched, resamples=resamples, seed=seed))
        elif self._paired is not None:
            low, high, p_value = self._paired.low, self._paired.high, math.nan  # bets at one level have no p-value
        elif kind == "bernstein":
            reach = self._spread_of(one) + self._spread_of(other)
            low, high = intervals.bernstein(value, variance, self.n, level, spread=reach)
            p_value = intervals.bernstein_p(value, variance, self.n, reach)
        else:
            kind = "normal"
        if kind in ("normal", "bootstrap"):
            low, high, p_value = self._open_still(one, other, low, high, p_value, level)
        if self.bounded:  # no difference is larger than that of the rewards
            width = self._job.high - self._job.low
            low, high = min(max(low, -width), width), max(min(high, width), -width)
        return Difference(value, float(low), float(high), variance, p_value, kind)

    def _open_still(
        self, one: int, other: int, low: float, high: float, p_value: float, level: float
    ) -> tuple[float, float, float]:
        """Where all rows that count for a policy have one reward, they have no spread, and yet do not make it sure."""

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


def _hull(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """The shortest interval that holds both."""
    return float(np.fmin(one[0], other[0])), float(np.fmax(one[1], other[1]))


def _bet_of(estimator: Estimator) -> str:
    """Which scores an estimator's bets are on: those of IPS, of DR or of the model alone."""
    if not estimator.needs_model:
        return "weights"
    return "model" if isinstance(estimator, DM) else "both"


@dataclass(frozen=True)
class Difference:
    """A difference of two values, first minus second."""

    value: float
    low: float
    high: float
    variance: float
    p_value: float
    kind: str
