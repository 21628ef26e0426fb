"""Restarting: agents that begin anew at times, and forget the choices whose rewards have not come by then."""

from __future__ import annotations

from armwise.core.agent import Agent


class Restarting(Agent):
    """An agent that begins anew at times, or has one inside it that does (``restarts``)."""

    restarts: bool = True


def restarts(agent: Agent) -> bool:
    """Return whether rewards that come late may be lost to the agent."""
    return isinstance(agent, Restarting) and agent.restarts
