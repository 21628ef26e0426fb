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

from armwise.core.tools.extras import needs
from armwise.racing.report import repeat
from armwise.racing.report.chapters import CHAPTERS, Chapter, Unbiased, errata, unbiased
from armwise.racing.results.result import Result, round_number
from armwise.racing.results.slopes import Slope, slope
from armwise.racing.results.tables import escape_latex
from armwise.racing.run.runner import race_all
from armwise.theory.hypotheses import ORDER_ONLY

DOUBLINGS = 3  # horizons T/8, T/4, T/2 and T


@dataclass(frozen=True)
class ChapterRow:
    """One agent of a chapter: the proved bound, the measured regret."""

    agent: str
    regret: float
    std_error: float
    proved: float | None  # the exponent
    why: str  # the reason, if there is no proved exponent
    measured: Slope | str
    vacuous_until: int | None = None  # the horizon from which the bound is below T times the largest regret of a round

    @property
    def verdict(self) -> str:
        """The slope's meaning in words."""
        if isinstance(self.measured, str):
            return self.measured
        if self.measured.sublinear:
            return "below 1"
        if self.proved is not None and self.proved >= 1.0:
            return "the bound itself is of order T"
        up_to = f"1 is not excluded up to T = {self.measured.horizons[-1]:,}"
        if self.proved is None:
            return up_to
        if self.vacuous_until is not None:
            return f"{up_to}; the bound itself is above T until T = {round_number(self.vacuous_until)}"
        return f"{up_to}; a longer race costs more than this document allows"


@dataclass(frozen=True)
class Section:
    """A chapter with its results: one for each horizon, the longest last."""

    chapter: Chapter
    results: list[Result]
    rows: list[ChapterRow]
    errata: list[str]

    @property
    def slug(self) -> str:
        """A name for its files."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.chapter.section} {self.chapter.title}".lower()).strip("-")


def walk_through(
    seeds: int = 20,
    scale: float = 1.0,
    workers: int = 1,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> tuple[Unbiased, list[Section]]:
    """Race every chapter at four horizons, each twice the one before; ``checkpoint`` as in ``race``."""
    steps = [scale / 2**i for i in range(DOUBLINGS, -1, -1)]
    heats = [chapter.at(step) for chapter in CHAPTERS for step in steps]
    results = race_all(heats, seeds=seeds, workers=workers, engine="processes", progress=progress,
                       checkpoint=checkpoint)  # fmt: skip
    sections = []
    for i, chapter in enumerate(CHAPTERS):
        mine = results[i * len(steps) : (i + 1) * len(steps)]
        sections.append(Section(chapter, mine, [_row(mine, name) for name in mine[-1].finishers],
                                errata(mine[-1].heat)))  # fmt: skip
    return unbiased(seeds), sections


def _row(results: list[Result], name: str) -> ChapterRow:
    last = results[-1]
    final, theorem = last.regret(name)[:, -1], last.theorem(name)
    why = theorem if isinstance(theorem, str) else ""
    proved = last.agents[name].theory.exponent if why in ("", ORDER_ONLY) else None
    error = float(final.std(ddof=1)) / np.sqrt(len(final)) if len(final) > 1 else np.nan
    vacuous_until = None if isinstance(theorem, str) else theorem.vacuous_until
    return ChapterRow(name, float(final.mean()), float(error), proved, why, slope(results, name), vacuous_until)


def figure(section: Section) -> Any:
    """Mean final regret at each horizon, two standard errors either way; thin lines have the proved slope."""
    with needs("race"):
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        from armwise.racing.report import pictures

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
        if row.proved is not None and mean[-1] > 0:
            axes.plot(horizons, mean[-1] * (horizons / horizons[-1]) ** row.proved, color=look["color"], linewidth=0.7)
    axes.set_xticks(horizons)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    pictures.legend_below(axes)
    return drawn


def _svg(section: Section) -> str:
    import matplotlib

    from armwise.racing.report.report import on_a_page

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": section.slug, "font.size": 9}):
        figure(section).savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return on_a_page(buffer.getvalue(), html.escape(f"Regret over T: {section.chapter.title}"))


_COLUMNS = ("agent", "regret at T", "proved", "measured (95 %)", "")


def _cells(row: ChapterRow) -> list[str]:
    regret = f"{row.regret:,.1f} ± {row.std_error:,.1f}"
    return [row.agent, regret, _exponent(row), _measured(row), row.verdict]


def _exponent(row: ChapterRow) -> str:
    return "none here" if row.proved is None else f"{row.proved:.3g}"


def _measured(row: ChapterRow) -> str:
    return "–" if isinstance(row.measured, str) else str(row.measured)


_RATES = ("agent", "section", "proved regret", "proved", "measured (95 %)", "")


def rates(sections: list[Section]) -> list[list[str]]:
    """The survey's table with the measurements beside it: every entry that a theorem is about, in order."""
    return [
        [row.agent, section.chapter.section, section.results[-1].agents[row.agent].theory.regret, _exponent(row),
         _measured(row), row.verdict.replace("below 1", f"below 1 up to T = {section.results[-1].horizon:,}")]
        for section in sections for row in section.rows if row.proved is not None
    ]  # fmt: skip


