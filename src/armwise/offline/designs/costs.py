"""Rewards and costs of policies from one log, and the best mixture within a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from armwise.agents.budget.optimum import budget_optimum
from armwise.core.agent import Floats, fraction
from armwise.core.arguments import as_floats, short
from armwise.core.tools.extras import needs
from armwise.core.tools.text_tables import html_table, text_table
from armwise.offline.evaluation.evaluation import evaluate
from armwise.offline.evaluation.targets import Target
from armwise.offline.logs.log import Log
from armwise.offline.results.estimates import Estimate

_RESAMPLES = 1000
_MANY = 5_000  # rows from which on a mean is normal enough: a dear arm may be one in fifty of them
_MIN_ERROR = 0.05  # of the error: resamples of three rows that are all the same one say nothing

_Judgement = TypeVar("_Judgement")

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class RatioInterval:
    """A ratio with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class JudgedPolicy:
    """One policy: value and costs per decision, costs per reward, and whether another is at least as good in all.

    ``costs`` and ``costs_per_reward`` have one entry per resource; ``cost`` and ``cost_per_reward`` are those of a log
    with one.
    """

    name: str
    value: Estimate
    costs: tuple[Estimate, ...]
    costs_per_reward: tuple[RatioInterval, ...]
    dominated: bool

    @property
    def cost(self) -> Estimate:
        """Its cost per decision, in the log's one resource."""
        return _only("cost", self.costs)

    @property
    def cost_per_reward(self) -> RatioInterval:
        """The cost of a unit of reward, in the log's one resource."""
        return _only("cost_per_reward", self.costs_per_reward)

    def beats(self, other: JudgedPolicy) -> bool:
        """Return whether this policy dominates another by the estimates: no less reward, no more cost, not equal."""
        mine, theirs = [each.value for each in self.costs], [each.value for each in other.costs]
        no_worse = self.value.value >= other.value.value and all(m <= t for m, t in zip(mine, theirs))
        return no_worse and (self.value.value > other.value.value or mine != theirs)


def _only(name: str, each: tuple[_Judgement, ...]) -> _Judgement:
    if len(each) != 1:
        raise ValueError(
            f"{name} is one number, and the log has {len(each)} resources: see its plural, one per resource"
        )
    return each[0]


class Tradeoff:
    """Policies by reward and cost; ``resources`` names the costs.

    >>> log = Log(arms=[0, 1] * 50, rewards=[0.0, 1.0] * 50, probabilities=[0.5] * 100, n_arms=2, costs=[0, 2] * 50)
    >>> result = tradeoff(log, {"first": [1.0, 0.0], "second": [0.0, 1.0]})
    >>> result["second"].cost.value, result.front
    (2.0, ['first', 'second'])
    """

    def __init__(self, judged: list[JudgedPolicy], resources: Sequence[str] = ("cost",)) -> None:
        self.policies, self.resources = {each.name: each for each in judged}, list(resources)

    def __getitem__(self, name: str) -> JudgedPolicy:
        return self.policies[name]

    @property
    def front(self) -> list[str]:
        """Return the Pareto front by the estimates, the cheapest in the first resource first."""
        best = [each for each in self.policies.values() if not each.dominated]
        return [each.name for each in sorted(best, key=lambda each: each.costs[0].value)]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        shown = sorted(self.policies.values(), key=lambda each: each.costs[0].value)
        rows = []
        for each in shown:
            numbers: tuple[Estimate | RatioInterval, ...] = (each.value, *each.costs, *each.costs_per_reward)
            cells = [f"{x.value:.4g} [{x.low:.4g}, {x.high:.4g}]" for x in numbers]
            rows.append([each.name, *cells, "" if each.dominated else "yes"])
        per_reward = [f"{name} per reward" for name in self.resources]
        return ["policy", "value", *self.resources, *per_reward, "on the front"], rows

    @property
    def weaknesses(self) -> list[str]:
        """Return warnings per policy, mostly about too few effective rows.

        >>> log = Log(arms=[0, 1] * 9, rewards=[0.0, 1.0] * 9, probabilities=[0.5] * 18, n_arms=2, costs=[1, 2] * 9)
        >>> tradeoff(log, {"first": [1.0, 0.0]}).weaknesses[0]
        'first: too few rows answer the question: effective sample size 9 of 18, where an interval needs about 30'
        """
        found = [(name, warning) for name, each in self.policies.items()
                 for cost in each.costs
                 for warning in (*each.value.warnings, *map(_of_costs, cost.warnings))]  # fmt: skip
        return [f"{name}: {warning}" for name, warning in dict.fromkeys(found)]

    def __str__(self) -> str:
        return "\n".join([text_table(*self._cells()), *self.weaknesses])

    def _repr_html_(self) -> str:
        return html_table(*self._cells()) + "".join(f"<p>{escape(each)}</p>" for each in self.weaknesses)

    def plot(self, path: Any = None) -> Figure:
        """Value over cost, with both intervals; the Pareto front is a line.

        >>> log = Log(arms=[0, 1] * 50, rewards=[0.0, 1.0] * 50, probabilities=[0.5] * 100, n_arms=2, costs=[1, 2] * 50)
        >>> tradeoff(log, {"first": [1.0, 0.0]}).plot().axes[0].get_xlabel()
        'cost per decision'
        """
        with needs("offline"):
            from matplotlib.figure import Figure as Canvas

        panels = len(self.resources)
        figure = Canvas(figsize=(6 * panels, 4), layout="constrained")
        for i, axes in enumerate(np.atleast_1d(figure.subplots(1, panels, sharey=True))):
            self._draw(axes, i)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def _draw(self, axes: Any, i: int) -> None:
        """Value per amount paid in resource i."""
        for each in self.policies.values():
            x, y = each.costs[i], each.value
            sides = [[x.value - x.low], [x.high - x.value]], [[y.value - y.low], [y.high - y.value]]
            colour = "#0b6fa4" if each.name in self.front else "#5f6c7b"  # dominated ones are grey
            axes.errorbar([x.value], [y.value], xerr=np.abs(sides[0]), yerr=np.abs(sides[1]), fmt="o", capsize=2,
                          color=colour)  # fmt: skip
            axes.annotate(each.name, (x.value, y.value), textcoords="offset points", xytext=(6, -14), color="#1f2933")
        if len(self.resources) == 1:
            front = [self[name] for name in self.front]
            axes.plot([each.cost.value for each in front], [each.value.value for each in front], color="0.6", zorder=0)
        axes.margins(x=0.12)
        axes.grid(color="#d9dee3", linewidth=0.8)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.set_xlabel(f"{self.resources[i]} per decision")
        if i == 0:
            axes.set_ylabel("value per decision")
            title = (
                "the line is the Pareto front" if len(self.resources) == 1 else "no other beats the blue ones in all"
            )
            axes.set_title(title, loc="left", fontsize=11)


