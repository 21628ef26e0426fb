"""``armwise advise``: the agents that fit your assumptions."""

from __future__ import annotations

import argparse
from typing import Any

from armwise.cli.shared import command_parser, show

_ASSUMPTIONS = {
    "adversarial": "rewards may be chosen by an adversary",
    "linear": "expected rewards are linear in the features",
    "smooth": "expected rewards are a smooth function of the features",
    "horizon-known": "the number of rounds is known in advance",
    "infinite-policies": "you compete with an infinite class of policies",
    "high-probability": "a bound in expectation is not enough",
}
_SIZES = {"n-arms": 10, "dim": 5, "horizon": 10_000, "n-policies": 16}


def add_parser(commands: Any) -> None:
    """The options of ``armwise advise``.

    >>> from armwise.cli.main import main
    >>> main(["advise", "--adversarial", "--high-probability"])
    Assumed: adversarial=True, high_probability=True.
    ...
    """
    parser = command_parser(
        commands,
        "advise",
        "find the agents that fit your assumptions, and why the others do not",
        "armwise advise --linear --no-adversarial --no-horizon-known --dim 20",
    )
    assumptions = parser.add_argument_group("assumptions", "leave out what you cannot say")
    for name, meaning in _ASSUMPTIONS.items():
        assumptions.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=None, help=meaning)
    sizes = parser.add_argument_group("sizes", "for the bounds and the calls that make the agents")
    for name, value in _SIZES.items():
        sizes.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"{value} unless said")
    sizes.add_argument("--delta", type=float, default=0.05, metavar="P", help="failure probability; 0.05 unless said")


def run(args: argparse.Namespace) -> None:
    """Print the advice."""
    from armwise import guide

    names = [name.replace("-", "_") for name in (*_ASSUMPTIONS, *_SIZES, "delta")]
    advice = guide.advise(**{name: getattr(args, name) for name in names})
    show(args, str(advice), advice.data())
