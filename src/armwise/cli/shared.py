"""Code shared by all commands: parsers, one-line errors, "did you mean", text or JSON output."""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn


class BadInput(Exception):
    """Invalid input of the user; ``main`` prints the message as one line and exits with code 2."""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that reports errors in one line, without the usage text."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: error: {one_line(message)} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)


def command_parser(commands: Any, name: str, summary: str, example: str) -> Parser:
    """Make the parser of one command, with an example in ``--help`` and the option ``--json``."""
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


def add_numbers(parser: Parser, numbers: Mapping[str, str], kind: type[int] | type[float] = float) -> None:
    """Add an option for each number, by name, with its meaning."""
    for name, meaning in numbers.items():
        parser.add_argument(f"--{name}", type=kind, metavar="N" if kind is int else "X", help=meaning)


def given(args: argparse.Namespace, options: Iterable[str]) -> dict[str, Any]:
    """The options that were given, by the names that Python's functions have for them."""
    found = {name: getattr(args, name) for name in (option.replace("-", "_") for option in options)}
    return {name: value for name, value in found.items() if value is not None}


def match(kind: str, name: str, known: Iterable[str]) -> str:
    """Find the known name, ignoring case and punctuation; raise BadInput with a suggestion if there is none."""
    plain = {_plain(each): each for each in known}
    if _plain(name) in plain:
        return plain[_plain(name)]
    raise BadInput(f"unknown {kind} {name!r}{did_you_mean(name, plain.values())}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error message: the nearest known names, or all of them."""
    plain = {_plain(each): each for each in known}
    close = difflib.get_close_matches(_plain(name), plain, n=3, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(plain[each] for each in close)}?"
    return f"; expected one of {', '.join(sorted(plain.values()))}"


def show(args: argparse.Namespace, text: str, data: Any) -> None:
    """Print the text, or with ``--json`` the data."""
    print(json.dumps(data, indent=2) if args.json else text)


def one_line(message: object) -> str:
    """Join the lines of a message."""
    return " ".join(str(message).split())


def complaint(problem: object) -> str:
    """Format an error in one line, or in one line per problem that it lists."""
    return str(problem) if getattr(problem, "problems", None) else one_line(problem)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower()) or name
