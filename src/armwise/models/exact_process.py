"""The exact Gaussian process that Auto asks as long as the same few rows come back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armwise.core import saving
from armwise.core.agent import Floats
from armwise.native import mixture

_LENGTHS = (0.1, 0.2, 0.4, 0.57, 0.8, 1.13, 1.6, 3.2)  # length scales, in sqrt(columns) of unit deviation
_NOISES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0)  # noise variance over prior variance
_KINDS = ("separate", "linear", *(f"smooth {length:g}" for length in _LENGTHS))
AHEAD, MORE = 180.0, 0.05  # rounds to come in which what is found out now is worth something: 180 + n / 20
FEW = 4.0  # contexts: with more, the rows of one are on offer in few of those rounds
IN_PLAY = (18, 12)  # models at most; from MANY rows, the second number
TEMPER = 2.0  # of the likelihood ratio: few rewards, of rows that were chosen for them, must not decide alone
CHANCE = 6.0  # of the log likelihood: models further behind the likeliest are out of play
# Where kernels begin, behind the likeliest: length scales are log-normal about 0.8. Under rough kernels every row that
# was not tried is worth a try, and very smooth ones are sure of rows that were never tried.
_BEHIND = (4.0, 1.0, *(math.log(length / 0.8) ** 2 for length in _LENGTHS))
EARLY = 64  # rows with rewards: as long as there are no more, one row that came back is enough
GROWTH, MANY = 8, 64  # the models are fitted anew when the rewards have grown by one in so many; from MANY rows, 4


class DistinctRows(saving.Saved):
    """A Gaussian process over the distinct rows of the rounds learnt, until they are more than ``most``.

    All that is kept of the rewards of a row is their number, sum and sum of squares, which is all that a Gaussian
    likelihood asks for. A model is a kernel (rows of their own, linear, or smooth with one of eight length scales), the
    noise and the prior variance; the columns count in deviations. They are weighed by their marginal likelihood, anew
    at every reward at first, then whenever the rewards have grown by an eighth (a quarter where rows are many). Of each
    kernel the likeliest variance is in play, and larger ones too: a few rows, of which one was chosen a thousand times,
    say much of the noise and little of how far the others may lie apart, and a variance that is fitted to them and then
    believed gives up the best row for good.
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
        """The reward of one row of a round; all rows of the round are known from then on."""
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
            mixture.learn(self._means, self._covariances, self.models[:, 1] * self.models[:, 2], i, reward)
        if not new and not self._joint:
            self._means, self._covariances = self._condition(self.rows, self.counts, self.sums)

    def estimate(self, X: Floats) -> tuple[Floats, Floats]:
        """Means and deviations of the rows under the likeliest kernel."""
        means, covariances, places = self._answers(X)
        return means[0, places], np.sqrt(np.maximum(covariances[0, places, places], 0.0))

    def scores(self, X: Floats) -> Floats:
        """A row's reward now plus the later worth of knowing it, averaged over the models in play.

        The knowledge gradient of Ryzhov, Powell, Frazier (2012), as if one reward told a row's mean: the mean, plus
        (180 + n / 20) times what the best of the rows is expected to gain if this row's mean became known. Where all
        rows known are more than four times those on offer it is less in proportion: these come back rarely.
        """
        share = min(1.0, FEW * len(X) / max(1, len(self.rows)))
        ahead = share * (AHEAD + MORE * float(self.counts.sum()))
        return mixture.scores(*self._answers(X), self.behind / TEMPER, ahead)

    @property
    def returns(self) -> bool:
        """Whether it has room, and a row came at least twice on average; as long as few have rewards, any of them.

        It decides from the first row that comes back: rewards that another model chose tell it less. Where most rows
        turn out to be new, it stops before they are many, and before asking it is dear.
        """
        seen = len(self.rows)
        early = seen < self.offered and int(np.count_nonzero(self.counts)) <= EARLY
        return not self.full and (early or 0 < 2 * seen <= self.offered)

    @property
    def kernel(self) -> str:
        """The likeliest kernel."""
        return _KINDS[int(self.models[0, 0])]

    @property
    def noise(self) -> float:
        """The deviation of the rewards around their row's mean, by the likeliest kernel."""
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
    def _joint(self) -> bool:
        return len(self._means) > 0

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._places, self._last = {row.tobytes(): i for i, row in enumerate(self.rows)}, None

    # ------------------------------------------------------------------ the process

    def _answers(self, X: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Means and covariances under each model, and the places of the rows in them."""
        if self._joint:
            places = self._where(X)
            if (places >= 0).all():
                return self._means, self._covariances, places
        learnt, K = np.flatnonzero(self.counts), len(X)
        rows, nothing = np.concatenate([self.rows[learnt], X]), np.zeros(K)
        counts, sums = np.concatenate([self.counts[learnt], nothing]), np.concatenate([self.sums[learnt], nothing])
        means, covariances = self._condition(rows, counts, sums, len(learnt))
        return means, covariances, np.arange(len(learnt), len(rows))

    def _standard(self, rows: Floats) -> Floats:
        """The rows in deviations of the known rows, over sqrt(columns)."""
        if not len(self.rows):
            return np.zeros((len(rows), 1))
        spread = self.rows.std(axis=0)
        varies = spread > 0.0
        Z: Floats = (rows[:, varies] - self.rows[:, varies].mean(axis=0)) / spread[varies]
        return Z / math.sqrt(max(1, Z.shape[1]))

    def _condition(self, rows: Floats, counts: Floats, sums: Floats, asked: int = 0) -> tuple[Floats, Floats]:
        """Posterior means and covariances of rows, given the numbers and sums of their rewards, under each model.

        With ``asked`` only those of the rows from there on.
        """
        products, M, N = _products(self._standard(rows)), len(self.models), len(rows)
        kernels = {int(kind): _kernel(int(kind), products) for kind in self.models[:, 0]}
        means, covariances = np.empty((M, N)), np.empty((M, N, N))
        for i, (kind, noise, variance) in enumerate(self.models.tolist()):
            mixture.condition(kernels[int(kind)], counts, sums, noise, variance, asked, means[i], covariances[i])
        return means, covariances

    def _fit(self) -> None:
        """The models that are likely, and how far each is behind the likeliest.

        With n_i rewards of mean m_i in row i, K the kernel of those rows and g the noise over the variance s, the
        likelihood is that of the means, N(0, s (K + g diag(1 / n_i))), times that of the rewards around them, whose
        squares sum to W. The best s has a closed form; a prior of two rewards at their own variance keeps it off 0.
        One tridiagonal form of n_i^1/2 K_ij n_j^1/2 answers for every g.
        """
        learnt = np.flatnonzero(self.counts)
        n, total = self.counts[learnt], float(self.counts.sum())
        m = self.sums[learnt] / n
        within = max(0.0, float(self.squares[learnt].sum() - (self.sums[learnt] * m).sum()))
        size = float(self.squares.sum()) / total
        prior = 2.0 * max(size - (float(self.sums.sum()) / total) ** 2, 1e-12 * size, 1e-300)
        products, roots, g = _products(self._standard(self.rows[learnt])), np.sqrt(n), np.array(_NOISES)
        found: list[tuple[float, float, float, float]] = []
        for kind in range(len(_KINDS)):
            forms, logs = mixture.forms(_kernel(kind, products), roots, roots * m, g)
            s = (forms + within / g + prior) / (total + 2.0)
            logs -= np.log(n).sum()
            costs = 0.5 * ((total + 2.0) * np.log(s) + logs + (total - len(n)) * np.log(g)) + _BEHIND[kind]
            likeliest = int(costs.argmin())
            found += [(float(costs[i]), float(kind), _NOISES[i], float(s[i])) for i in range(likeliest + 1)]
        found.sort()
        least = found[0][0]
        rest = [model for model in found[1:] if model[0] - least < CHANCE]
        # Those that allow most: far from certain, and wide.
        rest.sort(key=lambda model: -math.sqrt((CHANCE - (model[0] - least)) * model[3]))
        found = [found[0], *sorted(rest[: IN_PLAY[len(n) >= MANY] - 1])]
        self.models = np.array([model[1:] for model in found])
        self.behind = np.array([model[0] - least for model in found])
        self._means, self._covariances = np.zeros((0, 0)), np.zeros((0, 0, 0))
        self.next_fit = math.ceil(total + max(1.0, total / (GROWTH if len(n) < MANY else GROWTH // 2)))


def _products(Z: Floats) -> Floats:
    """Inner products of standard rows, summed in one order whatever library multiplies matrices."""
    products: Floats = np.einsum("ij,kj->ik", Z, Z)
    return products


def _kernel(kind: int, products: Floats) -> Floats:
    """Between rows, by their inner products: of prior variance 1, beside a constant of the same size that all share."""
    if kind == 1:
        return 1.0 + products
    squares: Floats = np.einsum("ii->i", products)
    distances = squares[:, None] + squares - 2.0 * products
    if kind == 0:
        return np.where(distances < 1e-12, 2.0, 1.0)
    smooth: Floats = 1.0 + np.exp(-0.5 * np.maximum(distances, 0.0) / _LENGTHS[kind - 2] ** 2)
    return smooth
