"""Plots of a race. Agents differ in colour, line style and marker, so that they are distinct in print too."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogFormatter, LogLocator, MaxNLocator, NullFormatter

from armwise.core.tools.figure import Figure
from armwise.theory import stopping

if TYPE_CHECKING:
    from armwise.racing.results.result import Result

# The palette of Okabe and Ito without yellow and black: distinct with every kind of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#767676")
INK = "#1A1C20"
_DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (6, 2, 1.5, 2)), (0, (1.5, 1.5)), (0, (9, 2, 3, 2)), (0, (3, 1.2)),
                            (0, (6, 2, 1.5, 2, 1.5, 2)), (0, (12, 3)))  # fmt: skip
_DOTS: Any = (0, (1, 2))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_SIZE = (4.3, 3.4)
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
Kind = Literal["regret", "loglog", "bounds", "arms", "time", "cost", "stopping", "clicks"]


def draw(result: Result, kind: Kind) -> Figure:
    """Draw a plot of this kind: regret, loglog, bounds, arms, time, cost, stopping or clicks."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if not result.finishers:
        raise ValueError(f"no agent finished a run, so there is nothing to draw: {result.failures[0]}")
    return KINDS[kind](result)


def style(result: Result, name: str) -> dict[str, Any]:
    """Colour, dashes and marker of an agent: the same in every picture of a result."""
    return look(list(result.agents).index(name))


