"""Published benchmark protocols by name: synthetic data of the same kind, or the real data from a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from armwise.core.agent import Floats, count, fraction
from armwise.core.seeds import stream
from armwise.environments.adversarial import AgainstUCB1, Experts
from armwise.environments.data.data import Classification, Rows
from armwise.environments.data.frames import columns, read_frame, read_labelled
from armwise.environments.data.ratings import Ratings
from armwise.environments.environment import Block, Blocks, Environment, block_sizes, bounded_noise, noise_level
from armwise.environments.gaussian_process import GaussianProcess
from armwise.environments.graph import Graph
from armwise.environments.linear import Hierarchical, Linear
from armwise.environments.logistic import Logistic
from armwise.environments.planted import Planted


class Wheel(Environment):
    """Riquelme, Tucker, Snoek 2018: contexts uniform in the unit disc, five arms. Arm 0 always pays ``safe``; inside
    radius ``delta`` the others pay less, outside it the arm of the context's quadrant pays ``high``.

    Rewards are the paper's (1.2, 1, 50; noise 0.01) divided by 50, so that they lie in [0, 1].

    >>> block = next(Wheel(delta=0.5).blocks(1000, seed=1))
    >>> np.unique(block.expected.argmax(axis=1)).tolist()
    [0, 1, 2, 3, 4]
    """

    n_arms = 5

    def __init__(self, delta: float = 0.9, *, safe: float = 0.024, low: float = 0.02, high: float = 0.99,
                 noise: float = 0.0002) -> None:  # fmt: skip
        self.delta, self.noise = fraction("delta", delta), noise_level(noise)
        self.safe, self.low, self.high = fraction("safe", safe), fraction("low", low), fraction("high", high)

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        for T in block_sizes(horizon, 3):
            angle, radius = 2 * np.pi * rng.random(T), np.sqrt(rng.random(T))
            x = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
            expected = np.full((T, 5), self.low)
            expected[:, 0] = self.safe
            quadrant = 1 + (x[:, 0] < 0) + 2 * (x[:, 1] < 0)
            outside = radius > self.delta
            expected[outside, quadrant[outside]] = self.high
            rewards = np.clip(expected + bounded_noise(rng, expected.shape, self.noise), 0.0, 1.0)
            yield Block({"shared": np.column_stack([x, np.ones(T)])}, rewards, expected)


class Mushroom(Rows):
    """The mushrooms of Blundell et al. 2015: eat (arm 1) or not (arm 0). An edible one pays 5; a poisonous one 5 or
    -35, each with chance 1/2; not eating 0; here r -> (r + 35) / 40. X describes the mushrooms, ``poisonous`` says
    which are.

    >>> Mushroom(X=np.eye(2), poisonous=[True, False]).rewards.max(axis=0).tolist()
    [0.875, 1.0]
    """

    def __init__(self, X: Floats, poisonous: object, draw_seed: int = 0) -> None:
        self.poisonous, self.draw_seed = np.asarray(poisonous, bool), count("draw_seed", draw_seed, least=0)
        unlucky = self.poisonous & (stream(self.draw_seed, "poison").random(len(self.poisonous)) < 0.5)
        eaten = np.where(unlucky, 0.0, 1.0)
        mean = np.where(self.poisonous, 0.5, 1.0)
        skipped = np.full(len(eaten), 35 / 40)
        super().__init__(X, np.column_stack([skipped, eaten]), np.column_stack([skipped, mean]))

    def params(self) -> dict[str, object]:
        return {"X": self.X, "poisonous": self.poisonous, "draw_seed": self.draw_seed}


def _generated_mushrooms() -> Environment:
    """22 categories of two to nine values; a rule over odour, spores and gills decides, as in the original."""
    rng = stream(0, "mushroom")
    sizes = rng.integers(2, 10, size=22)
    codes = np.column_stack([rng.integers(size, size=8124) for size in sizes])
    poisonous = (codes[:, 4] < sizes[4] / 2) ^ ((codes[:, 19] == 0) & (codes[:, 7] == 0))
    X = np.column_stack([np.eye(size)[codes[:, i]] for i, size in enumerate(sizes)] + [np.ones(8124)])
    return Mushroom(X, poisonous)


def _classes(name: str, rows: int, dim: int, shares: list[float], spread: float, categories: int = 0) -> Environment:
    """Gaussian classes, two clumps each, of these shares; the last ``categories`` columns are indicators."""
    rng = stream(0, name)
    y = rng.choice(len(shares), size=rows, p=np.array(shares) / np.sum(shares))
    numbers = dim - categories
    centres = spread * rng.standard_normal((len(shares), 2, numbers))
    X = centres[y, rng.integers(2, size=rows)] + rng.standard_normal((rows, numbers))
    if categories:
        odds = rng.dirichlet(np.full(categories, 0.3), size=len(shares)).cumsum(axis=1)
        kind = (rng.random((rows, 1)) > odds[y]).sum(axis=1).clip(max=categories - 1)
        X = np.column_stack([X, np.eye(categories)[kind]])
    return Classification(X, y)


def _generated_jokes() -> Environment:
    """Jester's protocol: 40 jokes, ratings of rank 6; the context is 32 of them, the arms are the other 8."""
    rng = stream(0, "jester")
    taste, jokes = rng.standard_normal((19_181, 6)), rng.standard_normal((6, 40))
    ratings = 1.0 / (1.0 + np.exp(-(taste @ jokes / 2.0 + 0.3 * rng.standard_normal((len(taste), 40)))))
    return Rows(np.column_stack([ratings[:, :32], np.ones(len(taste))]), ratings[:, 32:])


