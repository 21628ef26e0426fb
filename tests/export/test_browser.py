"""A shop whose variant the exported policy chooses in the browser, and reports by beacon, in headless Chromium."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

import armwise as aw
from armwise.offline import EdgeLog

PAGE = Path(__file__).parents[2] / "examples" / "edge_shop" / "index.html"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Any]:
    """The page, its policy and where its beacons go."""
    (tmp_path / "index.html").write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    beacons: list[str] = []

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = tmp_path / (self.path.strip("/").partition("?")[0] or "index.html")
            self.send_response(200 if path.exists() else 404)
            self.send_header("content-type", "text/javascript" if path.suffix == ".mjs" else "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(path.read_bytes() if path.exists() else b"")

        def do_POST(self) -> None:
            beacons.append(self.rfile.read(int(self.headers["content-length"])).decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", beacons, tmp_path
    server.shutdown()
    server.server_close()


def test_a_page_decides_and_reports(shop: Any) -> None:
    url, beacons, folder = shop
    home = aw.Decider(seed=1)
    for _ in range(40):
        made = home.decide({"device": "desktop"}, ["blue", "green"])
        home.reward(made.id, float(made.arm == "green"))
    policy = home.export(folder / "policy.mjs")
    browser = shutil.which("chromium") or "/usr/bin/chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        errors: list[str] = []
        try:
            for visitor in range(3):
                page = chromium.new_page()
                page.on("pageerror", lambda error: errors.append(str(error)))
                page.goto(f"{url}?unit=visitor-{visitor}")
                page.wait_for_selector("#buy[data-variant]")
                variant = page.get_attribute("#buy", "data-variant")
                page.reload()
                page.wait_for_selector("#buy[data-variant]")
                assert page.get_attribute("#buy", "data-variant") == variant  # a visitor keeps it
                if visitor < 2:
                    page.click("#buy")
                    page.wait_for_function("document.querySelector('#told').textContent !== ''")
                sent = 3 * (visitor + 1) - (visitor == 2)  # beacons: each visit is told twice, and what two of them buy
                end = time.monotonic() + 60.0
                while len(beacons) < sent and time.monotonic() < end:
                    page.wait_for_timeout(10)  # a closed page may take its beacons with it
                assert len(beacons) == sent
                page.close()
                assert errors == []
        finally:
            chromium.close()
    log = EdgeLog.from_beacons([line for body in beacons for line in body.splitlines()], horizon=60.0, now=1e11)
    assert len(log) == 3 and set(log.policies) == {policy.checksum} and log.rewards.sum() == 2.0
    ours = home.decide({"device": "desktop"}, ["blue", "green"]).probabilities
    for row in log.decisions:
        assert row["context"]["device"] == "desktop" and row["probability"] == ours[row["arm"]]
