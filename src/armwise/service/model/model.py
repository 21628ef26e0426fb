"""The model of one application: its agent, the scale of its numbers and its settings, all a fold of the journal.

Four verbs, each over a batch: ``decide`` draws arms and changes nothing, ``register_decisions``, ``apply_outcomes`` and
``warm_start`` fold in what was journaled.
"""

from __future__ import annotations

import contextlib
import copy
import heapq
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from armwise.agents.budget.accounts import BudgetSpent
from armwise.agents.wrappers.wrapper import teach
from armwise.core import saving
from armwise.core.agent import Agent, Floats
from armwise.core.capabilities.counting import record_choice
from armwise.core.capabilities.optimism import optimism_of
from armwise.core.capabilities.restarting import restarts
from armwise.core.capabilities.revising import Revising, can_fade, predicted
from armwise.core.outcomes import read_cost, read_reward
from armwise.features.encoding.arms import ArmColumns
from armwise.features.encoding.hashed import HashedRows
from armwise.features.encoding.running_scale import Scaler
from armwise.features.encoding.tokens import InvalidInput, PackedTokens, RequestTokens, part
from armwise.native.choice import draw
from armwise.native.tokens import arm_hash
from armwise.service.journal.events import (
    ARRIVAL,
    CLOSE,
    EARLIEST,
    FORGET,
    MAX_MAGNITUDE,
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
    decided,
)
from armwise.service.model.arms_alone import ArmsAlone
from armwise.service.model.drawing.agent_view import AgentView
from armwise.service.model.drawing.draws import Draws
from armwise.service.model.drawing.encoded import AtHand, Drawn, EncodedRequest, Lesson, lesson_of, stack_of
from armwise.service.model.drawing.in_flight import InFlight
from armwise.service.model.drawing.optimist import Optimist
from armwise.service.model.drawing.ramp import DrawCounts, beyond_ramp, ramped
from armwise.service.model.drift import KEEP, DriftDetector
from armwise.service.model.inside import copied


class DrawRequest(msgspec.Struct, frozen=True, gc=False):
    """A context and arms to draw from with ``u`` in [0, 1); ``tokens`` are the context's, where they are at hand."""

    context: bytes
    arms: ArmColumns
    u: float
    tokens: PackedTokens | None = None


