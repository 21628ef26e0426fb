"""The events of the journal: typed structs; the column ``kind`` is the tag of the union.

An event is one row: a number (``seq``), a time in milliseconds, the application, a kind, an id and a JSON body.

==============  =======================================================================================
kind            body
==============  =======================================================================================
``create``      ``Creation``: the application's agent, features, seed and settings; its model begins anew
``configure``   ``Change``: new values of settings
``decision``    ``Decision``: the request, the answer, and what learning needs
``reward``      ``Reward``: the value, what it cost, whether it came late, and the lesson if it is one
``activate``    ``Activation``: a deferred decision was shown; the lesson if its reward came before
``expire``      ``Expiry``: the reward window closed; the lesson: the outcome by the rule, or the default reward
``import``      ``Import``: an imported model; it replaces the application's model
``teach``       ``Lessons``: a warm start: logged decisions of other systems with rewards; not part of the log
``version``     ``Version``: a named version of the model is made, given a share of the decisions, promoted or removed
``erase``       ``Erasure``: decisions of one subject are to be deleted; the model keeps what it learnt from them
``batch``       ``Batch``: a digest of a batch of decisions or rewards with one idempotency key
==============  =======================================================================================

A *lesson* is a reward to learn, with the ``seq`` of its decision. Folding the events in order, learning every lesson as
it comes, gives the same agent, bit for bit. ``rules`` computes the lessons.
"""

from __future__ import annotations

import base64
from typing import Any, get_args

import msgspec

from armwise.features.encoding.arms import ArmColumns
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.journal.bodies import catalogue_of, unpack
from armwise.service.journal.errors import Damaged

EARLIEST, LATEST, SUM, MEAN, MAX, MIN = RULES = ("earliest", "latest", "sum", "mean", "max", "min")
# When an outcome is learnt. *provisional*: the default reward at once, corrected exactly when the outcome is known.
# *close*: when the window closes, or with a final reward. *arrival*: a reward when it comes, the default when the
# window closes. The caller promises to report every outcome, zeros too; otherwise clicks are learnt earlier than
# missing clicks.
PROVISIONAL, CLOSE, ARRIVAL = LEARN = ("provisional", "close", "arrival")
# What happens when decisions earn less than the model expects. *forget*: the model gives past rewards little weight, if
# the agent can. *alert*: it is only reported. *off*: drift is not watched for.
FORGET, ALERT, OFF = DRIFT = ("forget", "alert", "off")
MAX_MAGNITUDE = 1e150  # magnitude of a reward, and of a sum of them, so that squares stay finite
MIN_MAX_PAIRS = 1 << 20  # the least value of ``Settings.max_pairs``
DEFAULT_MAX_PAIRS = 10_000_000  # about 50 ms, in a thread of its own
DEFAULT_AGENT = {"class": "Explore", "epsilon": 0.1, "agent": {"class": "LinUCB", "alpha": 0.5, "lam": 1.0}}


