"""The structs of requests and answers, from which the OpenAPI document is generated.
``Said`` holds constraints that only the schema states, so that nothing is checked twice."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import msgspec

from armwise.service.engine.requests.draw import Answer
from armwise.service.journal.events import DRIFT, LEARN, MAX_MAGNITUDE, RULES

Unset = msgspec.UnsetType


def schema_only(**schema: Any) -> Any:
    """A constraint that the document states and the code checks itself."""
    return msgspec.Meta(extra_json_schema=schema)


_FEATURES: dict[str, Any] = {"$ref": "#/components/schemas/Features"}
Name = Annotated[str, schema_only(minLength=1, maxLength=256, pattern=r"^[^\x00-\x1f\x7f]*$")]
Number = Annotated[float, schema_only(minimum=-MAX_MAGNITUDE, maximum=MAX_MAGNITUDE)]
Share = Annotated[float, schema_only(minimum=0, maximum=1)]
Chance = Annotated[float, schema_only(exclusiveMinimum=0, maximum=1)]
Features = Annotated[Any, schema_only(anyOf=[_FEATURES, {"type": "array", "items": _FEATURES}])]
Arm = Annotated[Any, schema_only(**{"$ref": "#/components/schemas/Arm"})]
Arms = Annotated[list[Arm], schema_only(minItems=1)]
RawArms = Annotated[
    list[Annotated[msgspec.Raw, schema_only(**{"$ref": "#/components/schemas/Arm"})]], schema_only(minItems=1)
]
RawFeatures = Annotated[msgspec.Raw, schema_only(anyOf=[_FEATURES, {"type": "array", "items": _FEATURES}])]
RawDecision = Annotated[msgspec.Raw, schema_only(**{"$ref": "#/components/schemas/DecisionRequest"})]
Hash = Annotated[str, schema_only(pattern="^[0-9a-f]{32}$", description="A hash that POST /v1/catalogues answered.")]
Seconds = Annotated[float, schema_only(exclusiveMinimum=0, maximum=315360000)]
Rule = Annotated[str, schema_only(enum=list(RULES))]
Learn = Annotated[str, schema_only(enum=list(LEARN))]
Drift = Annotated[str, schema_only(enum=list(DRIFT))]
Cost = Annotated[
    Any, schema_only(anyOf=[{"type": "number", "minimum": -MAX_MAGNITUDE, "maximum": MAX_MAGNITUDE},
                            {"type": "array", "minItems": 1,
                             "items": {"type": "number", "minimum": -MAX_MAGNITUDE, "maximum": MAX_MAGNITUDE}}]),
]  # fmt: skip
Described = Annotated[
    dict[str, Any], schema_only(description="A class of armwise, and its arguments.", required=["class"])
]

BY_HAND: dict[str, Any] = {  # values and arms are any JSON within bounds; no struct parses them
    "Features": {
        "type": "object",
        "description": "At most 4096 features, 32 deep.",
        "propertyNames": {"maxLength": 4096},
        "additionalProperties": {"$ref": "#/components/schemas/Value"},
    },
    "Value": {
        "anyOf": [
            {"type": "null"},
            {"type": "boolean"},
            {"type": "string", "maxLength": 4096},
            {"type": "number", "exclusiveMinimum": -1e150, "exclusiveMaximum": 1e150},
            {"type": "array", "items": {"$ref": "#/components/schemas/Value"}},
            _FEATURES,
        ]
    },
    "Arm": {
        "description": "An id, or an id with features.",
        "anyOf": [
            {"type": "string", "minLength": 1, "maxLength": 256, "pattern": r"^[^\x00-\x1f\x7f]*$"},
            {
                "type": "object",
                "required": ["id"],
                "additionalProperties": False,
                "properties": {
                    "id": {"type": "string", "minLength": 1, "maxLength": 256, "pattern": r"^[^\x00-\x1f\x7f]*$"},
                    "features": {"anyOf": [_FEATURES, {"type": "array", "items": _FEATURES}]},
                },
            },
        ],
    },
}


class Fault(msgspec.Struct):
    """An error: a code for programs, a message for people, and the id of an unknown decision."""

    code: str
    message: str
    decision: str | Unset = msgspec.UNSET


class Error(msgspec.Struct):
    """The body of an error answer."""

    error: Fault


class OutcomeShown(msgspec.Struct):
    """A reward as received; a late one is logged and not learnt."""

    value: float
    time: Annotated[str, schema_only(format="date-time")]
    late: bool
    cost: Cost | Unset = msgspec.UNSET
    final: bool = False


class ArmProbability(msgspec.Struct, gc=False):
    """An arm and the probability it had."""

    arm: str
    probability: Annotated[float, schema_only(minimum=0, maximum=1.000000001)]


class DecisionAnswer(msgspec.Struct):
    """The answer to a durable decision; ``version`` is the last event that the model had learnt."""

    id: str
    arm: str
    probability: Annotated[float, schema_only(exclusiveMinimum=0, maximum=1.000000001)]
    probabilities: list[ArmProbability]
    version: int

    @classmethod
    def of(cls, it: Answer) -> DecisionAnswer:
        """Convert the engine's answer."""
        every = list(itertools.starmap(ArmProbability, it.probabilities))
        return cls(it.id, it.arm, it.probability, every, it.version)


