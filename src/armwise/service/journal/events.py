"""The events of the journal: typed structs; the column ``kind`` is the tag of the union.

An event is one row: a number (``seq``), a time in milliseconds, the application, a kind, an id and a JSON body.

==============  =======================================================================================
kind            body
==============  =======================================================================================
``create``      ``Creation``: the application's agent, features, seed and settings; its model begins anew
``configure``   ``Change``: settings that change from here on
``decision``    ``Decision``: all that was asked, answered and needed for learning
``reward``      ``Reward``: the value, what it cost, whether it came late, and the lesson if it is one
``activate``    ``Activation``: a deferred decision did happen; the lesson if its reward was waiting
``expire``      ``Expiry``: the reward window closed; the lesson: what the rewards come to, or the default reward
``import``      ``Import``: a model given from outside; it replaces the application's own
``teach``       ``Lessons``: decisions of others with their rewards, for the model to learn; no part of the log
``version``     ``Version``: a named version of the model is made, given a share of the decisions, promoted or removed
``erase``       ``Erasure``: decisions of one subject are to go; what they taught stays
``batch``       ``Batch``: the contents of a batch of decisions or rewards that came with an idempotency key
==============  =======================================================================================

A *lesson* is a reward to learn, with the ``seq`` of its decision. Whoever folds the events in order, learning every
lesson as it comes, arrives at the same agent, bit for bit. ``rules`` says what each event comes to.
"""

from __future__ import annotations

import base64
from typing import Any, get_args

import msgspec

from armwise.features.encoding.arms import ArmColumns
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.errors import Damaged
from armwise.service.journal.bodies import catalogue_of, unpack

EARLIEST, LATEST, SUM, MEAN, MAX, MIN = RULES = ("earliest", "latest", "sum", "mean", "max", "min")
# When an outcome is learnt. *provisional*: the default reward at once, corrected, exactly, when the outcome is known.
# *close*: when the window closes, or with a final reward. *arrival*: a reward when it comes, its lack when the window
# closes: a promise that every outcome is reported, zeros too; where it is broken, clicks are learnt before their lack.
PROVISIONAL, CLOSE, ARRIVAL = LEARN = ("provisional", "close", "arrival")
# What happens when decisions earn less than the model expects: what was learnt before is made to count little, where
# the agent can; or it is only said; or nobody looks.
FORGET, ALERT, OFF = DRIFT = ("forget", "alert", "off")
LARGEST = 1e150  # magnitude of a reward, and of a sum of them, so that squares stay finite
LEAST_PAIRS = 1 << 20  # that every application takes
MAX_PAIRS = 10_000_000  # about 50 ms, in a thread of its own
DEFAULT_AGENT = {"class": "Explore", "epsilon": 0.1, "agent": {"class": "LinUCB", "alpha": 0.5, "lam": 1.0}}


