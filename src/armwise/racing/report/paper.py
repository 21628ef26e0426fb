"""Figures for print: as wide as a column or page, text of 8 points, vector graphics where the format allows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from armwise.core.tools.figure import Figure
from armwise.racing.report import pictures

if TYPE_CHECKING:
    from armwise.racing.results.result import Result

WIDTHS = {"column": 3.25, "page": 6.75}  # inches, as most two-column styles have them
_HEIGHT = 2.3  # of a panel, labels included


def inches(width: float | str) -> float:
    """A width in inches, or by name."""
    if isinstance(width, str):
        if width not in WIDTHS:
            raise ValueError(f"width must be inches, 'column' or 'page', got {width!r}")
        return WIDTHS[width]
    if isinstance(width, bool) or not isinstance(width, (int, float)) or not 1.0 <= width <= 40.0:
        raise ValueError(f"width must be 1 to 40 inches, 'column' or 'page', got {width!r}")
    return float(width)


def panels(results: list[Result], kind: pictures.Kind = "regret", width: float | str = "page") -> Figure:
    """One panel per world, at most four in a row, with one legend below; regret or loglog."""
    if kind not in ("regret", "loglog"):
        raise ValueError(f"kind must be 'regret' or 'loglog' for a figure of panels, got {kind!r}")
    names = list(dict.fromkeys(name for result in results for name in result.agents))
    whole = inches(width)
    columns = min(len(results), max(1, round(whole / 1.6)), 4)
    rows, legend_columns = -(-len(results) // columns), max(1, int(whole / 1.5))
    below = 0.17 * -(-len(names) // legend_columns) + 0.5
    height = _HEIGHT * rows + below - 0.4
    figure = Figure(figsize=(whole, height))
    axes = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
    looks = {name: pictures.look(i) for i, name in enumerate(names)}
    for panel, result in zip(axes, results, strict=False):
        _curves(panel, result, kind, looks)
    for panel in axes[len(results) :]:
        panel.set_visible(False)
    for i in range(0, len(results), columns):
        axes[i].set_ylabel("cumulative regret", fontsize=8)
    figure.subplots_adjust(left=0.62 / whole, right=1 - 0.12 / whole, top=1 - 0.25 / height, bottom=below / height,
                           wspace=0.32 * columns / whole * 2.2, hspace=0.45)  # fmt: skip
    handles = [
        Line2D([], [], label=name, linewidth=1.1, markersize=3, **looks[name])
        for name in names
    ]  # fmt: skip
    figure.legend(handles=handles, loc="lower center", ncols=legend_columns, frameon=False, fontsize=7.5,
                  handlelength=2.6, columnspacing=1.2, borderaxespad=0.1)  # fmt: skip
    return figure


def _curves(panel: Any, result: Result, kind: pictures.Kind, looks: dict[str, dict[str, Any]]) -> None:
    for name in result.finishers:
        regret, look = result.regret(name), looks[name]
        mean = regret.mean(axis=0)
        at = result.rounds
        if kind == "loglog":
            shown = (mean > 0) & (at >= 3)
            panel.plot(at[shown], mean[shown], linewidth=1.1, markersize=3, markevery=0.25, **look)
            continue
        if len(regret) > 1:
            error = regret.std(axis=0, ddof=1) / np.sqrt(len(regret))
            panel.fill_between(at, mean - 2 * error, mean + 2 * error, color=look["color"], alpha=0.2, linewidth=0)
        panel.plot(at, mean, linewidth=1.1, markersize=3, markevery=max(1, len(at) // 6), **look)
    if kind == "loglog":
        panel.set_xscale("log")
        panel.set_yscale("log")
    else:
        panel.set_xlim(0, result.horizon)
        panel.xaxis.set_major_locator(MaxNLocator(3))
        panel.yaxis.set_major_locator(MaxNLocator(5))
        panel.xaxis.set_major_formatter(FuncFormatter(_short))
        panel.yaxis.set_major_formatter(FuncFormatter(_short))
    pictures.plain(panel)
    panel.tick_params(labelsize=7)
    panel.set_title(result.label, fontsize=8, pad=3)
    panel.set_xlabel("round", fontsize=8, labelpad=1)


def _short(value: float, _: Any) -> str:
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:g}"


def write(figure: Any, path: str | os.PathLike[str]) -> None:
    """Save with text as text: a PDF embeds TrueType fonts, as journals require; an SVG names its font."""
    with matplotlib.rc_context({"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none"}):
        figure.savefig(path, dpi=300)
