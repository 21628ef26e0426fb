"""Inference on the log of an agent that adapts: adaptively weighted AIPW (Hadad et al. 2021, Zhan et al. 2021).

An agent plays what looked good, so the plain mean of an arm's rewards is biased and its interval covers too seldom.
The scores G_t = sum_a pi(a | x_t) m_{t-1}(x_t, a) + w_t (y_t - m_{t-1}(x_t, a_t)), w_t = pi(a_t | x_t) / e_t(a_t),
have the policy's value in round t as their mean whatever happened before, so their mean is that of these rounds, also
if rewards drift. Weights h_t, which only the past decides, can make each add the same variance: nearly normal however
the agent's probabilities moved, but a mean over these rounds only if the value is the same in all of them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import ndtri

from armwise.core.agent import Agent, Floats, count, fraction
from armwise.offline.designs.adaptive_result import AdaptiveEvaluation
from armwise.offline.designs.adaptive_scores import MIN_FREEDOM, Scores, hardly_tried, mixture_boundary, recent
from armwise.offline.designs.simulation import Simulation, simulate
from armwise.offline.estimators.past_models import predicted_from_the_past
from armwise.offline.evaluation.targets import Target, as_table
from armwise.offline.intervals.empirical_likelihood import likelihood
from armwise.offline.intervals.intervals import freedom, skewed_interval
from armwise.offline.logs.labels import ArmNames
from armwise.offline.logs.log import Log
from armwise.offline.logs.rows import SURE, LogBlock, WeakLogWarning
from armwise.offline.results.estimates import Estimate

Weights = Literal["stable", "minimal", "equal"]
Interval = Literal["auto", "normal", "likelihood", "betting", "asymptotic", "sequence", "simulated"]
Ends = tuple[float, float]
_MANY_ARMS = 100
_CONSTANT = ("betting", "sequence")  # intervals of a value that is the same in all rounds


def adaptive(
    log: Log,
    policies: Any = None,
    *,
    control: Any = None,
    propensities: Any = None,
    weights: Weights = "equal",
    interval: Interval = "auto",
    level: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    agent: Agent | None = None,
    simulations: int = 399,
    seed: int = 0,
    warn: bool = True,
    progress: bool = False,
) -> AdaptiveEvaluation:
    """Estimate each arm's (or policy's) value from an adaptive agent's log, with intervals valid under adaptivity.

    The rows must be in the order in which they happened. ``policies`` is None for every arm on its own, one policy,
    or several by name; ``control`` is an arm, its name or a policy: then "agent - control" says by how much the agent
    itself did better over these rounds, and each policy is compared with it, too. ``propensities`` (n, K) are the
    agent's probabilities of all arms, which sharpen the weights; without them the log's own are enough.

    A value is the mean over these rounds. ``weights``: "equal" (plain AIPW), right if rewards drift, too; "stable"
    (each score adds the same variance: nearly normal) and "minimal" (least variance) assume that the value is the same
    in all rounds, which is checked. ``interval``: "normal", right at the end of a long log whose agent gave every arm a
    chance that does not vanish; "likelihood" (empirical likelihood), right at the end of a long log for any
    probabilities, which rests on ``reward_range`` (by default 0 to 1 if all rewards lie there); "auto", the default, is
    normal, and likelihood where the weights show that normal would be wrong (without limits of the rewards there is no
    interval then); "betting", guaranteed for any probabilities and any length if the value is the same in all rounds,
    wider, and rests on ``reward_range`` too; "asymptotic", at all times at once, from when the variance is known well
    enough (the mixture boundary of the same martingale); "sequence", at all times for any length, of which the same
    must hold as of "betting". Where the mean moved, "auto" takes the place of these two, and the verdict says so. What
    the agent gave no chance cannot be judged: likelihood, betting and sequence allow for it by their width, and the
    verdict names it where it is a quarter of the decisions or more; of the other intervals it always does.

    "simulated" judges that, too, and logs without probabilities, if you still have the ``agent`` (its settings: clones
    that have learnt nothing are used) and believe that rewards are linear in the contexts, for each arm on its own:
    the model is fitted, clones of the agent live through ``simulations`` worlds drawn from it, and the errors that the
    fit makes there give the interval. A check of the fit and one of the agent come with it; if the model does not
    hold, the intervals of "auto" stand in its place, and the verdict says so.

    >>> import armwise as aw
    >>> rng = np.random.default_rng(5)
    >>> agent = aw.EpsilonGreedy(n_arms=2, epsilon=0.2, seed=1)
    >>> played = agent.play(None, (rng.random((2000, 2)) < [0.3, 0.5]).astype(float))
    >>> log = Log(arms=played.arms, rewards=played.rewards, probabilities=played.probabilities, n_arms=2)
    >>> found = adaptive(log, control=0)
    >>> bool(found["arm 0"].low < 0.3 < found["arm 0"].high), bool(found["agent - control"].low > 0)
    (True, True)
    """
    _check(log, weights, interval, agent)
    fraction("level", level)
    rows = log.rows
    targets = _targets(policies, log)
    plain = {name: _plain(name, _table(policy, log), rows, level) for name, policy in targets.items()}
    found: dict[str, Estimate] = {}
    scores: dict[str, Scores] = {}
    simulation = None
    if agent is not None:
        tables = {name: _table(policy, log) for name, policy in targets.items()}
        simulation = simulate(rows, agent, tables, None if control is None else _table(_one(control, log), log),
                              level=level, runs=count("simulations", simulations, least=_fewest(level)),
                              limits=reward_range, names=log.context_names, seed=seed, progress=progress)  # fmt: skip
        found = {name: _of_simulation(simulation, name, plain.get(name), len(rows), level)
                 for name in simulation.estimates}  # fmt: skip
    if simulation is None or (log.has_probabilities and any(e.warnings for e in found.values())):
        e = None if propensities is None else _propensities(propensities, rows)
        job = _Job(rows, predicted_from_the_past(rows), e, weights, interval, level, reward_range,
                   policies=len(targets) + (control is not None))  # fmt: skip
        scores = {name: job.scores(Target(policy, log)) for name, policy in targets.items()}
        by_weights = job.answers(scores, None if control is None else job.scores(Target(_one(control, log), log)))
        found = {name: each if name not in found or found[name].warnings else found[name]
                 for name, each in by_weights.items()}  # fmt: skip
    result = AdaptiveEvaluation(found, None, "an agent's own log", interval, level)
    result.plain, result._scores, result.simulation = plain, scores, simulation
    result.constant = weights != "equal" or interval in _CONSTANT
    result.mean_weights = {name: _mean_weight(_table(policy, log), rows) for name, policy in targets.items()}
    if result.weaknesses and warn:
        warnings.warn(WeakLogWarning(result.verdict), stacklevel=2)
    return result


def _fewest(level: float) -> int:
    """Return the fewest simulations whose order statistics contain the interval's quantiles."""
    return max(19, math.ceil(2.0 / (1.0 - level)) - 1)


