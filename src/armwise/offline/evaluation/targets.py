"""Targets: the choices of a policy, a frozen agent or an array of probabilities in the logged rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from armwise.core.agent import Agent, Floats
from armwise.offline.logs.labels import ArmNames
from armwise.offline.logs.log import Log
from armwise.offline.logs.rows import SURE, LogBlock, ndim
from armwise.policies import Constant, Uniform

_TOTAL = 1e-6  # how far from 1 the probabilities of a row may sum: they often come from files in single precision


@dataclass(frozen=True)
class Always:
    """The policy that always plays the arm with this index."""

    place: int


class Target:
    """A policy in a uniform form: per row an arm, or a distribution over the arms."""

    def __init__(self, policy: Any, log: Log, name: str | None = None) -> None:
        self.name = type(policy).__name__
        self.needs_contexts = True
        if isinstance(policy, Agent):
            self.needs_contexts = policy.sees != "nothing"
            self._answer: Callable[[LogBlock], np.ndarray] = lambda rows: _frozen(policy, rows)
        elif isinstance(policy, Always):
            self.needs_contexts = False
            self._answer = lambda rows: np.full(len(rows), policy.place)
        elif callable(policy) or hasattr(policy, "many"):
            self.needs_contexts = not isinstance(policy, (Constant, Uniform))
            self.name = getattr(policy, "__name__", self.name)
            # and not the log: targets travel to the workers of a cluster
            asked = _Asked(policy, _title(policy, log, self.name), ArmNames(log.arm_names, log.n_arms))
            # a function, as for all others, which only cloudpickle takes: policies registered with it travel by value
            self._answer = lambda rows: asked.answers(rows)
        else:
            table = _from_array(policy, log)
            self.needs_contexts = False
            self._answer = lambda rows: table if len(table) == 1 else table[rows.start : rows.start + len(rows)]
        self.name = _title(policy, log, self.name) if name is None else name

    def answers(self, rows: LogBlock) -> np.ndarray:
        """(n,) arms, or an (n, K) table of probabilities."""
        answer = self._answer(rows)
        if answer.ndim == 2 and len(answer) != len(rows):
            answer = np.broadcast_to(answer, (len(rows), answer.shape[1]))
        return answer if rows.available is None else _on_offer(answer, rows)

    def offered(self, rows: LogBlock) -> np.ndarray:
        """(n,) of bool: the rows that offer an arm to which the target gives a probability."""
        if rows.available is None:
            return np.ones(len(rows), np.bool_)
        answer = self._answer(rows)
        if answer.ndim == 1:
            return np.asarray(rows.available[np.arange(len(rows)), answer])
        return np.asarray(np.where(rows.available, answer, 0.0).sum(axis=1) > 0.0)

    def table(self, rows: LogBlock) -> Floats:
        """(n, K) probabilities."""
        return as_table(self.answers(rows), rows.n_arms)


def _title(policy: Any, log: Log, otherwise: str) -> str:
    """Return a policy's display name: its arm, its class, or its function's name."""
    if isinstance(policy, (Constant, Always)):
        number = policy.arm if isinstance(policy, Constant) else policy.place
        place = ArmNames(log.arm_names, log.n_arms).place(number) if isinstance(policy, Constant) else number
        return f"always arm {number}" if log.arm_names is None or place is None else f"always {log.arm_names[place]}"
    if isinstance(policy, (np.ndarray, list, tuple)) or hasattr(policy, "to_numpy"):
        return "the given probabilities" if np.ndim(policy) == 2 else "the given policy"
    return "a function" if otherwise == "<lambda>" else otherwise


def as_table(answers: np.ndarray, n_arms: int) -> Floats:
    """The answers as an (n, K) table of probabilities."""
    if answers.ndim == 2:
        return np.asarray(answers, np.float64)
    table = np.zeros((len(answers), n_arms))
    table[np.arange(len(answers)), answers] = 1.0
    return table


def of_logged(answers: np.ndarray, arms: np.ndarray) -> Floats:
    """Return the target's probability of each logged arm."""
    if answers.ndim == 1:
        return np.asarray(answers == arms, np.float64)
    return np.asarray(answers[np.arange(len(arms)), arms], np.float64)


