"""The API reference: one page a room, every public name with its signature, its docstring and its methods."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import armwise as aw
from armwise.theory.advice import Advice, Recommendation, Situation
from armwise.theory.algorithm_table import AlgorithmRow, AlgorithmTable, agents
from armwise.theory.assumption_filter import Verdict, Verdicts
from docsite.docstrings import first_line, prose, signature

# Page: title, what it says first, and the module whose public names it lists (None: armwise's own, by room).
PAGES: dict[str, tuple[str, str, str | None]] = {
    "contract": ("The contract", "Agents, choices, files: what everything else is written against.", None),
    "auto": ("Agents: Auto", "One agent without a parameter that needs a choice.", None),
    "decider": (
        "Decisions with names",
        "`aw.Decider` in memory or a folder, `aw.Client` over HTTP, and what they answer.",
        None,
    ),
    "arms": ("Agents: arms", "Agents without contexts.", None),
    "stopping": ("Agents: stopping", "Agents that find the best arm and stop.", None),
    "wrappers": ("Agents: wrappers", "Agents around another agent.", None),
    "ensembles": ("Agents: ensembles", "Agents over several agents.", None),
    "linear": ("Agents: linear", "Linear and logistic rewards, and their schedules.", None),
    "kernel": ("Agents: kernel", "Smooth rewards, and their schedules.", None),
    "oracle": ("Agents: oracle", "Classes of policies behind an oracle, and regression.", None),
    "experts": ("Agents: experts", "Expert advice.", None),
    "budget": ("Agents: budgets", "Agents under budgets, a safe baseline, and the best that a budget allows.", None),
    "ranking": ("Rankers", "Lists of several arms: the contract and its rankers.", None),
    "kernels": ("Kernels", "`aw.kernels`: kernels, their sums and products.", "armwise.models.kernels"),
    "policies": ("Policies", "`aw.policies`: fixed policies and classes of them.", "armwise.policies"),
    "bounds": ("Bounds", "`aw.bounds`: the survey's regret bounds as functions.", "armwise.theory.bounds"),
    "ranking_bounds": ("Bounds of rankers", "Regret bounds of rankers as functions.", "armwise.theory.ranking_bounds"),
    "environments": ("Worlds", "`aw.environments`: what agents meet in simulation.", "armwise.environments"),
    "offline": ("Offline evaluation", "`aw.offline`: logs, estimators, replay.", "armwise.offline"),
    "racing": ("Races", "`aw.race` and what it returns.", "armwise.racing"),
    "certify": ("Certified regret", "`aw.certificate`: how much was lost at most, from the rounds played.", None),
    "guide": ("Guide", "`aw.table` and `aw.advise`.", None),
}
_ROOM_PAGE = {"core": "contract", "service": "decider", "theory": "guide"}


def pages() -> dict[str, str]:
    """Markdown of every page of the reference, by its address."""
    made = {f"reference/{key}.md": _page(key) for key in PAGES}
    made["reference/index.md"] = _index()
    return made


def _names(key: str) -> dict[str, Any]:
    _, _, module = PAGES[key]
    if module is not None:
        home = import_module(module)
        listed = getattr(home, "__all__", None) or [
            name for name, value in vars(home).items()
            if not name.startswith("_") and getattr(value, "__module__", "").startswith(module)
        ]  # fmt: skip
        return {name: getattr(home, name) for name in listed}
    found = {name: getattr(aw, name) for name, home in aw._public.homes.items() if _page_of(home) == key}
    if key == "guide":
        found |= {
            thing.__name__: thing
            for thing in (Advice, Recommendation, Situation, AlgorithmRow, AlgorithmTable, Verdict, Verdicts)
        }
    return found


def _page_of(home: str) -> str:
    """The page of a public name, from the module that it is imported from."""
    room, _, rest = home.removeprefix("armwise.").partition(".")
    if room == "agents":
        return rest.partition(".")[0]
    return "certify" if rest == "certificate" else _ROOM_PAGE.get(room, room)


def _page(key: str) -> str:
    title, about, _ = PAGES[key]
    parts = [f"# {title}", about]
    for name, thing in _names(key).items():
        parts.append(_entry(name, thing))
    return "\n\n".join(parts) + "\n"


def _entry(name: str, thing: Any) -> str:
    anchor = f"### {name} {{: #{name.lower()} .api }}"
    parts = [anchor, f"```text\n{signature(thing, name)}\n```", prose(thing)]
    if name in agents():
        parts.append(f"[Its page: idea, formula, bound, measured regret](../algorithms/{name}.md).")
    if inspect.isclass(thing):
        methods = [_method(method, value) for method, value in vars(thing).items() if _shown(method, value)]
        if methods:
            parts.append("\n\n".join(methods))
    return "\n\n".join(part for part in parts if part.strip())


def _shown(name: str, value: Any) -> bool:
    plain = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
    plain = plain.fget if isinstance(plain, property) else getattr(plain, "func", plain)
    return not name.startswith("_") and callable(plain) and bool(getattr(plain, "__doc__", None))


def _method(name: str, value: Any) -> str:
    if isinstance(value, property) or hasattr(value, "attrname"):
        function = value.fget if isinstance(value, property) else value.func
        return f"**`.{name}`** &ensp; {prose(function)}"
    kind = (
        "classmethod " if isinstance(value, classmethod) else "staticmethod " if isinstance(value, staticmethod) else ""
    )
    function = value.__func__ if kind else value
    call = signature(function, f".{name}").replace("\n    ", " ").replace(",\n)", ")").replace("( ", "(")
    return f"**`{kind}{call}`**\n\n{prose(function)}"


def _index() -> str:
    lines = ["# API reference", "Everything public, from the docstrings; every example in them runs in the tests."]
    for key, (title, about, _) in PAGES.items():
        rows = "\n".join(
            f"| [`{name}`]({key}.md#{name.lower()}) | {first_line(thing)} |" for name, thing in _names(key).items()
        )
        lines.append(f"## [{title}]({key}.md)\n\n{about}\n\n| name | |\n|---|---|\n{rows}")
    return "\n\n".join(lines) + "\n"
