"""What the regression agents share: an estimate of every arm's reward, by ridge or by any scikit-learn regressor."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.linear.ridge_agent import OverRidge, width_of
from armwise.agents.oracle.oracles.sklearn_oracles import Estimator, Learner
from armwise.core.agent import Choice, Floats, Played, Seed, count, joined, positive
from armwise.core.inputs import dense_pieces
from armwise.models.noise import Noise
from armwise.models.ridge import Ridge
from armwise.native import regression

_ROUNDS_AHEAD = (64, 4096)  # at least and at most: a call of predict costs much more than a row


class _Ahead:
    """What learners predict for the next rounds of a block, asked again when a learner has been fitted again."""

    def __init__(self, block: Floats, first: int) -> None:
        self.block, self.first = block, first  # (T, rows per round, d), and the round of its first entry
        self._known: dict[int, tuple[Estimator | None, int, Floats]] = {}

    def predict(self, learner: Learner, t: int) -> Floats:
        """The learner's predictions for the rows of round t."""
        now = t - self.first
        if learner.incremental:  # it changes with every example
            return learner.predict(self.block[now])
        model, start, values = self._known.get(id(learner), (None, 0, self.block[:0]))
        if model is None or model is not learner.model or now >= start + len(values):
            least, most = _ROUNDS_AHEAD
            if model is learner.model and model is not None:
                least = 2 * len(values)  # it has outlasted what was predicted: an arm that is hardly played
            rows = self.block[now : now + min(max(least, learner.steady_rounds + 1), most)]
            values = learner.predict(rows.reshape(-1, rows.shape[2])).reshape(rows.shape[:2])
            start = now
            self._known[id(learner)] = (learner.model, start, values)
        row: Floats = values[now - start]
        return row


