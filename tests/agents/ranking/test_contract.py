"""Every ranker: lists without repetition, exact probabilities, constraints, files, and refusals that change nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import armwise as aw
from armwise.core import saving
from armwise.theory.assumption_filter import verdicts

LOOSE: Any = aw  # arguments of types that a checker refuses
ROOT = Path(__file__).parents[3]
L, D, K = 6, 3, 3
ROWS = np.random.default_rng(5).uniform(0, 1, (L, D))

RANKERS: dict[str, Callable[[int], Any]] = {
    "CascadeUCB1": lambda s: aw.CascadeUCB1(L, seed=s),
    "CascadeKLUCB": lambda s: aw.CascadeKLUCB(L, seed=s),
    "CascadeLinUCB": lambda s: aw.CascadeLinUCB(D, seed=s),
    "CascadeLinUCB, ellipsoid": lambda s: aw.CascadeLinUCB(D, aw.Ellipsoid(0.5, 1.0, 0.05), 3.0, seed=s),
    "CascadeLinThompson": lambda s: aw.CascadeLinThompson(D, seed=s),
    "C2UCB": lambda s: aw.C2UCB(D, seed=s),
    "C2UCB, diverse": lambda s: aw.C2UCB(D, 0.3, 0.7, diversity=0.5, seed=s),
    "PositionUCB": lambda s: aw.PositionUCB(L, kappa=[1.0, 0.6, 0.4], seed=s),
    "PositionUCB, kappa learnt": lambda s: aw.PositionUCB(L, K, seed=s),
    "PositionThompson": lambda s: aw.PositionThompson(L, kappa=[1.0, 0.6, 0.4], seed=s),
    "PositionThompson, kappa learnt": lambda s: aw.PositionThompson(L, K, seed=s),
    "TopRank": lambda s: aw.TopRank(L, 1000, seed=s),
    "SlotBySlot of SquareCB": lambda s: aw.SlotBySlot(aw.SquareCB(D), seed=s),
    "SlotBySlot, open dim": lambda s: aw.SlotBySlot(aw.SquareCB(), seed=s),
    "SlotBySlot of LinUCB": lambda s: aw.SlotBySlot(aw.LinUCB(D), "cascade", seed=s),
    "SlotBySlot of Auto": lambda s: aw.SlotBySlot(aw.Auto(D), "several clicks", seed=s),
    "SlotBySlot of LinThompson": lambda s: aw.SlotBySlot(aw.LinThompson(D), seed=s),
    "SlotBySlot, kappa": lambda s: aw.SlotBySlot(aw.LinUCB(D), "position-based", [1.0, 0.6, 0.4], seed=s),
    "SlotBySlot, kappa learnt": lambda s: aw.SlotBySlot(aw.LinUCB(D), "position-based", seed=s),
    "SlotBySlot of Exp3": lambda s: aw.SlotBySlot(aw.Exp3(L, 0.2), seed=s),
    "SlotBySlot of UCB1": lambda s: aw.SlotBySlot(aw.UCB1(L), seed=s),
    "SlotBySlot of BetaThompson": lambda s: aw.SlotBySlot(aw.BetaThompson(L), seed=s),
    "SlotBySlot of SquareCB with arms": lambda s: aw.SlotBySlot(aw.SquareCB(D, n_arms=L), "cascade", seed=s),
    "SlotBySlot of LinUCB with arms": lambda s: aw.SlotBySlot(aw.LinUCB(D, n_arms=L), seed=s),
    "SlotBySlot of D3RB": lambda s: aw.SlotBySlot(aw.D3RB([aw.UCB1(L), aw.Exp3(L, 0.2)]), seed=s),
    "SlotBySlot of LogisticThompson": lambda s: aw.SlotBySlot(aw.LogisticThompson(D), "position-based", seed=s),
    "SlotBySlot of RegCB": lambda s: aw.SlotBySlot(aw.RegCB(D), seed=s),
    "SlotBySlot of RandUCB": lambda s: aw.SlotBySlot(aw.RandUCB(D), seed=s),
    "SlotBySlot of EpsilonGreedy": lambda s: aw.SlotBySlot(aw.EpsilonGreedy(L, epsilon=0.3), seed=s),
}
EVERY = pytest.mark.parametrize("name", RANKERS)


def seen(ranker: Any) -> Any:
    return {"nothing": None, "shared": ROWS[0], "key": "phone"}.get(ranker.sees, ROWS)


def taught(name: str, seed: int = 1, lists: int = 40) -> Any:
    ranker, rng = RANKERS[name](seed), np.random.default_rng(seed)
    for _ in range(lists):
        ranking = ranker.rank(seen(ranker), K)
        ranker.learn(seen(ranker), ranking, [float(rng.random() < 0.1 + 0.12 * arm) for arm in ranking.arms])
    return ranker


def test_every_public_ranker_is_here_and_has_a_page() -> None:
    public = {n for n in aw.__all__ if isinstance(getattr(aw, n), type) and issubclass(getattr(aw, n), aw.Ranker)}
    assert {type(make(0)).__name__ for make in RANKERS.values()} == public - {"Ranker"}
    for name in public - {"Ranker"}:
        text = (ROOT / "docs" / "rankings" / f"{name}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {name}\n") and "\n$$" in text and "\n## When to use it\n" in text, name
        theory = getattr(aw, name).theory
        assert theory.regret_bound is None or theory.hypotheses is not None


@EVERY
def test_lists_show_no_arm_twice_and_keep_to_what_is_offered(name: str) -> None:
    ranker = taught(name, lists=5)
    for _ in range(20):
        ranking = ranker.rank(seen(ranker), K, **LIMITED)
        assert len(set(ranking.arms)) == K and ranking.arms[1] == 4 and 3 not in ranking.arms
        assert len({"aabbcc"[arm] for arm in ranking.arms}) == K
        assert ranking.probabilities is None or ranking.probabilities[1] == 1.0
        ranker.learn(seen(ranker), ranking, {4: 1.0})


@EVERY
def test_a_saved_ranker_continues_identically(name: str) -> None:
    ranker = taught(name)
    again = saving.loads(saving.dumps(ranker))
    for _ in range(5):
        ranking = ranker.rank(seen(ranker), K)
        assert again.rank(seen(again), K) == ranking
        for one in (ranker, again):
            one.learn(seen(one), ranking, [0.0, 1.0, 0.0])
    assert saving.dumps(again) == saving.dumps(ranker)


@EVERY
def test_clone_forgets_and_a_seed_decides_every_draw(name: str) -> None:
    ranker = taught(name)
    if "open dim" not in name:  # which a clone has been told
        assert saving.dumps(ranker.clone(1)) == saving.dumps(RANKERS[name](1))
    assert saving.dumps(taught(name)) == saving.dumps(ranker)


LIMITED: dict[str, Any] = {"available": [0, 1, 2, 4, 5], "pinned": {1: 4}, "categories": list("aabbcc"), "at_most": 1}


@pytest.mark.parametrize(("k", "offer"), [(2, {}), (3, LIMITED)], ids=["any arm", "pinned, limited"])
@EVERY
def test_the_probabilities_of_slots_are_those_of_repeated_lists(name: str, k: int, offer: dict[str, Any]) -> None:
    """A failure would mean that a list's logged probability is not that of drawing it, so that IPS is biased."""
    ranker = taught(name, lists=12)
    if ranker.rank(seen(ranker), k, **offer).probabilities is None:
        return
    counts: dict[tuple[int, ...], int] = {}
    known: dict[tuple[int, ...], float] = {}
    n = 1500
    for _ in range(n):  # nothing is learnt in between
        ranking = ranker.rank(seen(ranker), k, **offer)
        assert ranking.probability is not None
        counts[ranking.arms] = counts.get(ranking.arms, 0) + 1
        known[ranking.arms] = ranking.probability
    assert sum(known.values()) <= 1.0 + 1e-9
    expected = np.array([known[arms] * n for arms in counts] + [(1.0 - sum(known.values())) * n])
    observed = np.array([*counts.values(), 0])
    large = expected >= 5.0
    if large.sum() < 2:
        assert max(known.values()) > 0.99 or len(counts) > 100
        return
    expected = np.append(expected[large], max(expected[~large].sum(), 1e-9))
    observed = np.append(observed[large], observed[~large].sum())
    keep = expected > 1e-6
    chance = stats.chisquare(observed[keep], expected[keep] * observed[keep].sum() / expected[keep].sum()).pvalue
    assert chance > 1e-4, (name, chance)  # 30 tests of rankers that draw: a false alarm in 300 changes of all seeds