def unsupported(rows: LogBlock, answers: np.ndarray) -> float:
    """The target's probability, summed over the rows, of arms that these rows could not have drawn.

    Known where the log has the whole distribution, and where it drew an arm with probability 1: it had no other.
    """
    if rows.support is not None:
        if answers.ndim == 1:
            return float(len(rows) - np.count_nonzero(rows.support[np.arange(len(rows)), answers]))
        return float(answers.sum() - np.einsum("nk,nk->", answers, rows.support))
    assert rows.probabilities is not None
    if not len(rows) or rows.probabilities.max() < SURE:
        return 0.0
    return float((1.0 - of_logged(answers, rows.arms))[rows.probabilities >= SURE].sum())


def _from_array(values: Any, log: Log) -> np.ndarray:
    """An array: (n, K) probabilities, (K,) the same for every row, or (n,) arms; a frame's columns go by name."""
    if hasattr(values, "columns") and hasattr(values, "to_numpy"):
        values = _columns_in_order(values, log)
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.asarray("?")
    names = ArmNames(log.arm_names, log.n_arms)
    if array.ndim == 1 and _are_names(array):
        if len(array) != len(log):
            raise ValueError(f"policy has {len(array)} arms, expected {len(log)}, one per row")
        return _arms(array, names)
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
        raise ValueError(
            f"policy must be a policy, an agent, or an (n, K) array of probabilities, got {type(values).__name__}"
        )
    shares = array.dtype.kind == "f" or len(array) != len(log)  # [0, 1] in whole numbers: shares, if not an arm per row
    if array.ndim == 1 and shares and len(array) == log.n_arms:
        return _distributions(array[None].astype(np.float64), 1, log.n_arms)
    if array.ndim == 1:
        if len(array) != len(log) or array.dtype.kind == "f":
            raise ValueError(
                f"policy is an array of shape {array.shape}: expected ({len(log)}, {log.n_arms}) probabilities, "
                f"({log.n_arms},) probabilities for all rows, or ({len(log)},) whole numbers, the arms"
            )
        return _arms(array, names)
    return _distributions(array, len(log), log.n_arms)


def _columns_in_order(frame: Any, log: Log) -> np.ndarray:
    """The probabilities of a frame with one column per arm, in the order of the log's arms."""
    names = list(frame.columns)
    if names == list(range(log.n_arms)):  # a frame made of a plain array: nothing has a name
        ids = ArmNames(log.arm_names, log.n_arms).ids
        if ids is not None and ids != names and sorted(ids) == names:
            raise ValueError(
                f"policy is a table whose columns 0 to {names[-1]} may be arms or places, since the log's arms are "
                f"{', '.join(map(str, ids))[:200]}, in this order: name them by texts, or give policy.to_numpy() if "
                "they are in the order of the log"
            )
        return np.asarray(frame.to_numpy())
    arms = [str(name) for name in (log.arm_names if log.arm_names is not None else range(log.n_arms))]
    if len(names) != len(arms) or {str(name) for name in names} != set(arms):
        raise ValueError(
            f"policy is a table with the columns {', '.join(map(str, names))[:200]}, expected one for each arm of the "
            f"log, by its name: {', '.join(arms)[:200]} (give policy.to_numpy() if the columns are in this order)"
        )
    places = [[str(name) for name in names].index(arm) for arm in arms]
    return np.asarray(frame.to_numpy())[:, places]


def _are_names(array: np.ndarray) -> bool:
    return array.dtype.kind == "U" or (array.dtype == object and all(isinstance(a, str) for a in array.tolist()))


