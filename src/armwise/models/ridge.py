"""The ridge model that the linear agents and the linear oracles share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armwise.core import saving
from armwise.core.agent import Floats, count, fraction, positive
from armwise.core.arguments import as_floats, wanted_numbers
from armwise.core.inputs import dense_pieces, dense_row
from armwise.core.policy_document import LinearModel
from armwise.models.least_squares import fit_rows
from armwise.models.ridge_size import COMPARED_FROM, LARGER_SHARES, MIN_SQUARED_LENGTH, RIDGE_SHARE, likeliest
from armwise.native import fits, regression, ridge, thompson
from armwise.native.choice import all_within
from armwise.native.simd import aligned_zeros, padded

_MIN_RIDGE_IN_SUMS = 1e-10  # the ridge as a share of the squared rows: below it, rounding of the sums loses the ridge
_MIN_RIDGE_IN_ROWS = 1e-24  # below it, the rows lose it too: a root keeps four digits here


Width = tuple[float, float, float, float, float]  # Width in native/models/ridge.hpp
Spread = tuple[
    float, float, float, float, float, float
]  # v, coefficient, delta, and Spread in native/agents/thompson.hpp


def read_mean(mean: ArrayLike, n_models: int, dim: int) -> Floats:
    """A prior mean, copied: (d,), or (n_models, d) where each model has its own."""
    values = as_floats("prior_mean", mean).copy()
    if values.shape not in ((dim,), (n_models, dim)):
        wanted = f"({dim},)" if n_models == 1 else f"({dim},) or ({n_models}, {dim})"
        raise ValueError(f"prior_mean must have shape {wanted}, got {values.shape}")
    if not all_within(values):
        raise ValueError(f"prior_mean must be {wanted_numbers(values)}")
    return values


class Ridge(saving.Saved):
    """Linear estimates theta = A^-1 b with A = lam I + sum x x', b = sum r x, and their widths sqrt(x' A^-1 x).

    ``n_models`` independent models stand side by side (one for each arm of a disjoint agent). Memory is one d x d
    factor per model, whatever has been learnt. ``lam=None`` is ``RIDGE_SHARE`` times the geometric mean of the rows'
    squared lengths: little shrinking, whatever the features' units; or ten times, or a hundred times as much, where the
    rewards are much likelier under that (see ``rescale``). ``ridge`` is the number in use: that of the first row, until
    ``rescale`` works it out again.

    ``centred`` shrinks rewards towards ``centre`` instead of 0: estimates are centre + x.theta, with theta the fit to
    rewards less by centre. ``recentre`` moves it; as the models keep what rewards of 1 would have taught them, that
    is the same as if it had been there from the beginning. Who learns rewards says where it lies: see ``Noise``.

    Two ways to forget, both by time (one step per reward, whichever model learns it), and the ridge stays:
    ``discount`` < 1 weighs a reward by discount^age, A = lam I + sum discount^age x x'; ``window`` = W keeps the last
    W rewards. A model that rests forgets too, so that its widths grow. A step then costs O(d^3) for every model
    (discount) or for the two models that change (window), instead of O(d^2).
    ``prior_mean`` is what the ridge draws theta towards, lam ||theta - prior_mean||^2: (d,) for all models, or one row
    per model; zeros if None.
    ``models`` is the raw state (see native/models/ridge.hpp), for kernels that work on it directly.
    """

    _learnt = ("models", "ridge", "centre", "_gone", "_grams", "_moments", "_recent", "_seen")

    def __init__(
        self,
        dim: int,
        lam: float | None = None,
        n_models: int = 1,
        discount: float = 1.0,
        window: int | None = None,
        prior_mean: ArrayLike | None = None,
        centred: bool = False,
    ) -> None:
        self.dim, self.lam = count("dim", dim), None if lam is None else positive("lam", lam)
        self.n_models, self.discount = count("n_models", n_models), fraction("discount", discount, one=True)
        self.window = None if window is None else count("window", window)
        if self.window is not None and self.discount < 1.0:
            raise ValueError(f"window is {window} and discount {discount}: choose one way to forget")
        self.prior_mean = None if prior_mean is None else read_mean(prior_mean, self.n_models, self.dim)
        self.centred, self.centre, self._blank = bool(centred), 0.0, bool(centred)
        if self.centred and prior_mean is not None:
            raise ValueError("prior_mean says what rewards are drawn towards: leave out centred or prior_mean")
        self._gone = np.zeros(3)  # the counts of models that were removed
        rows = padded(self.dim) + (3 if self.counted else 1)
        self.models = aligned_zeros(self.n_models, rows, padded(self.dim))
        # The window's rewards, each in the place of the one that it drives out: model, reward, features.
        self._recent, self._seen = np.zeros((self.window or 0, self.dim + 2)), 0
        self.ridge: float | None = None
        self._begin(self.lam)

    def _begin(self, lam: float | None) -> None:
        """An untaught model with this ridge (1 as long as it is not known: means are 0, widths ||x|| all the same)."""
        self.ridge, in_use, d = lam, lam or 1.0, self.dim
        self.models[:] = 0.0
        self.models[:, range(d), range(d)] = 1.0 / np.sqrt(in_use)
        self.theta[:] = self.prior_means
        if not self.forgets:  # then the sums themselves are not needed
            self._grams, self._moments = np.zeros((self.n_models, 0, 0)), np.zeros((0, d))
            return
        self._grams = np.tile(in_use * np.eye(d), (self.n_models, 1, 1))
        # b of every model, the sum of the rows of each, and what b does not forget.
        prior = self.prior_means
        self._moments = np.concatenate([in_use * prior, np.zeros_like(prior), prior])

    @property
    def counted(self) -> bool:
        """Whether the models keep what rewards of 1 would have taught them, and the number and size of their rows."""
        return self.centred or self.lam is None

    @property
    def prior_means(self) -> Floats:
        """What each model's theta is drawn towards, one row per model."""
        mean = np.zeros(self.dim) if self.prior_mean is None else self.prior_mean
        return np.array(np.broadcast_to(mean, (self.n_models, self.dim)), order="C")

    @property
    def forgets(self) -> bool:
        """Whether old rewards count less than new ones."""
        return self.discount < 1.0 or self.window is not None

    def settle_ridge(self, x: Floats) -> None:
        """Settle ``ridge`` on the first row to be learnt, where ``lam`` left it open.

        A row of zeros says nothing, nor does one so small that a row of length 1 would overflow over its ridge.
        """
        if self.ridge is None:
            with np.errstate(over="ignore"):
                size = float(x @ x)
            if not np.isfinite(size):
                raise ValueError("context must be finite (and its square must not overflow)")
            if size > MIN_SQUARED_LENGTH:
                self._begin(RIDGE_SHARE * size)

    @property
    def settled(self) -> bool:
        """Whether the first row has settled an open ``lam``, and the first reward the centre."""
        return self.ridge is not None and not self._blank

    def rescale(self, least: float = 0.01, rewards: tuple[float, float, float] | None = None) -> None:
        """Let an open ``lam`` follow the size of all rows learnt so far, unless it moves by less than this share.

        With ``rewards``, the number of rewards, their sum and that of their squares measured from the centre, a centred
        model that does not forget takes the ridge by their marginal likelihood too, from ``COMPARED_FROM`` rewards on:
        the smallest unless a larger one is much likelier. A weak signal among noise is then shrunk.
        """
        if self.lam is not None or self.ridge is None:
            return
        logs, rows = self._counts()[1:]
        size = float(np.exp(logs / rows))
        lam = RIDGE_SHARE * size
        if rewards is not None and rewards[0] >= COMPARED_FROM and self.centred and not self.forgets:
            lam = self._likeliest([lam, *(share * size for share in LARGER_SHARES)], *rewards)
        if abs(lam - self.ridge) <= least * self.ridge:
            return
        before, kept = self.ridge, self.models.copy()
        try:
            self._shift_ridge(lam)
        except ValueError:  # rows so much larger than others that these are lost to rounding: it stays
            self.ridge, self.models[:] = before, kept

    def _likeliest(self, ridges: list[float], n: float, total: float, squares: float) -> float:
        """The likeliest of these ridges, from the models that have learnt."""
        taught = [m for m in range(self.n_models) if self._taught(m)]
        inverse = np.linalg.inv(self.models[taught, : self.dim, : self.dim])
        grams = inverse @ inverse.transpose(0, 2, 1)
        moments = grams @ np.stack([self.theta[taught], self._ones[taught]], axis=2)
        return likeliest(ridges, self.ridge or 1.0, grams, moments, n, total, squares)

    @property
    def least_share(self) -> float:
        """The smallest ridge that an open ``lam`` may be, as a share of that in use: 1, .1 or .01."""
        logs, rows = self._counts()[1:]
        if self.lam is not None or self.ridge is None or not rows:
            return 1.0
        times = math.log10(self.ridge / RIDGE_SHARE) - logs / rows / math.log(10.0)
        return 10.0 ** -min(max(round(times), 0), len(LARGER_SHARES))

    def _shift_ridge(self, lam: float) -> None:
        """Take another ridge, with what was learnt as it was."""
        before, self.ridge = self.ridge or 1.0, lam
        more = (lam - before) * np.eye(self.dim)
        for m in range(self.n_models):
            if not self._taught(m):
                self.models[m, range(self.dim), range(self.dim)] = 1.0 / np.sqrt(lam)
                continue
            gram, moment, rows = self._sums(m)
            ridge.refit(self.models[m], gram + more, moment + (lam - before) * self.prior_means[m], rows)
        if self.forgets:
            self._grams += more
            self._moments[: self.n_models] += (lam - before) * self.prior_means

    def _taught(self, model: int) -> bool:
        return bool(self.models[model, -1, 0]) if self.counted else True

    def _counts(self) -> tuple[float, float, float]:
        """Rows learnt, the sum of ln ||x||^2 over those that are not 0, and the number of these."""
        n, logs, rows = (self._gone + self.models[:, -1, :3].cumsum(axis=0)[-1]).tolist()
        return n, logs, rows

    def _sums(self, model: int) -> tuple[Floats, Floats, Floats]:
        """A, b and the sum of the rows of a model (empty where it is not kept)."""
        L = np.linalg.inv(self.factor(model))
        A: Floats = L @ L.T  # A^-1 = W'W, so A = W^-1 W^-T
        return A, A @ self.theta[model], A @ self._ones[model] if self.counted else np.zeros(0)

    @property
    def _ones(self) -> Floats:
        """What rewards of 1 would have taught each model."""
        return self.models[:, self.models.shape[2] + 1, : self.dim]

    def recentre(self, centre: float) -> None:
        """Measure rewards from another centre: what was learnt is as if it had always been there."""
        by = centre - self.centre
        if by == 0.0:
            return
        self.centre, M = centre, self.n_models
        self.theta[:] -= by * self._ones
        self._recent[: self._seen, 1] -= by
        if self.forgets:
            self._moments[:M] -= by * self._moments[M : 2 * M]

    def _restore(self, state: dict[str, Any]) -> None:
        if "centre" not in state:  # of armwise 0.1
            if self.counted or self.forgets:
                raise saving.LoadError(
                    "a ridge that follows its rows (lam=None) or forgets was kept otherwise before armwise 0.2: let a "
                    "new agent learn again from the log or the journal"
                )
            state = state | {"centre": 0.0, "_gone": np.zeros(3)}
        self.models[:] = state["models"]  # keeps the alignment
        self.ridge, self.centre, self._gone = state["ridge"], state["centre"], state["_gone"]
        self._recent, self._seen = state["_recent"], state["_seen"]
        self._grams, self._moments = state["_grams"], state["_moments"]
        self._blank = self.centred and not self.models[:, -1, 0].any()

    @property
    def raw(self) -> tuple[Floats, Floats, Floats, float, float]:
        """What the kernels of a block take: models, A and b where they are kept, the ridge in use, the discount."""
        return self.models, self._grams, self._moments, self.ridge or 1.0, self.discount

    @property
    def theta(self) -> Floats:
        """The estimates, one row a model; with ``centred``, of what lies beyond the centre."""
        return self.models[:, self.models.shape[2], : self.dim]

    def factor(self, model: int = 0) -> Floats:
        """W, lower triangular, with A^-1 = W'W."""
        return self.models[model, : self.dim, : self.dim]

    def untried(self) -> Floats | None:
        """The distribution over arms whose own models have no reward yet, which come first; None if there is none."""
        some, p = regression.untried(self.models, self.dim)
        return p if some else None

    def exported(self, alphas: Sequence[float] | None = None) -> tuple[LinearModel, ...]:
        """The models as a policy has them: with widths, ``alphas`` times the width of each, or without."""
        widths = [()] * self.n_models if alphas is None else [((a, self.factor(m)),) for m, a in enumerate(alphas)]
        return tuple(LinearModel(theta, each) for theta, each in zip(self.theta, widths))

    def log_det(self, model: int = 0) -> float:
        """ln det A."""
        return float(ridge.log_det(self.models[model], self.dim))

    def estimate(self, X: Floats, model: int = 0) -> tuple[Floats, Floats]:
        """Means and widths of the rows of X under one model."""
        means, widths, done = np.empty(X.shape[0]), np.empty(X.shape[0]), 0
        for rows in dense_pieces(X):
            now = slice(done, done + len(rows))
            ridge.estimate_into(self.models[model], rows, means[now], widths[now])
            done += len(rows)
        return means + self.centre, widths

    def estimate_all(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and width of one row under every model."""
        means, widths = ridge.estimate_all(self.models, x)
        return means + self.centre, widths

    def update(self, x: Floats, reward: float, model: int = 0, weight: float = 1.0) -> None:
        """Learn one row and its reward, counted ``weight`` times."""
        if weight != 1.0:
            root = float(np.sqrt(weight))
            x, reward = root * x, root * (reward - self.centre) + self.centre
        self.learn(x[None], 0, reward, model)

    def learn(self, X: Floats, row: int, reward: float, model: int = 0) -> None:
        """Learn one row of X: ``update`` without a slice."""
        with self.refusals_named(), self._unchanged_if_refused():
            X, row = dense_row(X, row)
            self.settle_ridge(X[row])
            if self._blank:  # where it begins is a matter of rounding alone
                self.centre = reward
            reward -= self.centre
            if self.window is not None:
                self._slide(X[row], reward, model)
            else:
                lam = self.ridge or 1.0
                ridge.learn(self.models, self._grams, self._moments, model, X, row, reward, lam, self.discount)
            self._blank = False

    @contextmanager
    def _unchanged_if_refused(self) -> Iterator[None]:
        """A row that cannot be learnt leaves everything as it was: the ridge open, and sums that fade not faded."""
        was_open, fades, centre = self.ridge is None, self.discount < 1.0, self.centre
        before = (self.models.copy(), self._grams.copy(), self._moments.copy()) if fades else None
        try:
            yield
        except ValueError:
            if before is not None:
                self.models[:], self._grams[:], self._moments[:] = before
            if was_open:
                self._begin(None)
            self.centre = centre
            raise

    @contextmanager
    def refusals_named(self) -> Iterator[None]:
        """Name the argument at fault where a kernel reports that the Gram matrix lost its Cholesky factor."""
        try:
            yield
        except ridge.NotPositiveDefinite:
            raise ValueError(
                f"context is too large for a ridge of {self.ridge or 1.0:g} and for what was learnt before, which is "
                "lost beside it to rounding: scale the features to a common size, or give a larger lam"
            ) from None

    def revise(self, X: Floats, row: int, change: float, model: int = 0) -> None:
        """Change a reward that was learnt with a row of X, here called x: b += change x, so theta += change A^-1 x."""
        ridge.revise(self.models, model, X, row, change)

    def _slide(self, x: Floats, reward: float, model: int) -> None:
        """One row enters the window and the oldest leaves it; once per window the sums are taken afresh."""
        assert self.window is not None
        if not np.isfinite(x @ x):
            raise ValueError("context must be finite (and its square must not overflow)")
        place = self._seen % self.window
        leaving = self._recent[place].copy()
        sums: dict[int, tuple[Floats, Floats, Floats]] = {}  # A, b and the sum of rows, of the models that change
        afresh: set[int] = set()  # models whose sums are taken again: what was added and taken away leaves its rounding
        if self._seen >= self.window and leaving[0] >= 0:
            gone = int(leaving[0])
            sums[gone] = self._counted(gone, leaving[2:], leaving[1], -1.0, sums)
            if _MIN_RIDGE_IN_SUMS * (leaving[2:] @ leaving[2:]) > (self.ridge or 1.0):
                afresh.add(gone)
        sums[model] = self._counted(model, x, reward, 1.0, sums)
        self._recent[place] = np.concatenate([[model, reward], x])
        if place == self.window - 1:
            afresh.update(range(self.n_models))
        for m in afresh:
            mine = self._in_window(m)
            gram = (self.ridge or 1.0) * np.eye(self.dim) + mine[:, 2:].T @ mine[:, 2:]
            moment = (self.ridge or 1.0) * self.prior_means[m] + mine[:, 1] @ mine[:, 2:]
            sums[m] = gram, moment, mine[:, 2:].sum(axis=0)
        changed = list(sums)
        before = self.models[changed]
        try:
            for m in changed:
                self._refit(m, *sums[m])
        except ValueError:
            self.models[changed], self._recent[place] = before, leaving
            raise ValueError(f"context is too large for a ridge of {self.ridge or 1.0:g}: sums overflow") from None
        for m in changed:
            self._grams[m], self._moments[m], self._moments[self.n_models + m] = sums[m]
        self._seen += 1

    def _in_window(self, model: int) -> Floats:
        """The rows of the window that a model has learnt, as they are kept."""
        recent = self._recent[: self._seen + 1]  # with the one that is just entering
        rows: Floats = recent[recent[:, 0] == model]
        return rows

    def _refit(self, model: int, gram: Floats, moment: Floats, rows: Floats) -> None:
        """A model of the window from its sums, or from its rows where some are so large that sums lose the others."""
        lam, size = self.ridge or 1.0, float(np.trace(gram))
        if _MIN_RIDGE_IN_SUMS * size <= lam or not _MIN_RIDGE_IN_ROWS * size <= lam:
            ridge.refit(self.models[model], gram, moment, rows if self.counted else rows[:0])
        else:
            mine = self._in_window(model)
            targets = np.stack([mine[:, 1], np.ones(len(mine))], axis=1)
            W, both = fit_rows(
                mine[:, 2:], targets, lam, np.stack([self.prior_means[model], np.zeros(self.dim)], axis=1)
            )
            self.models[model] = 0.0
            self.models[model, : self.dim, : self.dim], self.theta[model] = W, both[:, 0]
            if self.counted:
                self._ones[model] = both[:, 1]
        if self.counted:
            squares = np.einsum("ij,ij->i", self._in_window(model)[:, 2:], self._in_window(model)[:, 2:])
            logs = np.log(squares[squares > MIN_SQUARED_LENGTH])
            self.models[model, -1, :3] = len(squares), logs.sum(), logs.size

    def _counted(
        self, model: int, x: Floats, reward: float, sign: float, sums: dict[int, tuple[Floats, Floats, Floats]]
    ) -> tuple[Floats, Floats, Floats]:
        """A, b and the sum of rows of a model with one row more or less."""
        M = self.n_models
        gram, moment, rows = sums.get(model, (self._grams[model], self._moments[model], self._moments[M + model]))
        return gram + sign * np.outer(x, x), moment + sign * reward * x, rows + sign * x

    def recent_sums(self) -> tuple[float, float, float]:
        """How many rewards are in the window, their sum and that of their squares, measured from the centre."""
        recent = self._recent[: self._seen]
        rewards = recent[recent[:, 0] >= 0, 1]  # -1: of a model that was removed
        return float(rewards.size), float(rewards.sum()), float(rewards @ rewards)

    def explained(self, model: int | None = None) -> tuple[float, float, float, float]:
        """What a model, or all of them (None), explain: r'r of the rewards, the degrees of freedom, 1'r and 1'1.

        theta' A theta - lam ||prior mean||^2, d - lam tr(A^-1), h' A theta and h' A h, where h is what rewards of 1
        would have taught (0 where that is not kept), and rewards are measured from the centre.
        """
        which, lam = slice(None) if model is None else slice(model, model + 1), self.ridge or 1.0
        fit, trace, cross, ones, taught = fits.explained(self.models[which], self.dim)
        if self.prior_mean is not None:
            prior = self.prior_means[which]
            if self.counted:
                prior = prior[self.models[which, -1, 0] > 0.0]
            fit -= lam * float(np.einsum("ij,ij->", prior, prior))
        return fit, taught * self.dim - lam * trace, cross, ones

    # ------------------------------------------------------------------ models that are added up, come and go

    def learnt(self, model: int = 0) -> tuple[Floats, Floats]:
        """What the rewards have added to A and to b: sum x x' and sum r x (r measured from the centre)."""
        lam = self.ridge or 1.0
        A, b, _ = self._sums(model)
        return A - lam * np.eye(self.dim), b - lam * self.prior_means[model]

    def merge(self, other: Ridge) -> None:
        """Add what another ridge of the same settings has learnt; an open ``lam`` stays until ``rescale``."""
        if self.forgets:
            raise ValueError("a model that forgets weighs rewards by their age, which two models do not share")
        if other.ridge is None and not other.models[:, -1, 0].any():  # it has learnt nothing
            return
        lam, counts = self.ridge or other.ridge, self.models[:, -1, :3] + other.models[:, -1, :3]
        if self._blank:
            self.centre, self._blank = other.centre, other._blank
        by = other.centre - self.centre
        added = [(*self.learnt(m), *other.learnt(m), self._sums(m)[2], other._sums(m)[2]) for m in range(self.n_models)]
        self._begin(lam)
        for m, (A, b, other_A, other_b, rows_m, other_rows) in enumerate(added):
            if self.centred:
                other_b = other_b + by * other_rows
            moment = (lam or 1.0) * self.prior_means[m] + b + other_b
            ridge.refit(self.models[m], (lam or 1.0) * np.eye(self.dim) + A + other_A, moment, rows_m + other_rows)
        if self.counted:
            self.models[:, -1, :3] = counts
            self._gone = self._gone + other._gone

    def fade(self, keep: float) -> None:
        """Let what was learnt so far count ``keep`` times as much as before, where nothing is forgotten by itself."""
        if self.forgets:
            raise ValueError("a model that forgets by itself is not to be faded")
        lam = self.ridge or 1.0
        for m in range(self.n_models):
            A, b = self.learnt(m)
            rows = keep * self._sums(m)[2]
            ridge.refit(self.models[m], lam * np.eye(self.dim) + keep * A, lam * self.prior_means[m] + keep * b, rows)
        if self.counted:
            self.models[:, -1, :3] *= keep

    def add_model(self) -> None:
        """One more model, untaught, after the others; its prior mean is theirs, or zeros where each has its own."""
        own = self.prior_mean is not None and self.prior_mean.ndim == 2
        fresh = Ridge(**self.params() | {"n_models": 1, "prior_mean": None if own else self.prior_mean})
        fresh._begin(self.ridge)
        if own:
            self.prior_mean = np.concatenate([self.prior_mean, np.zeros((1, self.dim))])
        M, kept = self.n_models, len(self._moments) // self.n_models
        self._resize(np.concatenate([self.models, fresh.models]))
        self._grams = np.concatenate([self._grams, fresh._grams])
        parts = self._moments.reshape(kept, M, self.dim), fresh._moments.reshape(kept, 1, self.dim)
        self._moments = np.concatenate(parts, axis=1).reshape(-1, self.dim)

    def remove_model(self, model: int) -> None:
        """Forget one model; those after it move down by one."""
        if self.prior_mean is not None and self.prior_mean.ndim == 2:
            self.prior_mean = np.delete(self.prior_mean, model, axis=0)
        places = range(model, len(self._moments), self.n_models)
        if self.counted:
            self._gone = self._gone + self.models[model, -1, :3]
        self._resize(np.delete(self.models, model, axis=0))
        self._grams, self._moments = np.delete(self._grams, model, axis=0), np.delete(self._moments, places, axis=0)
        owner = self._recent[: self._seen, 0]
        owner[owner == model] = -1
        owner[owner > model] -= 1

    def _resize(self, models: Floats) -> None:
        self.n_models = len(models)
        self.models = aligned_zeros(*models.shape)
        self.models[:] = models

    # ------------------------------------------------------------------ rounds in compiled code

    def choose_optimistic(self, contexts: Floats, width: Width, rng: np.random.Generator) -> tuple[Any, Any]:
        """Arms and probabilities of rounds without learning in between, (T, K, d) or (T, 1, d)."""
        return ridge.choose_many(self.models, contexts, self.ridge or 1.0, *width, rng)

    def learn_many(self, contexts: Floats, arms: Any, rewards: Floats) -> None:
        """``learn`` for the arm of each round, in order; contexts are (T, K, d), or (T, 1, d) for a model per arm."""
        lam, rewards = self.ridge or 1.0, rewards - self.centre
        with self.refusals_named():
            ridge.learn_many(self.models, self._grams, self._moments, contexts, arms, rewards, lam, self.discount)

    def optimistic(self, X: Floats, width: Width) -> Floats:
        """Mean + margin, of each row (one model) or of each model (one row, as (1, d)), from the centre on."""
        lam = self.ridge or 1.0
        if isinstance(X, np.ndarray):
            return ridge.optimistic(self.models, X, lam, *width)
        alpha, _, _, extra, beyond = width
        if not extra:
            return np.concatenate([ridge.optimistic(self.models, rows, lam, *width) for rows in dense_pieces(X)])
        means, widths = self.estimate(X)
        return ridge.widen(means - self.centre, widths, alpha, extra, beyond)

    def play_optimistic(
        self, contexts: Floats, rewards: Floats, width: Width, rng: np.random.Generator
    ) -> tuple[Any, Any, Any]:
        """A block of optimistic rounds: arms, probabilities, rewards, which are measured from the centre."""
        models, grams, moments, lam, discount = self.raw
        settings = lam, discount, *width
        with self.refusals_named():
            return ridge.play_optimistic(models, grams, moments, contexts, rewards, *settings, rng)

    def play_sampled(
        self,
        contexts: Floats,
        rewards: Floats,
        first: int,
        scale: Spread,
        draws: int,
        rng: np.random.Generator,
    ) -> tuple[Any, Any, Any]:
        """A block of Thompson's rounds that begins at round ``first``: arms, probabilities (NaN: one draw), rewards."""
        models, grams, moments, lam, discount = self.raw
        schedule = (lam, discount, first, *scale, draws)
        with self.refusals_named():
            return thompson.play(models, grams, moments, contexts, rewards, *schedule, rng)

    def sample(self, z: Floats, scale: float, model: int = 0) -> Floats:
        """theta + scale W'z: with z standard normal, a draw from N(theta, scale^2 A^-1)."""
        sampled: Floats = self.theta[model] + scale * (z @ self.factor(model))
        return sampled
