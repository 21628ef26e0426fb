"""The web page, in a real browser: it follows decisions without a reload, and fits a phone."""

from __future__ import annotations

import json
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from armwise.service.engine.application import Application
from armwise.service.web.keys import Key, digest

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip

ON_ONE_LINE = "b => b.scrollWidth <= b.clientWidth && b.offsetHeight < 2 * parseFloat(getComputedStyle(b).fontSize)"


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    """One for all tests: another one is another process of the browser, which takes longer than most tests here."""
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield opened.new_page()
        opened.close()


@pytest.fixture
def page(tab: Page) -> Iterator[Page]:
    """The tab as a new one is."""
    tab.set_viewport_size({"width": 1280, "height": 720})
    tab.emulate_media(color_scheme="light")
    yield tab
    tab.evaluate("sessionStorage.clear()")
    tab.goto("about:blank")  # it would go on to ask a service that is gone


def use(client: Any, n: int, start: int = 0, prefix: str = "") -> None:
    """Decisions where salad pays best, each by a model that has learnt all before it, however busy the machine is."""
    chance = random.Random(start)
    for k in range(start, start + n):
        arms = ["pasta", {"id": "salad", "features": {"fresh": True}}, "soup <b>of the day</b>"]
        body = {"id": f"e{k}", "context": {"hour": k % 24}, "arms": arms}
        arm = client.post(f"{prefix}/v1/decisions", json=body).json()["arm"]
        value = 1.0 if chance.random() < (0.8 if arm == "salad" else 0.3) else 0.0
        client.post(f"{prefix}/v1/decisions/e{k}/reward", json={"value": value})
        while "armwise_journal_lag 0\n" not in client.get("/metrics").text:
            time.sleep(0.02)  # models are published ten times a second


def said_of(page: Page, selector: str, question: str) -> Any:
    """A function of an element, found and asked at once: the page makes its rows anew whenever something changes."""
    return page.evaluate(f"({question})(document.querySelector('{selector}'))")


def note_what_is_strange(page: Page, url: str, strange: list[str]) -> None:
    """Whatever the console says, errors, and requests to anywhere else."""
    page.on("console", lambda message: strange.append(message.text))
    page.on("pageerror", lambda error: strange.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith((url, "data:")) else strange.append(request.url))


def test_the_page_follows_decisions(run: Callable[..., Any], page: Page, tmp_path: Path) -> None:
    timid = {"class": "Explore", "epsilon": 0.5, "agent": {"class": "LinUCB"}}
    service = run(applications={"shop": Application(policies={"a curious one": timid}), "news": Application()})
    use(service.client, 80)
    strange: list[str] = []
    note_what_is_strange(page, service.url, strange)
    for scheme in ("light", "dark"):
        for width in (400, 1400):
            page.goto("about:blank")
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            page.goto(service.url)
            page.wait_for_selector("#state.ok")
            expect(page.locator("#others tr")).to_have_count(4, timeout=30_000)
            expect(page.locator("#interval")).to_contain_text("on 80 decisions")
            assert 0.0 < float(page.inner_text("#mean")) < 1.0
            assert page.locator("#curve .band").count() == 1
            assert page.locator("#curve .now").count() == 1
            numbers = page.locator("main .big").all_inner_texts()
            assert numbers[0] == page.inner_text("#mean"), "the first number is what it earns"
            assert numbers[1] == page.inner_text("#over-random .big") and re.fullmatch("[+−][0-9.]+", numbers[1])
            assert "between" in page.inner_text("#over-random p")
            assert said_of(page, "#each-arm i", "b => b.offsetWidth > 0.3 * b.parentElement.offsetWidth")
            colours = "b => [getComputedStyle(b).backgroundColor, getComputedStyle(b.parentElement).backgroundColor]"
            assert len(set(said_of(page, "#each-arm i", colours))) == 2, "the bar cannot be seen"
            assert page.locator("#delay .mean").count() == 1
            assert page.locator("#rows tr").count() == 12
            assert "a curious one" in page.inner_text("#others")
            shown = page.locator("#each-arm tr").first.locator("td")
            assert shown.nth(0).inner_text() == "salad"  # it pays best
            assert page.locator("#each-arm td b").count() == 0  # what callers send is text, never markup
            whole = f"b => {{ b.textContent = '100.0 %'; return ({ON_ONE_LINE})(b); }}"
            assert said_of(page, "#each-arm .share span", whole), f"100.0 % wraps at {width}"
            for cell in ("#each-arm td:nth-child(5)", "#others td:nth-child(3)", "#rows td:nth-child(4)"):
                inside = "c => c.getBoundingClientRect().right <= c.closest('section').getBoundingClientRect().right"
                assert said_of(page, cell, inside), f"{cell} is cut off at {width}"
            overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert overflow <= 0, f"{overflow} pixels too wide at {width}"
            page.screenshot(path=str(tmp_path / f"page-{scheme}-{width}.png"), full_page=True)
            assert strange == []
    page.goto(service.url)
    expect(page.locator("#interval")).to_contain_text("on 80 decisions", timeout=30_000)
    use(service.client, 5, start=80)
    expect(page.locator("#interval")).to_contain_text("on 85 decisions", timeout=30_000)  # without a reload
    page.select_option("#application", "news")
    expect(page.locator("#interval")).to_have_text("no decision is old enough yet", timeout=30_000)


