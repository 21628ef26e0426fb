"""The survey's table of algorithms, from the agents' own rows."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

from armwise.core.agent import Agent, Theory

TableFormat = Literal["text", "markdown", "latex", "json"]


@dataclass(frozen=True)
class AlgorithmRow:
    """One agent of the table."""

    agent: str
    survey_row: str
    regret: str
    high_probability: bool
    infinite_policies: bool
    needs_horizon: bool
    adversarial: bool
    section: str
    comparator: str
    assumes: str
    reference: str
    bound: str
    erratum: str


@cache
def agents() -> dict[str, type[Agent]]:
    """Every public agent by name, in the order of the survey's sections."""
    return {name: thing for name, thing in _public_classes() if issubclass(thing, Agent)}


@cache
def rankers() -> dict[str, Any]:
    """Every public ranker by name."""
    import armwise as aw

    return {name: cls for name, cls in _public_classes() if issubclass(cls, aw.Ranker) and cls is not aw.Ranker}


def _public_classes() -> Iterator[tuple[str, type[Any]]]:
    import armwise as aw

    names = [name for name, home in aw._public.homes.items() if home.startswith("armwise.agents.")]
    things = ((name, getattr(aw, name)) for name in names)
    return ((name, thing) for name, thing in things if inspect.isclass(thing))


def _row(name: str, theory: Theory) -> AlgorithmRow:
    bound = theory.regret_bound.__name__ if theory.regret_bound is not None else ""
    same = {field: getattr(theory, field) for field in AlgorithmRow.__dataclass_fields__ if hasattr(theory, field)}
    return AlgorithmRow(agent=name, bound=bound, **same)


# ---------------------------------------------------------------------- the table

_HEADINGS = ("Agent", "Survey's row", "Regret", "With high probability", "Infinite policies", "Needs T", "Adversarial")


class AlgorithmTable(str):
    """The table as text in the requested format; ``rows`` has the same as data."""

    rows: tuple[AlgorithmRow, ...]
    verdicts: Any

    def __new__(cls, text: str, rows: tuple[AlgorithmRow, ...], verdicts: Any = None) -> AlgorithmTable:
        """Hold the text and its rows; with assumptions, also the verdict on every agent."""
        made = super().__new__(cls, text)
        made.rows, made.verdicts = rows, verdicts
        return made

    def __repr__(self) -> str:
        return str(self)


def row_of(name: str) -> AlgorithmRow:
    """The row of one agent, or of one ranker."""
    return _row(name, (agents().get(name) or rankers()[name]).theory)


def formatted(format: str, rows: tuple[AlgorithmRow, ...]) -> AlgorithmTable:
    """These rows as ``text``, ``markdown``, ``latex`` or ``json``."""
    if format not in _FORMATS:
        raise ValueError(f"format must be one of {', '.join(map(repr, _FORMATS))}, got {format!r}")
    return AlgorithmTable(_FORMATS[format](rows), rows)


def _cells(row: AlgorithmRow) -> list[str]:
    flags = (row.high_probability, row.infinite_policies, row.needs_horizon, row.adversarial)
    return [row.agent, row.survey_row, row.regret, *("yes" if flag else "no" for flag in flags)]


def _text(rows: tuple[AlgorithmRow, ...]) -> str:
    headings = ["Agent", "w.h.p.", "infinite", "needs T", "adversarial", "section", "Regret"]
    lines = [[row.agent, *_cells(row)[3:], row.section.split()[0], row.regret] for row in rows]
    widths = [max(len(line[i]) for line in [headings, *lines]) for i in range(len(headings))]
    out = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in [headings, *lines]]
    out.insert(1, "  ".join("-" * width for width in widths))
    out.append(
        "w.h.p.: with high probability; infinite: the class of policies may be; needs T: for its bound, at least."
    )
    return "\n".join(out)


def _markdown(rows: tuple[AlgorithmRow, ...]) -> str:
    lines = [_HEADINGS, ["---"] * len(_HEADINGS), *map(_cells, rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _latex(rows: tuple[AlgorithmRow, ...]) -> str:
    lines = [f"{' & '.join([row.agent, row.survey_row, math(row.regret), *_cells(row)[3:]])} \\\\" for row in rows]
    head = " & ".join(_HEADINGS)
    return "\n".join(
        ["\\begin{tabular}{lllllll}", "\\hline", f"{head} \\\\ \\hline", *lines, "\\hline", "\\end{tabular}"]
    )


def _json(rows: tuple[AlgorithmRow, ...]) -> str:
    return json.dumps([asdict(row) for row in rows], indent=2)


_FORMATS: dict[TableFormat, Callable[[tuple[AlgorithmRow, ...]], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
    "json": _json,
}
_SYMBOLS = {"ln": "\\ln", "lam": "\\lambda"} | {
    name: f"\\{name}" for name in ("alpha", "beta", "gamma", "delta", "epsilon", "eta", "psi", "theta")
}


def math(text: str) -> str:
    """A regret such as ``O(sqrt(T K ln(N / delta)))`` in LaTeX; words stay words."""
    out, closers, in_text = "", [], False
    for token in re.findall(r"sqrt\(|\^\(|[A-Za-z]~|[A-Za-z']+(?:_[A-Za-z]+)?|.", text):
        base, _, index = token.partition("_")
        is_word = (len(token) > 1 and token[0].isalpha() and base not in (*_SYMBOLS, "sqrt(")) and token[-1] != "~"
        if in_text != is_word and token != " ":
            out = out.rstrip() + (" \\text{ " if is_word else " } ")
            in_text = is_word
        if is_word:
            out += token
        elif token in ("sqrt(", "^(", "("):
            out += {"sqrt(": "\\sqrt{", "^(": "^{"}.get(token, token)
            closers.append(")" if token == "(" else "}")
        elif token == ")":
            out += closers.pop()
        elif token.endswith("~"):
            out += f"\\tilde{{{token[0]}}}"
        elif base in _SYMBOLS:
            out += _SYMBOLS[base] + (f"_{{\\mathrm{{{index}}}}}" if index else "")
        else:
            out += token
    return f"${out.strip() + (' }' if in_text else '')}$"