def _of_simulation(simulation: Simulation, name: str, plain: Estimate | None, n: int, level: float) -> Estimate:
    """Return a simulated estimate; without an interval, and with the reason, if it is unreliable."""
    value, low, high, error = simulation.estimates[name]
    kind, texts = "simulated", simulation.against(name)
    if texts:
        low, high, kind = -math.inf, math.inf, "none"
    return Estimate(name, value, low, high, error, n, math.nan if plain is None else plain.ess, texts, kind, level)


def _check(log: Any, weights: str, interval: str, agent: Any) -> None:
    if not isinstance(log, Log):
        raise ValueError(f"log must be an armwise.offline.Log, got {type(log).__name__}")
    if interval == "simulated" and not isinstance(agent, Agent):
        came = "none" if agent is None else type(agent).__name__
        raise ValueError(f"interval='simulated' needs agent=, the agent that wrote the log (or a clone), got {came}")
    if agent is not None and interval != "simulated":
        raise ValueError(f"agent is for interval='simulated', got interval={interval!r}: leave one out")
    if not log.has_probabilities and interval != "simulated":
        raise ValueError(
            "the log has no probabilities, without which nobody can undo the agent's preferences: log "
            "choice.probability, and give agents that do not know it draws=... or an Explore around them; or give the "
            "agent itself and interval='simulated', if rewards are linear in the contexts"
        )
    if not len(log):
        raise ValueError("the log is empty: there is nothing to evaluate on")
    for name, value, known in (("weights", weights, get_args(Weights)), ("interval", interval, get_args(Interval))):
        if value not in known:
            raise ValueError(f"{name} is {value!r}, expected one of {', '.join(known)}")


