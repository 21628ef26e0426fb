"""Text tables of results for the terminal, with the verdict and the notes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from armwise.offline.results.analysis_plan import ESTIMATORS

_WIDTH = 100  # characters of a line of prose

if TYPE_CHECKING:
    from armwise.offline.results.diagnostics import Diagnostics
    from armwise.offline.results.estimates import Comparison, Estimate, Evaluation
    from armwise.offline.results.evaluations import Evaluations


def number(value: float, digits: int = 4) -> str:
    """Format a number briefly."""
    if not math.isfinite(value):
        return "-"
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.1f}"
    places = max(digits, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(places, 12)}f}"


def percent(level: float) -> str:
    """Format an interval's level: 95%, and 99.5%, which is not 100%."""
    return f"{100.0 * level:.6g}%"


def cells(e: Estimate) -> list[str]:
    """One line of a table of estimates."""
    ess = "-" if math.isnan(e.ess) else f"{e.ess:,.0f}"
    return [e.name, number(e.value), ends_of(e), number(e.std_error), f"{e.n:,}", ess]


def ends_of(e: Any) -> str:
    """An interval, with as many places as its value and its width need: that of a value of 0 is none of zeros."""
    sizes = [abs(e.value), e.high - e.low]
    size = max((each for each in sizes if math.isfinite(each)), default=0.0)
    places = len(number(size).partition(".")[2]) if size > 0 else 4
    low, high = (f"{end:.{places}f}" if math.isfinite(end) else "-" for end in (e.low, e.high))
    if math.isinf(e.high) or math.isinf(e.low):  # only one end was asked for
        return f"at least {low}" if math.isinf(e.high) else f"at most {high}"
    return f"{low} to {high}"


def lines_of(head: list[str], body: list[list[str]], left: Container[int] = (0, 2)) -> list[str]:
    """A table as lines of text, columns lined up."""
    widths = [max(len(row[i]) for row in [head, *body]) for i in range(len(head))]
    return [
        "  ".join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [head, *body]
    ]


def header(level: float) -> list[str]:
    """The head of a table of estimates."""
    return ["estimator", "value", f"{percent(level)} interval", "std. error", "rows", "ESS"]


def text_table(result: Evaluation) -> str:
    """The table for a terminal, with the verdict below."""
    lines = table_lines(result)
    lines += result.notes
    lines += [f"WARNING: {result.verdict}"] if result.verdict else []
    return "\n".join(lines)


def table_lines(result: Evaluation) -> list[str]:
    """Estimates, the lift, segments."""
    lines = lines_of(header(result.level), [cells(e) for e in result.values()])
    lines += [] if result.lift is None else [lift_line(result)]
    for segment, inside in result.segments.items():
        best = list(inside.values())[-1]
        lift = "" if inside.lift is None else f", lift {_signed(inside.lift.value)} ({_ends(inside.lift)})"
        lines.append(f"{segment}: {best.name} {number(best.value)} ({_ends(best)}) in {best.n:,} rows{lift}")
    lines += [_same_effect(result)] if math.isfinite(result.heterogeneity) else []
    return lines


def full_text(result: Evaluation | Evaluations | Comparison, table: list[str], explain: bool = False) -> str:
    """The plan of the analysis, the answer, the table, the warnings, in the order in which they are read."""
    if result.plan is None:
        return result.table()
    parts = [["Plan", *result.plan.lines(explain)], ["Answer", *_wrapped(result.answer)], table]
    notes = [note for note in getattr(result, "notes", []) if not note.startswith("columns: ")]
    parts += [notes] if notes else []
    if explain:
        parts.append(["Explained", *(line for name, text in facts_of(result) for line in _wrapped(f"{name}: {text}"))])
    return "\n".join(["\n\n".join("\n".join(part) for part in parts), *warning_block(result.cautions)])


def warning_block(cautions: list[str]) -> list[str]:
    """The warnings, numbered; not wrapped, as somebody may search for them."""
    return ["", "WARNING", *(f"  {i}. {text}" for i, text in enumerate(cautions, 1))] if cautions else []


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH - 2, initial_indent="  ", subsequent_indent="  ")


def lift_line(result: Evaluation) -> str:
    """The lift over the baseline in one line."""
    lift = result.lift
    assert lift is not None
    over = "what the log earned" if lift.baseline == "logged" else lift.baseline
    p = f", p = {lift.p_value:.2g}" if math.isfinite(lift.p_value) else ""
    return f"lift over {over}: {_signed(lift.value)} ({_ends(lift)}{p}; {lift.estimator}, paired, {lift.kind})"


def several_table(results: Evaluations) -> str:
    """Policies and estimators, lifts, segments, with the verdict below."""
    lines = several_lines(results)
    lines += results.notes
    lines += [f"WARNING: {results.verdict}"] if results.verdict else []
    return "\n".join(lines)


def lift_lines(results: Evaluations) -> list[str]:
    """Lifts, each over the logged reward of the very rows that its policy is judged on."""
    same = ", in the rows that offered it" if results.apart else ""
    return [f"{name}: {lift_line(each)}{same}" for name, each in results.items() if each.lift is not None]


