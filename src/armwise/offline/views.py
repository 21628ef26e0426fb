"""How results look: a table for the terminal, a picture, a page. The verdict is in all of them."""

from __future__ import annotations

import html
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armwise.display import html_table
from armwise.extras import needs

if TYPE_CHECKING:
    from armwise.offline.diagnostics import Diagnostics
    from armwise.offline.result import Comparison, Estimate, Evaluation

_INK, _ACCENT, _ALARM = "#1f2933", "#0b6fa4", "#b3261e"
_ABOUT = {
    "ips": "inverse propensity score: unbiased, high variance",
    "snips": "self-normalised IPS: slightly biased, less variance",
    "dm": "direct method: the reward model alone; the interval does not know its bias",
    "dr": "doubly robust: the model, corrected on the logged arms",
    "sndr": "doubly robust with self-normalised corrections",
    "switch-dr": "doubly robust below a weight, the model above it",
    "dros": "doubly robust with shrunken weights",
}


def number(value: float, digits: int = 4) -> str:
    """A number as short as its size allows.

    >>> number(0.00455288), number(0.5), number(1234.5), number(float("nan"))
    ('0.004553', '0.5000', '1,234.5', '-')
    """
    if not math.isfinite(value):
        return "-"
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.1f}"
    places = max(digits, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(places, 12)}f}"


def _cells(e: Estimate) -> list[str]:
    ess = "-" if math.isnan(e.ess) else f"{e.ess:,.0f}"
    places = len(number(e.value).partition(".")[2]) if math.isfinite(e.value) else 4
    ends = " to ".join(f"{end:.{places}f}" if math.isfinite(end) else "-" for end in (e.low, e.high))
    return [e.name, number(e.value), ends, number(e.std_error), f"{e.n:,}", ess]


def _lines(header: list[str], cells: list[list[str]]) -> list[str]:
    left = {0, 2}
    widths = [max(len(row[i]) for row in [header, *cells]) for i in range(len(header))]
    return [
        "  ".join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *cells]
    ]


def _header(level: float) -> list[str]:
    return ["estimator", "value", f"{level:.0%} interval" if level < 0.995 else f"{level:.1%} interval",
            "std. error", "rows", "ESS"]  # fmt: skip


def text_table(result: Evaluation) -> str:
    """The table for a terminal."""
    lines = _lines(_header(result.level), [_cells(e) for e in result.values()])
    lines += [f"WARNING: {result.verdict}"] if result.verdict else []
    return "\n".join(lines)


def html_of(result: Evaluation) -> str:
    """The table for a notebook, the verdict below it."""
    cells = [_cells(estimate) for estimate in result.values()]
    return html_table(_header(result.level), cells, title=result.target, note=result.verdict)


def comparison_table(comparison: Comparison) -> str:
    """Two policies and their difference."""
    one, other = comparison.first, comparison.second
    cells = [["first", *_cells(one)[1:]], ["second", *_cells(other)[1:]]]
    ends = f"{number(comparison.low)} to {number(comparison.high)}"
    cells.append(["difference", number(comparison.value), ends, number(comparison.std_error), f"{one.n:,}", ""])
    lines = _lines([f"{one.name} of", *_header(one.level)[1:]], cells)
    lines.append(f"better: {comparison.better} (p = {comparison.p_value:.2g})")
    lines += [f"WARNING: {text}" for text in comparison.warnings]
    return "\n".join(lines)


