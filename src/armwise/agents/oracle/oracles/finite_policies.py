"""An explicit class of N policies: the exact argmax oracle (survey 4.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from armwise.agents.oracle.oracles.oracle import Ints, Oracle
from armwise.core.agent import Floats, count
from armwise.native.choice import TIE
from armwise.native.policies import add_rewards, policy_totals

_ANY = 1 << 16  # arms, as long as nobody has said how many


class FinitePolicies(Oracle):
    """N policies, compared exactly; each one's importance-weighted total is kept up to date as rewards arrive.

    ``policies`` is a list of callables (a context in, an arm out; ``policy.many(contexts)`` is asked where there is
    one), or a precomputed (n, N) array of arms: then a context is an array of length 1 that holds the number of a
    row, and entry [i, h] is what policy h recommends there. A policy is named by its index 0 .. N - 1.

    Cost: a context is read once, by N calls for callables (a block of rounds by N calls of ``many``) and by one
    look at a row of the table; ``update`` is O(N), ``argmax`` over n distinct rows O(n N), about 1 ns an entry.

    >>> oracle = FinitePolicies([lambda x: 0, lambda x: int(x[0] > 0)])
    >>> oracle.update([2.0], [0.0, 1.5])
    >>> oracle.totals, oracle.best()
    (array([0. , 1.5]), 1)
    >>> FinitePolicies(np.array([[0, 1], [1, 1]])).act(0, [[1]])
    array([1])
    """

    _learnt = ("totals",)

    def __init__(self, policies: Sequence[Callable[[Any], Any]] | np.ndarray, n_arms: int | None = None) -> None:
        self.n_arms = None if n_arms is None else count("n_arms", n_arms)
        self.policies: Any
        if isinstance(policies, np.ndarray) and policies.dtype != object:
            self.policies = _compact_table(policies, self.n_arms)
            self.n_policies, self.dim = policies.shape[1], 1
        else:
            self.policies = tuple(policies)
            self.n_policies = len(self.policies)
            for h, policy in enumerate(self.policies):
                if not callable(policy):
                    raise ValueError(f"policies[{h}] must be a function of a context, got {policy!r:.80}")
            if not self.policies:
                raise ValueError("policies is empty: expected at least one policy")
        self.totals = np.zeros(self.n_policies)
        self._leaders: Ints | None = None
        self._read: dict[bytes, np.ndarray] = {}  # rows read ahead, or a moment ago

    def best(self) -> int:
        return int(_leaders(self.totals)[0])

    def vote(self, context: Floats, n_arms: int) -> Floats:
        if self._leaders is None:
            self._leaders = _leaders(self.totals)
        arms = self._see(context[None])[0][self._leaders]
        shares: Floats = np.bincount(arms, minlength=n_arms) / arms.size
        return shares

    def recommendations(self, context: Floats) -> np.ndarray:
        """The arm that each of the N policies recommends in one context.

        >>> FinitePolicies([lambda x: 0, lambda x: 2], n_arms=3).recommendations(np.zeros(1))
        array([0, 2], dtype=uint8)
        """
        row: np.ndarray = self._see(context[None])[0]
        return row

    def _argmax(self, seen: np.ndarray, rewards: Floats) -> int:
        return int(_leaders(policy_totals(seen, rewards))[0])

    def _act(self, policy: int, seen: np.ndarray) -> Ints:
        return seen[:, policy].astype(np.int64)

    def _ask(self, policy: int, contexts: Floats) -> Ints:
        if isinstance(self.policies, np.ndarray):
            return self._see(contexts)[:, policy].astype(np.int64)
        return self._answers(policy, contexts)

    def _ask_all(self, policies: list[Any], context: Floats) -> Ints:
        if isinstance(self.policies, np.ndarray) or context.tobytes() in self._read:
            arms: Ints = self._see(context[None])[0][policies].astype(np.int64)
            return arms
        return super()._ask_all(policies, context)

    def _update(self, seen: np.ndarray, rewards: Floats) -> None:
        add_rewards(self.totals, seen, rewards)
        self._leaders = None

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._leaders = None

    def _see(self, contexts: Floats) -> np.ndarray:
        if isinstance(self.policies, np.ndarray):
            if len(contexts) == 1:
                row = int(contexts[0, 0])
                return self.policies[row : row + 1]
            return self.policies[contexts[:, 0].astype(np.int64)]
        if len(contexts) == 1:
            key = contexts.tobytes()
            if key not in self._read:
                self._read = {key: self._evaluate(contexts)[0]}
            return self._read[key][None]
        return self._evaluate(contexts)

    def _check_contexts(self, contexts: Floats) -> None:
        if not isinstance(self.policies, np.ndarray):
            return
        wrong = ~((contexts[:, 0] >= 0) & (contexts[:, 0] < len(self.policies)) & (contexts[:, 0] % 1.0 == 0.0))
        if wrong.any():
            raise ValueError(
                f"context must be [i], the number of one of the {len(self.policies)} rows of the table of actions, got "
                f"{contexts[wrong][0].tolist()!r:.80}"
            )

    def _prepare(self, contexts: Floats) -> None:
        if not isinstance(self.policies, np.ndarray) and len(contexts):
            rows = self._evaluate(contexts)
            self._read = {context[None].tobytes(): row for context, row in zip(contexts, rows)}

    def _take_reading(self, other: Oracle) -> None:
        assert isinstance(other, FinitePolicies)
        self._read = other._read

    def _evaluate(self, contexts: Floats) -> np.ndarray:
        table = np.empty((len(contexts), self.n_policies), _dtype(self.n_arms or _ANY))
        for h in range(self.n_policies):
            table[:, h] = self._answers(h, contexts)
        return table

    def _answers(self, h: int, contexts: Floats) -> Ints:
        policy = self.policies[h]
        many = getattr(policy, "many", None)
        answers = np.asarray(many(contexts) if many is not None else [policy(context) for context in contexts])
        if answers.shape != (len(contexts),) or answers.dtype.kind not in "biu":
            raise ValueError(
                f"policies[{h}] answered {answers[:1].tolist()!r:.80} to a context: a policy of an explicit class must "
                "return one arm, an integer (not a distribution)"
            )
        top = self.n_arms or _ANY
        if answers.size and not (answers.min() >= 0 and answers.max() < top):
            wrong = answers[(answers < 0) | (answers >= top)][0]
            raise ValueError(f"policies[{h}] answered arm {wrong}, but the arms are 0 to {top - 1}")
        return answers.astype(np.int64)


# The policies of an explicit class: a list, or the (n, N) table of the arms that they recommend in n contexts.
PoliciesLike = FinitePolicies | Sequence[Callable[[Any], Any]] | np.ndarray
OracleLike = Oracle | PoliciesLike


def as_oracle(value: OracleLike, name: str = "oracle") -> Oracle:
    """The oracle itself, or the explicit class of the policies given as a list or as a table of actions."""
    if isinstance(value, Oracle):
        return value
    if isinstance(value, (list, tuple, np.ndarray)):
        return FinitePolicies(value)
    raise ValueError(
        f"{name} must be an oracle (FinitePolicies, LinearOracle, ...), a list of policies or a table of actions, got "
        f"{type(value).__name__} {value!r:.80}"
    )


def _leaders(totals: Floats) -> Ints:
    """The policies with the largest total; sums taken in another order may differ in the last digits, and still tie."""
    top = totals.max()
    return np.flatnonzero(totals >= top - TIE * max(1.0, abs(top)))


def _dtype(n_arms: int) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if n_arms <= 256 else np.uint16 if n_arms <= 1 << 16 else np.uint32


def _compact_table(table: np.ndarray, n_arms: int | None) -> np.ndarray:
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "biu":
        raise ValueError(
            "policies must be a list of callables or an (n, N) integer array of the arms that N policies recommend "
            f"in n contexts, got an array of {table.dtype} of shape {table.shape}"
        )
    top = n_arms or _ANY
    if table.min() < 0 or table.max() >= top:
        raise ValueError(f"policies holds arms {table.min()} to {table.max()}, but the arms are 0 to {top - 1}")
    dtype = _dtype(int(table.max()) + 1)
    return table if table.dtype == dtype and not table.flags.writeable else _frozen(table.astype(dtype))


def _frozen(table: np.ndarray) -> np.ndarray:
    table.flags.writeable = False  # copies of the oracle share it
    return table
