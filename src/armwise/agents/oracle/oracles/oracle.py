"""The argmax oracle: what every class of policies answers, whatever it is made of (survey 4.3)."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from armwise.core.agent import Floats
from armwise.core.arguments import as_floats
from armwise.core.saving import Saved
from armwise.native.weights import importance_weighted

Ints = NDArray[np.int64]


class Oracle(Saved, ABC):
    """An argmax oracle: it gets contexts and a table of (estimated) rewards, and returns the best policy of its class.

    ``argmax(contexts, rewards)`` starts from nothing and remembers nothing. ``update(context, rewards)`` and
    ``best()`` are the same question asked row by row: what they have seen is the oracle's own state, saved with it
    and forgotten by ``fresh``. A policy is named by what these return: an index into an explicit class, otherwise
    a policy object; ``act`` asks it.

    A subclass defines ``_argmax``, ``_act``, ``_update`` and ``best``; ``_see`` where it wants to remember something
    other than the context (an explicit class remembers what each policy recommends).
    """

    regresses: ClassVar[bool] = False  # whether ``_observe`` fits what was played, instead of guessing every arm
    n_arms: int | None  # None until an agent says so
    n_policies: int  # N of the schedules; a class that is not finite takes it as a parameter
    dim: int | None = None  # the length of a context; None takes any

    def argmax(self, contexts: Any, rewards: Any) -> Any:
        """The policy with the largest total of ``rewards[i, policy(contexts[i])]``; the first of those that tie.

        >>> import armwise as aw
        >>> aw.LinearOracle(dim=1).argmax([[-1.0], [1.0]], [[1.0, 0.0], [0.0, 1.0]]).many([[-2.0], [3.0]])
        array([0, 1])
        """
        block, table = self._read_contexts(contexts), as_floats("rewards", rewards)
        n_arms = self.n_arms if self.n_arms is not None else (table.shape[1] if table.ndim == 2 else None)
        if table.ndim != 2 or table.shape[1] == 0 or table.shape != (len(block), n_arms):
            raise ValueError(f"rewards must have shape ({len(block)}, {n_arms or 'K'}), got {table.shape}")
        if not np.isfinite(table).all():
            raise ValueError("rewards must be finite, got NaN or infinity")
        return self._argmax(self._see(block), table)

    def act(self, policy: Any, contexts: Any) -> Ints:
        """The arms that a policy of this class plays in n contexts.

        >>> import armwise as aw
        >>> aw.FinitePolicies([aw.Constant(0), aw.Constant(3)]).act(1, np.zeros((2, 1)))
        array([3, 3])
        """
        return self._ask(policy, self._read_contexts(contexts))

    def update(self, context: Any, rewards: Any) -> None:
        """One more context with an (estimated) reward for every arm: r / p for the arm played, 0 for the others.

        >>> import armwise as aw
        >>> oracle = aw.FinitePolicies([aw.Constant(0), aw.Constant(1)])
        >>> oracle.update([0.0], [0.0, 2.0])
        >>> oracle.best()
        1
        """
        row = as_floats("rewards", rewards)
        if row.ndim != 1 or row.size == 0 or (self.n_arms is not None and row.size != self.n_arms):
            raise ValueError(f"rewards must have shape ({self.n_arms or 'K'},), got {row.shape}")
        if not np.isfinite(row).all():
            raise ValueError("rewards must be finite, got NaN or infinity")
        block = self._read_contexts(as_floats("context", context)[None])
        self._update(self._see(block)[0], row)

    @abstractmethod
    def best(self) -> Any:
        """The best policy for the rows given to ``update`` so far.

        >>> import armwise as aw
        >>> aw.FinitePolicies([aw.Constant(0), aw.Constant(1)]).best()
        0
        """

    def vote(self, context: Floats, n_arms: int) -> Floats:
        """The arms of the best policy so far, as a distribution: policies that tie share it equally.

        >>> import armwise as aw
        >>> aw.FinitePolicies([aw.Constant(0), aw.Constant(1), aw.Constant(1)]).vote(np.zeros(1), 2).round(2)
        array([0.33, 0.67])
        """
        p = np.zeros(n_arms)
        p[self._ask(self.best(), context[None])[0]] = 1.0
        return p

    def fresh(self, n_arms: int | None = None) -> Self:
        """The same class of policies with nothing learnt, for ``n_arms`` arms.

        >>> import armwise as aw
        >>> aw.FinitePolicies([aw.Constant(0)]).fresh(n_arms=2).n_arms
        2
        """
        if n_arms is not None and self.n_arms is not None and n_arms != self.n_arms:
            raise ValueError(f"n_arms is {n_arms}, but the {type(self).__name__} was made for {self.n_arms} arms")
        return type(self)(**(self.params() | {"n_arms": n_arms if n_arms is not None else self.n_arms}))

    # ------------------------------------------------------------------ what a class of policies defines

    def _see(self, contexts: Floats) -> np.ndarray:
        """What to remember of n contexts, one row each; the rows that ``_argmax`` and ``_act`` are asked about."""
        return contexts

    def _check_contexts(self, contexts: Floats) -> None:
        """A ValueError for finite contexts of the right shape that are wrong all the same."""

    def _ask(self, policy: Any, contexts: Floats) -> Ints:
        """As ``act``, for checked contexts; override where ``_see`` is dearer than asking one policy."""
        return self._act(policy, self._see(contexts))

    def _ask_all(self, policies: list[Any], context: Floats) -> Ints:
        """The arms of several policies in one context."""
        return np.array([self._ask(policy, context[None])[0] for policy in policies], np.int64)

    def _prepare(self, contexts: Floats) -> None:
        """A block of contexts that will be seen one by one: a chance to read them at once."""

    def _take_reading(self, other: Oracle) -> None:
        """Use what another oracle over the same policies has read, instead of asking them again."""

    def _observe(self, seen: np.ndarray, arm: int, reward: float, probability: float) -> None:
        """One more row that ``_see`` made, and the reward of the arm that was drawn there with this probability."""
        assert self.n_arms is not None
        rewards = np.zeros(self.n_arms)
        rewards[arm] = importance_weighted(reward, probability)
        self._update(seen, rewards)

    def _estimates(self, seen: np.ndarray) -> Floats:
        """Every arm's reward at these rows, (n, K), as the rounds of ``_observe`` predict it, if it ``regresses``."""
        raise NotImplementedError

    def _solver(self, seen: np.ndarray) -> Callable[[Floats], Any]:
        """``_argmax`` for many tables of rewards over the same rows."""
        return functools.partial(self._argmax, seen)

    @abstractmethod
    def _argmax(self, seen: np.ndarray, rewards: Floats) -> Any:
        """The best policy for rows that ``_see`` made."""

    @abstractmethod
    def _act(self, policy: Any, seen: np.ndarray) -> Ints:
        """The arms of a policy on rows that ``_see`` made."""

    @abstractmethod
    def _update(self, seen: np.ndarray, rewards: Floats) -> None:
        """One more row that ``_see`` made, and a reward for every arm."""

    def _read_contexts(self, contexts: Any) -> Floats:
        block = as_floats("contexts", contexts)
        if block.ndim != 2 or (self.dim is not None and block.shape[1] != self.dim):
            raise ValueError(f"contexts must have shape (n, {self.dim or 'd'}), got shape {block.shape}")
        if not np.isfinite(block).all():
            raise ValueError("contexts must be finite, got NaN or infinity")
        self._check_contexts(block)
        return block
