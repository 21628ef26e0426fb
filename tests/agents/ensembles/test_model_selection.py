"""D3RB, ED2RB and Corral against their papers' lines written out, and on what they are for: the good one of two."""

import math

import numpy as np
import pytest

import armwise as aw
from armwise.agents.ensembles.corral import barrier_step
from armwise.core.saving import dumps, loads
from armwise.models.ridge import Ridge
from armwise.native.ridge import widen
from armwise.racing.results import matching_bound

T = 1500


def bases():
    """One that never learns, one that does."""
    return [aw.EpsilonGreedy(3, 1.0), aw.UCB1(3, scale=0.3)]


def rewards(seed):
    return (np.random.default_rng(seed).random((T, 3)) < [0.2, 0.3, 0.8]).astype(float)


MAKERS = {
    "D3RB": lambda seed: aw.D3RB(bases(), scale=0.5, seed=seed),
    "ED2RB": lambda seed: aw.ED2RB(bases(), scale=0.5, seed=seed),
    "Corral": lambda seed: aw.Corral(bases(), T, seed=seed),
}


@pytest.mark.parametrize("name", MAKERS)
def test_it_finds_the_base_that_learns(name):
    """The uniform base earns .43 and the other about .8; a master that cannot tell them apart earns .61 at most."""
    late = [MAKERS[name](seed).play(None, rewards(seed)).rewards[-500:].mean() for seed in range(2)]
    assert np.mean(late) > 0.7


@pytest.mark.parametrize("estimate", [False, True])
def test_balancing_follows_the_papers_lines(estimate):
    M, delta, scale = 2, 0.05, 0.5
    agent = MAKERS["ED2RB" if estimate else "D3RB"](1)
    n, u, d, phi = np.zeros(M), np.zeros(M), np.ones(M), np.ones(M)
    table = rewards(1)
    for t in range(400):
        choice = agent.choose()
        i = int(np.argmin(phi))
        assert choice.note[0] == i and choice.probability == pytest.approx(agent.probabilities()[choice.arm])
        reward = table[t, choice.arm] if i == 1 else 0.0  # base 0 brings nothing: it must fall behind
        agent.learn(None, choice, reward)
        n[i] += 1
        u[i] += reward
        w = [scale * math.sqrt(math.log(M * (1 + math.log(k)) / delta) / k) if k else math.inf for k in n]
        best = max(u[j] / n[j] - w[j] for j in range(M) if n[j])
        if estimate:
            d[i] = max(1.0, math.sqrt(n[i]) * (best - u[i] / n[i] - w[i]))
        elif u[i] / n[i] + d[i] / math.sqrt(n[i]) + w[i] < best:
            d[i] *= 2
        phi[i] = min(max(d[i] * math.sqrt(n[i]), phi[i]), 2 * phi[i])
    assert d[0] > 1.0 and n[1] > 2 * n[0]


def test_the_barrier_step_is_the_minimum_of_the_papers_objective():
    """Against a fine grid of two weights: <p, loss> + sum_i (1 / eta_i) (p_i / q_i - 1 - ln(p_i / q_i))."""
    q, eta, loss = np.array([0.3, 0.7]), np.array([0.5, 0.2]), np.array([2.0, 0.0])
    first = np.linspace(1e-4, 1 - 1e-4, 200_001)
    p = np.stack([first, 1 - first])
    ratio = p / q[:, None]
    value = loss @ p + ((ratio - 1 - np.log(ratio)) / eta[:, None]).sum(axis=0)
    assert barrier_step(q, eta, loss)[0] == pytest.approx(first[value.argmin()], abs=1e-4)


def test_corral_reports_the_mixture_and_teaches_the_drawn_base_alone():
    agent = aw.Corral([aw.Exp3(3, 0.2), aw.UCB1(3)], 500, seed=3)
    for t, row in enumerate(rewards(3)[:200]):
        p = agent.mixture @ np.stack([base.probabilities() for base in agent.agents])
        np.testing.assert_allclose(agent.probabilities(), p)
        before = [base.t for base in agent.agents]
        choice = agent.choose()
        assert choice.probability == pytest.approx(p[choice.arm]) and choice.note[1][0] == agent.mixture[choice.note[0]]
        agent.learn(None, choice, row[choice.arm])
        assert [base.t - b for base, b in zip(agent.agents, before, strict=True)] == [
            i == choice.note[0] for i in (0, 1)
        ]
        if t == 100:
            agent = loads(dumps(agent))


