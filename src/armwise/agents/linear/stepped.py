"""One decision in compiled code, where checking its input in Python would take longer than the decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from armwise.agents.linear.linear_agent import LinearAgent
from armwise.core.agent import Context
from armwise.core.choices import Choice, Floats, make_choice


class Step(Protocol):
    """A compiled decision that checks its own input, and leaves to the agent what is not a plain array."""

    def choose(self, context: Any) -> int:
        """The arm that is best alone; -1 if several tie, or if the context is not a plain array that fits."""

    def learn(self, context: Any, choice: Any, reward: Any) -> bool:
        """Learn a reward; False, with nothing learnt, for input that is not plain."""


class Stepped(LinearAgent):
    """A linear agent whose ``_step`` makes single decisions; the checked path takes over wherever the step declines."""

    _step: Step

    def choose(self, context: Context = None) -> Choice:
        """Choose an arm for this context.

        >>> import armwise as aw, numpy as np
        >>> aw.LinUCB(dim=2, seed=1).choose(np.eye(2)).probability
        0.5
        """
        arm = self._step.choose(context)
        return super()._choose(self._read(context)) if arm < 0 else make_choice((arm, 1.0, None, None))

    def learn(
        self, context: Context, choice: Choice, reward: float, cost: float | Sequence[float] | Floats | None = None
    ) -> None:
        """Learn the reward of a choice; a ``cost`` is checked and ignored.

        >>> import armwise as aw, numpy as np
        >>> agent = aw.LinUCB(dim=2, alpha=0.0, seed=1)
        >>> agent.learn(np.eye(2), Choice(arm=1, probability=0.5), 1.0)
        >>> agent.choose(np.eye(2)).arm
        1
        """
        if cost is None and isinstance(choice, Choice) and self._step.learn(context, choice, reward):
            self._n_learnt += 1
            if self._noise is not None:
                self._follow(float(reward))
        else:
            super().learn(context, choice, reward, cost)

    def _choose(self, context: Any) -> Choice:
        arm = self._step.choose(context)
        return super()._choose(context) if arm < 0 else make_choice((arm, 1.0, None, None))

    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        if self._step.learn(context, choice, reward):
            self._follow(reward)
        else:
            super()._learn(context, choice, reward)
