"""An agent as a journal describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from armwise.agent import Agent
from armwise.persist import Saved


def described(agent: Agent | Mapping[str, Any]) -> dict[str, Any]:
    """An agent's class and parameters; its ``dim`` is left to the features.

    >>> import armwise as aw
    >>> described(aw.LinUCB(dim=3, alpha=0.5))["class"], "dim" in described(aw.LinUCB(dim=3))
    ('LinUCB', False)
    """
    if isinstance(agent, Mapping):
        return dict(agent)
    if not isinstance(agent, Agent):
        raise ValueError(f"agent must be an armwise agent, or a description, got {type(agent).__name__} {agent!r:.50}")
    spec: dict[str, Any] = _spec("agent", agent)
    return spec


def _spec(where: str, value: Any) -> Any:
    if isinstance(value, Saved):
        name = f"{value._namespace}{type(value).__qualname__}"
        inside = {key: _spec(f"{where}.{key}", each) for key, each in value.params().items() if each is not None}
        if isinstance(value, Agent):
            inside.pop("dim", None)
        return {"class": name, **inside}
    if isinstance(value, (list, tuple)):
        return [_spec(f"{where}[{i}]", each) for i, each in enumerate(value)]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(
        f"{where} is {type(value).__name__}, which a journal cannot describe: use an agent of plain numbers"
    )
