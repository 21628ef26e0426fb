"""Example requests and answers of the OpenAPI document, by schema name."""

from __future__ import annotations

from typing import Any

_ID = "0199d4c1c2a47be81bcf9e0b2d0e9a51"
_ACTIONS = [
    {"id": "pasta", "features": [{"taste": "salty", "spiceLevel": "medium"}]},
    {"id": "salad", "features": [{"taste": "sour"}]},
]
_CHANCES = [{"arm": "pasta", "probability": 0.05}, {"arm": "salad", "probability": 0.95}]
_DECIDED = {"id": _ID, "arm": "salad", "probability": 0.95, "version": 41, "probabilities": _CHANCES}
_LEARNT = {"id": _ID, "late": False, "learnt": True, "repeated": False}
_SETTINGS = {
    "window": 600.0, "default": 0.0, "rule": "earliest", "learn": "provisional", "apprentice": False, "drift": "forget",
    "new_arms": 0.1,
}  # fmt: skip
_FROM, _TO = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
_POLICY = {"name": "bold", "arguments": "--cb_explore_adf --epsilon 0.3"}
_EVALUATION = {
    "id": "e7", "name": "January", "startTime": _FROM, "endTime": _TO, "creationTime": _TO,
    "evaluationType": "Manual", "optimalPolicy": "Online",
}  # fmt: skip
_VERSION = {
    "name": "bold", "agent": "LinUCB(dim=128, alpha=2.0)", "since": 17, "lessons": 12, "refused": 0, "share": 0.1,
    "leads": False, "learns": "provisional", "unanswered": 0,
    "uplift": {"value": 0.012, "low": -0.004, "high": 0.028, "n": 400, "level": 0.95, "horizon": 3600.0},
}  # fmt: skip

