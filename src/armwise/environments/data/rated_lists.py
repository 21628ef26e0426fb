"""Ratings as lists: a user arrives, a list of items is shown, and those that the user rated highly attract."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armwise.core.agent import count
from armwise.core.tools.extras import needs
from armwise.environments.data.ratings import OfRatings, leading, numbered, three_columns
from armwise.environments.environment import Blocks, block_sizes
from armwise.environments.lists import ListWorld, Users


class RatedLists(ListWorld, OfRatings):
    """The arms are the ``n_arms`` items rated most often; a user is attracted by those rated ``liked`` or more.

    Every other user's ratings make the features and are never asked: an item's are its loadings in a truncated SVD of
    who liked what, and its popularity; a user is placed among them by the items outside the arms. A row is the
    elementwise product of user and item, the item's loadings, its popularity and a one. The users left over arrive at
    random.

    >>> rng = np.random.default_rng(0)
    >>> world = RatedLists(users_of=rng.integers(60, size=2000), items=rng.integers(40, size=2000),
    ...                    ratings=rng.integers(1, 6, size=2000), n_arms=10, n_slots=3, rank=2)
    >>> next(world.blocks(horizon=40, seed=1)).view("features").shape
    (40, 10, 6)
    """

    def __init__(
        self,
        users_of: Any,
        items: Any,
        ratings: Any,
        *,
        n_arms: int = 50,
        n_slots: int = 5,
        users: Users = "cascade",
        weights: ArrayLike | None = None,
        liked: float = 4.0,
        rank: int = 8,
    ) -> None:
        self._read_users(n_arms, n_slots, users, weights)
        self.users_of, self.items, self.ratings = three_columns("users_of", users_of, items, ratings)
        self.liked, self.rank = float(liked), count("rank", rank)
        self._prepare()

    def _prepare(self) -> None:
        with needs():
            from scipy.sparse import csr_array

        user, item = numbered(self.users_of), numbered(self.items)
        often = np.argsort(-np.bincount(item), kind="stable")
        if len(often) <= self.n_arms:
            raise ValueError(f"n_arms must be below the number of items, {len(often)}, got {self.n_arms}")
        arms, others = often[: self.n_arms], often[self.n_arms :]
        if not np.isfinite(self.ratings).all():
            raise ValueError("ratings must be finite numbers, got NaN or infinity")
        keep = self.ratings >= self.liked
        ones = np.ones(int(keep.sum()))
        table = csr_array((ones, (user[keep], item[keep])), shape=(user.max() + 1, item.max() + 1))
        table.data[:] = 1.0  # a pair that was rated twice counts once
        whole = table.tocsc()
        shown, rest = whole[:, arms].toarray() > 0, whole[:, others].tocsr()
        teach, arrive = np.arange(0, len(shown), 2), np.arange(1, len(shown), 2)
        taught = table[teach]
        if not taught.nnz or not shown[arrive].any():
            raise ValueError(f"liked must be a rating that users of both halves gave, got {self.liked:g}")
        if self.rank >= min(taught.shape):
            raise ValueError(f"rank must be below {min(taught.shape)}, got {self.rank}")
        _, strength, right = leading(taught, self.rank)
        loadings = right.T * np.sqrt(strength)
        placed = np.asarray(rest[arrive] @ loadings[others])
        scale = np.linalg.norm(placed, axis=1, keepdims=True)
        self._places = placed / np.where(scale > 0, scale, 1.0)
        own = loadings[arms]
        self._own = own / np.linalg.norm(own, axis=1).max()
        self._popular = shown[teach].mean(axis=0)
        some = shown[arrive].any(axis=1)
        self._attracted, self._places = shown[arrive][some], self._places[some]

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        L, d = self.n_arms, 2 * self.rank + 2
        for T in block_sizes(horizon, L * d):
            who = rng.integers(len(self._attracted), size=T)
            X = np.empty((T, L, d))
            X[:, :, : self.rank] = self._places[who][:, None, :] * self._own
            X[:, :, self.rank : 2 * self.rank] = self._own
            X[:, :, -2], X[:, :, -1] = self._popular, 1.0
            yield self._list_block({"features": X}, self._attracted[who].astype(np.float64), rng, certain=True)