def _targets(policies: Any, log: Log) -> dict[str, Any]:
    if isinstance(policies, Mapping):
        if not policies:
            raise ValueError("policies is empty: expected at least one policy by name, or None for every arm")
        return {str(name): _one(policy, log) for name, policy in policies.items()}
    if policies is not None:
        policy = _one(policies, log)
        return {Target(policy, log).name: policy}
    if log.n_arms > _MANY_ARMS:
        raise ValueError(
            f"the log has {log.n_arms:,} arms, too many to list: name those that matter, policies={{'a': 0, ...}}"
        )
    labels = log.arm_names if log.arm_names is not None else [f"arm {a}" for a in range(log.n_arms)]
    return {str(label): np.eye(log.n_arms)[a] for a, label in enumerate(labels)}


def _one(policy: Any, log: Log) -> Any:
    """Convert an arm's number or name to the distribution that always plays it; return anything else unchanged."""
    if not isinstance(policy, (int, np.integer, str)) or isinstance(policy, bool):
        return policy
    names = ArmNames(log.arm_names, log.n_arms)
    place = names.place(policy)
    if place is None:
        raise ValueError(f"there is no arm {policy!r}: expected {names.expected}")
    return np.eye(log.n_arms)[place]


def _propensities(values: Any, rows: LogBlock) -> Floats:
    e = np.asarray(values, np.float64)
    n, K = len(rows), rows.n_arms
    if e.shape != (n, K) or not np.all((e >= 0) & (e <= 1 + 1e-9)):
        raise ValueError(f"propensities must be probabilities of shape ({n}, {K}), got shape {e.shape}")
    assert rows.probabilities is not None
    own = e[np.arange(n), rows.arms]
    off = np.abs(own - rows.probabilities) > 1e-6
    if off.any():
        row = int(np.argmax(off))
        raise ValueError(
            f"propensities, row {row}: the logged arm {rows.arms[row]} has {own[row]:.6g}, but the log says "
            f"{rows.probabilities[row]:.6g} ({int(off.sum())} such rows)"
        )
    return e