def look(n: int) -> dict[str, Any]:
    """Colour, dashes and marker of the n-th agent."""
    turn = n + 3 * (n // 8)  # the ninth agent has the colour of the first with other dashes
    return {"color": COLOURS[n % 8], "linestyle": _DASHES[turn % 8], "marker": _MARKERS[turn % 8]}


def _regret(result: Result) -> Figure:
    """Mean cumulative regret, with the band from the 5 % to the 95 % quantile over the seeds."""
    figure, axes = _axes("round", "cumulative regret")
    for name in _ranked(result):
        regret = result.regret(name)
        drawn_as = style(result, name)
        if len(regret) > 1:
            low, high = np.quantile(regret, [0.05, 0.95], axis=0)
            axes.fill_between(result.rounds, low, high, color=drawn_as["color"], alpha=0.16, linewidth=0)
        axes.plot(result.rounds, regret.mean(axis=0), label=name, **drawn_as, markevery=_every(result, name))
    axes.set_xlim(0, result.horizon)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    legend_below(axes)
    return figure


def _cost(result: Result) -> Figure:
    """Mean cumulative cost of the first resource, with the band over the seeds; a grey line is the world's rate."""
    figure, axes = _axes("round", "cumulative cost")
    for name in _ranked(result):
        paid = result.cost(name)
        paid = paid[:, :, 0] if paid.ndim == 3 else paid
        look = style(result, name)
        if len(paid) > 1:
            low, high = np.quantile(paid, [0.05, 0.95], axis=0)
            axes.fill_between(result.rounds, low, high, color=look["color"], alpha=0.16, linewidth=0)
        axes.plot(result.rounds, paid.mean(axis=0), label=name, **look, markevery=_every(result, name))
    rate = result.world.constants().get("rate")
    if rate is not None:
        axes.plot([0, result.horizon], [0, rate * result.horizon], color="0.6", label="rate")
    axes.set_xlim(0, result.horizon)
    axes.set_ylim(bottom=0.0)
    legend_below(axes)
    return figure


def _loglog(result: Result) -> Figure:
    """The same on logarithmic axes; a thin line has the slope that is proved for the agent on this world."""
    figure, axes = _axes("round", "cumulative regret")
    lowest = np.inf
    drawn: set[float] = set()
    for name in _ranked(result):
        mean = result.regret(name).mean(axis=0)
        shown = (mean > 0) & (result.rounds >= 3)
        if not shown.any():
            continue
        drawn_as = style(result, name)
        axes.plot(result.rounds[shown], mean[shown], label=name, **drawn_as, markevery=0.15)
        lowest = min(lowest, float(mean[shown].min()))
        if result.bound(name)[0] is not None:
            theory = result.agents[name].theory
            drawn.add(round(float(theory.exponent), 3))
            half = result.rounds >= result.horizon / 30
            line = mean[-1] * (result.rounds[half] / result.horizon) ** theory.exponent
            axes.plot(result.rounds[half], line, color=drawn_as["color"], linewidth=0.8, alpha=0.9)
    _logarithmic(axes)
    if np.isfinite(lowest):
        axes.set_ylim(bottom=max(lowest * 0.8, axes.get_ylim()[1] / 1e6))
    powers = " or ".join(f"T^{power:g}" for power in sorted(drawn))
    extra = [Line2D([], [], color=INK, linewidth=0.8, label=f"proved slope {powers}")] if drawn else []
    legend_below(axes, extra)
    return figure


def _bounds(result: Result) -> Figure:
    """Each agent's bound (dotted) and certificate (thin) beside its measured regret; the worst seed as a marker."""
    figure, axes = _axes("round", "regret and what is proved")
    some = certified = False
    for name in _ranked(result):
        regret = result.regret(name)
        drawn_as = style(result, name)
        positive = regret.mean(axis=0) > 0
        axes.plot(result.rounds[positive], regret.mean(axis=0)[positive], **drawn_as, markevery=0.15, label=name)
        axes.plot(result.horizon, max(float(regret[:, -1].max()), 1e-9), linestyle="", marker="_", markersize=11,
                  color=drawn_as["color"], markeredgewidth=1.6)  # fmt: skip
        curve, _ = result.bound(name)
        if curve is not None and result.verdict(name)[0] != "vacuous":
            some = True
            at = result.rounds[result.rounds >= 2]
            axes.plot(at, [curve(int(t)) for t in at], **drawn_as | {"linestyle": _DOTS}, linewidth=1.1,
                      markevery=[len(at) - 1], markerfacecolor="none")  # fmt: skip
        proved = result.certificate(name)
        if not isinstance(proved, str):
            certified = True
            axes.plot(proved.rounds, proved.curve, color=drawn_as["color"], linewidth=0.9, marker="1", markersize=5)
    _logarithmic(axes)
    finals = [float(result.regret(name)[:, -1].mean()) for name in result.finishers]
    # Bounds may lie far above the measured curves, which must stay readable.
    axes.set_ylim(bottom=max(0.1, 0.1 * min((final for final in finals if final > 0), default=1.0)))
    extra = [Line2D([], [], color=INK, marker="_", markersize=9, linestyle="", label="worst seed")]
    if some:
        extra.append(Line2D([], [], color=INK, linestyle=_DOTS, linewidth=1.1, label="bound (open marker)"))
    if certified:
        extra.append(Line2D([], [], color=INK, linewidth=0.9, marker="1", markersize=5, label="certified, first seed"))
    legend_below(axes, extra)
    return figure


def _arms(result: Result) -> Figure:
    """The share of each arm over time, one panel per agent; rare arms are grouped."""
    names = _ranked(result)
    columns = 2 if len(names) > 1 else 1
    rows = -(-len(names) // columns)
    height = 1.05 + 1.35 * rows
    figure = Figure(figsize=(_SIZE[0], height))
    figure.subplots_adjust(left=0.14, right=0.98, top=1 - 0.25 / height, bottom=0.75 / height, wspace=0.1, hspace=0.28)
    panels = np.atleast_1d(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)).ravel()
    total = sum(result.arm_share(name).sum(axis=0) for name in names)
    shown = np.sort(np.argsort(-np.asarray(total), kind="stable")[:7])
    shades = [_grey_safe(i / max(1, len(shown) - 1)) for i in range(len(shown))]
    for axes, name in zip(panels, names, strict=False):
        share = result.arm_share(name)
        rest = 1.0 - share[:, shown].sum(axis=1)
        at = (np.arange(len(share)) + 0.5) * result.horizon / len(share)
        stack = [*share[:, shown].T, *([rest] if share.shape[1] > len(shown) else [])]
        axes.stackplot(at, stack, colors=[*shades, "#C8C8C8"], edgecolor="white", linewidth=0.4)
        axes.set_title(name, fontsize=9, color=INK, pad=3)
        axes.set_xlim(at[0], at[-1])
        axes.set_ylim(0, 1)
        plain(axes)
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    labels = [f"arm {arm}" for arm in shown] + (["others"] if result.world.n_arms > len(shown) else [])
    colours: list[Any] = [*shades, "#C8C8C8"]
    patches = [Line2D([], [], marker="s", markersize=7, linestyle="", color=c) for c in colours]
    figure.legend(patches[: len(labels)], labels, loc="lower center", ncols=4, frameon=False, fontsize=8,
                  labelcolor=INK, handletextpad=0.2, columnspacing=1.0)  # fmt: skip
    figure.supylabel("share of plays", fontsize=9, color=INK, x=0.01)
    return figure


def _time(result: Result) -> Figure:
    """Time per decision against regret."""
    figure, axes = _axes("time per decision (microseconds)", "final regret")
    for name in _ranked(result):
        final = result.regret(name)[:, -1]
        cost = 1e6 * result.seconds_per_decision(name)
        drawn_as = style(result, name)
        low, high = np.quantile(final, [0.05, 0.95])
        axes.plot([cost, cost], [low, high], color=drawn_as["color"], linewidth=1.2)
        axes.plot(
            cost,
            final.mean(),
            linestyle="",
            marker=drawn_as["marker"],
            color=drawn_as["color"],
            markersize=8,
            label=name,
        )
    axes.set_xscale("log")
    costs = [1e6 * result.seconds_per_decision(name) for name in result.finishers]
    axes.set_xlim(min(costs) / 3, max(costs) * 3)  # at least a decade, for readable ticks
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    legend_below(axes)
    return figure


def _stopping(result: Result) -> Figure:
    """The share of the seeds whose search has stopped by each round; grey: the least mean of any correct rule."""
    if not result.searchers:
        raise ValueError(f"kind 'stopping' needs an agent that stops, such as aw.TrackAndStop; got {result.finishers}")
    figure, axes = _axes("round", "share of runs that have stopped")
    first: list[float] = []
    for name in result.searchers:
        times = np.sort(result.stopping_times(name))
        stopped = times[~np.isnan(times)]
        first += stopped[:1].tolist()
        rounds = np.concatenate([[1.0], stopped, [float(result.horizon)]])
        shares = np.concatenate([[0.0], np.arange(1, stopped.size + 1), [stopped.size]]) / times.size
        wrong = _wrong_answers(result, name)
        label = f"{name}: {wrong} of {stopped.size} wrong" if wrong is not None else name
        axes.step(rounds, shares, where="post", label=label, **(style(result, name) | {"marker": ""}))
    means = result.world.constants().get("means")
    deltas = {result.agents[name].params().get("delta") for name in result.searchers}
    delta = deltas.pop()
    if means is not None and delta is not None and not deltas:
        least = stopping.least_stopping_time(means, delta, result.world.constants().get("R"))
        if least < result.horizon:
            axes.axvline(least, color="0.6", label=f"least mean time for error {delta:g}")
            first.append(least)
    axes.set_xscale("log")
    if first:
        axes.set_xlim(0.5 * min(first), result.horizon)
    axes.set_ylim(0.0, 1.02)
    legend_below(axes)
    return figure


def _clicks(result: Result) -> Figure:
    """Clicks per list on each slot: means over the seeds with two standard errors either way, and the best list's."""
    figure, axes = _axes("slot, from the top", "clicks per list")
    for name in _ranked(result):
        clicks = result.clicks(name)
        drawn_as = style(result, name)
        error = 2 * clicks.std(axis=0, ddof=1) / np.sqrt(len(clicks)) if len(clicks) > 1 else None
        axes.errorbar(np.arange(1, clicks.shape[1] + 1), clicks.mean(axis=0), yerr=error, label=name, capsize=2,
                      **drawn_as)  # fmt: skip
    best = result.best_clicks().mean(axis=0)
    axes.plot(np.arange(1, len(best) + 1), best, color="0.4", linestyle="--", label="the best list of each round")
    axes.set_ylim(bottom=0.0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_below(axes)
    return figure


def _wrong_answers(result: Result, name: str) -> int | None:
    """The number of answers other than the world's best arm; None where the world has no single best arm."""
    means: list[float] | None = result.world.constants().get("means")
    if means is None:
        return None
    return sum(answer is not None and means[answer] < max(means) for answer in result.answers(name))


KINDS: dict[Kind, Callable[[Result], Figure]] = {
    "regret": _regret,
    "loglog": _loglog,
    "bounds": _bounds,
    "arms": _arms,
    "time": _time,
    "cost": _cost,
    "stopping": _stopping,
    "clicks": _clicks,
}


def _ranked(result: Result) -> list[str]:
    """Largest final regret first, so that the legend reads in the order of the lines."""
    return sorted(result.finishers, key=lambda name: -float(result.regret(name)[:, -1].mean()))


def _every(result: Result, name: str) -> list[int]:
    """Eight markers along the line, shifted for each agent so that they do not hide one another."""
    n = list(result.agents).index(name)
    at = (np.arange(8) + 0.3 + 0.08 * n) / 8.6 * result.horizon
    return sorted({int(i) for i in np.searchsorted(result.rounds, at).clip(0, len(result.rounds) - 1)})


def _axes(xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=_SIZE)
    axes = figure.subplots()
    axes.set_xlabel(xlabel, fontsize=9, color=INK)
    axes.set_ylabel(ylabel, fontsize=9, color=INK)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    plain(axes)
    return figure, axes


def log_axes(xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    """Empty logarithmic axes in the style of all pictures."""
    figure, axes = _axes(xlabel, ylabel)
    _logarithmic(axes)
    return figure, axes


def _logarithmic(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(_Powers())
        axis.set_minor_formatter(_Powers())
        axis.set_minor_locator(_Between(subs="auto"))


class _Between(LogLocator):
    """Draw ticks between powers of ten if few powers are visible; with many they only cost time."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        return super().tick_values(vmin, vmax) if vmax < 1e3 * vmin else []


class _Powers(LogFormatter):
    """Labels in plain text instead of matplotlib's formulas: searchable, and faster to draw."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return power(x) if super().__call__(x, pos) else ""  # the base class decides which ticks have a label


def power(x: float) -> str:
    """A number on a logarithmic axis."""
    if 1e-4 < x < 0.9e6:
        return f"{x:,g}" if x < 1.0 else f"{x:,.0f}"
    exponent = math.floor(math.log10(x) + 1e-9)
    digit, raised = f"{x / 10.0**exponent:.0f}", str(exponent).translate(_RAISED)
    return f"10{raised}" if digit == "1" else f"{digit}·10{raised}"


def plain(axes: Axes) -> None:
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.tick_params(colors=INK, labelsize=8, which="both")
    axes.grid(True, color="#9AA0A6", alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)


def legend_below(axes: Axes, extra: list[Line2D] | None = None) -> None:
    """Put the legend below the axes, with fixed margins: a layout engine would double the drawing time."""
    handles = [*axes.get_legend_handles_labels()[0], *(extra or [])]
    rows = -(-len(handles) // 2)
    figure = axes.figure
    assert isinstance(figure, Figure)
    height = _SIZE[1] + 0.19 * max(0, rows - 3)
    figure.set_size_inches(_SIZE[0], height)
    figure.subplots_adjust(left=0.16, right=0.97, top=0.97, bottom=(0.5 + 0.19 * rows + 0.05) / height)
    figure.legend(handles=handles, loc="lower center", ncols=2, frameon=False, fontsize=8, labelcolor=INK,
                  handlelength=3.4, borderaxespad=0.1)  # fmt: skip


def _grey_safe(level: float) -> tuple[float, float, float]:
    """A colour of cividis, whose lightness grows evenly: its order is visible in print and to every eye."""
    from matplotlib import colormaps

    red, green, blue, _ = colormaps["cividis"](0.05 + 0.9 * level)
    return red, green, blue
