"""The incremental posterior against full matrices: every form of it, and the passages between them."""

# mypy: disable-error-code="arg-type, union-attr"

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sk

from armwise.core import saving
from armwise.models import kernels
from armwise.models.kernel_posterior import BudgetedPosterior, Growing, Joint, KernelPosterior
from armwise.native import gp, gp_budget


def naive(kernel, noise, points, rewards, X):
    """Means and standard deviations by explicit inverse."""
    inverse = np.linalg.inv(kernel(points) + noise * np.eye(len(points)))
    cross = kernel(X, points)
    variances = kernel.diag(X) - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    return cross @ inverse @ rewards, np.sqrt(variances.clip(min=0.0))


def close(one, two, tolerance=1e-8):
    return all(np.allclose(a, b, rtol=0, atol=tolerance) for a, b in zip(one, two))


@pytest.mark.parametrize("kernel", [kernels.RBF(0.4), 0.5 * kernels.Matern(0.6, nu=2.5) + kernels.Linear()])
def test_growing_factor_equals_full_matrices(kernel):
    rng = np.random.default_rng(1)
    points, rewards, X = rng.random((150, 3)), rng.normal(size=150), rng.random((9, 3))
    model = KernelPosterior(kernel, noise=0.04)
    for i in range(150):
        model.update(points[i], rewards[i])
        assert close(model.estimate(X), naive(kernel, 0.04, points[: i + 1], rewards[: i + 1], X))
    assert model.information_gain == pytest.approx(kernels.information_gain(kernel, points, noise=0.2), rel=1e-9)


def test_rows_that_come_back_are_one_row_and_equal_full_matrices():
    """Arms that are offered again, in any order and with others between them, are held as one joint posterior."""
    rng, kernel = np.random.default_rng(2), kernels.RBF(0.5)
    X = rng.random((6, 2))
    X[5] = X[4]  # two arms that are one
    model, points, rewards = KernelPosterior(kernel, noise=0.09), [], []

    def learn(offered, arm):
        points.append(offered[arm])
        rewards.append(rng.normal())
        model.update_arm(offered, arm, rewards[-1])

    for _ in range(100):
        offered = X[rng.permutation(6)[: int(rng.integers(1, 7))]]
        learn(offered, int(rng.integers(len(offered))))
        assert close(model.estimate(X), naive(kernel, 0.09, np.array(points), np.array(rewards), X))
    assert isinstance(model._form, Joint)
    assert len(model._form.points) == 5
    assert model.information_gain == pytest.approx(kernels.information_gain(kernel, np.array(points), noise=0.3))
    other = rng.random((4, 2))  # asked about other rows it answers exactly, and stays as it is
    assert close(model.estimate(other), naive(kernel, 0.09, np.array(points), np.array(rewards), other))
    assert len(model._form.points) == 5
    learn(other, 1)  # learning from them takes them in
    assert len(model._form.points) == 9
    assert close(model.estimate(X), naive(kernel, 0.09, np.array(points), np.array(rewards), X))
    assert model.information_gain == pytest.approx(kernels.information_gain(kernel, np.array(points), noise=0.3))


@pytest.mark.parametrize("kernel", [kernels.RBF(0.5), sk.Matern(0.7, nu=1.2)])
def test_the_passages_between_the_forms_are_exact(kernel, monkeypatch):
    """Fresh rows every round make it a factor; rows that then come back again and again make it joint again."""
    monkeypatch.setattr("armwise.models.kernel_posterior.MAX_EXTENSION", 2000.0)
    rng, ours = np.random.default_rng(5), kernels.as_kernel(kernel)
    model, points, rewards, forms = KernelPosterior(kernel, noise=0.09), [], [], []
    shop = rng.random((40, 2))
    for t in range(300):
        X = rng.random((4, 2)) if t < 20 else shop[rng.choice(40, 4, replace=False)]
        arm, reward = int(rng.integers(4)), rng.normal()
        model.update_arm(X, arm, reward)
        points.append(X[arm])
        rewards.append(reward)
        forms.append(type(model._form))
        if t % 10 == 9:
            assert close(model.estimate(X), naive(ours, 0.09, np.array(points), np.array(rewards), X))
            assert close(model.estimate(X + 0.1), naive(ours, 0.09, np.array(points), np.array(rewards), X + 0.1))
    assert forms[0] is Joint and forms[19] is Growing and forms[-1] is Joint
    assert model.information_gain == pytest.approx(kernels.information_gain(ours, np.array(points), noise=0.3))


