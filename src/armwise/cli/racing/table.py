"""``armwise table``: the survey's table of algorithms."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from armwise.cli.shared import command_parser, match, show

_ASSUMPTIONS = {
    "adversarial": "rewards may be chosen by an adversary",
    "linear": "expected rewards are linear in the features",
    "smooth": "expected rewards are a smooth function of the features",
    "horizon-known": "the number of rounds is known in advance",
    "infinite-policies": "you compete with an infinite class of policies",
    "high-probability": "a bound in expectation is not enough",
}


def add_parser(commands: Any) -> None:
    """Add the options of ``armwise table``."""
    parser = command_parser(
        commands, "table", "print the survey's table of algorithms", "armwise table --format markdown > table.md"
    )
    parser.add_argument("--format", choices=("text", "markdown", "latex", "json"), default="text")
    assumptions = parser.add_argument_group("assumptions", "only the agents that they leave, with the reasons")
    for name, meaning in _ASSUMPTIONS.items():
        assumptions.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=None, help=meaning)
    parser.add_argument("--agent", metavar="NAME", help="one agent's row in full, its assumptions and errata included")


def run(args: argparse.Namespace) -> None:
    """Print the table, or one row of it."""
    from armwise.theory.assumption_filter import table as table_of

    assumed = {name.replace("-", "_"): getattr(args, name.replace("-", "_")) for name in _ASSUMPTIONS}
    table = table_of(args.format, **assumed)
    rows = {row.agent: asdict(row) for row in table.rows}
    if args.agent is None:
        show(args, table, list(rows.values()))
    else:
        row = rows[match("agent", args.agent, rows)]
        show(args, "\n".join(f"{name.replace('_', ' ')}: {_rendered(value)}" for name, value in row.items()), row)


def _rendered(value: Any) -> str:
    return {True: "yes", False: "no", "": "-"}.get(value, str(value))
