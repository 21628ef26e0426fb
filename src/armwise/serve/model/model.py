"""The model of one application: its agent, the scale of its numbers and its settings, all a fold of the journal."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from armwise import persist
from armwise.agent import Agent, Choice, Floats, make_choice
from armwise.around import teach
from armwise.budget.accounts import BudgetSpent
from armwise.features.arms import ArmColumns, read_arm
from armwise.features.arms import read_arms as read_arms
from armwise.features.hashed import HashedRows
from armwise.features.scaling import Scaler, Scaling
from armwise.features.tokens import ONE, InvalidInput, Part, Stack, Tail, part, read_json
from armwise.numerics.choice import draw
from armwise.numerics.decisions import begin, begin_all, decide_and_begin, decide_optimistic, predicted
from armwise.serve.journal.events import (
    ARRIVAL,
    CLOSE,
    EARLIEST,
    FORGET,
    LARGEST,
    OFF,
    PROVISIONAL,
    SUM,
    Activation,
    Change,
    Decision,
    Expiry,
    Lessons,
    Reward,
    Row,
    Sequel,
    Settings,
)
from armwise.serve.model.drift import KEEP, MOST_ALARMS, MOST_OPEN, Drift
from armwise.serve.model.inside import copied, optimist, reseed, within
from armwise.serve.model.seen import Drawn, Seen, offered, restricted, stack_of
from armwise.serve.model.underway import Held, Underway

_DRAWN = make_choice((0, None, None, None))  # of a view that has the drawn arm's row alone; optimists need no more


class Model(persist.Saved):
    """An agent that reads JSON, and learns a journal row by row.

    >>> from armwise.serve.journal.events import Creation
    >>> from armwise.serve.model.build import build_model
    >>> model = build_model(Creation(agent={"class": "LinUCB"}))
    >>> arms = read_arms([b'"a"', b'"b"'])
    >>> model.choose(b"{}", arms, u=0.7).p
    array([0.5, 0.5])
    """

    _learnt = ("scaler", "settings", "version", "since", "lessons", "refused", "name", "previous", "roster", "versions",
               "drift", "reward_ends")  # fmt: skip

    def __init__(
        self, agent: Agent, encoder: HashedRows, arms: Sequence[str] = (), rewards: Sequence[float] = ()
    ) -> None:
        self.agent, self.encoder, self.arms, self.rewards = agent, encoder, list(arms), list(rewards)
        self.scaler = Scaler()
        self.settings = Settings()
        self.version = 0  # the last event of this application that was folded in
        self.since = 0  # the event that it began with: of decisions before it nothing was assumed
        self.lessons = 0
        self.refused = 0  # lessons the agent could not take
        self.drift = Drift()
        self.reward_ends = list(self.rewards or (0.0, 1.0))  # what rewards were, or are said to be, between
        self.name = ""  # as a version of the application's model
        self.previous = ""  # the version that led before this one
        self.roster = 0  # the event that last changed the versions
        self.versions: dict[str, Any] = {}  # the others, by name: ``versions.Challenger``
        self._lock = threading.Lock()
        self._twin: Agent | None = None
        self.underway: Underway | None = None  # where several decide at once: what copies of this model share
        self._plain = [False]  # whether the agent is known to have nothing to note; copies share what one finds out
        self._direct = agent.sees in ("features", "shared") and agent.plain_input
        self._optimist = optimist(agent)
        self._counts = any(each.choosing_changes for each in within(agent))
        self._by_itself = not (self.arms or self._counts or agent.n_costs) and (
            agent.sees == "features" and agent.plain_input
        )  # each arm's row stands for itself: where the agent reads one alone, the others need not be made
        if agent.sees not in ("features", "nothing", "shared", "key", "advice"):
            raise InvalidInput(f"agent: the service cannot give what {type(agent).__name__} sees: {agent.sees}")
        if agent.sees == "features" and agent.dim not in (None, encoder.dim):
            raise InvalidInput(f"agent: dim is {agent.dim}, but the features have {encoder.dim}")
        if agent.sees == "shared" and agent.dim not in (None, encoder.dim):
            raise InvalidInput(f"agent: dim is {agent.dim}, but the features have {encoder.dim}")
        if self.rewards and not (len(self.rewards) == 2 and -LARGEST <= self.rewards[0] < self.rewards[1] <= LARGEST):
            raise InvalidInput(f"rewards must be the lowest and the highest reward, got {self.rewards}")
        if len(set(self.arms)) != len(self.arms):
            raise InvalidInput(f"arms: {max(self.arms, key=self.arms.count)!r} is named twice")
        if self.arms and agent.n_arms != len(self.arms):
            raise InvalidInput(f"arms: {len(self.arms)} are named, but the agent has {agent.n_arms}")

    # ------------------------------------------------------------------ deciding

    def choose(self, context: bytes, arms: ArmColumns, u: float, tokens: Part | None = None) -> Drawn:
        """Draw an arm with ``u`` in [0, 1); the answer has the very distribution it was drawn from.

        ``tokens`` are the context's, where they are at hand.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> model = build_model(Creation(agent={"class": "Exp3", "n_arms": 2}, arms=["a", "b"]))
        >>> model.choose(b"{}", read_arms([b'"b"']), u=0.9).p
        array([1.])
        """
        if self._optimist and not self.arms:
            return self._choose_optimistic(tokens or part(context, "c"), arms, u)
        seen = self.see(context, arms, tokens)
        try:
            p, arm, note, held = self._draw(seen.view, seen.positions, u)
        except BudgetSpent:  # nothing is wrong with the request
            raise
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        chosen = p.item(arm)
        if chosen != chosen:  # NaN could be journaled, but never be read again
            raise ArithmeticError(f"{self.agent} gives the arms the probabilities {p}")
        return Drawn(arm, p, note, seen, held)

    def _choose_optimistic(self, context: Part, arms: ArmColumns, u: float) -> Drawn:
        """``choose`` in one compiled call, to the bit; what is seen of it is the row of the arm that was drawn."""
        agent: Any = self.agent
        optimist, epsilon = (agent, -1.0) if self._optimist == 1 else (agent.agent, agent.epsilon)
        scaler, encoder, offered = self.scaler, self.encoder, arms.tail
        lam, alpha, noise, delta = optimist._settings
        try:
            arm, p, row, scaling = decide_optimistic(
                context.counted, offered.words, offered.n, scaler.names, scaler.counts, scaler.means, scaler.squares,
                encoder.interactions, ONE, optimist._model.models, encoder.dim, lam, alpha, noise, delta, epsilon, u,
            )  # fmt: skip
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        return Drawn(arm, p, None, Seen(row, None, Scaling(scaling), Stack(context, offered), True))

    @property
    def hashes_freely(self) -> bool:
        """Whether it decides over hashed pairs of context and arm, quickly enough for more of them: an optimist.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> build_model(Creation()).hashes_freely, build_model(Creation(agent={"class": "SquareCB"})).hashes_freely
        (True, False)
        """
        return bool(self._optimist) and not self.arms

    @property
    def plays(self) -> bool:
        """Whether ``play`` can make its decisions.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> build_model(Creation()).plays, build_model(Creation(agent={"class": "UCB1", "n_arms": 2})).plays
        (True, False)
        """
        return self.hashes_freely and self.learns == PROVISIONAL

    def play(
        self, context: Part, arms: Tail, u: float, reward: float, seq: int, now: int, deadline: int
    ) -> tuple[int, tuple[float, ...], Floats, bytes]:
        """``choose``, ``watch`` and ``begin`` of decision ``seq`` by an optimist that provisionally learns ``reward``,
        as it takes it, in one compiled call, to the bit: arm, probabilities, the arm's row, the scaling, packed.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> model = build_model(Creation())
        >>> model.play(part(b'{"hour":9}', "c"), read_arms([b'"a"', b'"b"']).tail, 0.7, 0.0, 1, 0, 60_000)[:2]
        (1, (0.5, 0.5))
        >>> model.agent.t, model.scaler.means
        (2, array([9.]))
        """
        agent: Any = self.agent
        optimist, epsilon = (agent, -1.0) if self._optimist == 1 else (agent.agent, agent.epsilon)
        scaler, encoder = self.scaler, self.encoder
        lam, alpha, noise, delta = optimist._settings
        try:
            arm, p, row, scaling, expected, begun = decide_and_begin(
                context.counted, arms.words, arms.n, scaler.names, scaler.counts, scaler.means, scaler.squares,
                encoder.interactions, ONE, optimist._model.models, encoder.dim, lam, alpha, noise, delta, epsilon, u,
                reward,
            )  # fmt: skip
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        if self.settings.drift != OFF:
            drift = self.drift
            if len(drift.open) < MOST_OPEN:
                drift.open[seq] = expected, deadline
            else:
                drift.overdue(now)
        if begun == 1:
            optimist._n_learnt += 1
            if optimist is not agent:
                agent._n_learnt += 1
        elif begun == 0:
            self._begin_anew(Stack(context, arms), row, reward)
        return arm, p, row, scaling

    def see(self, context: bytes, arms: ArmColumns, tokens: Part | None = None) -> Seen:
        """What the agent sees of a request now.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> build_model(Creation(features={"dim": 8})).see(b"{}", read_arms([b'"a"', b'"b"'])).view.shape
        (2, 8)
        """
        stack = Stack(tokens or part(context, "c"), arms.tail)
        scaling = self.scaler.scaling(stack)
        if self.agent.sees == "features" and not self.arms:
            return Seen(self.encoder.rows(stack, scaling), None, scaling, stack)
        view, positions = self._view(context, stack, arms.ids, scaling)
        return Seen(view, positions, scaling, stack)

    def estimate(self, context: bytes, arms: ArmColumns) -> tuple[Floats, Floats | None]:
        """What the agent thinks of each arm: estimates, and widths where it has them.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> build_model(Creation()).estimate(b"{}", read_arms([b'"a"', b'"b"']))[0]
        array([0., 0.])
        """
        seen = self.see(context, arms)
        means, widths = self.agent.estimate(seen.view)
        if seen.positions is None:
            return means, widths
        return means[seen.positions], None if widths is None else widths[seen.positions]

    def _draw(self, view: Any, positions: list[int] | None, u: float) -> tuple[Floats, int, Any, Held | None]:
        agent = self.agent
        if self._counts and self.underway is not None:
            return self._draw_counted(self.underway, view, positions, u)
        if self._plain[0]:
            # The encoder's rows are finite and of the right shape, so they need not be checked again.
            known = self._direct and agent.n_arms in (None, len(view))
            p = agent._probabilities(view) if known else agent.probabilities(view)
            if positions is not None:
                p = restricted(p, positions)
            return p, draw(p, u), None, None
        with self._lock:
            # The draw is the agent's own, since it has something to note; a twin makes it, with randomness that is the
            # event's own, so that deciding never changes what has been learnt.
            if self._twin is None:
                self._twin = copied(agent)
            found = self._draw_from(self._twin, view, positions, u)
        if found is None:
            return self._draw(view, positions, u)
        return *found, None

    def _draw_counted(
        self, underway: Underway, view: Any, positions: list[int] | None, u: float
    ) -> tuple[Floats, int, Any, Held]:
        """Draw where choosing counts: every decision that is under way is counted, whichever copy drew it."""
        with underway.lock:
            try:
                twin = underway.twin(self.agent, self.version)
                found = None if self._plain[0] else self._draw_from(twin, view, positions, u)
                if found is None:
                    underway.begin_again()  # a choice without a note was another draw
                    twin = underway.twin(self.agent, self.version)
                    p = restricted(twin.probabilities(view), positions)
                    found = p, draw(p, u), None
            except BaseException:
                underway.begin_again()
                raise
            p, arm, note = found
            choice = make_choice((arm if positions is None else positions[arm], p.item(arm), note, None))
            if note is None:
                twin._chose(view, choice)
            return p, arm, note, underway.hold(view, choice)

    def _draw_from(
        self, twin: Agent, view: Any, positions: list[int] | None, u: float
    ) -> tuple[Floats, int, Any] | None:
        """The twin's own draw; None if it has nothing to note: then it never has, and its distribution says all."""
        agent = self.agent
        reseed(twin, int(u * 2.0**53))
        p = twin.probabilities(view)
        choice = twin.choose(view)
        if choice.note is None:
            self._plain[0] = True
            return None
        p = restricted(p, positions)
        if positions is not None and sorted(positions) != list(range(agent._count_arms(view))):
            raise InvalidInput(f"{type(agent).__name__} needs all its arms in every request, got {len(positions)}")
        arm = choice.arm if positions is None else positions.index(choice.arm)
        if choice.probability is None or abs(p[arm] - choice.probability) > 1e-9:
            raise InvalidInput(f"{type(agent).__name__} drew an arm with {choice.probability}, but says {p[arm]}")
        p[arm] = choice.probability
        return p, arm, choice.note

    def _view(self, context: bytes, stack: Stack, ids: Sequence[str], scaling: Scaling) -> tuple[Any, list[int] | None]:
        """What the agent sees of a request, and which of its arms are offered (None: these, in order)."""
        sees = self.agent.sees
        if sees == "features" and not self.arms:
            return self.encoder.rows(stack, scaling), None
        if self.arms:
            try:
                positions = [self.arms.index(id) for id in ids]
            except ValueError:
                strange = next(id for id in ids if id not in self.arms)
                raise InvalidInput(f"this application has fixed arms, and {strange!r} is not one of them") from None
        else:
            positions = list(range(len(ids)))
            if len(ids) != (self.agent.n_arms or len(ids)):
                raise InvalidInput(f"this application has {self.agent.n_arms} arms, got {len(ids)}")
        if sees == "features":  # with weights of each arm's own, so that its row has a place of its own
            if sorted(positions) != list(range(len(self.arms))):
                raise InvalidInput(f"{type(self.agent).__name__} needs all its arms in every request, got {list(ids)}")
            return self.encoder.rows(stack, scaling)[np.argsort(positions)], positions
        if sees == "nothing":
            return None, positions
        if sees == "shared":
            return self.encoder.shared(stack, scaling), positions
        decoded = read_json(context)
        if sees == "key":
            return msgspec.json.encode(decoded, order="sorted").decode(), positions
        advice = decoded.get("advice") if isinstance(decoded, dict) else None
        if advice is None:
            raise InvalidInput(
                "context must hold the experts' advice: one distribution over the arms for each, as 'advice'"
            )
        try:
            return np.array(advice, np.float64), positions
        except (ValueError, TypeError):
            raise InvalidInput("context.advice must be a table of numbers") from None

    # ------------------------------------------------------------------ folding the journal

    def apply(self, row: Row, decision: Decision | None, at_hand: Seen | None = None) -> None:
        """Fold one event in; ``decision`` is the one that its lesson belongs to, if it has one, and ``at_hand`` what
        was seen of that, where it was kept.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> model = build_model(Creation(agent={"class": "LinUCB"}))
        >>> model.apply(Row(9, 0, "shop", "configure", "", b'{"window": 5.0}'), None)
        >>> model.settings.window
        5.0
        """
        match row.event:
            case Decision() as made:
                self.meet(made)
                self.assume(made)
            case Change() as change:
                self._configure(change)
            case Lessons() as lessons:
                self.study(lessons)
            case Reward() | Activation() | Expiry() as sequel if decision is not None:
                self.settle(sequel, decision, at_hand)

    def settle(self, sequel: Sequel, decision: Decision, at_hand: Seen | None = None) -> None:
        """What became of a decision; one that is provisional was learnt with the default reward when it was shown.

        ``at_hand`` is what the agent saw when it was made, where that was kept.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> model = build_model(Creation())
        >>> asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
        >>> model.settle(Reward(1.0, decision=1, lesson=1.0), asked); model.lessons
        1
        """
        assumed = decision.learn == PROVISIONAL and sequel.decision > self.since
        lesson = sequel.lesson
        drifted = lesson is not None and self._surprised(sequel.decision, self._taken(lesson, decision.rule))
        if isinstance(sequel, Activation) and sequel.lesson is None:
            if sequel.shown and assumed:
                self.assume(decision, shown=True)
        elif sequel.lesson is not None:
            if assumed and not isinstance(sequel, Activation):
                self._revise(decision, sequel.lesson, at_hand, sequel.decision)
            else:
                self.learn(decision, sequel.lesson, at_hand, sequel.cost if isinstance(sequel, Reward) else None)
        if drifted:
            self._forget()

    def watch(self, row: Row, decision: Decision, at_hand: Seen | Stack | None = None) -> Seen | Stack | None:
        """Remember what is expected of a decision, for drift, before anything is learnt of it; what was seen of it.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
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
            at_hand = seen = self.recall(decision, at_hand)
            arm = 0 if seen.drawn else decision.arm if seen.positions is None else seen.positions[decision.arm]
            if self._optimist and not self.arms:  # as ``play`` finds it, and the same on every processor
                agent: Any = self.agent
                models = (agent if self._optimist == 1 else agent.agent)._model.models
                expected = predicted(models, seen.view[arm : arm + 1])
            else:
                expected = self.agent._predicted(seen.view, arm)
        self.drift.watch(row.seq, expected, row.time + decision.window)
        return at_hand

    def assume(self, decision: Decision, shown: bool = False, at_hand: Seen | Stack | None = None) -> None:
        """Learn the default reward of a decision that is provisional, until its outcome is known.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
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
        if at_hand is not None and at_hand.drawn and self._optimist:
            before, after = self._taken(decision.default, decision.rule), self._taken(reward, decision.rule)
            self.amend(at_hand.view, before, self.agent._read_reward(after), seq)
            return
        before, after = self._taken(decision.default, decision.rule), self._taken(reward, decision.rule)
        try:
            view, choice = self._chosen(decision, at_hand)
            self._twin = None
            after = self._faded(seq, before, after)
            if after != before and self._direct and at_hand is not None:  # sound, as in ``teach``
                self.agent._revise(view, choice, before, self.agent._read_reward(after))
            elif after != before:
                self.agent.revise(view, choice, before, after)
        except (ValueError, ArithmeticError):  # the same on every replay, so the fold stays a function
            self.refused += 1
        self.lessons += 1

    def _faded(self, seq: int, before: float, after: float) -> float:
        """The outcome of a decision of which what was assumed has faded since."""
        for alarm, kept in self.drift.alarms:
            after = before + kept * (after - before) if seq <= alarm else after
        return after

    def _surprised(self, seq: int, taken: float) -> bool:
        """Whether the outcome of a decision, as the agent takes it, makes it certain that something has changed."""
        if not self.drift.open:
            return False
        ends = self.reward_ends
        if not ends[0] <= taken <= ends[1]:
            ends[:] = [min(ends[0], taken), max(ends[1], taken)]
        return self.drift.settle(seq, taken, ends[0], ends[1])

    def _forget(self) -> None:
        """After an alarm: let what was learnt before count little, where the agent can and it is wanted."""
        kept = KEEP if self.agent.fades and self.settings.drift == FORGET else 1.0
        if kept < 1.0:
            self.agent._fade(kept)
        self.drift.alarms = [*self.drift.alarms, [self.version, kept]][-MOST_ALARMS:]

    def meet(self, decision: Decision, at_hand: Seen | Stack | None = None) -> None:
        """Take in the numbers of a journaled decision, for their scale; ``at_hand`` is what was seen of it, or its
        tokens.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
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

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> build_model(Creation()).count(Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0))
        """
        if self._counts and not decision.apprentice:
            self.agent._chose(*self._chosen(decision, at_hand))
            self._twin = None

    def begins_with(self, seen: Seen) -> bool:
        """Whether ``begin`` can take a decision in of which this was seen.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> model = build_model(Creation())
        >>> model.begins_with(model.choose(b"{}", read_arms([b'"a"']), u=0.5).seen)
        True
        """
        return seen.drawn and bool(self._optimist)

    def begin(self, seen: Seen, reward: float, rule: str = EARLIEST) -> None:
        """``meet`` and ``assume`` of a decision that an optimist has just drawn.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> model = build_model(Creation())
        >>> model.begin(model.choose(b'{"hour":9}', read_arms([b'"a"']), u=0.5).seen, 0.0)
        >>> model.agent.t, model.scaler.means
        (2, array([9.]))
        """
        assert seen.stack is not None
        agent: Any = self.agent
        optimist = agent if self._optimist == 1 else agent.agent
        scaler, context, arms = self.scaler, seen.stack.context, seen.stack.tail
        taken = self._taken(reward, rule)  # a default, which was checked when it was set
        try:
            if not begin(
                context.counted, arms.words, arms.n, scaler.names, scaler.counts, scaler.means, scaler.squares,
                optimist._model.models, seen.view, taken,
            ):  # fmt: skip
                self._begin_anew(seen.stack, seen.view, taken)
                return
        except (ValueError, ArithmeticError):  # it is counted when its outcome is refused, too
            return
        optimist._n_learnt += 1
        if optimist is not agent:
            agent._n_learnt += 1

    def begin_all(self, made: Sequence[tuple[Row, Decision, Seen]]) -> None:
        """``watch`` and ``begin`` of decisions that follow one another, of each of which an optimist saw its row.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> model = build_model(Creation())
        >>> asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
        >>> seen = model.choose(b"{}", read_arms([b'"a"']), u=0.5).seen
        >>> model.begin_all([(Row(7, 0, "shop", "decision", "e1", b"{}"), asked, seen)])
        >>> model.agent.t, list(model.drift.open)
        (2, [7])
        """
        agent: Any = self.agent
        optimist = agent if self._optimist == 1 else agent.agent
        scaler, drift, overdue = self.scaler, self.drift, None
        watched: list[int] = []
        taken: dict[tuple[float, str], float] = {}  # of defaults, which were checked when they were set
        decisions = []
        for k, (row, decision, seen) in enumerate(made):
            if self.settings.drift != OFF:
                if drift.room:
                    drift.watch(row.seq, None, row.time + decision.window)
                    watched.append(k)
                elif row.time != overdue:
                    drift.overdue(row.time)
                    overdue = row.time
            default = decision.default, decision.rule
            if (reward := taken.get(default)) is None:
                reward = taken[default] = self._taken(*default)
            assert seen.stack is not None
            context, arms = seen.stack.context, seen.stack.tail
            decisions.append((context.counted, arms.words, arms.n, seen.view, reward))
        done, expected = 0, list[float]()
        while done < len(made):
            done, learnt, found = begin_all(
                decisions, done, scaler.names, scaler.counts, scaler.means, scaler.squares, optimist._model.models,
                self.encoder.dim,
            )  # fmt: skip
            expected += found[: done + 1 - len(expected)].tolist()
            optimist._n_learnt += learnt
            if optimist is not agent:
                agent._n_learnt += learnt
            if done < len(made):
                seen = made[done][2]
                assert seen.stack is not None
                self._begin_anew(seen.stack, seen.view, decisions[done][4])
                done += 1
        for k in watched:
            row, decision, _ = made[k]
            if row.seq in drift.open:
                drift.watch(row.seq, expected[k], row.time + decision.window)

    def _begin_anew(self, stack: Stack, row: Floats, taken: float) -> None:
        """``begin`` where a name is new."""
        self.scaler.take(stack)
        with contextlib.suppress(ValueError, ArithmeticError):  # it is counted when its outcome is refused, too
            teach(self.agent, row, _DRAWN, taken)

    def amend(self, row: Floats, before: float, after: float, seq: int) -> None:
        """Put the outcome of a decision that an optimist drew in the place of the default that was assumed, both as the
        agent takes them; ``row`` is that of the arm that was drawn.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> model = build_model(Creation())
        >>> seen = model.choose(b"{}", read_arms([b'"a"']), u=0.5).seen
        >>> model.begin(seen, 0.0); model.amend(seen.view, 0.0, 1.0, seq=1); model.lessons
        1
        """
        if self.drift.alarms:
            after = self._faded(seq, before, after)
        if after != before:
            agent: Any = self.agent
            try:
                (agent if self._optimist == 1 else agent.agent)._model.revise(row, 0, after - before)
            except (ValueError, ArithmeticError):  # the same on every replay, so the fold stays a function
                self.refused += 1
        self.lessons += 1

    def settle_played(self, row: Floats, seq: int, before: float, after: float) -> None:
        """``settle`` of a decision that ``play`` made, the first since it was made; both rewards as the agent takes
        them.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> model = build_model(Creation())
        >>> row = model.play(part(b"{}", "c"), read_arms([b'"a"']).tail, 0.5, 0.0, 1, 0, 60_000)[2]
        >>> model.settle_played(row, 1, 0.0, 1.0); model.lessons
        1
        """
        drifted = self._surprised(seq, after)
        self.amend(row, before, after, seq)
        if drifted:
            self._forget()

    def reread(self, decision: Decision) -> Decision:
        """Take a decision in that another model made: as this one would have seen it, with the scales it has now.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
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

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
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

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
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

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> model = build_model(Creation(agent={"class": "UCB1", "n_arms": 1}))
        >>> model.teach(Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0), -1.0)
        Traceback (most recent call last):
        ...
        ValueError: reward is -1.0; UCB1 expects a number in [0, 1]: rescale the rewards first
        """
        taken = self._taken(reward, decision.rule)
        self._twin = None  # it knows less from here on
        if isinstance(at_hand, Seen) and at_hand.drawn and self._optimist:
            teach(self.agent, at_hand.view, _DRAWN, self.agent._read_reward(taken))
            return
        view, choice = self._chosen(decision, at_hand)
        if (
            self._direct and at_hand is not None and not self.agent.n_costs
        ):  # rows of the encoder, an arm that was just drawn: known to be sound
            teach(self.agent, view, choice, self.agent._read_reward(taken))
        else:
            self.agent.learn(view, choice, taken, cost)

    def _chosen(self, decision: Decision, at_hand: Seen | Stack | None) -> tuple[Any, Choice]:
        """What the agent saw when a journaled decision was made, and its choice."""
        seen = self.recall(decision, at_hand)
        arm = 0 if seen.drawn else decision.arm if seen.positions is None else seen.positions[decision.arm]
        note = decision.note if decision.drawn_by in ("", self.name) else None  # another version's says nothing here
        return seen.view, make_choice((arm, decision.p[decision.arm], note, None))

    def recall(self, decision: Decision, at_hand: Seen | Stack | None = None) -> Seen:
        """What the agent saw when a journaled decision was made, or the part that it learns from: where it
        ``reads_one_row``, that of the arm that was drawn. ``at_hand`` spares reading it again.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
        >>> build_model(Creation(features={"dim": 8})).recall(asked).view.shape
        (1, 8)
        """
        if isinstance(at_hand, Seen):
            return at_hand
        scaling = Scaling.of(decision.scaling)
        if self.reads_one_row:
            context = part(bytes(decision.context), "c") if at_hand is None else at_hand.context
            alone = Stack(context, Tail(1, read_arm(bytes(decision.arms[decision.arm])).words))
            return Seen(self.encoder.rows(alone, scaling), None, scaling, at_hand, True)
        if at_hand is not None and self.agent.sees == "features" and not self.arms:
            return Seen(self.encoder.rows(at_hand, scaling), None, scaling, at_hand)
        stack = stack_of(decision)
        view, positions = self._view(bytes(decision.context), stack, offered(decision).ids, scaling)
        return Seen(view, positions, scaling, stack)

    @property
    def reads_one_row(self) -> bool:
        """Whether all that the agent learns of a decision is in the row of the arm that was drawn.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> build_model(Creation()).reads_one_row
        True
        >>> build_model(Creation(agent={"class": "UCB1", "n_arms": 2})).reads_one_row
        False
        """
        return self._by_itself and self.agent.one_row

    def kept(self, seen: Seen, arm: int) -> Seen | None:
        """Of what was seen of a decision, what is worth its memory until it is learnt: a row; None: nothing.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> model = build_model(Creation(features={"dim": 8}))
        >>> model.kept(model.see(b"{}", read_arms([b'"a"', b'"b"'])), 1).view.shape
        (1, 8)
        """
        if seen.drawn:
            return seen
        if not self.reads_one_row:
            return None
        return Seen(seen.view[arm : arm + 1].copy(), None, seen.scaling, seen.stack, True)

    def _configure(self, change: Change) -> None:
        if change.epsilon is not msgspec.UNSET and hasattr(self.agent, "epsilon"):
            self.agent.epsilon = change.epsilon
        self.settings = self.settings.changed(change)

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"settings": msgspec.to_builtins(self.settings)}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state | {"settings": msgspec.convert(state["settings"], Settings)})
        self._share_scaler()

    def _share_scaler(self) -> None:
        """The scale of the numbers is the application's, whichever version leads."""
        for challenger in self.versions.values():
            challenger.model.scaler = self.scaler

    @property
    def learns(self) -> str:
        """When outcomes are learnt, one of ``events.LEARN``.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> build_model(Creation()).learns, build_model(Creation(agent={"class": "UCB1", "n_arms": 2})).learns
        ('provisional', 'close')
        """
        if self.agent.n_costs:  # a cost is known when its reward comes, and a budget cannot wait for the window
            return self.settings.learn or ARRIVAL
        return self.settings.learn or (PROVISIONAL if self.agent.revises else CLOSE)

    def check_settings(self, settings: Settings) -> None:
        """InvalidInput if these settings are not for this agent.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> build_model(Creation()).check_settings(Settings(learn="close"))
        """
        if settings.learn == PROVISIONAL and not self.agent.revises:
            raise InvalidInput(f"learn: {type(self.agent).__name__} cannot revise what it learnt: use 'close'")

    def check_cost(self, cost: Any) -> float | list[float] | None:
        """A cost that the agent can count, as the journal keeps it; InvalidInput if it counts costs and none came.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> build_model(Creation(agent={"class": "LinUCB"})).check_cost(0.002)
        0.002
        """
        if cost is None and not self.agent.n_costs:
            return None
        try:
            values = self.agent._read_cost(cost)
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        return values[0] if len(values) == 1 else list(values)

    def check_reward(self, value: float) -> float:
        """A reward that the agent can learn, or InvalidInput.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> build_model(Creation(agent={"class": "LinUCB"})).check_reward(-3.0)
        -3.0
        """
        if abs(value) > LARGEST:
            raise InvalidInput(f"reward must be a number of at most {LARGEST:g} in magnitude, got {value}")
        if self.rewards and not self.rewards[0] <= value <= self.rewards[1]:
            raise InvalidInput(f"reward must lie in {self.rewards}, got {value}")
        try:
            self.agent._read_reward(self._taken(value))
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        return float(value)

    def _taken(self, reward: float, rule: str = EARLIEST) -> float:
        """A reward as the agent takes it: mapped onto its range, where it has one and ours is configured.

        A sum of several may lie beyond the ends of the range, and counts as the end then.
        """
        low, high = self.agent.reward_range
        if not self.rewards:
            return min(max(reward, low), high) if rule == SUM else reward
        if low == -np.inf or high == np.inf:
            return reward
        share = (reward - self.rewards[0]) / (self.rewards[1] - self.rewards[0])
        return low + (high - low) * min(max(share, 0.0), 1.0)

    def copy(self) -> Model:
        """An equal model that shares nothing which learning or deciding changes.

        >>> from armwise.serve.journal.events import Creation
        >>> from armwise.serve.model.build import build_model
        >>> build_model(Creation(agent={"class": "LinUCB"})).copy().version
        0
        """
        twin = Model(copied(self.agent), self.encoder, self.arms, self.rewards)
        twin.scaler = copy.deepcopy(self.scaler)
        twin.settings, twin._plain = self.settings, self._plain
        twin.version, twin.since = self.version, self.since
        twin.lessons, twin.refused = self.lessons, self.refused
        twin.drift, twin.reward_ends = self.drift.copy(), list(self.reward_ends)
        twin.name, twin.previous, twin.roster = self.name, self.previous, self.roster
        if self.versions:
            twin.versions = {name: challenger.copy() for name, challenger in self.versions.items()}
            twin._share_scaler()
        return twin