def _generated_films() -> Environment:
    """MovieLens' protocol: 600 users, 1,000 films, 60,000 ratings of 0.5 to 5 with popular films rated more."""
    rng = stream(0, "movielens")
    popularity = 1.0 / np.arange(1, 1001) ** 0.7
    users, items = rng.integers(600, size=60_000), rng.choice(1000, size=60_000, p=popularity / popularity.sum())
    taste, films, liked = rng.standard_normal((600, 4)), rng.standard_normal((1000, 4)), rng.standard_normal(1000)
    worth = (
        3.5 + 0.5 * liked[items] + 0.4 * (taste[users] * films[items]).sum(axis=1) + 0.5 * rng.standard_normal(60_000)
    )
    return Ratings(users, items, np.clip(np.round(2 * worth) / 2, 0.5, 5.0))


_MADE: dict[str, Callable[[], Environment]] = {
    "wheel": Wheel,
    "mushroom": _generated_mushrooms,
    "shuttle": lambda: _classes("shuttle", 43_500, 9, [78.6, 0.08, 0.3, 15.5, 5.6, 0.02, 0.03], 3.0),
    "covertype": lambda: _classes("covertype", 100_000, 54, [36.5, 48.8, 6.2, 0.5, 1.6, 3.0, 3.5], 0.7, 44),
    "jester": _generated_jokes,
    "movielens": _generated_films,
    # The synthetic worlds of the survey's papers.
    "linucb": lambda: Linear(n_arms=10, dim=20, disjoint=True),
    "suplinucb": lambda: Linear(n_arms=10, dim=20),
    "cofineucb": lambda: Hierarchical(n_arms=10, dim=30, subspace_dim=4),
    "thompson": lambda: Logistic(n_arms=10, dim=20),
    "spectralucb": lambda: Graph(n_arms=200, smooth=3),
    "gpucb": lambda: GaussianProcess(n_arms=30, arm_dim=2),
    "cgpucb": lambda: GaussianProcess(n_arms=10, arm_dim=1, n_contexts=10, context_dim=1),
    "iltcb": lambda: Planted(n_policies=20, n_arms=3, dim=4),
    "exp3": lambda: AgainstUCB1(n_arms=5),
    "exp4": lambda: Experts(n_experts=20, n_arms=5),
}


def protocols() -> list[str]:
    """List the names that ``published`` accepts.

    >>> "wheel" in protocols()
    True
    """
    return list(_MADE)


def published(name: str, folder: str | os.PathLike[str] | None = None) -> Environment:
    """Make a published protocol by name. Its data are synthetic, with the size, arms and class frequencies of the
    original, unless ``folder`` holds ``NAME.parquet`` or ``NAME.csv`` with the real data:
    a label column for mushroom (edible ones are "e" or 0), shuttle and covertype; 40 columns of ratings for jester;
    userId, movieId, rating for movielens.

    >>> published("shuttle").n_arms, published("wheel").n_arms
    (7, 5)
    """
    if name not in _MADE:
        raise ValueError(f"name must be one of {', '.join(_MADE)}, got {name!r}")
    if folder is None:
        return _MADE[name]()
    found = [path for ending in ("parquet", "csv") if (path := Path(folder) / f"{name}.{ending}").is_file()]
    if not found or name not in _READ:
        raise ValueError(f"{folder} has no {name}.parquet or {name}.csv" if name in _READ else f"{name} needs no data")
    return _READ[name](found[0])


def _read_mushrooms(path: Path) -> Environment:
    X, y = read_labelled(path)
    return Mushroom(np.column_stack([X, np.ones(len(X))]), ~np.isin(np.asarray(y, str), ["e", "edible", "0"]))


def _read_jokes(path: Path) -> Environment:
    table = columns("ratings", read_frame(path))
    if table.shape[1] != 40:
        raise ValueError(f"{path}: expected 40 columns of ratings without gaps, got {table.shape[1]}")
    worth = (table - table.min()) / max(float(np.ptp(table)), 1e-12)
    return Rows(np.column_stack([worth[:, :32], np.ones(len(worth))]), worth[:, 32:])


_READ: dict[str, Callable[[Path], Environment]] = {
    "mushroom": _read_mushrooms,
    "shuttle": Classification.from_file,
    "covertype": Classification.from_file,
    "jester": _read_jokes,
    "movielens": Ratings.from_file,
}
