"""The table of a race for a paper, in LaTeX (booktabs) and Markdown; the best agents of each world in bold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from armwise.racing.results.result import Result

Form = Literal["latex", "markdown"]
_SPECIAL = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
            "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}  # fmt: skip


def paper_table(results: list[Result], form: Form, caption: str = "", label: str = "") -> str:
    """Make a table with one row per agent and one column per world: mean final regret with its standard error.

    Bold: the smallest mean of a world, and agents whose paired difference from it is not significant at 0.05 (Holm).
    """
    agents = list(dict.fromkeys(name for result in results for name in result.agents))
    heads = ["agent", *(result.label for result in results)]
    columns = [_column(result) for result in results]
    rows = [(name, [column.get(name, ("", False)) for column in columns]) for name in agents]
    seeds, horizons = {len(r.seeds) for r in results}, {r.horizon for r in results}
    plural = "" if seeds == {1} else "s"
    about = caption or (
        f"Final regret (T = {_span(horizons)}): mean and standard error over {_span(seeds)} seed{plural}. Bold: the "
        "least, and what does not differ from it significantly (paired t-tests at 0.05, Holm's adjustment within a "
        "world)."
    )
    if form == "markdown":
        lines = [_markdown([head.replace("|", r"\|") for head in heads]), _markdown(["---", *["---:"] * len(results)])]
        for name, cells in rows:
            lines.append(_markdown([str(name).replace("|", r"\|"), *(f"**{t}**" if b else t for t, b in cells)]))
        return "\n".join([*lines, "", about]) + "\n"
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{escape_latex(about)}}}"]
    lines += [rf"\label{{{label}}}"] if label else []
    lines += [rf"\begin{{tabular}}{{l{'r' * len(results)}}}", r"\toprule"]
    lines += [" & ".join(map(escape_latex, heads)) + r" \\", r"\midrule"]
    for name, cells in rows:
        shown = [rf"\textbf{{{_math(t)}}}" if b else _math(t) for t, b in cells]
        lines.append(" & ".join([escape_latex(str(name)), *shown]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def _column(result: Result) -> dict[str, tuple[str, bool]]:
    """One world's column of the table of agents by worlds: each agent's regret as text, and whether to print it bold.

    Bold are the best agent and those that do not differ from it.
    """
    from armwise.racing.results.paired import differences

    finals = {name: result.regret(name)[:, -1] for name in result.finishers}
    if not finals:
        return {}
    best = min(finals, key=lambda name: float(finals[name].mean()))
    ties = {best} | {pair.agent for pair in differences(result, best) if not pair.adjusted < 0.05}
    cells = {}
    for name, final in finals.items():
        error = final.std(ddof=1) / math.sqrt(len(final)) if len(final) > 1 else math.nan
        text = _figure(float(final.mean())) + ("" if math.isnan(error) else f" ± {_figure(float(error))}")
        cells[name] = (text, name in ties and len(final) > 1)
    return cells


def _figure(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 1 else f"{value:.2g}"


def _span(values: set[int]) -> str:
    return f"{min(values):,}" if len(values) == 1 else f"{min(values):,} to {max(values):,}"


def _markdown(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def escape_latex(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def _math(text: str) -> str:
    return text.replace(" ± ", r" $\pm$ ").replace("-", r"$-$")
