"""Unnamed columns that are not contexts: outcomes of the decision, and logged probabilities."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from armwise.core.agent import Floats
from armwise.offline.logs.checks.balance import Balance
from armwise.offline.logs.formats.cells import outcomes
from armwise.offline.logs.labels import Ints
from armwise.offline.logs.rows import LogBlock

_FEW_VALUES = 12  # different values up to which each of them is looked at on its own
_MANY_REWARDS = 20  # different rewards from which on their order is told from chance
_SAME_ORDER = 0.99  # correlation of ranks: then the column is the reward in another unit
_PROBABILITY = re.compile(r"p|pr|.*prob.*|.*propens.*|p_?scores?", re.IGNORECASE)
_ENOUGH, _PRECISE = 30, 0.1  # rows of an arm, and the standard error of its mean 1/p, for a check of probabilities


def outcomes_among(
    columns: Mapping[str, np.ndarray], arms: Ints, rewards: Floats, probabilities: Floats | None
) -> dict[str, str]:
    """Find columns that were written after the arm was played, each with the reason.

    A column (or one of its few values) that is there just where the reward is not zero is the reward by another name;
    one that is there only where the reward is comes after it. A column that differs between the arms of a randomised
    log is an effect of the arm; where most columns differ, the probabilities are wrong.
    """
    owners, inputs = _inputs(columns)
    if not owners:
        return {}
    known = probabilities is not None and bool(np.all((probabilities > 0) & (probabilities <= 1)))
    n, K = len(arms), int(arms.max()) + 1
    balance = Balance(K, [str(i) for i in range(len(owners))])
    balance.add(LogBlock(arms, rewards, K, contexts=np.nan_to_num(np.column_stack(inputs)),
                         probabilities=probabilities if known else np.ones(n)))  # fmt: skip

    def named(found: list[str], why: str) -> dict[str, str]:
        return dict.fromkeys((owners[int(i)] for i in found), why)

    leaks = named(balance.implying(), "is not zero only where the reward is not")
    leaks |= named(balance.copies(), "nearly determines the reward")
    leaks |= dict.fromkeys(_in_the_same_order(columns, rewards), "nearly determines the reward")
    if not known:  # then nothing tells an effect of the arm from a cause of it, but a step on the way to the reward
        return named(balance.needed(), "is not zero wherever there is a reward") | leaks
    unequal = named(balance.unequal(), "differs between the arms")
    return leaks | (unequal | leaks if 2 * len(unequal) <= len(columns) else {})


def _inputs(columns: Mapping[str, np.ndarray]) -> tuple[list[str], list[np.ndarray]]:
    """Numbers as they are, and the single values of columns that have few; with the column of each."""
    owners, inputs = [], []
    for name, values in columns.items():
        is_number = values.dtype.kind in "biuf"
        if is_number:
            owners.append(name)
            inputs.append(values.astype(np.float64))
        words = values if is_number else np.array([str(value) for value in values.tolist()])
        different = np.unique(words[: 10 * _FEW_VALUES])
        if len(different) > _FEW_VALUES or len(different := np.unique(words)) > _FEW_VALUES:
            continue
        for value in different if len(different) > 1 else ():
            owners.append(name)
            inputs.append((words == value).astype(np.float64))
    return owners, inputs


def _in_the_same_order(columns: Mapping[str, np.ndarray], rewards: Floats) -> list[str]:
    if len(np.unique(rewards)) < _MANY_REWARDS:
        return []
    ranks, found = _ranks(rewards), []
    for name, values in columns.items():
        usable = values.dtype.kind in "iuf" and np.isfinite(values).all() and values.std() > 0
        if usable and abs(np.corrcoef(_ranks(values), ranks)[0, 1]) > _SAME_ORDER:
            found.append(name)
    return found


def _ranks(values: np.ndarray) -> Floats:
    """The place of each value in their order; equal ones share the middle of theirs."""
    order = np.sort(values)
    return (np.searchsorted(order, values, "left") + np.searchsorted(order, values, "right")) / 2.0


def are_probabilities(name: str, values: np.ndarray, arms: Ints) -> bool:
    """Return whether these are the probabilities of the drawn arms: by the name, or because 1/p averages 1."""
    if values.dtype.kind == "O" and str(values[0]).strip().endswith("%"):
        values = outcomes("probability", name, values)[0]
    if values.dtype.kind != "f" or not np.all((values > 0) & (values <= 1)):
        return False
    if _PROBABILITY.fullmatch(name):
        return True
    counts, n = np.bincount(arms), len(arms)
    if len(counts) < 2 or counts.min() < _ENOUGH:
        return False
    mean = np.bincount(arms, 1.0 / values) / n
    error = np.sqrt(np.maximum(np.bincount(arms, values**-2.0) / n - mean**2, 0.0) / n)
    return bool(np.all(error < _PRECISE) and np.all(np.abs(mean - 1.0) < 4.0 * error))