def test_corral_knows_no_probability_if_a_base_knows_none():
    agent = aw.Corral([aw.BetaThompson(3), aw.UCB1(3)], 100, seed=1)
    assert all(agent.choose().probability is None for _ in range(10))


def test_bases_that_do_not_fit_together_are_refused():
    with pytest.raises(ValueError, match=r"agents\[1\].sees is 'features', expected 'nothing'"):
        aw.D3RB([aw.UCB1(3), aw.LinUCB(2)])
    with pytest.raises(ValueError, match="at least two different objects"):
        aw.Corral([aw.UCB1(3)], 100)
    with pytest.raises(ValueError, match=r"choice.note must be \[base, remembered, note\]"):
        aw.D3RB([aw.UCB1(3), aw.UCB1(3)]).learn(None, aw.Choice(0, 1.0, [7, None, None]), 1.0)


class TestBalancingBounds:
    """The bound is a number only where a base's own theorem gives the coefficient that it needs."""

    world = aw.environments.Linear(n_arms=4, dim=3, noise=0.1)

    @pytest.mark.parametrize("balancer", [aw.D3RB, aw.ED2RB])
    def test_of_a_base_with_a_theorem(self, balancer: type[aw.D3RB]) -> None:
        proved, other = aw.LinUCB.theoretical(3, noise=0.1), aw.LinUCB(3)
        found = matching_bound.bound(balancer([other, proved]), self.world, 1000)
        assert isinstance(found, matching_bound.Bound)
        assert found.holds == "with probability 0.9"  # either may fail
        own = matching_bound.bound(proved, self.world, 1000)
        assert isinstance(own, matching_bound.Bound)
        coefficient = max(min(own.curve(n), n) / np.sqrt(n) for n in range(1, 1001))
        exact = (aw.bounds.d3rb if balancer is aw.D3RB else aw.bounds.ed2rb)(1000, 2, coefficient, 0.05)
        assert exact <= found.curve(1000) <= 2.5 * exact  # d* is rounded up by sqrt(2) at most

    def test_no_number_without(self) -> None:
        bases = [aw.LinUCB(3), aw.LinUCB.theoretical(3, noise=0.1)]
        for agent, reason in (
            (aw.D3RB([aw.LinUCB(3), aw.SquareCB(3)]), "regret coefficient of one of its bases"),
            (aw.D3RB(bases, scale=0.5), "scale=0.5"),
            (aw.ED2RB(bases, delta=0.5), "delta <= M / 13"),
        ):
            found = matching_bound.bound(agent, self.world, 1000)
            assert isinstance(found, str) and reason in found

    def test_it_holds_where_one_base_is_always_right(self) -> None:
        # Regret coefficients 0 (raised to d_min = 1) and sqrt(T): the trivial bound is T = 20,000.
        rewards = np.tile([0.0, 1.0], (20_000, 1))
        for balancer, bound in ((aw.D3RB, aw.bounds.d3rb), (aw.ED2RB, aw.bounds.ed2rb)):
            wrong, right = aw.EpsilonGreedy(2, 1.0), aw.UCB1(2)
            regret = 20_000 - balancer([wrong, right], seed=1).play(None, rewards).rewards.sum()
            assert regret <= bound(20_000, 2, 1.0, 0.05) < 20_000


