"""Self-contained HTML pages of results, each with the verdict and the notes."""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armwise.offline.results.analysis_plan import ESTIMATORS, Plan
from armwise.offline.results.figures import both_names, diagnostics_figure, replay_figure
from armwise.offline.results.figures import comparison_figure as comparison_figure
from armwise.offline.results.figures import evaluation_figure as evaluation_figure
from armwise.offline.results.figures import saved as saved
from armwise.offline.results.figures import several_figure as several_figure
from armwise.offline.results.terminal import cells, header, lift_line, lift_lines, number, percent, weight_facts

if TYPE_CHECKING:
    from armwise.offline.learning.fit_policy import Fitted
    from armwise.offline.learning.replay import Replay
    from armwise.offline.results.estimates import Comparison, Evaluation
    from armwise.offline.results.evaluations import Evaluations

_SENTENCE = 40  # characters that no number has
_FEW_POLICIES = 3  # whose diagnostics a page shows without being asked

# ruff: noqa: E501  (a style sheet)
_STYLE = """:root { color-scheme: light dark; --ink: #1f2933; --soft: #5f6c7b; --paper: #fff; --line: #d9dee3; --alarm: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaef; --soft: #a3afbd; --paper: #14181d; --line: #333c46; --alarm: #ff8a80; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child, td.text { text-align: left; } th { color: var(--soft); font-weight: 600; } td.text { white-space: normal; color: var(--soft); }
.verdict { border-left: 5px solid var(--alarm); padding: .6rem 1rem; color: var(--alarm); font-weight: 600; }
.answer { font-size: 1.25rem; line-height: 1.4; } .plan { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; color: var(--soft); }
.plan dt { font-weight: 600; } .plan dd { margin: 0; } ol.verdict { padding-left: 2rem; }
summary { font-size: 1.2rem; font-weight: 600; margin: 1rem 0 .4rem; cursor: pointer; } img { max-width: 100%; background: #fff; border-radius: 6px; } .about { color: var(--soft); padding-left: 1.2rem; } footer { color: var(--soft); margin-top: 2rem; font-size: .9rem; }"""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
{style}
</style></head><body>
<h1>{title}</h1>
{body}
<footer>armwise {version}</footer>
</body></html>
"""


def _image(figure: Any, alt: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'


def _write(path: Any, title: str, parts: Iterable[str]) -> None:
    from armwise import __version__

    page = _PAGE.format(title=html.escape(title), style=_STYLE, body="\n".join(parts), version=__version__)
    Path(path).write_text(page, encoding="utf-8")


def _table(head: Sequence[str], rows: Iterable[str | Sequence[str]]) -> str:
    """A table; a row is its cells, or HTML."""
    top = "".join(f"<th>{html.escape(h)}</th>" for h in head)
    body = "".join(row if isinstance(row, str) else _row(row) for row in rows)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _row(texts: Sequence[str]) -> str:
    return "<tr>" + "".join(map(_cell, texts)) + "</tr>"


def _cell(text: str) -> str:
    """Numbers stay on one line; a sentence is broken into several."""
    kind = ' class="text"' if len(text) > _SENTENCE else ""
    return f"<td{kind}>{html.escape(text)}</td>"


def _alarm(text: str) -> str:
    return f'<p class="verdict" role="alert">{html.escape(text)}</p>' if text else ""


def _opening(result: Evaluation | Evaluations | Comparison) -> str:
    """The plan of the analysis, the answer and the warnings; without a plan the verdict alone."""
    if result.plan is None:
        return _alarm("; ".join(getattr(result, "warnings", ()) or [getattr(result, "verdict", "")]))
    warnings = "".join(f"<li>{html.escape(text)}</li>" for text in result.cautions)
    alarm = f'<ol class="verdict" role="alert">{warnings}</ol>' if warnings else ""
    return _plan(result.plan) + f'<p class="answer">{html.escape(result.answer)}</p>' + alarm


def _plan(plan: Plan) -> str:
    rows = "".join(f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in plan.to_dict().items())
    return f'<dl class="plan">{rows}</dl>'


def _list(texts: Iterable[str]) -> str:
    return '<ul class="about">' + "".join(f"<li>{html.escape(text)}</li>" for text in texts) + "</ul>"


# ---------------------------------------------------------------------- one policy


def evaluation_fragment(result: Evaluation) -> str:
    """The estimates as a piece of HTML, for notebooks."""
    lift = [] if result.lift is None else [lift_line(result)]
    return (
        f"<h4>{html.escape(result.target)}</h4>"
        + _opening(result)
        + _table(*result.rows_shown())
        + _list([*lift, *_notes(result)])
    )


def evaluation_report(result: Evaluation, path: Any) -> None:
    """One page: picture, estimates, segments, diagnostics."""
    about = [f"{name}: {ESTIMATORS[name]}" for name in result if name in ESTIMATORS]
    lift = [] if result.lift is None else [lift_line(result)]
    _write(path, f"Offline evaluation of {result.target}", [
        _opening(result),
        _image(evaluation_figure(result, said=True), "Estimates with their intervals"),
        "<h2>Estimates</h2>" + _table(*result.rows_shown()),
        _list([*lift, *about, *_notes(result)]),
        _segments({result.target: result}),
        _headed(_diagnostics(result)),
    ])  # fmt: skip


def _segments(results: dict[str, Evaluation]) -> str:
    first = next(iter(results.values()))
    if not first.segments:
        return ""
    _, value, interval, _, _, ess = header(first.level)
    head, rows = ["segment", "policy", value, interval, ess, "lift"], []
    for segment in first.segments:
        for name, each in results.items():
            inside = each.segments[segment]
            lift = inside.lift
            change = "" if lift is None else f"{lift.value:+.4g} ({lift.low:.4g} to {lift.high:.4g})"
            last = cells(list(inside.values())[-1])
            rows.append(_row([segment, name, last[1], last[2], last[5], change]))
            if inside.verdict:  # below, over all columns: a column of its own would make the others narrow
                rows.append(
                    f'<tr><td></td><td class="text" colspan="{len(head) - 1}">{html.escape(inside.verdict)}</td></tr>'
                )
    return f"<h2>Segments, {html.escape(list(first)[-1])}</h2>" + _table(head, rows)


def _headed(diagnostics: str) -> str:
    return "<h2>Diagnostics</h2>" + diagnostics if diagnostics.startswith("<img") else diagnostics


def _diagnostics(result: Evaluation) -> str:
    d = result.diagnostics
    if d is None:  # unless each estimate knows its own effective rows, as on the log of an agent that adapts
        known = any(not math.isnan(e.ess) for e in result.values())
        return "" if known else "<p>The log has no probabilities: nothing can be said about overlap.</p>"
    lines = "".join(
        f'<tr><td>{name}</td><td class="text">{html.escape(text)}</td></tr>' for name, text in weight_facts(d)
    )
    table = f'<div class="scroll"><table><tbody>{lines}</tbody></table></div>'
    return _image(diagnostics_figure(d), "Weights, effective rows over time, balance") + table


# ---------------------------------------------------------------------- several policies, two policies


def several_fragment(results: Evaluations) -> str:
    """The policies as a piece of HTML, for notebooks."""
    return _opening(results) + _several_tables(results)


def _several_tables(results: Evaluations) -> str:
    first = next(iter(results.values()))
    rows = [[name, *cells(e)] for name, each in results.items() for e in each.values()]
    earned = [f"the log earned {number(results.logged)} per decision"] if math.isfinite(results.logged) else []
    table = _table(["policy", *header(first.level)], rows)
    return table + _list([*earned, *lift_lines(results), *_notes(results)]) + _segments(dict(results))


def _notes(result: Evaluation | Evaluations) -> list[str]:
    """The notes; the columns are in the plan, where there is one."""
    return [note for note in result.notes if result.plan is None or not note.startswith("columns: ")]


def several_report(results: Evaluations, path: Any) -> None:
    """One page for all policies."""
    picture = _image(several_figure(results, said=True), "Policies with their intervals")
    parts = [_opening(results), picture, _several_tables(results)]
    for name, each in results.items():  # of many policies folded, or nobody finds the next
        opened = " open" if len(results) <= _FEW_POLICIES else ""
        parts.append(
            f"<details{opened}><summary>{html.escape(name)}: diagnostics</summary>{_diagnostics(each)}</details>"
        )
    title = ", ".join(results) if len(results) <= _FEW_POLICIES else f"{len(results)} policies"
    _write(path, f"Offline evaluation of {title}", parts)


def comparison_fragment(comparison: Comparison) -> str:
    """The comparison as a piece of HTML, for notebooks."""
    return _opening(comparison) + _comparison_table(comparison)


def _comparison_table(comparison: Comparison) -> str:
    one, other = comparison.first, comparison.second
    rows = [[f"first, {comparison.names[0]}", *cells(one)[1:]], [f"second, {comparison.names[1]}", *cells(other)[1:]],
            ["difference", number(comparison.value), f"{number(comparison.low)} to {number(comparison.high)}",
             number(comparison.std_error), f"{one.n:,}", ""]]  # fmt: skip
    p = f" (p = {comparison.p_value:.2g})" if math.isfinite(comparison.p_value) else ""
    notes = [f"better: {comparison.better}{p}; the difference's interval is {comparison.kind}"]
    notes += [f"columns: {comparison.columns}"] if comparison.columns and comparison.plan is None else []
    return _table([f"{one.name} of", *header(one.level)[1:]], rows) + _list(notes)


def comparison_report(comparison: Comparison, path: Any) -> None:
    """One page for two policies."""
    picture = _image(comparison_figure(comparison, said=True), "The two policies and their difference")
    _write(path, " against ".join(both_names(comparison)),
           [_opening(comparison), picture, _comparison_table(comparison)])  # fmt: skip


# ---------------------------------------------------------------------- replay, fit


def replay_fragment(result: Replay) -> str:
    """A replay as a piece of HTML, for notebooks."""
    rows = [["reward per decision", number(result.value)],
            [f"{percent(result.level)} interval", f"{number(result.low)} to {number(result.high)}"],
            ["rows matched", f"{result.matched:,} of {result.n:,} ({result.method})"], ["the interval", result.about],
            *([["the log earned", f"{number(result.logged)} per decision"]] if math.isfinite(result.logged) else []),
            *([["columns", result.columns]] if result.columns else [])]  # fmt: skip
    return _alarm("; ".join((*result.warnings, *result.remarks))) + _table([result.name, ""], rows)


def replay_report(result: Replay, path: Any) -> None:
    """One page: the learning curve and the numbers."""
    _write(
        path,
        f"Replay of {result.name}",
        [_image(replay_figure(result, said=True), "The learning curve"), replay_fragment(result)],
    )


def fitted_fragment(fitted: Fitted) -> str:
    """A fitted policy as a piece of HTML, for notebooks."""
    return f"<p>{html.escape(fitted.about)}</p>" + evaluation_fragment(fitted.estimate)


def fitted_report(fitted: Fitted, path: Any) -> None:
    """One page: the learnt policy, and its value on rows that it never saw."""
    _write(path, "A policy learnt from a log", [f"<p>{html.escape(fitted.about)}</p>",
           _image(evaluation_figure(fitted.estimate, said=True), "Estimates on held-out rows"), evaluation_fragment(fitted.estimate),
           _headed(_diagnostics(fitted.estimate))])  # fmt: skip
