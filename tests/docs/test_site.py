"""The site builds strictly, in one go, and needs nothing from elsewhere when it is read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

from armwise.theory.algorithm_table import agents
from tests.docs.pages import ROOT


def test_the_site(tmp_path: Path):
    """One build, then every check of it. Races are of a few rounds: the pictures of ``make docs`` are only longer."""
    env = os.environ | {"ARMWISE_DOCS_SCALE": "0.01", "NO_MKDOCS_2_WARNING": "1"}
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    every_agent_has_its_page_with_bound_pictures_and_reference(tmp_path)
    links_and_anchors_lead_somewhere(html(tmp_path), tmp_path)
    nothing_is_fetched_from_elsewhere(html(tmp_path), tmp_path)
    no_two_things_share_an_id(html(tmp_path))


def html(site: Path) -> dict[str, str]:
    return {page.relative_to(site).as_posix(): page.read_text(encoding="utf-8") for page in site.rglob("*.html")}


def every_agent_has_its_page_with_bound_pictures_and_reference(site: Path) -> None:
    for agent in agents():
        page = (site / "algorithms" / f"{agent}.html").read_text(encoding="utf-8")
        for heading in ("When to use it", "Make one", "Parameters", "Bound", "Measured", "Reference"):
            assert f">{heading}<a" in page, (agent, heading)
        assert page.count("<figure>") == 2 and 'class="formula"' in page, agent


def links_and_anchors_lead_somewhere(pages: dict[str, str], site: Path) -> None:
    ids = {address: set(re.findall(r'\bid="([^"]+)"', text)) for address, text in pages.items()}
    broken = []
    for address, text in pages.items():
        if address == "404.html":
            continue
        for link in re.findall(r'<(?:a|link)\s[^>]*href="([^"]+)"', text):
            target, _, anchor = unquote(link).partition("#")
            if "://" in link or link.startswith(("mailto:", "data:")):
                continue
            path = os.path.normpath(os.path.join(os.path.dirname(address), target)) if target else address
            path = path + "/index.html" if (site / path).is_dir() else path
            if not (site / path).exists() or (anchor and path in ids and anchor not in ids[path] and anchor != "__"):
                broken.append(f"{address}: {link}")
    assert broken == []


def nothing_is_fetched_from_elsewhere(pages: dict[str, str], site: Path) -> None:
    for address, text in pages.items():
        fetched = re.findall(r'<(?:script|img|iframe|source)\s[^>]*src="(https?:[^"]+|//[^"]+)"', text)
        fetched += re.findall(
            r'<link\s[^>]*rel="(?:stylesheet|preconnect|preload)"[^>]*href="(https?:[^"]+|//[^"]+)"', text
        )
        assert fetched == [], address
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


def no_two_things_share_an_id(pages: dict[str, str]) -> None:
    for address, text in pages.items():
        drawn = re.findall(r'<(?:path|clipPath|g|use)\s[^>]*?\bid="([^"]+)"', text)
        assert len(drawn) == len(set(drawn)), address
