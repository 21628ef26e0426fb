"""Choices, rewards and costs as users give them to an agent: checked once, before anything is learnt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.core.arguments import MAX_MAGNITUDE, as_floats, refuse_masked, short, wanted_numbers
from armwise.core.capabilities.noting import Noting
from armwise.core.choices import Choice, Choices, Floats
from armwise.native.choice import all_within

if TYPE_CHECKING:
    from armwise.core.agent import Agent

_ROUNDED_ONE = 1.0 + 1e-9  # a probability that is 1 up to rounding


# ---------------------------------------------------------------------- rewards


def read_reward(agent: Agent, reward: Any) -> float:
    """A reward in the agent's range."""
    value = reward if type(reward) is float else _as_float(reward)
    low, high = agent.reward_range
    if not (low <= value <= high and -MAX_MAGNITUDE <= value <= MAX_MAGNITUDE):  # False for NaN
        raise ValueError(f"reward is {value}; {_expected_reward(agent)}")
    return value


def _as_float(reward: Any) -> float:
    refuse_masked("reward", reward)
    try:
        return float("" if isinstance(reward, (str, bytes)) else reward)
    except (TypeError, ValueError):
        raise ValueError(f"reward must be a number, got {short(reward)}") from None


def read_rewards(agent: Agent, rewards: Any) -> Floats:
    """One reward per choice."""
    values = as_floats("rewards", rewards)
    if values.ndim != 1:
        raise ValueError(f"rewards must be one number per choice, got shape {values.shape}")
    return _in_range(agent, values)


def read_reward_table(agent: Agent, rewards: Any) -> Floats:
    """The rewards of a block: one row per round, one column per arm."""
    table = as_floats("rewards", rewards)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"rewards must be a (T, K) array, got shape {table.shape}")
    return _in_range(agent, table)


def _in_range(agent: Agent, values: Floats) -> Floats:
    low, high = max(agent.reward_range[0], -MAX_MAGNITUDE), min(agent.reward_range[1], MAX_MAGNITUDE)
    wrong = ~((values >= low) & (values <= high))
    if wrong.any():
        at = np.argwhere(wrong)[0].tolist()
        raise ValueError(f"rewards{at} is {values[tuple(at)]}; {_expected_reward(agent)}")
    return values


def _expected_reward(agent: Agent) -> str:
    low, high = agent.reward_range
    if low == -np.inf and high == np.inf:
        return f"{type(agent).__name__} expects a finite number of at most {MAX_MAGNITUDE:g} in size"
    return f"{type(agent).__name__} expects a number in [{low:g}, {high:g}]: rescale the rewards first"


# ---------------------------------------------------------------------- costs


def read_cost(agent: Agent, cost: Any) -> tuple[float, ...]:
    """The cost of one choice: one number per resource."""
    if isinstance(cost, float):
        values: tuple[float, ...] = (float(cost),)
    elif cost is None:
        raise ValueError(f"cost is missing, and {type(agent).__name__} counts it: learn(..., cost=...)")
    else:
        vector = as_floats("cost", cost)
        if vector.ndim > 1:
            raise ValueError(f"cost must be a number, or one number per resource, got shape {vector.shape}")
        values = tuple(np.atleast_1d(vector).tolist())
    if agent.n_costs and len(values) != agent.n_costs:
        raise ValueError(f"cost must have {agent.n_costs} numbers, one per resource, got {len(values)}")
    if not all(-MAX_MAGNITUDE <= value <= MAX_MAGNITUDE for value in values):  # False for NaN
        raise ValueError(f"cost must be finite numbers of at most {MAX_MAGNITUDE:g} in size, got {short(cost)}")
    _refuse_below(agent, "cost", min(values))
    return values


