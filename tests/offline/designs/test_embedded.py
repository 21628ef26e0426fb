"""Very many arms: MIPS and OffCEM against explicit sums and a world with known truth."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from armwise.offline import Log, evaluate, evaluate_embedded
from armwise.offline.designs.embedded import groups_of

K, G = 200, 5
GROUP = np.arange(K) % G
VALUE = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
LOGGER = np.random.default_rng(3).dirichlet(np.full(K, 0.3)) * 0.98 + 0.02 / K
EVENER = 0.5 * LOGGER + 0.5 / K
DIRECT = np.where(np.median(LOGGER) < LOGGER, 0.08, -0.08)  # the log plays good arms of a group more often
TARGET = np.where(GROUP == 4, 3.0, 0.5) / np.where(GROUP == 4, 3.0, 0.5).sum()


def make(n, seed, direct=0.0, p=LOGGER):
    rng = np.random.default_rng([seed, 9])
    x = rng.normal(size=(n, 2))
    arms = rng.choice(K, n, p=p)
    mean = VALUE[GROUP[arms]] + direct * DIRECT[arms] + 0.02 * x[:, 0]
    rewards = (rng.random(n) < mean).astype(float)
    return Log(contexts=x, arms=arms, rewards=rewards, probabilities=p[arms], n_arms=K)


def test_weights_are_those_of_the_embedding():
    log = make(300, 1)
    total = 0.0
    for arm, reward in zip(log.arms, log.rewards, strict=True):
        alike = [a for a in range(K) if GROUP[a] == GROUP[arm]]
        total += sum(TARGET[a] for a in alike) / sum(LOGGER[a] for a in alike) * reward
    found = evaluate_embedded(log, TARGET, GROUP, "mips", logging=LOGGER, warn=False)
    assert found["mips"].value == pytest.approx(total / 300, rel=1e-12)
    one_each = evaluate_embedded(log, TARGET, np.arange(K), "mips", logging=LOGGER, warn=False)["mips"]
    assert one_each.value == pytest.approx(evaluate(log, TARGET, "ips", warn=False)["ips"].value, rel=1e-12)


def test_mips_is_unbiased_with_a_fraction_of_the_variance():
    right = TARGET @ VALUE[GROUP]
    errors: dict[str, list[float]] = {"mips": [], "ips": [], "estimated": []}
    held = 0
    for run in range(80):
        log = make(400, run)
        found = evaluate_embedded(log, TARGET, GROUP, "mips", logging=LOGGER, warn=False)["mips"]
        held += found.low <= right <= found.high
        errors["mips"].append(found.value - right)
        errors["ips"].append(evaluate(log, TARGET, "ips", warn=False)["ips"].value - right)
        guess = evaluate_embedded(log, TARGET, GROUP, "mips", warn=False)["mips"]
        errors["estimated"].append(guess.value - right)
    assert held >= 70
    assert np.std(errors["mips"]) < 0.4 * np.std(errors["ips"])
    for name in ("mips", "estimated"):
        assert abs(np.mean(errors[name])) < 4 * np.std(errors[name]) / np.sqrt(80) + 0.005, name


def test_offcem_explains_the_arms_within_a_cluster():
    # With a direct effect of the arms, MIPS is off by their mean difference; the model takes most of that away.
    right = TARGET @ (VALUE[GROUP] + DIRECT)
    errors: dict[str, list[float]] = {"mips": [], "offcem": []}
    for run in range(15):
        found = evaluate_embedded(make(20_000, run, direct=1.0, p=EVENER), TARGET, GROUP, logging=EVENER, warn=False)
        for name in errors:
            errors[name].append(found[name].value - right)
    assert abs(np.mean(errors["offcem"])) < 0.5 * abs(np.mean(errors["mips"]))
    assert "do not earn the same" in found.verdict and "mips assumes that the reward depends" in found.to_json()


def test_real_embeddings_are_clustered():
    points = np.column_stack([GROUP * 10.0, GROUP * -10.0]) + np.random.default_rng(1).normal(size=(K, 2)) * 0.01
    log = make(500, 2)
    by_points = evaluate_embedded(log, TARGET, points, "mips", logging=LOGGER, clusters=G, warn=False)["mips"]
    by_group = evaluate_embedded(log, TARGET, GROUP, "mips", logging=LOGGER, warn=False)["mips"]
    assert by_points.value == pytest.approx(by_group.value, rel=1e-12)


def test_ten_thousand_arms_take_megabytes():
    # An (n, K) table of these rows would be 400 MB; blocks keep it in tens. The time is printed by -s, not judged.
    n, many = 5000, 10_000
    rng = np.random.default_rng(4)
    arms = rng.integers(0, many, n)
    log = Log(contexts=rng.normal(size=(n, 5)), arms=arms, rewards=rng.random(n), n_arms=many)
    start = time.process_time()
    tracemalloc.start()
    found = evaluate_embedded(
        log, np.full(many, 1 / many), np.arange(many) % 30, logging=np.full(many, 1 / many), warn=False
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"{time.process_time() - start:.1f} s, {peak / 1e6:.0f} MB")
    assert found["mips"].value == pytest.approx(log.rewards.mean()) and peak < 250e6


def test_what_is_wrong_is_named():
    log = make(50, 1)
    with pytest.raises(ValueError, match=r"embeddings has shape \(3,\)"):
        evaluate_embedded(log, TARGET, [0, 1, 2])
    with pytest.raises(ValueError, match="clusters= is for embeddings of real numbers"):
        evaluate_embedded(log, TARGET, GROUP, clusters=3)
    never = np.where(GROUP[log.arms[0]] == GROUP, 0.0, 1.0)
    with pytest.raises(ValueError, match="logging, row 0: it never plays arms like"):
        evaluate_embedded(log, TARGET, GROUP, logging=never / never.sum())


def test_arms_of_a_group_that_earn_differently_are_found_and_alike_ones_are_not():
    # 30 logs each: without the interval of weights by arm mips covers .2 and less where arms differ by a sixth.
    K, found = 60, np.zeros((2, 3))
    group, better = np.arange(K) % 6, np.random.default_rng(1).random(K) < 0.5
    target = np.where(better, 2.0, 0.5)
    target /= target.sum()
    for seed in range(30):
        rng = np.random.default_rng([seed, 9])
        arms = rng.integers(0, K, 3000)
        for i, effect in enumerate((0.0, 0.18)):
            mean = (0.2 + 0.05 * group) * np.where(better, 1 + effect, 1 - effect)
            log = Log(arms=arms, rewards=(rng.random(3000) < mean[arms]).astype(float), n_arms=K)
            result = evaluate_embedded(log, target, group, logging=np.full(K, 1 / K), warn=False)
            truth = float(target @ mean)
            found[i] += ["do not earn the same" in result.verdict, bool(result.verdict),
                         result["mips"].low <= truth <= result["mips"].high]  # fmt: skip
    healthy, deficient = found
    assert healthy[1] <= 3 and healthy[2] >= 25  # no alarm, and it covers
    assert deficient[0] >= 28 and deficient[2] >= 25


def test_the_error_of_offcem_holds_what_the_arms_own_means_add():
    # One cluster of ten arms: the model's mean of the target's arm rests on a tenth of the rows, and the interval took
    # it for exact: a third as wide as it has to be.
    rng = np.random.default_rng(2)
    arms = rng.integers(0, 10, 20_000)
    log = Log(arms=arms, rewards=rng.normal(0.1 * arms, 1.0), n_arms=10)
    found = evaluate_embedded(log, np.eye(10)[3], np.zeros(10, int), "offcem", logging=np.full(10, 0.1), warn=False)
    assert found["offcem"].std_error == pytest.approx(np.sqrt(10 / 20_000), rel=0.1)
    assert found["offcem"].low < 0.3 < found["offcem"].high


def test_where_alike_arms_are_in_doubt_the_interval_reaches_over_that_of_weights_by_arm():
    from benchmarks.faulty_designs import embedded

    rng, widths, doubted = np.random.default_rng(3), [], 0
    for _ in range(40):
        arms = rng.integers(0, 40, 1500)
        log = Log(arms=arms, rewards=(rng.random(1500) < 0.3).astype(float), n_arms=40)
        target = np.where(np.arange(40) < 20, 0.04, 0.01)
        found = evaluate_embedded(log, target, np.arange(40) % 4, "mips", logging=np.full(40, 1 / 40), warn=False)
        widened = any("over that of weights by arm" in note for note in found.notes)
        widths.append((widened, found["mips"].high - found["mips"].low))
        doubted += widened
        assert widened >= bool(found.verdict)
    wide, plain = (np.mean([w for doubt, w in widths if doubt is kind]) for kind in (True, False))
    assert 1 <= doubted <= 20 and wide > 1.1 * plain
    covers, _, warned = embedded(np.random.default_rng(0), False, direct=0.4)["mips"]
    assert warned and covers  # beyond doubt it is a warning, too


def test_equal_embeddings_are_one_group():
    assert groups_of([["shoe", "red"], ["hat", "red"], ["shoe", "red"]], n_arms=3).of.tolist() == [1, 0, 1]