def _arms(array: np.ndarray, names: ArmNames, start: int = 0) -> np.ndarray:
    """Arms by their names or numbers, as places."""
    if not _are_names(array) and array.dtype.kind not in "biu":
        raise ValueError(f"policy, row {start}: it answered {array[0]!r}, expected a whole number or an arm's name")
    places = names.places(array)
    if (places < 0).any():
        row = int(np.argmin(places))
        raise ValueError(f"policy, row {start + row}: the arm is {array.tolist()[row]!r}, expected "
                         f"{names.expected}")  # fmt: skip
    return places


def _distributions(table: np.ndarray, n: int, n_arms: int, start: int = 0) -> Floats:
    if table.shape != (n, n_arms):
        raise ValueError(f"policy has shape {table.shape}, expected ({n}, {n_arms}): one distribution a row")
    table = table.astype(np.float64, copy=False)
    totals = table @ np.ones(n_arms)
    whole = np.abs(totals - 1.0) <= _TOTAL  # False for NaN
    if not (whole.all() and table.min(initial=0.0) >= 0.0):
        right = whole & (table.min(axis=1, initial=0.0) >= 0.0)
        row = int(np.argmin(right))
        raise ValueError(
            f"policy, row {start + row}: the probabilities must be non-negative and sum to 1, got {table[row]} "
            f"(sum {totals[row]:.6g}; {int((~right).sum())} such rows)"
        )
    return table


class _Asked:
    """A function of a context, or a policy with ``many``, that returns arms by name, id or index, or shares."""

    def __init__(self, policy: Any, name: str, names: ArmNames) -> None:
        self._policy, self._name, self._names = policy, name, names

    def answers(self, rows: LogBlock) -> np.ndarray:
        contexts = rows.contexts if rows.contexts is not None else rows.arm_features
        if contexts is None:
            contexts = np.empty((len(rows), 0))
        elif rows.contexts is None and ndim(contexts) == 2:
            contexts = np.broadcast_to(contexts, (len(rows), *contexts.shape))
        if isinstance(self._policy, (Constant, Uniform)):  # they do not look: what they want of arms that a row does
            return self._ask(contexts, None, rows)  # not offer is shared out
        return _by_offer(lambda some, arms: self._ask(some, arms, rows), contexts, rows)

    def _ask(self, contexts: Any, arms: np.ndarray | None, rows: LogBlock) -> np.ndarray:
        names = self._names if arms is None else self._names.of(arms.tolist())
        if not hasattr(self._policy, "many"):
            return self._one_by_one(contexts, names, rows.start)
        answer = np.asarray(self._policy.many(contexts))
        if len(answer) != len(contexts):
            raise ValueError(f"policy answered {len(answer)} rows to {len(contexts)} contexts")
        if answer.ndim == 1:
            return _arms(answer, names, rows.start) if len(answer) else np.empty(0, np.int64)
        return _distributions(answer, len(contexts), len(names), rows.start)

    def _one_by_one(self, contexts: Any, names: ArmNames, start: int) -> np.ndarray:
        answers = [self._read(self._policy(context), names, start + i) for i, context in enumerate(contexts)]
        if all(isinstance(answer, int) for answer in answers):
            return np.array(answers, np.int64)
        one_hot = np.eye(len(names))
        table = np.stack([one_hot[answer] if isinstance(answer, int) else answer for answer in answers])
        return _distributions(table, len(answers), len(names), start)

    def _read(self, answer: Any, names: ArmNames, row: int) -> int | Floats:
        """Parse one answer: the index of an arm, or a share for each."""
        said, wanted = f"policy, row {row}: {self._name} answered", f"expected {names.expected}"
        if isinstance(answer, Mapping):
            try:
                return names.shares(answer)
            except KeyError as unknown:
                raise ValueError(f"{said} {unknown.args[0]!r}, {wanted}") from None
            except (TypeError, ValueError):
                raise ValueError(f"{said} {answer!r:.80}, expected a probability for each of its arms") from None
        if isinstance(answer, (str, bool, int, np.integer, np.bool_)) or (np.ndim(answer) == 0 and _is_whole(answer)):
            place = names.place(answer if isinstance(answer, str) else int(answer))
            if place is None:
                raise ValueError(f"{said} {answer!r:.80}, {wanted}: no other arm is in the log")
            return place
        try:
            shares = np.asarray(answer, np.float64)
        except (TypeError, ValueError):
            shares = np.empty(0)
        if shares.shape != (len(names),):
            raise ValueError(f"{said} {answer!r:.80}: expected an arm, {names.expected}, or {len(names)} probabilities")
        return shares


