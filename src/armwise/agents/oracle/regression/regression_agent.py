"""Common base of the regression agents: an estimate of every arm's reward, by ridge or any scikit-learn regressor."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.linear.ridge_agent import RidgeAgent, width_of
from armwise.agents.oracle.oracles.sklearn_oracles import ExampleLearner, SklearnEstimator
from armwise.agents.oracle.regression.predictions import Predictions
from armwise.core.agent import Choice, Floats, Seed, count, positive
from armwise.core.capabilities.one_row import OneRow
from armwise.core.inputs import dense_pieces
from armwise.core.policy_document import CannotExport
from armwise.models.noise import Noise, RewardRange
from armwise.models.ridge import Ridge
from armwise.native import regression


class RegressionAgent(RidgeAgent, OneRow):
    """An agent over regression estimates: of per-arm features (K may change), or of a shared context for ``n_arms``.

    The regressor is the built-in ridge, or any scikit-learn regressor: taught by ``partial_fit`` where it has one,
    otherwise fitted again whenever its examples have grown by the factor ``refit``.
    """

    lam: float | None
    refit: float
    regressor: SklearnEstimator | None
    _model: Ridge | list[ExampleLearner]
    _ahead: Predictions | None = None  # while a block is played
    _learnt: ClassVar[tuple[str, ...]] = ("_model", "_noise", "_range")

    def _begin(
        self,
        dim: int | None,
        n_arms: int | None,
        lam: float | None,
        scale: float,
        practical: bool,
        regressor: Any,
        refit: float,
        prior_mean: ArrayLike | None,
        seed: Seed,
    ) -> None:
        """The first lines of every constructor."""
        super().__init__(seed=seed)
        self.scale = positive("scale", scale)
        if practical:  # it learns where rewards lie, and how far apart
            self.reward_range = (-np.inf, np.inf)
        self._range = RewardRange() if practical and regressor is not None else None
        practical = practical and regressor is None
        self._noise = Noise(scale_only=not practical) if practical or (lam is None and regressor is None) else None
        self.n_arms = None if n_arms is None else count("n_arms", n_arms)
        self.sees = "features" if n_arms is None else "shared"
        self.dim = width_of(dim, prior_mean)
        centred = practical and prior_mean is None
        ridge = Ridge(self.dim or 1, lam, self.n_arms or 1, prior_mean=prior_mean, centred=centred)
        self.lam = ridge.lam
        self.merges, self.per_arm = regressor is None, n_arms is not None
        if not (isinstance(refit, (int, float)) and np.isfinite(refit) and refit >= 1.0):
            raise ValueError(f"refit must be a number >= 1, got {refit!r:.80}")
        self.refit = float(refit)
        self.keeps_sparse = regressor is None
        if regressor is None:
            self.regressor, self._model = None, ridge
            return
        if prior_mean is not None:
            raise ValueError("prior_mean is for the built-in ridge: a regressor has its own prior, leave one out")
        self.regressor = regressor if isinstance(regressor, SklearnEstimator) else SklearnEstimator.wrap(regressor)
        if not (hasattr(self.regressor.thing, "fit") and hasattr(self.regressor.thing, "predict")):
            raise ValueError(f"regressor must be a scikit-learn regressor or None, got {regressor!r:.80}")
        self._model = [ExampleLearner(self.regressor, self.refit) for _ in range(self.n_arms or 1)]

    @property
    def prior_mean(self) -> Floats | None:
        """The value that the ridge shrinks theta towards: (d,) or, with ``n_arms``, a row per arm; None for zeros.

        >>> import armwise as aw
        >>> aw.SquareCB(prior_mean=[0.5, 0.0]).prior_mean
        array([0.5, 0. ])
        """
        return self._model.prior_mean if isinstance(self._model, Ridge) else None

    @property
    def one_row(self) -> bool:
        """Whether what it learns of a choice is in that arm's row.

        >>> import armwise as aw
        >>> aw.SquareCB(dim=2).one_row, aw.SquareCB(dim=2, n_arms=3).one_row
        (True, False)
        """
        return self.n_arms is None

    def _add_arm(self) -> None:
        if isinstance(self._model, Ridge):
            super()._add_arm()
        else:
            assert self.regressor is not None
            self._model.append(ExampleLearner(self.regressor, self.refit))

    def _remove_arm(self, arm: int) -> None:
        if isinstance(self._model, Ridge):
            super()._remove_arm(arm)
        else:
            del self._model[arm]

    def _ridge(self) -> Ridge:
        """The ridge, for an export, which a regressor of others has no place in."""
        if not isinstance(self._model, Ridge):
            name = type(self).__name__
            raise CannotExport(
                f"{name} over {self.regressor!r} cannot be exported exactly: only a linear estimate can; the nearest "
                f"that can be is {name} over the built-in ridge, taught from the same log (aw.fit_log)"
            )
        return self._model

    def _rows(self, context: Floats) -> Floats:
        """Per-arm features, or the shared context as one row."""
        return context if self.n_arms is None else context[None]

    def _means(self, context: Floats) -> Floats:
        if isinstance(self._model, Ridge):
            return self._ridge_estimates(self._model, context)[0]
        return self._predictions(self._model, self._rows(context)).ravel()

    def _predictions(self, learners: list[ExampleLearner], X: Floats) -> Floats:
        """Each learner's predictions for this round's rows: (learners, rows)."""
        ahead, t = self._ahead, self._n_learnt
        rows = [learner.predict(X) if ahead is None else ahead.predict(learner, t) for learner in learners]
        table = np.array(rows, np.float64).reshape(len(learners), len(X))  # some predict a column
        if not np.isfinite(table).all():
            raise ValueError(f"{self.regressor!r} predicted {table}: scale the context, or choose another regressor")
        return table

    def _estimates(self, context: Floats) -> tuple[Floats, Floats | None]:
        if isinstance(self._model, Ridge):
            means, widths = self._ridge_estimates(self._model, context)
            return means + self._model.centre, widths
        return self._means(context), None

    def _ridge_estimates(self, model: Ridge, context: Any) -> tuple[Floats, Floats]:
        """Means, from the model's centre on, and widths."""
        parts = [regression.estimates(model.models, rows) for rows in dense_pieces(self._rows(context))]
        if len(parts) == 1:
            return parts[0]
        means, widths = map(np.concatenate, zip(*parts, strict=True))
        return means, widths

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        model, row = (0, choice.arm) if self.n_arms is None else (choice.arm, 0)
        X = self._rows(context)
        if isinstance(self._model, Ridge):
            self._model.learn(X, row, reward, model)
            self._follow(reward)
        else:
            self._model[model].add(X[row : row + 1].copy(), np.array([reward]), np.ones(1))
            if self._range is not None:
                self._range.add(reward)