EXAMPLES: dict[str, Any] = {
    "ExperimentRequest": {
        "arms": ["control", "blue"], "metrics": [{"name": "purchase", "window": 86400.0}], "exposure": True,
    },
    "ExperimentChange": {"stop": "blue", "by": "ann", "why": "the verdict"},
    "AssignmentsRequest": {"units": [{"unit": "user-17", "context": {"device": "phone"}}]},
    "ExposuresRequest": {"units": ["user-17"]},
    "UnitErasure": {"unit": "user-17"},
    "AssignmentsAnswer": {
        "assignments": [
            {"unit": "user-17", "arm": "blue", "reason": "assigned", "probability": 0.5, "counted": True}
        ]
    },
    "ExposuresAnswer": {"exposed": [True]},
    "OutcomesAnswer": {"outcomes": [{"unit": "user-17", "metric": "purchase", "status": "taken"}]},
    "ExperimentShown": {"experiment": {"name": "checkout-colour", "state": "running", "arms": ["control", "blue"]}},
    "ExperimentList": {"experiments": [{"name": "checkout-colour", "state": "running"}]},
    "ExperimentVerdictShown": {
        "verdict": {"action": "go on", "sentence": "go on: about 3,400 more units at this rate", "arm": None}
    },
    "OutcomesRequest": {"outcomes": [{"unit": "user-17", "value": 1.0, "metric": "purchase", "id": "order 7"}]},
    "DecisionRequest": {
        "context": {"hour": 9, "device": "phone"},
        "arms": ["pasta", {"id": "salad", "features": {"fresh": True, "price": 7.5}}],
    },
    "DecisionAnswer": _DECIDED,
    "RewardRequest": {"value": 1.0},
    "RewardAnswer": _LEARNT,
    "DecisionsRequest": {"decisions": [{"arms": ["a", "b"]}, {"context": {"hour": 9}, "arms": ["a", "b"]}]},
    "RewardsRequest": {"rewards": [{"id": "e1", "value": 1.0}, {"id": "e2", "value": 0.0}]},
    "LessonsRequest": {
        "rows": [{"context": {"hour": 9}, "arms": ["a", "b"], "arm": "a", "probability": 0.5, "reward": 1.0}]
    },
    "RankingRequest": {"context": {"hour": 9}, "arms": ["pasta", "salad", "soup"], "k": 2},
    "RankingAnswer": {
        "id": "e7", "version": 3,
        "slots": [{"arm": "salad", "probability": 0.9}, {"arm": "pasta", "probability": 0.5}],
    },
    "RankingRewards": {"rewards": {"salad": 1.0}},
    "RankingShown": {
        "id": "e7",
        "slots": [
            {"arm": "salad", "probability": 0.9, "reward": 1.0, "closed": True},
            {"arm": "pasta", "probability": 0.5, "reward": None, "closed": False},
        ],
    },
    "CatalogueRequest": {"arms": ["pasta", {"id": "salad", "features": {"fresh": True}}]},
    "ErasureRequest": {"key": "user", "value": "u7"},
    "SettingsChange": {"window": 3600, "drift": "alert"},
    "Application": {"agent": {"class": "LinUCB", "alpha": 1.0}, "window": 3600},
    "VersionRequest": {"name": "bold", "agent": {"class": "LinUCB", "alpha": 2.0}, "share": 0.1},
    "ShareRequest": {"share": 0.2},
    "Error": {"error": {"code": "BadArgument", "message": "arms must not be empty"}},
    "Decisions": {"decisions": [_DECIDED]},
    "Rewards": {"rewards": [_LEARNT]},
    "DecisionShown": _DECIDED | {
        "context": {"hour": 9, "device": "phone"}, "deadline": 1767604200000, "active": True, "rewards": 1,
        "reward": 1.0, "closed": True, "status": "provisional", "age": 312.5,
        "outcomes": [{"value": 1.0, "time": "2026-01-05T09:03:21Z", "late": False, "final": False}],
    },
    "Learnt": {"learnt": 1},
    "CatalogueShown": {"catalogue": "9c56cc51b374c3ba189210d5b6d4bf57", "arms": 2},
    "ErasureAnswer": {
        "erasure": 57,
        "searched": {"decisions": 56, "lessons": 0, "catalogues": 1},
        "found": {"decisions": 1, "lessons": 0, "catalogues": 0},
        "deleted": 3,
        "remaining": 0,
        "until": "",
        "elsewhere": ["copies and backups of the storage, and exports that were made before"],
    },
    "Agents": {"agents": [{
        "name": "default", "agent": "SquareCB(dim=128, seed=7)", "version": 41, "lessons": 12, "refused": 0,
        "features": {"dim": 128, "interactions": True}, "arms": ["pasta", "salad"], "settings": _SETTINGS,
    }]},
    "SettingsShown": _SETTINGS,
    "ApplicationShown": {"name": "news", "agent": "LinUCB(dim=128, alpha=1.0)", "lessons": 12, "version": 41},
    "HealthAnswer": {"status": "ready"},
    "ExplanationAnswer": {
        "arms": {"pasta": {"score": 0.31}, "salad": {"score": 0.42}},
        "contributions": {"pasta": {"hour": 0.05}, "salad": {"hour": 0.11}},
    },
    "VersionList": {"versions": [_VERSION]},
    "VersionShown": _VERSION,
    # ------------------------------------------------------------------ feature flags
    "FlagEvaluation": {"context": {"targetingKey": "user-7", "plan": "pro"}},
    "Evaluated": {
        "key": "banner", "value": True, "variant": "on", "reason": "SPLIT",
        "metadata": {"decision": "unit-5319-2991725", "probability": 0.95, "version": 12},
    },
    "EvaluatedFlags": {
        "flags": [{"key": "banner", "errorCode": "GENERAL", "errorDetails": "the service is starting or stopping"}]
    },
    "Failed": {"key": "banner", "errorCode": "FLAG_NOT_FOUND", "errorDetails": "no flag is called 'banner'"},
    "Tracked": {"counted": [{"key": "banner", "decision": "unit-5319-2991725", "late": False}]},
    "Tracking": {"name": "click", "context": {"targetingKey": "user-7"}, "details": {"flag": "banner", "value": 1.0}},
    # ------------------------------------------------------------------ Personalizer's dialects
    "RankRequest": {"contextFeatures": [{"timeOfDay": "morning"}], "actions": _ACTIONS, "eventId": "evt-1"},
    "RankAnswer": {
        "ranking": [{"id": "pasta", "probability": 0.05}, {"id": "salad", "probability": 0.95}], "eventId": "evt-1",
        "rewardActionId": "salad",
    },
    "RankReward": {"value": 0.75},
    "MultiSlotRequest": {
        "contextFeatures": [{"timeOfDay": "morning"}], "actions": _ACTIONS,
        "slots": [{"id": "top", "baselineAction": "pasta"}, {"id": "side", "baselineAction": "salad"}],
    },
    "MultiSlotAnswer": {
        "slots": [{"id": "top", "rewardActionId": "salad"}, {"id": "side", "rewardActionId": "pasta"}],
        "eventId": "evt-2",
    },
    "MultiSlotReward": {"reward": [{"slotId": "top", "value": 1.0}, {"slotId": "side", "value": 0.0}]},
    "ServiceConfiguration": {
        "rewardWaitTime": "PT10M", "defaultReward": 0.0, "rewardAggregation": "earliest", "explorationPercentage": 0.2,
        "learningMode": "Online",
    },
    "PolicyContract": _POLICY,
    "ModelProperties": {"creationTime": _FROM, "lastModifiedTime": _TO},
    "LogsProperties": {"dateRange": {"from": _FROM, "to": _TO}},
    "ChosenPolicy": {"evaluationId": "e7", "policyName": "bold"},
    "EvaluationRequest": {"name": "January", "startTime": _FROM, "endTime": _TO, "policies": [_POLICY]},
    "EvaluationJob": _EVALUATION | {"jobId": "e7", "status": "completed"},
    "DatedEvaluation": _EVALUATION | {"status": "Succeeded"},
    "DatedEvaluations": {"value": [_EVALUATION | {"status": "Succeeded"}]},
}  # fmt: skip