def _is_whole(answer: Any) -> bool:
    return getattr(getattr(answer, "dtype", None), "kind", "none") in ("b", "i", "u")


def _frozen(agent: Agent, rows: LogBlock) -> np.ndarray:
    def ask(contexts: Any, arms: np.ndarray | None) -> np.ndarray:
        n_arms = rows.n_arms if arms is None else len(arms)
        if not len(contexts):
            return np.empty((0, n_arms))
        return _distributions(np.stack([agent.probabilities(context) for context in contexts]), len(contexts), n_arms)

    if agent.sees == "nothing":
        return _distributions(agent.probabilities()[None], 1, rows.n_arms)
    return _by_offer(ask, views(agent.sees, rows), rows)


def views(sees: str, rows: LogBlock) -> Any:
    """Return the contexts of these rows in the form that an agent with this ``sees`` takes, one per row."""
    if sees == "nothing":
        return [None] * len(rows)
    if sees == "features":
        return rows.features()
    if sees == "key":
        if ndim(rows.contexts) == 1:
            return rows.contexts.tolist()
        if ndim(rows.contexts) == 2:
            return [tuple(row) for row in rows.contexts.tolist()]
    elif ndim(rows.contexts) == (2 if sees == "shared" else 3):
        return rows.contexts
    wanted = {"shared": "(n, d)", "advice": "(n, N, K)", "key": "(n,)"}[sees]
    came = "no contexts" if rows.contexts is None else f"contexts of shape {rows.contexts.shape}"
    raise ValueError(f"the agent sees {sees!r}, contexts of shape {wanted}, but the log has {came}")


def _by_offer(ask: Callable[[Any, np.ndarray | None], np.ndarray], contexts: Any, rows: LogBlock) -> np.ndarray:
    """Ask once for all rows, or once for each set of arms on offer where arms have features of their own."""
    if rows.available is None or ndim_of(contexts) != 3:
        return ask(contexts, None)
    table = np.zeros((len(rows), rows.n_arms))
    patterns, which = np.unique(rows.available, axis=0, return_inverse=True)
    for i, pattern in enumerate(patterns):
        where, arms = np.flatnonzero(which.ravel() == i), np.flatnonzero(pattern)
        answer = ask(contexts[np.ix_(where, arms)], arms)
        table[np.ix_(where, arms)] = as_table(answer, len(arms))
    return table


def ndim_of(contexts: Any) -> int:
    """The number of dimensions of a block of contexts; 1 for a list of keys."""
    return getattr(contexts, "ndim", 1)


def _on_offer(answers: np.ndarray, rows: LogBlock) -> np.ndarray:
    """Renormalise probabilities over the arms that a row offered."""
    assert rows.available is not None
    table: Floats = np.where(rows.available, as_table(answers, rows.n_arms), 0.0)
    totals = table.sum(axis=1, keepdims=True)
    if len(table) and totals.min() <= 0.0:
        row = int(np.argmin(totals))
        raise ValueError(
            f"policy, row {rows.start + row}: all its probability is on arms that the row did not offer, so "
            "nothing says what it would have done"
        )
    shared: Floats = table / totals
    return shared
