"""Certified regret: the formula against a plain one, above the truth as often as promised, and a test of its if."""

# mypy: disable-error-code="arg-type, assignment, union-attr"

import math

import numpy as np
import pytest

import armwise as aw
from armwise.theory.certificate import LOGISTIC, Link, RejectedCertificateWarning, Rounds
from armwise.theory.certificate.confidence_sets import GeneralisedSet, KernelSet, PerArmSet, SharedSet
from armwise.theory.certificate.statement import Fit

T = 600


def linear_rounds(seed, n=T, K=4, d=3, noise=0.1, greedy=True):
    """Rounds of a linear world whose arms a ridge agent without exploration chose: as adaptive as choices get."""
    world = aw.environments.Linear(n_arms=K, dim=d, noise=noise)
    block = next(world.blocks(n, seed=seed))
    X = block.view("features")
    played = aw.LinUCB(d, alpha=0.0 if greedy else 1.0, lam=1.0, seed=seed).play(X, block.rewards)
    regret = (block.expected.max(axis=1) - block.expected[np.arange(n), played.arms]).sum()
    return X, played.arms, played.rewards, regret, world.constants()["S"]


def test_the_linear_certificate_is_its_formula_round_by_round():
    X, arms, rewards, _, S = linear_rounds(1, n=200)
    R, lam, delta = 0.1, 0.5, 0.1
    A, b = lam * np.eye(3), np.zeros(3)
    for x, r in zip(X[np.arange(200), arms], rewards):
        A += np.outer(x, x)
        b += r * x
    theta, inverse = np.linalg.solve(A, b), np.linalg.inv(A)
    beta = math.sqrt(lam * S**2 + R**2 * (math.log(np.linalg.det(A) / lam**3) + 2 * math.log(1 / delta)))
    total = 0.0
    for rows, arm in zip(X, arms):
        total += max(
            max(0.0, (x - rows[arm]) @ theta + beta * math.sqrt((x - rows[arm]) @ inverse @ (x - rows[arm])))
            for x in rows
        )
    found = aw.certificate(X, arms, rewards, noise=R, norm=S, lam=lam, delta=delta, test=False)
    assert found.regret == pytest.approx(total, rel=1e-9)
    survey = R * math.sqrt(math.log(np.linalg.det(A) / lam**3) + 2 * math.log(1 / delta)) + math.sqrt(lam) * S
    assert beta <= survey  # the set of the method of mixtures lies within the survey's ellipsoid


def test_the_certificate_of_one_model_an_arm_is_its_formula():
    world = aw.environments.Linear(n_arms=3, dim=3, disjoint=True)
    block = next(world.blocks(150, seed=2))
    X, arms = block.view("shared"), np.random.default_rng(0).integers(3, size=150)
    rewards = block.rewards[np.arange(150), arms]
    R, lam, delta, S = 0.1, 0.7, 0.1, 1.0
    theta, inverse, beta = [], [], []
    for a in range(3):
        rows = X[arms == a]
        A = lam * np.eye(3) + rows.T @ rows
        theta.append(np.linalg.solve(A, rows.T @ rewards[arms == a]))
        inverse.append(np.linalg.inv(A))
        growth = math.log(np.linalg.det(A) / lam**3)
        beta.append(math.sqrt(lam * S**2 + R**2 * (growth + 2 * math.log(3 / delta))))
    total = 0.0
    for x, c in zip(X, arms):
        width = [beta[a] * math.sqrt(x @ inverse[a] @ x) for a in range(3)]
        total += max([0.0, *(x @ theta[a] + width[a] - x @ theta[c] + width[c] for a in range(3) if a != c)])
    found = aw.certificate(X, arms, rewards, noise=R, norm=S, lam=lam, delta=delta, test=False)
    assert found.regret == pytest.approx(total, rel=1e-9)


def test_a_linear_kernel_gives_the_linear_certificate():
    """With k = x . z and lam = R^2 the two are one formula; distinct points or not."""
    X, arms, rewards, _, _ = linear_rounds(3, n=120)
    linear = aw.certificate(X, arms, rewards, noise=0.2, norm=1.0, lam=0.04, test=False)
    kernel = aw.certificate(X, arms, rewards, noise=0.2, norm=1.0, kernel=aw.kernels.Linear(), test=False)
    assert kernel.regret == pytest.approx(linear.regret, rel=1e-6)
    again = np.tile(X[:40], (3, 1, 1))
    one = aw.certificate(again, arms, rewards, noise=0.2, norm=1.0, lam=0.04, test=False)
    two = aw.certificate(again, arms, rewards, noise=0.2, norm=1.0, kernel=aw.kernels.Linear(), test=False)
    assert two.regret == pytest.approx(one.regret, rel=1e-6)