class TestCorralBound:
    world = aw.environments.Linear(n_arms=4, dim=3, noise=0.1)

    def test_it_is_the_largest_value_of_the_papers_terms_over_rho(self) -> None:
        # M ln(T) / eta + T eta - (slope of h) + rho R, line by line, maximised over a fine grid of rho.
        T, M, d_star, eta, fails = 10**6, 3, 0.01, 4e-4, 0.05
        growth, R = math.exp(1 / math.log(2)), d_star * math.sqrt(T)
        rho = np.concatenate([[2.0 * M], np.linspace(4.0 * M, 4.0 * M * T, 2_000_001)])
        y = (1 - 1 / T) ** 2 * rho / 2
        back = (1 - math.exp(-1 / math.log(T))) / growth / eta * (y - 1 - np.log(y))
        back[0] = 0.0  # never raised
        terms = 2 + (M - 1) * math.log(T) / eta + growth / 2 * (T / (T - 1)) ** 2 * eta * T
        by_hand = terms + (rho * R - back).max() + fails * T
        assert aw.bounds.corral(T, M, d_star, eta, fails) == pytest.approx(by_hand, rel=1e-6)
        # What comes back is more than the paper's rho / (40 eta ln T), from the first raise on.
        assert (back[1:] >= rho[1:] / (40 * eta * math.log(T))).all()
        assert aw.bounds.corral(T, M, d_star, 10 * eta) == math.inf

    def test_a_number_only_where_a_base_has_a_theorem_and_the_rate_fits(self) -> None:
        proved, T = aw.LinUCB.theoretical(3, noise=0.1), 1000
        found = matching_bound.bound(aw.Corral([aw.LinUCB(3), proved], T, eta=1e-7), self.world, T)
        assert isinstance(found, matching_bound.Bound) and found.holds == "in expectation"
        own = matching_bound.bound(proved, self.world, T)
        assert isinstance(own, matching_bound.Bound)
        coefficient = max(min(own.curve(n), n) / np.sqrt(n) for n in range(1, T + 1))
        exact = aw.bounds.corral(T, 2, coefficient, 1e-7, 0.05)
        assert exact <= found.curve(T) <= 1.5 * exact and found.vacuous_until is not None
        for agent, reason in (
            (aw.Corral([aw.LinUCB(3), proved.clone()], T), "its bound needs eta below"),
            (aw.Corral([aw.LinUCB(3), aw.SquareCB(3)], T), "holds whatever rounds it is drawn in"),
            (aw.Corral([aw.LinUCB(3), proved.clone()], T // 2, eta=1e-7), "made for 500 rounds"),
        ):
            refused = matching_bound.bound(agent, self.world, T)
            assert isinstance(refused, str) and reason in refused

    def test_it_holds_where_one_base_is_always_right(self) -> None:
        # The right base has no regret, the other 1/2 per round: 3,000 without selection, the bound is below 800.
        T, eta = 6000, 0.025
        always = aw.EpsilonGreedy(2, 1e-9)
        always.learn(None, aw.Choice(1, 0.5, None), 1.0)
        agent = aw.Corral([aw.EpsilonGreedy(2, 1.0), always], T, eta=eta, seed=1)
        regret = T - agent.play(None, np.tile([0.0, 1.0], (T, 1))).rewards.sum()
        assert regret <= aw.bounds.corral(T, 2, 0.0, eta) < 800


def test_first_order_squarecb_has_gamma_over_the_variance() -> None:
    # gamma_t = 6.25 extent sqrt(500) (t / 500)^(2/3) / variance of the noise as it is learnt, with extent the range;
    # p_a = 1 / (K + gamma_t gap) for all but the best.
    rng = np.random.default_rng(3)
    agent = aw.SquareCB(3, n_arms=3, first_order=True, seed=1)
    weights = np.column_stack([0.1 * rng.normal(size=(3, 2)), np.full(3, 0.5)])
    for _ in range(200):
        x = np.append(rng.uniform(-1.0, 1.0, 2), 1.0)
        choice = agent.choose(x)
        reward = float(np.clip(weights[choice.arm] @ x + 0.05 * rng.normal(), 0.0, 1.0))
        agent.learn(x, choice, reward)
    x = np.array([0.5, -0.5, 1.0])
    assert agent._noise is not None
    extent = agent._noise.extent
    assert 0.3 < extent < 1.0
    variance = max(agent._noise.deviation**2, 0.001 * extent**2)
    assert isinstance(agent._model, Ridge)
    estimates = widen(*agent._ridge_estimates(agent._model, x), 0.0, *agent._widening())
    gaps = estimates.max() - estimates
    p = 1.0 / (3 + 6.25 * extent / variance * np.sqrt(500) * (agent.t / 500) ** (2 / 3) * gaps)
    p[gaps == 0.0] = 1.0 - p[gaps > 0.0].sum()
    np.testing.assert_allclose(agent.probabilities(x), p, rtol=1e-9)
    assert 0.03**2 < variance < 0.1**2  # the noise, not the spread of the rewards


def test_a_step_of_the_barrier_takes_from_the_arm_that_lost():
    p = barrier_step(np.array([0.5, 0.5]), np.array([1.0, 1.0]), np.array([1.0, 0.0]))
    assert p.round(3).tolist() == [0.382, 0.618]
