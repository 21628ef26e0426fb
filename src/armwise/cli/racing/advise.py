"""``armwise advise``: which agent to begin with."""

from __future__ import annotations

import argparse
from typing import Any

from armwise.cli.shared import add_numbers, command_parser, given, show

_YES = {
    "arms-change": "other arms are on offer from round to round",
    "graph": "arms are nodes of a graph, and neighbours are alike",
    "horizon-known": "--rounds is certain",
    "smooth": "the reward is a smooth function of the features, not a linear one",
    "sparse": "very many features, few of them non-zero",
    "drift": "the world changes",
    "delay": "rewards come late or in batches",
    "log": "the log must be usable afterwards, to evaluate other policies",
    "adversarial": "somebody may choose the rewards against you",
}
_SIZES = {
    "n-arms": "how many arms (10)",
    "dim": "how many features (20)",
    "kinds": "visitors are one of so many kinds",
    "policies": "you have so many rules or models and want the best of them",
    "rounds": "how many rounds there will be",
    "slots": "a round shows a list of so many arms",
}


_NUMBERS = {
    "rate": "the usual share of clicks",
    "gap": "by how much a better arm would exceed it",
    "traffic": "decisions a day",
}


def add_parser(commands: Any) -> None:
    """The options of ``armwise advise``."""
    parser = command_parser(
        commands,
        "advise",
        "answer an expert's questions, and get the agents to begin with",
        "armwise advise --feedback clicks --features visitor --n-arms 5 --dim 20 --log",
    )
    parser.add_argument("--feedback", choices=("clicks", "amounts"), help="what a reward is (clicks)")
    parser.add_argument("--features", choices=("arms", "visitor", "none"), help="whose features are known (none)")
    add_numbers(parser, _SIZES, int)
    add_numbers(parser, _NUMBERS)
    for name, meaning in _YES.items():
        parser.add_argument(f"--{name}", action="store_true", default=None, help=meaning)


def run(args: argparse.Namespace) -> None:
    """Print the advice."""
    from armwise.theory.advice import advise

    advice = advise(**given(args, ["feedback", "features", *_SIZES, *_NUMBERS, *_YES]))
    show(args, str(advice), advice.data())
