"""An agent that reads JSON and learns what became of its decisions, one by one, each as it was journaled."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from armwise.agents.wrappers.around import teach
from armwise.core.agent import Agent, Floats
from armwise.features.encoding.arms import read_arms as read_arms
from armwise.features.encoding.hashed import HashedRows
from armwise.features.encoding.tokens import Stack
from armwise.service.journal.events import FORGET, OFF, PROVISIONAL, Activation, Decision, Lessons, Reward, Row, Sequel
from armwise.service.model.chooser import Chooser
from armwise.service.model.drift import KEEP, Drift
from armwise.service.model.seen import Seen, stack_of


class Pupil(Chooser):
    """The half of a ``Model`` that learns.

    >>> import armwise
    >>> pupil = Pupil(armwise.LinUCB(dim=8), HashedRows(8))
    >>> pupil.learn(Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0), 1.0); pupil.lessons
    1
    """

    def __init__(
        self, agent: Agent, encoder: HashedRows, arms: Sequence[str] = (), rewards: Sequence[float] = ()
    ) -> None:
        super().__init__(agent, encoder, arms, rewards)
        self.since = 0  # the event that it began with: of decisions before it nothing was assumed
        self.lessons = 0
        self.refused = 0  # lessons the agent could not take
        self.drift = Drift()
        self.reward_ends = list(self.rewards or (0.0, 1.0))  # what rewards were, or are said to be, between
        self.name = ""  # as a version of the application's model

    def settle(self, sequel: Sequel, decision: Decision, at_hand: Seen | None = None) -> None:
        """What became of a decision; one that is provisional was learnt with the default reward when it was shown.

        ``at_hand`` is what the agent saw when it was made, where that was kept.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation())
        >>> asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
        >>> model.settle(Reward(1.0, decision=1, lesson=1.0), asked); model.lessons
        1
        """
        assumed = decision.learn == PROVISIONAL and sequel.decision > self.since
        lesson = sequel.lesson
        drifted = lesson is not None and self.drift.surprised(
            sequel.decision, self.taken(lesson, decision.rule), self.reward_ends
        )
        if isinstance(sequel, Activation) and sequel.lesson is None:
            if sequel.shown and assumed:
                self.assume(decision, shown=True)
        elif sequel.lesson is not None:
            if assumed and not isinstance(sequel, Activation):
                self._revise(decision, sequel.lesson, at_hand, sequel.decision)
            else:
                self.learn(decision, sequel.lesson, at_hand, sequel.cost if isinstance(sequel, Reward) else None)
        if drifted:
            self.forget()

    def watch(self, row: Row, decision: Decision, at_hand: Seen | Stack | None = None) -> Seen | Stack | None:
        """Remember what is expected of a decision, for drift, before anything is learnt of it; what was seen of it.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation())
        >>> asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
        >>> _ = model.watch(Row(7, 0, "shop", "decision", "e1", b"{}"), asked); list(model.drift.open)
        [7]
        """
        if self.settings.drift == OFF or decision.deferred or decision.apprentice:
            return at_hand
        if not self.drift.room:
            self.drift.overdue(row.time)
            return at_hand
        expected: float | None = None
        with contextlib.suppress(ValueError, ArithmeticError):  # arms that it cannot have: it will be refused
            at_hand = seen = self.sight.recall(decision, at_hand)
            arm = seen.place(decision.arm)
            if self.optimist is not None:
                expected = self.optimist.expected(seen.view[arm : arm + 1])
            else:
                expected = self.agent._predicted(seen.view, arm)
        self.drift.watch(row.seq, expected, row.time + decision.window)
        return at_hand

    def assume(self, decision: Decision, shown: bool = False, at_hand: Seen | Stack | None = None) -> None:
        """Learn the default reward of a decision that is provisional, until its outcome is known.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation())
        >>> model.assume(Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0))
        >>> model.agent.t, model.lessons
        (2, 0)
        """
        if decision.learn == PROVISIONAL and (shown or not decision.deferred):
            try:  # noqa: SIM105  (suppress costs a microsecond of a decision's forty)
                self.teach(decision, decision.default, at_hand)
            except (ValueError, ArithmeticError):  # it is counted when its outcome is refused, too
                pass

    def _revise(self, decision: Decision, reward: float, at_hand: Seen | None, seq: int) -> None:
        """Put the outcome of a decision in the place of the default that was assumed."""
        before, after = self.taken(decision.default, decision.rule), self.taken(reward, decision.rule)
        if at_hand is not None and at_hand.drawn and self.optimist is not None:
            self.amend(at_hand.view, before, self.agent._read_reward(after), seq)
            return
        try:
            view, choice = self.sight.recall_choice(decision, at_hand, self.name)
            self.draws.begin_again()
            after = self.drift.faded(seq, before, after)
            if after != before and self.draws.direct and at_hand is not None:  # sound, as in ``teach``
                self.agent._revise(view, choice, before, self.agent._read_reward(after))
            elif after != before:
                self.agent.revise(view, choice, before, after)
        except (ValueError, ArithmeticError):  # the same on every replay, so the fold stays a function
            self.refused += 1
        self.lessons += 1

    def amend(self, row: Floats, before: float, after: float, seq: int) -> None:
        """Put the outcome of a decision that an optimist drew in the place of the default that was assumed, both as the
        agent takes them; ``row`` is that of the arm that was drawn.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation())
        >>> seen = model.choose(b"{}", read_arms([b'"a"']), u=0.5).seen
        >>> model.begin(seen, 0.0); model.amend(seen.view, 0.0, 1.0, seq=1); model.lessons
        1
        """
        if self.drift.alarms:
            after = self.drift.faded(seq, before, after)
        if after != before:
            assert self.optimist is not None
            try:
                self.optimist.revise(row, after - before)
            except (ValueError, ArithmeticError):  # the same on every replay, so the fold stays a function
                self.refused += 1
        self.lessons += 1

    def forget(self) -> None:
        """After an alarm: let what was learnt before count little, where the agent can and it is wanted.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation()); model.forget(); len(model.drift.alarms)
        1
        """
        kept = KEEP if self.agent.fades and self.settings.drift == FORGET else 1.0
        if kept < 1.0:
            self.agent._fade(kept)
        self.drift.sound(self.version, kept)

    def meet(self, decision: Decision, at_hand: Seen | Stack | None = None) -> None:
        """Take in the numbers of a journaled decision, for their scale; ``at_hand`` is what was seen of it, or its
        tokens.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation(agent={"class": "LinUCB"}))
        >>> model.meet(Decision(msgspec.Raw(b'{"hour":9}'), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0))
        >>> model.scaler.means
        array([9.])
        """
        stack = at_hand.stack if isinstance(at_hand, Seen) else at_hand
        self.count(decision, at_hand)
        self.scaler.take(stack or stack_of(decision))

    def count(self, decision: Decision, at_hand: Seen | Stack | None = None) -> None:
        """Let an agent that counts its choices, not its rewards, take note of a journaled decision.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> build_model(Creation()).count(Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0))
        """
        if self.draws.counts and not decision.apprentice:
            self.agent._chose(*self.sight.recall_choice(decision, at_hand, self.name))
            self.draws.begin_again()

    def reread(self, decision: Decision) -> Decision:
        """Take a decision in that another model made: as this one would have seen it, with the scales it has now.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> made = Decision(msgspec.Raw(b'{"hour":9}'), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0, note=7)
        >>> build_model(Creation()).reread(made).note is None
        True
        """
        scaling = self.scaler.scaling(stack_of(decision))
        seen = msgspec.structs.replace(decision, note=None, scaling=scaling.journal)
        self.meet(seen)
        return seen

    def study(self, lessons: Lessons) -> None:
        """Learn what others decided, each decision with the probability that it was drawn with.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
        >>> model = build_model(Creation())
        >>> model.study(Lessons([asked], [1.0])); model.lessons
        1
        """
        for decision, reward in zip(lessons.decisions, lessons.rewards):
            try:
                seen = self.reread(decision)
            except (ValueError, ArithmeticError):
                self.refused += 1
                continue
            self.learn(seen, reward)

    def learn(self, decision: Decision, reward: float, at_hand: Seen | None = None, cost: Any = None) -> None:
        """Learn the reward of a journaled decision, from exactly what was seen when it was made.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation(agent={"class": "LinUCB"}))
        >>> model.learn(Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0), 1.0)
        >>> model.lessons
        1
        """
        try:
            self.teach(decision, reward, at_hand, cost)
        except (ValueError, ArithmeticError):  # the same on every replay, so the fold stays a function
            self.refused += 1
        self.lessons += 1

    def teach(self, decision: Decision, reward: float, at_hand: Seen | Stack | None = None, cost: Any = None) -> None:
        """``learn`` for whoever wants to know why a lesson cannot be learnt; ValueError or ArithmeticError says it.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation(agent={"class": "UCB1", "n_arms": 1}))
        >>> model.teach(Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0), -1.0)
        Traceback (most recent call last):
        ...
        ValueError: reward is -1.0; UCB1 expects a number in [0, 1]: rescale the rewards first
        """
        taken = self.taken(reward, decision.rule)
        self.draws.begin_again()
        if isinstance(at_hand, Seen) and at_hand.drawn and self.optimist is not None:
            self.optimist.learn(at_hand.view, self.agent._read_reward(taken))
            return
        view, choice = self.sight.recall_choice(decision, at_hand, self.name)
        if (
            self.draws.direct and at_hand is not None and not self.agent.n_costs
        ):  # rows of the encoder, an arm that was just drawn: known to be sound
            teach(self.agent, view, choice, self.agent._read_reward(taken))
        else:
            self.agent.learn(view, choice, taken, cost)
