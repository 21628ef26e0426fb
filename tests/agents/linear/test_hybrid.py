"""HybridLinUCB, round by round, beside one ridge over all weights and beside the paper's blocks."""

# mypy: disable-error-code="arg-type"

import numpy as np
import pytest

import armwise as aw

K, SHARED, OWN, LAM = 4, 3, 2, 0.7


class Joint:
    """One ridge over (beta, theta_1 .. theta_K), as large as that is."""

    def __init__(self):
        size = SHARED + K * OWN
        self.A, self.b, self.rows = LAM * np.eye(size), np.zeros(size), []

    def row(self, X, arm):
        x = np.zeros(len(self.b))
        x[:SHARED] = X[arm, :SHARED]
        x[SHARED + arm * OWN : SHARED + (arm + 1) * OWN] = X[arm, SHARED:]
        return x

    def estimate(self, X):
        inverse = np.linalg.inv(self.A)
        rows = np.array([self.row(X, arm) for arm in range(K)])
        return rows @ inverse @ self.b, np.sqrt(np.einsum("ai,ij,aj->a", rows, inverse, rows))

    def learn(self, X, arm, reward):
        x = self.row(X, arm)
        self.rows.append(x)
        self.A += np.outer(x, x)
        self.b += reward * x


class Blocks:
    """Li et al. 2010, Algorithm 2, line by line (with lam for its 1)."""

    def __init__(self):
        self.A0, self.b0 = LAM * np.eye(SHARED), np.zeros(SHARED)
        self.A, self.b = [LAM * np.eye(OWN) for _ in range(K)], [np.zeros(OWN) for _ in range(K)]
        self.B = [np.zeros((OWN, SHARED)) for _ in range(K)]

    def estimate(self, X):
        inv, means, widths = np.linalg.inv, [], []
        beta = inv(self.A0) @ self.b0
        for a in range(K):
            z, x, A, B = X[a, :SHARED], X[a, SHARED:], inv(self.A[a]), self.B[a]
            theta = A @ (self.b[a] - B @ beta)
            s = z @ inv(self.A0) @ z - 2 * z @ inv(self.A0) @ B.T @ A @ x + x @ A @ x
            s += x @ A @ B @ inv(self.A0) @ B.T @ A @ x
            means.append(z @ beta + x @ theta)
            widths.append(np.sqrt(s))
        return np.array(means), np.array(widths)

    def learn(self, X, a, reward):
        z, x = X[a, :SHARED], X[a, SHARED:]
        self.A0 += self.B[a].T @ np.linalg.inv(self.A[a]) @ self.B[a]
        self.b0 += self.B[a].T @ np.linalg.inv(self.A[a]) @ self.b[a]
        self.A[a] += np.outer(x, x)
        self.B[a] += np.outer(x, z)
        self.b[a] += reward * x
        self.A0 += np.outer(z, z) - self.B[a].T @ np.linalg.inv(self.A[a]) @ self.B[a]
        self.b0 += reward * z - self.B[a].T @ np.linalg.inv(self.A[a]) @ self.b[a]


@pytest.mark.parametrize("naive", [Joint, Blocks])
def test_every_round_is_that_of_the_naive_version(naive):
    rng = np.random.default_rng(1)
    agent, model = aw.HybridLinUCB(SHARED + OWN, K, SHARED, alpha=0.6, lam=LAM, seed=1), naive()
    for _ in range(150):
        X = rng.normal(size=(K, SHARED + OWN))
        means, widths = model.estimate(X)
        np.testing.assert_allclose(agent.estimate(X), (means, widths), atol=1e-9)
        choice = agent.choose(X)
        assert choice.arm == int(np.argmax(means + 0.6 * widths))
        reward = float(rng.normal())
        agent.learn(X, choice, reward)
        model.learn(X, choice.arm, reward)


def test_the_noise_is_that_of_the_joint_ridge():
    rng = np.random.default_rng(2)
    agent, joint, rewards = aw.HybridLinUCB(SHARED + OWN, K, SHARED, lam=LAM, seed=1), Joint(), []
    for _ in range(80):
        X, arm = rng.normal(size=(K, SHARED + OWN)), int(rng.integers(K))
        rewards.append(float(rng.normal()))
        agent.learn(X, aw.Choice(arm, 1.0), rewards[-1])
        joint.learn(X, arm, rewards[-1])
    inverse = np.linalg.inv(joint.A)
    used = len(joint.b) - LAM * np.trace(inverse)
    # Rewards with a constant: the centre and the noise of the fit with an intercept that is not shrunk.
    rows = np.array(joint.rows)
    smooth = np.eye(80) - rows @ inverse @ rows.T
    ones, r = np.ones(80), np.array(rewards)
    centre = ones @ smooth @ r / (ones @ smooth @ ones)
    left = (r - centre) @ smooth @ (r - centre) + r.var()
    freedom = 80 - used - ones @ smooth @ ones / 80 + 1.0
    assert agent._noise is not None
    agent._noise.renew(agent._model)
    assert agent._noise.deviation == pytest.approx(np.sqrt(left / freedom), abs=1e-9)
    agent._model.recentre(0.0)
    assert agent._model.explained()[:2] == pytest.approx((joint.b @ inverse @ joint.b, used), abs=1e-9)


def test_a_new_arm_knows_what_is_shared():
    rng = np.random.default_rng(3)
    agent = aw.HybridLinUCB(dim=2, n_arms=2, shared=1, alpha=0.0, lam=0.1, seed=1)
    for _ in range(100):
        X = rng.normal(size=(2, 2))
        choice = agent.choose(X)
        agent.learn(X, choice, 2.0 * X[choice.arm, 0])
    agent.add_arm()
    assert agent.estimate(np.tile([1.0, 0.0], (3, 1)))[0] == pytest.approx([2.0, 2.0, 2.0], abs=0.05)


def test_every_arm_needs_columns_of_its_own():
    with pytest.raises(ValueError, match="shared must be below dim, 3"):
        aw.HybridLinUCB(dim=3, n_arms=2, shared=3)
