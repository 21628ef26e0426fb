"""The one posterior behind the four kernel agents, in the form that is cheapest for what it has seen."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from armwise import persist
from armwise.agent import Floats, Played, count, positive
from armwise.kernel.kernels import Kernel, KernelLike, as_kernel
from armwise.numerics import gp, gp_budget
from armwise.numerics.kernels import Program

MOST_ARMS = 1024  # a larger arm set is not kept as a posterior over the arms: K^2 numbers would be too many


def check_definite(kernel: Kernel, gram: Floats) -> None:
    """Refuse a kernel whose matrix has a negative eigenvalue; ours are positive definite by construction."""
    if kernel.program is None and len(gram) <= MOST_ARMS:
        low = float(np.linalg.eigvalsh(gram)[0])
        if low < -gp.INDEFINITE * float(np.abs(np.diag(gram)).max()):
            raise ValueError(f"kernel is not positive definite: {kernel!r} has an eigenvalue of {low:.3g} on X")


class _Form(persist.Saved):
    """One way to hold the posterior. ``information_gain`` is 1/2 sum ln(1 + variance / noise) over what was learnt."""

    _namespace = "kernels."
    information_gain: float = 0.0

    def __init__(self, kernel: Kernel, noise: float) -> None:
        self.kernel, self.noise = kernel, noise

    @abstractmethod
    def estimate(self, X: Floats) -> tuple[Floats, Floats]:
        """Means and variances of the rows of X; changes nothing."""

    def _check(self, variances: Floats, prior: Floats) -> None:
        wrong = (variances < -gp.INDEFINITE * prior) | (prior < 0.0)
        if wrong.any():
            worst = int(np.argmax(wrong))
            raise ValueError(
                f"kernel is not positive definite: {self.kernel!r} leaves a variance of {variances[worst]:.3g} "
                f"where k(x, x) = {prior[worst]:.3g}"
            )


class Growing(_Form):
    """All points, and K + noise I = LL' which grows by one row a reward: O(t^2), or O(K t^2) to estimate K arms."""

    _learnt = ("_Z", "_L", "_c", "information_gain")

    def __init__(self, kernel: Kernel, noise: float) -> None:
        super().__init__(kernel, noise)
        self._n = 0
        self._Z, self._L, self._c = np.empty((0, 0)), np.empty(0), np.empty(0)

    def _state(self) -> dict[str, Any]:
        n = self._n
        return super()._state() | {"_Z": self._Z[:n], "_L": self._L[: n * (n + 1) // 2], "_c": self._c[:n]}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._n = len(self._c)

    def estimate(self, X: Floats) -> tuple[Floats, Floats]:
        prior = self.kernel.diag(X)
        if self._n == 0:
            self._check(prior, prior)
            return np.zeros(len(X)), prior
        V = self.kernel(X, self._Z[: self._n])
        means, variances = gp.growing_estimate(self._L, self._c, self._n, V, prior)
        self._check(variances, prior)
        return means, variances

    def update(self, x: Floats, reward: float, noise: float | None = None) -> None:
        """Learn one reward; ``noise`` is its variance where it differs from the others'."""
        noise = self.noise if noise is None else noise
        row, prior = (
            self.kernel(x[None], self._Z[: self._n]) if self._n else np.empty((1, 0)),
            self.kernel.diag(x[None]),
        )
        self._check(prior, prior)
        self._reserve(1, len(x))
        variance = gp.growing_append(self._L, self._c, self._n, row, float(prior[0]), noise, reward)
        self._check(np.array([variance]), prior)
        self._Z[self._n] = x
        self._n += 1
        self.information_gain += 0.5 * math.log1p(max(variance, 0.0) / noise)

    def _reserve(self, more: int, dim: int) -> None:
        """Room for more rows; doubling keeps the cost of copying below that of the solves."""
        if self._n + more > len(self._c):
            n, size = self._n, max(self._n + more, 2 * len(self._c), 16)
            Z, L, c = np.empty((size, dim)), np.empty(size * (size + 1) // 2), np.empty(size)
            if n:
                Z[:n], L[: n * (n + 1) // 2], c[:n] = self._Z[:n], self._L[: n * (n + 1) // 2], self._c[:n]
            self._Z, self._L, self._c = Z, L, c

    def play(self, program: Program, width: gp.Width, t: int, contexts: Floats, rewards: Floats, *rest: Any) -> int:
        T = min(len(rewards), max(256, self._n))  # room is doubled, not made for the whole block at once
        self._reserve(T, contexts.shape[2])
        done, self.information_gain = gp.growing_play(
            program, self._Z, self._L, self._c, self._n, self.noise, width, t, self.information_gain,
            contexts[:T], rewards[:T], *rest,
        )  # fmt: skip
        self._n += done
        return int(done)


class Arms(_Form):
    """The joint posterior of a fixed set of arms: O(K^2) a reward, whatever t, and O(K) to estimate them all.

    Counts and sums of rewards say all that was learnt, so it is made afresh from them now and then (rounding cannot
    add up) and turned into a ``Growing`` form, exactly, the day other arms are offered.
    """

    _learnt = ("_prior", "_mean", "_cov", "_counts", "_sums", "_age", "information_gain")

    def __init__(self, kernel: Kernel, noise: float, points: Floats) -> None:
        super().__init__(kernel, noise)
        self.points = points.copy()
        self._prior = kernel(self.points)
        check_definite(kernel, self._prior)
        K = len(points)
        self._noises = np.maximum(noise, gp.JITTER * np.diag(self._prior))
        self._mean, self._cov = np.zeros(K), self._prior.copy()
        self._counts, self._sums, self._age = np.zeros(K, np.int64), np.zeros(K), 0
        self._period = 1000 + K  # K^3 / period stays below the update's K^2
        self._elsewhere: Growing | None = None

    def same(self, X: Floats) -> bool:
        return np.array_equal(X, self.points)

    def estimate(self, X: Floats) -> tuple[Floats, Floats]:
        if self.same(X):
            return self._mean.copy(), np.diag(self._cov).copy()
        self._elsewhere = self._elsewhere or self.grown()
        return self._elsewhere.estimate(X)

    def update(self, arm: int, reward: float) -> None:
        self.information_gain, self._age = gp.arms_learn(
            self._prior, self._mean, self._cov, self._counts, self._sums,
            self._age, self._period, self._noises, self.information_gain, arm, reward,
        )  # fmt: skip
        self._elsewhere = None

    def refitted(self, kernel: Kernel, noise: float) -> Arms:
        """The posterior of the same rewards under another kernel and noise."""
        form = Arms(kernel, noise, self.points)
        form._counts, form._sums = self._counts.copy(), self._sums.copy()
        gp.arms_refresh(form._prior, form._counts, form._sums, form._noises, form._mean, form._cov)
        S = np.sqrt(form._counts / form._noises)
        form.information_gain = float(0.5 * np.linalg.slogdet(np.eye(len(S)) + S[:, None] * form._prior * S)[1])
        return form

    def grown(self) -> Growing:
        """The same posterior as a growing factor: n rewards of one arm are one of their mean, of variance noise / n."""
        form = Growing(self.kernel, self.noise)
        for arm in np.flatnonzero(self._counts):
            n = int(self._counts[arm])
            form.update(self.points[arm], float(self._sums[arm]) / n, self.noise / n)
        form.information_gain = self.information_gain
        return form

    def play(self, width: gp.Width, t: int, *rest: Any) -> int:
        done, self.information_gain, self._age = gp.arms_play(
            self.points, self._prior, self._mean, self._cov, self._counts, self._sums,
            self._age, self._period, self._noises, width, t, self.information_gain, *rest,
        )  # fmt: skip
        self._elsewhere = None
        return int(done)


class Budgeted(_Form):
    """At most m inducing points: O(m^2) a reward, O(K m^2) to estimate K arms, for ever; see ``numerics.gp_budget``."""

    _learnt = ("_Z", "_L", "_U", "_c", "_Q", "_counters", "information_gain")

    def __init__(self, kernel: Kernel, noise: float, budget: int) -> None:
        super().__init__(kernel, noise)
        self.budget = m = budget
        self._Z, self._Q = np.zeros((m, 0)), np.zeros((m, m))
        self._L, self._U, self._c = np.zeros(m * (m + 1) // 2), np.zeros(m * (m + 1) // 2), np.zeros(m)
        self._counters = np.zeros(2, np.int64)

    @property
    def points(self) -> Floats:
        return self._Z[: self._counters[0]]

    def _cross(self, X: Floats) -> Floats:
        return self.kernel(X, self.points) if self._counters[0] else np.empty((len(X), 0))

    def _open(self, dim: int) -> None:
        if self._counters[0] == 0:
            self._Z = np.zeros((self.budget, dim))

    def estimate(self, X: Floats) -> tuple[Floats, Floats]:
        prior = self.kernel.diag(X)
        means, variances = gp_budget.budget_estimate(
            self._L, self._U, self._c, int(self._counters[0]), self._cross(X), prior
        )
        self._check(variances, prior)
        return means, variances

    def update(self, x: Floats, reward: float) -> None:
        prior, row = self.kernel.diag(x[None]), self._cross(x[None])
        self._check(prior, prior)
        self._open(len(x))
        variance = gp_budget.budget_append(
            self._Z, self._L, self._U, self._c, self._Q, self._counters, x, row, float(prior[0]), self.noise, reward
        )
        self._check(np.array([variance]), prior)
        self.information_gain += 0.5 * math.log1p(max(variance, 0.0) / self.noise)

    def play(self, program: Program, width: gp.Width, t: int, contexts: Floats, *rest: Any) -> int:
        self._open(contexts.shape[2])
        done, self.information_gain = gp_budget.budget_play(
            program, self._Z, self._L, self._U, self._c, self._Q, self._counters,
            self.noise, width, t, self.information_gain, contexts, *rest,
        )  # fmt: skip
        return int(done)


class KernelPosterior(persist.Saved):
    """A Gaussian process posterior, learnt one reward at a time and never refitted.

    mean(x) = k'(K + noise I)^-1 r and variance(x) = k(x, x) - k'(K + noise I)^-1 k, ``noise`` a variance, held as

    - the joint posterior of the arms while every round offers the same at most 1024 arms (found out by comparing X
      with the first X learnt from): O(K^2) a reward, whatever t;
    - a Cholesky factor that grows by one row a reward otherwise: O(t^2), O(K t^2) to estimate K arms. Turning the
      first into the second is exact;
    - with ``budget=m``, m inducing points: O(m^2) a reward, O(K m^2) to estimate, bounded memory. While there is room
      every point that is new (a residual variance over 1e-6 of k(x, x)) joins, so up to m of them nothing more is
      approximated; then a point replaces the least novel one when it is at least twice as novel. This is the novelty
      criterion of sparse online Gaussian processes (Csato and Opper 2002; Engel, Mannor, Meir 2004) with exchange:
      every exchange doubles det Kmm or better, so they come to an end. A replaced point is integrated out, and a point
      that does not join is learnt with its residual variance as extra noise (FITC; Snelson and Ghahramani 2006): at
      the budget nothing that was learnt is dropped, so the decisions do not jump. A budget too small for the kernel
      and the rows errs on the side of exploring: what the points cannot express stays uncertain for ever (drawn at
      length-scale 0.2 in the unit square, 60 points add 1 % of regret, 50 add 20 %, 40 more than double it).

    Jitter: a noise variance below 1e-12 k(x, x) counts as that, so points that coincide do no harm.

    >>> from armwise.kernel.kernels import RBF
    >>> model = KernelPosterior(RBF(), noise=0.01)
    >>> model.update(np.array([0.0]), 1.0)
    >>> means, widths = model.estimate(np.array([[0.0], [3.0]]))
    >>> means.round(4), widths.round(4)
    (array([0.9901, 0.011 ]), array([0.0995, 0.9999]))
    """

    _namespace = "kernels."
    _learnt = ("kernel", "noise", "_form", "dim")

    def __init__(self, kernel: KernelLike, noise: float, budget: int | None = None) -> None:
        self.kernel, self.noise = as_kernel(kernel), positive("noise", noise)
        self.budget = None if budget is None else count("budget", budget)
        self.dim: int | None = None  # columns of what was learnt
        self._form: Growing | Arms | Budgeted = self._empty()

    def _empty(self) -> Growing | Budgeted:
        if self.budget is None:
            return Growing(self.kernel, self.noise)
        return Budgeted(self.kernel, self.noise, self.budget)

    @property
    def information_gain(self) -> float:
        """1/2 ln det(I + K / noise) of the points learnt from; with a budget, as far as that posterior knows.

        >>> from armwise.kernel.kernels import RBF
        >>> model = KernelPosterior(RBF(), noise=1.0)
        >>> model.update(np.zeros(1), 1.0)
        >>> round(model.information_gain, 4)
        0.3466
        """
        return self._form.information_gain

    def estimate(self, X: Floats) -> tuple[Floats, Floats]:
        """Posterior means and standard deviations of the rows of X.

        >>> from armwise.kernel.kernels import Linear
        >>> KernelPosterior(Linear(), noise=1.0).estimate(np.array([[3.0, 4.0]]))
        (array([0.]), array([5.]))
        """
        if self.dim is None and self.kernel.program is None:
            check_definite(self.kernel, self.kernel(X))  # before anything is learnt: a wrong kernel is told at once
        means, variances = self._form.estimate(X)
        return means, np.sqrt(np.maximum(variances, 0.0))

    def update(self, x: Floats, reward: float) -> None:
        """Learn the reward of a row.

        >>> from armwise.kernel.kernels import Linear
        >>> model = KernelPosterior(Linear(), noise=1.0)
        >>> model.update(np.ones(1), 3.0)
        >>> model.estimate(np.ones((1, 1)))[0]
        array([1.5])
        """
        if isinstance(self._form, Arms):
            self._form = self._form.grown()
        self._form.update(x, reward)
        self.dim = len(x)

    def update_arm(self, X: Floats, arm: int, reward: float) -> None:
        """Learn the reward of row ``arm`` of X; while X stays the same, only its rows are kept up to date.

        >>> from armwise.kernel.kernels import Linear
        >>> model = KernelPosterior(Linear(), noise=1.0)
        >>> model.update_arm(np.eye(2), 1, 3.0)
        >>> model.estimate(np.eye(2))[0]
        array([0. , 1.5])
        """
        if self.dim is None and self.budget is None and len(X) <= MOST_ARMS:
            self._form = Arms(self.kernel, self.noise, X)
        if isinstance(self._form, Arms) and self._form.same(X):
            self._form.update(arm, reward)
            self.dim = X.shape[1]
        else:
            self.update(X[arm], reward)

    def play(
        self, contexts: Floats, rewards: Floats, width: gp.Width, t: int, rng: np.random.Generator
    ) -> tuple[int, Played]:
        """Rounds from t on in compiled code, as far as the present form goes: how many, and what they brought."""
        T = len(rewards)
        played = Played(np.empty(T, np.int64), np.empty(T), np.empty(T))
        rest = (contexts, rewards, rng, *played)
        program = self.kernel.program
        if program is None or (self.dim is None and self.budget is None and contexts.shape[1] <= MOST_ARMS):
            return 0, played  # the first reward decides whether the arms are kept
        if isinstance(self._form, Arms):
            return self._form.play(width, t, *rest), played
        self.dim = contexts.shape[2]
        return self._form.play(program, width, t, *rest), played

    def refit(self, kernel: Kernel, noise: float, X: Floats, rewards: Floats) -> None:
        """Start again with another kernel and noise, from all that was learnt.

        >>> from armwise.kernel.kernels import Linear, RBF
        >>> model = KernelPosterior(Linear(), noise=1.0)
        >>> model.refit(RBF(), 0.5, np.zeros((1, 1)), np.ones(1))
        >>> model.estimate(np.zeros((1, 1)))[0].round(4)
        array([0.6667])
        """
        self.kernel, self.noise = kernel, noise
        if isinstance(self._form, Arms):
            self._form = self._form.refitted(kernel, noise)
            return
        self._form = self._empty()
        for x, reward in zip(X, rewards):
            self.update(x, float(reward))
