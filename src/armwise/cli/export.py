"""``armwise export``: a learnt policy, to run elsewhere."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import Any

from armwise.cli.offline.logs import split_commas
from armwise.cli.shared import BadInput, command_parser, show

_FORMATS = ("json", "javascript", "python", "sqlite", "postgresql")


def add_parser(commands: Any) -> None:
    parser = command_parser(
        commands, "export", "export a learnt policy, to run in JavaScript, Python or SQL",
        "armwise export armwise-data --output policy.mjs",
    )  # fmt: skip
    parser.add_argument(
        "source", help="a journal (its folder or URL), a file that agent.save wrote, or a policy's .json"
    )
    parser.add_argument("--output", required=True, metavar="FILE", help=".json, .mjs, .js, .py or .sql (SQLite)")
    parser.add_argument("--format", choices=_FORMATS, help="what to write, where the ending does not say it")
    parser.add_argument("--application", help="of a journal: which one (default: the only one)")
    parser.add_argument("--columns", metavar="A,B", help="of an agent: the names of its columns")
    parser.add_argument("--arms", metavar="A,B", help="of an agent: the names of its arms")


def run(args: argparse.Namespace) -> None:
    from armwise.core.policy_document import Policy
    from armwise.export.evaluators import write

    if args.source.endswith(".json"):
        _refuse(args, "a policy", "application", "columns", "arms")
        policy = Policy.load(args.source)
    elif Path(args.source).is_file() and not args.source.endswith(".db"):
        _refuse(args, "an agent", "application")
        policy = _of_agent(args)
    else:
        _refuse(args, "a journal", "columns", "arms")
        policy = _of_journal(args)
    write(policy, args.output, args.format)
    made = policy.document
    of = f"{made['application']}, event {made['position']}" if made["application"] else made["agent"]
    show(
        args, f"{args.output}: {of}; checksum {policy.checksum[:12]}",
        {"output": args.output, "checksum": policy.checksum, "application": made["application"],
         "version": made["version"], "position": made["position"], "lessons": made["lessons"]},
    )  # fmt: skip


def _refuse(args: argparse.Namespace, kind: str, *options: str) -> None:
    for option in options:
        if getattr(args, option) is not None:
            raise BadInput(f"--{option} has no meaning here: {args.source} is {kind}")


def _of_agent(args: argparse.Namespace) -> Any:
    from armwise.core.agent import load

    return load(args.source).policy(
        columns=args.columns and split_commas(args.columns), arms=args.arms and split_commas(args.arms)
    )


def _of_journal(args: argparse.Namespace) -> Any:
    from armwise.service.engine.learning.fold import fold, restore
    from armwise.service.journal.journal import Journal
    from armwise.service.model.exporting import exported
    from armwise.service.server.config import open_store

    store = open_store(args.source)
    path = getattr(store, "path", None)
    if path is not None and not Path(path).exists():
        raise BadInput(f"there is no journal at {path}")
    with contextlib.ExitStack() as opened:
        opened.callback(store.close)
        try:
            journal = Journal(store.connect_reading(), store.lock, store.clock)
            opened.callback(journal.connection.close)
            with journal.consistent_reads():  # a service may erase decisions meanwhile
                models, seq = restore(journal)
                while rows := journal.after(seq):
                    fold(models, rows, journal, broken={})
                    seq = rows[-1].seq
        except store.errors as error:
            raise BadInput(f"the journal at {args.source} cannot be read: {error}") from None
    names = sorted(models)
    if args.application is None and len(names) != 1:
        raise BadInput(f"--application: say which of {', '.join(names) or 'none'}")
    name = args.application or names[0]
    if name not in models:
        raise BadInput(f"--application: there is none called {name!r}; there are {', '.join(names)}")
    return exported(models[name], name)
