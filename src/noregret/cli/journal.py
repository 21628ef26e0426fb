"""``noregret journal``: check, export and shorten the journal of a decision service."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from typing import Any

from noregret.cli.shared import BadInput, command_parser, show


def add_parser(commands: Any) -> None:
    parser = command_parser(
        commands, "journal", "read the log of a decision service", "noregret journal verify --storage noregret-data"
    )
    parser.add_argument("task", choices=("verify", "export", "compact"))
    parser.add_argument("--storage", default="noregret-data", metavar="FOLDER|URL", help="where the journal is")
    parser.add_argument("--application", help="export: which one (default: the only one)")
    parser.add_argument("--format", choices=("json", "dsjson", "parquet"), default="json",
                        help="export: JSON lines, VW's, or Parquet")  # fmt: skip
    parser.add_argument("--output", metavar="FILE", help="export: where to (default: standard output)")
    parser.add_argument("--keep-days", type=float, default=30.0, help="compact: drop events older than this")


def run(args: argparse.Namespace) -> int:
    from noregret.serve.config import open_store
    from noregret.serve.journal import Journal

    store = open_store(args.storage)
    path = getattr(store, "path", None)
    if path is not None:
        from pathlib import Path

        if not Path(path).exists():
            raise BadInput(f"there is no journal at {path}")
    journal = Journal(store.connect(), store.lock, store.clock)
    try:
        return {"verify": _verify, "export": _export, "compact": _compact}[args.task](args, journal, store)
    finally:
        journal.connection.close()
        store.close()


def _verify(args: argparse.Namespace, journal: Any, store: Any) -> int:
    import msgspec

    from noregret.serve.verify import verify

    report = verify(journal)
    counts = f"{report.events} events, {report.decisions} decisions, {report.rewards} rewards, {report.lessons} lessons"
    text = [f"{counts}, {report.snapshots} snapshots", *report.problems, "" if report.problems else "all is well"]
    show(args, "\n".join(line for line in text if line), msgspec.to_builtins(report))
    return 1 if report.problems else 0


def _export(args: argparse.Namespace, journal: Any, store: Any) -> int:
    from noregret.serve import parquet
    from noregret.serve.export import pieces

    if args.format == "parquet":
        try:
            parquet.check()
        except parquet.Missing as error:
            raise BadInput(str(error)) from None
    names = [
        name
        for (name,) in journal.connection.execute(
            "SELECT DISTINCT app FROM snapshots UNION SELECT DISTINCT app FROM events WHERE kind = 'create'"
        )
    ]
    if args.application is None and len(names) != 1:
        raise BadInput(f"--application is needed: one of {', '.join(sorted(names)) or 'none yet'}")
    app = args.application or names[0]
    if app not in names:
        raise BadInput(f"no application is called {app!r}; there is {', '.join(sorted(names))}")
    with open(args.output, "wb") if args.output else contextlib.nullcontext(sys.stdout.buffer) as out:
        for piece in pieces(journal, app, args.format):
            out.write(piece)
        out.flush()
    return 0


def _compact(args: argparse.Namespace, journal: Any, store: Any) -> int:
    from noregret.serve.verify import compact

    if not store.lead():
        raise BadInput("a service is running on this journal: stop it first")
    dropped = compact(journal, round((time.time() - args.keep_days * 86400.0) * 1000))
    if not store.shared:
        journal.connection.execute("VACUUM")
        journal.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    show(args, f"{dropped} events dropped", {"dropped": dropped})
    return 0