class Settings(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The settings of an application; every change is journaled.

    >>> Settings().window
    600.0
    """

    window: float = 600.0  # seconds that a reward may take
    default: float = 0.0  # learnt when none came
    rule: str = EARLIEST  # what several rewards of a decision come to
    learn: str = ""  # one of ``LEARN``; empty: provisional where the agent can revise what it learnt, else at the close
    apprentice: bool = False
    forgotten: int = 0  # the event up to which the log was deleted: nothing shows what is before
    by_request: bool = False  # served whether a configuration file names it or not
    extra: dict[str, Any] = {}  # what a dialect wants kept, of no meaning here
    max_pairs: int = MAX_PAIRS  # of a context's and an arm's features in one request
    policies: dict[str, dict[str, Any]] = {}  # what the page compares with, each described like an agent
    drift: str = FORGET  # one of ``DRIFT``
    new_arms: float = 0.1  # at most this share of a decision for arms that are new beside known ones: see ``ramp``

    def __post_init__(self) -> None:
        if not 0.0 < self.window <= 10 * 365 * 86400.0:
            raise InvalidInput(f"window must be seconds above 0 and within ten years, got {self.window}")
        if self.rule not in RULES:
            raise InvalidInput(f"rule must be {', '.join(RULES[:-1])} or {RULES[-1]}, got {self.rule!r}")
        if self.learn not in ("", *LEARN):
            raise InvalidInput(f"learn must be {', '.join(LEARN[:-1])} or {LEARN[-1]}, got {self.learn!r}")
        if self.drift not in DRIFT:
            raise InvalidInput(f"drift must be {', '.join(DRIFT[:-1])} or {DRIFT[-1]}, got {self.drift!r}")
        for name in ("extra", "policies"):  # as the journal gives them back: a tuple is a list there
            if value := getattr(self, name):
                msgspec.structs.force_setattr(self, name, msgspec.json.decode(msgspec.json.encode(value)))
        if not 0.0 <= self.new_arms <= 1.0:
            raise InvalidInput(f"new_arms must be a share between 0 and 1, got {self.new_arms}")

    def changed(self, change: Change) -> Settings:
        """These settings after a change.

        >>> Settings().changed(Change(window=5.0)).window
        5.0
        """
        new = {name: value for name in self.__struct_fields__ if (value := getattr(change, name)) is not msgspec.UNSET}
        return msgspec.structs.replace(self, **new)

    @property
    def public(self) -> dict[str, Any]:
        """The settings as an API shows them.

        >>> sorted(Settings().public)
        ['apprentice', 'default', 'drift', 'learn', 'max_pairs', 'new_arms', 'policies', 'rule', 'window']
        """
        hidden = ("extra", "forgotten", "by_request")
        return {name: getattr(self, name) for name in self.__struct_fields__ if name not in hidden}


Unset = msgspec.UnsetType
CONFIG = "config"  # the id of a change that a configuration made, not a request


class Change(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Changed settings, and ``epsilon`` of an agent that has one; the others stay.

    >>> msgspec.json.encode(Change(rule=SUM))
    b'{"rule":"sum"}'
    """

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
    """The description of a new application, for ``model.build.build_model``.

    >>> Creation().features
    {}
    """

    agent: dict[str, Any] = msgspec.field(default_factory=lambda: dict(DEFAULT_AGENT))
    features: dict[str, Any] = {}
    arms: list[str] = []
    seed: int = 1
    settings: Settings = Settings()
    rewards: list[float] = []
    train: bool = True  # on what the journal has of the application, before it takes over

    def since(self, before: Creation) -> Creation | Change | None:
        """The event for a changed description: new settings keep the model, anything else replaces it.

        So does ``learn``, where outcomes were promised before: what was learnt on the promise is learnt again.

        >>> Creation(settings=Settings(window=60.0)).since(Creation()).window
        60.0
        >>> Creation(seed=2).since(Creation()).seed
        2
        """
        if msgspec.structs.replace(self, settings=before.settings, train=before.train) != before:
            return self
        old, new = before.settings, self.settings
        if old.learn == ARRIVAL != new.learn:
            return self
        changed = {n: getattr(new, n) for n in new.__struct_fields__ if getattr(new, n) != getattr(old, n)}
        return Change(**changed) if changed else None


class Import(msgspec.Struct):
    """An imported model.

    >>> Import.of(b"bytes").data
    b'bytes'
    """

    model: str  # base64

    @classmethod
    def of(cls, data: bytes) -> Import:
        """From what ``Engine.export`` gave.

        >>> Import.of(b"").model
        ''
        """
        return cls(base64.b64encode(data).decode())

    @property
    def data(self) -> bytes:
        """What ``persist.loads`` reads.

        >>> Import.of(b"bytes").data
        b'bytes'
        """
        return base64.b64decode(self.model)


class Share(msgspec.Struct, array_like=True, gc=False):
    """A version's part in a decision: ``p`` of the arms is the sum of each share times the version's own p.

    >>> Share(0.1, 0.5, 2.0).weight
    2.0
    """

    share: float  # of the decisions that it makes; 0: it was only asked
    p: float  # its own probability of the arm that was drawn
    weight: float  # the largest of all arms' ratios of its own p to the decision's
    covered: float = 1.0  # its own probability of all arms that the decision could have drawn


class UnwrittenArms:
    """The arms of a decision that was just drawn; their JSON is written when a journal stores it, or somebody asks.

    >>> from armwise.features.encoding.arms import read_arms
    >>> UnwrittenArms(read_arms([b'"a"'])).columns.ids
    ('a',)
    """

    __slots__ = ("columns",)

    def __init__(self, columns: ArmColumns) -> None:
        self.columns = columns


class Decision(msgspec.Struct, omit_defaults=True, gc=False):
    """A decision in the journal; ``arms`` are the offered ones in order, then the excluded ones.

    >>> Decision(context=msgspec.Raw(b"{}"), sent=[], p=[], arm=0, version=0, window=1, default=0.0).rule
    'earliest'
    """

    context: msgspec.Raw
    sent: list[msgspec.Raw] = msgspec.field(name="arms")  # or, of one that was just drawn, ``UnwrittenArms``
    p: list[float]  # of each offered arm
    arm: int
    version: int  # the journal's seq up to which the model had learnt
    window: int  # milliseconds
    default: float
    rule: str = EARLIEST
    learn: str = PROVISIONAL
    deferred: bool = False
    apprentice: bool = False
    note: Any = None
    scaling: str = ""  # see ``scaling.Scaling.journal``
    order: list[int] = []  # positions in the request, where it excluded arms
    by: str = ""  # the name of the key that asked
    slots: list[str] = []  # of the first slot of several: the names of all
    asked: str = ""  # a digest of the request, where this is one slot of several
    among: dict[str, Share] = {}  # where the model has versions: what each that answered had to do with it
    drawn_by: str = ""  # the version that drew the arm and made the note, if notes are made; or see ``expose``

    @property
    def arms(self) -> list[msgspec.Raw]:
        """The arms; do not change the list.

        >>> len(Decision(msgspec.Raw(b"{}"), msgspec.Raw(b'["a","b"]'), [], 0, 0, 1, 0.0).arms)
        2
        """
        if isinstance(self.sent, UnwrittenArms):
            self.sent = self.sent.columns.raws
        elif isinstance(self.sent, msgspec.Raw):
            self.sent = _arms.decode(self.sent)
        return self.sent

    def write_arms(self) -> None:
        """Write the texts of the arms, without which a decision cannot be stored.

        >>> from armwise.features.encoding.arms import read_arms
        >>> made = Decision(msgspec.Raw(b"{}"), UnwrittenArms(read_arms([b'"a"'])), [1.0], 0, 0, 1, 0.0)
        >>> made.write_arms(); msgspec.json.encode(made.sent)
        b'["a"]'
        """
        if isinstance(self.sent, UnwrittenArms):
            self.sent = self.sent.columns.journal


class Reward(msgspec.Struct, omit_defaults=True):
    """A reward in the journal.

    >>> msgspec.json.encode(Reward(value=1.0, decision=3, lesson=1.0))
    b'{"value":1.0,"decision":3,"lesson":1.0}'
    """

    value: float
    decision: int = 0  # the number of its decision; whoever asks leaves it to the journal, like all that follows
    late: bool = False
    lesson: float | None = None
    cost: float | list[float] | None = None  # what the decision cost, one number per resource, where somebody says it
    final: bool = False  # no other reward of the decision will come: it closes now


class Activation(msgspec.Struct, omit_defaults=True):
    """A deferred decision was shown.

    >>> Activation(decision=3).lesson is None
    True
    """

    decision: int = 0
    late: bool = False
    shown: bool = False  # it was not before
    lesson: float | None = None


class Expiry(msgspec.Struct, omit_defaults=True):
    """A reward window closed.

    >>> Expiry(decision=3, lesson=0.0).lesson
    0.0
    """

    decision: int = 0
    lesson: float | None = None
    early: bool = False  # before its time, since the decision is to be erased


class Version(msgspec.Struct, omit_defaults=True):
    """A change of a named version of an application's model.

    >>> Version("bold", share=0.1).promote
    False
    """

    name: str
    made: Creation | None = None  # it begins, trained on what the journal has of the application
    share: float | Unset = msgspec.UNSET  # of the decisions that it makes from here on; 0: it is only asked
    promote: bool = False  # it leads from here on; the one that led stays as a version, which is only asked
    remove: bool = False


class Lessons(msgspec.Struct):
    """Logged decisions of other systems, each with its reward, for a warm start.

    >>> Lessons([], []).rewards
    []
    """

    decisions: list[Decision]
    rewards: list[float]


class Erasure(msgspec.Struct):
    """A request to erase one subject: its decisions before this event, by a value at a key of their context.

    >>> Erasure("user", "").key
    'user'
    """

    key: str  # names joined by dots, where objects are nested
    digest: str  # of the value, keyed with the journal's secret: the journal does not keep whom it forgot


class Batch(msgspec.Struct):
    """The contents of a batch with an idempotency key; the same set in any order is a retry.

    >>> Batch("").digest
    ''
    """

    digest: str  # of the sorted contents


Event = Creation | Change | Decision | Reward | Activation | Expiry | Import | Lessons | Version | Erasure | Batch
Sequel = Reward | Activation | Expiry  # what happens to a decision after it was made
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
_KIND_OF: dict[type[Event], str] = {cls: kind for kind, cls in KINDS.items()}
_DECODERS = {kind: msgspec.json.Decoder(cls) for kind, cls in KINDS.items()}
assert set(get_args(Event)) == set(_KIND_OF)


def kind_of(event: Event) -> str:
    """The tag of an event.

    >>> kind_of(Reward(1.0))
    'reward'
    """
    return _KIND_OF[type(event)]


class Row(msgspec.Struct, gc=False):  # no cycle goes through it
    """One event of the journal.

    >>> Row(1, 0, "shop", "reward", "e1", b'{"value":0.5,"decision":1}').event.value
    0.5
    """

    seq: int
    time: int
    app: str
    kind: str
    id: str
    body: bytes
    at_hand: Event | None = None  # the body as a struct, where that need not be read
    arms: list[msgspec.Raw] | None = None  # what the body refers to, if it does
    request: str = ""  # the idempotency key that it came with, where that is at hand (``Journal.with_requests``)

    @property
    def event(self) -> Event:
        """The event; raise Damaged if it cannot be read.

        >>> Row(7, 0, "shop", "reward", "e1", b"{").event
        Traceback (most recent call last):
        ...
        armwise.service.errors.Damaged: event 7 (reward) is damaged: Input data was truncated
        """
        if self.at_hand is None:
            if self.kind not in _DECODERS:
                raise Damaged(f"event {self.seq} is of a kind that this armwise does not know: {self.kind!r}")
            try:
                event = _DECODERS[self.kind].decode(unpack(self.body))
                if isinstance(event, Decision) and catalogue_of(self.body):
                    event.sent = self._catalogued(event)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                raise Damaged(f"event {self.seq} ({self.kind}) is damaged: {error}") from None
            self.at_hand = event
        return self.at_hand

    def is_a(self, *types: type[Event]) -> bool:
        """Return whether the event has one of these types; does not read its body.

        >>> Row(7, 0, "shop", "reward", "e1", b"{").is_a(Decision, Reward)
        True
        """
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
        """The number of the decision that this event needs when it is folded in; 0 for none.

        >>> Row(2, 0, "shop", "activate", "e1", b'{"decision":1,"shown":true}').teaches
        1
        """
        if KINDS.get(self.kind) not in SEQUELS or not isinstance(event := self.event, (Reward, Activation, Expiry)):
            return 0
        begins = isinstance(event, Activation) and event.shown
        return event.decision if begins or event.lesson is not None else 0

    @property
    def lesson(self) -> tuple[int, float] | None:
        """The decision and reward to learn from this event, if there is one.

        >>> Row(2, 0, "shop", "expire", "e1", b'{"decision":1,"lesson":0.0}').lesson
        (1, 0.0)
        """
        if self.is_a(*SEQUELS) and isinstance(event := self.event, Sequel) and event.lesson is not None:
            return event.decision, event.lesson
        return None


def decided(row: Row) -> Decision:
    """The decision in a row; raise ValueError if it is another event.

    >>> decided(Row(3, 0, "shop", "create", "", b"{}"))
    Traceback (most recent call last):
    ...
    ValueError: event 3 is no decision, but create
    """
    event = row.event
    if not isinstance(event, Decision):
        raise ValueError(f"event {row.seq} is no decision, but {row.kind}")
    return event
