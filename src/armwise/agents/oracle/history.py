"""Common parts of the oracle agents: the rounds so far without repetition, and the checks of every constructor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from armwise.agents.oracle.oracles.finite_policies import FinitePolicies, as_oracle
from armwise.agents.oracle.oracles.oracle import Oracle
from armwise.core.agent import Agent, Floats, Played, Seed, count
from armwise.core.rounds import Batches, loop
from armwise.core.saving import Saved

# When to solve again: a factor by which the rewards learnt grow from one time to the next, or the times themselves
# (after the last of them, doubling), or a function m -> the m-th time.
Times = float | Sequence[int] | Callable[[int], int]

_BLOCK = 1024  # contexts of a block of rounds that an oracle reads at once


class History(Saved):
    """The rounds so far, without repetition: distinct rows, the count of each, and the total r / p of each arm there.

    Everything that the agents compute is a sum over rounds, so rounds that look alike to the oracle add up. A round
    costs one hash of its row; memory is one row a *distinct* context (N bytes for an explicit class of N policies).
    """

    _learnt = ("seen", "counts", "gains", "n")

    def __init__(self, n_arms: int) -> None:
        self.n_arms, self.n = n_arms, 0
        self._size, self._places = 0, dict[bytes, int]()
        self._rows: np.ndarray = np.empty((0, 0))
        self._tallies = np.empty((0, 1 + n_arms))  # how often, then the arms' totals

    def add(self, row: np.ndarray, arm: int, estimate: float) -> None:
        """One more round: what was seen, the arm that was played, and r / p."""
        key = row.tobytes()
        at = self._places.get(key)
        if at is None:
            at = self._places[key] = self._size
            if at == len(self._rows):
                self._grow(row)
            self._rows[at], self._tallies[at] = row, 0.0
            self._size += 1
        self._tallies[at, 0] += 1.0
        self._tallies[at, 1 + arm] += estimate
        self.n += 1

    def _grow(self, row: np.ndarray) -> None:
        capacity = max(64, 2 * self._size)
        rows, tallies = np.empty((capacity, row.size), row.dtype), np.empty((capacity, 1 + self.n_arms))
        if self._size:
            rows[: self._size], tallies[: self._size] = self._rows[: self._size], self._tallies[: self._size]
        self._rows, self._tallies = rows, tallies

    @property
    def seen(self) -> np.ndarray:
        """The distinct rows."""
        return self._rows[: self._size]

    @property
    def counts(self) -> Floats:
        """The count of each distinct row."""
        return self._tallies[: self._size, 0]

    @property
    def gains(self) -> Floats:
        """The total r / p of each arm at each distinct row."""
        return self._tallies[: self._size, 1:]

    def _restore(self, state: dict[str, Any]) -> None:
        self.n, self._size = state["n"], len(state["seen"])
        self._rows, self._tallies = state["seen"], np.column_stack([state["counts"], state["gains"]])
        self._places = {row.tobytes(): at for at, row in enumerate(self._rows)}


class PreparedBatches(Batches[Any]):
    """Rounds looped in blocks whose contexts an oracle has read at once."""

    def __init__(self, oracle: Callable[[Any], Oracle]) -> None:
        self._oracle = oracle

    def block(self, agent: Any, contexts: Floats, rewards: Floats) -> Played:
        self._oracle(agent)._prepare(contexts[:_BLOCK])
        return loop(agent, contexts[:_BLOCK], rewards[:_BLOCK])


class OracleAgent(Agent):
    """An agent over a class of policies. It works on its own copy of the oracle, so that two agents can share one."""

    sees = "shared"
    needs_probability = True
    plain_input = False  # the class of policies may refuse a context
    batches: ClassVar[PreparedBatches] = PreparedBatches(lambda agent: agent._own())
    n_arms: int
    _oracle_name: ClassVar[str] = "oracle"  # the constructor's name for it
    _total = 0.0  # of the rewards learnt, for agents that subtract their mean

    def _begin(self, oracle: Any, n_arms: int, seed: Seed) -> None:
        """The first lines of every constructor: the agent's own, untaught oracle."""
        super().__init__(seed=seed)
        self.n_arms = count("n_arms", n_arms)
        own = as_oracle(oracle, name=self._oracle_name).fresh(self.n_arms)
        setattr(self, self._oracle_name, own)
        self.dim = own.dim

    def _begin_explicit(self, policies: Any, n_arms: int, seed: Seed) -> None:
        """The same for an agent that must see every policy."""
        if isinstance(policies, Oracle) and not isinstance(policies, FinitePolicies):
            came = type(policies).__name__
            raise ValueError(f"policies must be FinitePolicies, a list of policies or a table of actions, got {came}")
        self._begin(policies, n_arms, seed)

    def _above_mean(self, reward: float) -> float:
        """The reward less the mean of those before it: that compares policies as well, and r / p varies far less.

        A class that regresses has its own constant, and gets the reward itself.
        """
        if self._own().regresses:
            return reward
        mean = (0.5 + self._total) / (1 + self._n_learnt)  # before the first, the middle of [0, 1]
        self._total += reward
        return reward - mean

    def _own(self) -> Oracle:
        own: Oracle = getattr(self, self._oracle_name)
        return own

    def _read(self, context: Any) -> Floats:
        x: Floats = super()._read(context)
        self._own()._check_contexts(x[None])
        return x

    def _read_block(self, contexts: Any, T: int) -> Floats:
        block: Floats = super()._read_block(contexts, T)
        self._own()._check_contexts(block)
        return block

    def params(self) -> dict[str, Any]:
        # What the oracle has learnt belongs to the agent's state, not to what it was made with.
        return super().params() | {self._oracle_name: self._own().fresh()}

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"_oracle_state": self._own()._state()}

    def _restore(self, state: dict[str, Any]) -> None:
        self._own()._restore(state["_oracle_state"])
        super()._restore({name: value for name, value in state.items() if name != "_oracle_state"})


def check_times(name: str, times: Any) -> Times:
    """A schedule as ``next_time`` reads it."""
    if callable(times):
        function: Callable[[int], int] = times
        return function
    if isinstance(times, (int, float)) and not isinstance(times, bool) and math.isfinite(times) and times >= 1:
        return float(times)
    if isinstance(times, (list, tuple, np.ndarray)) and len(times):
        try:
            whole = [count(name, time) for time in times]
        except ValueError:
            whole = [1, 1]
        if all(a < b for a, b in pairwise(whole)):
            return whole
    raise ValueError(
        f"{name} must be a number >= 1, an increasing list of whole numbers >= 1, or a function, got {times!r:.80}"
    )


def next_time(times: Times, m: int, last: int) -> int:
    """The m-th time of a schedule, m = 1, 2, ..., the one before it being ``last`` (0 before the first)."""
    if callable(times):
        return max(last + 1, int(times(m)))
    if isinstance(times, (int, float)):
        return max(last + 1, math.ceil(times * last))
    return times[m - 1] if m <= len(times) else 2 * last