class _Job:
    """The settings of one call, and data shared by all policies."""

    def __init__(
        self, rows: LogBlock, q: Floats, e: Floats | None, weights: str, interval: str, level: float,
        reward_range: tuple[float, float] | None, policies: int,
    ) -> None:  # fmt: skip
        self.rows, self.q, self.e, self.weights, self.interval, self.level = rows, q, e, weights, interval, level
        self.policies = policies
        self._refuted: dict[Scores, bool] = {}
        assert rows.probabilities is not None
        self.probabilities, y = rows.probabilities, rows.rewards
        low, high = (0.0, 1.0) if reward_range is None else (float(end) for end in reward_range)
        inside = bool(low < high and y.min() >= low and y.max() <= high)
        if not inside and (reward_range is not None or interval in ("likelihood", "betting", "sequence")):
            raise ValueError(
                f"interval={interval!r} rests on reward_range ({low:g}, {high:g}), but the rewards lie in "
                f"[{y.min():g}, {y.max():g}]: give reward_range=(low, high)"
            )
        self.reward_range = (low, high) if inside else None

    def scores(self, target: Target) -> Scores:
        rows, every = self.rows, np.arange(len(self.rows))
        table = as_table(target.answers(rows), rows.n_arms)
        w = table[every, rows.arms] / self.probabilities
        G = np.einsum("nk,nk->n", table, self.q) + w * (rows.rewards - self.q[every, rows.arms])
        phi = self._phi(table, w)
        h = {"stable": np.sqrt(phi), "minimal": phi, "equal": np.ones_like(phi)}[self.weights]
        if self.e is not None:
            mass, chance = np.broadcast_to(table, self.e.shape).ravel(), self.e.ravel()
        else:  # what the row's probability leaves is all that its other arms had
            mass, chance = 1.0 - table[every, rows.arms], 1.0 - self.probabilities
        no_chance = float(mass[chance <= 1.0 - SURE].sum() / len(rows))
        return Scores(table, G, w, h, rows.rewards, self.reward_range, no_chance, hardly_tried(mass, chance, len(rows)))

    def _phi(self, table: Floats, w: Floats) -> Floats:
        """Return 1 / E[sum_a pi^2 / e_t] estimated from the past: the target's effective rows per round."""
        n, K = len(w), table.shape[1]
        if self.e is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                inverse = np.where(table > 0, table**2 / self.e, 0.0).sum(axis=1)
            inverse = np.minimum(inverse, 1e12)
            # Without contexts the agent's probabilities were settled before the round (Hadad et al.); with them the
            # weight may not look at this round's context, so it looks at the last ones (Zhan et al., section 3).
            return 1.0 / (inverse if self.rows.contexts is None and self.rows.arm_features is None
                          else recent(np.c_[inverse], prior=float(K))[:, 0])  # fmt: skip
        # E[w] = 1 and E[w^2] = sum pi^2 / e: the recent effective sample size per round, from the log alone.
        first, second = recent(np.c_[w, w * w], prior=np.array([1.0, float(K)])).T
        return np.asarray(np.clip(first**2 / second, 1e-12, 1.0)) if n else np.ones(0)

    # ------------------------------------------------------------------ estimates

    def answers(self, scores: dict[str, Scores], base: Scores | None) -> dict[str, Estimate]:
        """Return the estimate of each policy, of the agent minus the control, and of each policy minus the control."""
        found = {name: self.estimate(name, s) for name, s in scores.items()}
        if base is not None:
            found["agent - control"] = self.lift(base)
            for name, s in scores.items():
                if not np.array_equal(s.table, base.table):
                    found[f"{name} - control"] = self.difference(f"{name} - control", s, base)
        return found

    def estimate(self, name: str, s: Scores) -> Estimate:
        texts = self._against(s)
        zero = 0.0 if self.reward_range is None else self.reward_range[0]
        return self._answer(
            name, s.value, s.influence, texts, (s,),
            likely=lambda: self._likely(s.w, np.zeros_like(s.w), s.w, 1.0, s.short, zero),
            bets=lambda: s.betting(self.level),
        )  # fmt: skip

    def difference(self, name: str, s: Scores, base: Scores) -> Estimate:
        texts = list(dict.fromkeys([*self._against(s), *self._against(base)]))
        # the one's value and what the control lacks of the best reward: at most 1 + the difference
        zero = 0.0 if self.reward_range is None else self.reward_range[0] - self.reward_range[1]

        def bets() -> Ends:
            one, other = (each.betting(0.5 + self.level / 2) for each in (s, base))  # both hold at once
            return one[0] - other[1], one[1] - other[0]

        return self._answer(
            name, s.value - base.value, s.influence - base.influence, texts, (s, base), bets=bets,
            likely=lambda: self._likely(s.w, base.w, s.w + base.w, 2.0, s.short or base.short, zero),
        )  # fmt: skip

    def lift(self, base: Scores) -> Estimate:
        """The agent's mean reward over these rounds minus the control's value."""
        y = self.rows.rewards
        influence, value = (y - y.mean()) / len(y) - base.influence, float(y.mean()) - base.value

        def bets() -> Ends:
            miss = 1.0 - self.level  # a fifth of it is enough for the agent's own mean (Hoeffding 1963, Azuma 1967)
            low, high = base.betting(1.0 - 0.8 * miss)
            width = math.inf if self.reward_range is None else self.reward_range[1] - self.reward_range[0]
            half = width * math.sqrt(math.log(2.0 / (0.2 * miss)) / (2.0 * len(y)))
            return float(y.mean()) - half - high, float(y.mean()) + half - low

        return self._answer(
            "agent - control", value, influence, self._against(base), (base,), bets=bets, alone=False,
            likely=lambda: self._likely(np.zeros_like(y), base.w - 1, base.w, 0.0, base.short),
        )  # fmt: skip

    def _answer(
        self, name: str, value: float, influence: Floats, texts: list[str], scores: tuple[Scores, ...], *,
        likely: Callable[[], Ends], bets: Callable[[], Ends], alone: bool = True,
    ) -> Estimate:  # fmt: skip
        """An estimate with the interval asked for; "auto" is normal, or likelihood where the weights are doubtful."""
        s = scores[0] if alone and len(scores) == 1 else None
        kind = "auto" if self.interval == "simulated" or any(map(self._moved, scores)) else self.interval
        if kind in _CONSTANT:  # of drift too weak to be found they are as wrong as "auto" at most, which they hold
            less, more = self._auto(value, influence, texts, scores, likely)[1]
            if kind == "sequence":
                found = self._at_all_times(name, value, influence, texts, kind, s)
                return replace(found, low=min(found.low, less), high=max(found.high, more))
            low, high = bets()
            return self._bounded(name, value, influence, texts, (min(low, less), max(high, more)), kind, s)
        if kind == "auto":
            kind, ends = self._auto(value, influence, texts, scores, likely)
        elif kind == "normal":
            ends = skewed_interval(value, influence, self.level)
        elif kind == "likelihood":
            ends = likely()
        else:
            return self._at_all_times(name, value, influence, texts, kind, s)
        if kind == "likelihood":
            return self._bounded(name, value, influence, texts, ends, kind, s)
        return self._estimate(name, value, *ends, influence, texts, kind, s)

    def _auto(
        self, value: float, influence: Floats, texts: list[str], scores: tuple[Scores, ...], likely: Callable[[], Ends]
    ) -> tuple[str, Ends]:
        doubtful = any(s.doubtful for s in scores)
        if not doubtful or (self.reward_range is None and not texts):
            return "normal", skewed_interval(value, influence, self.level)
        return "likelihood", likely()

    def _against(self, s: Scores) -> list[str]:
        """Return warnings for a policy: of the log, and of drift where the interval assumes a constant mean."""
        likely = self.reward_range is not None and self.interval not in ("normal", "asymptotic")
        texts = s.weaknesses(self.policies, likely=likely)
        if self._moved(s):
            texts.append(f"the mean moved over the rounds, and {self.interval!r} takes it for constant: the interval "
                         "is that of \"auto\", for the mean over these rounds")  # fmt: skip
        elif self.weights != "equal" and self.interval not in _CONSTANT and s.moved:
            texts.append(f"the mean moved over the rounds, of which weights={self.weights!r} count some more than "
                         "others: take weights='equal'")  # fmt: skip
        return texts

    def _moved(self, s: Scores) -> bool:
        """Return whether an interval that takes the mean for constant is refuted: by a test, or by ends that cross."""
        if self.interval not in _CONSTANT:
            return False
        if s not in self._refuted:
            low, high = s.betting(self.level) if self.interval == "betting" else s.last("sequence", self.level)
            self._refuted[s] = low > high or s.moved
        return self._refuted[s]

    def _likely(self, earns: Floats, lacks: Floats, w: Floats, cap: float, short: bool, zero: float = 0.0) -> Ends:
        """The likelihood interval of a value whose scores are ``earns`` times the reward and ``lacks`` times what the
        reward lacks of the best (both as shares of the range), and those of its mirror image the other way round."""
        if self.reward_range is None:
            return -math.inf, math.inf
        low, width = self.reward_range[0], self.reward_range[1] - self.reward_range[0]
        r = (self.rows.rewards - low) / width
        up, down, limits = earns * r + lacks * (1 - r), earns * (1 - r) + lacks * r, (min(cap - 1, 0.0), max(cap, 1.0))
        ends = likelihood(up, down, w, cap, limits, self.level, short=short)
        return zero + width * ends[0], zero + width * ends[1]

    def _bounded(
        self, name: str, value: float, influence: Floats, texts: list[str], ends: Ends, kind: str, s: Scores | None
    ) -> Estimate:
        """An estimate with an interval that knows the limits of the rewards; a value outside of it moves to its end."""
        low, high = ends
        if math.isinf(low):
            kind, texts = "none", [
                *texts,
                "no valid interval: without limits of the rewards nothing bounds what the agent hardly ever tried "
                "(say reward_range=(low, high), or put an Explore around the agent)",
            ]  # fmt: skip
        return self._estimate(name, min(max(value, low), high), low, high, influence, texts, kind, s)

    def _at_all_times(
        self, name: str, value: float, influence: Floats, texts: list[str], kind: str, s: Scores | None
    ) -> Estimate:
        known = freedom(influence)
        if s is not None:
            low, high = s.last(kind, self.level)
        else:  # of the same martingale; a difference of bounded scores has no short range
            error = math.sqrt(float(influence @ influence))
            half = float(mixture_boundary(error**2, len(influence), self.level)) * math.sqrt(1.0 + 8.0 / known)
            low, high = (value - half, value + half) if known >= MIN_FREEDOM else (-math.inf, math.inf)
            if kind == "sequence":
                texts = [*texts, "its time-uniform interval is the asymptotic one: right for long logs"]
        if math.isinf(low):
            kind = "none"
            texts = [*texts, f"no interval yet: the variance is that of about {known:.0f} rows, and an interval at all "
                             f"times begins at {MIN_FREEDOM:.0f}"]  # fmt: skip
        return self._estimate(name, value, low, high, influence, texts, kind, s)

    def _estimate(
        self, name: str, value: float, low: float, high: float, influence: Floats, texts: list[str], kind: str,
        s: Scores | None,
    ) -> Estimate:  # fmt: skip
        error, ess = math.sqrt(float(influence @ influence)), math.nan if s is None else s.ess
        return Estimate(name, value, low, high, error, len(influence), ess, tuple(texts), kind, self.level)


