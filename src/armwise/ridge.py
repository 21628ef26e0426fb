"""The ridge model that the linear agents and the linear oracles share."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise import persist
from armwise.agent import Floats, count, fraction, positive
from armwise.numerics import ridge, thompson
from armwise.numerics.simd import aligned_zeros, padded

LIGHT = 0.05  # lam of ``lam=None``, in squared lengths of a row: chosen on development sets (docs/choose.md)
_PRIOR = 1.0  # rounds that the noise is taken for the rewards' own size, before residuals are known


class Ridge(persist.Saved):
    """Linear estimates theta = A^-1 b with A = lam I + sum x x', b = sum r x, and their widths sqrt(x' A^-1 x).

    ``n_models`` independent models stand side by side (one for each arm of a disjoint agent). Memory is one d x d
    factor per model, whatever has been learnt. ``lam=None`` is ``LIGHT`` times the mean squared length of the first
    rows learnt: little shrinking, whatever the features' units; ``ridge`` is the number in use.

    Two ways to forget, both by time (one step per reward, whichever model learns it), and the ridge stays:
    ``discount`` < 1 weighs a reward by discount^age, A = lam I + sum discount^age x x'; ``window`` = W keeps the last
    W rewards. A model that rests forgets too, so that its widths grow. A step then costs O(d^3) for every model
    (discount) or for the two models that change (window), instead of O(d^2).
    ``models`` is the raw state (see numerics.ridge), for kernels that work on it directly.

    >>> model = Ridge(dim=2, lam=0.5)
    >>> model.update(np.array([1.0, 0.0]), 3.0)
    >>> means, widths = model.estimate(np.eye(2))
    >>> means.round(9), (widths ** 2).round(9)
    (array([2., 0.]), array([0.66666667, 2.        ]))
    """

    _learnt = ("models", "ridge", "_grams", "_moments", "_recent", "_seen")

    def __init__(
        self,
        dim: int,
        lam: float | None = None,
        n_models: int = 1,
        discount: float = 1.0,
        window: int | None = None,
    ) -> None:
        self.dim, self.lam = count("dim", dim), None if lam is None else positive("lam", lam)
        self.n_models, self.discount = count("n_models", n_models), fraction("discount", discount, one=True)
        self.window = None if window is None else count("window", window)
        if self.window is not None and self.discount < 1.0:
            raise ValueError(f"window is {window} and discount {discount}: choose one way to forget")
        self.models = aligned_zeros(self.n_models, padded(self.dim) + 1, padded(self.dim))
        # The window's rewards, each in the place of the one that it drives out: model, reward, features.
        self._recent, self._seen = np.zeros((self.window or 0, self.dim + 2)), 0
        self.ridge: float | None = None
        self._begin(self.lam)

    def _begin(self, lam: float | None) -> None:
        """An untaught model with this ridge (1 as long as it is not known: means are 0, widths ||x|| all the same)."""
        self.ridge, in_use, d = lam, lam or 1.0, self.dim
        self.models[:, range(d), range(d)] = 1.0 / np.sqrt(in_use)
        size = d if self.forgets else 0
        self._grams = np.tile(in_use * np.eye(size), (self.n_models, 1, 1))
        self._moments = np.zeros((self.n_models, size))

    @property
    def forgets(self) -> bool:
        """Whether old rewards count less than new ones.

        >>> Ridge(dim=2, window=100).forgets
        True
        """
        return self.discount < 1.0 or self.window is not None

    def size_up(self, X: Floats) -> None:
        """Settle ``ridge`` on the first rows to be learnt, where ``lam`` left it open; rows of zeros say nothing.

        >>> model = Ridge(dim=2)
        >>> model.size_up(np.array([[3.0, 4.0]]))
        >>> model.ridge == 25.0 * LIGHT
        True
        """
        if self.ridge is None:
            size = float(np.einsum("ai,ai->", X, X)) / len(X)
            if not np.isfinite(size):
                raise ValueError("context must be finite (and its square must not overflow)")
            if size > 0.0:
                self._begin(LIGHT * size)

    def _restore(self, state: dict[str, Any]) -> None:
        self.models[:] = state["models"]  # keeps the alignment
        self.ridge, self._recent, self._seen = state["ridge"], state["_recent"], state["_seen"]
        self._grams, self._moments = state["_grams"], state["_moments"]

    @property
    def raw(self) -> tuple[Floats, Floats, Floats, float, float]:
        """What the kernels of a block take: models, A and b where they are kept, the ridge in use, the discount.

        >>> Ridge(dim=2, lam=0.5).raw[3:]
        (0.5, 1.0)
        """
        return self.models, self._grams, self._moments, self.ridge or 1.0, self.discount

    @property
    def theta(self) -> Floats:
        """The estimates, one row a model.

        >>> Ridge(dim=2).theta
        array([[0., 0.]])
        """
        return self.models[:, -1, : self.dim]

    def factor(self, model: int = 0) -> Floats:
        """W, lower triangular, with A^-1 = W'W.

        >>> Ridge(dim=2, lam=4.0).factor()
        array([[0.5, 0. ],
               [0. , 0.5]])
        """
        return self.models[model, : self.dim, : self.dim]

    def log_det(self, model: int = 0) -> float:
        """ln det A.

        >>> round(Ridge(dim=2, lam=np.e).log_det(), 9)
        2.0
        """
        return float(ridge.log_det(self.models[model], self.dim))

    def estimate(self, X: Floats, model: int = 0) -> tuple[Floats, Floats]:
        """Means and widths of the rows of X under one model.

        >>> Ridge(dim=2, lam=4.0).estimate(np.eye(2))
        (array([0., 0.]), array([0.5, 0.5]))
        """
        means, widths = np.empty(len(X)), np.empty(len(X))
        ridge.estimate_into(self.models[model], X, means, widths)
        return means, widths

    def estimate_all(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and width of one row under every model.

        >>> Ridge(dim=1, n_models=2).estimate_all(np.ones(1))
        (array([0., 0.]), array([1., 1.]))
        """
        return ridge.estimate_all(self.models, x)

    def update(self, x: Floats, reward: float, model: int = 0, weight: float = 1.0) -> None:
        """Learn one row and its reward, counted ``weight`` times.

        >>> model = Ridge(dim=1, lam=1.0)
        >>> model.update(np.ones(1), 1.0, weight=3.0)
        >>> model.theta
        array([[0.75]])
        """
        if weight != 1.0:
            root = float(np.sqrt(weight))
            x, reward = root * x, root * reward
        self.learn(x[None], 0, reward, model)

    def learn(self, X: Floats, row: int, reward: float, model: int = 0) -> None:
        """Learn one row of X: ``update`` without a slice.

        >>> model = Ridge(dim=1, lam=1.0)
        >>> model.learn(np.ones((3, 1)), 2, 1.0)
        >>> model.theta
        array([[0.5]])
        """
        self.size_up(X)
        if self.window is not None:
            self._slide(X[row], reward, model)
        else:
            lam = self.ridge or 1.0
            ridge.learn(self.models, self._grams, self._moments, model, X, row, reward, lam, self.discount)

    def revise(self, X: Floats, row: int, change: float, model: int = 0) -> None:
        """Change a reward that was learnt with a row of X, here called x: b += change x, so theta += change A^-1 x.

        >>> model = Ridge(dim=1, lam=1.0)
        >>> model.learn(np.ones((1, 1)), 0, 0.0)
        >>> model.revise(np.ones((1, 1)), 0, 1.0)
        >>> model.theta
        array([[0.5]])
        """
        ridge.revise(self.models, model, X, row, change)

    def _slide(self, x: Floats, reward: float, model: int) -> None:
        """One row enters the window and the oldest leaves it; once per window the sums are taken afresh."""
        assert self.window is not None
        if not np.isfinite(x @ x):
            raise ValueError("context must be finite (and its square must not overflow)")
        place, changed = self._seen % self.window, {model}
        if self._seen >= self.window:
            oldest = int(self._recent[place, 0])
            changed.add(oldest)
            self._count(oldest, self._recent[place, 2:], self._recent[place, 1], -1.0)
        self._recent[place] = np.concatenate([[model, reward], x])
        self._count(model, x, reward, 1.0)
        self._seen += 1
        if place == self.window - 1:  # what was added and taken away again leaves its rounding behind
            changed = set(range(self.n_models))
            for m in changed:
                mine = self._recent[self._recent[:, 0] == m]
                self._grams[m] = (self.ridge or 1.0) * np.eye(self.dim) + mine[:, 2:].T @ mine[:, 2:]
                self._moments[m] = mine[:, 1] @ mine[:, 2:]
        for m in changed:
            ridge.refit(self.models[m], self._grams[m], self._moments[m])

    def _count(self, model: int, x: Floats, reward: float, sign: float) -> None:
        self._grams[model] += sign * np.outer(x, x)
        self._moments[model] += sign * reward * x

    def recent_squares(self) -> tuple[float, float]:
        """The sum of the squared rewards in the window, and how many they are.

        >>> model = Ridge(dim=1, window=2)
        >>> for reward in (1.0, 2.0, 3.0):
        ...     model.update(np.ones(1), reward)
        >>> model.recent_squares()
        (13.0, 2.0)
        """
        rewards = self._recent[: self._seen, 1]
        return float(rewards @ rewards), float(rewards.size)

    def noise(self, squares: float, n: float) -> float:
        """The residual standard deviation, of n rewards whose squares sum to ``squares`` (weighed as the models do).

        (sum r^2 - theta' A theta + m) / (n - df + 1), with df the degrees of freedom that the fits use up and m the
        mean square: before there are residuals, the noise is taken to be of the rewards' own size.

        >>> model = Ridge(dim=1, lam=1e-9)
        >>> for reward in (1.0, 3.0, 1.0, 3.0):
        ...     model.update(np.ones(1), reward)
        >>> round(model.noise(squares=20.0, n=4.0), 9)  # residuals 4, degrees of freedom 3, mean square 5
        1.5
        """
        explained = used = 0.0
        for m in range(self.n_models):
            W = self.factor(m)
            root = np.linalg.solve(W.T, self.theta[m])  # A = W^-1 W^-T
            explained += float(root @ root)
            used += self.dim - (self.ridge or 1.0) * float(np.einsum("ij,ij->", W, W))
        spread = max(0.0, squares - explained) + _PRIOR * squares / max(n, 1.0)
        return float(np.sqrt(spread / (max(0.0, n - used) + _PRIOR)))

    def optimistic(self, X: Floats, alpha: float, noise: float, delta: float) -> Floats:
        """Mean + multiplier x width, of each row (one model) or of each model (one row, as (1, d)).

        >>> Ridge(dim=2, lam=4.0).optimistic(np.eye(2), 1.0, 0.0, 1.0)
        array([0.5, 0.5])
        """
        return ridge.optimistic(self.models, X, self.ridge or 1.0, alpha, noise, delta)

    def play_optimistic(
        self, contexts: Floats, rewards: Floats, alpha: float, noise: float, delta: float, rng: np.random.Generator
    ) -> tuple[Any, Any, Any]:
        """A block of optimistic rounds: arms, probabilities, rewards.

        >>> Ridge(dim=1).play_optimistic(np.ones((2, 1, 1)), np.ones((2, 1)), 1.0, 0.0, 1.0, np.random.default_rng(1))
        (array([0, 0]), array([1., 1.]), array([1., 1.]))
        """
        models, grams, moments, lam, discount = self.raw
        return ridge.play_optimistic(models, grams, moments, contexts, rewards, lam, discount, alpha, noise, delta, rng)

    def play_sampled(
        self,
        contexts: Floats,
        rewards: Floats,
        first: int,
        v: float,
        coefficient: float,
        delta: float,
        rng: np.random.Generator,
    ) -> tuple[Any, Any]:
        """A block of Thompson's rounds that begins at round ``first``, one posterior draw each: arms, rewards.

        >>> rng = np.random.default_rng(1)
        >>> Ridge(dim=1).play_sampled(np.ones((1, 1, 1)), np.ones((1, 1)), 1, 1.0, 0.0, 1.0, rng)
        (array([0]), array([1.]))
        """
        arms, _, got = thompson.play(
            self.models, self._grams, self._moments, contexts, rewards,
            self.ridge or 1.0, self.discount, first, v, coefficient, delta, 1, rng,
        )  # fmt: skip
        return arms, got

    def sample(self, z: Floats, scale: float, model: int = 0) -> Floats:
        """theta + scale W'z: with z standard normal, a draw from N(theta, scale^2 A^-1).

        >>> Ridge(dim=2, lam=4.0).sample(np.array([1.0, 2.0]), scale=2.0)
        array([1., 2.])
        """
        sampled: Floats = self.theta[model] + scale * (z @ self.factor(model))
        return sampled