def test_the_sets_cover_whoever_chose_the_arms():
    """100 worlds, arms chosen greedily: theta* leaves a set of delta = 0.1 at most 10 times."""
    missed = {"linear": 0, "per arm": 0, "logistic": 0, "link": 0}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 3, 2)) / 2
        theta = rng.normal(size=2)
        theta *= rng.random() / np.linalg.norm(theta)
        A, b, arms, rewards, clicks = np.eye(2), np.zeros(2), [], [], []
        for rows in X:
            arm = int(np.argmax(rows @ np.linalg.solve(A, b)))
            u = rows[arm] @ theta
            arms.append(arm)
            rewards.append(u + 0.3 * rng.normal())
            clicks.append(float(rng.random() < 1 / (1 + np.exp(-4 * u))))
            A, b = A + np.outer(rows[arm], rows[arm]), b + rewards[-1] * rows[arm]
        rounds = Rounds.of_arrays(X, arms, rewards)
        shared = SharedSet(rounds, 150, 0.3, 1.0, 0.2, 0.1)
        error = theta - shared.theta
        missed["linear"] += error @ (shared._factor @ shared._factor.T) @ error > shared.beta**2
        single = PerArmSet(Rounds.of_arrays(X[:, 0], np.zeros(150, int), X[:, 0] @ theta + 0.3 * rng.normal(size=150)),
                        150, 0.3, 1.0, 0.2, 0.1)  # fmt: skip
        error = theta - single.theta[0]
        missed["per arm"] += error @ (single._factors[0] @ single._factors[0].T) @ error > single.beta[0] ** 2
        clicked = GeneralisedSet(Rounds.of_arrays(X, arms, clicks), 150, LOGISTIC, 0.5, 4.0, 0.2, 0.1)
        error = 4 * theta - clicked.theta
        missed["logistic"] += error @ (clicked._factor @ clicked._factor.T) @ error > clicked.beta**2
        tanh = Link(np.tanh, lambda u: 1 / np.cosh(u) ** 2, low=0.05, high=1.0)
        bent = np.tanh(np.array(rewards) * 0 + X[np.arange(150), arms] @ theta) + 0.3 * rng.normal(size=150)
        curved = GeneralisedSet(Rounds.of_arrays(X, arms, bent), 150, tanh, 0.3, 1.0, 0.2, 0.1)
        error = theta - curved.theta
        missed["link"] += error @ (curved._factor @ curved._factor.T) @ error > curved.beta**2
    assert all(count <= 10 for count in missed.values()), missed


@pytest.mark.parametrize("greedy", [True, False])
def test_above_the_regret_and_far_below_the_worst_case(greedy):
    worst = aw.bounds.linucb(T=T, d=3, R=0.1, S=1.0, L=1.0, lam=1.0, delta=0.05)
    missed = 0
    for seed in range(40):
        X, arms, rewards, regret, S = linear_rounds(seed, greedy=greedy)
        proved = aw.certificate(X, arms, rewards, noise=0.1, norm=S, ceiling=1.0, test=False).regret
        missed += proved < regret
        assert proved < min(T, worst / 5)
    assert missed <= 2  # delta = 0.05 of 40 runs; the sets are wider than they need to be


WORLDS = {
    "linear": aw.environments.Linear(n_arms=5, dim=5, noise=0.1),
    "disjoint": aw.environments.Linear(n_arms=5, dim=5, noise=0.1, disjoint=True),
    "clicks": aw.environments.Logistic(n_arms=5, dim=4, scale=3.0),
    "process": aw.environments.GaussianProcess(n_arms=15, kernel=0.04 * aw.kernels.RBF(0.3)),
    "bumps": aw.environments.GaussianProcess(n_arms=15, bounded=True),
    "graph": aw.environments.Graph(n_arms=25, kind="grid", smooth=3),
    "contexts": aw.environments.Tabular(n_contexts=4, n_arms=3),
}


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_that_states_its_rewards_certifies_any_agent(name):
    """LinUCB, which may be quite wrong about the world, and UCB1, which sees nothing: 8 runs each, none missed."""
    from armwise.racing.run.entries import enter

    world = WORLDS[name]
    for seed in range(8):
        agents = {"LinUCB": enter("LinUCB", world, T)}
        if world.span <= 1.0:
            agents["UCB1"] = aw.UCB1(world.n_arms)
        result = aw.race(agents, world, horizon=T, seeds=[seed])
        for agent in agents:
            proved = result.certificate(agent)
            assert result.regret(agent)[0, -1] <= proved.regret < T * world.span
            assert not proved.fit.rejected, proved.fit
            assert np.all(np.diff(proved.curve) >= 0)
            measured = np.interp(proved.rounds, result.rounds, result.regret(agent)[0])
            assert np.all(measured <= proved.curve + 1e-6)