def tradeoff(
    log: Log, policies: Mapping[str, Any], *, estimator: str = "snips", level: float = 0.95,
    resources: Sequence[str] | None = None, **options: Any,
) -> Tradeoff:  # fmt: skip
    """Estimate each policy's reward and cost per decision, with intervals, from a log that has ``costs``.

    Values and costs are judged alike, by ``estimator`` (see ``evaluate``, which takes ``options``); cost per reward is
    the ratio of the weighted sums. Its interval, and that of costs unless ``options`` or another estimator are given,
    is by bootstrap-t: costs have long tails, and a normal interval from few rows ends too low. How long the tail of an
    arm's cost is, relative to its mean, is looked for in the rows of all arms: those of a dear arm are few. A policy is
    dominated where another earns at least as much for at most as much of everything, by the estimates. In several
    resources (``log.costs`` is (n, m)) each has its columns, called ``resources`` or cost 1, cost 2, ...

    >>> log = Log(arms=[0, 1] * 50, rewards=[0.0, 1.0] * 50, probabilities=[0.5] * 100, n_arms=2, costs=[1, 2] * 50)
    >>> print(tradeoff(log, {"first": [1.0, 0.0], "second": [0.0, 1.0]})["second"].cost_per_reward.value)
    2.0
    """
    paid = _costs(log)
    names = _resources(resources, paid.shape[1])
    judged = []
    for name, policy in _policies(policies).items():
        value = evaluate(log, policy, [estimator], level=level, warn=False, **options)[estimator]
        weights = _weights(log, policy)
        costs = tuple(_cost(log, column, policy, weights, estimator, level, options) for column in paid.T)
        per_reward = tuple(_ratio(weights, column, log.rewards, level) for column in paid.T)
        judged.append(JudgedPolicy(name, value, costs, per_reward, dominated=False))
    return Tradeoff([replace(one, dominated=any(other.beats(one) for other in judged)) for one in judged], names)


def _cost(log: Log, paid: Floats, policy: Any, weights: Floats, estimator: str, level: float, options: Any) -> Estimate:
    """Evaluate a policy's cost per decision in one resource."""
    # Dollars that lie between 0 and 1 are not bounded by 1: their interval assumes no bound.
    costing = {"interval": "normal"} | options
    cost: Estimate = evaluate(
        _with_rewards(log, paid), policy, [estimator], level=level, warn=False, **costing
    )[estimator]  # fmt: skip
    if estimator == "snips" and not options and np.isfinite(cost.value):
        mean = _ratio(weights, paid, np.ones_like(paid), level, _usual(log.arms, paid))
        cost = replace(cost, low=mean.low, high=mean.high, interval="bootstrap-t")
    return cost