def several_lines(results: Evaluations) -> list[str]:
    """Policies and estimators, lifts, segments."""
    first = next(iter(results.values()))
    body = [[name, *cells(e)] for name, each in results.items() for e in each.values()]
    lines = lines_of(["policy", *header(first.level)], body, left={0, 1, 3})
    if math.isfinite(results.logged):
        lines.append(f"the log earned {number(results.logged)} per decision")
    lines += lift_lines(results)
    if first.segments:
        rows = []
        for segment in first.segments:
            for name, each in results.items():
                inside = each.segments[segment]
                e, lift = list(inside.values())[-1], inside.lift
                change = "" if lift is None else f"{_signed(lift.value)} ({_ends(lift)})"
                rows.append([segment, name, number(e.value), _ends(e), f"{e.n:,}", change])
        head = [results.by, "policy", e.name, f"{percent(first.level)} interval", "rows", "lift"]
        lines += ["", *lines_of(head, rows, left={0, 1, 3, 5})]
        lines += [f"{name}: {_same_effect(each)}" for name, each in results.items()
                  if math.isfinite(each.heterogeneity)]  # fmt: skip
    return lines


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value)


def _ends(e: Any) -> str:
    if math.isinf(e.high) or math.isinf(e.low):
        return f"at least {number(e.low)}" if math.isinf(e.high) else f"at most {number(e.high)}"
    return f"{number(e.low)} to {number(e.high)}"


def _same_effect(result: Evaluation) -> str:
    p = result.heterogeneity
    what = "differs between the segments" if p < 1.0 - result.level else "may be the same in all segments"
    return f"the lift {what}: p = {p:.2g} (Cochran's Q)"


def comparison_table(comparison: Comparison) -> str:
    """Two policies and their difference, with the verdicts below."""
    lines = comparison_lines(comparison)
    lines += [f"columns: {comparison.columns}"] if comparison.columns else []
    lines += [f"WARNING: {text}" for text in comparison.warnings]
    return "\n".join(lines)


def comparison_lines(comparison: Comparison) -> list[str]:
    """Two policies and their difference."""
    one, other = comparison.first, comparison.second
    body = [
        [f"first, {comparison.names[0]}", *cells(one)[1:]],
        [f"second, {comparison.names[1]}", *cells(other)[1:]],
    ]
    body.append(
        ["difference", number(comparison.value), _ends(comparison), number(comparison.std_error), f"{one.n:,}", ""]
    )
    lines = lines_of([f"{one.name} of", *header(one.level)[1:]], body)
    p = f" (p = {comparison.p_value:.2g})" if math.isfinite(comparison.p_value) else ""
    lines.append(f"better: {comparison.better}{p}; the difference's interval is {comparison.kind}")
    return lines


def facts_of(result: Any) -> list[tuple[str, str]]:
    """List the details: each estimator, and the diagnostics of each policy's weights."""
    several = hasattr(result, "by")
    some = next(iter(result.values())) if several else result
    names = [result.first.name] if hasattr(result, "first") else list(some)
    found = [(name, ESTIMATORS[name]) for name in names if name in ESTIMATORS]
    for name, each in result.items() if several else [("", result)]:
        d = getattr(each, "diagnostics", None)
        found += [] if d is None else [(f"{name}, {fact}" if name else fact, text) for fact, text in weight_facts(d)]
    return found


def weight_facts(d: Diagnostics) -> list[tuple[str, str]]:
    """The diagnostics of the weights, by name."""
    worst = ", ".join(f"{name} {z:.1f}" for name, z, _ in d.balance[:3]) or "no shared contexts"
    k = "too few to say" if math.isnan(d.pareto_k) else f"{d.pareto_k:.2f}"
    return [
        ("effective sample size", f"{d.ess:,.0f} of {d.n:,} ({d.ess / d.n:.1%})"),
        ("mean weight (1 is right)", f"{d.mean_weight:.4f} ± {d.mean_weight_error:.4f}"),
        ("largest weights", ", ".join(f"{weight:,.2f} ({d.place(row)})" for row, weight in d.largest)),
        ("the largest row's share of all weight", f"{d.largest_share:.2%}"),
        ("tail of the weights (Pareto k; above 0.5 is heavy)", k),
        ("matching rows whose reward is not the most frequent one", f"{d.outcomes:,}"),
        ("rows whose arm the target never plays", f"{d.no_overlap:.1%}"),
        ("the target's decisions that the log never tries", f"{d.unsupported:.1%}"),
        ("rows with a clipped weight", f"{d.clipped:.1%}"),
        ("weight that clipping takes", f"{d.clipped_weight:.1%}"),
        ("calibration of the probabilities", _calibration(d)),
        ("balance of the contexts (standard errors, worst)", worst),
    ]


def _calibration(d: Diagnostics) -> str:
    """The arm whose probabilities fit worst how often it was played."""
    off = [(abs(z), arm, mean) for arm, (mean, z) in enumerate(d.calibration) if not math.isnan(z)]
    if not off:
        return "too few rows per arm to say"
    z, arm, mean = max(off)
    return (
        f"worst for arm {arm}: rows weighted by 1/p make {mean:.1%} of the log, expected 100% ({z:.1f} standard errors)"
    )
