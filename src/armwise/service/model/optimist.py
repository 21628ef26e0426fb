"""A ``LinUCB`` over hashed pairs of context and arm: it decides, begins and amends in compiled calls, to the bit as the
agent would by itself."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from armwise.agents.linear.linucb import LinUCB
from armwise.agents.wrappers.around import teach
from armwise.agents.wrappers.explore import Explore
from armwise.core.agent import Agent, Floats, make_choice
from armwise.features.encoding.hashed import HashedRows
from armwise.features.encoding.running_scale import Scaler, Scaling
from armwise.features.encoding.tokens import ONE, InvalidInput, Part, Stack, Tail
from armwise.native.decisions import begin, begin_all, decide_and_begin, decide_optimistic, predicted
from armwise.service.model.seen import Drawn, Seen

_DRAWN = make_choice((0, None, None, None))  # of a view that has the drawn arm's row alone; optimists need no more


class Optimist:
    """An optimist by itself, or in an ``Explore``; the scale of numbers is its model's, which may take another's.

    >>> import armwise
    >>> agent = armwise.Explore(armwise.LinUCB(dim=8, lam=1.0), epsilon=0.1)
    >>> Optimist.of(agent, HashedRows(8)).inner is agent.agent
    True
    """

    __slots__ = ("agent", "encoder", "inner")

    def __init__(self, agent: Agent, inner: Agent, encoder: HashedRows) -> None:
        self.agent: Any = agent
        self.inner: Any = inner
        self.encoder = encoder

    @classmethod
    def of(cls, agent: Agent, encoder: HashedRows) -> Optimist | None:
        """None of an agent that is no optimist over the arms' features.

        >>> import armwise
        >>> Optimist.of(armwise.SquareCB(dim=8), HashedRows(8)) is None
        True
        """
        inner = agent.agent if type(agent) is Explore else agent
        plain = type(inner) is LinUCB and inner.n_arms is None and inner.lam is not None and not inner._model.forgets
        return cls(agent, inner, encoder) if plain else None

    def choose(self, scaler: Scaler, context: Part, arms: Tail, u: float) -> Drawn:
        """Draw an arm with ``u``; what is seen of it is the row of the arm that was drawn.

        >>> import armwise
        >>> from armwise.features.encoding.arms import read_arms
        >>> from armwise.features.encoding.tokens import part
        >>> optimist = Optimist.of(armwise.LinUCB(dim=8, lam=1.0), HashedRows(8))
        >>> optimist.choose(Scaler(), part(b"{}", "c"), read_arms([b'"a"', b'"b"']).tail, 0.7).seen.view.shape
        (1, 8)
        """
        agent, inner, encoder = self.agent, self.inner, self.encoder
        epsilon = -1.0 if inner is agent else agent.epsilon
        lam, alpha, noise, delta = inner._settings
        try:
            arm, p, row, scaling = decide_optimistic(
                context.counted, arms.words, arms.n, scaler.names, scaler.counts, scaler.means, scaler.squares,
                encoder.interactions, ONE, inner._model.models, encoder.dim, lam, alpha, noise, delta, epsilon, u,
            )  # fmt: skip
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        return Drawn(arm, p, None, Seen(row, None, Scaling(scaling), Stack(context, arms), True))

    def play(
        self, scaler: Scaler, context: Part, arms: Tail, u: float, reward: float
    ) -> tuple[int, tuple[float, ...], Floats, bytes, float]:
        """``choose`` and ``begin`` in one call: arm, probabilities, the arm's row, the scaling (packed), and what was
        expected of it before.

        >>> import armwise
        >>> from armwise.features.encoding.arms import read_arms
        >>> from armwise.features.encoding.tokens import part
        >>> optimist = Optimist.of(armwise.LinUCB(dim=8, lam=1.0), HashedRows(8))
        >>> optimist.play(Scaler(), part(b"{}", "c"), read_arms([b'"a"', b'"b"']).tail, 0.7, 0.0)[:2]
        (1, (0.5, 0.5))
        """
        agent, inner, encoder = self.agent, self.inner, self.encoder
        epsilon = -1.0 if inner is agent else agent.epsilon
        lam, alpha, noise, delta = inner._settings
        try:
            arm, p, row, scaling, expected, begun = decide_and_begin(
                context.counted, arms.words, arms.n, scaler.names, scaler.counts, scaler.means, scaler.squares,
                encoder.interactions, ONE, inner._model.models, encoder.dim, lam, alpha, noise, delta, epsilon, u,
                reward,
            )  # fmt: skip
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        if begun == 1:
            self._learnt(1)
        elif begun == 0:
            self._begin_anew(scaler, Stack(context, arms), row, reward)
        return arm, p, row, scaling, expected

    def expected(self, row: Floats) -> float:
        """What is expected of an arm with this row, the same on every processor.

        >>> import armwise, numpy as np
        >>> Optimist.of(armwise.LinUCB(dim=2, lam=1.0), HashedRows(2)).expected(np.ones((1, 2)))
        0.0
        """
        return predicted(self.inner._model.models, row)

    def begin(self, scaler: Scaler, stack: Stack, row: Floats, taken: float) -> None:
        """Scale the numbers of a decision and learn the reward that is assumed of it, as the agent takes it.

        >>> import armwise, numpy as np
        >>> from armwise.features.encoding.arms import read_arms
        >>> from armwise.features.encoding.tokens import part
        >>> agent = armwise.LinUCB(dim=2, lam=1.0)
        >>> stack = Stack(part(b"{}", "c"), read_arms([b'"a"']).tail)
        >>> Optimist.of(agent, HashedRows(2)).begin(Scaler(), stack, np.ones((1, 2)), 0.0); agent.t
        2
        """
        context, arms = stack.context, stack.tail
        try:
            if not begin(
                context.counted, arms.words, arms.n, scaler.names, scaler.counts, scaler.means, scaler.squares,
                self.inner._model.models, row, taken,
            ):  # fmt: skip
                self._begin_anew(scaler, stack, row, taken)
                return
        except (ValueError, ArithmeticError):  # it is counted when its outcome is refused, too
            return
        self._learnt(1)

    def begin_all(self, scaler: Scaler, made: Sequence[tuple[Stack, Floats, float]]) -> list[float]:
        """``begin`` of decisions that follow one another; what was expected of each just before it.

        >>> import armwise, numpy as np
        >>> from armwise.features.encoding.arms import read_arms
        >>> from armwise.features.encoding.tokens import part
        >>> stack = Stack(part(b"{}", "c"), read_arms([b'"a"']).tail)
        >>> optimist = Optimist.of(armwise.LinUCB(dim=2, lam=1.0), HashedRows(2))
        >>> [round(value, 6) for value in optimist.begin_all(Scaler(), [(stack, np.ones((1, 2)), 1.0)] * 2)]
        [0.0, 0.666667]
        """
        decisions = [(stack.context.counted, stack.tail.words, stack.tail.n, row, taken) for stack, row, taken in made]
        done, expected = 0, list[float]()
        while done < len(made):
            done, learnt, found = begin_all(
                decisions, done, scaler.names, scaler.counts, scaler.means, scaler.squares, self.inner._model.models,
                self.encoder.dim,
            )  # fmt: skip
            expected += found[: done + 1 - len(expected)].tolist()
            self._learnt(learnt)
            if done < len(made):
                self._begin_anew(scaler, *made[done])
                done += 1
        return expected

    def learn(self, row: Floats, taken: float) -> None:
        """Learn the reward of the arm that has this row.

        >>> import armwise, numpy as np
        >>> agent = armwise.LinUCB(dim=2, lam=1.0)
        >>> Optimist.of(agent, HashedRows(2)).learn(np.ones((1, 2)), 1.0); agent.t
        2
        """
        teach(self.agent, row, _DRAWN, taken)

    def revise(self, row: Floats, by: float) -> None:
        """Let what was learnt of the arm that had this row be more by so much.

        >>> import armwise, numpy as np
        >>> optimist, row = Optimist.of(armwise.LinUCB(dim=2, lam=1.0), HashedRows(2)), np.ones((1, 2))
        >>> optimist.learn(row, 0.0); optimist.revise(row, 1.0); round(optimist.expected(row), 6)
        0.666667
        """
        self.inner._model.revise(row, 0, by)

    def _learnt(self, n: int) -> None:
        self.inner._n_learnt += n
        if self.inner is not self.agent:
            self.agent._n_learnt += n

    def _begin_anew(self, scaler: Scaler, stack: Stack, row: Floats, taken: float) -> None:
        """``begin`` where a name is new."""
        scaler.take(stack)
        with contextlib.suppress(ValueError, ArithmeticError):  # it is counted when its outcome is refused, too
            self.learn(row, taken)
