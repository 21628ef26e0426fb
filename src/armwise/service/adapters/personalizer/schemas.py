"""Requests and answers of Personalizer's administration, slots and evaluations, for the OpenAPI document.

Requests that are read into structs have these in their own modules; ``schema_only`` states what the code checks in its
own words.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from armwise.service.journal.events import RULES
from armwise.service.web.v1.schemas import Name, schema_only

Unset = msgspec.UnsetType
Duration = Annotated[str, schema_only(pattern=r"^P", description="ISO 8601, such as PT10M.")]
Moment = Annotated[str, schema_only(description="ISO 8601, such as 2026-01-31T12:00:00Z.")]
Reward = Annotated[float, schema_only(minimum=-1, maximum=1)]


class SlotAnswer(msgspec.Struct):
    """The action that a slot shows."""

    id: str
    rewardActionId: str


class MultiSlotAnswer(msgspec.Struct):
    """The action of every slot, and the event's id."""

    slots: list[SlotAnswer]
    eventId: str


class SlotReward(msgspec.Struct, forbid_unknown_fields=True):
    """The reward of one slot."""

    slotId: Name
    value: Reward


class MultiSlotReward(msgspec.Struct, forbid_unknown_fields=True):
    """The rewards of an event's slots, each named once."""

    reward: Annotated[list[SlotReward], schema_only(minItems=1, maxItems=50)]


class ServiceConfiguration(msgspec.Struct, forbid_unknown_fields=True):
    """The configuration; what a change leaves out, or says null of, stays as it is."""

    rewardWaitTime: Duration | Unset | None = msgspec.UNSET
    defaultReward: Reward | Unset | None = msgspec.UNSET
    rewardAggregation: Annotated[str, schema_only(description=" or ".join(RULES))] | Unset | None = msgspec.UNSET
    explorationPercentage: Annotated[float, schema_only(minimum=0, maximum=1)] | Unset | None = msgspec.UNSET
    learningMode: Annotated[str, schema_only(enum=["Online", "Apprentice"])] | Unset | None = msgspec.UNSET
    logMirrorEnabled: Annotated[bool, schema_only(const=False)] | Unset | None = msgspec.UNSET
    isAutoOptimizationEnabled: Annotated[bool, schema_only(const=False)] | Unset | None = msgspec.UNSET
    modelExportFrequency: Duration | Unset | None = msgspec.UNSET
    logRetentionDays: Annotated[int, schema_only(minimum=-1, maximum=36500)] | Unset | None = msgspec.UNSET
    modelRetrainDays: Annotated[int, schema_only(minimum=0, maximum=36500)] | Unset | None = msgspec.UNSET
    autoOptimizationFrequency: Duration | Unset | None = msgspec.UNSET
    autoOptimizationStartDate: str | Unset | None = msgspec.UNSET
    lastConfigurationEditDate: Any | Unset = msgspec.UNSET
    latestApprenticeModeMetrics: Any | Unset = msgspec.UNSET
    logMirrorSasUri: Any | Unset = msgspec.UNSET


class PolicyContract(msgspec.Struct, forbid_unknown_fields=True):
    """Learning settings: ``arguments`` describe an agent in JSON, as a configuration file has it."""

    name: Name
    arguments: str


class ModelProperties(msgspec.Struct):
    """When the model began, and when it last learnt."""

    creationTime: Moment
    lastModifiedTime: Moment


LogRange = msgspec.defstruct(  # ``from`` is a word of Python
    "LogRange",
    [("from_", Moment), ("to", Moment)],
    rename={"from_": "from"},
    namespace={"__doc__": "From when to when."},
)


class LogsProperties(msgspec.Struct):
    """From when to when there are decisions."""

    dateRange: LogRange  # type: ignore[valid-type]


class EvaluationRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The request to estimate the rewards of other learning settings between two times."""

    name: str
    startTime: Moment
    endTime: Moment
    policies: Annotated[list[PolicyContract], schema_only(maxItems=5)] | Unset | None = msgspec.UNSET
    enableOfflineExperimentation: Annotated[bool, schema_only(const=False)] | Unset | None = msgspec.UNSET


class ChosenPolicy(msgspec.Struct, forbid_unknown_fields=True):
    """Learning settings of an evaluation, to be put in force."""

    evaluationId: str
    policyName: str


class EvaluationSums(msgspec.Struct):
    """A policy's estimated rewards in a period: sums for IPS and SNIPS, and the estimate."""

    timeStamp: Moment
    averageReward: float | None
    ipsEstimatorNumerator: float
    ipsEstimatorDenominator: float
    snipsEstimatorDenominator: float
    nonZeroProbability: float
    sumOfSquares: float
    aggregateTimeWindow: Duration
    confidenceInterval: float | Unset | None = msgspec.UNSET


class PolicyResult(msgspec.Struct):
    """One policy, in all and over time."""

    name: str
    arguments: str
    policySource: str
    summary: list[EvaluationSums]
    totalSummary: EvaluationSums


class EvaluationJob(msgspec.Struct):
    """An evaluation, as the versions before 2022 tell it."""

    id: str
    jobId: str
    name: str
    startTime: Moment
    endTime: Moment
    creationTime: Moment
    status: Annotated[str, schema_only(enum=["completed", "pending", "failed"])]
    evaluationType: str
    description: str | Unset = msgspec.UNSET
    optimalPolicy: str | Unset = msgspec.UNSET
    policyResults: list[PolicyResult] | Unset = msgspec.UNSET


class ExpectedReward(msgspec.Struct):
    """An estimate, in all or at a time."""

    expectedReward: float | None
    confidenceInterval: list[float | None] | Unset = msgspec.UNSET
    timeStamp: Moment | Unset = msgspec.UNSET


class Timeseries(msgspec.Struct):
    """Estimates over time."""

    data: list[ExpectedReward]


class DatedPolicyResult(msgspec.Struct):
    """One policy, as 2022 tells it."""

    name: str
    arguments: str
    policySource: str
    slotId: str
    summary: ExpectedReward
    timeseries: Timeseries


class EvaluationContent(msgspec.Struct):
    """The results of an evaluation, as 2022 tells them."""

    startTime: Moment
    endTime: Moment
    intervalInMinutes: int
    value: list[DatedPolicyResult]


class DatedEvaluation(msgspec.Struct):
    """An evaluation, as 2022 tells it."""

    id: str
    name: str
    startTime: Moment
    endTime: Moment
    creationTime: Moment
    status: Annotated[str, schema_only(enum=["Succeeded", "Running", "Failed"])]
    evaluationType: str
    description: str | Unset = msgspec.UNSET
    optimalPolicy: str | Unset = msgspec.UNSET
    content: EvaluationContent | Unset = msgspec.UNSET


class DatedEvaluations(msgspec.Struct):
    """All evaluations, as 2022 lists them."""

    value: list[DatedEvaluation]
