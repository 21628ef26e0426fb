"""``armwise compare``: whether one policy is better than another on logged data."""

from __future__ import annotations

import argparse
from typing import Any

from armwise.cli.offline.judging import add_judging_options, judge, labels_of, read_policy, some_of
from armwise.cli.shared import BadInput, command_parser

_EXAMPLE = (
    "armwise compare log.csv --arm treatment --reward spend --probability 1/3 "
    "--first 'arm:Mens E-Mail' --second 'arm:No E-Mail'\n"
    "  armwise compare log.parquet --first model.aw --second uniform --report report.html\n"
    "  (policies as in armwise evaluate --help)"
)


def add_parser(commands: Any) -> None:
    """Add the options of ``armwise compare``."""
    parser = command_parser(commands, "compare", "is one policy better than another, on logged data", _EXAMPLE)
    intervals = ("auto", "cressie-read", "skew-corrected", "normal", "bootstrap", "bernstein", "betting", "sequence")
    add_judging_options(
        parser, intervals, "of the difference (auto: cressie-read where rewards are bounded, else skew-corrected)"
    )
    parser.add_argument("--first", metavar="POLICY", help="the policy that may be better")
    parser.add_argument("--second", metavar="POLICY", help="the policy to beat")
    parser.add_argument("--estimator", default="dr", help="ips, snips, dr, sndr, ... (default: dr)")


def run(args: argparse.Namespace) -> None:
    """Compare two policies and print which is better."""
    judge(args, lambda log, options: _compared(args, log, options))


def _compared(args: argparse.Namespace, log: Any, options: dict[str, Any]) -> Any:
    from armwise import offline

    if args.first is None or args.second is None:
        one, other = (labels_of(log) * 2)[:2]
        raise BadInput(
            f"give two policies, as in --first 'arm:{one}' --second 'arm:{other}' (the arms are {some_of(log)}); "
            "armwise evaluate judges each arm on its own"
        )
    first = read_policy(args.first, args, log, "--first")
    second = read_policy(args.second, args, log, "--second")
    return offline.compare(log, first, second, args.estimator, **options)
