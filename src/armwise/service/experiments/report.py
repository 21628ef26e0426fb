"""An experiment on one page that needs nothing else: verdict, intervals over time, funnel of arms, decision log."""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from armwise.core.tools.text_tables import html_table
from armwise.offline.logs.cohorts import duration
from armwise.service.log.export_journal import stamp

if TYPE_CHECKING:
    from armwise.offline.experiments.metric import Metric
    from armwise.offline.experiments.verdict import ArmResult, ExperimentVerdict
    from armwise.service.experiments.hosted import HostedExperiment

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#767676")
_STYLE = """:root { color-scheme: light dark; --ink: #1d2330; --soft: #5c6577; --paper: #fbfbfd; --card: #fff;
  --line: #e3e6ee; --stop: #1a7f4b; --go: #3f51b5; --check: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebf2; --soft: #9aa4b8; --paper: #12151c; --card: #1a1f29;
  --line: #2b3242; --stop: #6fcf97; --go: #8fa1ff; --check: #ff8a80; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 72rem;
  margin: 1.5rem auto; padding: 0 1rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem; margin: 1rem 0; }
h1 { margin: 0; } h2 { font-size: 1.1rem; margin: 0 0 .5rem; } h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
.soft, h2 span, li, th { color: var(--soft); font-weight: 400; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { font-size: .85rem; } :is(th, td):first-child, .text :is(th, td) { text-align: left; }
.text td:last-child { white-space: normal; min-width: 16rem; }
.verdict { font-size: 1.25rem; border-left: .4rem solid var(--go); } .verdict.stop { border-color: var(--stop); }
.verdict.check { border-color: var(--check); color: var(--check); } ul { margin: 0; padding-left: 1.2rem; }
img { max-width: 100%; background: #fff; border-radius: 6px; margin-top: .8rem; display: block; }"""
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
    log = [[stamp(line["time"]), line["what"], line.get("by", ""), line.get("why", "")] for line in data["log"]]
    rate = data["units_per_day"]
    state = f"{data['state']}, mode {data.get('mode', 'split')}" + (
        "" if rate is None else f", {rate:,.0f} units a day"
    )
    remarks = "".join(f"<li>{html.escape(remark)}</li>" for remark in verdict.remarks)
    name = html.escape(experiment.name)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><link rel="icon" href="data:,"><title>{name}</title>'
        f'<style>{_STYLE}</style></head><body><h1>{name}</h1><p class="soft">{html.escape(state)}</p>'
        f'<section class="verdict {verdict.action.replace(" ", "-")}">{html.escape(verdict.sentence)}</section>'
        f"{''.join(_metric(experiment, verdict, metric) for metric in experiment.definition.measured)}"
        f"{_arms(experiment, verdict)}"
        f"<section><h2>Log</h2>{_table(('time', 'what', 'by', 'why'), log, 'text')}</section>"
        f"<section><h2>Remarks</h2><ul>{remarks}</ul></section></body></html>\n"
    )


def _table(headings: Sequence[str], rows: list[list[str]], kind: str = "") -> str:
    return f'<div class="scroll {kind}">{html_table(headings, rows)}</div>'


def _metric(experiment: HostedExperiment, verdict: ExperimentVerdict, metric: Metric) -> str:
    """The numbers of one metric, all arms, with their intervals over time."""
    window = "every outcome is reported" if metric.window is None else f"within {duration(metric.window)}"
    kind = metric.kind if metric.cap is None else f"{metric.kind}, at most {metric.cap:g}"
    about = f"{kind}, {window}, {metric.direction} is better"
    role = "guardrail" if metric.guardrail else "goal"

    def shown(results: Sequence[ArmResult]) -> str:
        cells = verdict.cells([r for r in results if r.metric == metric.name])
        kept = [k for k, name in enumerate(verdict.HEADINGS) if name != "metric" and any(row[k] for row in cells)]
        return _table([verdict.HEADINGS[k] for k in kept], [[row[k] for k in kept] for row in cells])

    early = "".join(
        f"<h3>{html.escape(look.title)}</h3>{shown(look.results)}"
        for look in verdict.early
        if look.metric == metric.name
    )
    title = f"<h2>{html.escape(metric.name)} <span>{role}: {html.escape(about)}</span></h2>"
    return f"<section>{title}{shown(verdict.results)}{early}{_picture(experiment, metric.name)}</section>"


def _arms(experiment: HostedExperiment, verdict: ExperimentVerdict) -> str:
    """The funnel of arms, and whether units and outcomes come as the shares say."""
    test, goal = experiment.reader.analysis.mismatch, experiment.definition.goal.name
    funnel = [
        [arm, f"{verdict.units[arm]:,}", f"{expected:,.0f}", f"{verdict.result(arm, goal).units:,}",
         "" if math.isnan(mean := verdict.result(arm, goal).mean) else f"{mean:.4g}"]
        for arm, expected in zip(experiment.definition.arms, test.expected, strict=True)
    ]  # fmt: skip
    said = ""
    if verdict.action != "check":
        said = f"Units arrive in the arms as the shares say (p = {verdict.mismatch:.2g}, valid at any time)."
        for metric, p in verdict.missing.items():
            said += f" Outcomes of {html.escape(metric)} come from the arms as the shares say (p = {p:.2g})."
    headings = ("arm", "units", "expected by the shares", f"settled for {goal}", goal)
    return f'<section><h2>Arms</h2>{_table(headings, funnel)}<p class="soft">{said}</p></section>'


def _picture(experiment: HostedExperiment, metric: str) -> str:
    """The lifts' intervals over the units."""
    kept = experiment.reader.analysis.history[metric]
    shown = [(n, points) for n, points in kept if all(math.isfinite(low) for _, low, _ in points)]
    if len(shown) < 2:
        return '<p class="soft">Not enough units yet for a picture.</p>'
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
    lift = f"lift over {experiment.definition.control}"
    axes.set(xlabel="units", ylabel=lift, xlim=(0, units[-1]), ylim=(min(last), max(last)))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    picture = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="intervals over time" src="data:image/png;base64,{picture}">'
