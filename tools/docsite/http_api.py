"""The page of the HTTP API, from the OpenAPI document that the service answers with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from armwise.service.server.app import Service
from armwise.service.server.config import Config
from armwise.service.web.v1.openapi import document

_INTRO = """# HTTP API

What `armwise serve` answers, from the [OpenAPI 3.1](https://spec.openapis.org/oas/v3.1.0) document that it serves
itself at `/openapi.json`: point a client generator or an API browser at that. The first application is at `/v1/...`;
each one, by name, at `/apps/NAME/v1/...`. Keys, roles and limits are in [Operations](operations.md); the same
decisions under Azure Personalizer's addresses are in [Personalizer](personalizer.md); the two calls in a web
application are in [Web frameworks](web-frameworks.md).
"""


def page() -> str:
    """The page as Markdown.

    >>> "POST /v1/decisions" in page()
    True
    """
    api = document(Service(Config(storage=":none:")).router.routes)
    parts = [_INTRO]
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            parts.append(_operation(f"{method.upper()} {path}", operation))
    parts.append("## Schemas")
    for name, schema in api["components"]["schemas"].items():
        parts.append(f"### {name}\n\n```json\n{json.dumps(schema, indent=2)}\n```")
    return "\n\n".join(parts) + "\n"


def _operation(call: str, operation: dict[str, Any]) -> str:
    lines = [f"## {call}", f"{operation.get('summary', '')}. {operation.get('description', '')}".strip()]
    rows = [
        (each["name"], each["in"], "yes" if each.get("required") else "no", each.get("description", ""))
        for each in operation.get("parameters", [])
    ]
    if rows:
        lines.append(_table(["parameter", "in", "required", ""], rows))
    body = operation.get("requestBody", {}).get("content", {})
    if body:
        lines.append("Body: " + ", ".join(f"{_named(content)} (`{kind}`)" for kind, content in body.items()) + ".")
    answers = [
        (code, answer.get("description", ""), ", ".join(map(_named, answer.get("content", {}).values())))
        for code, answer in operation["responses"].items()
    ]
    lines.append(_table(["status", "when", "body"], answers))
    return "\n\n".join(lines)


def _named(content: dict[str, Any]) -> str:
    reference = str(content.get("schema", {}).get("$ref", ""))
    name = reference.rpartition("/")[2]
    return f"[{name}](#{name.lower()})" if name else "text"


def _table(headings: list[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
