"""The bake-off's statistics, and its two pages, from rows of {"set", "agent", "n", "loss", "us"}."""

from __future__ import annotations

import html as escape
import math
import statistics
from typing import Any

from benchmarks import bakeoff_peers

Row = dict[str, Any]
REFERENCES = ("VW best of 36", "VW default", "Auto")  # those that are there


def verdict(loss: float, other: float, n: int) -> int:
    """1 a significant win, -1 a significant loss, 0 neither: the bake-off paper's test (Bietti et al. 2021).

    >>> verdict(0.10, 0.20, 1000), verdict(0.20, 0.10, 1000), verdict(0.10, 0.11, 1000)
    (1, -1, 0)
    """
    sigma = math.sqrt((loss * (1 - loss) + other * (1 - other)) / n)
    difference = other - loss
    return 0 if abs(difference) <= 1.96 * sigma else (1 if difference > 0 else -1)


def ratio(loss: float, other: float, n: int) -> float:
    """How many times the other's loss; a loss of 0 counts as half an error.

    >>> round(ratio(0.0, 0.1, 100), 3)
    0.05
    """
    return max(loss, 0.5 / n) / max(other, 0.5 / n)


def table(rows: list[Row]) -> dict[str, dict[str, Row]]:
    """Rows that have a loss, by agent and set."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        if "loss" in row:
            found.setdefault(row["agent"], {})[row["set"]] = row
    return found


def against(mine: dict[str, Row], theirs: dict[str, Row]) -> tuple[float, int, int, int]:
    """The geometric mean of the ratios, wins, losses, and the number of sets that both have."""
    both = sorted(mine.keys() & theirs.keys())
    pairs = [(mine[name]["loss"], theirs[name]["loss"], mine[name]["n"]) for name in both]
    verdicts = [verdict(*pair) for pair in pairs]
    mean = math.exp(statistics.fmean(math.log(ratio(*pair)) for pair in pairs)) if pairs else math.nan
    return mean, verdicts.count(1), verdicts.count(-1), len(both)


def mean_ranks(found: dict[str, dict[str, Row]]) -> tuple[dict[str, float], float, int]:
    """The mean rank of each agent over the sets that all have, ties shared, Nemenyi's difference (5 %), and the sets.

    >>> losses = [("A", "s", 0.1), ("B", "s", 0.2), ("A", "t", 0.3), ("B", "t", 0.3)]
    >>> mean_ranks(table([{"agent": agent, "set": name, "n": 9, "loss": loss} for agent, name, loss in losses]))[0]
    {'A': 1.25, 'B': 1.75}
    """
    from scipy.stats import rankdata, studentized_range

    most = max((len(sets) for sets in found.values()), default=0)
    found = {agent: sets for agent, sets in found.items() if len(sets) == most}  # peers ran on small sets only
    common = sorted(set.intersection(*(set(sets) for sets in found.values()))) if found else []
    if not common or len(found) < 2:
        return {}, math.nan, 0
    ranks = [rankdata([found[agent][name]["loss"] for agent in found]) for name in common]
    means = {agent: float(statistics.fmean(rank[i] for rank in ranks)) for i, agent in enumerate(found)}
    k = len(found)
    width = float(studentized_range.ppf(0.95, k, 1e6)) / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * len(common)))
    return dict(sorted(means.items(), key=lambda item: item[1])), width, len(common)


def near_the_best(found: dict[str, dict[str, Row]], agent: str) -> tuple[int, int, list[str]]:
    """On how many sets an agent is within 10 % or 2 sigma of the best of armwise's others, of how many, and where not.

    >>> losses = [("Auto", "s", 0.10), ("B", "s", 0.095), ("Auto", "t", 0.3), ("B", "t", 0.1)]
    >>> found = table([{"agent": agent, "set": name, "n": 900, "loss": loss} for agent, name, loss in losses])
    >>> near_the_best(found, "Auto")
    (1, 2, ['t'])
    """
    missed = []
    for name, own in found[agent].items():
        others = [sets[name]["loss"] for other, sets in found.items() if name in sets and not foreign(other)]
        best, loss, n = min(others), own["loss"], own["n"]
        sigma = math.sqrt((loss * (1 - loss) + best * (1 - best)) / n)
        if loss > 1.1 * best and loss > best + 2.0 * sigma:
            missed.append(name)
    return len(found[agent]) - len(missed), len(found[agent]), missed


def foreign(agent: str) -> bool:
    """Whether an agent is a peer's.

    >>> foreign("VW default"), foreign("Auto")
    (True, False)
    """
    return agent.startswith(("VW", *bakeoff_peers.PACKAGES))


def claims(rows: list[Row]) -> list[str]:
    """What Auto is to show, in sentences: all sets, and the last third of them by name."""
    found = table(rows)
    if "Auto" not in found:
        return []
    lines, names = [], sorted(found["Auto"])
    groups = [("all sets", names), ("the last third of the sets by name", names[len(names) - len(names) // 3 :])]
    for what, group in groups:
        mine = {name: found["Auto"][name] for name in group}
        if "VW best of 36" in found:
            mean, wins, losses, n = against(mine, found["VW best of 36"])
            lines.append(f"Auto against VW's best of 36, {what}: geometric mean {mean:.3f}, "
                         f"{wins} wins, {losses} losses of {n}.")  # fmt: skip
    near, n, missed = near_the_best(found, "Auto")
    where = f" (not on {', '.join(missed)})" if missed else ""
    lines.append(f"Auto is within 10 % or 2 sigma of the best of armwise's agents on {near} of {n} sets{where}.")
    behind = [
        name
        for name in names
        if found["Auto"][name]["loss"] > found["Auto"][name].get("constant", 1.0)
        and verdict(found["Auto"][name]["loss"], found["Auto"][name]["constant"], found["Auto"][name]["n"]) < 0
    ]
    lines.append("Auto is significantly worse than the best constant arm on "
                 f"{len(behind)} of {n} sets{': ' + ', '.join(behind) if behind else ''}.")  # fmt: skip
    return lines


def parts(rows: list[Row]) -> tuple[list[list[str]], list[list[str]], list[str]]:
    """Two tables, a heading first (agents, then sets), and the lines on what failed."""
    found = table(rows)
    references = [name for name in REFERENCES if name in found]
    ranks, _, _ = mean_ranks(found)
    order = [*ranks, *(agent for agent in found if agent not in ranks)]
    agents = [["agent", "sets", "mean rank", *(f"loss / {name}: geometric mean (W, L)" for name in references),
               "us per decision"]]  # fmt: skip
    for agent in order:
        cells = []
        for name in references:
            mean, wins, losses, n = against(found[agent], found[name])
            cells.append("-" if agent == name or not n else f"{mean:.2f} ({wins} W, {losses} L of {n})")
        times = [row["us"] for row in found[agent].values() if "us" in row]
        took = f"{statistics.median(times):.1f}" if times else ""
        agents.append([agent, str(len(found[agent])), f"{ranks[agent]:.2f}" if agent in ranks else "", *cells, took])
    sets = [["set", "n", "K", "d", "best constant", *order]]
    for name in sorted({row["set"] for row in rows}):
        own = next(row for row in rows if row["set"] == name)
        by_agent = {agent: found[agent][name]["loss"] for agent in order if name in found[agent]}
        best = min(by_agent.values(), default=math.nan)
        shown = [_loss(by_agent.get(agent), best) for agent in order]
        sets.append([name, f"{own['n']:,}", str(own["K"]), str(own["d"]), f"{own['constant']:.4f}", *shown])
    failed = [f"{row['agent']} on {row['set']}: {row['error']}" for row in rows if "error" in row]
    return agents, sets, failed


HOW = (
    "Each row of a set is one round: the agent names a class and learns whether it was right. Losses are progressive "
    "0/1 losses over the whole set, in the file's order, one run each. W and L are significant wins and losses "
    "against the reference: |difference| > 1.96 sigma, sigma^2 = (p (1 - p) + q (1 - q)) / n, the test of Bietti, "
    "Agarwal, Langford (2021). A ratio below 1 is better than the reference; a loss of 0 counts as half an error. "
    "Auto is given the raw columns, the others columns divided by their largest absolute value, and a constant. Every "
    "agent has its default settings; VW's best of 36 is chosen on each set, and its losses may come from a file beside "
    "the sets. Agents over features of arms, kernels, explicit policies or advice do not fit these sets and are not "
    "run. MABWiser, contextualbandits and bayesianbandits, where they are there, see the same columns as the others on "
    "the smaller sets only, with a limit of time per set. Times are processor time in `play`, the median over the "
    "sets; the machine may have been busy."
)


def markdown(rows: list[Row], about: str) -> str:
    """The page for the repository."""
    agents, sets, failed = parts(rows)
    _, width, n = mean_ranks(table(rows))
    lines = [
        "# The bake-off",
        "",
        "Written by `make bakeoff DATA=FOLDER`. These are labels, without noise; [NOISY.md](NOISY.md) has the same "
        "agents where outcomes are clicks, amounts and revenue.",
        "",
        HOW,
        "",
        about,
        "",
        *_pipes(agents),
        "",
        *(f"- {line}" for line in claims(rows)),
        "",
    ]
    if n:
        lines += [f"Mean ranks are over {n} sets, of the agents that ran on all of them; two that differ by less than "
                  f"{width:.2f} (Nemenyi, 5 %) are not told apart.", ""]  # fmt: skip
    lines += ["## Every set", "", *_pipes(sets), ""]
    if failed:
        lines += ["## What failed", "", *(f"- {line}" for line in failed), ""]
    return "\n".join(lines)


def html(rows: list[Row], about: str) -> str:
    """The same as a page of its own, with the picture of mean ranks."""
    agents, sets, failed = parts(rows)
    broken = "<h2>What failed</h2><ul>" + "".join(f"<li>{escape.escape(line)}" for line in failed) + "</ul>"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>The bake-off</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,"><style>'
        ":root{color-scheme:light dark}body{font:16px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;"
        "padding:0 1rem}p,ul{max-width:48rem}table,.wide{display:block;overflow-x:auto}table{border-collapse:collapse;"
        "font-size:.88rem;font-variant-numeric:tabular-nums}td,th{padding:.2rem .6rem;text-align:right;"
        "white-space:nowrap;border-bottom:1px solid #8884}th{white-space:normal;min-width:4rem;max-width:9rem;"
        "vertical-align:bottom}td:first-child,th:first-child{text-align:left;position:sticky;left:0;background:Canvas}"
        "svg{min-width:38rem;max-width:58rem;display:block}</style>"
        f"<h1>The bake-off</h1><p>{escape.escape(HOW)}</p><p>{escape.escape(about)}</p>{_cells(agents)}"
        f"<ul>{''.join(f'<li>{escape.escape(line)}' for line in claims(rows))}</ul>"
        f"{picture(rows)}<h2>Every set</h2>{_cells(sets)}{broken if failed else ''}</html>\n"
    )


def picture(rows: list[Row]) -> str:
    """Mean ranks with bars of half the critical difference to each side: bars that do not meet are told apart."""
    ranks, width, n = mean_ranks(table(rows))
    if not n:
        return ""
    left, right, step, top = 190, 860, 24, 44
    k = len(ranks)
    bottom = top + (k - 1) * step + 14

    def x(rank: float) -> float:
        return left + (min(max(rank, 0.5), k + 0.5) - 0.5) / k * (right - left)

    shapes = [
        f'<path d="M{x(tick):.1f} {top - 16}V{bottom}" stroke="currentColor" opacity=".12"/>'
        f'<text x="{x(tick):.1f}" y="{top - 22}" text-anchor="middle" font-size="12" opacity=".7">{tick}</text>'
        for tick in range(1, k + 1)
    ]
    for i, (agent, rank) in enumerate(ranks.items()):
        y = top + i * step
        shapes.append(
            f'<text x="{left - 10}" y="{y + 5}" text-anchor="end">{escape.escape(agent)}</text>'
            f'<line x1="{x(rank - width / 2):.1f}" x2="{x(rank + width / 2):.1f}" y1="{y}" y2="{y}" '
            f'stroke="currentColor" stroke-width="3" opacity=".4"/><circle cx="{x(rank):.1f}" cy="{y}" r="5"/>'
            f'<text x="{right + 10}" y="{y + 5}">{rank:.2f}</text>'
        )
    caption = f"Mean rank over {n} sets; bars that do not meet differ significantly (Nemenyi, 5 %)."
    return (
        f'<h2>Mean ranks</h2><div class="wide"><svg viewBox="0 0 920 {bottom + 6}" role="img" aria-label="{caption}" '
        f'fill="currentColor" font-size="14">{"".join(shapes)}</svg></div><p>{caption}</p>'
    )


def _loss(loss: float | None, best: float) -> str:
    if loss is None:
        return ""
    return f"**{loss:.4f}**" if loss == best else f"{loss:.4f}"


def _pipes(table: list[list[str]]) -> list[str]:
    head, *body = table
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(line) + " |" for line in body),
    ]


def _cells(table: list[list[str]]) -> str:
    def cell(tag: str, text: str) -> str:
        bold = text.startswith("**")
        shown = escape.escape(text.strip("*"))
        return f"<{tag}>{f'<b>{shown}</b>' if bold else shown}</{tag}>"

    head, *body = table
    return "<table><tr>" + "".join(cell("th", text) for text in head) + "".join(
        "<tr>" + "".join(cell("td", text) for text in line) for line in body
    ) + "</table>"  # fmt: skip
