"""The survey, reproduced: one document as HTML, Markdown and LaTeX, from races that ran just now."""

from __future__ import annotations

import html
import io
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from armwise.extras import needs
from armwise.racing import repeat
from armwise.racing.chapters import CHAPTERS, Chapter, Unbiased, errata, unbiased
from armwise.racing.result import Result
from armwise.racing.runner import race_all
from armwise.racing.slopes import Slope, slope
from armwise.racing.tables import escape_latex

DOUBLINGS = 3  # horizons T/8, T/4, T/2 and T


@dataclass(frozen=True)
class Row:
    """One agent of a chapter: what is proved here, what was measured."""

    agent: str
    regret: float
    std_error: float
    proved: str  # the exponent, or why there is none
    measured: Slope | str

    @property
    def verdict(self) -> str:
        """In words, what the slope says."""
        if isinstance(self.measured, str):
            return self.measured
        if self.measured.sublinear:
            return "below 1"
        return f"1 is not excluded up to T = {self.measured.horizons[-1]:,}; a longer race costs more than this allows"


@dataclass(frozen=True)
class Section:
    """A chapter with its results: one for each horizon, the longest last."""

    chapter: Chapter
    results: list[Result]
    rows: list[Row]
    errata: list[str]

    @property
    def slug(self) -> str:
        """A name for its files."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.chapter.section} {self.chapter.heat}".lower()).strip("-")


def walk_through(
    seeds: int = 20, scale: float = 1.0, workers: int = 1, progress: bool | None = None
) -> tuple[Unbiased, list[Section]]:
    """Race every chapter at four horizons, each twice the one before.

    >>> from unittest.mock import patch
    >>> with patch("armwise.racing.document.CHAPTERS", CHAPTERS[:1]):
    ...     _, [section] = walk_through(seeds=3, scale=0.00125)
    >>> [result.horizon for result in section.results]
    [50, 50, 100, 200]
    """
    steps = [scale / 2**i for i in range(DOUBLINGS, -1, -1)]
    heats = [chapter.at(step) for chapter in CHAPTERS for step in steps]
    results = race_all(heats, seeds=seeds, workers=workers, engine="processes", progress=progress)
    sections = []
    for i, chapter in enumerate(CHAPTERS):
        mine = results[i * len(steps) : (i + 1) * len(steps)]
        sections.append(Section(chapter, mine, [_row(mine, name) for name in mine[-1].finishers],
                                errata(mine[-1].heat)))  # fmt: skip
    return unbiased(seeds), sections


def _row(results: list[Result], name: str) -> Row:
    last = results[-1]
    final, theorem = last.regret(name)[:, -1], last.theorem(name)
    proved = theorem if isinstance(theorem, str) else f"{last.agents[name].theory.exponent:.3g}"
    error = float(final.std(ddof=1)) / np.sqrt(len(final)) if len(final) > 1 else np.nan
    return Row(name, float(final.mean()), float(error), proved, slope(results, name))


def figure(section: Section) -> Any:
    """Mean final regret at each horizon, two standard errors either way; thin lines have the proved slope."""
    with needs("race"):
        from matplotlib.ticker import FuncFormatter, NullFormatter

        from armwise.racing import pictures

    drawn, axes = pictures.log_axes("T, the horizon", "regret at T")
    horizons = np.array([result.horizon for result in section.results], np.float64)
    for i, row in enumerate(section.rows):
        finals = [result.regret(row.agent)[:, -1] for result in section.results]
        mean = np.array([final.mean() for final in finals])
        error = np.array([final.std(ddof=1) / np.sqrt(len(final)) for final in finals])
        shown, look = mean > 0, pictures.look(i)
        bars = np.minimum(2 * error[shown], 0.9 * mean[shown])
        axes.errorbar(horizons[shown], mean[shown], yerr=bars, label=row.agent, capsize=2, linewidth=1.3, markersize=4,
                      **look)  # fmt: skip
        theorem = section.results[-1].theorem(row.agent)
        if not isinstance(theorem, str) and mean[-1] > 0:
            exponent = section.results[-1].agents[row.agent].theory.exponent
            axes.plot(horizons, mean[-1] * (horizons / horizons[-1]) ** exponent, color=look["color"], linewidth=0.7)
    axes.set_xticks(horizons)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    pictures.legend_below(axes)
    return drawn


def _svg(section: Section) -> str:
    import matplotlib

    from armwise.racing.report import on_a_page

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": section.slug, "font.size": 9}):
        figure(section).savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return on_a_page(buffer.getvalue(), html.escape(f"Regret over T: {section.chapter.title}"))


_COLUMNS = ("agent", "regret at T", "proved exponent", "measured slope, 95 %", "")


def _cells(row: Row) -> list[str]:
    regret = f"{row.regret:,.1f} ± {row.std_error:,.1f}"
    proved = row.proved if re.fullmatch(r"[0-9.]+", row.proved) else "none here"
    return [row.agent, regret, proved, "–" if isinstance(row.measured, str) else str(row.measured), row.verdict]


def _section_two(found: Unbiased) -> tuple[str, str]:
    claim = (
        "The reward that was seen, divided by the probability of the arm that was played and 0 for the others, has the "
        "true reward as its mean, whatever chose the arms: every oracle agent below learns from that."
    )
    shown = (
        f"A policy worth {found.truth:.3f}, judged on {found.seeds} logs of another's play: {found.weighted:.3f} ± "
        f"{found.weighted_error:.3f} with importance weights; {found.plain:.3f} ± {found.plain_error:.3f} as the plain "
        "mean over the rounds that agree, which is wrong by many standard errors."
    )
    return claim, shown


def body(found: Unbiased, sections: list[Section]) -> str:
    """The document as HTML without head and foot: what the page and the documentation share."""
    claim, shown = _section_two(found)
    parts = [_INTRODUCTION, f"<h2>2. Unbiased reward estimator</h2><p>{claim}</p><p>{shown}</p>"]
    for section in sections:
        chapter, last = section.chapter, section.results[-1]
        horizons = ", ".join(f"{result.horizon:,}" for result in section.results)
        heads = "".join(f"<th>{html.escape(name)}</th>" for name in _COLUMNS)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(row)) + "</tr>" for row in section.rows
        )
        why = "".join(
            f"<li>{html.escape(row.agent)}: {html.escape(row.proved)}.</li>"
            for row in section.rows if not re.fullmatch(r"[0-9.]+", row.proved)
        )  # fmt: skip
        slips = "".join(f"<li>{html.escape(line)}</li>" for line in section.errata)
        parts.append(
            f'<section id="{section.slug}"><h2>{chapter.section}. {html.escape(chapter.title)}</h2>\n'
            f"<p><b>Claim.</b> {html.escape(chapter.claim)}</p>\n"
            f"<p><b>Experiment.</b> <code>{html.escape(repr(last.world))}</code>, T = {horizons}, "
            f"{len(last.seeds)} seeds; regret against {html.escape(last.world.comparator)}.</p>\n"
            f"<figure>{_svg(section)}</figure>\n<p>{html.escape(chapter.look)}</p>\n"
            f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>\n'
            + (
                f"<details><summary>No exponent beside some slopes: why</summary><ul>{why}</ul></details>\n"
                if why
                else ""
            )
            + (f"<p><b>Errata met here.</b></p><ul>{slips}</ul>\n" if slips else "")
            + "</section>"
        )
    return "\n".join(parts)


_INTRODUCTION = (
    "<p>Every section of “A Survey on Contextual Multi-armed Bandits” that claims a rate, with a race on a world that "
    "the theorem is about. An agent's regret is measured at four horizons, each twice the one before, with an agent "
    "made for each; the slope on logarithmic axes is the power of T that was seen, with a 95 % interval over seeds. A "
    "proved exponent is an upper bound, logarithms apart: a slope below it is no contradiction, and one above it at "
    "these horizons none either while the bound is still above T. Where the interval does not exclude 1, no sublinear "
    "regret was seen, and the table says so.</p>"
)


def latex(found: Unbiased, sections: list[Section]) -> str:
    """The document as LaTeX; figures are read from the folder ``figures``."""
    claim, shown = _section_two(found)
    lines = [
        r"\documentclass{article}", r"\usepackage[a4paper,margin=2.5cm]{geometry}",
        r"\usepackage{booktabs,graphicx,tabularx}", r"\usepackage[T1]{fontenc}",
        r"\title{The survey, reproduced}", r"\date{}", r"\begin{document}", r"\maketitle",
        _tex(re.sub(r"<[^>]+>", "", _INTRODUCTION)), "",
        r"\section*{2. Unbiased reward estimator}", _tex(claim), "", _tex(shown), "",
    ]  # fmt: skip
    for section in sections:
        chapter, last = section.chapter, section.results[-1]
        horizons = ", ".join(f"{result.horizon:,}" for result in section.results)
        lines += [
            rf"\section*{{{chapter.section}. {_tex(chapter.title)}}}",
            rf"\textbf{{Claim.}} {_tex(chapter.claim)}", "",
            rf"\textbf{{Experiment.}} \texttt{{{_tex(repr(last.world))}}}, $T$ = {horizons}, {len(last.seeds)} seeds; "
            rf"regret against {_tex(last.world.comparator)}.", "",
            rf"\begin{{center}}\includegraphics[width=0.6\linewidth]{{figures/{section.slug}.pdf}}\end{{center}}",
            _tex(chapter.look), "", r"\begin{center}\small", r"\begin{tabularx}{\linewidth}{lrllX}", r"\toprule",
            " & ".join(_tex(name) for name in _COLUMNS) + r" \\", r"\midrule",
            *(" & ".join(_tex(cell) for cell in _cells(row)) + r" \\" for row in section.rows),
            r"\bottomrule", r"\end{tabularx}\end{center}",
        ]  # fmt: skip
        if section.errata:
            lines += [r"\textbf{Errata met here.}", r"\begin{itemize}",
                      *(rf"\item {_tex(line)}" for line in section.errata), r"\end{itemize}"]  # fmt: skip
    return "\n".join([*lines, r"\end{document}"]) + "\n"


def _tex(text: str) -> str:
    plain = escape_latex(text)
    for letter, command in {
        "±": r"$\pm$",
        "–": "--",
        "“": "``",
        "”": "''",
        "<": "$<$",
        ">": "$>$",
        "|": r"$|$",
    }.items():
        plain = plain.replace(letter, command)
    return plain


def write_document(found: Unbiased, sections: list[Section], folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Write survey.html, survey.md, survey.tex and figures/*.pdf; the paths by kind."""
    from importlib.resources import files

    from armwise.racing import paper

    place = Path(folder)
    (place / "figures").mkdir(parents=True, exist_ok=True)
    inner = body(found, sections)
    style = re.search(r"<style>.*?</style>", (files("armwise.racing") / "report.html").read_text("utf-8"), re.DOTALL)
    assert style is not None
    title = "The survey, reproduced"
    versions = ", ".join(f"{name} {value}" for name, value in repeat.versions().items())
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{title}</title>{style.group()}'
        "<style>section figure { max-width: 34rem; } td { white-space: normal; }</style></head>\n"
        f"<body><h1>{title}</h1>\n{inner}\n<p class=\"lead\">{html.escape(versions)}.</p></body></html>\n"
    )  # fmt: skip
    written = {"html": place / "survey.html", "markdown": place / "survey.md", "latex": place / "survey.tex"}
    written["html"].write_text(page, encoding="utf-8")
    written["markdown"].write_text(f"# {title}\n\n{inner}\n", encoding="utf-8")
    written["latex"].write_text(latex(found, sections), encoding="utf-8")
    for section in sections:
        paper.write(figure(section), place / "figures" / f"{section.slug}.pdf")
    return written
