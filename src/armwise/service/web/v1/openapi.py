"""The OpenAPI 3.1 document, generated from the routes and the structs of their requests and answers."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any, get_args

import msgspec

from armwise import __version__
from armwise.service.web.http import Route
from armwise.service.web.v1.examples import EXAMPLES
from armwise.service.web.v1.schemas import BY_HAND, Error, Fault

_REF = "#/components/schemas/{name}"
_NAME = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": r"^[^\x00-\x1f\x7f]*$"}
_RETRY = {
    "name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string", "maxLength": 256},
    "description": "The same key again, for the same operation, gets the same answer; nothing is counted twice.",
}  # fmt: skip
_KEYED = (400, 401, 403, 404, 503)
_WRITING = (*_KEYED, 409, 413)
_SAID = {
    200: "done",
    201: "made, and durable",
    204: "done",
    304: "not modified",
    400: "bad input",
    401: "no valid key",
    402: "the rest of the budget does not cover a decision: none was made",
    403: "not allowed",
    404: "unknown",
    409: "it contradicts what is there",
    413: "too large",
    501: "not installed here",
    503: "not now: try again",
}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the document of these routes; it states once that ``/apps/{application}`` may precede a path."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(_path(route), {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "armwise",
            "version": __version__,
            "description": "Decisions that are durable before they are answered, and exact in what they say.",
        },
        "servers": [
            {"url": "/", "description": "the default application, or the only one that the key is for"},
            {
                "url": "/apps/{application}",
                "description": "an application by its name",
                "variables": {"application": {"default": "default"}},
            },
        ],
        "security": [{"bearer": []}, {"subscription": []}],
        "paths": paths,
        "components": {
            "schemas": _schemas(tuple(sorted(_structs(routes), key=lambda each: each.__name__))),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "subscription": {"type": "apiKey", "in": "header", "name": "Ocp-Apim-Subscription-Key"},
            },
        },
    }


def _structs(routes: Sequence[Route]) -> set[type]:
    found: set[type] = {Error, Fault}
    for route in routes:
        for each in (route.takes, *route.gives.values()):
            found |= {inner for inner in (get_args(each) or (each,)) if isinstance(inner, type)}
    return found


@functools.lru_cache(maxsize=4)
def _schemas(structs: tuple[type, ...]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components(structs, ref_template=_REF)
    for name, example in EXAMPLES.items():
        if name in components:
            components[name]["examples"] = [example]
    for schema in components.values():  # leave out doctests
        if not schema.get("required", True):
            del schema["required"]
        if "description" in schema:
            schema["description"] = " ".join(schema["description"].partition(">>>")[0].split()).replace("``", "`")
    return components | BY_HAND


def _path(route: Route) -> str:
    names = iter(("id", "second"))
    return "/" + re.sub(r"\{\}", lambda found: f"{{{next(names)}}}", route.path)


def operation_id(route: Route) -> str:
    """Return an operation's id from its method and path."""
    words = re.findall(r"[A-Za-z0-9]+", route.path.replace("{}", "id"))
    return route.method.lower() + ("".join(word[:1].upper() + word[1:] for word in words) or "Page")


def _content(answer: type | str | None) -> dict[str, Any]:
    if answer is None:
        return {}
    if isinstance(answer, str):
        schema: dict[str, Any] = {} if answer == "application/json" else {"type": "string"}
        return {"content": {answer: {"schema": schema}}}
    listed = get_args(answer)  # an array of structs
    schema = {"$ref": _REF.format(name=(listed[0] if listed else answer).__name__)}
    return {"content": {"application/json": {"schema": {"type": "array", "items": schema} if listed else schema}}}


def _operation(route: Route) -> dict[str, Any]:
    told = (route.handler.__doc__ or "").partition("\n")[0]
    summary = re.sub(r"^``[^`]*``:? ?", "", told).replace("``", "`").rstrip(".") or route.path
    writes = route.method not in ("GET", "HEAD")
    answers: dict[str, Any] = {str(status): {"description": _SAID[status]} | _content(answer)
                               for status, answer in (route.gives or {200: "application/json"}).items()}  # fmt: skip
    if route.role:
        for status in _WRITING if writes else _KEYED:
            answers.setdefault(str(status), {"description": _SAID[status]} | _content(Error))
        if route.role == "decide" and writes and route.path != "v1/catalogues":
            answers["402"] = {"description": _SAID[402]} | _content(Error)
    if route.path == "v1/log":
        answers["200"]["content"]["application/vnd.apache.parquet"] = {"schema": {"type": "string", "format": "binary"}}
        answers["501"] = {"description": _SAID[501]} | _content(Error)
    if route.path == "v1/decisions":
        answers["201"]["links"] = _links()
    operation: dict[str, Any] = {"summary": summary, "operationId": operation_id(route), "responses": answers}
    if route.takes is not None:
        operation["requestBody"] = {"required": True} | _content(route.takes)
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": _NAME}
        for name in re.findall(r"\{(\w+)\}", _path(route))
    ]
    parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in route.query.items()]
    if route.role in ("decide", "reward") and route.method == "POST" and route.path != "v1/catalogues":
        parameters.append(_RETRY)
    if parameters:
        operation["parameters"] = parameters
    if not route.role:
        operation["security"] = []
    return operation


def _links() -> dict[str, Any]:
    named = {
        "find": "getV1DecisionsId",
        "reward": "postV1DecisionsIdReward",
        "activate": "postV1DecisionsIdActivate",
    }
    of_answer = {"id": "$response.body#/id"}
    return {name: {"operationId": operation, "parameters": of_answer} for name, operation in named.items()}
