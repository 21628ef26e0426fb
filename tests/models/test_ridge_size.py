"""The ridge that rewards choose, against the covariance of the rewards written out."""

import numpy as np
import pytest

from armwise.models.ridge import Ridge
from armwise.models.ridge_size import LARGER_SHARES, RIDGE_SHARE, UNLIKELIER


def likeliest(X, models, rewards, ridges):
    """The choice of ``rescale`` from the covariance of the rewards: noise and intercept integrated out."""
    chosen, least = ridges[0], np.inf
    for lam in ridges:
        V = np.eye(len(X)) + (models[:, None] == models) * (X @ X.T) / lam
        right = np.linalg.solve(V, np.stack([rewards, np.ones(len(X))], axis=1))
        fit, cross, ones = rewards @ right[:, 0], rewards @ right[:, 1], right[:, 1].sum()
        log_det = np.linalg.slogdet(V)[1] + np.log(ones)
        cost = log_det + (len(X) - 1) * np.log(fit - cross**2 / ones)
        if cost > least - UNLIKELIER:
            break
        chosen, least = lam, cost
    return chosen


@pytest.mark.parametrize("centre", [0.0, 7.0])
def test_the_ridge_follows_the_marginal_likelihood(centre):
    """Of weights that matter much, a little or not at all, with rewards measured from anywhere."""
    found = []
    for seed, weight in enumerate([3.0, 0.6, 0.3, 0.1, 0.0]):
        rng = np.random.default_rng(seed)
        X, models = rng.normal(size=(300, 6)), rng.integers(3, size=300)
        r = 5.0 + np.einsum("ij,ij->i", X, weight * rng.normal(size=(3, 6))[models]) + rng.normal(size=300)
        model = Ridge(6, n_models=3, centred=True)
        for x, m, reward in zip(X, models, r):
            model.update(x, reward, m)
        model.recentre(centre)
        rest = r - centre
        model.rescale(0.0, (300.0, rest.sum(), rest @ rest))
        size = np.exp(np.log((X**2).sum(axis=1)).mean())
        wanted = likeliest(X, models, r, [share * size for share in (RIDGE_SHARE, *LARGER_SHARES)])
        assert model.ridge == pytest.approx(wanted, rel=1e-9)
        assert model.least_share == pytest.approx(RIDGE_SHARE * size / wanted)
        found.append(round(model.ridge / size, 6))
    assert found[0] == RIDGE_SHARE and found[-1] == LARGER_SHARES[-1]