class Settings(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The settings of an application; every change is journaled."""

    window: float = 600.0  # seconds that a reward may arrive after its decision
    default: float = 0.0  # the reward of a decision without one
    rule: str = EARLIEST  # combines several rewards of a decision
    learn: str = ""  # one of ``LEARN``; empty: provisional if the agent can revise its statistics, else close
    apprentice: bool = False
    forgotten: int = 0  # the event up to which the log was deleted: nothing before it is shown
    by_request: bool = False  # created by a request: served even if no configuration file names it
    extra: dict[str, Any] = {}  # data of an adapter, without meaning here
    max_pairs: int = DEFAULT_MAX_PAIRS  # most pairs of context and arm features in one request
    policies: dict[str, dict[str, Any]] = {}  # the policies that the page compares with, each described like an agent
    drift: str = FORGET  # one of ``DRIFT``
    new_arms: float = 0.1  # most probability that new arms get beside known ones: see ``ramp``

    def __post_init__(self) -> None:
        if not 0.0 < self.window <= 10 * 365 * 86400.0:
            raise InvalidInput(f"window must be seconds above 0 and within ten years, got {self.window}")
        if self.rule not in RULES:
            raise InvalidInput(f"rule must be {', '.join(RULES[:-1])} or {RULES[-1]}, got {self.rule!r}")
        if self.learn not in ("", *LEARN):
            raise InvalidInput(f"learn must be {', '.join(LEARN[:-1])} or {LEARN[-1]}, got {self.learn!r}")
        if self.drift not in DRIFT:
            raise InvalidInput(f"drift must be {', '.join(DRIFT[:-1])} or {DRIFT[-1]}, got {self.drift!r}")
        for name in ("extra", "policies"):  # as the journal returns them: a tuple becomes a list
            if value := getattr(self, name):
                msgspec.structs.force_setattr(self, name, msgspec.json.decode(msgspec.json.encode(value)))
        if not 0.0 <= self.new_arms <= 1.0:
            raise InvalidInput(f"new_arms must be a share between 0 and 1, got {self.new_arms}")

    def changed(self, change: Change) -> Settings:
        """These settings after a change."""
        new = {name: value for name in self.__struct_fields__ if (value := getattr(change, name)) is not msgspec.UNSET}
        return msgspec.structs.replace(self, **new)

    @property
    def public(self) -> dict[str, Any]:
        """The settings that an API shows."""
        hidden = ("extra", "forgotten", "by_request")
        return {name: getattr(self, name) for name in self.__struct_fields__ if name not in hidden}


Unset = msgspec.UnsetType
CONFIG = "config"  # the id of a change by a configuration file, not by a request


class Change(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """New values of settings, and of ``epsilon`` if the agent has one; unset ones stay."""

    window: float | Unset = msgspec.UNSET
    default: float | Unset = msgspec.UNSET
    rule: str | Unset = msgspec.UNSET
    learn: str | Unset = msgspec.UNSET
    apprentice: bool | Unset = msgspec.UNSET
    forgotten: int | Unset = msgspec.UNSET
    by_request: bool | Unset = msgspec.UNSET
    extra: dict[str, Any] | Unset = msgspec.UNSET
    max_pairs: int | Unset = msgspec.UNSET
    policies: dict[str, dict[str, Any]] | Unset = msgspec.UNSET
    drift: str | Unset = msgspec.UNSET
    new_arms: float | Unset = msgspec.UNSET
    epsilon: float | Unset = msgspec.UNSET


class Creation(msgspec.Struct, forbid_unknown_fields=True):
    """The description of a new application, for ``model.build.build_model``."""

    agent: dict[str, Any] = msgspec.field(default_factory=lambda: dict(DEFAULT_AGENT))
    features: dict[str, Any] = {}
    arms: list[str] = []
    seed: int = 1
    settings: Settings = Settings()
    rewards: list[float] = []
    train: bool = True  # train on the journal of the application before it takes over

    def since(self, before: Creation) -> Creation | Change | None:
        """The event for a changed description: new settings keep the model, anything else replaces it.

        A change of ``learn`` away from "arrival" replaces it too: rewards learnt under that promise are learnt again.
        """
        if msgspec.structs.replace(self, settings=before.settings, train=before.train) != before:
            return self
        old, new = before.settings, self.settings
        if old.learn == ARRIVAL != new.learn:
            return self
        changed = {n: getattr(new, n) for n in new.__struct_fields__ if getattr(new, n) != getattr(old, n)}
        return Change(**changed) if changed else None


class Import(msgspec.Struct):
    """An imported model."""

    model: str  # base64

    @classmethod
    def of(cls, data: bytes) -> Import:
        """Encode the bytes of ``Engine.export``."""
        return cls(base64.b64encode(data).decode())

    @property
    def data(self) -> bytes:
        """The bytes for ``saving.loads``."""
        return base64.b64decode(self.model)


class Share(msgspec.Struct, array_like=True, gc=False):
    """A version's part in a decision, whose ``p`` is the sum over versions of share times the version's own p."""

    share: float  # of the decisions that it draws; 0: a challenger that draws none
    p: float  # its own probability of the drawn arm
    weight: float  # the largest ratio, over all arms, of its own p to the decision's p
    covered: float = 1.0  # its own probability of the arms with a positive p in the decision


class UnwrittenArms:
    """The arms of a new decision; their JSON is written when a journal stores it, or on demand."""

    __slots__ = ("columns",)

    def __init__(self, columns: ArmColumns) -> None:
        self.columns = columns


class Decision(msgspec.Struct, omit_defaults=True, gc=False):
    """A decision in the journal; ``arms`` are the offered ones in order, then the excluded ones."""

    context: msgspec.Raw
    sent: list[msgspec.Raw] = msgspec.field(name="arms")  # or ``UnwrittenArms`` of a new decision
    p: list[float]  # of each offered arm
    arm: int
    version: int  # the last event that the model had learnt
    window: int  # milliseconds
    default: float
    rule: str = EARLIEST
    learn: str = PROVISIONAL
    deferred: bool = False
    apprentice: bool = False
    note: Any = None
    scaling: bytes = b""  # as ``Scaling`` packs it; base64 in the JSON
    order: list[int] = []  # positions in the request, if it excluded arms
    by: str = ""  # the name of the caller's key
    slots: list[str] = []  # in the first slot of a list: the names of all its slots
    asked: str = ""  # a digest of the request, if this is a slot of a list
    among: dict[str, Share] = {}  # the part of each version that answered, if the model has versions
    drawn_by: str = ""  # the version that drew the arm and made the note, if the agent makes notes; or see ``expose``

    @property
    def arms(self) -> list[msgspec.Raw]:
        """The arms; do not change the list."""
        if isinstance(self.sent, UnwrittenArms):
            self.sent = self.sent.columns.raws
        elif isinstance(self.sent, msgspec.Raw):
            self.sent = _arms.decode(self.sent)
        return self.sent

    def write_arms(self) -> None:
        """Write the JSON of the arms, which storing a decision needs."""
        if isinstance(self.sent, UnwrittenArms):
            self.sent = self.sent.columns.journal


class Reward(msgspec.Struct, omit_defaults=True):
    """A reward in the journal."""

    value: float
    decision: int = 0  # the number of its decision; the journal sets this and ``late`` and ``lesson``
    late: bool = False
    lesson: float | None = None
    cost: float | list[float] | None = None  # of the decision, one number per resource, if known
    final: bool = False  # the last reward of its decision, which closes now


class Activation(msgspec.Struct, omit_defaults=True):
    """A deferred decision was shown."""

    decision: int = 0
    late: bool = False
    shown: bool = False  # it was not shown before
    lesson: float | None = None


class Expiry(msgspec.Struct, omit_defaults=True):
    """A reward window closed."""

    decision: int = 0
    lesson: float | None = None
    early: bool = False  # before the deadline, since the decision is to be erased


class Version(msgspec.Struct, omit_defaults=True):
    """A change of a named version of an application's model."""

    name: str
    made: Creation | None = None  # a new version, trained on the journal of the application
    share: float | Unset = msgspec.UNSET  # of the later decisions; 0: it draws none
    promote: bool = False  # it leads from here on; the former leader stays as a version that draws none
    remove: bool = False


class Lessons(msgspec.Struct):
    """Logged decisions of other systems, each with its reward, for a warm start."""

    decisions: list[Decision]
    rewards: list[float]


class Erasure(msgspec.Struct):
    """A request to erase one subject: the decisions before this event with a value at a key of their context."""

    key: str  # names of nested objects joined by dots
    digest: str  # of the value, keyed with the journal's secret: the journal does not keep the value itself


class Batch(msgspec.Struct):
    """A digest of a batch with an idempotency key; the same set in any order is a retry."""

    digest: str  # of the sorted contents


Event = Creation | Change | Decision | Reward | Activation | Expiry | Import | Lessons | Version | Erasure | Batch
Sequel = Reward | Activation | Expiry  # later events of a decision
KINDS: dict[str, type[Event]] = {
    "create": Creation,
    "configure": Change,
    "decision": Decision,
    "reward": Reward,
    "activate": Activation,
    "expire": Expiry,
    "import": Import,
    "teach": Lessons,
    "version": Version,
    "erase": Erasure,
    "batch": Batch,
}
_arms = msgspec.json.Decoder(list[msgspec.Raw])
SEQUELS: tuple[type[Event], ...] = get_args(Sequel)
KIND_OF: dict[type[Event], str] = {cls: kind for kind, cls in KINDS.items()}
_DECODERS = {kind: msgspec.json.Decoder(cls) for kind, cls in KINDS.items()}
assert set(get_args(Event)) == set(KIND_OF)


class Row(msgspec.Struct, gc=False):  # no cycle goes through it
    """One event of the journal."""

    seq: int
    time: int
    app: str
    kind: str
    id: str
    body: bytes
    at_hand: Event | None = None  # the decoded body, if it is in memory
    arms: list[msgspec.Raw] | None = None  # the catalogue that the body refers to, if any
    request: str = ""  # its idempotency key, if it was loaded (``Journal.with_requests``)
    seen: Any = None  # of a decision: what its agent saw (``EncodedRequest``), or its tokens, if they are in memory

    @property
    def event(self) -> Event:
        """The event; raise Damaged if it cannot be read."""
        if self.at_hand is None:
            if self.kind not in _DECODERS:
                raise Damaged(f"event {self.seq} has a kind that this armwise does not know: {self.kind!r}")
            try:
                event = _DECODERS[self.kind].decode(unpack(self.body))
                if isinstance(event, Decision) and catalogue_of(self.body):
                    event.sent = self._catalogued(event)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                raise Damaged(f"event {self.seq} ({self.kind}) is damaged: {error}") from None
            self.at_hand = event
        return self.at_hand

    def is_a(self, *types: type[Event]) -> bool:
        """Return whether the event has one of these types, without decoding its body."""
        return KINDS.get(self.kind) in types

    def _catalogued(self, decision: Decision) -> list[msgspec.Raw]:
        """The arms of a decision from its catalogue, in the decision's order."""
        if self.arms is None:
            raise ValueError(f"the arms {catalogue_of(self.body).hex()} that it refers to are missing")
        if decision.order and sorted(decision.order) != list(range(len(self.arms))):
            raise ValueError("its order is not one of its arms")
        return [self.arms[i] for i in decision.order] if decision.order else self.arms

    @property
    def teaches(self) -> int:
        """The number of the decision that folding this event needs; 0 for none."""
        if KINDS.get(self.kind) not in SEQUELS or not isinstance(event := self.event, (Reward, Activation, Expiry)):
            return 0
        begins = isinstance(event, Activation) and event.shown
        return event.decision if begins or event.lesson is not None else 0

    @property
    def lesson(self) -> tuple[int, float] | None:
        """The decision and reward to learn from this event, if there is one."""
        if self.is_a(*SEQUELS) and isinstance(event := self.event, Sequel) and event.lesson is not None:
            return event.decision, event.lesson
        return None


def decided(row: Row) -> Decision:
    """The decision in a row; raise ValueError if it is another event."""
    event = row.at_hand or row.event
    if not isinstance(event, Decision):
        raise ValueError(f"event {row.seq} is no decision, but {row.kind}")
    return event