@pytest.mark.parametrize("world", [aw.environments.Switching(3), aw.environments.Drifting(4, 3)])
def test_worlds_that_state_nothing_have_a_reason(world):
    result = aw.race([aw.UCB1(world.n_arms)], world, horizon=100, seeds=1)
    assert isinstance(result.certificate("UCB1"), str)


# ---------------------------------------------------------------------- the if


def test_lack_of_fit_is_found():
    """A product of two features, a change half-way, more scatter than stated: each is found in 2,000 rounds."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2_000, 3, 3)) / 3
    arms = rng.integers(3, size=2_000)
    rows = X[np.arange(2_000), arms]
    noise = 0.1 * rng.normal(size=2_000)
    curved = rows[:, 0] * rows[:, 1] * 4 + noise
    changed = np.where(np.arange(2_000) < 1_000, rows[:, 0], -rows[:, 0]) + noise
    loud = rows[:, 0] + 3 * noise
    fine = rows[:, 0] + noise
    for rewards, words in ((curved, "not linear"), (changed, "half-way"), (loud, "scatter 3 times")):
        with pytest.warns(RejectedCertificateWarning, match=words):
            found = aw.certificate(X, arms, rewards, noise=0.1, norm=1.5)
        fit = found.fit
        assert fit.rejected and words in str(fit) and "does not apply" in str(fit)
        # No view has the number as if it held.
        assert found.regret == np.inf and np.isinf(found.curve).all() and 0 < found.claimed < 2_000
        assert "is not certified" in str(found) and found.data()["regret"] is None and not found.applies
    assert not aw.certificate(X, arms, fine, noise=0.1, norm=1.5).fit.rejected


@pytest.mark.filterwarnings("ignore::armwise.theory.certificate.RejectedCertificateWarning")
def test_lack_of_fit_of_clicks_and_kernels_is_found():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(3_000, 2, 2))
    arms = rng.integers(2, size=3_000)
    rows = X[np.arange(3_000), arms]
    for score, wrong in ((2 * rows[:, 0], False), (3 * rows[:, 0] * rows[:, 1], True)):
        clicks = (rng.random(3_000) < 1 / (1 + np.exp(-score))).astype(float)
        assert aw.certificate(X, arms, clicks, norm=4.0, link="logistic").fit.rejected == wrong
    grid = np.tile(np.linspace(0, 1, 20)[None, :, None], (3_000, 1, 1))
    arms = rng.integers(20, size=3_000)
    rough, smooth = rng.normal(size=20), np.sin(3 * np.linspace(0, 1, 20))
    for f, wrong in ((rough, True), (smooth, False)):
        rewards = f[arms] + 0.1 * rng.normal(size=3_000)
        settings = {"noise": 0.1, "kernel": aw.kernels.RBF(0.5)}
        assert aw.certificate(grid, arms, rewards, norm=5.0, **settings).fit.rejected == wrong
        assert aw.certificate(grid, arms, rewards, drawn=True, **settings).fit.rejected == wrong


def test_the_test_of_the_if_raises_few_false_alarms():
    """Under the stated class, with arms chosen greedily: p < 0.05 in at most 5 % of 60 runs."""
    alarms = 0
    for seed in range(60):
        X, arms, rewards, _, S = linear_rounds(seed)
        alarms += aw.certificate(X, arms, rewards, noise=0.1, norm=S).fit.p_value < 0.05
    assert alarms <= 3


# ---------------------------------------------------------------------- what it reads


def test_blocks_logs_and_arrays_are_one(monkeypatch):
    from armwise.theory.certificate import played_rounds

    X, arms, rewards, _, S = linear_rounds(4)
    whole = aw.certificate(X, arms, rewards, noise=0.1, norm=S)
    log = aw.offline.Log(contexts=X, arms=arms, rewards=rewards)
    monkeypatch.setattr(played_rounds, "BLOCK", 64)
    for found in (aw.certificate(X, arms, rewards, noise=0.1, norm=S), aw.certificate(log, noise=0.1, norm=S)):
        assert found.regret == pytest.approx(whole.regret, rel=1e-9)
        assert found.fit.p_value == pytest.approx(whole.fit.p_value, rel=1e-6)


def test_a_log_with_one_context_for_all_arms_has_a_theta_for_each():
    rng = np.random.default_rng(1)
    x, arms = rng.normal(size=(300, 2)) / 2, rng.integers(3, size=300)
    log = aw.offline.Log(contexts=x, arms=arms, rewards=np.clip(0.5 + x[:, 0] * (arms - 1) / 4, 0, 1), n_arms=3)
    with pytest.warns(RejectedCertificateWarning, match="not linear"):  # without a constant among the contexts
        found = aw.certificate(log, norm=1.0)
    assert "with a theta for each arm" in str(found)
    assert found.data()["rounds"] == 300


def test_arms_that_were_not_offered_do_not_count():
    X, arms, rewards, _, S = linear_rounds(4)
    offered = np.zeros((T, 4), bool)
    offered[np.arange(T), arms] = True
    log = aw.offline.Log(contexts=X, arms=arms, rewards=rewards, available=offered)
    assert aw.certificate(log, noise=0.1, norm=S, test=False).regret == 0.0


def test_fewer_rounds_at_once():
    X, arms, rewards, _, S = linear_rounds(4)
    found = aw.certificate(X, arms, rewards, noise=0.1, norm=S, at=[100, 300], test=False)
    assert found.rounds.tolist() == [100, 300, T]
    part = aw.certificate(X[:100], arms[:100], rewards[:100], noise=0.1, norm=S, test=False)
    assert found.curve[0] == pytest.approx(min(part.regret, found.curve[1]))


def test_the_posterior_of_a_draw_covers_differences():
    """f drawn from the process, arms chosen greedily: the set misses a difference in at most delta of the draws."""
    world, missed = aw.environments.GaussianProcess(n_arms=10), 0
    for seed in range(60):
        block = next(world.blocks(80, seed=seed))
        X = block.view("features")
        played = aw.GPUCB(aw.kernels.RBF(0.3), beta=0.0, seed=seed).play(X, block.rewards)
        rounds = Rounds.of_arrays(X, played.arms, played.rewards)
        found = KernelSet(rounds, 80, world.covariance, 0.1, None, 0.1, 1)._differences(X[0])
        f = block.expected[0]
        at = np.unique(played.arms)
        missed += bool(np.any((f[None] - f[:, None] > found + 1e-6)[at]))
    assert missed <= 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm": None}, "norm must be given"),
        ({"norm": -1.0}, "norm must be"),
        ({"delta": 2.0}, "delta must"),
        ({"noise": None, "rewards": [2.0] * 5}, r"noise must be given where rewards leave \[0, 1\]"),
        ({"rewards": [1.0] * 4}, "one entry for each of the 5 contexts"),
        ({"arms": [0, 1, 2, 0, 7]}, "arms must lie in 0 to 2"),
        ({"arms": [0.5] * 5}, "arms must be whole numbers"),
        ({"contexts": np.full((5, 3, 2), np.nan)}, "contexts must be finite"),
        ({"contexts": np.ones(5)}, r"contexts must have shape \(n, K, d\)"),
        ({"arms": None}, "give contexts, arms and rewards, or a Log"),
        ({"link": "probit"}, 'link must be "logistic" or a Link'),
        ({"kernel": "rbf"}, "kernel must be"),
        ({"kernel": aw.kernels.RBF(), "drawn": True}, "norm is for a function of bounded norm"),
        ({"at": [9]}, "at must lie in 1 to 5"),
    ],
)
def test_bad_input_is_named(change, message):
    given = {"contexts": np.ones((5, 3, 2)), "arms": [0, 1, 2, 0, 1], "rewards": [0.5] * 5, "norm": 1.0, "noise": 0.1}
    with pytest.raises(ValueError, match=message):
        aw.certificate(**given | change)


def test_a_row_of_a_race_has_the_certified_runs_own_regret_beside_its_certificate():
    """The mean over seeds may lie above a certificate of the first one, which is no violation."""
    agents = {"LinUCB": aw.LinUCB(3, alpha=0.3), "Uniform": aw.Explore(aw.LinUCB(3), 1.0)}
    result = aw.race(agents, aw.environments.Linear(4, 3), horizon=300, seeds=3)
    for row in result.table().to_dict("records"):
        own = result.regret(row["agent"])[0, -1]
        assert row["certified_seed"] == result.seeds[0] and row["certified_regret"] == own <= row["certificate"]
    from armwise.cli.racing.race import _text

    lines = _text(result).splitlines()
    assert f"seed {result.seeds[0]}: certified" in lines[0] and all(" <= " in line for line in lines[1:])


def test_rounds_are_read_up_to_one():
    rounds = Rounds.of_arrays(np.ones((5, 2, 3)), [0, 1, 0, 1, 1], [0.0, 1.0, 0.0, 1.0, 1.0])
    assert len(rounds) == 5
    assert rounds.n_arms == 2
    assert [len(block) for block in rounds.blocks(upto=4)] == [4]


def test_a_small_p_value_rejects():
    assert Fit(1e-6, "rewards are not linear in these features").rejected