class DecisionOutcome(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a decision; ``at_hand`` is the agent's view when it was made, where that was kept.

    ``deadline`` is when its window closes (None: no version of the model waits for that)."""

    sequel: Sequel
    decision: Decision
    at_hand: AtHand = None
    deadline: int | None = None


class Model(saving.Saved):
    """An agent that reads JSON, and learns a journal."""

    _learnt = ("scaler", "settings", "version", "since", "assumed", "lessons", "refused", "name", "previous",
               "versions_changed_at", "versions", "drift", "reward_ends", "waiting", "counts", "alone")  # fmt: skip

    def __init__(
        self, agent: Agent, encoder: HashedRows, arms: Sequence[str] = (), rewards: Sequence[float] = ()
    ) -> None:
        self.agent, self.encoder, self.arms, self.rewards = agent, encoder, list(arms), list(rewards)
        if self.rewards and not (
            len(self.rewards) == 2 and -MAX_MAGNITUDE <= self.rewards[0] < self.rewards[1] <= MAX_MAGNITUDE
        ):
            raise InvalidInput(f"rewards must be the lowest and the highest reward, got {self.rewards}")
        self.agent_view = AgentView(agent, encoder, self.arms)
        self.draws = Draws(agent)
        self._revising = agent if isinstance(agent, Revising) else None
        optimism = optimism_of(agent)
        self.optimist = None if optimism is None else Optimist(agent, optimism, encoder)
        self.alone = ArmsAlone.beside(optimism, encoder)
        self.scaler = Scaler()
        self.settings = Settings()
        self.version = 0  # the last event of this application that was folded in
        self.since = 0  # the event that it began with
        self.assumed = 0  # the event after which it assumes the default of provisional decisions: that, if untrained
        self.lessons = 0
        self.refused = 0  # lessons the agent could not take
        self.drift = DriftDetector()
        self.counts = DrawCounts()
        self.reward_ends = list(self.rewards or (0.0, 1.0))  # what rewards were, or are said to be, between
        self.name = ""  # as a version of the application's model
        self.previous = ""  # the version that led before this one
        self.versions_changed_at = 0  # the event that last changed the versions
        self.versions: dict[str, Any] = {}  # the others, by name: ``versions.Challenger``
        # Outcomes to learn when their windows close, a heap: the deadline, the decision's event and the reward.
        self.waiting: list[tuple[int, int, float]] = []
        self.in_flight: InFlight | None = None  # where several decide at once: what copies of this model share

    # ------------------------------------------------------------------ decide: nothing changes what was learnt

    def decide(self, requests: Sequence[DrawRequest]) -> list[Drawn]:
        """Draw an arm for each request; an answer has the very distribution that its arm was drawn from."""
        found, ramps = [], self.counts.known and self.settings.new_arms < 1.0 and self.agent_view.any_arms
        for request in requests:
            drawn = self._draw(request)
            if ramps and drawn.note is None and drawn.held is None:
                drawn = self._ramped(drawn, request)
            found.append(drawn)
        return found

    def _ramped(self, drawn: Drawn, request: DrawRequest) -> Drawn:
        """The draw, or another one where new arms would get more than their share."""
        new, share = self.counts.new(request.arms.tail), self.settings.new_arms
        if new is None or not beyond_ramp(drawn.p.tolist(), new, share):
            return drawn
        among = request.arms.picked([k for k, is_new in enumerate(new) if not is_new])
        known = self._draw(msgspec.structs.replace(request, arms=among)).p
        p = ramped(drawn.p, known, np.array(new), share)
        arm, seen = draw(p, request.u), self.see(request.context, request.arms, request.tokens)
        return Drawn(arm, p, None, self.agent_view.kept(seen, arm) or seen)

    def _draw(self, request: DrawRequest) -> Drawn:
        """The arm that the agent draws by itself."""
        if self.optimist is not None:
            stack = RequestTokens(request.tokens or part(request.context, "c"), request.arms.tail)
            return self.optimist.decide(self.scaler, stack, request.u, self.alone)
        seen = self.see(request.context, request.arms, request.tokens)
        try:
            p, arm, note, held = self.draws.draw(seen.view, seen.arm_indices, request.u, self.in_flight, self.version)
        except BudgetSpent:  # nothing is wrong with the request
            raise
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        chosen = p.item(arm)
        if chosen != chosen:  # NaN could be journaled, but never be read again
            raise ArithmeticError(f"{self.agent} gives the arms the probabilities {p}")
        return Drawn(arm, p, note, seen, held)

    def see(self, context: bytes, arms: ArmColumns, tokens: PackedTokens | None = None) -> EncodedRequest:
        """The agent's view of a request now."""
        stack = RequestTokens(tokens or part(context, "c"), arms.tail)
        return self.agent_view.see(context, stack, arms.ids, self.scaler.scaling(stack))

    def estimate(self, context: bytes, arms: ArmColumns) -> tuple[Floats, Floats | None]:
        """Each arm's estimate, and its width where the agent has one."""
        if self.alone is not None and self.alone.decides:
            stack = RequestTokens(part(context, "c"), arms.tail)
            return self.alone.ridge.estimate(self.alone.row(stack, self.scaler.scaling(stack)))
        seen = self.see(context, arms)
        means, widths = self.agent.estimate(seen.view)
        if seen.arm_indices is None:
            return means, widths
        return means[seen.arm_indices], None if widths is None else widths[seen.arm_indices]

    def count_foreign_decisions(self, rows: Sequence[Row]) -> None:
        """Count decisions that other processes journaled and this model does not know yet, while they are in flight."""
        for row in rows:
            decision = decided(row)
            if self.in_flight is not None and not decision.apprentice:
                if self.draws.counts:
                    self.in_flight.count_foreign(row.seq, *self.agent_view.recall_choice(decision, None, self.name))
                for challenger in self.versions.values():
                    challenger.count_foreign_decision(row.seq, decision)

    # ------------------------------------------------------------------ register decisions

    def register_decisions(self, made: Sequence[Row]) -> None:
        """Take in decisions in the order of the journal: the scale of their numbers, what is expected of them and, of
        provisional ones, the default reward until the outcome is known. A row's ``seen`` is then what to keep of it
        until its reward comes."""
        together: list[tuple[Row, Decision, EncodedRequest]] = []
        began = self._began
        for row in made:
            decision, at_hand = decided(row), row.seen
            if decision.version < began and isinstance(at_hand, EncodedRequest):
                at_hand = at_hand.stack
            if (seen := self._seen_by_optimist(decision, at_hand)) is not None:
                together.append((row, decision, seen))
                continue
            if together:
                self._register_together(together)
                together = []
            at_hand = self.watch_for_drift(row, decision, at_hand)
            self.observe_decision(decision, at_hand)
            self.learn_default(decision, at_hand=at_hand)
            row.seen = at_hand.kept(decision.arm) if isinstance(at_hand, EncodedRequest) else None
        if together:
            self._register_together(together)

    @property
    def _began(self) -> int:
        """The event since which the model and its versions are these: a decision of before saw others."""
        return max(self.since, self.versions_changed_at)

    def _seen_by_optimist(self, decision: Decision, at_hand: AtHand) -> EncodedRequest | None:
        """The row of a provisional decision that a compiled call can register with its neighbours; else None."""
        if self.optimist is None or decision.learn != PROVISIONAL or decision.deferred or decision.apprentice:
            return None
        if not isinstance(at_hand, EncodedRequest):
            try:
                at_hand = self.agent_view.recall(decision, at_hand or stack_of(decision))
            except (ValueError, ArithmeticError):  # what becomes of it is said where it is registered by itself
                return None
        return at_hand if at_hand.chosen_row_only and at_hand.stack is not None else None

    def _register_together(self, made: Sequence[tuple[Row, Decision, EncodedRequest]]) -> None:
        assert self.optimist is not None
        taken: dict[tuple[float, str], float] = {}  # of defaults, which were checked when they were set
        lessons: list[Lesson] = []
        for row, decision, seen in made:
            default = decision.default, decision.rule
            if (reward := taken.get(default)) is None:
                reward = taken[default] = self.to_agent_range(*default)
            lesson = lesson_of(seen, decision, reward)
            self.counts.add(arm_hash(lesson[1], decision.arm), 1)
            lessons.append(lesson)
            row.seen = seen.kept(decision.arm)
        expected = self.optimist.register(self.scaler, lessons)
        if self.alone is not None:
            self.alone.learn(lessons)
        if self.settings.drift != OFF:
            for (row, decision, _), hoped in zip(made, expected):
                self.drift.watch_if_room(row.seq, hoped, row.time + decision.window, row.time)

    def watch_for_drift(self, row: Row, decision: Decision, at_hand: AtHand = None) -> AtHand:
        """Record the expected reward of a decision before anything is learnt of it; return its view."""
        if self.settings.drift == OFF or decision.deferred or decision.apprentice:
            return at_hand
        if not self.drift.room:
            self.drift.overdue(row.time)
            return at_hand
        expected: float | None = None
        with contextlib.suppress(ValueError, ArithmeticError):  # arms that it cannot have: it will be refused
            at_hand = seen = self.agent_view.recall(decision, at_hand)
            arm = seen.place(decision.arm)
            if self.optimist is not None:
                expected = self.optimist.expected(seen.view[arm : arm + 1])
            else:
                expected = predicted(self.agent, seen.view, arm)
        self.drift.watch(row.seq, expected, row.time + decision.window)
        return at_hand

    def count_choice(self, decision: Decision, at_hand: AtHand = None) -> None:
        """Count a journaled decision in an agent that counts its choices."""
        if self.draws.counts and not decision.apprentice:
            record_choice(self.agent, *self.agent_view.recall_choice(decision, at_hand, self.name))
            self.draws.begin_again()

    def observe_decision(self, decision: Decision, at_hand: AtHand = None) -> None:
        """Take in a journaled decision and the scale of its numbers, but not its outcome."""
        self.count_choice(decision, at_hand)
        stack = at_hand.stack if isinstance(at_hand, EncodedRequest) else at_hand
        stack = stack or stack_of(decision)
        self.scaler.take(stack)
        self.counts.add(arm_hash(stack.tail.words, decision.arm), 1)

    def learn_default(self, decision: Decision, shown: bool = False, at_hand: AtHand = None) -> None:
        """Learn the default reward of a decision, provisionally, until its outcome is known."""
        if decision.learn == PROVISIONAL and (shown or not decision.deferred) and self.revises:
            with contextlib.suppress(ValueError, ArithmeticError):  # it is counted when its outcome is refused, too
                self.learn_reward(decision, decision.default, at_hand)

    # ------------------------------------------------------------------ apply outcomes

    def apply_outcomes(self, outcomes: Sequence[DecisionOutcome]) -> None:
        """Learn the outcomes of decisions; provisional rewards are corrected."""
        for outcome in outcomes:
            sequel, decision, at_hand, deadline = outcome.sequel, outcome.decision, outcome.at_hand, outcome.deadline
            seq, lesson = sequel.decision, sequel.lesson
            if seq <= self.since and self._began_within(seq, decision):
                continue
            if at_hand is not None and decision.version < self._began:
                at_hand = None
            provisional = decision.learn == PROVISIONAL
            revises = provisional and self.revises
            assumed = revises and seq > self.assumed
            if lesson is None:
                if isinstance(sequel, Activation) and sequel.shown and assumed:
                    self.learn_default(decision, shown=True)
                continue
            if deadline is not None and provisional and not revises and self._waits_for_window(sequel):
                heapq.heappush(self.waiting, (deadline, seq, lesson))
                continue
            drifted = self.drift.settle(seq, self.to_agent_range(lesson, decision.rule), self.reward_ends)
            if assumed and not isinstance(sequel, Activation):
                self.correct_default(decision, lesson, at_hand, seq)
            else:
                self.learn(decision, lesson, at_hand, sequel.cost if isinstance(sequel, Reward) else None)
            if drifted:
                self.forget()

    def _waits_for_window(self, sequel: Sequel) -> bool:
        """Whether an outcome that another version corrects is learnt when the window closes, as the lack of others is:
        a cost cannot wait, and after a final reward nothing is open."""
        return not (self.agent.n_costs or isinstance(sequel, Expiry) or (isinstance(sequel, Reward) and sequel.final))

    def take_waiting(self, now: float, most: int) -> list[tuple[int, int, float]]:
        """Remove and return the outcomes whose windows closed before ``now``, in the order of their deadlines."""
        found: list[tuple[int, int, float]] = []
        while self.waiting and self.waiting[0][0] < now and len(found) < most:
            found.append(heapq.heappop(self.waiting))
        return found

    def waits_for(self) -> set[int]:
        """Decisions with outcomes that some version learns when their windows close: a replay must find them."""
        every = [self, *(challenger.model for challenger in self.versions.values())]
        return {seq for model in every for _, seq, _ in model.waiting}

    def learn_waiting(self, seq: int, decision: Decision, lesson: float) -> None:
        """Learn an outcome that waited for its window."""
        drifted = self.drift.settle(seq, self.to_agent_range(lesson, decision.rule), self.reward_ends)
        self.learn(decision, lesson)
        if drifted:
            self.forget()

    def waits(self, decision: Decision) -> bool:
        """Return whether the outcome of a decision is journaled when it is to be learnt, be it a click or its lack."""
        return decision.learn == CLOSE or self.learns == ARRIVAL

    def corrects(self, decision: Decision) -> bool:
        """Return whether the default reward of a decision is learnt until its outcome is known."""
        return decision.learn == PROVISIONAL and self.learns == PROVISIONAL

    def _began_within(self, seq: int, decision: Decision) -> bool:
        """Whether no outcome of a decision that was made before this model began is a lesson any more: a click would be
        learnt before the lack of others."""
        return not self.waits(decision) and (seq <= self.assumed or not self.corrects(decision))

    def learn_past(
        self, decision: Decision, seq: int, shown: bool, lesson: float | None, is_open: bool, cost: Any = None
    ) -> None:
        """Learn a decision that was made before this model began: its outcome, or, where it is open and what is
        learnt can be corrected, what is known so far."""
        if self.corrects(decision) and (is_open or lesson is None):
            if shown:
                self.learn_default(decision, shown=True)
            if lesson is not None:
                self.correct_default(decision, lesson, None, seq)
        elif lesson is not None:
            self.learn(decision, lesson, cost=cost)

    def correct_default(self, decision: Decision, reward: float, at_hand: AtHand, seq: int) -> None:
        """Replace the default reward of a decision by its outcome."""
        before = self.to_agent_range(decision.default, decision.rule)
        try:
            given = read_reward(self.agent, self.to_agent_range(reward, decision.rule))
            after = self.drift.faded(seq, before, given)
            if self.optimist is not None:
                if after != before:
                    lesson = lesson_of(self.agent_view.recall(decision, at_hand), decision, after - before)
                    self.optimist.revise(lesson, (after - before) * (before + given), self.alone)
            else:
                view, choice = self.agent_view.recall_choice(decision, at_hand, self.name)
                self.draws.begin_again()
                if self._revising is None or not self.revises:
                    raise ValueError(f"{type(self.agent).__name__} cannot revise a reward")
                if after != before and self.draws.direct and at_hand is not None:  # sound, as in ``learn_reward``
                    self._revising._revise(view, choice, before, after)
                elif after != before:
                    self._revising.revise(view, choice, before, after)
        except (ValueError, ArithmeticError):  # the same on every replay, so the fold stays a function
            self.refused += 1
        self.lessons += 1

    def learn(self, decision: Decision, reward: float, at_hand: AtHand = None, cost: Any = None) -> None:
        """Learn the reward of a journaled decision from the view in which it was made."""
        try:
            self.learn_reward(decision, reward, at_hand, cost)
        except (ValueError, ArithmeticError):  # the same on every replay, so the fold stays a function
            self.refused += 1
        self.lessons += 1

    def learn_reward(self, decision: Decision, reward: float, at_hand: AtHand = None, cost: Any = None) -> None:
        """As ``learn``, but raise ValueError or ArithmeticError if the reward cannot be learnt."""
        taken = read_reward(self.agent, self.to_agent_range(reward, decision.rule))
        if self.optimist is not None:
            self.optimist.learn(lesson_of(self.agent_view.recall(decision, at_hand), decision, taken), self.alone)
            return
        self.draws.begin_again()
        view, choice = self.agent_view.recall_choice(decision, at_hand, self.name)
        if (
            self.draws.direct and at_hand is not None and not self.agent.n_costs
        ):  # rows of the encoder, an arm that was just drawn: known to be sound
            teach(self.agent, view, choice, taken)
        else:
            self.agent.learn(view, choice, taken, cost)

    def forget(self) -> None:
        """After an alarm, discount what was learnt before, if the agent can and the settings ask for it."""
        kept = 1.0
        if can_fade(self.agent) and self.settings.drift == FORGET:
            kept = KEEP
            self.agent._fade(kept)
            if self.alone is not None:
                self.alone.fade(kept)
        self.drift.sound(self.version, kept)

    # ------------------------------------------------------------------ warm start

    def warm_start(self, lessons: Lessons) -> None:
        """Learn logged decisions of other systems, each with its logged probability."""
        for decision, reward in zip(lessons.decisions, lessons.rewards):
            try:
                seen = self.reencode(decision)
            except (ValueError, ArithmeticError):
                self.refused += 1
                continue
            self.learn(seen, reward)

    def reencode(self, decision: Decision) -> Decision:
        """Encode a decision of another model as this one would have seen it, with its present scales."""
        scaling = self.scaler.scaling(stack_of(decision))
        seen = msgspec.structs.replace(decision, note=None, scaling=scaling.packed)
        self.observe_decision(seen)
        return seen

    # ------------------------------------------------------------------ settings and rewards

    def configure(self, change: Change) -> None:
        """Apply changed settings."""
        if change.epsilon is not msgspec.UNSET and hasattr(self.agent, "epsilon"):
            self.agent.epsilon = change.epsilon
        self.settings = self.settings.changed(change)
        for challenger in self.versions.values():
            kept = challenger.model.settings
            challenger.model.settings = msgspec.structs.replace(kept, new_arms=self.settings.new_arms)

    @property
    def revises(self) -> bool:
        """Whether the agent can revise what it learnt, as it is now."""
        return self._revising is not None and self._revising.revises

    @property
    def learns(self) -> str:
        """When outcomes are learnt, one of ``events.LEARN``."""
        if self.settings.learn:
            return self.settings.learn
        if self.agent.n_costs:  # a cost is known when its reward comes, and a budget cannot wait for the window
            return ARRIVAL
        return PROVISIONAL if self.revises else CLOSE

    def check_settings(self, settings: Settings) -> None:
        """Raise InvalidInput if the settings do not fit this agent."""
        if self.agent.n_costs and settings.learn not in ("", ARRIVAL):
            raise InvalidInput(
                f"learn: {type(self.agent).__name__} counts what each decision cost: use 'arrival', and report every "
                "outcome with its cost, zeros too"
            )
        if restarts(self.agent) and settings.learn != ARRIVAL:
            raise InvalidInput(
                f"learn: {type(self.agent).__name__} begins anew at times, and learns nothing from decisions whose "
                "window is open then: use 'arrival', and report every outcome, zeros too, or an agent that needs no "
                "horizon"
            )
        if settings.learn == PROVISIONAL and not self.revises:
            raise InvalidInput(f"learn: {type(self.agent).__name__} cannot revise what it learnt: use 'close'")

    def check_cost(self, cost: Any) -> float | list[float] | None:
        """Check a cost and return it as the journal stores it; raise InvalidInput if a cost is missing."""
        if cost is None and not self.agent.n_costs:
            return None
        numbers = cost if isinstance(cost, list) else [cost]
        if any(isinstance(each, bool) or not isinstance(each, int | float | None) for each in numbers):
            raise InvalidInput(
                f"cost must be a number, or a list with one number per resource, got {type(cost).__name__} {cost!r:.60}"
            )
        try:
            values = read_cost(self.agent, cost)
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        return values[0] if len(values) == 1 else list(values)

    def check_reward(self, value: float) -> float:
        """Check that the agent can learn a reward; raise InvalidInput otherwise."""
        if abs(value) > MAX_MAGNITUDE:
            raise InvalidInput(f"reward must be a number of at most {MAX_MAGNITUDE:g} in magnitude, got {value}")
        if self.rewards and not self.rewards[0] <= value <= self.rewards[1]:
            raise InvalidInput(f"reward must lie in {self.rewards}, got {value}")
        try:
            read_reward(self.agent, self.to_agent_range(value))
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        return float(value)

    def to_agent_range(self, reward: float, rule: str = EARLIEST) -> float:
        """A reward as the agent takes it: mapped onto its range, where it has one and ours is configured.

        A sum of several may lie beyond the ends of the range, and counts as the end then.
        """
        if not self.rewards and rule != SUM:
            return reward
        low, high = self.agent.reward_range
        if not self.rewards:
            return min(max(reward, low), high)
        if low == -np.inf or high == np.inf:
            return reward
        share = (reward - self.rewards[0]) / (self.rewards[1] - self.rewards[0])
        return low + (high - low) * min(max(share, 0.0), 1.0)

    # ------------------------------------------------------------------ copies and files

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"settings": msgspec.to_builtins(self.settings)}

    def _restore(self, state: dict[str, Any]) -> None:
        state = {
            "assumed": state["since"],
            "counts": DrawCounts(),
            "alone": None,
        } | state  # older snapshots do not have them
        settings = msgspec.convert(state["settings"], Settings)
        waiting = [tuple(each) for each in state.get("waiting", ())]  # older snapshots do not have it
        super()._restore(state | {"settings": settings, "waiting": waiting})
        if self.alone is not None and not (isinstance(self.alone, ArmsAlone) and self.optimist is not None):
            raise ValueError(f"alone must be an ArmsAlone, or None, got {self.alone!r:.60}")
        self._share_observed()

    def _share_observed(self) -> None:
        """Share one scale of numbers, and one count of draws, between all versions."""
        for challenger in self.versions.values():
            challenger.model.scaler, challenger.model.counts = self.scaler, self.counts

    def copy(self) -> Model:
        """A copy that shares nothing which learning or deciding changes."""
        twin = copy.copy(self)
        twin.agent = copied(self.agent)
        twin.agent_view, twin.draws = self.agent_view.of_copy(twin.agent), Draws(twin.agent, self.draws)
        twin._revising = twin.agent if isinstance(twin.agent, Revising) else None
        optimism = optimism_of(twin.agent)
        twin.optimist = None if optimism is None else Optimist(twin.agent, optimism, self.encoder)
        twin.alone = None if self.alone is None else self.alone.copy()
        twin.scaler, twin.counts, twin.drift = copy.deepcopy(self.scaler), self.counts.copy(), self.drift.copy()
        twin.reward_ends, twin.waiting, twin.in_flight = list(self.reward_ends), list(self.waiting), None
        twin.versions = {name: challenger.copy() for name, challenger in self.versions.items()}
        twin._share_observed()
        return twin
