"""LagrangeCB: inverse-gap weighting on rewards less priced costs (Slivkins, Sankararaman, Foster 2023)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.arms.beta_thompson import BetaThompson
from armwise.agents.budget.accounts import amounts, plain, refuse_negative
from armwise.agents.budget.dual import PricedRounds, minimum, spending
from armwise.agents.budget.prices import PRICES, lowest
from armwise.agents.linear.linear_agent import LinearAgent
from armwise.agents.linear.logistic import LogisticThompson
from armwise.agents.linear.ridge_agent import RidgeAgent
from armwise.agents.oracle.regression.squarecb import MIN_NOISE, SquareCB
from armwise.agents.wrappers.wrapper import expect_agent
from armwise.core.agent import Agent, Choice, Floats, Seed, Theory, count, fraction, positive
from armwise.core.arguments import as_floats, short
from armwise.native import regression, winning
from armwise.native.choice import TIE
from armwise.theory import bounds, hypotheses

PRACTICAL = 10.0  # gamma of ``gamma=None``, times the deviation of the noise
_WINS = 0.5  # deviations of the estimates, of ``weighting="wins"``
_Estimated = tuple[Floats, Floats | None]  # of one round: outcomes (1 + m, K), and widths
_Alike = tuple[Floats, Floats | None, Any]  # different rounds with equally many arms, and which one each round is
_RECENT = 32  # rounds over which the prices are solved for
_CORRECTED = 2  # times that the dual's targets are moved to what inverse-gap weighting draws
_MADE_UP = 8  # the aim of the budget may be missed for this part of the horizon


class LagrangeCB(Agent):
    """Play on r_a - sum_i price_i c_ai, with estimated rewards and costs and prices that hold the budgets.

    ``oracle`` is an agent that estimates (SquareCB, LinUCB, Auto, ...): clones of it learn the rewards and, one per
    resource, the costs, in units of the rate budget / horizon. The arm is drawn by inverse-gap weighting, or, with
    ``weighting="wins"`` (an oracle over a ridge model, as LinUCB), with the chance that it is the best if estimates
    are off by half their deviations (times ``scale``), and by less as the decisions that are left, which alone can use
    what is learnt, become few; either way probabilities are exact. ``budget`` is what the ``horizon`` decisions may
    cost in all, per resource; where ``covering`` is true it is what they must come to at least. With practical prices
    the next ``horizon`` decisions have as much again, and what the ones before left over.

    The practical prices (``dual="resolve"``) are the lowest at which the recent rounds, by their estimates and drawn
    as they would be now (what exploring costs included), keep to what is left of the budget per decision that is left;
    with one resource, a share of the decisions is made at the next lower price, so that what is left is used and not
    saved up, as the LP's optimum mixes two policies. With several they are one vector, the minimum of the dual of these
    rounds. ``aim`` is the share of the budget that they aim at: what is spent
    above it is made up for slowly, within an eighth of the horizon, what would be above the budget at once. Costs with
    long tails need that room: without it the last decisions pay for every tail with the cheapest arm.
    ``dual="gradient"`` is the paper's: a step along the slack of every round, up to ``ceiling``;
    ``LagrangeCB.theoretical`` has its constants. With ``max_cost``, the most that a decision can cost, estimates are
    clipped to what can be: rewards to [0, 1], costs to [0, ``max_cost``]. The budget is held on average: put
    ``HardStop`` around it where it must never be passed.

    ``prior`` is what an arm that was never played is expected to bring, one number, or (K,) where something is known
    beforehand: with 1 every arm is tried (for an oracle whose features have a constant). ``expected_costs``, (K,) or
    (K, m), is what it is expected to cost, as by a price list: without it an arm must be paid for once to be known as
    dear. With it the models learn by which factor costs differ from the list, so that what makes an answer long is
    learnt from cheap arms for dear ones too (if features are).

    >>> import armwise as aw
    >>> agent = LagrangeCB(aw.SquareCB(dim=1, n_arms=2), horizon=1000, budget=250.0, seed=1)
    >>> contexts, rewards, costs = np.ones((1000, 1)), np.tile([0.2, 0.8], (1000, 1)), np.tile([0.0, 1.0], (1000, 1))
    >>> played = agent.play(contexts, rewards, costs)
    >>> bool(200 < played.costs.sum() < 300)
    True
    """

    theory = Theory(
        section="beyond the survey",
        regret="O((T / B) sqrt(K T Reg_Sq(T)))",
        comparator="the best policy that keeps to the budget (LP)",
        assumes="the oracle's class holds E[r | x, a] and E[c | x, a]; rewards and costs in [0, 1]; a null arm",
        reference="Slivkins, Zhou, Sankararaman, Foster 2023, 2024; Han, Zeng, Wang, Xiang, Zhang 2023",
        regret_bound=bounds.lagrange,
        hypotheses=hypotheses.lagrange,
        high_probability=True,
        infinite_policies=True,
        needs_horizon=True,
        call="aw.LagrangeCB(aw.SquareCB(dim={d}, n_arms={K}), horizon={T}, budget=0.5 * {T})",
    )
    _learnt = ("_models", "_prices", "_lower", "_share", "_spent", "_errors", "_recent", "_solve_at")

    def __init__(
        self,
        oracle: Agent,
        horizon: int,
        budget: float | Sequence[float],
        *,
        covering: bool | Sequence[bool] = False,
        gamma: float | None = None,
        exponent: float = 0.5,
        scale: float = 1.0,
        weighting: Literal["gaps", "wins"] = "gaps",
        dual: Literal["resolve", "gradient"] = "resolve",
        ceiling: float = 1.0,
        max_cost: float | None = None,
        prior: float | ArrayLike = 0.0,
        aim: float = 1.0,
        expected_costs: ArrayLike | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.oracle = expect_agent("oracle", oracle)
        if type(oracle)._estimates is Agent._estimates:
            raise ValueError(f"oracle must estimate rewards, as SquareCB or Auto do; {type(oracle).__name__} does not")
        if isinstance(oracle, (LogisticThompson, BetaThompson)) or oracle.sees == "key":
            raise ValueError(
                "oracle must regress rewards and costs of any size on rows of numbers, as LinUCB, SquareCB or Auto do; "
                f"{type(oracle).__name__} {'reads keys' if oracle.sees == 'key' else 'estimates chances'}"
            )
        self.horizon = count("horizon", horizon)
        rates = amounts("budget", budget)
        self.budget, self.n_costs = plain(rates), len(rates)
        each = np.asarray(covering)
        if each.dtype != np.bool_ or each.shape not in ((), (self.n_costs,)):
            raise ValueError(
                f"covering must be True or False, or {self.n_costs}, one per resource, got {short(covering)}"
            )
        covered = np.broadcast_to(each, (self.n_costs,))
        self.covering = [bool(each) for each in covered]
        self.gamma = None if gamma is None else positive("gamma", gamma)
        self.exponent, self.scale = positive("exponent", exponent, zero=True), positive("scale", scale)
        if weighting not in ("gaps", "wins"):
            raise ValueError(f"weighting must be 'gaps' or 'wins', got {weighting!r}")
        if weighting == "wins" and not isinstance(oracle, LinearAgent):
            raise ValueError(f"weighting='wins' needs an oracle over a ridge model, as LinUCB: {type(oracle).__name__}")
        self.weighting: Literal["gaps", "wins"] = weighting
        if dual not in ("resolve", "gradient"):
            raise ValueError(f"dual must be 'resolve' or 'gradient', got {dual!r}")
        self.dual: Literal["resolve", "gradient"] = dual
        self.ceiling, self.aim = positive("ceiling", ceiling), fraction("aim", aim, one=True)
        self.prior: Any = _prior(prior, oracle.n_arms)
        self.max_cost = None if max_cost is None else positive("max_cost", max_cost)
        self.sees, self.dim, self.n_arms, self.n_experts = oracle.sees, oracle.dim, oracle.n_arms, oracle.n_experts
        self.plain_input = oracle.plain_input
        self._models = [oracle.clone(seed=0) for _ in range(1 + self.n_costs)]
        for model in self._models:
            if isinstance(model, RidgeAgent):
                model.shrink_to_zero()  # what was expected is taken off before it learns
        self._rates = np.array(rates) / self.horizon
        self._largest = np.append(1.0, (self.max_cost or np.inf) / self._rates)[:, None]  # that outcomes can be
        self.expected_costs = None if expected_costs is None else as_floats("expected_costs", expected_costs)
        self._offsets = self._first_guesses(covered)
        self._units = np.ones_like(self._offsets)  # what the models learn is in these: factors of a price list
        if self.expected_costs is not None:
            self._units[1:] = np.where(self._offsets[1:] > 0.0, self._offsets[1:], 1.0)
        self._signs = np.where(covered, -1.0, 1.0)
        self._prices, self._spent = np.zeros(self.n_costs), np.zeros(self.n_costs)  # both in units of the rates
        self._lower, self._share = np.zeros(self.n_costs), 0.0  # the next lower prices, and how often they count
        self._errors = np.zeros(2)  # squared errors of the predicted rewards, and how many
        self._recent: list[Any] = []
        self._solve_at = 1
        if self.expected_costs is not None and dual == "resolve":
            # Of arms that are expected to bring as much, the cheapest comes first.
            widths = np.ones(self._offsets.shape[1]) if weighting == "wins" else None
            self._solve(_alike([(self._offsets, widths)], [0]))

    def _first_guesses(self, covered: Any) -> Floats:
        """(1 + m, 1 or K): reward and costs of an arm that was never played; the models learn what differs."""
        prior = np.atleast_1d(self.prior)
        if self.expected_costs is None:  # optimism: what is paid is nothing, a covering resource brings twice its rate
            return np.stack([prior, *(np.full(len(prior), 2.0 * each) for each in covered)])
        costs = self.expected_costs[:, None] if self.expected_costs.ndim == 1 else self.expected_costs
        if costs.ndim != 2 or costs.shape[1] != self.n_costs or len(costs) != (self.n_arms or len(costs)):
            shape = f"({self.n_arms or 'K'}, {self.n_costs})"
            raise ValueError(f"expected_costs must be one number per arm, or {shape}, got {self.expected_costs.shape}")
        if not np.isfinite(costs).all():
            raise ValueError(f"expected_costs must be finite numbers, got {short(self.expected_costs.tolist())}")
        refuse_negative("expected_costs", costs)
        if len(prior) not in (1, len(costs)):
            raise ValueError(f"prior has {len(prior)} numbers, and expected_costs names {len(costs)} arms")
        return np.concatenate([np.broadcast_to(prior, (1, len(costs))), (costs / self._rates).T])

    @classmethod
    def theoretical(
        cls, dim: int, n_arms: int, horizon: int, budget: float, delta: float = 0.05, *, seed: Seed = None
    ) -> Self:
        """One resource, one ridge model per arm, and the constants of the bound: rewards and costs in [0, 1].

        >>> agent = LagrangeCB.theoretical(dim=3, n_arms=2, horizon=10_000, budget=5_000.0)
        >>> agent.dual, round(agent.gamma, 3)
        ('gradient', 6.531)
        """
        K, T, delta = count("n_arms", n_arms), count("horizon", horizon), fraction("delta", delta)
        errors = bounds.lagrange_regression(T=T, K=K, d=count("dim", dim), rate=positive("budget", budget) / T)
        gamma = math.sqrt(K * T / (errors + math.log(2 / delta)))
        oracle = SquareCB(dim, n_arms=K, lam=1.0)
        return cls(oracle, T, budget, gamma=gamma, exponent=0.0, dual="gradient", max_cost=1.0, seed=seed)

    @property
    def prices(self) -> Floats:
        """The price of a unit of each resource now, in rewards.

        >>> import armwise as aw
        >>> LagrangeCB(aw.SquareCB(dim=1, n_arms=2), horizon=100, budget=10.0).prices
        array([0.])
        """
        return np.asarray(self._prices / self._rates)

    @property
    def spent(self) -> Floats:
        """The cost of the decisions so far, per resource.

        >>> import armwise as aw
        >>> LagrangeCB(aw.SquareCB(dim=1, n_arms=2), horizon=100, budget=10.0).spent
        array([0.])
        """
        return np.asarray(self._spent * self._rates)

    # ------------------------------------------------------------------ the primal: inverse-gap weighting

    def _estimated(self, context: Any) -> _Estimated:
        """(1 + m, K): the estimated reward of each arm, then its costs in units of the rates.

        And how far each reward may be off, in deviations of the noise (None: gaps do not ask).
        """
        every = [model._estimates(context) for model in self._models]
        table = np.array([means for means, _ in every])
        if self._offsets.shape[1] not in (1, table.shape[1]):
            named = "prior" if self.expected_costs is None else "expected_costs"
            raise ValueError(f"{named} names {self._offsets.shape[1]} arms, and this round has {table.shape[1]}")
        table = self._offsets + self._units * table
        if self.expected_costs is not None:
            np.maximum(table[1:], 0.0, out=table[1:])
        if self.max_cost is not None:
            np.maximum(table, 0.0, out=table)
            np.minimum(table, self._largest, out=table)
        return table, None if self.weighting == "gaps" else every[0][1]

    def _weighted(self, outcomes: Floats, widths: Floats | None, prices: Floats, t: int) -> Floats:
        """The distribution over arms by the Lagrangian at these prices."""
        lagrangian = np.ascontiguousarray(outcomes[0] - (self._signs * prices) @ outcomes[1:])
        if widths is None:
            return regression.inverse_gap(lagrangian, self._gamma(t))
        return np.asarray(self._wins(lagrangian[None], widths[None], t)[0])

    def _wins(self, lagrangian: Floats, widths: Floats, t: int) -> Floats:
        """(n, K): how often each arm would be the best of draws as wide as what is unknown, while it can be used."""
        left = 1.0 - ((t - 1) % self.horizon) / self.horizon
        n, K = widths.shape
        variances = np.zeros((n, K, K))
        variances[:, range(K), range(K)] = (_WINS * self.scale * left**0.25 * self._noise() * widths) ** 2
        p = [winning.gaussian(*each) for each in zip(lagrangian, variances)]
        assert all(each is not None for each in p)  # arms are independent
        return np.array(p)

    def _noise(self) -> float:
        return max(math.sqrt(self._errors[0] / max(self._errors[1], 1.0)), MIN_NOISE)

    def _gamma(self, t: int) -> float:
        """The weight of a gap in round t."""
        scale = PRACTICAL / self._noise() if self.gamma is None else self.gamma
        return regression.gap_scale(t, scale / self.scale, self.exponent)

    def _probabilities(self, context: Any) -> Floats:
        outcomes, widths = self._estimated(context)
        p = self._weighted(outcomes, widths, self._prices, self.t)
        if self._share > 0.0:
            p = (1.0 - self._share) * p + self._share * self._weighted(outcomes, widths, self._lower, self.t)
        return p

    def _estimates(self, context: Any) -> tuple[Floats, Floats | None]:
        return self._estimated(context)[0][0], None

    def estimate_costs(self, context: Any = None) -> Floats:
        """(K, m): what each arm is estimated to cost, per resource.

        >>> import armwise as aw
        >>> LagrangeCB(aw.SquareCB(dim=1, n_arms=2), horizon=100, budget=10.0).estimate_costs([1.0])
        array([[0.],
               [0.]])
        """
        return np.ascontiguousarray((self._estimated(self._read(context))[0][1:] * self._rates[:, None]).T)

    # ------------------------------------------------------------------ learning, and the dual

    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        (outcomes, widths), paid = self._estimated(context), np.array(choice.cost) / self._rates
        error = (reward - outcomes[0, choice.arm]) ** 2
        if widths is not None:
            error /= 1.0 + widths[choice.arm] ** 2  # the estimate's own is not noise
        column = min(choice.arm, self._offsets.shape[1] - 1)
        differs = (np.array([reward, *paid]) - self._offsets[:, column]) / self._units[:, column]
        for model, value in zip(self._models, differs.tolist()):
            model._learn(context, choice, value)
            model._n_learnt += 1
        self._errors[0] += error
        self._errors[1] += 1.0
        self._spent += paid
        if self.dual == "gradient":  # the dual regret of online gradient descent: see bounds.lagrange
            step = self.ceiling / math.sqrt(self.horizon)
            slack = self._signs * (paid - 1.0) * self._rates
            self._prices = np.minimum(np.maximum(self._prices + step * slack, 0.0), self.ceiling)
            return
        self._recent = [*self._recent[1 - _RECENT :], context if context is None else np.array(context)]
        if self._n_learnt + 1 >= self._solve_at:
            self._solve(self._forecast())
            self._solve_at = self._n_learnt + 1 + min(max(1, self._n_learnt // 20), 16)

    def _forecast(self) -> list[_Alike]:
        """The recent rounds by the estimates of now; contexts that recur are worked out once."""
        places: dict[Any, int] = {}
        keys = [None if context is None else (context.shape, context.tobytes()) for context in self._recent]
        which = [places.setdefault(key, len(places)) for key in keys]
        first = [which.index(place) for place in range(len(places))]
        return _alike([self._estimated(self._recent[i]) for i in first], which)

    def _solve(self, recent: list[_Alike]) -> None:
        """The lowest prices at which these rounds keep to what is left per decision, resource by resource."""
        done = self._n_learnt + 1
        end = self.horizon * (done // self.horizon + 1)  # of the period that the next decision belongs to
        targets = self._signs * self._allowed(done, end)
        self._share = 0.0
        if self.n_costs > 1:
            self._prices = self._together(recent, targets)
            return
        (target,), costs = targets, self._costs(recent)
        low = lowest(costs, target, float(self._prices[0]))
        self._prices = PRICES[low : low + 1].copy()
        if low > 0:
            cheaper, dearer = costs(low), costs(low - 1)
            if cheaper < target < dearer:
                self._lower, self._share = PRICES[low - 1 : low], float((target - cheaper) / (dearer - cheaper))

    def _together(self, recent: list[_Alike], targets: Floats) -> Floats:
        """One price vector for several resources: the minimum of the dual of these rounds (``dual``).

        Its distributions are nearly inverse-gap weighting: it is looked for again with targets that are moved by what
        that costs more. What "wins" costs more is made up for as it is spent.
        """
        n = sum(len(which) for _, _, which in recent)
        rounds = [
            PricedRounds(
                outcomes[:, 0], self._signs[:, None] * outcomes[:, 1:], np.bincount(which, minlength=len(outcomes)) / n
            )
            for outcomes, _, which in recent
        ]
        gamma, most = self._sharpness(recent), float(PRICES[-1])
        prices = minimum(rounds, targets, gamma, most, self._prices)
        for _ in range(_CORRECTED if self.weighting == "gaps" else 0):
            drawn = [self._signs[i] * self._mean_cost(recent, prices, i) for i in range(self.n_costs)]
            prices = minimum(rounds, targets - np.array(drawn) + spending(rounds, prices, gamma), gamma, most, prices)
        return prices

    def _sharpness(self, recent: list[_Alike]) -> float:
        """gamma of the dual: that of inverse-gap weighting, or what makes gaps of a deviation of "wins" matter."""
        if self.weighting == "gaps":
            return self._gamma(self._n_learnt + 2)
        left = 1.0 - (self._n_learnt % self.horizon) / self.horizon
        widths = [float(np.mean(each)) for _, each, _ in recent if each is not None]
        deviation: float = _WINS * self.scale * left**0.25 * self._noise() * float(np.mean(widths))
        return 1.0 / max(deviation, 1e-4)

    def _allowed(self, done: int, end: int) -> Floats:
        """The cost allowed to a decision, in units of the rates, which meets the aim slowly, the budget at the end."""
        left = end - done
        limit = (end - self._spent) / left
        ahead = self.aim * done - self._spent  # below 0: more is spent than the aim allows
        aimed = self.aim + ahead / np.where(ahead < 0.0, max(left, self.horizon / _MADE_UP), left)
        return np.asarray(np.maximum(np.where(self._signs < 0.0, limit, np.minimum(aimed, limit)), 0.0))

    def _costs(self, recent: list[_Alike]) -> Callable[[int], float]:
        """The cost of these rounds at other prices of the one resource (less than 0 where it must be covered)."""

        @cache
        def costs(place: int) -> float:
            return float(self._signs[0] * self._mean_cost(recent, PRICES[place : place + 1], 0))

        return costs

    def _mean_cost(self, recent: list[_Alike], prices: Floats, resource: int) -> float:
        """The mean cost of these rounds if they were drawn now, at these prices."""
        total, n, t = 0.0, 0, self._n_learnt + 2
        for outcomes, widths, which in recent:
            lagrangian = outcomes[:, 0] - (self._signs * prices) @ outcomes[:, 1:]
            if widths is None:
                p = _inverse_gaps(lagrangian, self._gamma(t))
            else:
                p = self._wins(lagrangian, widths, t)
            total += float(np.vdot(p[which], outcomes[which, 1 + resource]))
            n += len(which)
        return total / n


def _prior(value: Any, n_arms: int | None) -> Any:
    """The arms' expected rewards: a number in 0 to 1, or one per arm."""
    if not np.ndim(value):
        return fraction("prior", value, zero=True, one=True)
    each = as_floats("prior", value)
    if (
        each.ndim != 1
        or not each.size
        or len(each) != (n_arms or len(each))
        or not ((each >= 0.0) & (each <= 1.0)).all()
    ):
        raise ValueError(f"prior must be a number from 0 to 1, or one per arm, got {value!r:.80}")
    return each


def _alike(different: list[_Estimated], which: list[int]) -> list[_Alike]:
    """Rounds with equally many arms together; ``which`` of the different ones each round is."""
    groups: dict[int, list[int]] = {}
    for place in which:
        groups.setdefault(different[place][0].shape[1], []).append(place)
    alike = []
    for rounds in groups.values():
        places = sorted(set(rounds))
        outcomes, widths = zip(*(different[place] for place in places))
        each = None if widths[0] is None else np.array(widths)
        alike.append((np.array(outcomes), each, np.searchsorted(places, rounds)))
    return alike


def _inverse_gaps(lagrangian: Floats, gamma: float) -> Floats:
    """``regression.inverse_gap`` of all rows at once, since hundreds of prices are tried."""
    highest = lagrangian.max(axis=1, keepdims=True)
    if np.isnan(highest).any():
        raise ValueError("scores must be numbers, got NaN (did a context or a reward overflow?)")
    p: Floats = 1.0 / (lagrangian.shape[1] + gamma * (highest - lagrangian))
    best = lagrangian >= highest - TIE
    p[best] = 0.0
    share = (1.0 - p.sum(axis=1)) / best.sum(axis=1)
    return np.asarray(np.where(best, share[:, None], p))
