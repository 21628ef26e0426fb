"""Docstrings and signatures as Markdown."""

from __future__ import annotations

import inspect
import re
from typing import Any


def prose(thing: Any) -> str:
    """The docstring: text as it stands, doctests and tables drawn with rules as code.

    An arguments section is left out: the table of parameters has it.

    >>> print(prose(prose).splitlines()[0])
    The docstring: text as it stands, doctests and tables drawn with rules as code.
    """
    blocks = re.split(r"\n{2,}", inspect.cleandoc(thing.__doc__ or ""))
    return "\n\n".join(_block(block) for block in blocks if not block.startswith("Args:\n"))


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
    """The call as it is written, one parameter per line where it is long.

    >>> signature(first_line, "first_line")
    'first_line(thing: Any) -> str'
    >>> def greet(name: str | None = "", *, mark: str = "!") -> None: ...
    >>> signature(greet, "greet")
    "greet(name: str | None = '', *, mark: str = '!') -> None"
    """
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    parameters = list(found.parameters.values())
    if parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    inside, starred = [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            inside.append("*")
            starred = True
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        inside.append(_parameter(parameter))
    returns = "" if inspect.isclass(thing) else _annotation(found.return_annotation, " -> ")
    text = f"{name}({', '.join(inside)}){returns}"
    return text if len(text) <= 96 else f"{name}(\n    " + ",\n    ".join(inside) + f",\n){returns}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
    noted = _annotation(parameter.annotation, ": ")
    if parameter.default is parameter.empty:
        return f"{stars}{parameter.name}{noted}"
    return f"{parameter.name}{noted}{' = ' if noted else '='}{parameter.default!r}"


def _annotation(annotation: Any, before: str) -> str:
    """An annotation as it is written in the source, without the names of modules."""
    if annotation is inspect.Signature.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"ForwardRef\('([^']*)'[^)]*\)", r"\1", text)
    text = re.sub(r"\b(?:Optional)\[([^][]*)\]", r"\1 | None", text)
    return before + re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text)
