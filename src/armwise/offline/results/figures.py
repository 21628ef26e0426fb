"""Figures of offline results: readable without colour, with the verdict inside."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.core.tools.extras import needs
from armwise.offline.results.terminal import number, percent

if TYPE_CHECKING:
    from armwise.offline.learning.replay import Replay
    from armwise.offline.logs.checks.drift import DriftCheck
    from armwise.offline.results.diagnostics import Diagnostics
    from armwise.offline.results.estimates import Comparison, Evaluation
    from armwise.offline.results.evaluations import Evaluations

_PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.6}  # behind numbers, over lines
_MAX_POLICIES, _MAX_SEGMENTS = 4, 20  # policies with every estimator, segments in a picture
MAX_LINES = 6  # arms in a picture of drift
_LINES = ("o-", "s--", "^-.", "d:", "v-", "x--")  # readable without colour
_COLOURS = ("#0b6fa4", "#c05621", "#2f855a", "#6b46c1", "#b3261e", "#5f6c7b")
_INK, _SOFT, _ACCENT, _ALARM = "#1f2933", "#5f6c7b", "#0b6fa4", "#b3261e"


def _figure(width: float, height: float) -> Any:
    with needs("offline"):
        from armwise.core.tools.figure import Figure
    return Figure(figsize=(width, height), layout="constrained")


def _quiet(axes: Any, grid: str = "x") -> None:
    axes.grid(axis=grid, color="#d9dee3", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _interval(axes: Any, y: float, e: Any, weak: bool, *, dotted: bool = False) -> None:
    """One estimate: a bar from end to end, hollow where the verdict speaks, dotted where the bias is unknown."""
    colour = _ALARM if weak else _ACCENT
    if math.isfinite(e.low) and math.isfinite(e.high):
        style = (0, (1, 1.2)) if dotted else "solid"
        axes.plot([e.low, e.high], [y, y], color=colour, linewidth=2.2, linestyle=style)
        axes.plot([e.low, e.high], [y, y], "|", color=colour, markersize=11, markeredgewidth=2.2)
    if math.isfinite(e.value):
        axes.plot(e.value, y, "o", color="white" if weak else colour, markeredgecolor=colour, markersize=8)
        axes.annotate(number(e.value), (e.value, y), xytext=(0, 9), textcoords="offset points", ha="center",
                      fontsize=9, color=_INK, bbox=_PAPER)  # fmt: skip


def _name(e: Any) -> str:
    return f"{e.name} (bias unknown)" if e.name == "dm" else str(e.name)


def _logged(axes: Any, value: float) -> None:
    if math.isfinite(value):
        axes.axvline(value, color=_SOFT, linestyle="--", linewidth=1.2)
        axes.annotate(f"the log earned {number(value)}", (value, 1.0), xycoords=("data", "axes fraction"),
                      xytext=(4, -4), textcoords="offset points", va="top", fontsize=8, color=_SOFT)  # fmt: skip


def _verdict(figure: Any, text: str) -> None:
    if text:
        figure.supxlabel("\n".join(textwrap.wrap("WARNING: " + text, 105)), color=_ALARM, fontsize=9, x=0.02, ha="left")


def _room(text: str) -> float:
    """Inches for a verdict."""
    return 0.17 * len(textwrap.wrap("WARNING: " + text, 105)) + 0.2 if text else 0.0


def evaluation_figure(result: Evaluation, *, said: bool = False) -> Any:
    """Intervals by estimator, below them the last estimator's by segment, and what the log earned as a line.

    ``said``: a page around the picture has the verdict already.
    """
    verdict = "" if said else result.verdict
    estimates = list(result.values())
    lines = [(_name(e), e, bool(result.verdict)) for e in estimates]
    for segment, inside in list(result.segments.items())[:_MAX_SEGMENTS]:
        last = list(inside.values())[-1]
        lines.append((f"{segment[:40]}, {_name(last)}", last, bool(inside.verdict)))
    figure = _figure(7.5, 1.5 + 0.5 * len(lines) + _room(verdict))
    axes = figure.subplots()
    for i, (_, e, weak) in enumerate(lines):
        _interval(axes, i, e, weak, dotted=e.name == "dm")
    if len(lines) > len(estimates):
        axes.axhline(len(estimates) - 0.45, color=_SOFT, linewidth=0.8)
    axes.set_yticks(range(len(lines)), [name for name, _, _ in lines], fontsize=10, color=_INK)
    axes.set_ylim(len(lines) - 0.5, -0.9)
    kinds = ", ".join(dict.fromkeys(e.interval for e in estimates))
    axes.set_xlabel(f"estimated reward per {result.per}, {percent(result.level)} intervals ({kinds})", color=_INK)
    _logged(axes, result.logged)
    _quiet(axes)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    effective = {f"{e.ess:,.0f}" for e in estimates if not math.isnan(e.ess)}
    size = f"{estimates[0].n:,} rows" + (f", effective {effective.pop()}" if len(effective) == 1 else "")
    if min(e.low for e in estimates) < 0.0 < max(e.high for e in estimates):
        axes.axvline(0.0, color=_SOFT, linewidth=0.8)
    axes.set_title(f"{result.target}: {size}", loc="left", fontsize=11, color=_INK)
    _verdict(figure, verdict)
    return figure


def several_figure(results: Evaluations, *, said: bool = False) -> Any:
    """Intervals by policy and estimator (of many policies the last one's), what the log earned, lifts beside."""
    verdict = "" if said else results.verdict
    shown = -1 if len(results) > _MAX_POLICIES else 0  # the rest is in the table
    lines = [(name, e, each) for name, each in results.items() for e in list(each.values())[shown:]]
    lifts = {name: each.lift for name, each in results.items() if each.lift is not None}
    figure = _figure(10 if lifts else 7.5, 1.6 + 0.42 * len(lines) + _room(verdict))
    axes, *beside = np.atleast_1d(figure.subplots(1, 2 if lifts else 1, width_ratios=[3, 2] if lifts else [1])).tolist()
    for i, (_, e, each) in enumerate(lines):
        _interval(axes, i, e, bool(each.verdict), dotted=e.name == "dm")
    axes.set_yticks(range(len(lines)), [f"{name}, {_name(e)}" for name, e, _ in lines], fontsize=9, color=_INK)
    axes.set_ylim(len(lines) - 0.5, -0.9)
    first = next(iter(results.values()))
    _logged(axes, results.logged)
    axes.set_xlabel(f"estimated reward per decision, {percent(first.level)} intervals for all at once", color=_INK)
    axes.set_title(f"{lines[0][1].n:,} rows", loc="left", fontsize=11, color=_INK)
    _quiet(axes)
    for right in beside:
        for i, (name, lift) in enumerate(lifts.items()):
            _interval(right, i, lift, bool(results[name].verdict))
        right.axvline(0.0, color=_SOFT, linestyle="--", linewidth=1.2)
        right.set_yticks(range(len(lifts)), list(lifts), fontsize=9, color=_INK)
        right.set_ylim(len(lifts) - 0.5, -0.9)
        over = "what the log earned" if results.baseline == "logged" else str(results.baseline)
        right.set_title(f"lift over {over}", loc="left", fontsize=11, color=_INK)
        right.set_xlabel("difference per decision, paired", color=_INK)
        _quiet(right)
    _verdict(figure, verdict)
    return figure


def both_names(comparison: Comparison) -> tuple[str, str]:
    """Return display names of two policies, distinct also if both have the same name or none."""
    one, other = comparison.names
    return (one, other) if one != other else (f"first, {one}", f"second, {other}")


def comparison_figure(comparison: Comparison, *, said: bool = False) -> Any:
    """Both policies, and their difference below with zero as a line."""
    weak, verdict = bool(comparison.weaknesses), "" if said else "; ".join(comparison.weaknesses)
    figure = _figure(7.5, 3.2 + _room(verdict))
    above, below = figure.subplots(2, 1, height_ratios=[2, 1.2])
    for i, e in enumerate((comparison.first, comparison.second)):
        _interval(above, i, e, weak)
    above.set_yticks([0, 1], both_names(comparison), fontsize=10, color=_INK)
    above.set_ylim(1.5, -0.9)
    level = percent(comparison.first.level)
    above.set_title(f"{comparison.first.name}: reward per decision, {level} intervals", loc="left", fontsize=11,
                    color=_INK)  # fmt: skip
    _interval(below, 0, comparison, weak)
    below.axvline(0.0, color=_SOFT, linestyle="--", linewidth=1.2)
    below.set_yticks([0], ["difference"], fontsize=10, color=_INK)
    below.set_ylim(0.5, -0.9)
    named = dict(zip(("first", "second"), both_names(comparison)))
    better = named.get(comparison.better, comparison.better)
    below.set_xlabel(f"first minus second, paired; better: {better}", color=_INK)
    _quiet(above)
    _quiet(below)
    _verdict(figure, verdict)
    return figure


def diagnostics_figure(d: Diagnostics) -> Any:
    """Histogram of the weights, effective rows over time, balance of the contexts."""
    figure = _figure(10, 2.9)
    weights, ess, balance = figure.subplots(1, 3)
    edges = [edge for edge, _ in d.histogram]
    weights.bar(range(len(edges)), [n for _, n in d.histogram], color=_ACCENT, width=0.9)
    shown = range(0, len(edges), max(1, len(edges) // 5))
    weights.set_xticks(list(shown), [f"{edges[i]:.3g}" for i in shown], fontsize=8)
    weights.set_yscale("symlog", linthresh=1)
    weights.set_title("rows by weight", loc="left", fontsize=10, color=_INK)
    weights.set_xlabel("weight up to (0 is left out)", fontsize=9, color=_INK)
    points = d.ess_over_time
    ess.plot([n for n, _ in points], [e for _, e in points], color=_ACCENT, linewidth=1.8)
    ess.set_title("effective rows over time", loc="left", fontsize=10, color=_INK)
    ess.set_xlabel("rows", fontsize=9, color=_INK)
    ess.locator_params(axis="x", nbins=4)
    for axis in (ess.xaxis, ess.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ess.tick_params(labelsize=8)
    rows = d.balance[:10][::-1]
    if rows:
        off = [z for _, z, _ in rows]
        balance.barh(range(len(rows)), off, color=[_ALARM if z > 5.5 else _ACCENT for z in off], height=0.7)
        balance.set_yticks(range(len(rows)), [name[:24] for name, _, _ in rows], fontsize=8)
        balance.axvline(5.5, color=_ALARM, linestyle="--", linewidth=1)
    else:
        balance.text(0.5, 0.5, "no shared contexts", ha="center", va="center", transform=balance.transAxes, color=_SOFT)
    balance.set_title("balance, the worst contexts", loc="left", fontsize=10, color=_INK)
    balance.set_xlabel("standard errors off", fontsize=9, color=_INK)
    for axes, grid in ((weights, "y"), (ess, "y"), (balance, "x")):
        _quiet(axes, grid)
    return figure


def drift_figure(drift: DriftCheck) -> Any:
    """Draw the arms' rewards over the rows, with bands of two standard errors, and below them the arms' shares."""
    verdict = drift.verdict
    figure = _figure(7.5, 4.6 + _room(verdict))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    rows = np.asarray(drift.rows)
    for k, arm in enumerate(drift.arms[:MAX_LINES]):
        value, error, style = drift.values[:, k], drift.errors[:, k], _LINES[k % len(_LINES)]
        label = arm if len(arm) <= 30 else arm[:29] + "..."
        above.plot(rows, value, style, color=_COLOURS[k], linewidth=1.8, markersize=4, label=label)
        above.fill_between(rows, value - 2 * error, value + 2 * error, color=_COLOURS[k], alpha=0.12, linewidth=0)
        below.plot(rows, drift.shares[:, k], style, color=_COLOURS[k], linewidth=1.4, markersize=3)
    above.set_title("reward per decision of each arm over the rows", loc="left", fontsize=11, color=_INK)
    above.legend(frameon=False, fontsize=8, ncols=3)
    below.set_title("how often the log played it", loc="left", fontsize=11, color=_INK)
    below.set_xlabel("first row of each part", color=_INK)
    below.set_ylim(0.0, 1.08 * float(np.nanmax(drift.shares)))  # room for the marker of the largest
    below.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _quiet(above, "y")
    _quiet(below, "y")
    _verdict(figure, verdict)
    return figure


def saved(figure: Any, path: Any = None) -> Any:
    """The figure, written to ``path`` if there is one."""
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def replay_figure(result: Replay, *, said: bool = False) -> Any:
    """The learning curve: reward per decision over matched rows, all so far and lately, beside what the log earned."""
    verdict = "" if said else "; ".join(result.warnings)
    figure = _figure(7.5, 3.4 + _room(verdict))
    axes, rewards = figure.subplots(), np.asarray(result.rewards, float)
    if rewards.size:
        n = np.arange(1, rewards.size + 1)
        begin = min(rewards.size // 50, 100)  # the mean of the first few rows would set the scale
        axes.plot(n[begin:], (np.cumsum(rewards) / n)[begin:], color=_ACCENT, linewidth=2, label="all so far")
        window = max(1, rewards.size // 20)
        sums = np.cumsum(np.concatenate([[0.0], rewards]))
        lately = (sums[window:] - sums[:-window]) / window
        axes.plot(np.arange(window, rewards.size + 1), lately, color=_SOFT, linewidth=1, label=f"last {window:,}")
        if math.isfinite(result.logged):
            label = f"the log earned {number(result.logged)}"
            axes.axhline(result.logged, color=_SOFT, linestyle="--", linewidth=1.2, label=label)
        axes.legend(frameon=False, fontsize=9)
    if math.isfinite(result.low) and math.isfinite(result.high):
        axes.axhspan(result.low, result.high, color=_ACCENT, alpha=0.12, linewidth=0)
    axes.set_xlabel(f"matched rows ({result.matched:,} of {result.n:,})", color=_INK)
    axes.set_ylabel("reward per decision", color=_INK)
    axes.set_title(f"{result.name}: {number(result.value)} ({number(result.low)} to {number(result.high)})", loc="left",
                   fontsize=11, color=_INK)  # fmt: skip
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _quiet(axes, "y")
    _verdict(figure, verdict)
    return figure