@EVERY
def test_probabilities_are_those_of_the_lists_and_asking_changes_nothing(name: str) -> None:
    ranker = taught(name)
    X = seen(ranker)
    offers: list[dict[str, Any]] = [{}, {"available": [0, 2, 3, 5]}, {"categories": list("aabbcc"), "at_most": 1}]
    for offer in offers * 5:
        ranking, before = ranker.rank(X, K, **offer), saving.dumps(ranker)
        if ranking.probabilities is None:
            with pytest.raises(ValueError, match="does not know the probabilities"):
                ranker.probabilities(X, **offer)
            continue
        for slot, (arm, p) in enumerate(zip(ranking.arms, ranking.probabilities)):
            each = ranker.probabilities(X, ranking.arms[:slot], **offer)
            assert each.shape == (L,) and each.sum() == pytest.approx(1.0, abs=1e-12)
            assert each[arm] == pytest.approx(p, abs=1e-12) and not each[list(ranking.arms[:slot])].any()
        assert saving.dumps(ranker) == before
    if ranking.probabilities is not None:
        for above in ([0, 0], [L], [-1], [0.5], ["a"], list(range(L))):
            with pytest.raises(ValueError, match=r"^(above|k) "):
                ranker.probabilities(X, above)
        with pytest.raises(ValueError, match="above has arm 1, which no list"):
            ranker.probabilities(X, [1], available=[0, 2])


