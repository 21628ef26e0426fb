"""LinCBwK: optimism on linear rewards and costs, prices by multiplicative weights (Agrawal, Devanur 2016)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import numpy as np

from armwise.agents.budget.accounts import amounts, plain
from armwise.agents.budget.optimum import budget_optimum
from armwise.agents.linear.linucb import Ellipsoid
from armwise.core.agent import Choice, Floats, IndexAgent, Seed, Theory, count, positive
from armwise.models.noise import Noise
from armwise.models.ridge import Ridge
from armwise.theory import bounds, hypotheses

PRACTICAL = 0.5  # widths of ``alpha=None``, in deviations of the noise x sqrt(ln t)


class LinCBwK(IndexAgent):
    """Play the arm with the largest optimistic reward less Z times the weighted optimistic costs.

    argmax_a x_a.mu + w_a - Z sum_i theta_i max(0, x_a.W_i - w_ai), costs in units of the largest, ``max_cost``. The
    weights theta (with a slack coordinate) are multiplicative in the costs beyond the rate budget / horizon. Z weighs
    costs against rewards: about OPT / B; None takes it from the LP over the first ``stretch`` rounds, which are spread
    evenly over the arms. ``LinCBwK.theoretical`` takes Z = T / B, which is never too small, and the ellipsoid's widths.
    The paper stops when a resource is spent: put ``HardStop`` around it.

    >>> agent = LinCBwK(dim=2, horizon=1000, budget=250.0, seed=1)
    >>> contexts, rewards = np.tile(np.eye(2), (1000, 1, 1)), np.tile([0.2, 0.8], (1000, 1))
    >>> bool(150 < agent.play(contexts, rewards, np.tile([0.0, 1.0], (1000, 1))).costs.sum() < 350)
    True
    """

    theory = Theory(
        section="beyond the survey",
        regret="O~((OPT / B + 1) d sqrt(T))",
        comparator="the best policy that keeps to the budget (LP)",
        assumes="linear rewards and costs in [0, 1]; B above d T^(3/4); a null arm",
        reference="Agrawal, Devanur 2016",
        regret_bound=bounds.lincbwk,
        hypotheses=hypotheses.lincbwk,
        high_probability=True,
        infinite_policies=True,
        needs_horizon=True,
        call="aw.LinCBwK(dim={d}, horizon={T}, budget=0.5 * {T})",
    )
    reward_range = (-np.inf, np.inf)
    dim: int
    _learnt = ("_reward", "_costs", "_noise", "_gains", "_Z", "_seen")

    def __init__(
        self,
        dim: int,
        horizon: int,
        budget: float | Sequence[float],
        *,
        n_arms: int | None = None,
        max_cost: float = 1.0,
        Z: float | None = None,
        stretch: int | None = None,
        alpha: Ellipsoid | None = None,
        lam: float | None = None,
        scale: float = 1.0,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.dim, self.horizon = count("dim", dim), count("horizon", horizon)
        rates = amounts("budget", budget)
        self.budget, self.n_costs = plain(rates), len(rates)
        self.n_arms = None if n_arms is None else count("n_arms", n_arms)
        self.sees = "features" if n_arms is None else "shared"
        self.max_cost, self.scale = positive("max_cost", max_cost), positive("scale", scale, zero=True)
        self.Z = None if Z is None else positive("Z", Z, zero=True)
        self.stretch = math.isqrt(self.horizon) if stretch is None else count("stretch", stretch, least=0)
        self.alpha, self.lam = alpha, 1.0 if lam is None and alpha is not None else lam
        self._reward, *self._costs = (
            Ridge(self.dim, self.lam, self.n_arms or 1, centred=alpha is None) for _ in range(1 + len(rates))
        )
        self._noise = [Noise() for _ in range(1 + self.n_costs)]
        self._rates = np.array(rates) / self.horizon / self.max_cost
        self._gains = np.zeros(self.n_costs)
        self._Z = self.Z
        self._seen: list[Floats] = []  # contexts of the stretch

    @classmethod
    def theoretical(
        cls,
        dim: int,
        horizon: int,
        budget: float | Sequence[float],
        *,
        noise: float = 1.0,
        delta: float = 0.05,
        n_arms: int | None = None,
        seed: Seed = None,
    ) -> Self:
        """Z = T / B and the ellipsoid's widths, for costs and rewards in [0, 1], ||x|| <= 1 and ||theta|| <= 1.

        >>> LinCBwK.theoretical(dim=5, horizon=1000, budget=500.0).Z
        2.0
        """
        smallest, m = min(amounts("budget", budget)), len(amounts("budget", budget))
        share = delta / ((1 + m) * (n_arms or 1))
        Z = count("horizon", horizon) / smallest
        return cls(
            dim, horizon, budget, n_arms=n_arms, Z=Z, stretch=0, alpha=Ellipsoid(noise, 1.0, share), lam=1.0, seed=seed
        )

    @property
    def weights(self) -> Floats:
        """The weight of each resource; the slack has the rest up to 1.

        >>> LinCBwK(dim=2, horizon=100, budget=[10.0, 20.0]).weights.round(2)
        array([0.33, 0.33])
        """
        rate = math.sqrt(math.log(1 + self.n_costs) / self.horizon)  # multiplicative weights over m + 1 coordinates
        exponents = rate * np.append(self._gains, 0.0)
        shares = np.exp(exponents - exponents.max())
        return np.asarray(shares[:-1] / shares.sum())

    def _bounds(self, model: Ridge, noise: Noise, context: Floats) -> tuple[Floats, Floats]:
        means, widths = model.estimate(context) if self.n_arms is None else model.estimate_all(context)
        if self.alpha is None:
            return means, self.scale * PRACTICAL * noise.growing * widths
        determinant = max(model.log_det(m) for m in range(model.n_models)) - self.dim * math.log(model.ridge or 1.0)
        alpha = self.alpha.noise * math.sqrt(max(0.0, determinant) - 2.0 * math.log(self.alpha.delta))
        return means, self.scale * (alpha + math.sqrt(model.ridge or 1.0) * self.alpha.norm) * widths

    def _scores(self, context: Floats) -> Floats:
        means, widths = self._bounds(self._reward, self._noise[0], context)
        if self._Z is None:
            return np.zeros(len(means))  # the stretch: every arm alike
        scores = means + widths
        for model, noise, weight in zip(self._costs, self._noise[1:], self.weights):
            cost, width = self._bounds(model, noise, context)
            scores = scores - self._Z * weight * np.maximum(cost - width, 0.0)
        return np.asarray(scores)

    def _estimates(self, context: Floats) -> tuple[Floats, Floats]:
        return self._reward.estimate(context) if self.n_arms is None else self._reward.estimate_all(context)

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        X, row, model = (context, choice.arm, 0) if self.n_arms is None else (context[None], 0, choice.arm)
        paid = np.array(choice.cost) / self.max_cost
        for ridge, noise, value in zip([self._reward, *self._costs], self._noise, [reward, *paid.tolist()]):
            ridge.learn(X, row, value, model)
            noise.add(value, ridge)
        self._gains += paid - self._rates
        if self._Z is None:
            self._seen.append(np.array(context))
            if len(self._seen) >= self.stretch:
                self._Z = self._estimated_Z()
                self._seen = []

    def _estimated_Z(self) -> float:
        """OPT / B of the LP over the stretch, with the estimates that it brought, and at most T / B."""
        most = 1.0 / float(self._rates.min())
        rewards, costs = [], []
        for context in self._seen:
            rewards.append(self._estimates(context)[0])
            each = [m.estimate(context) if self.n_arms is None else m.estimate_all(context) for m in self._costs]
            costs.append(np.stack([means for means, _ in each], axis=1))
        if len({len(row) for row in rewards}) > 1:  # K changed within the stretch
            return most
        try:
            best = budget_optimum(np.stack(rewards), np.maximum(np.stack(costs), 0.0), self._rates)
        except ValueError:
            return most
        return min(most, 2.0 * max(best.value, 0.0) / float(self._rates.min()) + 1.0)