def _policies(policies: Any) -> Mapping[str, Any]:
    if not isinstance(policies, Mapping) or not policies:
        raise ValueError(f"policies must be a dictionary with at least one policy by its name, got {short(policies)}")
    return policies


def _resources(names: Any, n: int) -> list[str]:
    if names is None:
        return ["cost"] if n == 1 else [f"cost {i + 1}" for i in range(n)]
    found = list(names) if isinstance(names, (list, tuple)) else [names]
    if len(found) != n or not all(isinstance(name, str) for name in found):
        raise ValueError(f"resources must be {n} names, one per resource of the log's costs, got {short(names)}")
    return found


@dataclass(frozen=True)
class Mixture:
    """The best mix of policies within a budget: its value with an interval, and the share of each policy.

    >>> Mixture(0.5, 0.4, 0.6, {"small": 1.0}).shares
    {'small': 1.0}
    """

    value: float
    low: float
    high: float
    shares: dict[str, float]


def best_mixture(
    log: Log, policies: Mapping[str, Any], rate: float | Sequence[float], *, level: float = 0.95
) -> Mixture:
    """Find the mix of these policies with the largest reward per decision at a mean cost of at most ``rate``.

    ``rate`` is a number, or one per resource. ValueError if no mix keeps to it, by the estimated costs. Where all
    rewards of the log lie in [0, 1] the interval does too.

    The value is the LP's over the policies' estimated values and costs (self-normalised weights), which flatters a
    little: it picks what the log happened to favour. The interval does not. With the LP's price of a unit of cost,
    what policy k earns less what it pays, v_k - price . (c_k - rate), is at most the optimum for every k, and is the
    optimum on average over the best mix. So no mix that the log calls affordable earns more than the optimum if every
    policy is lowered by its half-width, all m at once (Bonferroni); and the largest upper end of a policy is above it.

    >>> log = Log(arms=[0, 1] * 50, rewards=[0.0, 1.0] * 50, probabilities=[0.5] * 100, n_arms=2, costs=[0, 2] * 50)
    >>> best = best_mixture(log, {"first": [1.0, 0.0], "second": [0.0, 1.0]}, rate=1.0)
    >>> round(best.value, 6), round(best.shares["second"], 6)
    (0.5, 0.5)
    """
    from scipy.special import ndtri

    paid, names = _costs(log), list(_policies(policies))
    rates = _rates(rate, paid.shape[1])
    tail = (1.0 - fraction("level", level)) / 2.0
    weights = np.stack([_weights(log, policies[name]) for name in names], axis=1)
    total = weights.sum(axis=0)
    if not total.all():
        never = names[int(np.argmin(total))]
        raise ValueError(f"policies: the log has no decision that {never!r} would have made, so it cannot be judged")
    values, costs = log.rewards @ weights / total, (weights.T @ paid) / total[:, None]
    least = costs.min(axis=0)
    if (least - rates > 1e-9 * np.abs(least)).any():
        raise ValueError(f"rate {rate!r:.80}: no mix keeps to it, since the cheapest of these policies costs {least}")
    rates = np.maximum(rates, least)  # what a mean of equal costs rounds to may be above them
    best = budget_optimum(values[None], costs[None], rates)
    less_paid = log.rewards - (paid - rates) @ _prices(values, costs - rates)
    means = less_paid @ weights / total
    squares = ((weights * (less_paid[:, None] - means)) ** 2).sum(axis=0)
    unseen = weights.max(axis=0) * np.ptp(less_paid)  # three equal outcomes say little
    errors = np.sqrt(squares + unseen**2) / total
    lowered = values + ndtri(tail / len(names)) * errors
    low = budget_optimum(lowered[None], costs[None], rates).value
    found = np.array([best.value, low, (means - ndtri(tail) * errors).max()])
    if log.rewards.min() >= 0.0 and log.rewards.max() <= 1.0:
        found = found.clip(0.0, 1.0)
    value, low, high = found.tolist()
    return Mixture(value, low, high, dict(zip(names, best.policy[0].tolist())))


def _rates(rate: Any, n: int) -> Floats:
    rates = np.atleast_1d(as_floats("rate", rate))
    if rates.shape not in ((1,), (n,)) or not np.isfinite(rates).all():
        raise ValueError(
            f"rate must be a finite number, or {n}, one per resource of the log's costs, got {short(rate)}"
        )
    return np.broadcast_to(rates, (n,))


