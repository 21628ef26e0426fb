"""The report: one self-contained page with the pictures, a sortable table, and how to repeat the race."""

from __future__ import annotations

import html
import io
import math
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armwise.core.tools.extras import needs
from armwise.racing.report import pictures, repeat, report_data
from armwise.racing.run.workers import side_by_side

if TYPE_CHECKING:
    from armwise.racing.results.result import Result

_CAPTIONS: dict[pictures.Kind, str] = {
    "regret": "Cumulative regret: mean over the seeds, band from the 5 % to the 95 % quantile.",
    "clicks": "Clicks per list on each slot; bars are two standard errors either way; dashed: the best lists.",
    "time": "Time per decision against regret (bars: 5 % to 95 % of the seeds).",
    "stopping": "The share of the runs whose search for the best arm has stopped by each round.",
}

_SHOWN = {"below": "✓ holds", "above": "✗ above", "none": "none proved", "vacuous": ""}


def write_report(
    results: list[Result], path: str | os.PathLike[str], title: str = "A race of bandits", workers: int = 1
) -> Path:
    """Write the page for one or several heats and return its path; ``workers`` draw the pictures in parallel."""
    folder = files("armwise.racing.report")
    page = (folder / "report.html").read_text(encoding="utf-8")
    command = next((result.command for result in results if result.command), "")
    parts = {
        "title": html.escape(title),
        "summary": _summary(results),
        "table": _table(results),
        "failures": _failures(results),
        "heats": "\n".join(_heats(results, workers)),
        "contents": " ".join(f'<a href="#heat-{i}">{html.escape(r.label)}</a>' for i, r in enumerate(results)),
        "command": html.escape(command or repeat.script(results)),
        "script": "" if not command else _details("The same in Python", repeat.script(results)),
        "seeds": html.escape(_seeds(results)),
        "races": report_data.as_script([report_data.chart_data(result) for result in results]),
        "parquet": report_data.parquet(results),
        "curves": (folder / "curves.js").read_text(encoding="utf-8"),
        "versions": "".join(f"<dt>{k}</dt><dd>{html.escape(v)}</dd>" for k, v in repeat.versions().items()),
    }
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, encoding="utf-8")
    return target


def _summary(results: list[Result]) -> str:
    agents = sum(len(result.agents) for result in results)
    runs = sum(len(result.runs) for result in results)
    verdicts = [result.verdict(name)[0] for result in results for name in result.finishers]
    below, vacuous, proved = (
        verdicts.count("below"),
        verdicts.count("vacuous"),
        sum(verdict != "none" for verdict in verdicts),
    )
    worlds = f"{len(results)} world{'s' * (len(results) > 1)}"
    seeds = f"{len(results[0].seeds)} seed{'s' * (len(results[0].seeds) > 1)}"
    text = f"{agents} entries on {worlds}, {seeds}, {runs} runs."
    if proved:
        text += f" A bound is proved for {proved} of them: {below} hold here"
        text += f", {vacuous} {'is' if vacuous == 1 else 'are'} vacuous at this horizon." if vacuous else "."
    certified = sum(not isinstance(result.certificate(name), str) for result in results for name in result.finishers)
    if certified:
        text += f" {certified} have a certificate."
    return text


def _table(results: list[Result]) -> str:
    rows = []
    for i, result in enumerate(results):
        for row in result.table().to_dict("records"):
            name, label = str(row["agent"]), html.escape(result.label)
            regret, error = row.get("regret", math.nan), row.get("std_error", math.nan)
            limit, worst = row.get("bound", math.nan), row.get("regret_max", math.nan)
            theory = getattr(result.agents[name], "theory", None)
            section = theory.section.removesuffix(" the survey") if theory else ""
            verdict, words = result.verdict(name)
            proved = row.get("certificate", math.nan)
            cells = [
                # On a narrow page the world is below the agent, and the standard error below the regret.
                f'<td class="agent" data-value="{html.escape(name)}">{html.escape(name).replace(".", ".<wbr>")}'
                f'<a class="narrow" href="#heat-{i}">{label}</a></td>',
                f'<td class="wider" data-value="{label}"><a href="#heat-{i}">{label}</a></td>',
                f'<td class="num" data-value="{"" if math.isnan(regret) else regret}">{_number(regret)}'
                + ("</td>" if math.isnan(error) else f' <span class="error">± {_number(error)}</span></td>'),
                _cell(_number(worst), worst, "num wider"),
                _cell(_number(limit), limit, f"num {verdict}", words),
                _cell(_SHOWN[verdict] or words, verdict, f"wide {verdict}", words),
                _cell(_proved(row, proved), proved, "num", str(row.get("certificate_note", ""))),
                _cell(_number(row.get("reward", math.nan)), row.get("reward", math.nan), "num wider"),
                _cell(_number(row.get("us_per_decision", math.nan)), row.get("us_per_decision", math.nan), "num wide"),
                _cell(
                    f"{row['runs']}" + (f", {row['failed']} failed" if row["failed"] else ""), row["runs"], "num wider"
                ),
                _cell(section or "–", section, "wider"),
            ]
            rows.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join(rows)