@pytest.mark.parametrize("noise", [0.04, 1e-6])
def test_a_factor_merges_rows_that_are_learnt_again(noise):
    """Thousands of rewards of 12 rows, one by one: the factor has 12 rows and the posterior of all of them.

    At 1,000 downdates it is made afresh; were the downdate unstable, or the count wrong, the means would drift.
    """
    rng, kernel = np.random.default_rng(6), kernels.RBF(0.5)
    shop = rng.random((12, 2))
    model, counts, sums = KernelPosterior(kernel, noise=noise), np.zeros(12), np.zeros(12)
    for t in range(2500):
        arm = int(rng.integers(12))
        reward = float(np.sin(3 * shop[arm, 0]) + 0.1 * rng.normal())
        model.update(shop[arm], reward)
        counts[arm] += 1
        sums[arm] += reward
        if t % 100 == 99:
            seen = counts > 0
            inverse = np.linalg.inv(kernel(shop[seen]) + np.diag(noise / counts[seen]))
            cross = kernel(shop, shop[seen])
            assert model.estimate(shop)[0] == pytest.approx(cross @ inverse @ (sums[seen] / counts[seen]), abs=1e-6)
    assert isinstance(model._form, Growing)
    assert len(model._form._factor) == 12
    assert model._form._factor.age < 2000


def test_the_joint_posterior_does_not_drift():
    """After 100,000 rewards it agrees with the direct one from the counts to 1e-9."""
    rng, kernel, noise, K = np.random.default_rng(3), kernels.RBF(1.0), 1e-4, 8
    X = rng.random((K, 1))
    form = Joint(kernel, noise, X)
    counts, sums = np.zeros(K), np.zeros(K)
    for arm in rng.integers(K, size=100_000):
        reward = rng.normal()
        form.learn(X, int(arm), reward)
        counts[arm] += 1
        sums[arm] += reward
    precision = np.diag(counts / noise)
    cov = np.linalg.solve(np.eye(K) + kernel(X) @ precision, kernel(X))
    assert form.native.mean == pytest.approx(cov @ sums / noise, abs=1e-9)
    assert np.diag(form.native.cov) == pytest.approx(np.diag(cov), rel=1e-6)


@pytest.mark.parametrize("noise", [1e-6, 1e-4, 1e-1])
def test_small_noise_keeps_the_mean_through_a_refresh(noise):
    """Noiseless rewards of 12 arms: the mean stays at them when the posterior is made afresh (every 1,012 rewards)."""
    rng, K = np.random.default_rng(1), 12
    X = rng.random((K, 1))
    f = np.sin(5 * X[:, 0])
    model = KernelPosterior(kernels.RBF(0.5), noise=noise**2)
    errors = []
    for t in range(1100):
        arm = t % K
        model.update_arm(X, arm, float(f[arm]))
        errors.append(np.abs(model.estimate(X)[0] - f).max())
    assert max(errors[1000:]) < max(1e-5, 2 * noise**2)
    assert errors[1011] < 10 * errors[1010] + 1e-12


class NaiveBudget:
    """The budgeted posterior over u = f(Z) with dense matrices: mean and covariance of u, Kalman updates."""

    def __init__(self, kernel, noise, budget):
        self.kernel, self.noise, self.budget = kernel, noise, budget
        self.Z, self.mean, self.cov, self.swaps = [], np.zeros(0), np.zeros((0, 0)), 0

    def parts(self, x):
        if not self.Z:
            return np.zeros(0), self.kernel(x[None])[0, 0]
        Z = np.array(self.Z)
        a = np.linalg.solve(self.kernel(Z), self.kernel(x[None], Z)[0])
        return a, self.kernel(x[None])[0, 0] - a @ self.kernel(x[None], Z)[0]

    def update(self, x, reward):
        a, nu = self.parts(x)
        joins = len(self.Z) < self.budget and nu > gp_budget.MIN_NOVELTY
        if len(self.Z) == self.budget:
            novelties = 1.0 / np.diag(np.linalg.inv(self.kernel(np.array(self.Z))))
            i = int(np.argmin(novelties))
            if nu > gp_budget.MIN_SWAP_RATIO * novelties[i]:
                joins = True
                self.swaps += 1
                self.Z.pop(i)
                self.mean = np.delete(self.mean, i)
                self.cov = np.delete(np.delete(self.cov, i, 0), i, 1)
                a, nu = self.parts(x)
        if joins:
            across = self.cov @ a
            self.cov = np.block([[self.cov, across[:, None]], [across[None], nu + a @ across]])
            self.mean = np.append(self.mean, a @ self.mean)
            self.Z.append(x)
            a, nu = np.eye(len(self.Z))[-1], 0.0
        gain = self.cov @ a / (a @ self.cov @ a + self.noise + nu)
        self.mean = self.mean + gain * (reward - a @ self.mean)
        self.cov = self.cov - np.outer(gain, a @ self.cov)

    def estimate(self, X):
        rows = [self.parts(x) for x in X]
        return np.array([a @ self.mean for a, _ in rows]), np.sqrt([nu + a @ self.cov @ a for a, nu in rows])