def test_no_rate_is_drawn_where_nothing_was_settled(run: Callable[..., Any], page: Page) -> None:
    """A service that stood still for a while has no rate then: a flat line would say that it had."""
    page.goto(run().url)
    page.wait_for_selector("#state.ok")
    ends = "() => [...document.querySelectorAll('#curve .now')].map(l => l.getAttribute('points').split(' ').length)"

    def lines(seconds: list[int]) -> Any:
        points = [[1000 * t, 0.5, 0.4, 0.6, 0.5, 1] for t in seconds]
        return page.evaluate(f"points => {{ curve({{curve: points}}); return ({ends})(); }}", points)

    assert lines([*range(20), *range(100, 130)]) == [20, 30]
    assert lines(list(range(0, 3000, 600))) == [5], "few, but evenly: there is no gap"
    assert lines([7]) == [1]
    year = page.evaluate("new Date(7000).getFullYear()")  # 1969 west of Greenwich
    assert str(year) in page.inner_text("#to"), "a time of another day without its date looks like one of today"


def test_the_window_is_advised_by_what_came(run: Callable[..., Any], page: Page) -> None:
    """Rewards that came at once, and none at all, were said to come still at the oldest age."""
    page.goto(run().url)
    page.wait_for_selector("#state.ok")

    def advised(recommended: float | None, means: list[float], window: float = 60.0, late: int = 0) -> Any:
        points = [[10.0 * k, mean, mean, mean] for k, mean in enumerate(means)]
        seen = {"points": points, "oldest": 30.0, "window": window, "enough": 25.0, "recommended": recommended}
        seen["late"] = late
        return page.evaluate("seen => { delays(seen); return document.getElementById('advice').textContent; }", seen)

    assert "had come after 10 s (dashed): a window of 20 s would be long enough." in advised(10.0, [0.0, 0.1, 0.1, 0.1])
    late = advised(None, [0.0, 0.0, 0.0, 0.1])
    assert "It took 25 s until 99 % of what came had come. After 30 s nothing is known yet." in late
    assert "more may come after the window, which only a longer" in advised(None, [0.0, 0.0, 0.0, 0.1], window=30.0)
    assert "What came, came with the decision: any window would be long enough." in advised(0.0, [0.1] * 4)
    assert "No reward has come yet." in advised(None, [0.0] * 4)
    assert "No reward came within it, and 3 came later: it is too short." in advised(None, [0.0] * 4, late=3)


def test_the_page_asks_for_a_key(run: Callable[..., Any], page: Page) -> None:
    keys = [
        Key(name="eyes", sha256=digest("eyes"), roles=["read"]),
        Key(name="s", sha256=digest("s"), roles=["decide"]),
    ]
    service = run(keys=keys)
    page.goto(service.url)
    page.wait_for_selector("#key.asked")
    expect(page.locator("main")).to_be_hidden()  # no empty tables, but what to do
    expect(page.locator("#closed")).to_contain_text("shown to a key with the role read")
    for secret, state in (("guess", "wrong"), ("s", "wrong"), ("eyes", "ok")):
        page.fill("#secret", secret)
        page.click("#key button")
        expect(page.locator("#secret")).to_have_value("")
        page.wait_for_selector(f"#state.{state}")
        if state == "wrong":
            expect(page.locator("#closed")).to_contain_text("may not look at this")
    assert page.locator("#key.asked").count() == 0
    expect(page.locator("main")).to_be_visible()
    expect(page.locator("#closed")).to_be_hidden()


def test_what_is_not_known_is_not_claimed(run: Callable[..., Any], page: Page) -> None:
    """A page that had lost its service went on to say that the journal is written."""
    service = run()
    use(service.client, 3)
    page.goto(service.url)
    expect(page.locator("#facts")).to_contain_text("is written", timeout=30_000)
    service.stop()
    expect(page.locator("#state.wrong")).to_have_count(1, timeout=30_000)
    expect(page.locator("#facts")).to_contain_text("not known: the service does not answer")
    expect(page.locator("#facts")).not_to_contain_text("is written")
    expect(page.locator("main.stale")).to_have_count(1)


def test_versions_are_compared_on_the_page(run: Callable[..., Any], page: Page) -> None:
    service = run()
    assert service.client.post("/v1/versions", json={"name": "bold", "share": 0.5}).status_code == 201
    use(service.client, 20)
    page.goto(service.url)
    expect(page.locator("#each tr")).to_have_count(2, timeout=30_000)
    assert "bold" in page.inner_text("#each") and "50.0 %" in page.inner_text("#each")
    interval = page.locator("#each tr").nth(1).locator("td").nth(3)
    expect(interval).to_contain_text("…", timeout=30_000)
    page.set_viewport_size({"width": 400, "height": 900})
    assert page.evaluate("i => i.getBoundingClientRect().right <= innerWidth", interval.element_handle()), (
        "it is cut off"
    )


