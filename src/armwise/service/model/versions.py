"""Named versions of a model: one leads, the others run in shadow or make a share of the decisions.

Every version learns from all decisions, whoever made them. A decision is drawn from the whole mixture, the sum of each
version's share times its own distribution, and that is the probability which is journaled: the log stays as usable as
one of a single model. What each version had to do with it is journaled too, so that their comparison is a fold of the
journal like everything else.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import re
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from armwise.core import saving
from armwise.core.agent import Floats, make_choice
from armwise.features.encoding.arms import ArmColumns
from armwise.features.encoding.tokens import PackedTokens
from armwise.native.choice import draw
from armwise.service.journal.events import Decision, Lessons, Row, Sequel, Share, Version, decided
from armwise.service.model.drawing.encoded import Drawn
from armwise.service.model.drawing.in_flight import Reservation
from armwise.service.model.model import DecisionOutcome, DrawRequest, Model

log = logging.getLogger("armwise.service")
MAX_VERSIONS = 8  # versions beside the one that leads


_OURS = re.compile(r"v\d+")  # what is not named is called after the event that it began with


def role(name: str) -> str:
    """A version's name across databases, if it has one; event numbers differ between journals."""
    return "" if _OURS.fullmatch(name) else name


def by_role(leader: Model, also_leader: bool = False) -> dict[str, str]:
    """The names of the leading version and those beside it, by the name they have in every database.

    Those that were not named are told apart by their order, which is the same everywhere.
    """
    names = [*leader.versions, leader.name] if also_leader else list(leader.versions)
    unnamed = sorted((name for name in names if name and not role(name)), key=lambda name: int(name[1:]))
    return {name: name for name in names if role(name)} | {f"unnamed {k}": name for k, name in enumerate(unnamed)}


class Challenger(saving.Saved):
    """A version that does not lead: its model and its share of the decisions."""

    _learnt = ("share", "broken")

    def __init__(self, model: Model) -> None:
        self.model = model
        self.share = 0.0
        self.broken = 0  # the event that it could not take in: it neither decides nor learns any more

    def copy(self) -> Challenger:
        """An equal one that shares nothing which learning changes."""
        twin = Challenger(self.model.copy())
        twin.share, twin.broken = self.share, self.broken
        return twin

    def follow(self, row: Row, made: Row | None) -> None:
        """Fold in an event after the leading version; ``made`` is the decision that it is about."""
        if self.broken:
            return
        try:
            self._follow(row, made)
            self.model.version = row.seq
        except Exception:  # the same on every replay; the others never notice
            log.exception("the version %s of %s is broken by event %s", self.model.name, row.app, row.seq)
            self.broken, self.share = row.seq, 0.0

    def _follow(self, row: Row, made: Row | None) -> None:
        match row.event:
            case Decision() as drawn:
                seen = self._own(drawn)
                with contextlib.suppress(ValueError, ArithmeticError):  # arms that it cannot have, say
                    self.model.count_choice(seen)  # the leader has scaled its numbers
                self.model.learn_default(seen, at_hand=self.model.watch_for_drift(row, seen))
            case Lessons() as lessons:
                scaler, counts = self.model.scaler, self.model.counts
                self.model.scaler, self.model.counts = copy.deepcopy(scaler), counts.copy()
                self.model.warm_start(lessons)
                self.model.scaler, self.model.counts = scaler, counts
            case event if isinstance(event, Sequel) and made is not None:
                about = decided(made)
                outcome = DecisionOutcome(event, self._own(about), deadline=made.time + about.window)
                self.model.apply_outcomes([outcome])

    def count_foreign_decision(self, seq: int, decision: Decision) -> None:
        """Count a decision of another process while it is in flight."""
        in_flight, name = self.model.in_flight, self.model.name
        if in_flight is not None and self.model.draws.counts and not self.broken:
            with contextlib.suppress(ValueError, ArithmeticError):  # arms that it cannot have, say
                in_flight.count_foreign(seq, *self.model.agent_view.recall_choice(self._own(decision), None, name))

    def learn_waiting(self, seq: int, decision: Decision, lesson: float) -> None:
        """Learn an outcome that waited for its window."""
        self.model.learn_waiting(seq, self._own(decision), lesson)

    def _own(self, decision: Decision) -> Decision:
        """A decision as this version learns it: without another's note."""
        if decision.note is None or decision.drawn_by == self.model.name:
            return decision
        return msgspec.structs.replace(decision, note=None)


