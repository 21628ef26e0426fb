"""One row: agents that read no more of a context than the row of the arm that was chosen."""

from __future__ import annotations

from abc import abstractmethod

from armwise.core.agent import Agent


class OneRow(Agent):
    """An agent that may learn from one row alone."""

    @property
    @abstractmethod
    def one_row(self) -> bool:
        """Whether all that it now learns, revises or predicts of a choice comes from that arm's row of the features,
        to the bit: then the other rows need not be built again for it.

        >>> import armwise as aw
        >>> aw.LinUCB(dim=2, lam=1.0).one_row, aw.LinUCB(dim=2, n_arms=2).one_row
        (True, False)
        """


def learns_one_row(agent: Agent) -> bool:
    """Return whether the agent now learns from the row of the arm that was chosen."""
    return isinstance(agent, OneRow) and agent.one_row
