"""The code of a page: its blocks, and what they print when they run one after another, as a reader would type them."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
SHOW_OUTPUTS = {"index.md", "own-world.md", "add-an-agent.md"}  # and the tutorials
ENV = os.environ | {"PYTHONPATH": str(ROOT / "src")}
_FENCE = re.compile(
    r"(?:^<!-- (?P<mark>run|run: serve|output) -->\n)?^(?P<fence>`{3,})(?P<kind>\w*)[^\n]*\n(?P<code>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what the comment before it says (run, run: serve, output), and where it is."""

    kind: str
    mark: str
    code: str
    line: int
    end: int


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order.

    >>> [block.kind for block in blocks("```python\\nprint(1)\\n```\\n")]
    ['python']
    """
    return [
        Block(found["kind"], found["mark"] or "", found["code"], text[: found.start("code")].count("\n"), found.end())
        for found in _FENCE.finditer(text)
    ]


def run(text: str, name: str) -> Iterator[tuple[Block, str]]:
    """Run a page in the current folder: each block with what it printed. ``python`` blocks share one namespace."""
    address = f"127.0.0.1:{_free_port()}"  # the page's own may be taken
    scope: dict[str, Any] = {"__name__": f"page_{re.sub(r'[^a-z]', '_', name.lower())}"}
    with ExitStack() as running, warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in blocks(text):
            printed = io.StringIO()
            block_here = replace(block, code=block.code.replace("127.0.0.1:8484", address))
            if block.kind == "python":
                with contextlib.redirect_stdout(printed):
                    exec(compile("\n" * block.line + block_here.code, name, "exec"), scope)
            elif block.mark == "run: serve":
                running.enter_context(_served(block_here))
            elif block.mark == "run":
                for line in commands(block_here):
                    subprocess.run(line, check=True, timeout=120, env=ENV, stdout=subprocess.DEVNULL)
            yield block, printed.getvalue()


def with_outputs(text: str, name: str) -> str:
    """The page with what each Python block prints below it, unless the page shows that already (and truly).

    >>> with_outputs("```python\\nprint(1)\\n```\\n<!-- output -->\\n```text\\n2\\n```\\n", "page")
    Traceback (most recent call last):
    ...
    ValueError: page shows 2, but its code prints 1
    """
    found = list(run(text, name))
    for (_, printed), (shows, _) in pairwise(found):
        if shows.mark == "output" and printed.rstrip() != shows.code.rstrip():
            raise ValueError(f"{name} shows {shows.code.rstrip()}, but its code prints {printed.rstrip()}")
    shown = [block.mark == "output" for block, _ in found[1:]] + [False]
    for (block, printed), already in reversed(list(zip(found, shown, strict=True))):
        if printed and not already:
            text = f"{text[: block.end]}\n\n```text\n{printed.rstrip()}\n```\n{text[block.end :]}"
    return text


def runs_when_built(address: str) -> bool:
    """Whether a page's code runs when the site is built, so that what it prints stands below it.

    >>> runs_when_built("tutorials/student.md"), runs_when_built("choose.md")
    (True, False)
    """
    return address.startswith("tutorials/") or address in SHOW_OUTPUTS


def commands(block: Block) -> list[list[str]]:
    """The lines of a console block that begin with ``$ armwise``, for this Python."""
    lines = [shlex.split(line[2:], comments=True) for line in block.code.splitlines() if line.startswith("$ ")]
    assert lines and all(line[0] == "armwise" for line in lines), block.code
    return [[sys.executable, "-m", *line] for line in lines]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _served(block: Block) -> Iterator[None]:
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
