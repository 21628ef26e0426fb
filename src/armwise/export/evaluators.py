"""Evaluators of a policy in other languages: one file each, which needs nothing beside it."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from armwise.core.arguments import FilePath, short
from armwise.core.policy_document import Policy, put
from armwise.export.sql import sql

_TEMPLATES = resources.files("armwise.export") / "templates"


def javascript(policy: Policy) -> str:
    """A module for browsers, edge workers and Node: ``probabilities``, ``decide`` and lines for a beacon.

    >>> import armwise as aw, tempfile, os
    >>> policy = aw.UCB1(n_arms=2).export(os.path.join(tempfile.mkdtemp(), "policy.json"))
    >>> "export function decide" in javascript(policy)
    True
    """
    template = (_TEMPLATES / "policy.mjs").read_text(encoding="utf-8")
    body = policy.text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("</", "<\\/")
    return template.replace("/*POLICY*/ null", body, 1).replace('/*CHECKSUM*/ ""', f'"{policy.checksum}"', 1)


def python(policy: Policy) -> str:
    """A module that needs the standard library alone (``python -S``).

    >>> import armwise as aw, tempfile, os
    >>> policy = aw.UCB1(n_arms=2).export(os.path.join(tempfile.mkdtemp(), "policy.json"))
    >>> space = {}; exec(python(policy), space); space["probabilities"]()
    [0.5, 0.5]
    """
    template = (_TEMPLATES / "policy.py").read_text(encoding="utf-8")
    body = repr(policy.text)
    return template.replace('r"""{}"""', body, 1).replace('CHECKSUM = ""', f'CHECKSUM = "{policy.checksum}"', 1)


WRITERS: dict[str, Callable[[Policy], str]] = {
    "json": lambda policy: policy.text + "\n",
    "javascript": javascript,
    "python": python,
    "sqlite": lambda policy: sql(policy, "sqlite"),
    "postgresql": lambda policy: sql(policy, "postgresql"),
}
_ENDINGS = {".json": "json", ".mjs": "javascript", ".js": "javascript", ".py": "python", ".sql": "sqlite"}


def write(policy: Policy, path: FilePath, format: str | None = None) -> None:
    """Write the policy itself, or an evaluator of it, all of it or nothing.

    ``format`` is json, javascript, python, sqlite or postgresql; without it the path's ending says which (.json, .mjs,
    .js, .py; .sql is SQLite's).

    >>> import armwise as aw
    >>> write(aw.UCB1(n_arms=2).policy(), "policy.doc")
    Traceback (most recent call last):
    ...
    ValueError: path must end with .json, .mjs, .js, .py or .sql, or format say what to write, got 'policy.doc'
    """
    if not isinstance(policy, Policy):
        raise ValueError(f"policy must be what export or Policy.load returned, got {short(policy)}")
    found = _ENDINGS.get(Path(path).suffix) if format is None else format
    if found is None:
        raise ValueError(
            f"path must end with .json, .mjs, .js, .py or .sql, or format say what to write, got {os.fspath(path)!r}"
        )
    if found not in WRITERS:
        raise ValueError(f"format must be one of {sorted(WRITERS)}, got {found!r}")
    put(path, WRITERS[found](policy))