@EVERY
def test_bad_input_is_refused_and_changes_nothing(name: str) -> None:
    ranker = taught(name, lists=3)
    X = seen(ranker)
    ranking, before = ranker.rank(X, K), saving.dumps(ranker)
    other = next(arm for arm in range(L) if arm not in ranking.arms)
    twice = ranking._replace(arms=(ranking.arms[0],) * K)
    strange: Any = {"nothing": "rows", "shared": np.zeros(D + 1), "key": []}.get(ranker.sees, np.zeros((L, D + 1)))
    wrong = [
        ("k", lambda: ranker.rank(X, L + 1)),
        ("k", lambda: ranker.rank(X, 0)),
        ("k", lambda: ranker.rank(X, K, available=[0, 1])),
        ("available", lambda: ranker.rank(X, 2, available=[0, 0, 1])),
        ("available", lambda: ranker.rank(X, 2, available=[0, 99])),
        ("pinned", lambda: ranker.rank(X, K, pinned={K: 0})),
        ("pinned", lambda: ranker.rank(X, K, pinned={0: 1, 1: 1})),
        ("pinned", lambda: ranker.rank(X, 2, pinned={0: 3}, available=[0, 1, 2])),
        ("pinned", lambda: ranker.rank(X, 2, pinned={0: 0, 1: 1}, categories=list("aabbcc"), at_most=1)),
        ("categories", lambda: ranker.rank(X, 2, categories=list("aab"), at_most=1)),
        ("categories", lambda: ranker.rank(X, 2, at_most=1)),
        ("categories", lambda: ranker.rank(X, 2, categories=[["a"]] * L, at_most=1)),
        ("at_most", lambda: ranker.rank(X, 2, categories=list("aabbcc"), at_most=0)),
        ("k", lambda: ranker.rank(X, K, categories=list("aaabbb"), at_most=1)),
        ("outcomes", lambda: ranker.learn(X, ranking, [1.0] * (K + 1))),
        ("outcomes", lambda: ranker.learn(X, ranking, [np.nan] * K)),
        ("outcomes", lambda: ranker.learn(X, ranking, {other: 1.0})),
        ("outcomes", lambda: ranker.learn(X, ranking, ["a"] * K)),
        ("ranking", lambda: ranker.learn(X, aw.Choice(0, 1.0), [1.0] * K)),
        ("ranking.arms", lambda: ranker.learn(X, twice, [1.0] * K)),
        ("ranking.arms", lambda: ranker.learn(X, ranking._replace(arms=(L, 0, 1)), [1.0] * K)),
        ("ranking.probabilities", lambda: ranker.learn(X, ranking._replace(probabilities=(2.0,) * K), [1.0] * K)),
        ("X" if ranker.sees == "features" else "context", lambda: ranker.rank(strange, K)),
    ]
    if ranker.n_slots is not None:
        wrong.append(("k", lambda: ranker.rank(X, K + 1)))
    for argument, call in wrong:
        with pytest.raises(ValueError, match=argument):
            call()
        assert saving.dumps(ranker) == before, argument


