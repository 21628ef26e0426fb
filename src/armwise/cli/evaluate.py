"""``armwise evaluate``: what a policy would have earned, from logged data."""

from __future__ import annotations

import argparse
from typing import Any

from armwise.cli.judging import KNOWN_POLICIES, MAX_NAMED, add_judging_options, judge, labels_of, read_policies
from armwise.cli.logs import split_commas
from armwise.cli.shared import BadInput, command_parser

_EXAMPLE = (
    "armwise evaluate trial.csv --arm treatment --reward spend --probability 1/3\n"
    "  armwise evaluate log.parquet --arm item --reward click --probability p --policy arm:3\n"
    "  armwise evaluate log.csv --policy model.aw --estimators ips,dr --interval bootstrap --report report.html\n\n"
    "policies:\n"
    "  uniform            every arm with the same probability\n"
    "  arm:NAME           always the same arm\n"
    "  column:NAME        the arm in this column of the log\n"
    "  columns:p_{arm}    the probabilities in these columns, one for each arm\n"
    "  FILE.aw            a saved agent (frozen) or policy\n"
    "  FILE.npy           an (n, K) array of probabilities"
)


def add_parser(commands: Any) -> None:
    """The options of ``armwise evaluate``."""
    parser = command_parser(commands, "evaluate", "judge a policy on logged data", _EXAMPLE)
    intervals = ("auto", "cressie-read", "normal", "bootstrap", "bernstein", "betting", "sequence")
    add_judging_options(parser, intervals, "auto: cressie-read where rewards are bounded, else normal")
    parser.add_argument("--policy", action="append", metavar="[NAME=]POLICY",
                        help="what to judge, see below; more than once: all of them in one pass; without: each arm on "
                             "its own, beside what the log earned")  # fmt: skip
    parser.add_argument("--estimators", default="ips,snips,dm,dr", metavar="A,B,...",
                        help="of ips, snips, dm, dr, sndr, switch-dr, dros (default: ips,snips,dm,dr)")  # fmt: skip
    parser.add_argument("--clip", type=float, metavar="TAU", help="raise probabilities below TAU to it")
    parser.add_argument("--cap", type=float, metavar="W", help="lower weights above W to it")
    parser.add_argument("--by", metavar="COLUMN", help="judge each of its values too")
    parser.add_argument("--baseline", metavar="NAME",
                        help="'logged' for what the log earned, or a policy's name: adds the paired lift")  # fmt: skip


def run(args: argparse.Namespace) -> None:
    """Judge the policies, and show what they would have earned."""
    judge(args, lambda log, options: _evaluated(args, log, options))


def _evaluated(args: argparse.Namespace, log: Any, options: dict[str, Any]) -> Any:
    from armwise import offline

    if args.policy is None:
        args.policy, args.baseline = [f"arm:{label}" for label in labels_of(log)], args.baseline or "logged"
        if len(args.policy) > MAX_NAMED:
            raise BadInput(f"say what to judge with --policy: {KNOWN_POLICIES}; the log has {len(args.policy):,} arms")
    policies = read_policies(args, log)
    policy = policies if len(policies) > 1 else next(iter(policies.values()))
    result = offline.evaluate(log, policy, split_commas(args.estimators), clip=args.clip, by=args.by,
                              baseline=args.baseline, cap=args.cap, **options)  # fmt: skip
    if len(policies) == 1:
        result.target = next(iter(policies))
    return result
