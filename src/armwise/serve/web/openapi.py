"""The OpenAPI 3.1 document of the service's own API."""

from __future__ import annotations

from typing import Any

from armwise import __version__
from armwise.serve.journal.events import LARGEST, LEARN, RULES

_NAME = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": r"^[^\x00-\x1f\x7f]*$"}
_ID = {"name": "id", "in": "path", "required": True, "schema": _NAME}
_RETRY = {
    "name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string", "maxLength": 256},
    "description": "The same key again, for the same operation, gets the same answer; nothing is counted twice.",
}  # fmt: skip
_NUMBER = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}
_COST = {
    "description": "What the decision cost: a number, or one per resource.",
    "anyOf": [_NUMBER, {"type": "array", "items": _NUMBER, "minItems": 1}],
}
_TABLE = {
    "type": "object",
    "additionalProperties": {"type": "object", "additionalProperties": {"type": "number"}},
}
_OBJECT = {"$ref": "#/components/schemas/Features"}
_FEATURES = {"anyOf": [_OBJECT, {"type": "array", "items": _OBJECT}]}


def _listed(name: str, most: int | None = None) -> dict[str, Any]:
    items: dict[str, Any] = {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}}
    return items if most is None else items | {"maxItems": most}


SCHEMAS: dict[str, Any] = {
    "Error": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            }
        },
    },
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
            _OBJECT,
        ]
    },
    "Arm": {
        "description": "An id, or an id with features.",
        "anyOf": [
            _NAME,
            {
                "type": "object",
                "required": ["id"],
                "additionalProperties": False,
                "properties": {"id": _NAME, "features": _FEATURES},
            },
        ],
    },
    "DecisionRequest": {
        "type": "object",
        "required": ["arms"],
        "additionalProperties": False,
        "properties": {
            "arms": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Arm"}},
            "context": {**_FEATURES, "description": "Numbers, strings, booleans, lists, nested; null is missing."},
            "id": _NAME,
            "excluded": {"type": "array", "items": {"type": "string"}, "description": "Ids of arms not to play."},
            "defer": {"type": "boolean", "description": "Learn only if it is activated."},
        },
    },
    "ArmProbability": {
        "type": "object",
        "required": ["arm", "probability"],
        "properties": {"arm": {"type": "string"}, "probability": {"type": "number", "minimum": 0, "maximum": 1}},
    },
    "Decision": {
        "type": "object",
        "required": ["id", "arm", "probability", "probabilities", "version"],
        "properties": {
            "id": {"type": "string"},
            "arm": {"type": "string"},
            "probability": {"type": "number", "exclusiveMinimum": 0, "maximum": 1.000000001},
            "probabilities": {"type": "array", "items": {"$ref": "#/components/schemas/ArmProbability"}},
            "version": {"type": "integer", "description": "The event up to which the model had learnt."},
        },
    },
    "Outcome": {
        "type": "object",
        "description": "A reward as it came; a late one is kept and not learnt.",
        "required": ["value", "time", "late"],
        "properties": {
            "value": {"type": "number"},
            "time": {"type": "string", "format": "date-time"},
            "late": {"type": "boolean"},
            "cost": _COST,
        },
    },
    "JournaledDecision": {
        "allOf": [{"$ref": "#/components/schemas/Decision"}],
        "type": "object",
        "required": ["context", "deadline", "active", "rewards", "reward", "closed", "outcomes"],
        "properties": {
            "context": _FEATURES,
            "deadline": {"type": "integer"},
            "active": {"type": "boolean"},
            "rewards": {"type": "integer", "description": "How many came within the window."},
            "outcomes": {"type": "array", "items": {"$ref": "#/components/schemas/Outcome"}},
            "reward": {"type": ["number", "null"]},
            "closed": {"type": "boolean"},
        },
    },
    "RewardRequest": {
        "type": "object",
        "required": ["value"],
        "additionalProperties": False,
        "properties": {"value": _NUMBER, "cost": _COST},
    },
    "RewardAnswer": {
        "type": "object",
        "required": ["id", "late", "learnt", "repeated"],
        "properties": {
            "id": {"type": "string"},
            "late": {"type": "boolean"},
            "learnt": {"type": "boolean"},
            "repeated": {"type": "boolean"},
        },
    },
    "DecisionsRequest": {
        "type": "object",
        "required": ["decisions"],
        "additionalProperties": False,
        "properties": {"decisions": _listed("DecisionRequest", 1000)},
    },
    "Decisions": {
        "type": "object",
        "required": ["decisions"],
        "properties": {"decisions": _listed("Decision")},
    },
    "RewardsRequest": {
        "type": "object",
        "required": ["rewards"],
        "additionalProperties": False,
        "properties": {
            "rewards": {
                "type": "array",
                "maxItems": 1000,
                "items": {
                    "type": "object",
                    "required": ["id", "value"],
                    "additionalProperties": False,
                    "properties": {"id": _NAME, "value": _NUMBER, "cost": _COST},
                },
            }
        },
    },
    "Rewards": {"type": "object", "required": ["rewards"], "properties": {"rewards": _listed("RewardAnswer")}},
    "Explanation": {
        "type": "object",
        "description": "By arm its estimate, width and probability; by arm and feature its contribution.",
        "required": ["arms", "contributions"],
        "properties": {"arms": _TABLE, "contributions": _TABLE},
    },
    "Lessons": {
        "type": "object",
        "description": "Rows of a log, learnt as if they had been decided here, weighted by their probabilities.",
        "required": ["rows"],
        "additionalProperties": False,
        "properties": {
            "rows": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["arms", "arm", "probability", "reward"],
                    "properties": {
                        "context": _FEATURES,
                        "arms": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Arm"}},
                        "arm": _NAME,
                        "probability": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                        "reward": _NUMBER,
                    },
                },
            }
        },
    },
    "Learnt": {"type": "object", "required": ["learnt"], "properties": {"learnt": {"type": "integer"}}},
    "Settings": {
        "type": "object",
        "required": ["window", "default", "rule", "apprentice"],
        "properties": {
            "window": _NUMBER,
            "default": _NUMBER,
            "rule": {"enum": list(RULES)},
            "learn": {"enum": list(LEARN)},
            "apprentice": {"type": "boolean"},
        },
    },
    "SettingsChange": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "window": {"type": "number", "exclusiveMinimum": 0, "maximum": 315360000},
            "default": _NUMBER,
            "rule": {"enum": list(RULES)},
            "learn": {"enum": list(LEARN)},
            "apprentice": {"type": "boolean"},
            "epsilon": {"type": "number", "minimum": 0, "maximum": 1},
        },
    },
    "Agents": {
        "type": "object",
        "required": ["agents"],
        "properties": {
            "agents": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "agent", "version", "lessons", "refused", "settings"],
                    "properties": {
                        "name": {"type": "string"},
                        "agent": {"type": "string"},
                        "version": {"type": "integer"},
                        "lessons": {"type": "integer"},
                        "refused": {"type": "integer"},
                        "settings": {"$ref": "#/components/schemas/Settings"},
                    },
                },
            }
        },
    },
    "Status": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}},
}


