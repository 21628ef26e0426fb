"""The optimum within one budget, found without a linear programme, is that of the programme."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import armwise as aw


def tables(kind: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and costs of a few rows: any numbers, many ties, a free arm, arms that lie on one line."""
    n, K = (int(size) for size in rng.integers(1, [9, 7]))
    if kind == 0:
        return rng.normal(size=(n, K)), rng.normal(size=(n, K))
    if kind == 1:
        return rng.integers(0, 3, (n, K)) / 2.0, rng.integers(0, 3, (n, K)) / 2.0
    costs = np.tile(np.linspace(0.0, 1.0, K), (n, 1))
    return (rng.random((n, K)), costs) if kind == 2 else (3.0 * costs, costs)


@pytest.mark.parametrize("covering", [False, True])
@pytest.mark.parametrize("kind", range(4))
def test_it_is_the_optimum_of_the_linear_programme(kind: int, covering: bool) -> None:
    """Value, rates that are kept to, and whether one can be: 16 tables, rates from too low to more than enough."""
    rng, sign, refused = np.random.default_rng([8, kind]), -1.0 if covering else 1.0, 0
    for _ in range(16):
        rewards, costs = tables(kind, rng)
        n, K = rewards.shape
        least = (sign * costs).min(axis=1).mean()
        rate = sign * (least + float(rng.choice([-0.1, 0.0, 0.01, 0.1, 0.5, 3.0])))
        each = np.kron(np.eye(n), np.ones(K))
        found = linprog(
            -rewards.ravel() / n, A_ub=sign * costs.reshape(1, -1) / n, b_ub=[sign * rate], A_eq=each, b_eq=np.ones(n)
        )
        if found.status != 0:
            refused += 1
            with pytest.raises(ValueError, match="no policy keeps to it"):
                aw.budget_optimum(rewards, costs, rate, covering)
            continue
        best = aw.budget_optimum(rewards, costs, rate, covering)
        assert best.value == pytest.approx(-float(found.fun or 0.0), abs=1e-9)
        assert sign * (best.costs[0] - rate) <= 1e-12
        assert (best.policy >= 0.0).all() and np.abs(best.policy.sum(axis=1) - 1.0).max() < 1e-12
        assert best.value == pytest.approx((best.policy * rewards).sum() / n, abs=1e-12)
    assert 0 < refused < 10


def test_several_resources_of_which_one_counts_are_that_one() -> None:
    """The second resource is never short: the programme of two has the optimum of one."""
    rng = np.random.default_rng(3)
    rewards, costs = rng.random((50, 4)), rng.random((50, 4))
    one = aw.budget_optimum(rewards, costs, 0.3)
    two = aw.budget_optimum(rewards, np.stack([costs, costs], axis=2), [0.3, 5.0])
    assert two.value == pytest.approx(one.value, abs=1e-12)
    assert np.abs(two.policy - one.policy).max() < 1e-9


def test_what_no_policy_can_keep_to_is_refused_with_what_is_possible():
    """A rate to be covered is missed from below: what all can bring together is said, not a cost below zero."""
    table = [[0.0, 1.0]], [[0.2, 1.0]]
    with pytest.raises(ValueError, match=r"^rate 0.05: no policy keeps to it \(the cheapest costs 0\.2\)$"):
        aw.budget_optimum(*table, rate=0.05)
    with pytest.raises(ValueError, match=r"^rate 2.0: no policy keeps to it \(the dearest comes to 1\)$"):
        aw.budget_optimum(*table, rate=2.0, covering=True)