def _table(policy: Any, log: Log) -> Floats:
    return as_table(Target(policy, log).answers(log.rows), log.n_arms)


def _mean_weight(table: Floats, rows: LogBlock) -> float:
    if rows.probabilities is None:
        return math.nan
    share = np.broadcast_to(table, (len(rows), rows.n_arms))[np.arange(len(rows)), rows.arms]
    return float((share / rows.probabilities).mean())


def _plain(name: str, table: Floats, rows: LogBlock, level: float) -> Estimate:
    """Return the plain mean reward of the rows whose arm the policy plays."""
    share = np.broadcast_to(table, (len(rows), rows.n_arms))[np.arange(len(rows)), rows.arms]
    total = share.sum()
    if total <= 0:
        return Estimate(name, math.nan, math.nan, math.nan, math.nan, 0, 0.0, ("the agent never played it",))
    value = float(share @ rows.rewards / total)
    error = math.sqrt(float(((share * (rows.rewards - value)) ** 2).sum())) / total
    half = float(ndtri(0.5 + level / 2)) * error
    biased = ("biased: the agent chose which rows there are, which the interval does not know",)
    ess = float(total**2 / (share**2).sum())
    return Estimate(
        name, value, value - half, value + half, error, int((share > 0).sum()), ess, biased, "normal", level
    )
