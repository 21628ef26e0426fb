"""A log as a world: doubly robust rewards for the arms that were not played."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from armwise.core.agent import Floats, positive
from armwise.core.seeds import stream
from armwise.environments.data.data import Rows, _numbers

CAVEAT = (
    "Simulated from a log: arms that were not played have a reward model's answer, corrected by importance weights on "
    "the arm that was. Its totals are no better than that model and those weights; judge a policy by aw.offline, not "
    "by this."
)


class FromLog(Rows):
    """Rows of a log with a reward for every arm: q(x, a), plus (r - q(x, a)) / p for the arm that was played.

    q is a ridge per arm, fitted on the other half of the rows. The mean of these rewards over many rows is that of
    the true ones if q is right or the propensities are (Dudik et al. 2011); a single one is a guess. ``weight_limit``
    caps 1 / p, and rewards are cut to the range of those in the log (``cut=False`` leaves them, for agents that take
    any reward): both bias the totals a little. See ``FromLog.caveat``.

    >>> rng = np.random.default_rng(0)
    >>> arms = rng.integers(2, size=200)
    >>> world = FromLog(rng.random((200, 2)), arms, (arms == 1) * 1.0, np.full(200, 0.5), n_arms=2)
    >>> next(world.blocks(200, seed=1)).expected.mean(axis=0).round(1)
    array([0., 1.])
    """

    caveat = CAVEAT

    def __init__(
        self,
        contexts: Any,
        arms: Any,
        rewards: Any,
        probabilities: Any,
        n_arms: int,
        *,
        lam: float = 1.0,
        weight_limit: float = 50.0,
        cut: bool = True,
    ) -> None:
        X, r = _numbers("contexts", contexts, 2), _numbers("rewards", rewards, 1)
        played, p = np.asarray(arms), _numbers("probabilities", probabilities, 1)
        if not len(X) == len(r) == len(played) == len(p) or len(X) < 2:
            raise ValueError("contexts, arms, rewards and probabilities must have as many rows, at least two")
        if played.dtype.kind not in "iu" or played.min() < 0 or played.max() >= n_arms:
            raise ValueError(f"arms must be whole numbers below n_arms={n_arms}")
        if p.min() <= 0.0 or p.max() > 1.0:
            raise ValueError(f"probabilities must lie in (0, 1], got {p.min()} to {p.max()}")
        self.lam, self.weight_limit, self.cut = positive("lam", lam), positive("weight_limit", weight_limit), bool(cut)
        self.contexts, self.logged_rewards, self.probabilities = X, r, p
        self.played = played.astype(np.int64)
        table = self._model(X, self.played, r, int(n_arms))
        at = np.arange(len(X)), self.played
        table[at] += np.minimum(1.0 / p, self.weight_limit) * (r - table[at])
        super().__init__(X, np.clip(table, r.min(), r.max()) if self.cut else table)

    def params(self) -> dict[str, Any]:
        return {"contexts": self.contexts, "arms": self.played, "rewards": self.logged_rewards,
                "probabilities": self.probabilities, "n_arms": self.n_arms, "lam": self.lam,
                "weight_limit": self.weight_limit, "cut": self.cut}  # fmt: skip

    @classmethod
    def from_log(cls, log: Any, **settings: Any) -> Self:
        """Make a world from an ``aw.offline.Log`` with propensities, or an object with the same columns."""
        if log.probabilities is None:
            raise ValueError("log must have probabilities: estimate them first (aw.offline)")
        return cls(np.asarray(log.contexts), log.arms, log.rewards, log.probabilities, log.n_arms, **settings)

    def _model(self, X: Floats, arms: np.ndarray, r: Floats, n_arms: int) -> Floats:
        """Fit the reward model on the other half of the rows, so that a row's own reward is not in its model."""
        rows = np.column_stack([X, np.ones(len(X))])
        half, table = stream(0, "halves").random(len(X)) < 0.5, np.full((len(X), n_arms), r.mean())
        for here in (half, ~half):
            for arm in range(n_arms):
                others = ~here & (arms == arm)
                if others.any():
                    A = rows[others].T @ rows[others] + self.lam * np.eye(rows.shape[1])
                    table[here, arm] = rows[here] @ np.linalg.solve(A, rows[others].T @ r[others])
        return table