@pytest.mark.parametrize("kernel", [kernels.Matern(0.8, nu=0.5), kernels.RBF(0.3)])
def test_budget_equals_its_dense_form_through_swaps(kernel):
    rng = np.random.default_rng(4)
    model, reference = KernelPosterior(kernel, noise=0.05, budget=12), NaiveBudget(kernel, 0.05, 12)
    X = rng.random((6, 2)) * 2
    for i in range(150):
        x, reward = rng.random(2) * (0.3 if i < 20 else 2.0), rng.normal()  # the first points are crowded: they must go
        model.update(x, reward)
        reference.update(x, reward)
        assert close(model.estimate(X), reference.estimate(X), 1e-7)
    assert model._form._counters[1] == reference.swaps > 5
    assert np.array_equal(model._form.points, np.array(reference.Z))


def test_budget_is_exact_until_it_is_reached_and_continuous_after():
    rng, kernel = np.random.default_rng(5), kernels.Matern(0.5, nu=1.5)
    exact, budgeted = KernelPosterior(kernel, noise=0.04), KernelPosterior(kernel, noise=0.04, budget=60)
    X = rng.random((20, 2))
    f = lambda x: np.sin(3 * x[0]) + x[1]  # noqa: E731
    steps = []
    for i in range(120):
        x = rng.random(2)
        before = budgeted.estimate(X)
        for model in (exact, budgeted):
            model.update(x, f(x))
        after = budgeted.estimate(X)
        steps.append(max(np.abs(a - b).max() for a, b in zip(before, after)))
        if i < 60:
            assert close(after, exact.estimate(X))
    # Right after the budget is reached a round moves the estimates no more than the rounds before it did.
    assert max(steps[60:80]) < max(steps[40:60])
    assert close(budgeted.estimate(X), exact.estimate(X), 0.05)


def test_budget_covers_what_comes_after_it_was_full():
    """A set that filled up in one corner must follow the rows to another, or their width would never shrink."""
    rng, kernel = np.random.default_rng(6), kernels.RBF(0.3)
    model = KernelPosterior(kernel, noise=0.01, budget=20)
    for _ in range(100):
        model.update(0.2 * rng.random(1), 0.0)
    for _ in range(300):
        model.update(2.0 + rng.random(1), 1.0)
    means, widths = model.estimate(np.array([[2.5]]))
    assert means == pytest.approx(1.0, abs=0.05)
    assert widths[0] < 0.1
    assert model.estimate(np.array([[0.1]]))[0] == pytest.approx(0.0, abs=0.05)  # and the corner is not forgotten


def test_a_budget_of_one():
    model, reference = KernelPosterior(kernels.RBF(0.3), 0.1, budget=1), NaiveBudget(kernels.RBF(0.3), 0.1, 1)
    rng = np.random.default_rng(3)
    for _ in range(30):
        x, reward = rng.random(2), rng.normal()
        model.update(x, reward)
        reference.update(x, reward)
        X = rng.random((3, 2))
        assert close(model.estimate(X), reference.estimate(X))


