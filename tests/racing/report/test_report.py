"""Pictures and the page: styles that tell agents apart without colour, and a real browser that finds no fault."""

# mypy: disable-error-code="var-annotated"

import ast
import re
import shutil

import numpy as np
import pandas as pd
import pytest

import armwise as aw
from armwise.racing import Heat, race_all
from armwise.racing.report import pictures
from armwise.racing.report.repeat import code, script
from armwise.racing.report.report import write_report

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def results():
    linear = aw.environments.Linear(n_arms=10, dim=5)
    agents = {f"LinUCB {a}": aw.LinUCB(dim=5, alpha=a) for a in (0.1, 0.3, 1.0)} | {"Exp3": aw.Exp3(n_arms=10)}
    other = Heat(
        aw.environments.Switching(n_arms=3), {"<Exp3> & co": aw.Exp3.theoretical(3, 500)}, 500, "An <odd> & long name"
    )
    # Words as long as the survey's own: a vacuous bound, and a section that is none.
    wordy = {"SupLinUCB.theoretical": aw.SupLinUCB.theoretical(5, 100), "Explore LinUCB": aw.Explore(aw.LinUCB(5), 0.1)}
    third = Heat(linear, wordy, 100, "One model for each arm")
    return race_all([Heat(linear, agents, 800), other, third], seeds=3, command="armwise race --world x")


@pytest.fixture(scope="module")
def page(results, tmp_path_factory):
    return write_report(results, tmp_path_factory.mktemp("report") / "report.html")


def test_eight_agents_look_different_without_colour():
    looks = {(str(dash), marker) for dash, marker in zip(pictures._DASHES, pictures._MARKERS, strict=True)}
    assert len(looks) == len(set(pictures._MARKERS)) == len(pictures.COLOURS) == 8


@pytest.mark.parametrize("kind", [kind for kind in pictures.KINDS if kind not in ("cost", "stopping", "clicks")])
def test_every_picture_shows_every_agent(results, kind, tmp_path):
    figure = results[0].plot(tmp_path / f"{kind}.png", kind=kind)
    assert (tmp_path / f"{kind}.png").stat().st_size > 5000
    words = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    words += [axes.get_title() for axes in figure.axes]
    assert set(results[0].agents) <= set(words)


def test_bound_is_drawn_beside_the_regret(results):
    lines = results[1].plot(kind="bounds").axes[0].get_lines()
    heights = [np.asarray(line.get_ydata(), float) for line in lines]
    assert any(np.allclose(h, aw.bounds.exp3(T=500, K=3)) for h in heights if h.size > 5)


def test_page_is_self_contained_and_escaped(page, results):
    text = page.read_text()
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', text)
    assert "@import" not in text
    assert "<odd>" not in text
    assert "An &lt;odd&gt; &amp; long name" in text
    assert "armwise race --world x" in text
    assert aw.__version__ in text
    assert "the best arm in hindsight" in text


def test_script_runs_and_repeats_the_numbers(results):
    made = {}

    class Aw:
        def __getattr__(self, name):
            return getattr(aw, name)

        def race(self, *args, **kwargs):
            made["result"] = aw.race(*args, **kwargs)

    lines = script(results[:1]).replace("import armwise as aw\n", "")
    exec(lines, {"aw": Aw()})
    np.testing.assert_array_equal(made["result"].regret("Exp3"), results[0].regret("Exp3"))
    assert code(np.arange(3.0)) == "np.array([0.0, 1.0, 2.0])"


@pytest.fixture(scope="module")
def only_tab():
    assert BROWSER is not None, "Chromium is needed: make test installs it (Debian: chromium)"
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]  # fmt: skip
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=flags)
        yield browser.new_page(accept_downloads=True)
        browser.close()


@pytest.fixture
def tab(only_tab):
    """The tab as a new one is, but for its process: to start another one takes longer than most tests here."""
    only_tab.set_viewport_size({"width": 1280, "height": 720})
    only_tab.emulate_media(color_scheme="light")
    yield only_tab
    only_tab.evaluate("localStorage.clear(), sessionStorage.clear()")
    only_tab.goto("about:blank")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 800, 1400])
