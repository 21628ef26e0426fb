"""The arms without the context's interactions: useless columns cost little, useful ones are used."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from armwise import export
from armwise.core import saving
from armwise.features.encoding.from_python import read_context, read_named_arms
from armwise.features.encoding.hashed import HashedRows
from armwise.features.encoding.running_scale import UNSCALED
from armwise.features.encoding.tokens import RequestTokens, part
from armwise.models.ridge import Ridge
from armwise.native.decisions import surplus
from armwise.service.journal.events import Creation, Decision, Reward, Row, Settings
from armwise.service.model import arms_alone
from armwise.service.model.arms_alone import ArmsAlone
from armwise.service.model.build import build_model
from armwise.service.model.exporting import exported
from armwise.service.model.merged_views import merge
from armwise.service.model.model import DecisionOutcome, DrawRequest, Model
from tests.export.worlds import through_python

RATES = (0.02, 0.03, 0.04, 0.06)
ARMS = read_named_arms(["a", "b", "c", "d"])


def rounds(n: int, seed: int, useful: bool) -> Any:
    """Contexts, and the rates of the arms; where the segment is useful the arms change places with it."""
    rng = np.random.default_rng([seed, 41])
    table = [rng.permutation(RATES) for _ in range(5)]
    for _ in range(n):
        segment = int(rng.integers(5))
        context = {"device": f"d{rng.integers(3)}", "segment": f"s{segment}", "city": f"c{rng.integers(50)}",
                   "age": float(rng.normal(40.0, 15.0))}  # fmt: skip
        yield context, table[segment if useful else 0]


def live(model: Model, n: int, seed: int, useful: bool, columns: tuple[str, ...], at: int = 0) -> np.ndarray:
    """What each decision's arm earns on average, where every outcome comes at once."""
    rng, found = random.Random(seed), np.zeros(n)
    for k, (context, rates) in enumerate(rounds(n, seed, useful), at + 1):
        text, tokens = read_context({name: context[name] for name in columns})
        [drawn] = model.decide([DrawRequest(text, ARMS, rng.random(), tokens)])
        made = Decision(msgspec.Raw(text), ARMS.raws, drawn.p.tolist(), drawn.arm, k, 1, 0.0)
        made.scaling = drawn.seen.scaling.packed
        model.register_decisions([Row(2 * k, k, "shop", "decision", "", b"", made, seen=drawn.seen)])
        reward = float(rng.random() < rates[drawn.arm])
        model.apply_outcomes([DecisionOutcome(Reward(reward, 2 * k, lesson=reward), made, drawn.seen)])
        found[k - 1 - at] = rates[drawn.arm]
    return found


ALL = ("device", "segment", "city", "age")


def test_columns_that_say_nothing_cost_the_default_little() -> None:
    """From 10,000 decisions on, at least .97 of what it earns without them; with interactions alone it was .84."""
    late = {}
    for columns in ((), ALL):
        models = [build_model(Creation(settings=Settings(drift="off"))) for _ in range(3)]
        late[columns] = np.mean([live(m, 14_000, s, False, columns)[10_000:] for s, m in enumerate(models)])
    assert late[ALL] > 0.97 * late[()]


def test_a_column_that_matters_is_used() -> None:
    models = [build_model(Creation(settings=Settings(drift="off"))) for _ in range(3)]
    late = np.mean([live(m, 14_000, s, True, ("device", "segment"))[11_000:] for s, m in enumerate(models)])
    assert late > 1.25 * np.mean(RATES)
    assert not any(m.alone is None or m.alone.decides for m in models)


def lesson(rng: Any, row: np.ndarray, reward: float) -> tuple[Any, np.ndarray]:
    """A reward of one arm with a row of some kind; beside it the row without interactions of what was asked."""
    context = {f"x{k}": f"v{rng.integers(4)}" for k in range(6)}
    stack = RequestTokens(part(msgspec.json.encode(context), "c"), ARMS.tail)
    arm = int(rng.integers(ARMS.tail.n))
    plain = HashedRows(len(row), interactions=False).rows(stack.only(arm), UNSCALED)[0]
    return (stack.context.counted, ARMS.tail.words, ARMS.tail.n, row[None], reward, arm, b""), plain


def filled(seed: int, n: int = 300, dim: int = 21) -> tuple[ArmsAlone, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, dim)) * (rng.random((n, dim)) < 0.3)
    rewards = (rng.random(n) < 0.4).astype(float)
    lessons, plain = zip(*(lesson(rng, row, reward) for row, reward in zip(rows, rewards.tolist())))
    alone = ArmsAlone(dim, 1.0)
    alone.learn(list(lessons[:100]))
    alone.learn(list(lessons[100:]))
    return alone, (rows, np.array(plain), rewards)


def test_the_surplus_is_that_of_its_definition() -> None:
    alone, (rows, plain, rewards) = filled(1)
    A = np.eye(21) + plain.T @ plain
    theta = np.linalg.solve(A, plain.T @ rewards)
    scores = rows.T @ (rewards - plain @ theta)
    own = (rows**2).sum(axis=0) - np.einsum("ij,ij->j", plain.T @ rows, np.linalg.solve(A, plain.T @ rows))
    alike = (scores**2 / 0.24 - own).sum() / np.sqrt(2 * (own**2).sum())
    each = (scores**2 / 0.24 / own - 1).sum() / np.sqrt(2 * 21)
    found = surplus(alone.ridge.models, alone.crossed, alone.sums, 0.24)
    assert own.min() > 1.0 and found == pytest.approx(alike + each)


