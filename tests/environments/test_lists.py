"""Worlds of lists: clicks follow the model of the users, values are their means, the best list is the best of all."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from armwise.environments import Lists, RatedLists

RNG = np.random.default_rng(0)
RATINGS = RNG.integers(80, size=4000), RNG.integers(40, size=4000), RNG.integers(1, 6, size=4000)
WORLDS: dict[str, Any] = {
    "cascade": Lists(6, 3),
    "cascade, features": Lists(6, 3, dim=4),
    "several clicks": Lists(6, 3, "several clicks", weights=[0.5, 0.9, 0.7]),
    "position-based": Lists(6, 3, "position-based", attraction=[0.5, 0.1, 0.3, 0.2, 0.05, 0.4], weights=[1, 0.3, 0.6]),
    "position-based, features": Lists(6, 3, "position-based", dim=3),
    "ratings": RatedLists(*RATINGS, n_arms=8, n_slots=3, rank=2),
}


@pytest.mark.parametrize("name", WORLDS)
def test_the_best_list_is_the_best_of_all_and_values_are_means(name: str) -> None:
    """Means over 4,000 users of one list, 5 standard errors. A failure would mean that regret is not what is lost."""
    world = WORLDS[name]
    block = next(world.blocks(50, seed=1))
    every = np.array(list(permutations(range(world.n_arms), world.n_slots)))
    for t in range(3):
        row = aw.environments.ListBlock({}, np.tile(block.attraction[t], (len(every), 1)), block.attracted[:1],
                                        block.luck[:1], block.users, block.weights)  # fmt: skip
        assert block.competitors[t, 0] == pytest.approx(row.values(every).max())
    n, rng = 4000, np.random.default_rng(2)
    many = world._list_block({}, np.tile(block.attraction[0], (n, 1)), rng)
    shown = every[7]
    rewards = np.array([many.click(t, shown)[1] for t in range(n)])
    error = rewards.std() / np.sqrt(n)
    assert abs(rewards.mean() - many.values(np.tile(shown, (n, 1)))[0]) <= 5 * error + 1e-9
    clicks, chances = np.stack([many.click(t, shown)[0] for t in range(n)]), many.click_chances(np.tile(shown, (n, 1)))
    assert (np.abs(clicks.mean(axis=0) - chances[0]) <= 5 * clicks.std(axis=0) / np.sqrt(n) + 1e-9).all()


def test_users_click_as_their_model_says() -> None:
    certain: Any = {"attraction": [1.0, 1.0, 0.0, 1.0]}
    cascade: Any = next(Lists(4, 3, **certain).blocks(5, seed=1))
    assert cascade.click(0, np.array([2, 1, 0]))[0].tolist() == [0, 1, 0]
    several: Any = next(Lists(4, 3, "several clicks", weights=[1e-9, 1e-9, 1e-9], **certain).blocks(5, seed=1))
    clicks, satisfied = several.click(0, np.array([0, 1, 3]))
    assert clicks.tolist() == [1, 1, 1] and satisfied == 0.0
    seen: Any = next(Lists(4, 3, "position-based", weights=[1, 1, 1e-9], **certain).blocks(5, seed=1))
    assert seen.click(0, np.array([0, 1, 3])) == (pytest.approx([1, 1, 0]), 2.0)


@pytest.mark.parametrize("name", WORLDS)
def test_the_seed_decides_all_and_a_saved_world_is_the_same(name: str) -> None:
    world = WORLDS[name]
    first, again, other = (next(world.blocks(30, seed=s)) for s in (1, 1, 2))
    assert (first.luck == again.luck).all() and (first.attracted == again.attracted).all()
    assert not (first.luck == other.luck).all()
    if name != "ratings":
        assert saving.loads(saving.dumps(world)).params().keys() == world.params().keys()


def test_features_are_linear_in_what_attracts() -> None:
    block: Any = next(Lists(6, 3, dim=4).blocks(50, seed=1))
    X, w = block.view("features").reshape(-1, 4), block.attraction.ravel()
    theta, *_ = np.linalg.lstsq(X, w)
    assert np.allclose(X @ theta, w) and np.linalg.norm(theta) == pytest.approx(0.5)
    assert np.allclose(np.linalg.norm(X, axis=1), 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Lists(3, 4), "n_slots must be at most n_arms"),
        (lambda: Lists(4, 2, "readers"), "users must be one of"),  # type: ignore[arg-type]
        (lambda: Lists(4, 2, weights=[1, 1]), "weights must be left out"),
        (lambda: Lists(4, 2, "position-based", weights=[1.0]), "weights must have a number"),
        (lambda: Lists(4, 2, attraction=[0.5, 0.2]), "attraction must have"),
        (lambda: Lists(4, 2, attraction=[0.5] * 4, dim=3), "exclude each other"),
        (lambda: RatedLists(*RATINGS, n_arms=40), "n_arms must be below"),
        (lambda: RatedLists(*RATINGS, n_arms=10, rank=40), "rank must be below"),
        (lambda: RatedLists(*RATINGS, n_arms=10, rank=2, liked=9), "liked must be a rating that users of both halves"),
        (lambda: RatedLists(*RATINGS[:2], np.full(len(RATINGS[0]), np.nan), n_arms=10), "ratings must be finite"),
    ],
)
def test_wrong_arguments_are_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