def _table(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    lines = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


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
        why = "".join(f"<li>{html.escape(row.agent)}: {html.escape(row.why)}.</li>" for row in section.rows if row.why)
        slips = "".join(f"<li>{html.escape(line)}</li>" for line in section.errata)
        parts.append(
            f'<section id="{section.slug}"><h2>{_number(chapter)}{html.escape(chapter.title)}</h2>\n'
            f"<p><b>Claim.</b> {html.escape(chapter.claim)}</p>\n"
            f"<p><b>Experiment.</b> <code>{html.escape(_world(last))}</code>, T = {horizons}, "
            f"{len(last.seeds)} seeds; regret against {html.escape(last.world.comparator)}.</p>\n"
            f'<figure style="{_WHOLE_WIDTH}">{_svg(section)}</figure>\n<p>{html.escape(chapter.look)}</p>\n'
            f"{_table(_COLUMNS, [_cells(row) for row in section.rows])}\n"
            + (f"<details><summary>What is not proved here, and why</summary><ul>{why}</ul></details>\n" if why else "")
            + (f"<p><b>Errata met here.</b></p><ul>{slips}</ul>\n" if slips else "")
            + "</section>"
        )
    parts.append(f"<section id=\"rates\"><h2>Every proved rate, measured</h2><p>{_ABOUT_RATES}</p>"
                 f"{_table(_RATES, rates(sections))}</section>")  # fmt: skip
    return "\n".join(parts)


def _world(result: Result) -> str:
    """The world as code, defaults included."""
    known = {name: value for name, value in result.world.params().items() if value is not None}
    return f"{type(result.world).__name__}({', '.join(f'{name}={repeat.code(v)}' for name, v in known.items())})"


def _number(chapter: Chapter) -> str:
    return "Beyond the survey: " if chapter.section == "beyond" else f"{chapter.section}. "


_WHOLE_WIDTH = "width: 100%; max-width: 32rem; margin: 1em 0"  # also on pages that shrink figures to their contents
_ABOUT_RATES = (
    "The survey's table of algorithms once more: each agent in the setting of its theorem, on a world that the theorem "
    "is about, with the power of T that was measured up to the horizon T. What is not here has no proved rate (LinREL, "
    "KernelUCB and LogisticThompson as the survey has them), or has that of the agent inside it."
)
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
        r"\usepackage{array,booktabs,graphicx,longtable,tabularx}", r"\usepackage[T1]{fontenc}",
        r"\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}", r"\newcolumntype{R}{>{\raggedright\arraybackslash}X}",
        r"\setlength{\tabcolsep}{4pt}", r"\setlength{\emergencystretch}{4em}", r"\raggedbottom",
        r"\title{The survey, reproduced}", r"\author{}", r"\date{}", r"\begin{document}", r"\maketitle",
        _tex(re.sub(r"<[^>]+>", "", _INTRODUCTION)), "",
        r"\section*{2. Unbiased reward estimator}", _tex(claim), "", _tex(shown), "",
    ]  # fmt: skip
    for section in sections:
        chapter, last = section.chapter, section.results[-1]
        horizons = ", ".join(f"{result.horizon:,}" for result in section.results)
        lines += [
            rf"\section*{{{_number(chapter)}{_tex(chapter.title)}}}",
            rf"\textbf{{Claim.}} {_tex(chapter.claim)}", "",
            rf"\textbf{{Experiment.}} {_typewriter(_world(last))}, $T$ = {horizons}, {len(last.seeds)} "
            rf"seeds; regret against {_tex(last.world.comparator)}.", "",
            rf"\begin{{center}}\includegraphics[width=0.6\linewidth]{{figures/{section.slug}.pdf}}\end{{center}}",
            _tex(chapter.look), "", r"\begin{center}\footnotesize", r"\begin{tabularx}{\linewidth}{lrllR}", r"\toprule",
            " & ".join(_tex(name) for name in _COLUMNS) + r" \\", r"\midrule",
            *(" & ".join(_tex(cell) for cell in _cells(row)) + r" \\" for row in section.rows),
            r"\bottomrule", r"\end{tabularx}\end{center}",
        ]  # fmt: skip
        if section.errata:
            lines += [r"\textbf{Errata met here.}", r"\begin{itemize}",
                      *(rf"\item {_tex(line)}" for line in section.errata), r"\end{itemize}"]  # fmt: skip
    lines += [
        r"\section*{Every proved rate, measured}", _tex(_ABOUT_RATES), "", r"\begingroup\footnotesize",
        r"\newcommand{\ragged}{\raggedright\arraybackslash}",
        r"\begin{longtable}{@{}ll>{\ragged}p{3.5cm}ll>{\ragged}p{2.7cm}@{}}", r"\toprule",
        " & ".join(_tex(name) for name in _RATES) + r" \\", r"\midrule", r"\endhead",
        *(" & ".join(_tex(cell) for cell in row) + r" \\" for row in rates(sections)),
        r"\bottomrule", r"\end{longtable}", r"\endgroup",
    ]  # fmt: skip
    return "\n".join([*lines, r"\end{document}"]) + "\n"


