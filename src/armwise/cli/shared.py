"""What every command shares: its parser, one-line errors, names with "did you mean", text or JSON."""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Iterable
from typing import Any, NoReturn


class BadInput(Exception):
    """Something the user typed is wrong; ``main`` prints the message as one line and exits with code 2.

    >>> raise BadInput("no column 'y' in data.csv")
    Traceback (most recent call last):
    ...
    armwise.cli.shared.BadInput: no column 'y' in data.csv
    """


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that says what is wrong in one line, without the usage text."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: error: {one_line(message)} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)


def command_parser(commands: Any, name: str, summary: str, example: str) -> Parser:
    """The parser of one command, with its example in ``--help`` and the option ``--json``.

    >>> commands = Parser(prog="armwise").add_subparsers()
    >>> command_parser(commands, "table", "print the table", "armwise table").parse_args(["--json"]).json
    True
    """
    parser: Parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")
    return parser


def match(kind: str, name: str, known: Iterable[str]) -> str:
    """The known name that is meant, whatever its capitals and punctuation; BadInput with a suggestion if none is.

    >>> match("agent", "ilove-to-con-bandits", ["LinUCB", "ILoveToConBandits"])
    'ILoveToConBandits'
    >>> match("agent", "linucv", ["LinUCB", "Exp3"])
    Traceback (most recent call last):
    ...
    armwise.cli.shared.BadInput: unknown agent 'linucv'; did you mean LinUCB?
    """
    plain = {_plain(each): each for each in known}
    if _plain(name) in plain:
        return plain[_plain(name)]
    raise BadInput(f"unknown {kind} {name!r}{did_you_mean(name, plain.values())}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error message: the nearest known names, or all of them.

    >>> did_you_mean("tabel", ["table", "advise", "race"])
    '; did you mean table?'
    >>> did_you_mean("xyz", ["table", "advise", "race"])
    '; expected one of advise, race, table'
    """
    plain = {_plain(each): each for each in known}
    close = difflib.get_close_matches(_plain(name), plain, n=3, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(plain[each] for each in close)}?"
    return f"; expected one of {', '.join(sorted(plain.values()))}"


def show(args: argparse.Namespace, text: str, data: Any) -> None:
    """Print the text, or with ``--json`` the data.

    >>> show(argparse.Namespace(json=True), "two arms", {"arms": 2})
    {
      "arms": 2
    }
    """
    print(json.dumps(data, indent=2) if args.json else text)


def one_line(message: object) -> str:
    """A message on one line, whatever line breaks it has.

    >>> one_line("a\\n  b")
    'a b'
    """
    return " ".join(str(message).split())


def complaint(problem: object) -> str:
    """An error as text: one line, or one for each of the problems that it lists.

    >>> class Several(ValueError):
    ...     problems = ["line 2: reward is missing", "line 3: arm is missing"]
    >>> print(complaint(Several("two problems:\\n  line 2: reward is missing\\n  line 3: arm is missing")))
    two problems:
      line 2: reward is missing
      line 3: arm is missing
    >>> complaint(ValueError("a\\n  b"))
    'a b'
    """
    return str(problem) if getattr(problem, "problems", None) else one_line(problem)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower()) or name