def _json(name: str, description: str) -> dict[str, Any]:
    return {
        "description": description,
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}},
    }


_KEYED = ("400", "401", "403", "404", "503")
_WRITING = (*_KEYED, "409", "413")
_SAID = {
    "400": "bad input",
    "401": "no valid key",
    "403": "not allowed",
    "404": "unknown",
    "409": "other content",
    "413": "too large",
    "503": "not now",
}


def _operation(
    summary: str,
    operationId: str,
    answers: dict[str, Any],
    errors: tuple[str, ...] = _KEYED,
    body: str = "",
    parameters: Any = (),
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": summary,
        "operationId": operationId,
        "responses": answers | {code: _json("Error", _SAID[code]) for code in errors},
    }
    if body:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{body}"}}},
        }
    if parameters:
        operation["parameters"] = list(parameters)
    if not errors:
        operation["security"] = []
    return operation


def _operations() -> dict[tuple[str, str], dict[str, Any]]:
    text = {"schema": {"type": "string"}}
    whole = {"type": "integer", "minimum": 0, "maximum": 10**18}
    return {
        ("post", "/v1/decisions"): {
            "summary": "Decide",
            "operationId": "decide",
            "answers": {
                "201": _json("Decision", "decided") | {"links": _links()},
                "200": _json("Decision", "the same answer again"),
            },
            "errors": _WRITING,
            "body": "DecisionRequest",
            "parameters": [_RETRY],
        },
        ("get", "/v1/decisions/{id}"): {
            "summary": "One decision",
            "operationId": "find",
            "answers": {"200": _json("JournaledDecision", "as journaled")},
            "parameters": [_ID],
        },
        ("post", "/v1/decisions/{id}/reward"): {
            "summary": "Give a reward",
            "operationId": "reward",
            "answers": {"200": _json("RewardAnswer", "kept")},
            "errors": _WRITING,
            "body": "RewardRequest",
            "parameters": [_ID, _RETRY],
        },
        ("post", "/v1/decisions/{id}/activate"): {
            "summary": "A deferred decision was shown",
            "operationId": "activate",
            "answers": {"200": _json("RewardAnswer", "kept")},
            "errors": _WRITING,
            "parameters": [_ID, _RETRY],
        },
        ("post", "/v1/batch/decisions"): {
            "summary": "Decide several times, in one commit: all or none",
            "operationId": "decideMany",
            "answers": {"200": _json("Decisions", "decided, in the order asked")},
            "errors": _WRITING,
            "body": "DecisionsRequest",
            "parameters": [_RETRY],
        },
        ("post", "/v1/batch/rewards"): {
            "summary": "Give several rewards, in one commit: all or none",
            "operationId": "rewardMany",
            "answers": {"200": _json("Rewards", "kept, in the order given")},
            "errors": _WRITING,
            "body": "RewardsRequest",
            "parameters": [_RETRY],
        },
        ("post", "/v1/explanations"): {
            "summary": "Why an arm would be likely: estimates, and what each feature contributes; nothing is decided",
            "operationId": "explain",
            "answers": {"200": _json("Explanation", "from the model of now")},
            "errors": (*_KEYED, "413"),
            "body": "DecisionRequest",
        },
        ("post", "/v1/lessons"): {
            "summary": "Learn the rows of a log first (warm start)",
            "operationId": "teach",
            "answers": {"200": _json("Learnt", "how many rows were learnt")},
            "errors": _WRITING,
            "body": "Lessons",
            "parameters": [_RETRY],
        },
        ("get", "/v1/agents"): {
            "summary": "The applications",
            "operationId": "agents",
            "answers": {"200": _json("Agents", "those that the key may read")},
        },
        ("patch", "/v1/settings"): {
            "summary": "Change settings",
            "operationId": "settings",
            "answers": {"200": _json("Settings", "now in force")},
            "errors": _WRITING,
            "body": "SettingsChange",
        },
        ("get", "/v1/log"): {
            "summary": "The log: a line or a row for each decision, ready for armwise evaluate",
            "operationId": "log",
            "answers": {
                "200": {
                    "description": "JSON lines, or a Parquet file; sent while it is read",
                    "content": {
                        "application/x-ndjson": text,
                        "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
                    },
                },
                "501": _json("Error", "Parquet, where pyarrow is not installed"),
            },
            "parameters": [
                {"name": "format", "in": "query", "schema": {"enum": ["json", "dsjson", "parquet"]}},
                {"name": "after", "in": "query", "schema": whole},
                {"name": "limit", "in": "query", "schema": whole},
            ],
        },
        ("get", "/metrics"): {
            "summary": "For Prometheus",
            "operationId": "metrics",
            "answers": {"200": {"description": "text format", "content": {"text/plain": text}}},
        },
        ("get", "/healthz"): {
            "summary": "Alive",
            "operationId": "healthz",
            "answers": {"200": _json("Status", "alive")},
            "errors": (),
        },
        ("get", "/readyz"): {
            "summary": "Ready",
            "operationId": "readyz",
            "answers": {"200": _json("Status", "ready"), "503": _json("Status", "not ready")},
            "errors": (),
        },
    }


def document() -> dict[str, Any]:
    """The whole document.

    >>> document()["openapi"]
    '3.1.0'
    """
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "armwise",
            "version": __version__,
            "description": "Decisions that are durable before they are answered, and exact in what they say.",
        },
        "security": [{"bearer": []}, {"subscription": []}],
        "paths": {path: {method: _operation(**operation)} for (method, path), operation in _operations().items()},
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "subscription": {"type": "apiKey", "in": "header", "name": "Ocp-Apim-Subscription-Key"},
            },
        },
    }


def _links() -> dict[str, Any]:
    return {
        name: {"operationId": name, "parameters": {"id": "$response.body#/id"}}
        for name in ("find", "reward", "activate")
    }