@pytest.mark.parametrize("name", [n for n in RANKERS if hasattr(RANKERS[n](0), "add_arm")])
def test_arms_come_and_go(name: str) -> None:
    ranker = taught(name)
    assert ranker.add_arm() == L and L in {arm for _ in range(50) for arm in ranker.rank(None, K).arms}
    means = ranker.estimate()[0]
    ranker.remove_arm(2)
    assert ranker.n_arms == L
    if name != "TopRank":
        assert np.allclose(ranker.estimate()[0], np.delete(means, 2))
    with pytest.raises(ValueError, match="arm must be"):
        ranker.remove_arm(L)
    again = saving.loads(saving.dumps(ranker))
    assert again.rank(None, K) == ranker.rank(None, K)


@pytest.mark.parametrize("name", [n for n in RANKERS if n not in ("TopRank", "SlotBySlot of D3RB")])
def test_the_best_arms_come_to_the_top(name: str) -> None:
    """Arms attract from .05 to .9. A failure would mean that a ranker learns nothing, or the wrong way round."""
    ranker, rng = RANKERS[name](2), np.random.default_rng(2)
    attraction = np.array([0.05, 0.9, 0.1, 0.15, 0.8, 0.2])
    X = seen(ranker)
    if ranker.sees == "features":
        X = np.column_stack([attraction, np.ones(L), rng.normal(size=L) / 5])
    shown = np.zeros(L)
    for t in range(600):
        ranking = ranker.rank(X, 2)
        kappa = (1.0, 0.6) if ranker.feedback == "position-based" else (1.0, 1.0)
        clicks = [float(rng.random() < kappa[slot] * attraction[arm]) for slot, arm in enumerate(ranking.arms)]
        if ranker.feedback == "cascade" and clicks[0]:
            clicks[1] = 0.0
        ranker.learn(X, ranking, clicks)
        if t >= 300:
            shown[list(ranking.arms)] += 1
    assert shown[[1, 4]].sum() / shown.sum() > 0.6


def test_one_reward_for_the_whole_list_is_shared_by_its_slots() -> None:
    one, other = (aw.SlotBySlot(aw.LinUCB(D), seed=1) for _ in range(2))
    ranking = one.rank(ROWS, 2)
    assert other.rank(ROWS, 2) == ranking
    one.learn(ROWS, ranking, 3.0)
    other.learn(ROWS, ranking, [1.5, 1.5])
    assert saving.dumps(one) == saving.dumps(other)
    cascade = aw.CascadeUCB1(L)
    with pytest.raises(ValueError, match="for each of the 2 slots"):
        cascade.learn(None, cascade.rank(None, 2), 1.0)