def test_positions_of_lists_have_a_block_of_their_own(run: Callable[..., Any], page: Page, tmp_path: Path) -> None:
    """No list, no block; then a row per position, from the top."""
    service = run(applications={"shop": Application(window=1.0), "news": Application()})
    page.goto(service.url)
    page.wait_for_selector("#state.ok")
    expect(page.locator("#positions")).to_be_hidden()
    for k in range(30):
        arms = service.client.post("/v1/rankings", json={"arms": ["a", "b", "c", "d"], "k": 3}).json()
        service.client.post(
            f"/v1/rankings/{arms['id']}/rewards", json={"rewards": [1.0, float(k % 2), float(k % 5 == 0)]}
        )
    expect(page.locator("#each-position tr")).to_have_count(3, timeout=30_000)
    expect(page.locator("#each-position tr").nth(2).locator("td").nth(4)).to_have_text("30", timeout=30_000)
    rows = [row.locator("td").all_inner_texts() for row in page.locator("#each-position tr").all()]
    assert [row[:3] for row in rows] == [["1", "30", "1.000"], ["2", "30", "0.500"], ["3", "30", "0.200"]]
    widths = page.eval_on_selector_all("#each-position i", "all => all.map(i => i.offsetWidth)")
    assert widths[0] > widths[1] > widths[2] > 0
    for width in (400, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
        page.screenshot(path=str(tmp_path / f"positions-{width}.png"), full_page=True)
    page.select_option("#application", "news")
    expect(page.locator("#positions")).to_be_hidden(timeout=30_000)


def test_the_stream_is_server_sent_events(run: Callable[..., Any]) -> None:
    service = run()
    use(service.client, 3)
    with service.client.stream("GET", "/v1/live") as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        for line in answer.iter_lines():  # the first may be a second old
            if line.startswith("data: ") and len((told := json.loads(line[6:]))["decisions"]) == 3:
                break
    assert told["rewards"]["n"] == 3


def test_the_frame_allows_nothing_but_itself(run: Callable[..., Any]) -> None:
    answer = run().client.get("/")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'sha256-")
    assert "http" not in answer.text.replace("http://www.w3.org/2000/svg", "")


def test_the_page_never_says_yes_to_a_few_decisions(run: Callable[..., Any], page: Page) -> None:
    fixed = {"class": "Exp3", "n_arms": 2}
    service = run(applications={"shop": Application(apprentice=True, policies={"fixed": fixed})})
    use(service.client, 4)  # three arms, of which only the first is ever shown
    page.goto(service.url)
    expect(page.locator("#others tr")).to_have_count(4, timeout=30_000)
    expect(page.locator("#others tr").nth(3)).to_contain_text("could not answer 4 of 4", timeout=30_000)
    live, random_, first, other = (page.locator("#others tr").nth(i).inner_text() for i in range(4))
    assert "66.7% of its decisions" in random_ and "too few decisions answer" in first
    assert "could not answer 4 of 4 decisions (this application has 2 arms, got 3)" in other
    assert "yes" not in live + random_ + first + other
    expect(page.locator("#state.ok")).to_have_count(1)  # the page lives


def test_the_page_links_to_the_experiments(run: Callable[..., Any], page: Page, tmp_path: Path) -> None:
    keys = [
        Key(name="all", sha256=digest("all"), roles=["admin"]),
        Key(name="eyes", sha256=digest("eyes"), roles=["read"]),
    ]
    for guarded in (False, True):
        service = run(keys=keys if guarded else [])
        sent = {"headers": {"Authorization": "Bearer all"}} if guarded else {}
        for name in ("colour <b>", "hidden"):
            body = {"arms": ["control", "blue"], "metrics": {"name": "buy", "window": 86400.0}}
            path = f"/v1/experiments/{quote(name)}"
            assert service.client.put(path, json=body, **sent).status_code == 200
        units = {"units": [{"unit": f"u{i}"} for i in range(200)]}
        path = f"/v1/experiments/{quote('colour <b>')}"
        assert service.client.post(f"{path}/assignments", json=units, **sent).status_code == 200
        assert service.client.patch(path, json={"ramp": 0.5, "by": "ann"}, **sent).status_code == 200
        page.goto(service.url)
        if guarded:
            page.fill("#secret", "eyes")
            page.click("#key button")
        expect(page.locator("#tests tr")).to_have_count(2, timeout=30_000)
        row = page.locator("#tests tr").first
        assert row.locator("td").nth(0).inner_text() == "colour <b>" and "ramp 0.5 by ann" in row.inner_text()
        page.locator("#experiments").screenshot(path=str(tmp_path / f"experiments-{guarded}.png"))
        if not guarded:
            row.locator("a").click()
            expect(page.locator("h1")).to_have_text("colour <b>")
            continue
        with page.expect_popup() as opened:
            row.locator("a").click()
        report = opened.value
        expect(report.locator("h1")).to_have_text("colour <b>", timeout=30_000)
        wide = report.evaluate("getComputedStyle(document.body).maxWidth")
        assert wide != "none", "the report's own style is refused by the policy of the page"
        report.close()
