"""``armwise plan``: units and days that an experiment needs."""

from __future__ import annotations

import argparse
from typing import Any

from armwise.cli.shared import add_numbers, command_parser, given, show

_NUMBERS = {
    "rate": "control's rate, such as 0.05",
    "mean": "control's mean, where an amount is measured",
    "sd": "the amount's standard deviation over units",
    "cap": "what a unit's amount counts as at most",
    "lift": "the relative effect: 0.1 is 10 %% better",
    "effect": "the absolute effect, in place of --lift",
    "risk": "of a wrong verdict, ever (0.05)",
    "power": "chance to find the effect (0.8)",
    "daily": "units per day",
    "window": "days that an outcome may take (0)",
}


def add_parser(commands: Any) -> None:
    """The options of ``armwise plan``."""
    parser = command_parser(
        commands,
        "plan",
        "how many units and days an A/B test needs, with one look and with as many as you like",
        "armwise plan --rate 0.05 --lift 0.1 --daily 3000 --window 1",
    )
    add_numbers(parser, _NUMBERS)
    parser.add_argument("--arms", type=int, metavar="K", help="arms, with control (2)")
    parser.add_argument("--metrics", type=int, metavar="M", help="goals that are measured (1)")
    parser.add_argument("--split", type=float, nargs="+", metavar="P", help="the arms' shares, control first (equal)")
    parser.add_argument("--plot", metavar="FILE", help="draw power over time (.png, .svg, .pdf)")


def run(args: argparse.Namespace) -> None:
    """Print the table, and draw the picture."""
    from armwise.offline.experiments.traffic import traffic

    needed = traffic(**given(args, [*_NUMBERS, "arms", "metrics", "split"]))
    if args.plot:
        needed.plot(args.plot)
    show(args, str(needed), needed.to_dict())