def read_costs(agent: Agent, costs: Any, n: int) -> Floats:
    """The costs of ``n`` choices, one row each."""
    if costs is None or not hasattr(costs, "__len__") or len(costs) != n:
        came = short(costs) if not hasattr(costs, "__len__") else f"{len(costs)} rows"
        raise ValueError(f"costs must have a number, or a row of numbers, for each of the {n} rewards, got {came}")
    rows = []
    for t, cost in enumerate(costs):
        try:
            rows.append(read_cost(agent, cost))
        except ValueError as error:
            raise ValueError(f"costs, row {t}: {error}") from None
    return np.array(rows).reshape(n, -1)


def read_cost_table(agent: Agent, costs: Any, shape: tuple[int, ...]) -> Floats:
    """The costs of a block: one row per round, one column per arm, and one number per resource."""
    if costs is None:
        raise ValueError(f"costs are missing, and {type(agent).__name__} counts them: play(..., costs=...)")
    table = as_floats("costs", costs)
    if table.shape[:2] != shape or table.ndim not in (2, 3) or (table.ndim == 3 and table.shape[2] == 0):
        raise ValueError(f"costs must be a (T, K) or (T, K, n) array with T, K = {shape}, got shape {table.shape}")
    if agent.n_costs and (table.shape[2] if table.ndim == 3 else 1) != agent.n_costs:
        raise ValueError(f"costs must hold {agent.n_costs} numbers per round and arm, got shape {table.shape}")
    if not all_within(table):
        raise ValueError(f"costs must be {wanted_numbers(table)}")
    _refuse_below(agent, "costs", float(table.min()))
    return table


def _refuse_below(agent: Agent, name: str, lowest: float) -> None:
    if lowest < 0.0 and not agent.negative_costs:
        raise ValueError(f"{name} must not be negative, got {lowest}")


# ---------------------------------------------------------------------- choices


def check_choice(agent: Agent, choice: Any, n_arms: int) -> None:
    """Refuse anything but a choice of the agent among ``n_arms`` arms."""
    if not isinstance(choice, Choice):
        raise ValueError(f"choice must be the Choice that choose returned, got {short(choice)}")
    arm, p = choice.arm, choice.probability
    if not (type(arm) is int and 0 <= arm < n_arms):  # as choose makes them
        _check_arm(arm, n_arms)
    if not (type(p) is float and 0.0 < p <= 1.0):
        _check_probability(agent, p)
    if isinstance(agent, Noting):
        agent._check_note(choice, n_arms)


def _check_arm(arm: Any, n_arms: int) -> None:
    if isinstance(arm, bool) or not isinstance(arm, (int, np.integer)):
        raise ValueError(f"choice.arm must be an integer, got {short(arm)}")
    if not 0 <= arm < n_arms:
        raise ValueError(f"choice.arm is {arm}, but this round has arms 0 to {n_arms - 1}")


def _check_probability(agent: Agent, p: Any) -> None:
    if p is None:
        if agent.needs_probability:
            raise ValueError(f"choice.probability is None, but {type(agent).__name__} learns with it: expected (0, 1]")
    elif not (isinstance(p, (float, int, np.floating)) and 0.0 < p <= _ROUNDED_ONE):
        raise ValueError(f"choice.probability must lie in (0, 1], got {short(p)}")


def check_choices(agent: Agent, choices: Sequence[Choice], contexts: Any) -> Choices:
    """The choices of checked contexts as columns, each of them checked."""
    varied = isinstance(contexts, list) and agent.n_arms is None
    n_arms = 0 if varied or not len(choices) else agent._count_arms(contexts if contexts is None else contexts[0])
    if isinstance(choices, Choices) and not varied and not isinstance(agent, Noting):
        p = choices.probabilities
        unknown = np.isnan(p)
        fine = (choices.arms >= 0) & (choices.arms < n_arms) & (unknown | ((p > 0.0) & (p <= _ROUNDED_ONE)))
        if fine.all() and not (agent.needs_probability and unknown.any()):
            return choices
    for t, choice in enumerate(choices):
        try:
            check_choice(agent, choice, agent._count_arms(contexts[t]) if varied else n_arms)
        except ValueError as error:
            raise ValueError(f"choices, row {t}: {error}") from None
    return choices if isinstance(choices, Choices) else Choices.of(choices)
