"""The posterior of the four kernel agents, in the form that is cheapest for the rows seen so far."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from armwise.core import saving
from armwise.core.agent import Floats, Played, count, positive
from armwise.core.arguments import MAX_MAGNITUDE
from armwise.models.kernels import Kernel, KernelLike, Program, as_kernel
from armwise.native import gp, gp_budget

Width = tuple[int, float, float]  # which rule, and its two parameters

MAX_EXTENSION = 1e7  # multiplications (milliseconds) of enlarging a joint posterior before it has saved any


def check_definite(kernel: Kernel, gram: Floats) -> None:
    """Refuse a kernel whose matrix has a negative eigenvalue; ours are positive definite by construction."""
    if kernel.program is None and len(gram) <= gp.MAX_JOINT_ROWS:
        low = float(np.linalg.eigvalsh(gram)[0])
        if low < -gp.MAX_ROUNDING * float(np.abs(np.diag(gram)).max()):
            raise ValueError(f"kernel is not positive definite: {kernel!r} has an eigenvalue of {low:.3g} on X")


def check_size(kernel: Kernel, prior: Floats) -> None:
    """Refuse rows whose k(x, x) is so large (or NaN) that the posterior would overflow."""
    if not (prior <= MAX_MAGNITUDE).all():
        raise ValueError(
            f"X is too large for the kernel {kernel!r}: k(x, x) = {prior[~(prior <= MAX_MAGNITUDE)][0]:.3g}, "
            f"expected at most {MAX_MAGNITUDE:g}; scale the features"
        )


def distinct(X: Floats) -> Floats:
    """The rows of X without repetitions, in their order."""
    first = {(row + 0.0).tobytes(): a for a, row in reversed(list(enumerate(X)))}
    return X[sorted(first.values())]


class _Form(saving.Saved):
    """One way to hold the posterior. ``information_gain`` is 1/2 sum ln(1 + variance / noise) over what was learnt."""

    _namespace = "kernels."
    information_gain: float = 0.0

    def __init__(self, kernel: Kernel, noise: float) -> None:
        self.kernel, self.noise = kernel, noise

    @abstractmethod
    def estimate(self, X: Floats) -> tuple[Floats, Floats]:
        """Means and variances of the rows of X; changes nothing."""

    # Copies and pickles use the saved state: a compiled object has no other.
    def __getstate__(self) -> dict[str, Any]:
        return {"params": self.params(), "learnt": self._state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).__init__(self, **state["params"])
        self._restore(state["learnt"])

    def _prior(self, X: Floats) -> Floats:
        """k(x, x) of the rows of X, checked."""
        prior = self.kernel.diag(X)
        check_size(self.kernel, prior)
        self._check(prior, prior)
        return prior

    def _check(self, variances: Floats, prior: Floats) -> None:
        wrong = ~(variances >= -gp.MAX_ROUNDING * prior) | (prior < 0.0)
        if wrong.any():
            worst = int(np.argmax(wrong))
            raise ValueError(
                f"kernel is not positive definite: {self.kernel!r} leaves a variance of {variances[worst]:.3g} "
                f"where k(x, x) = {prior[worst]:.3g}"
            )


class Growing(_Form):
    """K + noise / counts = LL' over the n distinct rows learnt: O(n^2) per reward, O(K n^2) to estimate K arms.

    It counts the rows offered; ``joint`` is the same posterior over them, once they recur often enough.
    """

    def __init__(self, kernel: Kernel, noise: float) -> None:
        super().__init__(kernel, noise)
        self._factor: gp.Factor | None = None  # as long as nothing is learnt

    @property
    def information_gain(self) -> float:  # type: ignore[override]
        return 0.0 if self._factor is None else self._factor.gain

    def _state(self) -> dict[str, Any]:
        factor = self._factor
        return {name: None if factor is None else getattr(factor, name) for name in _FACTOR}

    def _restore(self, state: dict[str, Any]) -> None:
        if state["points"] is not None:
            self._factor = gp.Factor.restored(self.noise, *(state[name] for name in _FACTOR))

    def _opened(self, dim: int) -> gp.Factor:
        if self._factor is None:
            self._factor = gp.Factor(dim, self.noise)
        return self._factor

    def _cross(self, factor: gp.Factor, X: Floats) -> Floats:
        if self.kernel.program is not None:
            return factor.cross(self.kernel.program, X)
        return self.kernel(X, factor.points) if len(factor) else np.empty((len(X), 0))

    def estimate(self, X: Floats) -> tuple[Floats, Floats]:
        prior = self._prior(X)
        if self._factor is None:
            return np.zeros(len(X)), prior
        means, variances = self._factor.estimate(self._cross(self._factor, X), prior)
        self._check(variances, prior)
        return means, variances

    def update(self, x: Floats, reward: float) -> None:
        prior = self._prior(x[None])
        factor = self._opened(len(x))
        variance = factor.learn(x, self._cross(factor, x[None]), float(prior[0]), reward)
        self._check(np.array([variance]), prior)
        if factor.stale:
            factor.refresh(self.kernel(factor.points))

    def offer(self, X: Floats) -> None:
        """Count the arms of a round that was learnt."""
        self._opened(X.shape[1]).offer(X)

    @property
    def joint(self) -> Joint | None:
        """The same posterior over the offered rows, if they recur so often that it is cheaper."""
        factor = self._factor
        if factor is None or not factor.due:
            return None
        form = Joint(self.kernel, self.noise, factor.offered)
        counts, sums, at = np.zeros(len(form.points), np.int64), np.zeros(len(form.points)), form.find(factor.points)
        counts[at], sums[at] = factor.counts, factor.sums
        form.recall(counts, sums, factor.gain)
        return form

    def play(self, program: Program, width: Width, t: int, contexts: Floats, *rest: Any) -> int:
        return self._opened(contexts.shape[2]).play(program, width, t, contexts, *rest)


_FACTOR = ("points", "L", "c", "sums", "prior", "counts", "offered", "gain", "saved", "age")


class Joint(_Form):
    """The joint posterior of the distinct rows offered so far: O(n^2) per reward, whatever t, and O(K) to estimate.

    Counts and sums of rewards say all that was learnt, so it is made afresh from them now and then (rounding cannot
    add up), when other rows come, and when it is turned into a ``Growing`` form because too many others come.
    """

    _learnt = ("_spent",)

    def __init__(self, kernel: Kernel, noise: float, points: Floats, *, _gram: Floats | None = None) -> None:
        super().__init__(kernel, noise)
        self.points = points.copy()
        gram = kernel(self.points) if _gram is None else _gram
        check_size(kernel, np.diag(gram))
        check_definite(kernel, gram)
        self._joint = gp.Joint(self.points, gram, noise)
        self._spent = 0.0  # multiplications that making it larger has cost
        self._elsewhere: Growing | None = None

    def params(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "noise": self.noise, "points": self.points}

    @property
    def information_gain(self) -> float:  # type: ignore[override]
        return self._joint.gain

    def _state(self) -> dict[str, Any]:
        return super()._state() | {name: getattr(self._joint, name) for name in ("prior", *_JOINT)}

    def _restore(self, state: dict[str, Any]) -> None:
        self._joint = gp.Joint(self.points, state["prior"], self.noise)
        self._joint.restore(*(state[name] for name in _JOINT))
        self._spent = state["_spent"]

    @property
    def native(self) -> gp.Joint:
        return self._joint

    def find(self, X: Floats) -> Any:
        """The positions of the rows of X among the points; -1 for a row that is not among them."""
        return self._joint.find(X)

    def recall(self, counts: Any, sums: Floats, gain: float) -> None:
        """Become the posterior of so many rewards per point, with these sums."""
        self._joint.recall(counts, sums)
        self._joint.gain = gain

    def estimate(self, X: Floats) -> tuple[Floats, Floats]:
        known = self._joint.estimate(X)
        if known is not None:
            return known
        self._elsewhere = self._elsewhere or self.grown()
        return self._elsewhere.estimate(X)

    def learn(self, X: Floats, arm: int, reward: float) -> bool:
        """Learn the reward of a row; False if some row of X is not among the points."""
        self._elsewhere = None
        return self._joint.learn(X, arm, reward)

    def extended(self, X: Floats) -> Joint | None:
        """The same posterior with the rows of X among its points; None if that is too much work, or too many rows."""
        joint = self._joint
        fresh = distinct(X[joint.find(X) < 0])
        counts, old, size = joint.counts, len(self.points), len(self.points) + len(fresh)
        learnt = int(np.count_nonzero(counts))
        # A growing factor would have spent K n^2 / 2 in each of the rounds so far.
        paid = MAX_EXTENSION + 0.5 * len(X) * float(learnt) ** 2 * float(counts.sum())
        work = self._spent + gp.joint_work(learnt, size)
        if size > gp.MAX_JOINT_ROWS or work > paid:
            return None
        points, gram = np.vstack([self.points, fresh]), np.empty((size, size))
        gram[:old, :old], gram[old:] = joint.prior, self.kernel(fresh, points)
        gram[:old, old:] = gram[old:, :old].T
        form = Joint(self.kernel, self.noise, points, _gram=gram)
        form.recall(np.append(counts, np.zeros(len(fresh), np.int64)), np.append(joint.sums, np.zeros(len(fresh))),
                    joint.gain)  # fmt: skip
        form._spent = work
        return form

    def refitted(self, kernel: Kernel, noise: float) -> Joint:
        """The posterior of the same rewards under another kernel and noise."""
        form = Joint(kernel, noise, self.points)
        S = np.sqrt(self._joint.counts / form._joint.noises)
        gain = 0.5 * np.linalg.slogdet(np.eye(len(S)) + S[:, None] * form._joint.prior * S)[1]
        form.recall(self._joint.counts, self._joint.sums, float(gain))
        return form

    def grown(self) -> Growing:
        """The same posterior as a growing factor: n rewards of one row are one of their mean, of variance noise / n."""
        joint, form = self._joint, Growing(self.kernel, self.noise)
        at = np.flatnonzero(joint.counts)
        gram, n = joint.prior[np.ix_(at, at)], len(at)
        factor = gp.Factor.restored(
            self.noise, self.points[at], np.zeros(n * (n + 1) // 2), np.zeros(n), joint.sums[at], np.diag(gram).copy(),
            joint.counts[at], self.points, joint.gain, 0.0, 0,
        )  # fmt: skip
        factor.refresh(gram)
        form._factor = factor
        return form

    def play(self, width: Width, t: int, *rest: Any) -> int:
        self._elsewhere = None
        return self._joint.play(width, t, *rest)


_JOINT = ("counts", "sums", "mean", "cov", "gain", "age")


class BudgetedPosterior(_Form):
    """At most m inducing points: O(m^2) a reward, O(K m^2) to estimate K arms, at any t; see ``native.gp_budget``."""

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
        prior = self._prior(X)
        means, variances = gp_budget.budget_estimate(
            self._L, self._U, self._c, int(self._counters[0]), self._cross(X), prior
        )
        self._check(variances, prior)
        return means, variances

    def update(self, x: Floats, reward: float) -> None:
        prior, row = self._prior(x[None]), self._cross(x[None])
        self._open(len(x))
        variance = gp_budget.budget_append(
            self._Z, self._L, self._U, self._c, self._Q, self._counters, x, row, float(prior[0]), self.noise, reward
        )
        self._check(np.array([variance]), prior)
        self.information_gain += 0.5 * math.log1p(max(variance, 0.0) / self.noise)

    def play(self, program: Program, width: Width, t: int, contexts: Floats, *rest: Any) -> int:
        self._open(contexts.shape[2])
        done, self.information_gain = gp_budget.budget_play(
            program, self._Z, self._L, self._U, self._c, self._Q, self._counters,
            self.noise, width, t, self.information_gain, contexts, *rest,
        )  # fmt: skip
        return int(done)


class KernelPosterior(saving.Saved):
    """A Gaussian process posterior, learnt one reward at a time and never refitted.

    mean(x) = k'(K + noise I)^-1 r and variance(x) = k(x, x) - k'(K + noise I)^-1 k, ``noise`` a variance, held as

    - the joint posterior of the distinct rows offered so far, at most 1024, as long as rows come back, in any order:
      O(n^2) per reward, whatever t;
    - a Cholesky factor over the distinct rows learnt otherwise: O(n^2) per reward, O(K n^2) to estimate K arms. A
      reward of a row that was learnt before adds nothing to n. It takes note of what is offered, and becomes the
      first again when that has become cheaper. Both passages are exact;
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
    """

    _namespace = "kernels."
    _learnt = ("kernel", "noise", "_form", "dim")

    def __init__(self, kernel: KernelLike, noise: float, budget: int | None = None) -> None:
        self.kernel, self.noise = as_kernel(kernel), positive("noise", noise)
        self.budget = None if budget is None else count("budget", budget)
        self.dim: int | None = None  # columns of what was learnt
        self._form: Growing | Joint | BudgetedPosterior = self._empty()

    @property
    def joint(self) -> gp.Joint | None:
        """The compiled joint posterior, where the posterior is held as one."""
        return self._form.native if isinstance(self._form, Joint) else None

    def _empty(self) -> Growing | BudgetedPosterior:
        if self.budget is None:
            return Growing(self.kernel, self.noise)
        return BudgetedPosterior(self.kernel, self.noise, self.budget)

    @property
    def information_gain(self) -> float:
        """1/2 ln det(I + K / noise) of the points learnt from; with a budget, as far as that posterior knows."""
        return self._form.information_gain

    def estimate(self, X: Floats) -> tuple[Floats, Floats]:
        """Posterior means and standard deviations of the rows of X."""
        if self.dim is None and self.kernel.program is None:
            check_definite(self.kernel, self.kernel(X))  # before anything is learnt: a wrong kernel is told at once
        means, variances = self._form.estimate(X)
        return means, np.sqrt(np.maximum(variances, 0.0))

    def update(self, x: Floats, reward: float) -> None:
        """Learn the reward of a row."""
        if isinstance(self._form, Joint):
            if self._form.learn(x[None], 0, reward):
                return
            self._form = self._form.grown()
        self._form.update(x, reward)
        self.dim = len(x)

    def update_arm(self, X: Floats, arm: int, reward: float) -> None:
        """Learn the reward of row ``arm`` of X, and that all its rows are offered."""
        form = self._form
        if self.dim is None and self.budget is None and len(X) <= gp.MAX_JOINT_ROWS:
            form = Joint(self.kernel, self.noise, distinct(X))
        if isinstance(form, Joint) and not form.learn(X, arm, reward):
            form = form.extended(X) or form.grown()
            if isinstance(form, Joint):
                form.learn(X, arm, reward)
        if not isinstance(form, Joint):
            form.update(X[arm], reward)
        if isinstance(form, Growing):
            form.offer(X)
            form = form.joint or form
        self._form, self.dim = form, X.shape[1]

    def play(self, contexts: Floats, rewards: Floats, width: Width, t: int, rng: np.random.Generator) -> Played:
        """Play rounds from t on in compiled code, as far as the present form goes; perhaps none."""
        T = len(rewards)
        columns = np.empty(T, np.int64), np.empty(T), np.empty(T)
        done = self._play(contexts, width, t, (contexts, rewards, rng, *columns))
        arms, probabilities, got = columns
        return Played(arms[:done], probabilities[:done], got[:done])

    def _play(self, contexts: Floats, width: Width, t: int, block: tuple[Any, ...]) -> int:
        program = self.kernel.program
        if program is None or (self.dim is None and self.budget is None and contexts.shape[1] <= gp.MAX_JOINT_ROWS):
            return 0  # the first reward makes the joint posterior
        if isinstance(self._form, Joint):
            return self._form.play(width, t, *block)
        done = self._form.play(program, width, t, *block)
        if done:
            self.dim = contexts.shape[2]
        if isinstance(self._form, Growing):
            self._form = self._form.joint or self._form
        return done

    def refit(self, kernel: Kernel, noise: float, X: Floats, rewards: Floats) -> None:
        """Start again with another kernel and noise, from all that was learnt."""
        self.kernel, self.noise = kernel, noise
        if isinstance(self._form, Joint):
            self._form = self._form.refitted(kernel, noise)
            return
        self._form = self._empty()
        for x, reward in zip(X, rewards):
            self.update(x, float(reward))
