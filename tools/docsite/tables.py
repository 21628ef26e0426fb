"""Tables that the README and the site share, from the agents' own rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import armwise as aw
from armwise.theory.algorithm_table import agents
from docsite.agents import by_room, regret

_TICK = {True: "✓", False: ""}


def readme_table() -> str:
    """The survey's algorithms and where each lives, for the README (``make docs`` says if it is out of date)."""
    rows = ["| survey | algorithm | agent | lives in |", "|---|---|---|---|"]
    for row in (row for row in aw.table().rows if row.agent in agents()):  # rankers have pages of their own
        where = agents()[row.agent].__module__.replace("armwise.", "").replace(".", "/") + ".py"
        section = row.section if row.section[0].isdigit() else "beyond"
        page = f"[`aw.{row.agent}`](docs/algorithms/{row.agent}.md)"
        algorithm = _SPELLED.get(row.agent) or row.survey_row or row.agent
        rows.append(f"| {section} | {algorithm} | {page} | [`{where}`](src/armwise/{where}) |")
    return "\n".join(rows)


def compiled_table() -> str:
    """Which agents play blocks in compiled code, by what the call of each one's theory makes."""
    rows = ["| for | compiled `play` | `play` is a Python loop |", "|---|---|---|"]
    sizes = {"T": 1000, "K": 3, "d": 3, "N": 3, "R": 0.1, "S": 1.0, "delta": 0.05}
    for title, names in by_room().items():
        compiled: list[str] = []
        looped: list[str] = []
        for name in names:
            agent = eval(agents()[name].theory.call.format(**sizes), {"aw": aw, "np": np})
            (compiled if agent.compiled else looped).append(name)
        rows.append(f"| {title[0].lower()}{title[1:]} | {', '.join(compiled)} | {', '.join(looped)} |")
    return "\n".join(rows)


_SPELLED = {
    "Exp3": "EXP3", "UCB1": "UCB1", "BetaThompson": "Thompson sampling, Beta prior", "EpsilonGreedy": "ε-greedy",
    "PerContext": "one bandit per context", "PolicyArms": "one arm per policy", "Doubling": "doubling trick",
    "Explore": "exploration floor", "LinREL": "LinREL", "SupLinREL": "SupLinREL", "CoFineUCB": "CoFineUCB",
    "LinThompson": "Thompson sampling, linear", "LogisticThompson": "Thompson sampling, logistic",
    "SpectralUCB": "Spectral bandits", "GPUCB": "GP-UCB", "CGPUCB": "CGP-UCB", "SupKernelUCB": "SupKernelUCB",
    "KernelUCB": "KernelUCB", "PolicyElimination": "Policy Elimination", "OnlineCover": "Online Cover",
    "Advised": "advice from policies", "VE": "VE",
}  # fmt: skip


def algorithms_index() -> str:
    """The page that lists all algorithms: the survey's table, with a link each."""
    parts = [
        "---\nhide: [toc]\n---\n\n# Algorithms",
        "Every agent of the survey and those beyond it, each with its idea, formula, parameters, bound, and regret as "
        "measured when these pages were built. The columns are the survey's own; `armwise table` prints them.",
    ]
    rows = {row.agent: row for row in aw.table().rows}
    for title, names in by_room().items():
        lines = ["| agent | section | regret | high probability | infinite class | needs T | adversary |",
                 "|---|---|---|:-:|:-:|:-:|:-:|"]  # fmt: skip
        for name in names:
            row = rows[name]
            section = row.section if row.section[0].isdigit() else "–"
            flags = (row.high_probability, row.infinite_policies, row.needs_horizon, row.adversarial)
            lines.append(
                f"| [{name}]({name}.md) | {section} | {regret(name)} | {' | '.join(_TICK[flag] for flag in flags)} |"
            )
        parts.append(f"## {title}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


# Situations a reader is in, in words, and how aw.advise is asked about them.
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("An A/B test with clicks", {"n_arms": 4}),
    ("Visitors of a few kinds", {"kinds": 10, "n_arms": 5}),
    ("Visitors with features, a fixed set of arms", {"features": "visitor", "n_arms": 5, "feedback": "amounts"}),
    ("Items with features, clicks", {"features": "arms", "n_arms": 50}),
    ("Items that come and go, amounts", {"features": "arms", "arms_change": True, "feedback": "amounts"}),
    ("The log must be usable afterwards", {"features": "visitor", "n_arms": 5, "log": True}),
    ("Few, costly rounds and a smooth reward",
     {"features": "arms", "smooth": True, "rounds": 300, "feedback": "amounts"}),
    ("Arms that are nodes of a graph", {"graph": True, "n_arms": 100, "feedback": "amounts", "rounds": 1_000}),
    ("A world that drifts", {"features": "arms", "drift": True, "feedback": "amounts"}),
    ("Rewards that come late", {"delay": True, "n_arms": 5}),
    ("Rules or models of your own", {"policies": 20, "n_arms": 3}),
    ("Somebody may play against you", {"adversarial": True, "n_arms": 5}),
    ("Lists of a fixed set of arms", {"slots": 3, "n_arms": 20}),
    ("Lists of items with features", {"slots": 5, "features": "arms", "n_arms": 50}),
]  # fmt: skip


def choices() -> str:
    """What ``aw.advise`` answers in the usual situations."""
    parts = []
    for question, situation in QUESTIONS:
        call = ", ".join(f"{key}={value!r}" for key, value in situation.items())
        rows = ["| | call | why | setting |", "|--:|---|---|---|"]
        for i, each in enumerate(aw.advise(**situation), start=1):
            page = f"{'algorithms' if each.agent in agents() else 'rankings'}/{each.agent}.md"
            rows.append(f"| {i} | [`{each.call}`]({page}) | {each.why} | {each.setting} |")
        parts.append(f"### {question}\n\n`aw.advise({call})`\n\n" + "\n".join(rows))
    return "\n\n".join(parts)
