"""Ratings as a bandit: a user arrives, the arms are items that the user has rated (MovieLens-like)."""

from __future__ import annotations

import os
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from armwise.core.agent import Floats, count
from armwise.core.tools.extras import needs
from armwise.environments.environment import Block, Blocks, Environment, block_sizes


class OfRatings(Environment):
    """A world made of three columns: users, items and ratings."""

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        user: str = "userId",
        item: str = "movieId",
        rating: str = "rating",
        **options: Any,
    ) -> Self:
        """A Parquet or CSV file with one rating per row (the columns are named as MovieLens names them).

        ``options`` are the keywords of the constructor.
        """
        make: Any = cls  # whose constructor takes the columns
        return cast("Self", make(*read_ratings(path, user, item, rating), **options))


class Ratings(OfRatings):
    """A round draws a user and ``n_arms`` items that the user has rated; an item pays its rating, scaled to [0, 1].

    Users and items get ``rank`` features each by a truncated SVD of the (centred) rating matrix; an arm's row is the
    elementwise product of the two, the item's own features, and a one. Users with too few ratings are left out.

    >>> rng = np.random.default_rng(0)
    >>> world = Ratings(users=rng.integers(20, size=500), items=rng.integers(15, size=500),
    ...                 ratings=rng.integers(1, 6, size=500), n_arms=5, rank=3)
    >>> next(world.blocks(horizon=40, seed=1)).view("features").shape
    (40, 5, 7)
    """

    def __init__(self, users: Any, items: Any, ratings: Any, *, n_arms: int = 10, rank: int = 8) -> None:
        self.users, self.items, self.ratings = three_columns("users", users, items, ratings)
        self.n_arms, self.rank = count("n_arms", n_arms, least=2), count("rank", rank)
        if not np.isfinite(self.ratings).all() or len(self.ratings) == 0 or np.ptp(self.ratings) == 0:
            raise ValueError("ratings must be finite numbers, at least two of them different")
        self._prepare()

    def _prepare(self) -> None:
        with needs():
            from scipy.sparse import csr_array

        user, item = numbered(self.users), numbered(self.items)
        matrix_shape = (user.max() + 1, item.max() + 1)
        if self.rank >= min(matrix_shape):
            raise ValueError(f"rank must be below the numbers of users and items {matrix_shape}, got {self.rank}")
        # The last rating of a pair counts: a sparse sum would add them up.
        last = np.unique((user * matrix_shape[1] + item)[::-1], return_index=True)[1]
        rows = len(user) - 1 - last
        user, item = user[rows], item[rows]
        low, high = self.ratings.min(), self.ratings.max()
        worth = (self.ratings[rows] - low) / (high - low)
        centred = csr_array((worth - worth.mean(), (user, item)), shape=matrix_shape)
        left, strength, right = leading(centred, self.rank)
        signs = np.sign(left[np.abs(left).argmax(axis=0), np.arange(self.rank)])  # an SVD is unique up to signs
        self._user_features = left * signs * np.sqrt(strength)
        self._item_features = right.T * signs * np.sqrt(strength)
        order = np.argsort(user, kind="stable")
        user, self._item, self._worth = user[order], item[order], worth[order]
        n_rated = np.bincount(user, minlength=matrix_shape[0])
        self._start = np.concatenate([[0], np.cumsum(n_rated)])
        self._eligible = np.flatnonzero(n_rated >= self.n_arms)
        if not len(self._eligible):
            raise ValueError(f"no user has rated {self.n_arms} items: choose a smaller n_arms")

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        for T in block_sizes(horizon, self.n_arms * (2 * self.rank + 1)):
            user = rng.choice(self._eligible, size=T)
            # The first n_arms of a random order of the user's ratings, drawn without replacement.
            picks = np.stack([rng.permutation(self._start[u + 1] - self._start[u])[: self.n_arms] for u in user])
            rows = self._start[user][:, None] + picks
            items = self._item_features[self._item[rows]]
            product = items * self._user_features[user][:, None]
            features = np.concatenate([product, items, np.ones((T, self.n_arms, 1))], axis=2)
            yield Block({"features": features, "key": user.tolist()}, self._worth[rows])


def three_columns(name: str, users: Any, items: Any, ratings: Any) -> tuple[Any, Any, Floats]:
    """The columns as arrays; ``name`` is what the caller's users are called."""
    columns = np.asarray(users), np.asarray(items), np.asarray(ratings, np.float64)
    if not columns[0].shape == columns[1].shape == columns[2].shape or columns[0].ndim != 1:
        raise ValueError(f"{name}, items and ratings must be three columns of one length")
    return columns


def numbered(ids: Any) -> NDArray[np.int64]:
    """The rank of each id among the different ones, from 0."""
    return np.unique(ids, return_inverse=True)[1]


def leading(matrix: Any, rank: int) -> tuple[Any, Any, Any]:
    """The ``rank`` largest singular values of a sparse matrix between their vectors; the same whenever it is asked."""
    with needs():
        from scipy.sparse.linalg import svds

    found: tuple[Any, Any, Any] = svds(matrix, k=rank, v0=np.ones(min(matrix.shape)))
    return found


def read_ratings(path: str | os.PathLike[str], user: str, item: str, rating: str) -> tuple[Any, Any, Any]:
    """Three columns of a Parquet or CSV file with one rating per row, or a ValueError that names the missing one."""
    with needs("race"):
        import pandas as pd

    frame = pd.read_parquet(path) if str(path).endswith((".parquet", ".pq")) else pd.read_csv(path)
    for name in (user, item, rating):
        if name not in frame.columns:
            raise ValueError(f"{path}: no column {name!r}; it has {', '.join(map(str, frame.columns[:20]))}")
    return frame[user].to_numpy(), frame[item].to_numpy(), frame[rating].to_numpy()
