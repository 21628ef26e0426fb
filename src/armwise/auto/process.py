"""The exact Gaussian process that Auto asks as long as the same few rows come back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armwise import persist
from armwise.agent import Floats

_LENGTHS = (0.1, 0.2, 0.4, 0.57, 0.8, 1.13, 1.6, 3.2)  # length scales, in sqrt(columns) of unit deviation
_NOISES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0)  # noise variance over prior variance
_KINDS = ("separate", "linear", *(f"smooth {length:g}" for length in _LENGTHS))
_JITTER = 1e-10
OPTIMISM, LATER = 2.0, 1000.0  # deviations at first; rewards that raise their square by ln 2
IN_PLAY = 6  # kernels at most
_BEHIND = {"separate": 3.0, "smooth 0.1": 2.0, "smooth 0.2": 1.0}  # of the log likelihood: where rough kernels begin
GROWTH = 8  # the kernel is fitted anew when the rewards have grown by one in so many


class DistinctRows(persist.Saved):
    """A Gaussian process over the distinct rows of the rounds learnt, until they are more than ``most``.

    All that is kept of the rewards of a row is their number, sum and sum of squares, which is all that a Gaussian
    likelihood asks for. The kernel (rows of their own, linear, or smooth with one of eight length scales), the noise
    and the prior variance are those of the largest marginal likelihood, fitted anew at every reward at first, then
    whenever they have grown by an eighth; the columns count in deviations. Kernels whose likelihood is not far below
    stay in play, with less optimism the further behind they are: what a row may bring is the largest that one allows.

    >>> process = DistinctRows(dim=1, most=8)
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> for arm, reward in ((0, 0.0), (1, 1.0), (2, 2.0), (0, 0.1)):
    ...     process.learn(X, arm, reward)
    >>> process.estimate(X)[0].round(1)
    array([0., 1., 2.])
    """

    _learnt = ("rows", "counts", "sums", "squares", "full", "models", "behind", "offered", "next_fit", "_means",
               "_covariances")  # fmt: skip

    def __init__(self, dim: int, most: int) -> None:
        self.dim, self.most = dim, most
        self.next_fit = 2
        self.full, self.offered = False, 0  # more rows came than it holds: it has forgotten all; rows of all rounds
        self.rows = np.zeros((0, dim))
        self.counts, self.sums, self.squares = np.zeros(0), np.zeros(0), np.zeros(0)
        # Kind, noise over variance, variance; the likeliest first.
        self.models = np.array([[float(_KINDS.index("smooth 0.8")), 0.03, 1.0]])
        self.behind = np.zeros(1)  # how far the log likelihood of each is behind the first one's
        # Per model, jointly for all rows, once rows come back: until then they are conditioned when asked.
        self._means, self._covariances = np.zeros((0, 0)), np.zeros((0, 0, 0))
        self._places: dict[bytes, int] = {}
        self._last: tuple[bytes, NDArray[np.int64]] | None = None

    def learn(self, X: Floats, arm: int, reward: float) -> None:
        """The reward of one row of a round; all rows of the round are known from then on.

        >>> process = DistinctRows(dim=1, most=1)
        >>> process.learn(np.array([[1.0], [2.0]]), 0, 0.5)
        >>> process.full
        True
        """
        if self.full:
            return
        self.offered += len(X)
        new = self._adopt(X)
        if self.full:
            return
        i = int(self._where(X)[arm])
        self.counts[i] += 1.0
        self.sums[i] += reward
        self.squares[i] += reward * reward
        if self.counts.sum() >= self.next_fit:
            self._fit()
        elif self._joint:
            now, noise = self._covariances[:, i], self.models[:, 1] * self.models[:, 2]
            gains = now / (now[:, i] + noise)[:, None]
            self._means += gains * (reward - self._means[:, i])[:, None]
            self._covariances -= gains[:, :, None] * now[:, None, :]
        if not new and not self._joint:
            answers = [self._condition(model, self.rows) for model in self.models]
            self._means = np.array([means for means, _ in answers])
            self._covariances = np.array([covariances for _, covariances in answers])

    def estimate(self, X: Floats) -> tuple[Floats, Floats]:
        """Means and deviations of the rows under the likeliest kernel.

        >>> DistinctRows(dim=1, most=8).estimate(np.zeros((1, 1)))
        (array([0.]), array([1.41421356]))
        """
        return self._answers(X)[0]

    def scores(self, X: Floats) -> Floats:
        """The largest mean + sqrt(OPTIMISM^2 + ln(1 + n / LATER) - behind) x deviation of the kernels in play.

        Deviations and log likelihood are paid from one purse: a kernel that is less likely may surprise less. It grows
        with the rewards n, so that no row is given up for good on what a few rewards said of the kernel.

        >>> DistinctRows(dim=1, most=8).scores(np.zeros((1, 1))).round(3)
        array([2.828])
        """
        allowed = np.sqrt(self._purse - self.behind)
        return np.asarray(np.max([mean + z * width for (mean, width), z in zip(self._answers(X), allowed)], axis=0))

    @property
    def returns(self) -> bool:
        """Whether it has room, and a row came at least twice on average.

        >>> DistinctRows(dim=1, most=8).returns
        False
        """
        return not self.full and 0 < 2 * len(self.rows) <= self.offered

    @property
    def kernel(self) -> str:
        """The likeliest kernel.

        >>> DistinctRows(dim=1, most=8).kernel
        'smooth 0.8'
        """
        return _KINDS[int(self.models[0, 0])]

    @property
    def noise(self) -> float:
        """The deviation of the rewards around their row's mean, by the likeliest kernel.

        >>> round(DistinctRows(dim=1, most=8).noise, 3)
        0.173
        """
        return float(np.sqrt(self.models[0, 1] * self.models[0, 2]))

    # ------------------------------------------------------------------ rows

    def _where(self, X: Floats) -> NDArray[np.int64]:
        """The places of rows that are all known, or -1 where one is not."""
        key = X.tobytes()
        if self._last is None or self._last[0] != key:
            places = np.array([self._places.get(row.tobytes(), -1) for row in X], np.int64)
            if (places < 0).any():
                return places
            self._last = key, places
        return self._last[1]

    def _adopt(self, X: Floats) -> bool:
        """Rows that are new join; whether any did."""
        if (self._where(X) >= 0).all():
            return False
        new: list[Floats] = []
        for row in X:
            if self._places.setdefault(row.tobytes(), len(self._places)) == len(self.rows) + len(new):
                new.append(row)
        self.rows = np.concatenate([self.rows, new])
        if len(self.rows) > self.most:
            self.full, self.rows, self._places, self._last = True, self.rows[:0], {}, None
            self.counts, self.sums, self.squares = self.counts[:0], self.sums[:0], self.squares[:0]
        else:
            more = np.zeros(len(new))
            self.counts, self.sums = np.concatenate([self.counts, more]), np.concatenate([self.sums, more])
            self.squares = np.concatenate([self.squares, more])
        self._means, self._covariances = np.zeros((0, 0)), np.zeros((0, 0, 0))
        return True

    @property
    def _purse(self) -> float:
        return OPTIMISM**2 + math.log1p(float(self.counts.sum()) / LATER)

    @property
    def _joint(self) -> bool:
        return len(self._means) > 0

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._places, self._last = {row.tobytes(): i for i, row in enumerate(self.rows)}, None

    # ------------------------------------------------------------------ the process

    def _answers(self, X: Floats) -> list[tuple[Floats, Floats]]:
        places = self._where(X) if self._joint else None
        if places is not None and (places >= 0).all():
            variances = self._covariances[:, places, places]
            return list(zip(self._means[:, places], np.sqrt(np.maximum(variances, 0.0))))
        found = [self._condition(model, X) for model in self.models]
        return [(means, np.sqrt(np.maximum(np.diag(covariances), 0.0))) for means, covariances in found]

    def _standard(self, rows: Floats) -> Floats:
        """The rows in deviations of the known rows, over sqrt(columns)."""
        if not len(self.rows):
            return np.zeros((len(rows), 1))
        spread = self.rows.std(axis=0)
        varies = spread > 0.0
        Z: Floats = (rows[:, varies] - self.rows[:, varies].mean(axis=0)) / spread[varies]
        return Z / math.sqrt(max(1, Z.shape[1]))

    def _condition(self, model: Floats, rows: Floats) -> tuple[Floats, Floats]:
        """Posterior means and covariances of rows."""
        kind, noise, variance = int(model[0]), float(model[1]), float(model[2])
        Z, learnt = self._standard(rows), np.flatnonzero(self.counts)
        K = _covariance(kind, Z, Z)
        if not learnt.size:
            return np.zeros(len(rows)), variance * K
        A, n = self._standard(self.rows[learnt]), self.counts[learnt]
        L = np.linalg.cholesky(_covariance(kind, A, A) + np.diag(noise / n + _JITTER))
        solved = np.linalg.solve(L, np.column_stack([_covariance(kind, A, Z), self.sums[learnt] / n]))
        V, z = solved[:, :-1], solved[:, -1]
        return V.T @ z, variance * (K - V.T @ V)

    def _fit(self) -> None:
        """The kernels, noise and variance of the largest marginal likelihood.

        With n_i rewards of mean m_i in row i, K the kernel of those rows and g the noise over the variance s, the
        likelihood is that of the means, N(0, s (K + g diag(1 / n_i))), times that of the rewards around them, whose
        squares sum to W. The best s has a closed form; a prior of two rewards at their own variance keeps it off 0.
        """
        learnt = np.flatnonzero(self.counts)
        n, total = self.counts[learnt], float(self.counts.sum())
        m = self.sums[learnt] / n
        within = max(0.0, float(self.squares[learnt].sum() - (self.sums[learnt] * m).sum()))
        size = float(self.squares.sum()) / total
        prior = 2.0 * max(size - (float(self.sums.sum()) / total) ** 2, 1e-12 * size, 1e-300)
        Z, found = self._standard(self.rows[learnt]), []
        for kind in range(len(_KINDS)):
            K, best = _covariance(kind, Z, Z), (math.inf, 0.0, 0.0)
            for g in _NOISES:
                L = np.linalg.cholesky(K + np.diag(g / n + _JITTER))
                z = np.linalg.solve(L, m)
                s = (float(z @ z) + within / g + prior) / (total + 2.0)
                cost = (total + 2.0) * math.log(s) + 2.0 * float(np.log(np.diag(L)).sum())
                best = min(best, (cost + (total - len(n)) * math.log(g), g, s))
            found.append((0.5 * best[0] + _BEHIND.get(_KINDS[kind], 0.0), float(kind), *best[1:]))
        found.sort()
        found = [model for model in found[:IN_PLAY] if model[0] - found[0][0] < self._purse]
        self.models = np.array([model[1:] for model in found])
        self.behind = np.array([model[0] - found[0][0] for model in found])
        self._means, self._covariances = np.zeros((0, 0)), np.zeros((0, 0, 0))
        self.next_fit = math.ceil(total + max(1.0, total / GROWTH))


def _covariance(kind: int, A: Floats, B: Floats) -> Floats:
    """Between standard rows, of prior variance 1, beside a constant of the same size that all rows share."""
    products: Floats = A @ B.T
    if kind == 1:
        return 1.0 + products
    distances = np.einsum("ij,ij->i", A, A)[:, None] + np.einsum("ij,ij->i", B, B)[None, :] - 2.0 * products
    if kind == 0:
        separate: Floats = 1.0 + (distances < 1e-12)
        return separate
    smooth: Floats = 1.0 + np.exp(-0.5 * np.maximum(distances, 0.0) / _LENGTHS[kind - 2] ** 2)
    return smooth