def plot(result: Evaluation, path: Any = None) -> Any:
    """Intervals side by side; readable without colour, and the verdict where nobody can miss it."""
    with needs("offline"):
        from armwise.figure import Figure

    estimates = list(result.values())
    figure = Figure(figsize=(7.5, 1.3 + 0.5 * len(estimates) + (0.55 if result.verdict else 0)), layout="constrained")
    axes = figure.subplots()
    colour = _ALARM if result.verdict else _ACCENT
    for i, e in enumerate(estimates):
        if math.isfinite(e.low) and math.isfinite(e.high):
            axes.plot([e.low, e.high], [i, i], color=colour, linewidth=2.2, solid_capstyle="butt")
            axes.plot([e.low, e.high], [i, i], "|", color=colour, markersize=11, markeredgewidth=2.2)
        if math.isfinite(e.value):
            axes.plot(
                e.value, i, "o", color="white" if result.verdict else colour, markeredgecolor=colour, markersize=8
            )
        axes.annotate(number(e.value), (e.value if math.isfinite(e.value) else 0.0, i), xytext=(0, 9),
                      textcoords="offset points", ha="center", fontsize=9, color=_INK)  # fmt: skip
    axes.set_yticks(range(len(estimates)), [e.name for e in estimates], fontsize=10, color=_INK)
    axes.set_ylim(len(estimates) - 0.5, -0.7)
    axes.set_xlabel(f"estimated reward a round, {result.level:.0%} {result.interval} intervals", color=_INK)
    axes.grid(axis="x", color="#d9dee3", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    rows, ess = estimates[0].n, estimates[0].ess
    size = f"{rows:,} rows" + ("" if math.isnan(ess) else f", effective {ess:,.0f}")
    axes.set_title(f"{result.target}: {size}", loc="left", fontsize=11, color=_INK)
    if result.verdict:
        figure.supxlabel("WARNING: " + result.verdict, color=_ALARM, fontsize=9, wrap=True, x=0.02, ha="left")
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


# ruff: noqa: E501  (a style sheet)
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Offline evaluation of {target}</title><style>
:root {{ color-scheme: light dark; --ink: #1f2933; --soft: #5f6c7b; --paper: #fff; --line: #d9dee3; --alarm: #b3261e; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6eaef; --soft: #a3afbd; --paper: #14181d; --line: #333c46; --alarm: #ff8a80; }} }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }}
.scroll {{ overflow-x: auto; }} table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .35rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }}
th:first-child, td:first-child, td.text {{ text-align: left; }} th {{ color: var(--soft); font-weight: 600; }} td.text {{ white-space: normal; color: var(--soft); }}
.verdict {{ border-left: 5px solid var(--alarm); padding: .6rem 1rem; color: var(--alarm); font-weight: 600; }}
img {{ max-width: 100%; background: #fff; border-radius: 6px; }} .about {{ color: var(--soft); padding-left: 1.2rem; }} footer {{ color: var(--soft); margin-top: 2rem; font-size: .9rem; }}
</style></head><body>
<h1>Offline evaluation of {target}</h1>
{verdict}
<img alt="Estimates with their intervals" src="data:image/png;base64,{picture}">
<h2>Estimates</h2><div class="scroll"><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>
<ul class="about">{about}</ul>
{diagnostics}
<footer>armwise {version}; {interval} intervals at {level:.0%}.</footer>
</body></html>
"""


def report(result: Evaluation, path: Any) -> None:
    """One page that needs nothing else: picture inside, light and dark, phone to desktop."""
    import base64
    import io

    from armwise import __version__

    buffer = io.BytesIO()
    plot(result).savefig(buffer, format="png", dpi=150)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in _cells(e)) + "</tr>" for e in result.values())
    about = "".join(f"<li><b>{name}</b>: {_ABOUT[name]}</li>" for name in result if name in _ABOUT)
    page = _PAGE.format(
        target=html.escape(result.target),
        verdict=f'<p class="verdict" role="alert">{html.escape(result.verdict)}</p>' if result.verdict else "",
        picture=base64.b64encode(buffer.getvalue()).decode(),
        header="".join(f"<th>{html.escape(h)}</th>" for h in _header(result.level)),
        body=body,
        about=about,
        diagnostics=_diagnostics(result),
        version=__version__,
        interval=result.interval,
        level=result.level,
    )
    Path(path).write_text(page, encoding="utf-8")


def _calibration(d: Diagnostics) -> str:
    """The arm whose probabilities fit worst how often it was played."""
    off = [(abs(z), arm, mean) for arm, (mean, z) in enumerate(d.calibration) if not math.isnan(z)]
    if not off:
        return "too few rows an arm to say"
    z, arm, mean = max(off)
    return (
        f"worst for arm {arm}: rows weighted by 1/p make {mean:.1%} of the log, expected 100% ({z:.1f} standard errors)"
    )


def _diagnostics(result: Evaluation) -> str:
    d = result.diagnostics
    if d is None:
        return "<p>The log has no probabilities: nothing can be said about overlap.</p>"
    largest = ", ".join(f"{weight:,.2f} (row {row})" for row, weight in d.largest)
    facts = [
        ("effective sample size", f"{d.ess:,.1f} of {d.n:,} ({d.ess / d.n:.1%})"),
        ("mean weight (1 is right)", f"{d.mean_weight:.4f} ± {d.mean_weight_error:.4f}"),
        ("largest weights", largest),
        ("the largest row's share of all weight", f"{d.largest_share:.2%}"),
        ("rows whose arm the target never plays", f"{d.no_overlap:.1%}"),
        ("the target's decisions that the log never tries", f"{d.unsupported:.1%}"),
        ("rows with a clipped probability", f"{d.clipped:.1%}"),
        ("weight that clipping takes", f"{d.clipped_weight:.1%}"),
        ("calibration of the probabilities", _calibration(d)),
    ]
    lines = "".join(f'<tr><td>{name}</td><td class="text">{html.escape(text)}</td></tr>' for name, text in facts)
    return f'<h2>Diagnostics</h2><div class="scroll"><table><tbody>{lines}</tbody></table></div>'
