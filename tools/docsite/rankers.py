"""The part of a ranker's page that follows from its class: its docstring, feedback model, bound and reference."""

from __future__ import annotations

import armwise as aw
from docsite import docstrings


def facts(name: str) -> str:
    """Markdown for the end of a ranker's page."""
    ranker = getattr(aw, name)
    theory = ranker.theory
    rows = [
        ("Feedback", f'`"{ranker.feedback}"`' if name != "SlotBySlot" else "as it is told"),
        ("Regret", theory.regret),
        ("Against", theory.comparator),
        ("Assumes", theory.assumes),
        ("Needs the horizon", "yes" if theory.needs_horizon else "no"),
    ]
    lines = ["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows)]
    bound = "No bound with constants is known for it."
    if theory.regret_bound is not None:
        function = theory.regret_bound.__name__
        link = f"[`{function}`](../reference/ranking_bounds.md#{function})"
        bound = f"As a function, `aw.{name}.theory.regret_bound` ({link}):\n\n{docstrings.prose(theory.regret_bound)}"
    where = f"{theory.reference}. [API reference](../reference/ranking.md#{name.lower()})."
    return "\n\n".join(
        ["## From its docstring", docstrings.prose(ranker), "## Bound", "\n".join(lines), bound, "## Reference", where]
    )