def test_the_surplus_of_chance_is_about_its_deviations_and_that_of_a_signal_grows() -> None:
    def of(effect: float, seed: int, n: int = 2000) -> float:
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(n, 16)) / 4.0
        rewards, alone = (rng.random(n) < 0.3 + effect * rows[:, 0]).astype(float), ArmsAlone(16, 1.0)
        same = b"\0" * 8, ARMS.tail.words, ARMS.tail.n
        alone.learn([(*same, row[None], reward, 0, b"") for row, reward in zip(rows, rewards.tolist())])
        return surplus(alone.ridge.models, alone.crossed, alone.sums, 0.21)

    chance = [of(0.0, seed) for seed in range(40)]
    assert abs(np.mean(chance)) < 1.2 and 1.0 < np.std(chance) < 3.5  # two tests that agree: a deviation of up to 2
    assert np.mean([of(0.4, seed) for seed in range(5)]) > 5.0


def test_what_it_has_learnt_is_a_sum() -> None:
    (one, _), (two, _) = filled(1), filled(2)
    rng = np.random.default_rng(3)
    won, _ = lesson(rng, rng.normal(size=21), 1.0)
    lost = (*won[:4], 0.0, *won[5:])
    at_once, revised = copy.deepcopy(one), copy.deepcopy(one)
    at_once.learn([won])
    revised.learn([lost])
    revised.revise(won, 1.0)
    merged, other_way = one.copy(), two.copy()
    merged.merge(two)
    other_way.merge(one)
    for ours, theirs in ((revised, at_once), (merged, other_way)):
        assert np.allclose(ours.ridge.theta, theirs.ridge.theta)
        for name in ("crossed", "sums", "rewards"):
            assert np.allclose(getattr(ours, name), getattr(theirs, name))
    faded = one.copy()
    faded.fade(0.5)
    half = Ridge(21, 1.0)
    for _, z, reward in zip(*filled(1)[1]):
        half.update(z, reward, weight=0.5)
    assert np.allclose(faded.ridge.theta, half.theta) and faded.rewards[0] == 150.0


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """It decides after 100 decisions, whatever the rewards are."""
    monkeypatch.setattr(arms_alone, "MIN_DECISIONS", 100)
    monkeypatch.setattr(arms_alone, "MIN_INFORMATION", 1e-3)
    monkeypatch.setattr(arms_alone, "MAX_SUM", 1e9)


def test_a_model_that_decides_alone_is_a_fold_and_is_merged_copied_and_saved(soon: None) -> None:
    creation = Creation(settings=Settings(drift="off"))
    quick, slow, rng = build_model(creation), build_model(creation), random.Random(5)
    for k, (context, rates) in enumerate(rounds(400, 1, False), 1):
        text, tokens = read_context(context)
        [drawn] = quick.decide([DrawRequest(text, ARMS, rng.random(), tokens)])
        made = Decision(msgspec.Raw(text), ARMS.raws, drawn.p.tolist(), drawn.arm, k, 1, 0.0)
        made.scaling, reward = drawn.seen.scaling.packed, float(rng.random() < rates[drawn.arm])
        row, outcome = Row(2 * k, k, "shop", "decision", "", b""), Reward(reward, 2 * k, lesson=reward)
        quick.register_decisions([msgspec.structs.replace(row, at_hand=made, seen=drawn.seen)])
        quick.apply_outcomes([DecisionOutcome(outcome, made, drawn.seen)])
        again = msgspec.json.decode(msgspec.json.encode(made), type=Decision)  # as a replay reads it
        slow.register_decisions([msgspec.structs.replace(row, at_hand=again)])
        slow.apply_outcomes([DecisionOutcome(outcome, again)])
    assert quick.alone is not None and quick.alone.decides
    assert saving.dumps(quick) == saving.dumps(slow)
    twin = saving.loads(saving.dumps(quick))
    assert isinstance(twin, Model)
    text, tokens = read_context({"segment": "s1", "age": 3.0})
    request = DrawRequest(text, ARMS, 0.3, tokens)
    [drawn], [other], [copied] = quick.decide([request]), twin.decide([request]), quick.copy().decide([request])
    assert drawn.p.tolist() == other.p.tolist() == copied.p.tolist()
    means, widths = quick.estimate(text, ARMS)
    assert widths is not None and (means + 0.5 * widths).argmax() == drawn.p.argmax()
    [view, _, whole] = merge([quick, twin])
    assert view.alone is not None and view.alone is whole.alone and view.alone.rewards[0] == 800.0


def test_a_snapshot_from_before_goes_on_without_it() -> None:
    model = build_model(Creation())
    live(model, 20, 1, False, ALL)
    state = model._state()
    del state["alone"]
    before = build_model(Creation())
    before._restore(state)
    live(before, 20, 2, False, ALL, at=20)
    assert before.alone is None and before.agent.t == model.agent.t


def test_the_exported_policy_is_that_of_what_decides(soon: None, tmp_path: Path) -> None:
    model = build_model(Creation(settings=Settings(drift="off")))
    live(model, 300, 3, False, ALL)
    assert model.alone is not None and model.alone.decides
    policy = exported(model, "shop")
    assert policy.document["encoder"]["interactions"] is False
    export.write(policy, tmp_path / "policy.py")
    contexts = [context for context, _ in rounds(20, 9, False)]
    answers = through_python(tmp_path, "policy", [{"context": each, "arms": list(ARMS.ids)} for each in contexts])
    for context, answer in zip(contexts, answers, strict=True):
        text, tokens = read_context(context)
        [drawn] = model.decide([DrawRequest(text, ARMS, 0.5, tokens)])
        np.testing.assert_allclose(answer, drawn.p, atol=1e-12)
