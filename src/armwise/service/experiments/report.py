"""An experiment on one page that needs nothing else: verdict, intervals over time, funnel of arms, decision log."""

from __future__ import annotations

import base64
import html
import io
import math
from typing import TYPE_CHECKING, Any

from armwise.core.tools.text_tables import html_table
from armwise.service.log.export import stamp

if TYPE_CHECKING:
    from armwise.service.experiments.hosted import HostedExperiment

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#767676")
_STYLE = """:root { color-scheme: light dark; --ink: #1f2933; --soft: #5f6c7b; --paper: #fff; --line: #d9dee3; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaef; --soft: #a3afbd; --paper: #14181d; --line: #333c46; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 76rem;
  margin: 2rem auto; padding: 0 1rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { color: var(--soft); }
.verdict { font-size: 1.25rem; } .check { color: #b3261e; font-weight: 600; } li { color: var(--soft); }
img { max-width: 100%; background: #fff; border-radius: 6px; }"""
STYLE_TAG = f"<style>{_STYLE}</style>".encode()


def report_data(experiment: HostedExperiment) -> dict[str, Any]:
    """Everything that the page shows, for JSON."""
    verdict = experiment.verdict().to_dict()
    analysis = experiment.reader.analysis
    history = {
        metric: [
            {"units": n, "lifts": {
                arm: {"lift": _finite(lift), "low": _finite(low), "high": _finite(high)}
                for arm, (lift, low, high) in zip(analysis.arms[1:], points, strict=True)
            }}
            for n, points in kept
        ]
        for metric, kept in analysis.history.items()
    }  # fmt: skip
    rate = experiment.reader.rate()
    return experiment.to_dict() | {"verdict": verdict, "history": history, "units_per_day": _finite(rate * 86400.0)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def report_html(experiment: HostedExperiment) -> str:
    """The page."""
    data, verdict = report_data(experiment), experiment.verdict()
    tag = "verdict check" if verdict.action == "check" else "verdict"
    goal = experiment.definition.goal.name
    funnel = [
        [arm, f"{verdict.units[arm]:,}", f"{verdict.result(arm, goal).units:,}",
         "" if math.isnan(mean := verdict.result(arm, goal).mean) else f"{mean:.4g}"]
        for arm in experiment.definition.arms
    ]  # fmt: skip
    early = "".join(
        f"<h3>{html.escape(look.title)}</h3>"
        f'<div class="scroll">{html_table(verdict.HEADINGS, verdict.cells(look.results))}</div>'
        for look in verdict.early
    )
    log = [[stamp(line["time"]), line["what"], line.get("by", ""), line.get("why", "")] for line in data["log"]]
    pictures = "".join(_picture(experiment, metric) for metric in experiment.reader.analysis.history)
    mismatch = (
        f"<p>Units arrive in the arms as the shares say (p = {verdict.mismatch:.2g}, valid at any time).</p>"
        if verdict.action != "check"
        else ""
    )
    for metric, p in verdict.missing.items() if mismatch else ():
        mismatch += f"<p>Outcomes of {html.escape(metric)} come from the arms as the shares say (p = {p:.2g}).</p>"
    rate = data["units_per_day"]
    state = f"{data['state']}, mode {data.get('mode', 'split')}" + (
        "" if rate is None else f", {rate:,.0f} units a day"
    )
    remarks = "".join(f"<li>{html.escape(remark)}</li>" for remark in verdict.remarks)
    name = html.escape(experiment.name)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>{name}</title><style>{_STYLE}</style></head><body>'
        f'<h1>{name}</h1><p>{html.escape(state)}</p><p class="{tag}">{html.escape(verdict.sentence)}</p>'
        f'<div class="scroll">{html_table(verdict.HEADINGS, verdict.cells())}</div>{early}{pictures}'
        f"<h2>Arms</h2>{html_table(('arm', 'units', f'settled for {goal}', goal), funnel)}{mismatch}"
        f"<h2>Log</h2>{html_table(('time', 'what', 'by', 'why'), log)}"
        f"<h2>Remarks</h2><ul>{remarks}</ul></body></html>\n"
    )


def _picture(experiment: HostedExperiment, metric: str) -> str:
    """The lifts' intervals over the units."""
    kept = experiment.reader.analysis.history[metric]
    shown = [(n, points) for n, points in kept if all(math.isfinite(low) for _, low, _ in points)]
    title = f"<h2>{html.escape(metric)}: lift over {html.escape(experiment.definition.control)}</h2>"
    if len(shown) < 2:
        return f"{title}<p>Not enough units yet for a picture.</p>"
    from armwise.core.tools.figure import Figure

    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    axes = figure.subplots()
    units = [n for n, _ in shown]
    last = [end for _, low, high in shown[3 * len(shown) // 4][1] for end in (low, high)]
    for a, arm in enumerate(experiment.definition.arms[1:]):
        colour = COLOURS[a % len(COLOURS)]
        lifts, lows, highs = zip(*(points[a] for _, points in shown), strict=True)
        axes.fill_between(units, lows, highs, color=colour, alpha=0.15, linewidth=0)
        axes.plot(units, lifts, color=colour, label=arm)
    axes.axhline(0.0, color="#767676", linewidth=0.8)
    axes.set(xlabel="units", ylabel="lift", xlim=(0, units[-1]), ylim=(min(last), max(last)))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    picture = base64.b64encode(buffer.getvalue()).decode()
    return f'{title}<img alt="intervals over time" src="data:image/png;base64,{picture}">'
