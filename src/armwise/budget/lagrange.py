"""LagrangeCB: inverse-gap weighting on rewards less priced costs (Slivkins, Sankararaman, Foster 2023)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from armwise import bounds, hypotheses
from armwise.agent import Agent, Choice, Floats, Seed, Theory, count, fraction, positive
from armwise.arguments import as_floats
from armwise.around import expect_agent
from armwise.budget.accounts import amounts, plain, refuse_negative
from armwise.numerics import regression
from armwise.oracle.squarecb import LEAST_NOISE, PRACTICAL, SquareCB

_RECENT = 64  # rounds over which the prices are solved for
_PRICES = np.concatenate([[0.0], np.geomspace(1e-4, 1e3, 141)])  # in rewards per unit of the rate


class LagrangeCB(Agent):
    """Play on r_a - sum_i price_i c_ai, with estimated rewards and costs and prices that hold the budgets.

    ``oracle`` is an agent that estimates (SquareCB, LinUCB, Auto, ...): clones of it learn the rewards and, one per
    resource, the costs, in units of the rate budget / horizon. The arm is drawn by inverse-gap weighting, so that
    probabilities are exact. ``budget`` is what the ``horizon`` decisions may cost in all, per resource; where
    ``covering`` is true it is what they must come to at least.

    The practical prices (``dual="resolve"``) are the lowest at which the recent rounds, by their estimates, keep to
    what is left of the budget per decision that is left; with one resource, a share of the decisions is made at the
    next lower price, so that what is left is used and not saved up, as the LP's optimum mixes two policies.
    ``dual="gradient"`` is the paper's: a step along the slack of every round, up to ``ceiling``;
    ``LagrangeCB.theoretical`` has its constants. The budget is held on average: put ``HardStop`` around it where it
    must never be passed.

    ``prior`` is what an arm that was never played is expected to bring: with 1 every arm is tried (for an oracle whose
    features have a constant). ``expected_costs``, (K,) or (K, m), is what it is expected to cost, as by a price list:
    without it an arm must be paid for once to be known as dear.

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
        dual: Literal["resolve", "gradient"] = "resolve",
        ceiling: float = 1.0,
        prior: float = 0.0,
        expected_costs: ArrayLike | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.oracle = expect_agent("oracle", oracle)
        if type(oracle)._estimates is Agent._estimates:
            raise ValueError(f"oracle must estimate rewards, as SquareCB or Auto do; {type(oracle).__name__} does not")
        self.horizon = count("horizon", horizon)
        rates = amounts("budget", budget)
        self.budget, self.n_costs = plain(rates), len(rates)
        covered = np.broadcast_to(np.asarray(covering, bool), (self.n_costs,))
        self.covering = [bool(each) for each in covered]
        self.gamma = None if gamma is None else positive("gamma", gamma)
        self.exponent, self.scale = positive("exponent", exponent, zero=True), positive("scale", scale)
        if dual not in ("resolve", "gradient"):
            raise ValueError(f"dual must be 'resolve' or 'gradient', got {dual!r}")
        self.dual: Literal["resolve", "gradient"] = dual
        self.ceiling, self.prior = positive("ceiling", ceiling), fraction("prior", prior, zero=True, one=True)
        self.sees, self.dim, self.n_arms, self.n_experts = oracle.sees, oracle.dim, oracle.n_arms, oracle.n_experts
        self.plain_input = oracle.plain_input
        self._models = [oracle.clone(seed=0) for _ in range(1 + self.n_costs)]
        self._rates = np.array(rates) / self.horizon
        self.expected_costs = None if expected_costs is None else as_floats("expected_costs", expected_costs)
        self._offsets = self._first_guesses(covered)
        self._signs = np.where(covered, -1.0, 1.0)
        self._prices, self._spent = np.zeros(self.n_costs), np.zeros(self.n_costs)  # both in units of the rates
        self._lower, self._share = np.zeros(self.n_costs), 0.0  # the next lower prices, and how often they count
        self._errors = np.zeros((1 + self.n_costs, 2))  # squared errors of the predictions, and how many
        self._recent: list[Any] = []
        self._solve_at = 1
        if self.expected_costs is not None and dual == "resolve":
            self._prices[:] = _PRICES[1]  # of arms that are expected to bring as much, the cheapest comes first

    def _first_guesses(self, covered: Any) -> Floats:
        """(1 + m, 1 or K): reward and costs of an arm that was never played; the models learn what differs."""
        if self.expected_costs is None:  # optimism: what is paid is nothing, a covering resource brings twice its rate
            return np.concatenate([[self.prior], np.where(covered, 2.0, 0.0)])[:, None]
        costs = self.expected_costs[:, None] if self.expected_costs.ndim == 1 else self.expected_costs
        if costs.ndim != 2 or costs.shape[1] != self.n_costs or len(costs) != (self.n_arms or len(costs)):
            shape = f"({self.n_arms or 'K'}, {self.n_costs})"
            raise ValueError(f"expected_costs must be one number per arm, or {shape}, got {self.expected_costs.shape}")
        refuse_negative("expected_costs", costs)
        return np.concatenate([np.full((1, len(costs)), self.prior), (costs / self._rates).T])

    @classmethod
    def theoretical(
        cls, dim: int, n_arms: int, horizon: int, budget: float, delta: float = 0.05, *, seed: Seed = None
    ) -> Self:
        """One resource, one ridge model per arm, and the constants of the bound: rewards and costs in [0, 1].

        >>> agent = LagrangeCB.theoretical(dim=3, n_arms=2, horizon=10_000, budget=5_000.0)
        >>> agent.dual, round(agent.gamma, 3)
        ('gradient', 3.339)
        """
        K, T, delta = count("n_arms", n_arms), count("horizon", horizon), fraction("delta", delta)
        errors = bounds.lagrange_regression(T=T, K=K, d=count("dim", dim), rate=positive("budget", budget) / T)
        gamma = math.sqrt(K * T / (errors + math.log(2 / delta)))
        oracle = SquareCB(dim, n_arms=K, lam=1.0)
        return cls(oracle, T, budget, gamma=gamma, exponent=0.0, dual="gradient", seed=seed)

    @property
    def prices(self) -> Floats:
        """What a unit of each resource costs now, in rewards.

        >>> import armwise as aw
        >>> LagrangeCB(aw.SquareCB(dim=1, n_arms=2), horizon=100, budget=10.0).prices
        array([0.])
        """
        return np.asarray(self._prices / self._rates)

    @property
    def spent(self) -> Floats:
        """What the decisions so far have cost, per resource.

        >>> import armwise as aw
        >>> LagrangeCB(aw.SquareCB(dim=1, n_arms=2), horizon=100, budget=10.0).spent
        array([0.])
        """
        return np.asarray(self._spent * self._rates)

    # ------------------------------------------------------------------ the primal: inverse-gap weighting

    def _outcomes(self, context: Any) -> Floats:
        """(1 + m, K): the estimated reward of each arm, then its costs in units of the rates."""
        table = np.stack([model._estimates(context)[0] for model in self._models])
        if self._offsets.shape[1] not in (1, table.shape[1]):
            raise ValueError(f"expected_costs names {self._offsets.shape[1]} arms, and this round has {table.shape[1]}")
        return np.asarray(table + self._offsets)

    def _weighted(self, outcomes: Floats, prices: Floats) -> Floats:
        """Inverse-gap weighting on the Lagrangian at these prices."""
        gamma = regression.gap_scale(self.t, self._gamma(), self.exponent)
        lagrangian = outcomes[0] - (self._signs * prices) @ outcomes[1:]
        return regression.inverse_gap(np.ascontiguousarray(lagrangian), gamma)

    def _gamma(self) -> float:
        if self.gamma is not None:
            return self.gamma / self.scale
        weights = np.concatenate([[1.0], self._prices**2])
        noise = math.sqrt(float(weights @ (self._errors[:, 0] / np.maximum(self._errors[:, 1], 1.0))))
        return PRACTICAL / (self.scale * max(noise, LEAST_NOISE))

    def _probabilities(self, context: Any) -> Floats:
        outcomes = self._outcomes(context)
        p = self._weighted(outcomes, self._prices)
        if self._share > 0.0:
            p = (1.0 - self._share) * p + self._share * self._weighted(outcomes, self._lower)
        return p

    def _estimates(self, context: Any) -> tuple[Floats, Floats | None]:
        return self._outcomes(context)[0], None

    def estimate_costs(self, context: Any = None) -> Floats:
        """(K, m): what each arm is estimated to cost, per resource.

        >>> import armwise as aw
        >>> LagrangeCB(aw.SquareCB(dim=1, n_arms=2), horizon=100, budget=10.0).estimate_costs([1.0])
        array([[0.],
               [0.]])
        """
        return np.ascontiguousarray((self._outcomes(self._read(context))[1:] * self._rates[:, None]).T)

    # ------------------------------------------------------------------ learning, and the dual

    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        outcomes, paid = self._outcomes(context), np.array(choice.cost) / self._rates
        guesses = self._offsets[:, min(choice.arm, self._offsets.shape[1] - 1)].tolist()
        for i, value in enumerate([reward, *paid.tolist()]):
            self._errors[i] += (value - outcomes[i, choice.arm]) ** 2, 1.0
            self._models[i]._learn(context, choice, value - guesses[i])
            self._models[i]._n_learnt += 1
        self._spent += paid
        if self.dual == "gradient":  # the dual regret of online gradient descent: see bounds.lagrange
            step = self.ceiling / math.sqrt(self.horizon)
            slack = self._signs * (paid - 1.0) * self._rates
            self._prices = np.clip(self._prices + step * slack, 0.0, self.ceiling)
            return
        self._recent = [*self._recent[1 - _RECENT :], context if context is None else np.array(context)]
        if self._n_learnt + 1 >= self._solve_at:
            self._solve(self._forecast())
            self._solve_at = self._n_learnt + 1 + min(max(1, self._n_learnt // 20), 16)

    def _forecast(self) -> Floats:
        """(n, 1 + m, K): the recent rounds by the estimates of now; an arm that a round did not have is never best."""
        tables = [self._outcomes(context) for context in self._recent]
        most = max(table.shape[1] for table in tables)
        forecast = np.zeros((len(tables), 1 + self.n_costs, most))
        forecast[:, 0] = -np.inf
        for row, table in zip(forecast, tables):
            row[:, : table.shape[1]] = table
        return forecast

    def _solve(self, recent: Floats) -> None:
        """The lowest prices at which these rounds keep to what is left per decision, resource by resource."""
        left = max(self.horizon - self._n_learnt - 1, 1)
        targets = np.maximum((self.horizon - self._spent) / left, 0.0)
        prices = self._prices.copy()
        for _ in range(1 if self.n_costs == 1 else 4):
            for i, sign in enumerate(self._signs):
                prices[i] = 0.0
                rest = recent[:, 0] - np.einsum("i,sik->sk", self._signs * prices, recent[:, 1:])
                costs, target = sign * recent[:, 1 + i], sign * targets[i]
                low, high = 0, len(_PRICES) - 1
                while low < high:  # cost falls as its price rises: the lowest price that holds the rate
                    middle = (low + high) // 2
                    holds = _mean_cost(rest, costs, _PRICES[middle]) <= target
                    low, high = (low, middle) if holds else (middle + 1, high)
                prices[i] = _PRICES[low]
        self._prices, self._share = prices, 0.0
        if self.n_costs == 1 and low > 0:
            cheaper, dearer = (_mean_cost(rest, costs, _PRICES[k]) for k in (low, low - 1))
            if cheaper < target < dearer:
                self._lower, self._share = _PRICES[low - 1 : low], float((target - cheaper) / (dearer - cheaper))


def _mean_cost(rewards: Floats, costs: Floats, price: float) -> float:
    """What the best arms at this price cost, per round."""
    arms = np.argmax(rewards - price * costs, axis=1)
    return float(costs[np.arange(len(costs)), arms].mean())
