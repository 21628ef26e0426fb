"""Docstrings and signatures as Markdown."""

from __future__ import annotations

import inspect
import re
from typing import Any


def prose(thing: Any) -> str:
    """The docstring: text as it stands, doctests and tables drawn with rules as code.

    >>> print(prose(prose).splitlines()[0])
    The docstring: text as it stands, doctests and tables drawn with rules as code.
    """
    blocks = re.split(r"\n{2,}", inspect.cleandoc(thing.__doc__ or ""))
    return "\n\n".join(_block(block) for block in blocks)


def _block(block: str) -> str:
    if re.match(r"=+( +=+)+\n", block):
        return f"```text\n{block}\n```"
    text, prompt, code = block.partition(">>> ")
    words = "\n".join(_code(line) for line in text.splitlines())
    return f"{words}\n\n```pycon\n{prompt}{code}\n```".lstrip() if prompt else words


def _code(line: str) -> str:
    """Double backticks and *emphasis* are Markdown too; what only looks like Markdown outside them is escaped."""
    parts = re.split(r"(``.+?``|(?<![\w*])\*\w[\w -]*\*(?!\w))", line)
    return "".join(
        part if i % 2 else re.sub(r"([*_|])", r"\\\1", part).replace("<", "&lt;") for i, part in enumerate(parts)
    )


def first_line(thing: Any) -> str:
    """The docstring's first sentence or line, as Markdown."""
    return _code(inspect.cleandoc(thing.__doc__ or "").partition("\n\n")[0].replace("\n", " "))


def signature(thing: Any, name: str) -> str:
    """The call as it is written, one parameter a line where it is long.

    >>> signature(first_line, "first_line")
    'first_line(thing: Any) -> str'
    """
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    parameters = list(found.parameters.values())
    if parameters and parameters[0].name in ("self", "cls"):
        found = found.replace(parameters=parameters[1:])
    if inspect.isclass(thing):
        found = found.replace(return_annotation=inspect.Signature.empty)
    text = f"{name}{found}".replace("'", "").replace("armwise.agent.", "")
    if len(text) <= 96:
        return text
    inside = [str(p).replace("'", "") for p in found.parameters.values()]
    star = next((i for i, p in enumerate(found.parameters.values()) if p.kind is p.KEYWORD_ONLY), None)
    if star is not None and not any(p.kind is p.VAR_POSITIONAL for p in found.parameters.values()):
        inside.insert(star, "*")
    returns = "" if found.return_annotation is found.empty else f" -> {found.return_annotation!s}".replace("'", "")
    return f"{name}(\n    " + ",\n    ".join(inside) + f",\n){returns}"