def test_late_and_shuffled_outcomes_are_learnt() -> None:
    ranker, later = aw.CascadeKLUCB(L, seed=1), aw.CascadeKLUCB(L, seed=1)
    lists = [later.rank(None, K) for _ in range(6)]
    outcomes = np.eye(K)[[0, 1, 2, 0, 1, 2]]
    for i in (3, 1, 5, 0, 2, 4):
        later.learn(None, lists[i], outcomes[i])
    for ranking, clicks in zip(lists, outcomes):
        ranker.learn(None, ranking, clicks)
    assert (later.estimate()[0] == ranker.estimate()[0]).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: aw.SlotBySlot(aw.EpochGreedy([lambda x: 0], n_arms=L)), "agent must learn without a note"),
        (
            lambda: aw.SlotBySlot(aw.LinUCB(D, n_arms=3), "position-based"),
            "has arms of its own: make it without n_arms",
        ),
        (lambda: aw.SlotBySlot(aw.D3RB([aw.LinUCB(D), aw.SquareCB(D)]), "position-based"), "kappa must be given"),
        (lambda: aw.SlotBySlot(aw.Pacing(aw.LinUCB(D), 0.05, 0)), "agent must count no costs"),
        (lambda: LOOSE.SlotBySlot("LinUCB"), "agent must be an armwise agent"),
        (lambda: LOOSE.SlotBySlot(aw.LinUCB(D), "clicks"), "feedback must be"),
        (lambda: aw.SlotBySlot(aw.LinUCB(D), "cascade", [1.0]), "kappa is for feedback"),
        (lambda: aw.SlotBySlot(aw.UCB1(3), "position-based", [1.0]), "multiplies rows of features"),
        (lambda: aw.PositionUCB(3), "n_slots must"),
        (lambda: aw.PositionUCB(3, 2, [1.0]), "kappa must have"),
        (lambda: aw.PositionThompson(3, kappa=[1.0, 0.0]), "kappa must have"),
        (lambda: aw.TopRank(3, 1), "horizon must"),
        (lambda: aw.C2UCB(2, diversity=-1.0), "diversity must"),
        (lambda: LOOSE.CascadeLinUCB(2, alpha="wide"), "alpha must"),
        (lambda: aw.CascadeUCB1(0), "n_arms must"),
    ],
)
def test_wrong_arguments_are_named(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_every_agent_fills_slots_or_says_why_not() -> None:
    """Those refused count costs, or need a note of their own draw; all others learn, with exact probabilities."""
    laplacian = np.diag([1.0, 2, 2, 2, 2, 1]) - np.diag(np.ones(L - 1), 1) - np.diag(np.ones(L - 1), -1)
    here = {"aw": aw, "np": np, "policies": [lambda x: 0, lambda x: 1, lambda x: 2], "laplacian": laplacian}
    refused: dict[str, str] = {}
    for name, verdict in {each.agent: each for each in verdicts(n_arms=L, dim=D, horizon=100, n_policies=3)}.items():
        try:
            ranker = aw.SlotBySlot(eval(verdict.call, here), seed=1)
        except ValueError as error:
            refused[name] = str(error)
            continue
        X = {"nothing": None, "shared": ROWS[0], "key": "phone", "advice": np.full((ranker.n_experts or 1, L), 1 / L)}
        rows = np.column_stack([np.ones(L), ROWS]) if name == "CGPUCB" else ROWS  # whose arms share their context
        context, k = X.get(ranker.sees, rows), min(K, ranker.n_arms or K)
        for _ in range(4):
            ranking = ranker.rank(context, k)
            assert len(set(ranking.arms)) == k, name
            if ranking.probabilities is not None:
                first = ranker.probabilities(context)
                assert first.sum() == pytest.approx(1.0) and first[ranking.arms[0]] == ranking.probabilities[0], name
            ranker.learn(context, ranking, {ranking.arms[0]: 1.0})
    costs = "agent must count no costs, which a list has none of: {} does"
    note = "agent must learn without a note of its choice, as slots draw: {} does not"
    assert refused == {
        **{name: costs.format(name) for name in ("LagrangeCB", "LinCBwK", "HardStop", "Pacing")},
        **{name: note.format(name) for name in ("Exp4P", "EpochGreedy")},
    }