def test_nothing_overflows_and_nothing_complains(tab, page, width, scheme):
    tab.set_viewport_size({"width": width, "height": 900})
    tab.emulate_media(color_scheme=scheme)
    complaints = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: complaints.append(request.url) if not request.url.startswith("file:") else None)
    tab.goto(page.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    fits = tab.evaluate("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('.scroll'))")
    assert fits  # the table is read without scrolling sideways, on a telephone too
    outside = tab.evaluate(
        """() => [...document.querySelectorAll('h1, h2, p, figure, figure svg, figcaption, dl, pre, .scroll')]
            .filter(e => { const r = e.getBoundingClientRect();
                return r.width && (r.left < 0 || r.right > innerWidth + 0.5) })
            .map(e => e.tagName)"""
    )
    assert outside == []
    cut = tab.evaluate(
        """() => [...document.querySelectorAll('figure svg')].filter(svg => {
            const box = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('text')].some(t => { const r = t.getBoundingClientRect();
                return r.left < box.left - 2 || r.right > box.right + 2 });
            }).map(svg => svg.getAttribute('aria-label'))"""
    )
    assert cut == []
    ink = tab.evaluate("getComputedStyle(document.querySelector('figure svg text')).fill")
    bright = sum(int(n) for n in re.findall(r"\d+", ink)[:3]) > 3 * 128
    assert bright == (scheme == "dark")
    assert complaints == []


def test_the_table_sorts(tab, page):
    tab.goto(page.as_uri())

    def column(n):
        return tab.evaluate(f"[...document.querySelectorAll('#results tbody tr')].map(r => r.cells[{n}].dataset.value)")

    before = column(2)
    tab.get_by_role("button", name="Regret", exact=True).click()
    assert column(2) == sorted(before, key=float)
    tab.get_by_role("button", name="Regret", exact=True).press("Enter")  # with the keyboard, and the other way round
    assert column(2) == sorted(before, key=float, reverse=True)
    tab.get_by_role("button", name="Agent", exact=True).click()
    assert column(0)[0] == "<Exp3> & co"
    assert tab.locator("th[aria-sort]").count() == 1
    tab.get_by_role("button", name="Bound", exact=True).click()
    assert column(4)[0] != ""  # rows without a bound stay at the end, whichever way it is sorted
    tab.get_by_role("button", name="Bound", exact=True).click()
    assert column(4)[0] != ""


@pytest.mark.parametrize("width", [400, 800, 1400])
def test_the_chart_is_alive(tab, page, results, width, tmp_path):
    """Hover, isolate, switch, choose a comparator, download: in a real browser, at three widths."""
    tab.set_viewport_size({"width": width, "height": 900})
    complaints = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(page.as_uri())
    live = tab.locator("#live-0 figure.live").first
    chart = live.locator(".chart svg")
    assert live.locator("path.mean").count() == 4

    def hover_the_last_round(down):
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        tab.mouse.move(box["x"] + box["width"] - 10, box["y"] + down)

    hover_the_last_round(100)
    tip = live.locator(".tip").inner_text()
    assert "round 800" in tip
    for name in results[0].agents:
        value = results[0].regret(name)[:, -1].mean()
        assert f"{name}: {value:.0f}" in tip or f"{name}: {value:.3g}" in tip
    tip_box = live.locator(".tip").bounding_box()
    assert tip_box["x"] >= 0 and tip_box["x"] + tip_box["width"] <= width
    chart.focus()
    tab.keyboard.press("ArrowLeft")
    assert "round 800" not in live.locator(".tip").inner_text()

    live.locator(".legend button").nth(3).click()
    assert live.locator("path.mean").count() == 1
    assert live.locator(".legend button").nth(3).get_attribute("aria-pressed") == "true"
    live.locator(".legend button").nth(3).click()
    assert live.locator("path.mean").count() == 4

    live.get_by_label("each seed").check()
    assert live.locator("path.seed").count() == 12
    before = live.locator("path.mean").first.get_attribute("d")
    live.get_by_label("log rounds").check()
    live.get_by_label("log values").check()
    assert live.locator("path.mean").first.get_attribute("d") != before
    ticks = live.locator("text.xtick").all_text_contents()
    assert "100" in ticks and "800" not in ticks
    live.get_by_label("log values").uncheck()

    live.locator("select").nth(1).select_option("Exp3")
    hover_the_last_round(101)
    apart = (results[0].regret("LinUCB 0.1") - results[0].regret("Exp3"))[:, -1].mean()
    tip = live.locator(".tip").inner_text().replace(",", "")
    assert "Exp3: 0" in tip and f"LinUCB 0.1: {apart:.0f}" in tip
    live.locator("select").nth(1).select_option("")

    live.get_by_label("what is proved").check()
    assert live.locator("path.certificate").count() == sum(
        not isinstance(results[0].certificate(name), str) for name in results[0].agents
    )
    notes = live.locator(".notes").inner_text()
    assert all(name in notes for name in results[0].agents)

    for kind, start in (("CSV", b'"world"'), ("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("Parquet (all worlds)", b"PAR1")):
        with tab.expect_download() as waiting:
            live.get_by_role("button", name=kind, exact=True).click()
        waiting.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(start)
    assert len((tmp_path / "CSV").read_text().splitlines()) == 1 + len(results[0].curves())
    frame = pd.read_parquet(tmp_path / "Parquet (all worlds)")
    assert len(frame) == sum(len(result.curves()) for result in results)
    assert b"var(" not in (tmp_path / "SVG").read_bytes()

    shares = tab.locator("#live-0 figure.shares")
    whole = shares.locator("polygon").first.get_attribute("points")
    shares.locator("select").select_option("2")
    assert shares.locator("polygon").first.get_attribute("points") != whole
    assert complaints == []


@pytest.mark.parametrize("width", [400, 800, 1400])
def test_the_last_tick_is_not_clipped(tab, page, width):
    tab.set_viewport_size({"width": width, "height": 900})
    tab.goto(page.as_uri())
    cut = tab.evaluate(
        """() => [...document.querySelectorAll('.chart svg')].filter(svg => { const box = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('text')].some(t => { const r = t.getBoundingClientRect();
                return r.right > box.right + 0.5 || r.left < box.left - 0.5 }); }).length"""
    )
    assert cut == 0


class Bare(aw.environments.Linear):
    pass


Bare.__doc__ = None


def test_a_world_without_docstring_has_a_report(tmp_path):
    result = aw.race([aw.LinUCB(dim=3)], Bare(n_arms=3, dim=3), horizon=20, seeds=1)
    assert "LinUCB" in result.report(tmp_path / "r.html").read_text()


def test_the_same_in_python_is_python_for_arrays_lambdas_and_estimators_too():
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.integers(2, size=60)
    agents = {
        "arms": aw.PolicyArms(aw.Exp3(n_arms=2), [lambda x: 0, lambda x: 1], n_arms=2),
        "sklearn": aw.SquareCB(dim=3, n_arms=2, regressor=Ridge(alpha=2.0)),
    }
    big = aw.race(agents, aw.environments.Classification(X, y), horizon=20, seeds=1)
    text = script([big])
    ast.parse(text)
    assert "# put here an array of float64, shape (60, 2)" in text or "shape (60, 3)" in text
    assert "import Ridge" in text and "the function" in text
    small = aw.race({"Exp3": aw.Exp3(n_arms=2)}, aw.environments.Classification(X[:4], y[:4]), horizon=4, seeds=2)
    again = {}
    exec(script([small]).replace("aw.race(", "again = aw.race("), again)  # short data is written out, to the last digit
    np.testing.assert_array_equal(again["again"].regret("Exp3"), small.regret("Exp3"))