def _proved(row: dict[Any, Any], proved: float) -> str:
    """The first seed's own regret and its certificate: the other cells of a row are about all seeds."""
    return "–" if math.isnan(proved) else f"{_number(row['certified_regret'])} ≤ {_number(proved)}"


def _cell(text: str, value: Any, kind: str = "", hint: str = "") -> str:
    known = "" if isinstance(value, float) and math.isnan(value) else value
    title = f' title="{html.escape(hint)}"' if hint else ""
    return f'<td class="{kind}" data-value="{html.escape(str(known))}"{title}>{html.escape(text)}</td>'


def _number(value: float) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _heats(results: list[Result], workers: int) -> list[str]:
    if workers == 1 or len(results) == 1:
        return [_heat(i, result) for i, result in enumerate(results)]
    drawn = dict(side_by_side(_numbered_heat, enumerate(results), workers, "loky"))
    return [drawn[i] for i in range(len(results))]


def _numbered_heat(index: int, result: Result) -> tuple[int, str]:
    return index, _heat(index, result)


def _heat(index: int, result: Result) -> str:
    parameters = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(repeat.code(value))}</dd>"
        for name, value in result.world.params().items()
        if value is not None
    )
    about = result.heat.about or next(iter((type(result.world).__doc__ or "").strip().splitlines()), "")
    notes = "".join(f"<li><b>{html.escape(name)}</b>: {html.escape(words)}</li>" for name, words in _notes(result))
    kinds: tuple[pictures.Kind, ...] = ("time",) if result.world.n_slots is None else ("clicks", "time")
    drawn = "".join(_figure(result, kind) for kind in kinds) if result.finishers else ""
    drawn += _figure(result, "stopping") if result.searchers else ""
    still = _figure(result, "regret") if result.finishers else ""  # for readers without scripts
    caveat = getattr(result.world, "caveat", "")
    return f"""<section id="heat-{index}">
<h2>{html.escape(result.label)}</h2>
<p>{html.escape(about)} T = {result.horizon:,}. Regret is against <b>{html.escape(result.world.comparator)}</b>.</p>
{f"<p><b>Caveat.</b> {html.escape(caveat)}</p>" if caveat else ""}
<div id="live-{index}"></div>
<noscript>{still}</noscript>
<div class="figures">{drawn}</div>
<details><summary>Parameters, agents and notes</summary>
<dl class="facts"><dt>world</dt><dd>{type(result.world).__name__}</dd>{parameters}
{"".join(f"<dt>{html.escape(n)}</dt><dd>{html.escape(repeat.code(a))}</dd>" for n, a in result.agents.items())}</dl>
{f"<ul>{notes}</ul>" if notes else ""}</details>
</section>"""


def _notes(result: Result) -> list[tuple[str, str]]:
    """Notes on each agent: its bound or why it has none, and the certificate of its first run."""
    notes = []
    for name in result.finishers:
        verdict, words = result.verdict(name)
        notes.append((name, f"no bound: {words}." if verdict == "none" else f"bound: {words}."))
        proved = result.certificate(name)
        notes.append((name, f"no certificate: {proved}." if isinstance(proved, str) else f"first seed: {proved}"))
        if result.world.n_slots is not None:
            shown = result.shown(name)
            often = ", ".join(f"{arm} ({shown[arm]:.0%})" for arm in (-shown).argsort()[: result.world.n_slots + 1])
            notes.append((name, f"arms shown most, in lists of the last quarter: {often}."))
    return notes


def _figure(result: Result, kind: pictures.Kind) -> str:
    label = html.escape(f"{result.label}: {_CAPTIONS[kind]}")
    return f'<figure class="{kind}">{svg(result, kind, label)}<figcaption>{_CAPTIONS[kind]}</figcaption></figure>'


def svg(result: Result, kind: pictures.Kind, label: str) -> str:
    """Draw a plot as inline SVG in the colours of the page, for its light and dark modes."""
    with needs("race"):
        import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": f"{result.label}-{kind}", "font.size": 9}):
        pictures.draw(result, kind).savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return on_a_page(buffer.getvalue(), label)


def on_a_page(text: str, label: str) -> str:
    """Prepare matplotlib's SVG for a page: no prologue, no ids, the page's colours and font."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', rf'\1 role="img" aria-label="{label}"', text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"([^>]*?) width="[^"]*"', rf'\1\2 role="img" aria-label="{label}"', text)
    # matplotlib names groups alike in every figure; ids must be unique on a page.
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r"'?DejaVu Sans'?[^;\"]*(?=[;\"])", "inherit", text)
    text = re.sub(pictures.INK, "currentColor", text, flags=re.IGNORECASE)
    for n, colour in enumerate(pictures.COLOURS):
        text = re.sub(colour, f"var(--c{n}, {colour.lower()})", text, flags=re.IGNORECASE)
    return text


def _failures(results: list[Result]) -> str:
    lines = [html.escape(line) for result in results for line in result.failures]
    if not lines:
        return ""
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f'<section class="failures"><h2>Runs that failed</h2><ul>{items}</ul></section>'


def _seeds(results: list[Result]) -> str:
    return ", ".join(str(seed) for seed in results[0].seeds)


def _details(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary><pre><code>{html.escape(text)}</code></pre></details>"
