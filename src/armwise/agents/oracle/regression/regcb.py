"""RegCB: optimism or elimination over all regressors that fit nearly best (beyond the survey; Foster et al. 2018)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.oracle.oracles.sklearn_oracles import ExampleLearner, SklearnEstimator
from armwise.agents.oracle.regression.regression_agent import RegressionAgent
from armwise.agents.oracle.regression.regression_batches import RegCBBatches
from armwise.core.agent import Choice, Floats, Seed, Theory, count, positive
from armwise.core.inputs import dense_pieces
from armwise.core.policy_document import FrozenAgent
from armwise.models.ridge import Ridge
from armwise.native import regression

PRACTICAL = 0.25  # sqrt(beta_t / ln(K t)) of ``mellowness=None``, in deviations of the noise: see docs/choose.md
EXTRA, BEYOND = 2.0, 3.0  # for an arm that is known less than the leading one: see LinUCB
WITHOUT_RIDGE = 0.2  # the deviation that is taken for granted where a regressor does not tell it, of their range
_HALVINGS = 12  # of the interval of weights, when a regressor's bound is searched


class RegCB(RegressionAgent):
    """Bound each arm's reward by the regressors whose loss is at most beta_t above the least; play the largest bound.

    beta_t = scale^2 mellowness ln(K t): larger ``scale`` explores more. ``mellowness=None``, the practical default, is
    the square of 0.25 deviations of the noise of the rewards, as it is learnt (see ``Noise``), or of a fifth of their
    range with a ``regressor``, which does not tell the noise. Bounds are cut to the range of the rewards ([0, 1] where
    ``mellowness`` is given), and are that range for an arm about which the data say nothing. With ``elimination`` the
    arm is drawn uniformly from those whose upper bound reaches the largest lower bound. For ridge the bounds are
    y_a +- sqrt(beta_t) sqrt(x' A^-1 x), in closed form.

    A scikit-learn regressor is fitted once to the rewards whenever its examples have grown by the factor ``refit``, and
    ``fits`` times to the rewards plus noise of a known size s whenever they have grown by its fourth power (by
    ``partial_fit`` where it has one). The width is sqrt(beta_t) / s times the deviation of those noisy predictions,
    less by the root of what the examples have grown since: for least squares, and for trees whose leaves are fixed,
    that is the set's own width when it was fitted, up to the chance of ``fits`` draws. ``fits=None`` is the paper's
    BinSearch: a search over the weight of one extra example that pulls the fit beyond that range, which is some 20 fits
    per arm and round, on all its examples so far.

    >>> agent = RegCB(dim=2, seed=1)
    >>> X = np.eye(2)
    >>> for _ in range(50):
    ...     choice = agent.choose(X)
    ...     agent.learn(X, choice, reward=[0.1, 0.9][choice.arm])
    >>> agent.choose(X).arm
    1
    """

    theory = Theory(
        section="beyond the survey",
        regret="problem-dependent: disagreement of the regressors that fit nearly best",
        comparator="the best arm of each round",
        assumes="the regressor's class holds E[r | x, a]; contexts and rewards i.i.d., rewards in [0, 1]",
        reference="Foster, Agarwal, Dudik, Luo, Schapire 2018",
        high_probability=True,
        infinite_policies=True,
        call="aw.RegCB(dim={d}, n_arms={K})",
    )
    _learnt = ("_model", "_noise", "_range", "_unit", "_X", "_arms", "_rewards")
    batches = RegCBBatches()

    def __init__(
        self,
        dim: int | None = None,
        *,
        n_arms: int | None = None,
        mellowness: float | None = None,
        elimination: bool = False,
        scale: float = 1.0,
        lam: float | None = None,
        prior_mean: ArrayLike | None = None,
        regressor: Any = None,
        refit: float = 1.1,
        fits: int | None = 4,
        seed: Seed = None,
    ) -> None:
        self._begin(dim, n_arms, lam, scale, mellowness is None, regressor, refit, prior_mean, seed)
        self.fits = None if fits is None else count("fits", fits, least=2)
        self.mellowness = None if mellowness is None else positive("mellowness", mellowness)
        self.elimination = bool(elimination)
        self._unit = 1.0  # the range of the rewards, up to a factor of 2, that the noise of the fits is measured in
        # The examples, which only a search over fits needs again.
        self._X, self._arms, self._rewards = np.empty((0, self.dim or 0)), np.empty(0, np.int64), np.empty(0)
        if self.regressor is not None:
            self._model = [learner for _ in range(self.n_arms or 1) for learner in self._learners()]

    def _learners(self) -> list[ExampleLearner]:
        """The fits of one model: to the rewards, and to the rewards plus noise."""
        schedules = [] if self.fits is None else [self.refit, *[self.refit**4] * self.fits]
        assert self.regressor is not None
        return [ExampleLearner(self.regressor, each) for each in schedules]

    def bounds(self, context: Any) -> tuple[Floats, Floats]:
        """The lower and upper bound of every arm's reward.

        >>> RegCB(dim=1, n_arms=2, mellowness=0.1).bounds([1.0])
        (array([0., 0.]), array([1., 1.]))
        """
        low, high = self._bounds(self._read(context))
        centre = self._model.centre if isinstance(self._model, Ridge) else 0.0
        return low + centre, high + centre

    def _take_dim(self, dim: int) -> None:
        super()._take_dim(dim)
        self._X = np.empty((0, dim))

    def _excess(self) -> float:
        """The factor of ln(K t)."""
        if self.mellowness is not None:
            return self.scale**2 * self.mellowness
        deviation = self._noise.deviation if self._noise is not None else WITHOUT_RIDGE * self._limits()[2]
        return (self.scale * PRACTICAL * deviation) ** 2

    def _limits(self) -> tuple[float, float, float]:
        """The least and the largest reward, and how far they are apart, of a regressor."""
        seen = self._range
        return (0.0, 1.0, 1.0) if seen is None else (seen.low, seen.high, seen.extent)

    def _settings(self, model: Ridge) -> tuple[float, float, float, float, float, float]:
        """The ridge, what multiplies ln(K t), what an arm that is known less gets, and the range of rewards."""
        extra, least, most = 0.0, 0.0, 1.0
        if self.mellowness is None and self._noise is not None:
            extra = EXTRA * (self.scale * self._noise.deviation) ** 2
            least, most = self._noise.low - model.centre, self._noise.high - model.centre
        return model.ridge or 1.0, self._excess(), extra, BEYOND, least, most

    def freeze(self) -> FrozenAgent:
        """The ridge, and what its bounds are made of.

        >>> RegCB(dim=2, mellowness=0.1).freeze().rule["excess"]
        0.1
        """
        model = self._ridge()
        lam, excess, extra, beyond, least, most = self._settings(model)
        rule = {
            "kind": "bounds", "t": self.t, "excess": excess, "extra": extra, "beyond": beyond, "lam": lam,
            "least": least, "most": most, "elimination": self.elimination,
        }  # fmt: skip
        return FrozenAgent(model.exported([1.0] * model.n_models), rule)

    def _bounds(self, context: Floats) -> tuple[Floats, Floats]:
        """Lower and upper bounds, from the ridge's centre on."""
        K = self._count_arms(context)
        radius = regression.confidence(self.t, K, self._excess())
        X = self._rows(context)
        if isinstance(self._model, Ridge):
            means, widths = self._ridge_estimates(self._model, context)
            lam, _, extra, beyond, least, most = self._settings(self._model)
            squares = np.concatenate([regression.squares(rows) for rows in dense_pieces(X)])
            return regression.cut(means, widths, radius, extra, beyond, squares, lam, least, most)
        assert self.regressor is not None
        if self.fits is not None:
            return self._noisy_bounds(X, radius)
        least, most, _ = self._limits()
        low, high = np.full(K, least), np.full(K, most)
        for a in range(K):
            mine = self._arms == (a if self.n_arms is not None else 0)
            x = X[a] if self.n_arms is None else X[0]
            if mine.any():
                low[a], high[a] = _search(
                    self.regressor, self._X[mine], self._rewards[mine], x, radius**2, self._limits()
                )
        return low, high

    def _noisy_bounds(self, X: Floats, radius: float) -> tuple[Floats, Floats]:
        """From the fits to the rewards, and to the rewards plus noise."""
        assert isinstance(self._model, list) and self.fits is not None
        learners, size = self._model, 1 + self.fits
        table = self._predictions(learners, X).reshape(-1, size, len(X))
        centre = table[:, 0].ravel()
        noisy = table[:, 1:]
        square = ((noisy - noisy.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / (self.fits - 1)
        shrunk = np.array([[learner.fitted_share] for learner in learners[1::size]])  # as 1 / n since they were fitted
        width = radius / (WITHOUT_RIDGE * self._unit) * np.sqrt(square * shrunk).ravel()
        least, most, _ = self._limits()
        low, high = np.clip(centre - width, least, most), np.clip(centre + width, least, most)
        for model, learner in enumerate(learners[::size]):
            if learner.blank:
                low[model * len(X) : (model + 1) * len(X)], high[model * len(X) : (model + 1) * len(X)] = least, most
        return low, high

    def _probabilities(self, context: Floats) -> Floats:
        return regression.confident(*self._bounds(context), self.elimination)

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        if self.regressor is None:
            super()._learn(context, choice, reward)
            return
        row, model = (choice.arm, 0) if self.n_arms is None else (0, choice.arm)
        if self.fits is not None:
            assert isinstance(self._model, list)
            x, size = self._rows(context)[row : row + 1].copy(), 1 + self.fits
            noise = np.append(0.0, WITHOUT_RIDGE * self._unit * self._rng.standard_normal(self.fits))
            for learner, extra in zip(self._model[model * size :], noise):
                learner.add(x, np.array([reward + extra]), np.ones(1))
            self._follow_range(reward)
            return
        self._follow_range(reward)
        self._X = np.concatenate([self._X, self._rows(context)[row : row + 1]])
        self._arms, self._rewards = np.append(self._arms, model), np.append(self._rewards, reward)

    def _follow_range(self, reward: float) -> None:
        """Measure the noise of the fits in another unit where the range of the rewards has doubled."""
        if self._range is None:
            return
        self._range.add(reward)
        extent = self._range.extent
        if self._unit <= extent <= 2.0 * self._unit:
            return
        factor, self._unit = extent / self._unit, extent
        if self.fits is None or not isinstance(self._model, list):
            return
        size = 1 + self.fits
        for first in range(0, len(self._model), size):
            plain = self._model[first].targets  # none where the estimator learns step by step, and keeps no examples
            for learner in self._model[first + 1 : first + size] if len(plain) else ():
                learner.change_targets(plain + factor * (learner.targets - plain))

    def _add_arm(self) -> None:
        if isinstance(self._model, list):
            self._model += self._learners()
        else:
            super()._add_arm()

    def _remove_arm(self, arm: int) -> None:
        if not isinstance(self._model, list):
            super()._remove_arm(arm)
            return
        size = len(self._learners())
        del self._model[arm * size : (arm + 1) * size]
        rest = self._arms != arm
        self._X, self._arms, self._rewards = self._X[rest], self._arms[rest], self._rewards[rest]
        self._arms[self._arms > arm] -= 1


def _search(
    regressor: SklearnEstimator, X: Floats, y: Floats, x: Floats, beta: float, limits: tuple[float, float, float]
) -> tuple[float, float]:
    """The least and largest prediction at x of fits with a squared loss at most beta above the best fit's."""
    longer = np.concatenate([X, x[None]])

    def fit(target: float, weight: float) -> tuple[float, float]:
        """Loss and prediction with one more example (x, target) of this weight."""
        model = regressor.unfitted()
        if weight == 0.0:
            model.fit(X, y, np.ones(len(y)))
        else:
            model.fit(longer, np.append(y, target), np.append(np.ones(len(y)), weight))
        predicted = np.ravel(model.predict(longer))
        return float(((predicted[:-1] - y) ** 2).sum()), float(predicted[-1])

    least, centre = fit(0.0, 0.0)
    low, high, extent = limits
    ends = []
    for target in (low - extent, high + extent):
        inside, outside, reached = 0.0, 1.0, centre  # weights whose fit is in the set, and not
        while True:
            loss, prediction = fit(target, outside)
            if loss - least > beta:
                break
            inside, outside, reached = outside, 2.0 * outside, prediction
            if abs(prediction - target) < extent or outside > 1e9:  # out of the range, or it cannot be moved
                break
        for _ in range(_HALVINGS if loss - least > beta else 0):
            middle = 0.5 * (inside + outside)
            loss, prediction = fit(target, middle)
            if loss - least > beta:
                outside = middle
            else:
                inside, reached = middle, prediction
        ends.append(min(high, max(low, reached)))
    return ends[0], ends[1]