class RewardAnswer(msgspec.Struct):
    """The status of a reward: ``late`` ones are logged but not learnt; ``learnt`` at once, or not (yet); ``repeated``
    if an earlier one counts instead.
    """

    id: str
    late: bool
    learnt: bool
    repeated: bool = False


class DecisionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/decisions``: arms are ids, or objects with ``id`` and ``features``.

    ``catalogue`` names stored arms instead of ``arms``.
    """

    arms: RawArms | Unset = msgspec.UNSET
    catalogue: Hash | Unset = msgspec.UNSET
    context: RawFeatures | Unset = msgspec.UNSET
    id: Name | Unset = msgspec.UNSET
    excluded: list[str] | Unset = msgspec.UNSET
    defer: bool | Unset = msgspec.UNSET


class RankingRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/rankings``: k slots to fill with arms. ``catalogue`` names stored ones."""

    arms: RawArms | Unset = msgspec.UNSET
    catalogue: Hash | Unset = msgspec.UNSET
    k: Annotated[int, schema_only(minimum=1, maximum=50, default=5)] | Unset = msgspec.UNSET
    context: RawFeatures | Unset = msgspec.UNSET
    id: Name | Unset = msgspec.UNSET
    pinned: (
        Annotated[
            dict[str, str], schema_only(description="The arms of slots that are not to be chosen, by slot, from 0.")
        ]
        | Unset
    ) = msgspec.UNSET
    at_most: (
        Annotated[
            dict[str, int],
            schema_only(
                description="A feature of arms, and how many arms with one value of it a list may show.",
                maxProperties=1,
            ),
        ]
        | Unset
    ) = msgspec.UNSET


class RankingAnswer(msgspec.Struct):
    """A ranking from the top, each arm with its probability given those above it."""

    id: str
    slots: list[ArmProbability]
    version: int


class RankingRewards(msgspec.Struct, forbid_unknown_fields=True):
    """Rewards of a list's slots: by arm (or one value per slot, null for none), by slot, or some by each."""

    rewards: Annotated[Any, schema_only(anyOf=[
        {"type": "object", "minProperties": 1, "additionalProperties": {"type": "number"}},
        {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "number"}, {"type": "null"}]}},
    ])] | Unset = msgspec.UNSET  # fmt: skip
    slots: Annotated[dict[str, Number], schema_only(minProperties=1)] | Unset = msgspec.UNSET
    final: bool = False


class SlotShown(msgspec.Struct):
    """A slot of a list and its rewards so far."""

    arm: str
    probability: Chance
    reward: float | None
    closed: bool


class RankingShown(msgspec.Struct):
    """A journaled list and its status."""

    id: str
    slots: list[SlotShown]


class DecisionsRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A batch of decisions, all or none."""

    decisions: Annotated[list[RawDecision], schema_only(maxItems=1000)]


class CatalogueRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/catalogues``."""

    arms: RawArms


