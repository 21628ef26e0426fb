"""``armwise evaluate``: what a policy would have earned, from logged data."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from armwise.cli.logs import add_log_options, number_list, open_log, quietly, same_file, write
from armwise.cli.shared import BadInput, command_parser, show

_KNOWN = "uniform, arm:NAME, column:NAME, columns:p_{arm}, or a .aw or .npy file"
_MANY = 20  # arms that are judged, or named in a message, without being asked for

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
    parser = command_parser(commands, "evaluate", "judge a policy on logged data", _EXAMPLE)
    add_log_options(parser)
    parser.add_argument("--policy", action="append", metavar="[NAME=]POLICY",
                        help="what to judge, see below; more than once: all of them in one pass; without: each arm on "
                             "its own, beside what the log earned")  # fmt: skip
    parser.add_argument("--estimators", default="ips,snips,dm,dr", metavar="A,B,...",
                        help="of ips, snips, dm, dr, sndr, switch-dr, dros (default: ips,snips,dm,dr)")  # fmt: skip
    parser.add_argument("--reward-model", choices=("ridge", "logistic", "forest"), default="ridge")
    parser.add_argument("--clip", type=float, metavar="TAU", help="raise probabilities below TAU to it")
    parser.add_argument("--interval", default="auto",
                        choices=("auto", "cressie-read", "normal", "bootstrap", "bernstein", "betting", "sequence"),
                        help="auto: cressie-read where rewards are bounded, else normal")  # fmt: skip
    parser.add_argument("--cap", type=float, metavar="W", help="lower weights above W to it")
    parser.add_argument("--by", metavar="COLUMN", help="judge each of its values too")
    parser.add_argument("--baseline", metavar="NAME",
                        help="'logged' for what the log earned, or a policy's name: adds the paired lift")  # fmt: skip
    parser.add_argument("--cluster", metavar="COLUMN", help="rows with the same value belong together (a user)")
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--reward-range", metavar="LOW,HIGH",
                        help="between which numbers rewards lie (default: 0,1 where they do)")  # fmt: skip
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
    if args.policy is None:
        args.policy, args.baseline = [f"arm:{label}" for label in labels_of(log)], args.baseline or "logged"
        if len(args.policy) > _MANY:
            raise BadInput(f"say what to judge with --policy: {_KNOWN}; the log has {len(args.policy):,} arms")
    policies = read_policies(args, log)
    policy = policies if len(policies) > 1 else next(iter(policies.values()))
    result = quietly(
        lambda: offline.evaluate(
            log, policy, number_list(args.estimators), reward_model(args.reward_model, args.seed), args.clip,
            args.interval, args.level, by=args.by, baseline=args.baseline, cluster=args.cluster, cap=args.cap,
            reward_range=reward_range(args.reward_range), seed=args.seed, progress=sys.stderr.isatty(),
            engine=args.engine,
        )
    )  # fmt: skip
    if len(policies) == 1:
        result.target = next(iter(policies))
    write(args, result)
    show(args, result.table(), result.to_dict())


def reward_range(text: str | None) -> tuple[float, float] | None:
    """Two numbers between a comma."""
    if text is None:
        return None
    try:
        low, high = (float(end) for end in number_list(text))
    except ValueError:
        raise BadInput(f"--reward-range must be two numbers, as in 0,1, got {text!r}") from None
    return low, high


def read_policies(args: argparse.Namespace, log: Any) -> dict[str, Any]:
    """The policies by name: NAME=POLICY, or the policy's own text."""
    found = {}
    for text in args.policy:
        name, equals, rest = text.partition("=")
        label, text = (name, rest) if equals and ":" not in name and not Path(text).exists() else (text, text)
        if label in found:
            raise BadInput(f"--policy names {label!r} twice")
        found[label] = read_policy(text, args, log)
    return found


def labels_of(log: Any) -> list[str]:
    """The arms as they are called: by their names, or 0, 1, ..."""
    return [str(label) for label in (log.arm_names if log.arm_names is not None else range(log.n_arms))]


def read_policy(text: str, args: argparse.Namespace, log: Any, option: str = "--policy") -> Any:
    """The policy that a text names; ``option`` is where it was said."""
    kind, _, rest = text.partition(":")
    if text == "uniform":
        return _uniform(log)
    if kind == "arm" and rest:
        return _constant(rest, log, option)
    if kind == "column" and rest:
        import numpy as np

        return np.array(labels_of(log), object)[same_file(args, log, contexts=[], arms=rest).arms]
    if kind == "columns" and rest:
        names = [rest.replace("{arm}", label) for label in labels_of(log)]
        if len(set(names)) != log.n_arms:
            raise BadInput(f"{option} {text!r} must hold {{arm}}, as in columns:p_{{arm}}")
        return same_file(args, log, contexts=names).contexts
    path = Path(text)
    if path.suffix in (".aw", ".npy") and not path.exists():
        raise BadInput(f"there is no file {text!r}")
    if path.suffix == ".npy":
        import numpy as np

        return np.load(path, allow_pickle=False)
    if path.exists():
        from armwise import load

        return load(path)
    if log.arm_names is not None and text in labels_of(log):
        return _constant(text, log, option)
    arms = "" if log.arm_names is None else f"; the arms are {some_of(log)}"
    raise BadInput(f"cannot read policy {text!r}: expected {_KNOWN}{arms}")


def some_of(log: Any) -> str:
    """The names of the arms, those that fit."""
    labels = labels_of(log)
    return ", ".join(labels[:_MANY]) + (", ..." if len(labels) > _MANY else "")


def _uniform(log: Any) -> Any:
    from armwise.policies import Uniform

    return Uniform(log.n_arms)


def _constant(name: str, log: Any, option: str) -> Any:
    from armwise.offline.dsjson import Events
    from armwise.offline.targets import Always

    labels = labels_of(log)
    if name not in labels and isinstance(log._source, Events):  # there, it may have another place in every row
        arms = log._source.positions(name)
        if (arms >= 0).all():
            return arms
        if (arms >= 0).any():
            raise BadInput(f"{option} arm:{name}: {(arms < 0).sum()} of {len(arms)} decisions did not offer it")
    if name not in labels:
        raise BadInput(f"{option} arm:{name}: the arms are {some_of(log)}")
    return Always(labels.index(name))


def reward_model(name: str, seed: int) -> Any:
    """The reward model that ``--reward-model`` names."""
    if name == "logistic":
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=1000)
    if name == "forest":
        from sklearn.ensemble import RandomForestRegressor

        return RandomForestRegressor(min_samples_leaf=20, random_state=seed)
    return None
