"""``noregret table``: the survey's table of algorithms."""

from __future__ import annotations

import argparse
from typing import Any

from noregret.cli.shared import command_parser, show


def add_parser(commands: Any) -> None:
    parser = command_parser(
        commands, "table", "print the survey's table of algorithms", "noregret table --format markdown > table.md"
    )
    parser.add_argument("--format", choices=("text", "markdown", "latex", "json"), default="text")
    parser.add_argument("--all", action="store_true", help="the agents beyond the survey's table too")


def run(args: argparse.Namespace) -> None:
    from noregret import guide

    table = guide.table("text" if args.json else args.format, everything=args.all)
    show(args, str(table), table.rows())