class Decisions(msgspec.Struct):
    """The answers to a batch, in the order of the requests."""

    decisions: list[DecisionAnswer]


class Rewards(msgspec.Struct):
    """The status of each reward of a batch, in order."""

    rewards: list[RewardAnswer]


class DecisionShown(msgspec.Struct):
    """A decision, its request and its status."""

    id: str
    arm: str
    probability: float
    probabilities: list[ArmProbability]
    version: int
    context: Features
    deadline: int
    active: bool
    rewards: int
    reward: float | None
    closed: bool
    status: str
    age: float
    outcomes: list[OutcomeShown]


class RewardRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A reward and, if given, a cost."""

    value: Number
    cost: Cost | Unset = msgspec.UNSET
    final: bool = False


class NamedReward(msgspec.Struct, forbid_unknown_fields=True):
    """A reward in a batch, with the id of its decision, or of a list and the slot that it is of."""

    id: Name
    value: Number
    cost: Cost | Unset = msgspec.UNSET
    final: bool = False
    slot: Annotated[int, schema_only(minimum=0, maximum=49)] | Unset = msgspec.UNSET


class RewardsRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A batch of rewards, all or none."""

    rewards: Annotated[list[NamedReward], schema_only(maxItems=1000)]


class ExplanationAnswer(msgspec.Struct):
    """By arm its estimate, width and probability; by arm and feature its contribution."""

    arms: dict[str, dict[str, float]]
    contributions: dict[str, dict[str, float]]


class LessonRow(msgspec.Struct):
    """A decision made elsewhere, with its reward."""

    arms: Arms
    arm: Name
    probability: Chance
    reward: Number
    context: Features | Unset = msgspec.UNSET


class LessonsRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Rows of a log for a warm start, weighted by their probabilities."""

    rows: list[LessonRow]


class Learnt(msgspec.Struct):
    """The number of rows learnt."""

    learnt: int


class SettingsShown(msgspec.Struct):
    """The settings in force."""

    window: float
    default: float
    rule: Rule
    learn: Learn
    apprentice: bool
    drift: Drift
    new_arms: Share


class SettingsChange(msgspec.Struct, forbid_unknown_fields=True):
    """Settings to change for later decisions; the others stay."""

    window: Seconds | Unset = msgspec.UNSET
    default: Number | Unset = msgspec.UNSET
    rule: Rule | Unset = msgspec.UNSET
    learn: Learn | Unset = msgspec.UNSET
    apprentice: bool | Unset = msgspec.UNSET
    drift: Drift | Unset = msgspec.UNSET
    new_arms: Share | Unset = msgspec.UNSET
    epsilon: Share | Unset = msgspec.UNSET


class AgentShown(msgspec.Struct):
    """An application and its model."""

    name: str
    agent: str
    version: int
    lessons: int
    refused: int
    features: dict[str, Any]
    arms: list[str]
    settings: SettingsShown


class Agents(msgspec.Struct):
    """The list of applications that the key may read."""

    agents: list[AgentShown]


class ApplicationShown(msgspec.Struct):
    """An application's definition."""

    name: str
    agent: str
    lessons: int
    version: int


class CatalogueShown(msgspec.Struct):
    """The hash that names these arms in decisions."""

    catalogue: str
    arms: int


class ErasureRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A subject to erase, by a value at a key of contexts or arms."""

    key: Annotated[str, schema_only(minLength=1)]
    value: Any


class ErasureAnswer(msgspec.Struct):
    """The erasure's event; what was searched, found and deleted (events; null: the leading process does it); the rest.

    ``until``: when the rest will be deleted; ``elsewhere``: what the service cannot reach.
    """

    erasure: int
    searched: dict[str, int]
    found: dict[str, int]
    deleted: int | None
    remaining: int
    until: str
    elsewhere: list[str]


class HealthAnswer(msgspec.Struct):
    """The health of the service."""

    status: str
    reasons: list[str] | Unset = msgspec.UNSET
    unavailable: list[str] | Unset = msgspec.UNSET
    databases: dict[str, str] | Unset = msgspec.UNSET