def test_budget_state_is_bounded():
    rng = np.random.default_rng(7)
    model = KernelPosterior(kernels.RBF(0.2), noise=0.1, budget=10)
    sizes = []
    for i in range(400):
        model.update(rng.random(2), 0.5)
        if i in (50, 399):
            sizes.append(len(saving.dumps(model)))
    assert abs(sizes[1] - sizes[0]) < 100  # the counters' digits


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 9), st.integers(0, 10_000))
def test_removing_a_point_integrates_it_out(n, seed):
    """Whatever is removed, mean and covariance of f at the points that stay are what they were."""
    rng, kernel = np.random.default_rng(seed), kernels.Matern(1.0, nu=0.5)
    form = BudgetedPosterior(kernel, 0.1, n)
    for x in rng.random((n, 2)):
        form.update(x, rng.normal())
    for _ in range(5):
        form.update(rng.random(2) * 0.5, rng.normal())
    i = int(rng.integers(n))
    before, stay = form.estimate(form.points), np.delete(np.arange(n), i)
    Z = form.points.copy()
    gp_budget.remove(form._Z, form._L, form._U, form._c, form._Q, n, i)
    form._counters[0] -= 1
    assert np.array_equal(form.points, Z[stay])
    assert close(form.estimate(Z[stay]), (before[0][stay], before[1][stay]), 1e-9)
    assert form._Q[: n - 1, : n - 1] == pytest.approx(np.linalg.inv(kernel(Z[stay])), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("budget", [None, 30])
@pytest.mark.parametrize("noise", [1e-2, 1e-8, 1e-20])
def test_duplicates_and_near_singular_kernels(noise, budget):
    """600 rows of which half are copies, under a kernel of numerical rank far below 600, with almost no noise."""
    rng = np.random.default_rng(8)
    points = rng.random((300, 1))
    points = np.concatenate([points, points])
    model = KernelPosterior(kernels.RBF(1.0), noise=noise, budget=budget)
    for x in points:
        model.update(x, float(np.sin(3 * x[0])))
    means, widths = model.estimate(points)
    assert np.all(np.isfinite(means))
    assert means == pytest.approx(np.sin(3 * points[:, 0]), abs=0.02)
    assert np.all((widths >= 0.0) & (widths < 0.1))


def test_saved_exactly_in_every_form():
    rng, kernel = np.random.default_rng(9), kernels.RBF(0.4)
    X = rng.random((5, 2))
    for budget, fixed in ((None, True), (None, False), (8, False)):
        model = KernelPosterior(kernel, noise=0.1, budget=budget)
        for part in range(2):
            for i in range(20):
                model.update_arm(X if fixed else rng.random((5, 2)), i % 5, rng.normal())
            if part == 0:
                again = saving.loads(saving.dumps(model))
                rng_again = np.random.default_rng(0)
                rng_again.bit_generator.state = rng.bit_generator.state
        for i in range(20):
            again.update_arm(X if fixed else rng_again.random((5, 2)), i % 5, rng_again.normal())
        assert saving.dumps(again) == saving.dumps(model)
        for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):  # as races do, for their workers
            assert saving.dumps(copied) == saving.dumps(model)
            copied.update_arm(X, 1, 5.0)
            assert saving.dumps(copied) != saving.dumps(model)


class Indefinite(sk.RBF):  # type: ignore[misc]
    """Large off its diagonal: no covariance."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return 1.0 - 3.0 * (super().__call__(X, Y) < 1.0)


class Negative(sk.RBF):  # type: ignore[misc]
    def __call__(self, X, Y=None, eval_gradient=False):
        return -super().__call__(X, Y)

    def diag(self, X):
        return -np.ones(len(X))


@pytest.mark.parametrize("budget", [None, 5])
@pytest.mark.parametrize("kernel", [Indefinite(), Negative()])
def test_a_kernel_that_is_not_positive_definite_is_refused(kernel, budget):
    model = KernelPosterior(kernel, noise=0.01, budget=budget)
    points = np.arange(6.0)[:, None]

    def use():
        for x in points:
            model.update(x, 1.0)

    with pytest.raises(ValueError, match="kernel is not positive definite"):
        use()
    learnt = model.information_gain
    with pytest.raises(ValueError, match="kernel is not positive definite"):
        model.update(points[5], 1.0)
    assert model.information_gain == learnt
    with pytest.raises(ValueError, match="kernel is not positive definite"):
        KernelPosterior(kernel, noise=0.01).update_arm(points, 0, 1.0)


def test_packed_triangles():
    rng, n = np.random.default_rng(10), 23
    L = np.tril(rng.normal(size=(n, n))) + 5 * np.eye(n)
    for K in (1, 4, 6, 9):
        V = rng.normal(size=(K, n))
        lower, upper = V.copy(), V.copy()
        gp.solve_lower(L[np.tril_indices(n)], n, lower)
        gp_budget.solve_upper(L[np.tril_indices(n)], n, upper)  # packed by columns, the same numbers are U = L'
        assert lower == pytest.approx(np.linalg.solve(L, V.T).T)
        assert upper == pytest.approx(np.linalg.solve(L.T, V.T).T)
