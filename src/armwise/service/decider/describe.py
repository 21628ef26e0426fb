"""The description of an agent in a journal."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from armwise.agents.ranking.ranker import Ranker
from armwise.core.agent import Agent
from armwise.core.saving import Saved
from armwise.features.maps import FeatureMap


class Undescribed(ValueError):
    """The agent holds an object that is not made of plain numbers, such as a scikit-learn model."""


def described(agent: Agent | Mapping[str, Any]) -> dict[str, Any]:
    """Return an agent's class and parameters without its ``dim``, which the encoder determines."""
    if isinstance(agent, Mapping):
        return dict(agent)
    if not isinstance(agent, Agent):
        lists = ": shop.rank fills lists with any agent, slot by slot" if isinstance(agent, Ranker) else ""
        came = f"{type(agent).__name__} {agent!r:.50}{lists}"
        raise ValueError(f"agent must be an armwise agent, or a description, got {came}")
    spec: dict[str, Any] = _spec("agent", agent)
    return spec


def held_in_memory(agent: Any) -> Agent | None:
    """Return a copy of an agent that cannot be described, such as one over a scikit-learn model; else None."""
    if not isinstance(agent, Agent):
        return None
    try:
        described(agent)
    except Undescribed:
        return copy.deepcopy(agent)
    return None


def _spec(where: str, value: Any) -> Any:
    if isinstance(value, Saved):
        import armwise

        name = f"{value._namespace}{type(value).__qualname__}"
        if isinstance(value, FeatureMap):  # fitted attributes are not parameters
            raise Undescribed(_why(where, value))
        if not value._namespace and name not in dir(armwise):  # for example a scikit-learn model
            raise Undescribed(_why(where, value))
        inside = {key: _spec(f"{where}.{key}", each) for key, each in value.params().items() if each is not None}
        if isinstance(value, Agent):
            inside.pop("dim", None)
        return {"class": name, **inside}
    if isinstance(value, (list, tuple)):
        return [_spec(f"{where}[{i}]", each) for i, each in enumerate(value)]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise Undescribed(_why(where, value))


def _why(where: str, value: Any) -> str:
    return (
        f"{where} is {type(value).__name__}, which a journal cannot describe: no folder, no service could build "
        "the agent again. Use Decider(agent) in memory, or an agent of plain numbers"
    )
