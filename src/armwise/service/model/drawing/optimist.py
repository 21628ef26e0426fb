"""An agent that chooses by optimism alone (``core.capabilities.optimism``), over the rows of hashed pairs: decided and
taught in compiled calls, to the bit as the agent would by itself."""

from __future__ import annotations

import contextlib

from armwise.agents.wrappers.wrapper import teach
from armwise.core.agent import Agent, Floats, make_choice
from armwise.core.capabilities.optimism import Optimism
from armwise.features.encoding.hashed import HashedRows
from armwise.features.encoding.running_scale import Scaler, Scaling
from armwise.features.encoding.tokens import ONE, ArmTokens, InvalidInput, PackedTokens, RequestTokens
from armwise.native.decisions import decide_optimistic, predicted, register_decisions
from armwise.service.model.arms_alone import ArmsAlone
from armwise.service.model.drawing.encoded import Drawn, EncodedRequest, Lesson

_DRAWN = make_choice((0, None, None, None))  # of a view that has the drawn arm's row alone; optimists need no more


class Optimist:
    """The compiled path of an agent that chooses by optimism alone; the scale of numbers belongs to its model."""

    __slots__ = ("_encoder", "_optimism", "agent")

    def __init__(self, agent: Agent, optimism: Optimism, encoder: HashedRows) -> None:
        self.agent, self._optimism, self._encoder = agent, optimism, encoder

    def decide(self, scaler: Scaler, tokens: RequestTokens, u: float, alone: ArmsAlone | None = None) -> Drawn:
        """Draw an arm with ``u``, by rows without interactions where ``alone`` decides; the view is the arm's row."""
        optimism, encoder, arms = self._optimism, self._encoder, tokens.tail
        ridge, interactions = optimism.ridge, encoder.interactions
        if alone is not None and alone.decides:
            ridge, interactions = alone.ridge, False
        try:
            arm, p, row, scaling = decide_optimistic(
                tokens.context.counted, arms.words, arms.n, scaler.names, scaler.counts, scaler.means, scaler.squares,
                interactions, ONE, ridge.models, encoder.dim, *optimism.width, optimism.epsilon, u,
            )  # fmt: skip
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        scaled = Scaling(scaling)
        if interactions != encoder.interactions:
            row = encoder.rows(tokens.only(arm), scaled)
        return Drawn(arm, p, None, EncodedRequest(row, None, scaled, tokens, True))

    def expected(self, row: Floats) -> float:
        """The expected reward of an arm with this row, the same on every processor."""
        return predicted(self._optimism.ridge.models, row) + float(self._optimism.ridge.centre)

    def register(self, scaler: Scaler, made: list[Lesson]) -> list[float]:
        """Scale the numbers of decisions that follow one another, and learn the reward that is assumed of each; return
        what was expected of each just before."""
        done, expected, ridge = 0, list[float](), self._optimism.ridge
        while done < len(made):
            done, learnt, found = register_decisions(
                made, done, scaler.names, scaler.counts, scaler.means, scaler.squares, ridge.models, self._encoder.dim
            )
            expected += found[: done + 1 - len(expected)].tolist()
            for agent in self._optimism.agents:
                agent._n_learnt += learnt
            if done < len(made):  # a name is new
                context, arms, n, row, taken, *_ = made[done]
                scaler.take(RequestTokens(PackedTokens(context, 0), ArmTokens(n, arms)))
                with contextlib.suppress(ValueError, ArithmeticError):  # it is counted when its outcome is refused, too
                    teach(self.agent, row, _DRAWN, taken)
                done += 1
        return expected

    def learn(self, lesson: Lesson, alone: ArmsAlone | None) -> None:
        """Learn a reward."""
        teach(self.agent, lesson[3], _DRAWN, lesson[4])
        if alone is not None:
            alone.learn([lesson])

    def revise(self, lesson: Lesson, squares: float, alone: ArmsAlone | None) -> None:
        """Add a difference, that of ``lesson``, to a reward that was learnt, and ``squares`` to its square."""
        self._optimism.ridge.revise(lesson[3], 0, lesson[4])
        if alone is not None:
            alone.revise(lesson, squares)