def fold_version(leader: Model, row: Row, make: Callable[[Any], Model]) -> Model:
    """Apply an event of kind ``version``; return the model that leads afterwards. An impossible change is skipped."""
    event = row.event
    assert isinstance(event, Version)
    leader.versions_changed_at, there = row.seq, leader.versions.get(event.name)
    if event.made is not None and there is None and event.name != leader.name and len(leader.versions) < MAX_VERSIONS:
        model = make(event.made)
        model.name, model.since, model.version = event.name, row.seq, row.seq
        model.scaler, model.counts = leader.scaler, leader.counts
        there = leader.versions[event.name] = Challenger(model)
    if there is None:
        return leader
    if event.remove:
        del leader.versions[event.name]
    elif event.promote:
        return _promote(leader, event.name)
    elif event.share is not msgspec.UNSET:
        others = sum(other.share for name, other in leader.versions.items() if name != event.name)
        there.share = min(max(event.share, 0.0), max(1.0 - others, 0.0))
    return leader


def _promote(leader: Model, name: str) -> Model:
    new: Model = leader.versions[name].model
    others = {n: c for n, c in leader.versions.items() if n != name}
    new.settings, new.version, new.versions_changed_at, new.previous = (
        leader.settings,
        leader.version,
        leader.versions_changed_at,
        leader.name,
    )
    leader.versions, leader.previous, leader.versions_changed_at = {}, "", 0
    new.versions = others | {leader.name: Challenger(leader)}
    return new


def inherit(model: Model, before: Model) -> None:
    """Give the model that replaces the leading version the versions beside it."""
    model.versions_changed_at, model.versions = before.versions_changed_at, before.versions
    for challenger in model.versions.values():
        challenger.model.scaler, challenger.model.counts = model.scaler, model.counts


def draw_among(
    leader: Model, context: bytes, arms: ArmColumns, u: float, tokens: PackedTokens | None
) -> tuple[Drawn, dict[str, Share], str]:
    """Draw an arm from the mixture of all versions with ``u`` in [0, 1); what each had to do with it, and who drew.

    Where no version makes notes, the arm is drawn from the mixture; else ``u`` says first which version draws.
    """
    every = [leader, *(challenger.model for challenger in leader.versions.values())]
    if leader.in_flight is None or not any(model.draws.counts for model in every):
        return _draw_among(leader, context, arms, u, tokens)
    with leader.in_flight.lock:  # what each counts is known when all have answered
        return _draw_among(leader, context, arms, u, tokens)


def _draw_among(
    leader: Model, context: bytes, arms: ArmColumns, u: float, tokens: PackedTokens | None
) -> tuple[Drawn, dict[str, Share], str]:
    answers: dict[str, tuple[float, Drawn]] = {}
    begin = 0.0
    for name, challenger in leader.versions.items():
        if challenger.broken:
            continue
        share, inside = challenger.share, begin <= u < begin + challenger.share
        own = (u - begin) / share if inside else u
        with contextlib.suppress(Exception):  # the others decide: whoever leads says what is wrong with the request
            request = DrawRequest(context, arms, min(own, 1.0 - 2.0**-53), tokens)
            [answer] = challenger.model.decide([request])
            if abs(answer.p.sum() - 1.0) < 1e-6:  # False for NaN
                answers[name] = share, answer
                begin += share
    own = (u - begin) / (1.0 - begin) if begin <= u and begin < 1.0 else u
    [answer] = leader.decide([DrawRequest(context, arms, min(own, 1.0 - 2.0**-53), tokens)])
    answers[leader.name] = 1.0 - begin, answer
    p = np.zeros(len(arms.ids))
    for share, one in answers.values():
        p += share * one.p
    by = ""
    arm, note = draw(p, u), None
    if any(one.note is not None for _, one in answers.values()):
        by, end = leader.name, 0.0
        for name, (share, _) in answers.items():
            end += share
            if u < end:
                by = name
                break
        arm, note = answers[by][1].arm, answers[by][1].note
    among = {name: _share(share, one.p, p, arm) for name, (share, one) in answers.items()}
    lead = answers[leader.name][1]
    seen = lead.seen
    if seen.chosen_row_only:  # of the arm that the leading version would have played, which need not be the one that is
        seen = leader.see(context, arms, tokens)
    return Drawn(int(arm), p, note, seen, _held(answers, int(arm), p.item(arm), by)), among, by


def _held(answers: dict[str, tuple[float, Drawn]], arm: int, p: float, by: str) -> Reservation | None:
    """Count a decision in each version that counts them: the arm that was drawn, by whichever version."""
    counted = []
    for name, (_, one) in answers.items():
        if one.held is not None:
            note = one.note if name == by else None
            one.held.instead(make_choice((one.seen.place(arm), p, note, None)))
            counted.append(one.held)
    if len(counted) > 1:
        counted[0].along(counted[1:])
    return counted[0] if counted else None


def _share(share: float, own: Floats, p: Floats, arm: int) -> Share:
    drawable = p > 0.0
    weights = own[drawable] / p[drawable]
    return Share(share, own.item(arm), float(weights.max()), min(float(own[drawable].sum()), 1.0))
