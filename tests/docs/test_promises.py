"""docs/promises.md: every promise names a test that exists, and what ``verify`` names is promised."""

from __future__ import annotations

import re
from pathlib import Path

from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.journal import Journal
from armwise.service.log.verify import verify

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in (ROOT / "docs" / "promises.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| promise")
]


def test_every_promise_names_tests_that_exist() -> None:
    assert len(ROWS) > 15
    for promise, _, tests, *_ in ROWS:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tests)
        assert named, f"no test keeps: {promise}"
        for path, name in named:
            assert re.search(rf"^def {name}\(", (ROOT / path).read_text("utf-8"), re.M), f"{path} has no {name}"


def test_the_promises_that_verify_names_are_these(tmp_path: Path) -> None:
    connection = SQLite(tmp_path / "journal.db").connect()
    said = {text.partition(":")[0] for text in verify(Journal(connection)).checked}
    connection.close()
    promised = {word.strip() for row in ROWS for word in row[3].strip(" |").split(",") if word.strip()}
    assert promised == said