def _prices(values: Floats, excess: Floats) -> Floats:
    """The LP's price of a unit of each resource: the prices >= 0 at which max_k v_k - price . (c_k - rate) is least."""
    with needs():
        from scipy.optimize import linprog

    (K, m), unit = excess.shape, np.maximum(np.abs(excess).max(axis=0), 1e-300)
    above = np.hstack([-np.ones((K, 1)), -excess / unit])  # v_k - price . excess_k - s <= 0
    bounds = [(None, None), *[(0.0, None)] * m]
    found = linprog(np.append(1.0, np.zeros(m)), A_ub=above, b_ub=-values, bounds=bounds, method="highs")
    if found.status != 0:
        raise ValueError(f"the price of the budget was not found: {found.message}")
    solved: Any = found.x
    return np.asarray(solved[1:] / unit)


def _costs(log: Log) -> Floats:
    """(n, m): each row's cost, per resource."""
    if log.costs is None:
        raise ValueError("log has no costs: Log(..., costs=...), one number per row")
    paid = log.costs[:, None] if log.costs.ndim == 1 else log.costs
    unknown = int(np.isnan(paid).any(axis=1).sum())
    if unknown:
        raise ValueError(
            f"{unknown} of the {len(log.costs)} rows of the log have no cost: say it with log.with_costs(...)"
        )
    return paid


def _of_costs(warning: str) -> str:
    """A warning of an evaluation whose rewards are costs."""
    return warning.replace("the reward", "the cost")


def _with_rewards(log: Log, rewards: Floats) -> Log:
    return log._like(replace(log.rows, rewards=rewards))


def _weights(log: Log, policy: Any) -> Floats:
    """pi(a | x) / p of every row."""
    if log.probabilities is None:
        raise ValueError("log has no probabilities: give those with which its arms were drawn, or estimate them")
    p = Target(policy, log).table(log.rows)
    return np.asarray(p[np.arange(len(log.arms)), log.arms] / log.probabilities)


def _usual(arms: Any, paid: Floats) -> Floats:
    """The mean cost of each row's arm: the rows' costs beyond it show how long tails are."""
    counts = np.bincount(arms)
    return np.asarray((np.bincount(arms, paid) / np.maximum(counts, 1))[arms])


def _ratio(weights: Floats, tops: Floats, bottoms: Floats, level: float, usual: Floats | None = None) -> RatioInterval:
    """sum w top / sum w bottom, with an interval for costs that have a long tail and few rows that answer.

    The normal interval of such a mean ends too low: the rows that would have moved it are the ones that are missing,
    and without them the error looks small too. So the quantiles of value / error are taken from resampled rows
    (bootstrap-t, which sees that a low value comes with a small error), and Student's where they are wider. Given what
    each row's arm costs usually, they are also taken from rows whose top is the usual one times the relative cost of
    any row of the log, whichever its arm: twenty rows of one arm seldom have the tail that eight hundred show.
    """
    from scipy.special import stdtrit

    tail, rows = (1.0 - level) / 2.0, np.flatnonzero(weights)
    whole, square = float(weights @ bottoms), float((weights * bottoms) @ (weights * bottoms))
    if whole <= 0.0:
        return RatioInterval(np.inf, 0.0, np.inf)
    ratio = float(weights @ tops) / whole
    freedom = max(whole**2 / square - 1.0, 1.0)  # of as many rows as the weights are worth
    error = float(np.sqrt(((weights * (tops - ratio * bottoms)) ** 2).sum() * (1.0 + 1.0 / freedom))) / whole
    down = up = float(stdtrit(freedom, 1.0 - tail))
    if 1 < len(rows) <= _MANY and error > 0.0:
        found = [_studentized(weights[rows] * tops[rows], weights[rows] * bottoms[rows], ratio, error)]
        if usual is not None and usual.min() > 0.0:
            like = weights[rows] * usual[rows], weights[rows] * bottoms[rows]
            found.append(_studentized(*like, float(like[0].sum() / like[1].sum()), error, tops / usual))
        for quantiles in found:
            down, up = max(down, np.quantile(quantiles, 1.0 - tail)), max(up, -np.quantile(quantiles, tail))
    low = ratio - float(down) * error
    return RatioInterval(ratio, max(0.0, low) if (tops >= 0.0).all() else low, ratio + float(up) * error)


def _studentized(tops: Floats, bottoms: Floats, ratio: float, error: float, factors: Floats | None = None) -> Floats:
    """(resampled ratio - ratio) / resampled error, over resamples of the rows, each times any of the factors."""
    rng, found, n = np.random.default_rng(0), [], len(tops)
    for _ in range(_RESAMPLES // 100):
        drawn = rng.integers(n, size=(100, n))
        top, bottom = tops[drawn], bottoms[drawn]
        if factors is not None:
            top *= factors[rng.integers(len(factors), size=(100, n))]
        whole = np.maximum(bottom.sum(axis=1), 1e-300)
        again = top.sum(axis=1) / whole
        top -= again[:, None] * bottom
        errors = np.sqrt(np.einsum("ij,ij->i", top, top)) / whole
        found.append((again - ratio) / np.maximum(errors, _MIN_ERROR * error))
    return np.concatenate(found)
