"""The part of an algorithm's page that follows from its class: call, parameters, bound, picture, reference, erratum."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache

from armwise.theory.algorithm_table import agents, math
from armwise.theory.assumption_filter import Verdicts, verdicts
from docsite import docstrings, formula, races
from docsite.parameters import words

ROOMS = {
    "auto": "Nothing to choose",
    "arms": "Without contexts",
    "wrappers": "Around another agent",
    "ensembles": "Over several agents",
    "linear": "Linear rewards",
    "kernel": "Smooth rewards",
    "oracle": "Classes of policies, and regression",
    "experts": "Expert advice",
    "stopping": "Find the best arm and stop",
    "budget": "Costs, budgets and a safe baseline",
}

_SIGNS = {"sqrt": "√", "alpha": "α", "gamma": "γ", "delta": "δ", "epsilon": "ε", "O~": "Õ", "d~": "d̃", "_": "\\\\_"}


@cache
def advice() -> Verdicts:
    """Verdicts that assumes nothing: it has a call for every agent."""
    return verdicts()


def room(name: str) -> str:
    """The room of an agent."""
    return agents()[name].__module__.split(".")[2]  # armwise.agents.ROOM


def by_room() -> dict[str, list[str]]:
    """The agents' names under each room's title, in the survey's order."""
    return {title: [name for name in agents() if room(name) == key] for key, title in ROOMS.items()}


def regret(name: str) -> str:
    """An agent's regret as its row has it: drawn if it is a formula, as text if it has words."""
    text = agents()[name].theory.regret
    if "\\text" in math(text):
        for spelled, sign in _SIGNS.items():
            text = re.sub(re.escape(spelled), sign, text)
        return text
    return formula.inline(math(text).strip("$").replace(" ", r"\,"))


def facts(name: str) -> str:
    """Markdown for the end of an agent's page."""
    return "\n\n".join([_make(name), _parameters(name), _bound(name), _measured(name), _source(name)])


def _make(name: str) -> str:
    view = agents()[name].sees
    return f"""## Make one

```python
import numpy as np
import armwise as aw

{_fitted(f"agent = {advice()[name].call}")}
```

It sees `"{view}"` ([what that means](../design.md#what-an-agent-sees)). From its docstring:

{docstrings.prose(agents()[name])}"""


def _fitted(line: str, width: int = 100) -> str:
    """A call that is too long for its column, with one argument per line."""
    if len(line) <= width:
        return line
    tree = ast.parse(line).body[0]
    assert isinstance(tree, ast.Assign) and isinstance(tree.value, ast.Call)
    call = tree.value
    arguments = [ast.get_source_segment(line, each) for each in (*call.args, *call.keywords)]
    return (
        f"agent = {ast.get_source_segment(line, call.func)}(\n" + "".join(f"    {each},\n" for each in arguments) + ")"
    )


def _parameters(name: str) -> str:
    rows = ["| parameter | default | meaning |", "|---|---|---|"]
    for each in inspect.signature(agents()[name]).parameters.values():
        default = "" if each.default is each.empty else f"`{each.default!r}`"
        rows.append(f"| `{each.name}` | {default} | {words(name, each.name)} |")
    return "## Parameters\n\n" + "\n".join(rows)


def _bound(name: str) -> str:
    theory, yes = agents()[name].theory, {True: "yes", False: "no"}
    rows = [
        ("Regret", regret(name)),
        ("Against", theory.comparator),
        ("Assumes", theory.assumes.replace("|", "\\|")),
        ("With high probability", yes[theory.high_probability]),
        ("Infinite classes of policies", yes[theory.infinite_policies]),
        ("Needs the horizon for its bound", yes[theory.needs_horizon]),
        ("Rewards chosen by an adversary", yes[theory.adversarial]),
    ]
    lines = [f"| {key} | {value} |" for key, value in rows]
    text = "## Bound\n\n" + "\n".join([lines[0], "|---|---|", *lines[1:]])
    if theory.regret_bound is None:
        return f"{text}\n\nNo bound with constants is known for it."
    function = theory.regret_bound.__name__
    return (
        f"{text}\n\nWith its constants it is a function, `aw.{name}.theory.regret_bound` "
        f"([`bounds.{function}`](../reference/bounds.md#{function})):\n\n{docstrings.prose(theory.regret_bound)}"
    )


def _measured(name: str) -> str:
    return f"## Measured\n\n{races.pictures(name)}"


def _source(name: str) -> str:
    theory = agents()[name].theory
    row = theory.survey_row
    where = f"Survey section {theory.section}" if theory.section[0].isdigit() else theory.section.capitalize()
    lines = [f"{where}{f', row “{row}” of its table' if row else ''}. {theory.reference}."]
    if theory.erratum:
        lines.append(f'!!! note "Erratum"\n    {theory.erratum}. See [all errata](../errata.md).')
    module = agents()[name].__module__
    page = f"../reference/{room(name)}.md#{name.lower()}"
    lines.append(f"Source: `{module.replace('.', '/')}.py`. [API reference]({page}).")
    return "## Reference\n\n" + "\n\n".join(lines)