def _typewriter(code: str) -> str:
    """Break code where an argument or a call begins, not only at spaces."""
    broken = re.sub(r"([(=])", r"\1\\allowbreak{}", _tex(code))
    return rf"\texttt{{{broken}}}"


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

    from armwise.racing.report import paper

    place = Path(folder)
    (place / "figures").mkdir(parents=True, exist_ok=True)
    inner = body(found, sections)
    style = re.search(
        r"<style>.*?</style>", (files("armwise.racing.report") / "report.html").read_text("utf-8"), re.DOTALL
    )
    assert style is not None
    title = "The survey, reproduced"
    versions = ", ".join(f"{name} {value}" for name, value in repeat.versions().items())
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{title}</title>{style.group()}'
        "<style>body { max-width: 60rem; } th { padding: 0.38rem 0.55rem; } "
        "td { white-space: normal; }</style></head>\n"
        f"<body><h1>{title}</h1>\n{inner}\n<p class=\"lead\">{html.escape(versions)}.</p></body></html>\n"
    )  # fmt: skip
    written = {"html": place / "survey.html", "markdown": place / "survey.md", "latex": place / "survey.tex"}
    written["html"].write_text(page, encoding="utf-8")
    written["markdown"].write_text(f"# {title}\n\n{inner}\n", encoding="utf-8")
    written["latex"].write_text(latex(found, sections), encoding="utf-8")
    for section in sections:
        paper.write(figure(section), place / "figures" / f"{section.slug}.pdf")
    return written
