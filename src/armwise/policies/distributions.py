"""The answer of a policy as a distribution over the arms, for experts, policy classes and offline targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.core.agent import Agent, Floats

TOLERANCE = 1e-9  # of the sum of a distribution


def distribution(policy: Any, context: Any, n_arms: int) -> Floats:
    """Ask a policy for one context and return a (K,) distribution; an arm becomes a point mass.

    ``policy`` is one of ours, any function of a context, or an agent (whose ``probabilities`` are read and
    which is not changed).

    >>> distribution(lambda x: x > 3, 5, n_arms=2)
    array([0., 1.])
    >>> distribution(lambda x: [0.5, 0.5], 5, n_arms=2)
    array([0.5, 0.5])
    """
    if isinstance(policy, Agent):
        answer = np.asarray(policy.probabilities(context))
    elif callable(policy):
        answer = _as_array(policy, policy(context))
    else:
        raise ValueError(f"{policy!r:.80} is not a policy: expected a function of a context, or an agent")
    if answer.ndim:
        return _checked(policy, answer[None], 1, n_arms).reshape(n_arms)
    if answer.dtype.kind != "f" and 0 <= (arm := int(answer)) < n_arms:
        alone = np.zeros(n_arms)
        alone[arm] = 1.0
        return alone
    return _one_hot(policy, answer[None], n_arms).reshape(n_arms)  # raises the error that names the problem


def distributions(policy: Any, contexts: Any, n_arms: int) -> Floats:
    """Ask a policy for n contexts and return an (n, K) array; calls ``policy.many`` if there is one.

    >>> distributions(lambda x: int(x > 3), [1, 5], n_arms=2)
    array([[1., 0.],
           [0., 1.]])
    """
    many = getattr(policy, "many", None)
    if many is None or isinstance(policy, Agent):
        if not len(contexts):
            return np.empty((0, n_arms))
        return np.stack([distribution(policy, context, n_arms) for context in contexts])
    answer = _as_array(policy, many(contexts))
    if answer.ndim == 1:
        if len(answer) != len(contexts):
            raise ValueError(f"{policy!r:.80} answered {len(answer)} arms to {len(contexts)} contexts")
        return _one_hot(policy, answer, n_arms)
    return _checked(policy, answer, len(contexts), n_arms)


def _as_array(policy: Any, answer: Any) -> np.ndarray:
    try:
        array = np.asarray(answer)
    except ValueError:
        array = np.asarray("?")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{policy!r:.80} answered {answer!r:.80}: expected an arm or a distribution over the arms")
    return array


def _one_hot(policy: Any, arms: np.ndarray, n_arms: int) -> Floats:
    if arms.dtype.kind == "f":
        raise ValueError(f"{policy!r:.80} answered {arms[0]}: an arm must be an integer")
    arms = arms.astype(np.int64)
    wrong = (arms < 0) | (arms >= n_arms)
    if wrong.any():
        raise ValueError(f"{policy!r:.80} answered arm {arms[wrong][0]}, but the arms are 0 to {n_arms - 1}")
    table = np.zeros((len(arms), n_arms))
    table[np.arange(len(arms)), arms] = 1.0
    return table


def _checked(policy: Any, table: np.ndarray, n: int, n_arms: int) -> Floats:
    if table.shape != (n, n_arms):
        raise ValueError(
            f"{policy!r:.80} answered an array of shape {table.shape[1:] if n == 1 else table.shape}: expected an arm, "
            f"or a distribution over {n_arms} arms"
        )
    table = table.astype(np.float64)
    right = (table >= 0.0).all(axis=1) & (np.abs(table.sum(axis=1) - 1.0) <= TOLERANCE)  # False for NaN
    if not right.all():
        row = table[np.argmin(right)]
        raise ValueError(
            f"{policy!r:.80} answered {row}: a distribution is non-negative and sums to 1 (sum {row.sum()})"
        )
    return table
