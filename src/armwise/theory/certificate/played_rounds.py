"""The rounds behind a certificate, in blocks that are read as often as needed and never held together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armwise.core.agent import Floats

BLOCK = 8_192  # rounds held at once


@dataclass(frozen=True)
class RoundsBlock:
    """Some rounds: ``X`` is (n, K, d), or (n, d) with one model for each arm; ``offered`` (n, K) or None for all."""

    X: Floats
    arms: NDArray[np.int64]
    rewards: Floats
    offered: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.arms)

    def head(self, n: int) -> RoundsBlock:
        """The first n rounds."""
        return RoundsBlock(
            self.X[:n], self.arms[:n], self.rewards[:n], None if self.offered is None else self.offered[:n]
        )

    @property
    def chosen(self) -> Floats:
        """The rows that were played, (n, d)."""
        return self.X if self.X.ndim == 2 else self.X[np.arange(len(self)), self.arms]


class Rounds:
    """Rounds that can be read again and again: ``make`` starts from the first one each time."""

    def __init__(self, make: Callable[[], Iterator[RoundsBlock]], n: int, n_arms: int) -> None:
        self._make, self._n, self.n_arms = make, n, n_arms

    def __len__(self) -> int:
        return self._n

    def blocks(self, upto: int | None = None) -> Iterator[RoundsBlock]:
        """Blocks of the first ``upto`` rounds."""
        left = self._n if upto is None else upto
        for block in self._make():
            if left <= 0:
                return
            yield block if len(block) <= left else block.head(left)
            left -= len(block)

    @classmethod
    def of_arrays(cls, contexts: Any, arms: Any, rewards: Any, n_arms: int | None = None) -> Rounds:
        """From arrays: contexts (n, K, d) or (n, d), the arms that were played and their rewards."""
        X, r = _numbers("contexts", contexts), _numbers("rewards", rewards)
        if X.ndim not in (2, 3) or 0 in X.shape:
            raise ValueError(f"contexts must have shape (n, K, d), or (n, d) with one model an arm, got {X.shape}")
        played = np.asarray(arms)
        if played.shape != (len(X),) or r.shape != (len(X),):
            raise ValueError(
                f"arms and rewards must have one entry for each of the {len(X)} contexts, got shapes "
                f"{played.shape} and {r.shape}"
            )
        if played.dtype.kind not in "iu":
            raise ValueError(f"arms must be whole numbers, got {played.dtype}")
        K = X.shape[1] if X.ndim == 3 else n_arms if n_arms is not None else int(played.max()) + 1
        if X.ndim == 3 and n_arms not in (None, K):
            raise ValueError(f"n_arms is {n_arms}, but contexts have {K} arms")
        if played.min() < 0 or played.max() >= K:
            raise ValueError(f"arms must lie in 0 to {K - 1}, got {played.min()} to {played.max()}")
        for name, values in (("contexts", X), ("rewards", r)):
            if not np.isfinite(values).all():
                raise ValueError(f"{name} must be finite, got NaN or infinity")
        which = played.astype(np.int64)

        def make() -> Iterator[RoundsBlock]:
            for start in range(0, len(X), BLOCK):
                part = slice(start, start + BLOCK)
                yield RoundsBlock(X[part], which[part], r[part])

        return cls(make, len(X), K)

    @classmethod
    def of_log(cls, log: Any) -> Rounds:
        """From an ``offline.Log``, streamed if the log is: features of the arms where it has them, else the context."""

        def make() -> Iterator[RoundsBlock]:
            for rows in log.batches(BLOCK):
                yield RoundsBlock(_view(rows), rows.arms, rows.rewards, rows.available)

        return cls(make, len(log), log.n_arms)


def _view(rows: Any) -> Floats:
    contexts = rows.contexts
    if rows.arm_features is not None or (contexts is not None and contexts.ndim == 3):
        return np.asarray(rows.features(), np.float64)
    if contexts is None or contexts.ndim != 2:
        raise ValueError(
            "the log has no vectors to be linear in: expected contexts (n, d) or (n, K, d), or arm_features"
        )
    return np.asarray(contexts, np.float64)


def _numbers(name: str, values: Any) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {type(values).__name__}") from None
