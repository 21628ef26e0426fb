"""Every Python block of the README and the docs runs, page by page, as a reader would type it.

A failure means that a page shows code that does not work. ``python`` blocks of a page share one namespace; ``py`` is
code of other libraries; ``console`` runs only where ``<!-- run -->`` stands before it.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pages import PAGES, ROOT, Block, blocks, name

import armwise as aw

RUN = [page for page in PAGES if any(block.kind == "python" or block.mark == "run" for block in blocks(page))]

ENV = os.environ | {"PYTHONPATH": str(ROOT / "src")}


@pytest.mark.parametrize("page", RUN, ids=name)
def test_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    address = f"127.0.0.1:{free_port()}"  # the page's own may be taken
    scope = {"__name__": f"page_{page.stem.replace('-', '_')}"}
    with ExitStack() as running, warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in blocks(page):
            block = replace(block, code=block.code.replace("127.0.0.1:8484", address))
            if block.kind == "python":
                exec(compile("\n" * block.line + block.code, str(page), "exec"), scope)
            elif block.mark == "run: serve":
                running.enter_context(served(block))
            elif block.mark == "run":
                for line in commands(block):
                    subprocess.run(line, check=True, timeout=120, env=ENV)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def commands(block: Block) -> list[list[str]]:
    """The lines of a console block that begin with ``$ armwise``, for this Python."""
    lines = [shlex.split(line[2:], comments=True) for line in block.code.splitlines() if line.startswith("$ ")]
    assert lines and all(line[0] == "armwise" for line in lines), block.code
    return [[sys.executable, "-m", *line] for line in lines]


@contextmanager
def served(block: Block) -> Iterator[None]:
    """The service that the block starts, until the page ends."""
    [command] = commands(block)
    address = f"http://{command[command.index('--listen') + 1]}/readyz"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENV)
    try:
        for _ in range(300):
            assert process.poll() is None, process.stderr and process.stderr.read().decode()
            try:
                urllib.request.urlopen(address, timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_no_page_goes_untested():
    """A page with code in a language that the runner does not know would never run."""
    known = {
        "python",
        "py",
        "pycon",
        "console",
        "text",
        "json",
        "toml",
        "bash",
        "sh",
        "yaml",
        "ini",
        "http",
        "javascript",
        "csharp",
        "",
    }
    assert {block.kind for page in PAGES for block in blocks(page)} <= known
    assert len(RUN) >= 10


def test_the_call_on_every_algorithm_page_is_one_that_the_guide_tests():
    assert {verdict.agent for verdict in aw.advise()} == {
        page.stem for page in PAGES if page.parent.name == "algorithms"
    }
