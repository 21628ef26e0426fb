"""``armwise evaluate``: estimate what a policy would have earned, from logged data."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from armwise.cli.offline.judging import MAX_NAMED, add_judging_options, judge, labels_of, read_policies, some_of
from armwise.cli.offline.logs import split_commas
from armwise.cli.offline.rankings import evaluate_rankings, holds_rankings
from armwise.cli.shared import BadInput, command_parser

_EXAMPLE = (
    "armwise evaluate trial.csv --arm treatment --reward spend --probability 1/3\n"
    "  armwise evaluate trial.csv --arm treatment --reward spend --probability 1/3 --control none --by country\n"
    "  armwise evaluate log.parquet --arm item --reward click --probability p --policy arm:3\n"
    "  armwise evaluate log.csv --policy model.aw --estimators ips,dr --interval bootstrap --report report.html\n\n"
    "policies:\n"
    "  uniform            every arm with the same probability\n"
    "  arm:NAME           always the same arm\n"
    "  column:NAME        the arm in this column of the log\n"
    "  columns:p_{arm}    the probabilities in these columns, one for each arm\n"
    "  FILE.aw            a saved agent (frozen) or policy\n"
    "  FILE.npy           an (n, K) array of probabilities\n\n"
    "policies for a log of rankings (a service's lists, VW's CCB or slates):\n"
    "  uniform            any of the arms left in every slot (default)\n"
    "  order:A,B,...      a fixed order: each slot shows the first of these that it may\n"
    "  FILE.npy           an (n, L, K) array of probabilities, given the logged arms above"
)
DEFAULT_ESTIMATORS = "ips,snips,dm,dr"


def add_parser(commands: Any) -> None:
    """Add the options of ``armwise evaluate``."""
    parser = command_parser(commands, "evaluate", "judge a policy on logged data", _EXAMPLE)
    intervals = ("auto", "cressie-read", "skew-corrected", "normal", "bootstrap", "bernstein", "betting", "sequence")
    add_judging_options(parser, intervals, "auto: cressie-read where rewards are bounded, else skew-corrected")
    parser.add_argument("--policy", action="append", metavar="[NAME=]POLICY",
                        help="the policy to evaluate, see below; may be repeated; default: each arm, beside what the "
                             "log earned")  # fmt: skip
    parser.add_argument("--estimators", metavar="A,B,...",
                        help=f"of ips, snips, dm, dr, sndr, switch-dr, dros (default: {DEFAULT_ESTIMATORS}); of "
                             "rankings: sips, iips, rips, pi, cascade-dr, and sn- before the first three")  # fmt: skip
    parser.add_argument("--clip", type=float, metavar="TAU", help="raise probabilities below TAU to TAU")
    parser.add_argument("--cap", type=float, metavar="W", help="lower weights above W to W")
    parser.add_argument("--by", metavar="COLUMN", help="also evaluate each value of this column")
    parser.add_argument("--baseline", metavar="NAME",
                        help="'logged' for what the log earned, or a policy's name: adds the paired lift")  # fmt: skip
    parser.add_argument("--control", metavar="ARM",
                        help="judge each arm against this one: effects overall and, with --by, in each segment, with a "
                             "test of whether they differ")  # fmt: skip
    parser.add_argument("--simultaneous", action=argparse.BooleanOptionalAction, default=True,
                        help="intervals that hold for all policies at once (default), or each on its own")  # fmt: skip
    parser.set_defaults(option_default=parser.get_default)


def run(args: argparse.Namespace) -> None:
    """Evaluate the policies and print their estimated values."""
    if holds_rankings(args):
        evaluate_rankings(args, args.option_default)
        return
    judge(args, lambda log, options: _evaluated(args, log, options))


def _evaluated(args: argparse.Namespace, log: Any, options: dict[str, Any]) -> Any:
    from armwise import offline

    shared = {"by": args.by, "clip": args.clip, "cap": args.cap, "simultaneous": args.simultaneous, **options}
    if args.control is not None:
        if args.policy is not None or args.baseline is not None:
            raise BadInput("--control judges each arm against one: leave --policy and --baseline out")
        if args.control not in labels_of(log):
            raise BadInput(f"--control {args.control}: the arms are {some_of(log)}")
        return offline.effects(log, args.control, split_commas(args.estimators or DEFAULT_ESTIMATORS), **shared)
    if args.policy is None:
        labels, args.baseline = labels_of(log), args.baseline or "logged"
        if len(labels) > MAX_NAMED:
            import numpy as np

            counts = np.bincount(log.arms, minlength=len(labels))
            labels = [labels[k] for k in np.argsort(-counts, kind="stable")[:MAX_NAMED]]
            print(f"evaluating the {MAX_NAMED} arms that were played most, of {len(counts):,}; --policy names others",
                  file=sys.stderr)  # fmt: skip
        args.policy = [f"arm:{label}" for label in labels]
    policies = read_policies(args, log)
    policy = policies if len(policies) > 1 else next(iter(policies.values()))
    result = offline.evaluate(
        log, policy, split_commas(args.estimators or DEFAULT_ESTIMATORS), baseline=args.baseline, **shared
    )
    if len(policies) == 1:
        result.target = next(iter(policies))
    return result
