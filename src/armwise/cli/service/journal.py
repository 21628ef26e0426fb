"""``armwise journal``: check, export and shorten the journal of a decision service."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from typing import Any

from armwise.cli.shared import BadInput, command_parser, show

Pairs = list[tuple[Any, Any]]  # journals, each with its store


def add_parser(commands: Any) -> None:
    parser = command_parser(
        commands, "journal", "read the log of a decision service", "armwise journal verify --storage armwise-data"
    )
    parser.add_argument("task", choices=("verify", "export", "compact", "erase"))
    parser.add_argument("--storage", action="append", metavar="FOLDER|URL", help="where the journal is (default: "
                        "armwise-data); repeat it for each of several databases")  # fmt: skip
    parser.add_argument("--application", help="export, erase: which one (default: the only one)")
    parser.add_argument("--format", choices=("json", "dsjson", "parquet"), default="json",
                        help="export: JSON lines, VW's, or Parquet")  # fmt: skip
    parser.add_argument("--output", metavar="FILE", help="export: where to (default: standard output)")
    parser.add_argument("--keep-days", type=_days, default=30.0, metavar="N",
                        help="compact: drop settled decisions that are older than this")  # fmt: skip
    parser.add_argument("--key", metavar="NAME", help="erase: the key of the contexts that identifies the subject")
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
    from armwise.service.journal.journal import Journal
    from armwise.service.server.config import open_store

    stores = [open_store(each) for each in args.storage or ["armwise-data"]]
    for store in stores:
        path = getattr(store, "path", None)
        if path is not None:
            from pathlib import Path

            if not Path(path).exists():
                raise BadInput(f"there is no journal at {path}")
    with contextlib.ExitStack() as opened:
        pairs = []
        for store in stores:
            opened.callback(store.close)
            try:
                reading = args.task in ("verify", "export")
                session = store.connect_reading() if reading else store.connect()
                journal = Journal(session, store.lock, store.clock)
            except store.errors as error:
                raise BadInput(f"the journal at {store} cannot be read: {error}") from None
            opened.callback(journal.connection.close)
            pairs.append((journal, store))
        if args.task in ("export", "erase"):  # these need all databases
            _check_all(pairs)
        try:
            return {"verify": _verify, "export": _export, "compact": _compact, "erase": _erase}[args.task](args, pairs)
        except stores[0].errors as error:
            named = ", ".join(map(str, stores))
            raise BadInput(f"the journal at {named} cannot be read: {error}") from None


def _check_all(pairs: Pairs) -> None:
    """Raise BadInput if the named databases do not belong together, or if one is missing."""
    from armwise.service.journal.members import missing_of

    if problem := missing_of([journal for journal, _ in pairs]):
        raise BadInput(f"--storage: {problem}")


def _verify(args: argparse.Namespace, pairs: Pairs) -> int:
    import msgspec

    from armwise.service.log.verify import verify

    text, found = [], []
    for journal, store in pairs:
        report = verify(journal)
        counts = f"{report.events} events, {report.decisions} decisions, {report.rewards} rewards"
        text += [f"{store}:"] if len(pairs) > 1 else []
        text += [f"{counts}, {report.lessons} lessons, {report.snapshots} snapshots", *report.problems]
        text += [] if report.problems else ["all is well; checked:", *(f"  {each}" for each in report.checked)]
        found.append(msgspec.to_builtins(report) | ({"storage": str(store)} if len(pairs) > 1 else {}))
    show(args, "\n".join(text), found[0] if len(found) == 1 else {"databases": found})
    return 1 if any(report["problems"] for report in found) else 0


def _export(args: argparse.Namespace, pairs: Pairs) -> int:
    """``armwise journal export``: write one application's log."""
    from armwise.service.log import parquet
    from armwise.service.log.compact import deleted_upto
    from armwise.service.log.export_journal import pieces_of

    if args.format == "parquet":
        try:
            parquet.check()
        except parquet.Missing as error:
            raise BadInput(str(error)) from None
    app = _application(args, pairs[0][0])
    journals = [(journal, deleted_upto(journal).get(app, 0)) for journal, _ in pairs]
    with open(args.output, "wb") if args.output else contextlib.nullcontext(sys.stdout.buffer) as out:
        for piece in pieces_of(journals, app, args.format):
            out.write(piece)
        out.flush()
    return 0


def _lead(pairs: Pairs, otherwise: str) -> None:
    for _, store in pairs:
        if not store.lead():
            raise BadInput(f"a service is running on this journal: {otherwise}")


def _compact(args: argparse.Namespace, pairs: Pairs) -> int:
    from armwise.service.log.compact import compact

    _lead(pairs, "stop it first")
    dropped = 0
    for journal, store in pairs:
        dropped += compact(journal, round((time.time() - args.keep_days * 86400.0) * 1000))
        if not store.shared:
            journal.connection.execute("VACUUM")
            journal.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    show(args, f"{dropped} events dropped", {"dropped": dropped})
    return 0


def _erase(args: argparse.Namespace, pairs: Pairs) -> int:
    import json

    from armwise.service.journal.writes import Write
    from armwise.service.log.compact import compact
    from armwise.service.log.subjects import Subjects, closings, erasure

    if not args.key or args.value is None:
        raise BadInput("erase needs --key and --value")
    try:
        value = json.loads(args.value)
    except ValueError:
        raise BadInput(f"--value must be JSON, such as 7 or '\"u7\"', got {args.value}") from None
    _lead(pairs, "ask it, with POST /v1/erasures")
    app, dropped, found, searched = _application(args, pairs[0][0]), 0, 0, 0
    for journal, _ in pairs:
        asked = erasure(journal.meta("secret"), args.key, value)
        now = round(time.time() * 1000)
        [[written]] = journal.append([[Write(app, "", asked)]], now)
        search = Subjects(journal).search(journal)
        journal.append(closings(journal, search), now)
        searched += search.decisions
        found += len(search.found.get(written.row.seq, ()))
        dropped += compact(journal, 0)
        journal.connection.purge()
    text = f"{found} of {searched} decisions name the subject; {dropped} events dropped"
    show(args, text, {"searched": searched, "found": found, "dropped": dropped})
    return 0


def _application(args: argparse.Namespace, journal: Any) -> str:
    """The application that was named, or the only one."""
    names = [name for (name,) in journal.connection.execute("SELECT DISTINCT app FROM events WHERE kind = 'create'")]
    if args.application is None and len(names) != 1:
        raise BadInput(f"--application is needed: one of {', '.join(sorted(names)) or 'none yet'}")
    app: str = args.application or names[0]
    if app not in names:
        raise BadInput(f"no application is called {app!r}; there is {', '.join(sorted(names))}")
    return app
