"""``armwise compare``: is one policy better than another, from logged data; or does one agent learn better."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from armwise.cli.evaluate import labels_of, read_policy, reward_model, reward_range, some_of
from armwise.cli.logs import add_log_options, open_log, quietly, write
from armwise.cli.shared import BadInput, command_parser, show

_EXAMPLE = (
    "armwise compare log.csv --arm treatment --reward spend --probability 1/3 "
    "--first 'arm:Mens E-Mail' --second 'arm:No E-Mail'\n"
    "  armwise compare log.parquet --first model.aw --second uniform --report report.html\n"
    "  (policies as in armwise evaluate --help)"
)


def add_parser(commands: Any) -> None:
    parser = command_parser(commands, "compare", "is one policy better than another, on logged data", _EXAMPLE)
    add_log_options(parser)
    parser.add_argument("--first", metavar="POLICY", help="the policy that may be better")
    parser.add_argument("--second", metavar="POLICY", help="the policy to beat")
    parser.add_argument("--estimator", default="dr", help="ips, snips, dr, sndr, ... (default: dr)")
    parser.add_argument("--reward-model", choices=("ridge", "logistic", "forest"), default="ridge")
    parser.add_argument(
        "--interval", default="auto", choices=("auto", "normal", "bootstrap", "bernstein", "betting", "sequence")
    )
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--reward-range", metavar="LOW,HIGH", help="between which numbers rewards lie")
    parser.add_argument("--cluster", metavar="COLUMN", help="rows with the same value belong together (a user)")
    parser.add_argument("--estimate-probabilities", action="store_true",
                        help="the log does not say them: fit a logistic model of the arms")  # fmt: skip
    parser.add_argument("--engine", metavar="dask://HOST:PORT", help="read parts of the log on a Dask cluster")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", metavar="FILE", help="write the intervals as a picture")
    parser.add_argument("--report", metavar="FILE", help="write an HTML page")


def run(args: argparse.Namespace) -> None:
    from armwise import offline

    log = quietly(lambda: open_log(args))
    if args.estimate_probabilities:
        log = offline.PropensityModel(seed=args.seed).fill(log, progress=sys.stderr.isatty())
    if args.first is None or args.second is None:
        one, other = (labels_of(log) * 2)[:2]
        raise BadInput(
            f"say which two policies, as in --first 'arm:{one}' --second 'arm:{other}' (the arms are {some_of(log)}); "
            "armwise evaluate judges each arm on its own"
        )
    first = read_policy(args.first, args, log, "--first")
    second = read_policy(args.second, args, log, "--second")
    result = quietly(
        lambda: offline.compare(
            log, first, second, args.estimator, reward_model(args.reward_model, args.seed), None, args.interval,
            args.level, cluster=args.cluster, reward_range=reward_range(args.reward_range), seed=args.seed,
            progress=sys.stderr.isatty(), engine=args.engine,
        )
    )  # fmt: skip
    write(args, result)
    show(args, result.table(), result.to_dict())
