"""``armwise journal``: check, export and shorten the journal of a decision service."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from typing import Any

from armwise.cli.shared import BadInput, command_parser, show


def add_parser(commands: Any) -> None:
    parser = command_parser(
        commands, "journal", "read the log of a decision service", "armwise journal verify --storage armwise-data"
    )
    parser.add_argument("task", choices=("verify", "export", "compact", "erase"))
    parser.add_argument("--storage", default="armwise-data", metavar="FOLDER|URL", help="where the journal is")
    parser.add_argument("--application", help="export, erase: which one (default: the only one)")
    parser.add_argument("--format", choices=("json", "dsjson", "parquet"), default="json",
                        help="export: JSON lines, VW's, or Parquet")  # fmt: skip
    parser.add_argument("--output", metavar="FILE", help="export: where to (default: standard output)")
    parser.add_argument("--keep-days", type=_days, default=30.0, metavar="N",
                        help="compact: drop what is settled and older than this")  # fmt: skip
    parser.add_argument("--key", metavar="NAME", help="erase: the key of the contexts that says whose they are")
    parser.add_argument("--value", metavar="JSON", help="erase: the value there, such as 7 or '\"u7\"'")


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0.0 <= days <= 36500.0:  # False for nan
        raise argparse.ArgumentTypeError(f"expected a number of days from 0 to 36500, got {text!r}")
    return days


def run(args: argparse.Namespace) -> int:
    from armwise.serve.config import open_store
    from armwise.serve.journal.append import Journal

    store = open_store(args.storage)
    path = getattr(store, "path", None)
    if path is not None:
        from pathlib import Path

        if not Path(path).exists():
            raise BadInput(f"there is no journal at {path}")
    try:
        journal = Journal(store.connect(), store.lock, store.clock)
        try:
            return {"verify": _verify, "export": _export, "compact": _compact, "erase": _erase}[args.task](
                args, journal, store
            )
        finally:
            journal.connection.close()
    except store.errors as error:
        raise BadInput(f"the journal at {store} cannot be read: {error}") from None
    finally:
        store.close()


def _verify(args: argparse.Namespace, journal: Any, store: Any) -> int:
    import msgspec

    from armwise.serve.log.verify import verify

    report = verify(journal)
    counts = f"{report.events} events, {report.decisions} decisions, {report.rewards} rewards, {report.lessons} lessons"
    text = [f"{counts}, {report.snapshots} snapshots", *report.problems, "" if report.problems else "all is well"]
    show(args, "\n".join(line for line in text if line), msgspec.to_builtins(report))
    return 1 if report.problems else 0


def _export(args: argparse.Namespace, journal: Any, store: Any) -> int:
    from armwise.serve.log import parquet
    from armwise.serve.log.compact import deleted_upto
    from armwise.serve.log.export import pieces

    if args.format == "parquet":
        try:
            parquet.check()
        except parquet.Missing as error:
            raise BadInput(str(error)) from None
    app = _application(args, journal)
    with open(args.output, "wb") if args.output else contextlib.nullcontext(sys.stdout.buffer) as out:
        for piece in pieces(journal, app, args.format, deleted_upto(journal).get(app, 0)):
            out.write(piece)
        out.flush()
    return 0


def _compact(args: argparse.Namespace, journal: Any, store: Any) -> int:
    from armwise.serve.log.compact import compact

    if not store.lead():
        raise BadInput("a service is running on this journal: stop it first")
    dropped = compact(journal, round((time.time() - args.keep_days * 86400.0) * 1000))
    if not store.shared:
        journal.connection.execute("VACUUM")
        journal.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    show(args, f"{dropped} events dropped", {"dropped": dropped})
    return 0


def _erase(args: argparse.Namespace, journal: Any, store: Any) -> int:
    import json

    from armwise.serve.journal.append import Write
    from armwise.serve.log.compact import compact
    from armwise.serve.log.subjects import erasure

    if not args.key or args.value is None:
        raise BadInput("erase needs --key and --value")
    try:
        value = json.loads(args.value)
    except ValueError:
        raise BadInput(f"--value must be JSON, such as 7 or '\"u7\"', got {args.value}") from None
    if not store.lead():
        raise BadInput("a service is running on this journal: ask it, with POST /v1/erasures")
    app = _application(args, journal)
    journal.append([[Write(app, "", erasure(journal.meta("secret"), args.key, value))]], round(time.time() * 1000))
    dropped = compact(journal, 0)
    show(args, f"{dropped} events dropped", {"dropped": dropped})
    return 0


def _application(args: argparse.Namespace, journal: Any) -> str:
    """The application that is meant."""
    names = [name for (name,) in journal.connection.execute("SELECT DISTINCT app FROM events WHERE kind = 'create'")]
    if args.application is None and len(names) != 1:
        raise BadInput(f"--application is needed: one of {', '.join(sorted(names)) or 'none yet'}")
    app: str = args.application or names[0]
    if app not in names:
        raise BadInput(f"no application is called {app!r}; there is {', '.join(sorted(names))}")
    return app
