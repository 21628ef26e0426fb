"""Kernels against scikit-learn's, and the two measures of a kernel's size against their definitions."""

# mypy: disable-error-code="comparison-overlap"

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

import armwise as aw
from armwise.core import saving
from armwise.models import kernels

RNG = np.random.default_rng(5)
X, Z = RNG.normal(size=(7, 3)), RNG.normal(size=(5, 3))
PAIRS = [
    (kernels.Linear(), sk.DotProduct(sigma_0=0.0)),
    (kernels.RBF(0.7), sk.RBF(0.7)),
    (kernels.Matern(1.3, nu=0.5), sk.Matern(1.3, nu=0.5)),
    (kernels.Matern(1.3, nu=1.5), sk.Matern(1.3, nu=1.5)),
    (kernels.Matern(1.3, nu=2.5), sk.Matern(1.3, nu=2.5)),
    (kernels.Polynomial(3, offset=0.25), sk.DotProduct(sigma_0=0.5) ** 3),
    (2.5 * kernels.RBF(0.7), 2.5 * sk.RBF(0.7)),
    (
        kernels.RBF(0.7) * kernels.Linear() + (kernels.Matern(2.0, nu=1.5) + 0.5) * kernels.RBF(3.0),
        sk.RBF(0.7) * sk.DotProduct(sigma_0=0.0) + (sk.Matern(2.0, nu=1.5) + 0.5) * sk.RBF(3.0),
    ),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda k: repr(k)[:40])
def test_equals_scikit_learn(ours, theirs):
    assert ours(X, Z) == pytest.approx(theirs(X, Z), rel=1e-12, abs=1e-12)
    assert ours(X) == pytest.approx(theirs(X), rel=1e-12, abs=1e-12)
    assert ours.diag(X) == pytest.approx(theirs.diag(X), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda k: repr(k)[:40])
def test_scikit_learn_objects_are_wrapped_and_mix_with_ours(ours, theirs):
    wrapped = kernels.as_kernel(theirs)
    assert wrapped(X, Z) == pytest.approx(ours(X, Z), rel=1e-12, abs=1e-12)
    mixed = wrapped * kernels.RBF() + 2.0
    assert mixed.program is None
    assert mixed(X, Z) == pytest.approx(ours(X, Z) * kernels.RBF()(X, Z) + 2.0)
    assert mixed.diag(X) == pytest.approx(ours.diag(X) + 2.0)


@pytest.mark.parametrize("kernel", [k for pair in PAIRS for k in pair], ids=lambda k: repr(k)[:40])
def test_saved_and_loaded(kernel):
    kernel = kernels.as_kernel(kernel)
    again = saving.loads(saving.dumps(kernel))
    assert type(again) is type(kernel)
    assert np.array_equal(again(X, Z), kernel(X, Z))


def test_kernels_are_not_confused_with_policies_of_the_same_name():
    assert aw.kernels.Linear is not aw.Linear
    assert type(saving.loads(saving.dumps(aw.kernels.Linear()))) is aw.kernels.Linear


def test_columns_reads_a_part_of_each_row():
    for inner in (kernels.RBF(0.7), kernels.as_kernel(sk.RBF(0.7))):
        part = kernels.Columns(inner, 1, 3)
        assert part(X, Z) == pytest.approx(kernels.RBF(0.7)(X[:, 1:3], Z[:, 1:3]))
        assert part.diag(X) == pytest.approx(np.ones(7))
        nested = kernels.Columns(kernels.Columns(inner, 1), 1)  # column 2 alone
        assert nested(X, Z) == pytest.approx(kernels.RBF(0.7)(X[:, 2:3], Z[:, 2:3]))


def test_rows_that_share_their_context_are_evaluated_once_but_equal():
    shared = np.repeat(X[:2], 3, axis=0)
    assert np.array_equal(kernels.RBF()(shared, Z), np.repeat(kernels.RBF()(X[:2], Z), 3, axis=0))


def test_theta_round_trip():
    for kernel in (2.0 * kernels.RBF(0.5) + kernels.Linear(), kernels.as_kernel(2.0 * sk.RBF(0.5))):
        assert kernel.theta == pytest.approx(np.log([2.0, 0.5]))
        other = kernel.with_theta(np.log([3.0, 0.25]))
        assert other.theta == pytest.approx(np.log([3.0, 0.25]))
        assert kernel.theta == pytest.approx(np.log([2.0, 0.5]))  # kernels never change


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: kernels.RBF(0.0), "length_scale must be a finite number > 0"),
        (lambda: kernels.Matern(1.0, nu=0.7), "nu must be 0.5, 1.5 or 2.5"),
        (lambda: kernels.Polynomial(2, offset=-1.0), "offset must be a finite number >= 0"),
        (lambda: kernels.Polynomial(0), "degree must be a whole number >= 1"),
        (lambda: -1.0 * kernels.RBF(), "value must be a finite number > 0"),
        (lambda: kernels.RBF() + "linear", "kernel must be one of armwise.kernels"),
        (lambda: kernels.Columns(kernels.RBF(), 2, 2), "stop must be a whole number >= 3"),
        (lambda: kernels.as_kernel(sk.RBF() + sk.WhiteKernel()), "must not hold a WhiteKernel"),
    ],
)
def test_bad_kernels_are_refused(make, reason):
    with pytest.raises(ValueError, match=reason):
        make()


def test_the_users_kernel_may_change_afterwards():
    theirs = sk.RBF(1.0)
    wrapped = kernels.as_kernel(theirs)
    theirs.length_scale = 9.0
    assert wrapped(X, Z) == pytest.approx(kernels.RBF(1.0)(X, Z))


class Own(sk.RBF):  # type: ignore[misc]
    """A user's kernel."""


def test_a_users_kernel_class_works_but_is_not_saved():
    agent = aw.GPUCB(Own(), noise=0.1)
    agent.learn(X, agent.choose(X), 1.0)
    with pytest.raises(ValueError, match="Own is not a class of sklearn"):
        saving.dumps(agent)


def test_information_gain_is_entropy_lost():
    noise, kernel = 0.3, kernels.RBF(0.7)
    gram = kernel(X)
    entropy = 0.5 * np.log(np.linalg.eigvalsh(gram + noise**2 * np.eye(7))).sum()  # of r; constants cancel
    assert kernels.information_gain(kernel, X, noise) == pytest.approx(entropy - 7 * math.log(noise))


def test_effective_dimension_by_its_definition():
    rows, gamma = RNG.normal(size=(60, 2)), 0.5
    for kernel in (kernels.Linear(), kernels.RBF(1.0), kernels.RBF(0.1)):
        lam = np.sort(np.linalg.eigvalsh(kernel(rows)))[::-1]
        j = 1
        while j * gamma * math.log(60) < lam[j:].sum():
            j += 1
        assert kernels.effective_dimension(kernel, rows, gamma) == j
    assert kernels.effective_dimension(kernels.Linear(), rows, gamma) <= 2
    assert kernels.effective_dimension(kernels.RBF(), np.zeros((1, 2)), gamma) == 1
