"""The model of one application: its agent, the scale of its numbers and its settings, all a fold of the journal."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import msgspec

from armwise.core.agent import Agent, Floats
from armwise.features.encoding.arms import read_arms as read_arms
from armwise.features.encoding.hashed import HashedRows
from armwise.features.encoding.tokens import Part, Tail
from armwise.features.encoding.tokens import part as part
from armwise.service.journal.events import (
    EARLIEST,
    OFF,
    PROVISIONAL,
    Activation,
    Change,
    Decision,
    Expiry,
    Lessons,
    Reward,
    Row,
    Settings,
    decided,
)
from armwise.service.model.inside import copied
from armwise.service.model.pupil import Pupil
from armwise.service.model.seen import Seen


class Model(Pupil):
    """An agent that reads JSON, and learns a journal row by row.

    >>> from armwise.service.journal.events import Creation
    >>> from armwise.service.model.build import build_model
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
        super().__init__(agent, encoder, arms, rewards)
        self.previous = ""  # the version that led before this one
        self.roster = 0  # the event that last changed the versions
        self.versions: dict[str, Any] = {}  # the others, by name: ``versions.Challenger``

    def apply(self, row: Row, decision: Decision | None, at_hand: Seen | None = None) -> None:
        """Fold one event in; ``decision`` is the one that its lesson belongs to, if it has one, and ``at_hand`` what
        was seen of that, where it was kept.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation(agent={"class": "LinUCB"}))
        >>> model.apply(Row(9, 0, "shop", "configure", "", b'{"window": 5.0}'), None)
        >>> model.settings.window
        5.0
        """
        match row.event:
            case Decision() as made:
                self.meet(made)
                self.assume(made)
            case Lessons() as lessons:
                self.study(lessons)
            case Change() as change:
                if change.epsilon is not msgspec.UNSET and hasattr(self.agent, "epsilon"):
                    self.agent.epsilon = change.epsilon
                self.settings = self.settings.changed(change)
            case Reward() | Activation() | Expiry() as sequel if decision is not None:
                self.settle(sequel, decision, at_hand)

    @property
    def plays(self) -> bool:
        """Whether ``play`` can make its decisions.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> build_model(Creation()).plays, build_model(Creation(agent={"class": "UCB1", "n_arms": 2})).plays
        (True, False)
        """
        return self.hashes_freely and self.learns == PROVISIONAL

    def play(
        self, context: Part, arms: Tail, u: float, reward: float, seq: int, now: int, deadline: int
    ) -> tuple[int, tuple[float, ...], Floats, bytes]:
        """``choose``, ``watch`` and ``begin`` of decision ``seq`` by an optimist that provisionally learns ``reward``,
        as it takes it, in one compiled call, to the bit: arm, probabilities, the arm's row, the scaling, packed.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation())
        >>> model.play(part(b'{"hour":9}', "c"), read_arms([b'"a"', b'"b"']).tail, 0.7, 0.0, 1, 0, 60_000)[:2]
        (1, (0.5, 0.5))
        >>> model.agent.t, model.scaler.means
        (2, array([9.]))
        """
        assert self.optimist is not None
        arm, p, row, scaling, expected = self.optimist.play(self.scaler, context, arms, u, reward)
        if self.settings.drift != OFF:
            drift = self.drift
            if drift.room:
                drift.open[seq] = expected, deadline
            else:
                drift.overdue(now)
        return arm, p, row, scaling

    def know_of(self, rows: Sequence[Row]) -> None:
        """Count decisions that other processes journaled and this model does not know yet, while they are under way.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> build_model(Creation()).know_of([])
        """
        for row in rows:
            decision = decided(row)
            if self.underway is not None and not decision.apprentice:
                if self.draws.counts:
                    self.underway.meet(row.seq, *self.sight.recall_choice(decision, None, self.name))
                for challenger in self.versions.values():
                    challenger.know_of(row.seq, decision)

    def begins_with(self, seen: Seen) -> bool:
        """Whether ``begin`` can take a decision in of which this was seen.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation())
        >>> model.begins_with(model.choose(b"{}", read_arms([b'"a"']), u=0.5).seen)
        True
        """
        return seen.drawn and self.optimist is not None

    def begin(self, seen: Seen, reward: float, rule: str = EARLIEST) -> None:
        """``meet`` and ``assume`` of a decision that an optimist has just drawn.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation())
        >>> model.begin(model.choose(b'{"hour":9}', read_arms([b'"a"']), u=0.5).seen, 0.0)
        >>> model.agent.t, model.scaler.means
        (2, array([9.]))
        """
        assert seen.stack is not None and self.optimist is not None
        # A default, which was checked when it was set.
        self.optimist.begin(self.scaler, seen.stack, seen.view, self.taken(reward, rule))

    def begin_all(self, made: Sequence[tuple[Row, Decision, Seen]]) -> None:
        """``watch`` and ``begin`` of decisions that follow one another, of each of which an optimist saw its row.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation())
        >>> asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
        >>> seen = model.choose(b"{}", read_arms([b'"a"']), u=0.5).seen
        >>> model.begin_all([(Row(7, 0, "shop", "decision", "e1", b"{}"), asked, seen)])
        >>> model.agent.t, list(model.drift.open)
        (2, [7])
        """
        drift, overdue = self.drift, None
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
                reward = taken[default] = self.taken(*default)
            assert seen.stack is not None
            decisions.append((seen.stack, seen.view, reward))
        assert self.optimist is not None
        expected = self.optimist.begin_all(self.scaler, decisions)
        for k in watched:
            row, decision, _ = made[k]
            if row.seq in drift.open:
                drift.watch(row.seq, expected[k], row.time + decision.window)

    def settle_played(self, row: Floats, seq: int, before: float, after: float) -> None:
        """``settle`` of a decision that ``play`` made, the first since it was made; both rewards as the agent takes
        them.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation())
        >>> row = model.play(part(b"{}", "c"), read_arms([b'"a"']).tail, 0.5, 0.0, 1, 0, 60_000)[2]
        >>> model.settle_played(row, 1, 0.0, 1.0); model.lessons
        1
        """
        drifted = self.drift.surprised(seq, after, self.reward_ends)
        self.amend(row, before, after, seq)
        if drifted:
            self.forget()

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"settings": msgspec.to_builtins(self.settings)}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state | {"settings": msgspec.convert(state["settings"], Settings)})
        self._share_scaler()

    def _share_scaler(self) -> None:
        """The scale of the numbers is the application's, whichever version leads."""
        for challenger in self.versions.values():
            challenger.model.scaler = self.scaler

    def copy(self) -> Model:
        """An equal model that shares nothing which learning or deciding changes.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> build_model(Creation(agent={"class": "LinUCB"})).copy().version
        0
        """
        twin = Model(copied(self.agent), self.encoder, self.arms, self.rewards)
        twin.scaler = copy.deepcopy(self.scaler)
        twin.settings = self.settings
        twin.draws.share(self.draws)
        twin.version, twin.since = self.version, self.since
        twin.lessons, twin.refused = self.lessons, self.refused
        twin.drift, twin.reward_ends = self.drift.copy(), list(self.reward_ends)
        twin.name, twin.previous, twin.roster = self.name, self.previous, self.roster
        if self.versions:
            twin.versions = {name: challenger.copy() for name, challenger in self.versions.items()}
            twin._share_scaler()
        return twin
