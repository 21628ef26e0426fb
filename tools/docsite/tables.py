"""Tables that the README and the site share, from the agents' own rows."""

from __future__ import annotations

import armwise as aw
from armwise.guide import agents
from docsite.agents import by_room, regret

_TICK = {True: "✓", False: ""}


def readme_table() -> str:
    """The survey's algorithms and where each lives, for the README (``make docs`` says if it is out of date)."""
    rows = ["| survey | algorithm | agent | lives in |", "|---|---|---|---|"]
    for row in aw.table().rows:
        where = agents()[row.agent].__module__.replace("armwise.", "").replace(".", "/") + ".py"
        section = row.section if row.section[0].isdigit() else "beyond"
        page = f"[`aw.{row.agent}`](docs/algorithms/{row.agent}.md)"
        algorithm = _SPELLED.get(row.agent) or row.survey_row or row.agent
        rows.append(f"| {section} | {algorithm} | {page} | [`{where}`](src/armwise/{where}) |")
    return "\n".join(rows)


_SPELLED = {
    "Exp3": "EXP3", "UCB1": "UCB1", "BetaThompson": "Thompson sampling, Beta prior", "EpsilonGreedy": "ε-greedy",
    "PerContext": "one bandit a context", "PolicyArms": "one arm a policy", "Doubling": "doubling trick",
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


# Questions a reader has before the answers of aw.advise: what is said, in words.
QUESTIONS = [
    ("Nothing at all is assumed", {}),
    ("Rewards may be chosen by an adversary", {"adversarial": True}),
    ("... and a bad run must be unlikely", {"adversarial": True, "high_probability": True}),
    ("Rewards are linear in the arms' features", {"adversarial": False, "linear": True}),
    ("... and nobody knows the number of rounds", {"adversarial": False, "linear": True, "horizon_known": False}),
    ("Rewards are smooth, not linear", {"adversarial": False, "linear": False, "smooth": True}),
    ("Neither linear nor smooth; compete with an infinite class of policies",
     {"adversarial": False, "linear": False, "smooth": False, "infinite_policies": True}),
]  # fmt: skip


def choices() -> str:
    """What ``aw.advise`` answers to the usual questions."""
    parts = []
    for question, said in QUESTIONS:
        advice = aw.advise(**said)
        call = ", ".join(f"{key}={value}" for key, value in said.items())
        rows = ["| agent | regret | bound at T = 10,000 | call |", "|---|---|--:|---|"]
        for verdict in advice.stay[:6]:
            bound = "–" if verdict.bound is None else f"{verdict.bound:,.0f}"
            page = f"[{verdict.agent}](algorithms/{verdict.agent}.md)"
            rows.append(f"| {page} | {regret(verdict.agent)} | {bound} | `{verdict.call}` |")
        rest = [f"[{v.agent}](algorithms/{v.agent}.md)" for v in advice.stay[6:]]
        parts.append(f"### {question}\n\n`aw.advise({call})`\n\n" + "\n".join(rows)
                     + (f"\n\nAlso: {', '.join(rest)}." if rest else ""))  # fmt: skip
    return "\n\n".join(parts)