class RegressionAgent(OverRidge):
    """An agent over regression estimates: of per-arm features (K may change), or of a shared context for ``n_arms``.

    The regressor is the built-in ridge, or any scikit-learn regressor: taught by ``partial_fit`` where it has one,
    otherwise fitted again whenever its examples have grown by the factor ``refit``.
    """

    lam: float | None
    refit: float
    regressor: Estimator | None
    _model: Ridge | list[Learner]
    _ahead: _Ahead | None = None  # while a block is played
    _learnt: ClassVar[tuple[str, ...]] = ("_model", "_noise")

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
        self._noise = Noise() if practical and regressor is None else None
        self.n_arms = None if n_arms is None else count("n_arms", n_arms)
        self.sees = "features" if n_arms is None else "shared"
        self.dim = width_of(dim, prior_mean)
        ridge = Ridge(self.dim or 1, lam, self.n_arms or 1, prior_mean=prior_mean)
        self.lam = ridge.lam
        self.merges, self.per_arm = regressor is None, n_arms is not None
        if not (isinstance(refit, (int, float)) and np.isfinite(refit) and refit >= 1.0):
            raise ValueError(f"refit must be a number >= 1, got {refit!r:.80}")
        self.refit = float(refit)
        self.compiled = self.keeps_sparse = regressor is None
        if regressor is None:
            self.regressor, self._model = None, ridge
            return
        if prior_mean is not None:
            raise ValueError("prior_mean is for the built-in ridge: a regressor has its own prior, leave one out")
        self.regressor = regressor if isinstance(regressor, Estimator) else Estimator.wrap(regressor)
        if not (hasattr(self.regressor.thing, "fit") and hasattr(self.regressor.thing, "predict")):
            raise ValueError(f"regressor must be a scikit-learn regressor or None, got {regressor!r:.80}")
        self._model = [Learner(self.regressor, self.refit) for _ in range(self.n_arms or 1)]

    @property
    def prior_mean(self) -> Floats | None:
        """What the ridge draws theta towards: (d,) or, with ``n_arms``, a row per arm; None for zeros.

        >>> import armwise as aw
        >>> aw.SquareCB(prior_mean=[0.5, 0.0]).prior_mean
        array([0.5, 0. ])
        """
        return self._model.prior_mean if isinstance(self._model, Ridge) else None

    @property
    def one_row(self) -> bool:
        """Whether what it learns of a choice is in that arm's row: the first rows may all have to settle the ridge.

        >>> import armwise as aw
        >>> aw.SquareCB(dim=2, lam=1.0).one_row, aw.SquareCB(dim=2, n_arms=3).one_row
        (True, False)
        """
        return self.n_arms is None and (not isinstance(self._model, Ridge) or self._model.ridge is not None)

    def _add_arm(self) -> None:
        if isinstance(self._model, Ridge):
            super()._add_arm()
        else:
            assert self.regressor is not None
            self._model.append(Learner(self.regressor, self.refit))

    def _remove_arm(self, arm: int) -> None:
        if isinstance(self._model, Ridge):
            super()._remove_arm(arm)
        else:
            del self._model[arm]

    def _play_ridge(self, model: Ridge, block: Floats, rewards: Floats) -> tuple[Any, Any, Any]:
        """A block of rounds over the built-in ridge, if ``compiled``; ``block`` is (T, K, d) or (T, 1, d)."""
        raise NotImplementedError

    def _play(self, contexts: Any, rewards: Floats) -> Played:
        if not isinstance(self._model, Ridge):
            self._ahead = _Ahead(contexts if self.n_arms is None else contexts[:, None], self._n_learnt)
            try:
                return super()._play(contexts, rewards)
            finally:
                self._ahead = None
        if not self.compiled:
            return super()._play(contexts, rewards)
        pieces, done = [], 0
        block = contexts if self.n_arms is None else contexts[:, None]
        while done < len(rewards):
            if self._model.ridge is None:  # the first rows to be learnt settle it
                now = slice(done, done + 1)
                pieces.append(super()._play(contexts[now], rewards[now]))
            else:  # rounds over which the estimate of the noise stands still
                now = slice(done, len(rewards) if self._noise is None else done + self._noise.rounds_left)
                pieces.append(Played(*self._play_ridge(self._model, block[now], rewards[now])))
                self._n_learnt += len(pieces[-1].rewards)
                if self._noise is not None:
                    # One by one, so that loop and block agree to the bit.
                    for reward, arm in zip(pieces[-1].rewards.tolist(), pieces[-1].arms.tolist()):
                        self._noise.add(reward, self._model, arm)
            done += len(pieces[-1].rewards)
        return joined(pieces)

    def _rows(self, context: Floats) -> Floats:
        """Per-arm features, or the shared context as one row."""
        return context if self.n_arms is None else context[None]

    def _means(self, context: Floats) -> Floats:
        if isinstance(self._model, Ridge):
            return self._ridge_estimates(self._model, context)[0]
        return self._predictions(self._model, self._rows(context)).ravel()

    def _predictions(self, learners: list[Learner], X: Floats) -> Floats:
        """What each learner predicts for this round's rows: (learners, rows)."""
        ahead, t = self._ahead, self._n_learnt
        rows = [learner.predict(X) if ahead is None else ahead.predict(learner, t) for learner in learners]
        table = np.array(rows, np.float64).reshape(len(learners), len(X))  # some predict a column
        if not np.isfinite(table).all():
            raise ValueError(f"{self.regressor!r} predicted {table}: scale the context, or choose another regressor")
        return table

    def _estimates(self, context: Floats) -> tuple[Floats, Floats | None]:
        if isinstance(self._model, Ridge):
            return self._ridge_estimates(self._model, context)
        return self._means(context), None

    def _ridge_estimates(self, model: Ridge, context: Any) -> tuple[Floats, Floats]:
        X = self._rows(context)
        if isinstance(X, np.ndarray):
            return regression.estimates(model.models, X)
        parts = [regression.estimates(model.models, rows) for rows in dense_pieces(X)]
        return np.concatenate([means for means, _ in parts]), np.concatenate([widths for _, widths in parts])

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        model, row = (0, choice.arm) if self.n_arms is None else (choice.arm, 0)
        X = self._rows(context)
        if isinstance(self._model, Ridge):
            self._model.learn(X, row, reward, model)
            if self._noise is not None:
                self._noise.add(reward, self._model, choice.arm)
        else:
            self._model[model].add(X[row : row + 1].copy(), np.array([reward]), np.ones(1))
