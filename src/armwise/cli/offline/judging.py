"""Code shared by ``evaluate`` and ``compare``: options, policies by name, opening the log, printing the answer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from armwise.cli.offline.logs import add_log_options, finish, open_log, same_file, split_commas, telling
from armwise.cli.shared import BadInput, Parser

KNOWN_POLICIES = "uniform, arm:NAME, column:NAME, columns:p_{arm}, or a .aw or .npy file"
MAX_NAMED = 20  # arms that are evaluated by default, or named in a message


def add_judging_options(parser: Parser, intervals: tuple[str, ...], interval_help: str) -> None:
    """Add the options of the log and of the evaluation."""
    add_log_options(parser)
    parser.add_argument("--reward-model", choices=("ridge", "logistic", "forest"), default="ridge")
    parser.add_argument("--interval", default="auto", choices=intervals, help=interval_help)
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--reward-range", metavar="LOW,HIGH",
                        help="the range of rewards (default: 0,1 if they lie in it)")  # fmt: skip
    parser.add_argument(
        "--cluster", metavar="COLUMN", help="rows with the same value are dependent (a user's, for example)"
    )
    parser.add_argument("--estimate-probabilities", action="store_true",
                        help="for a log without probabilities: fit a logistic model of the arms")  # fmt: skip
    parser.add_argument("--trim", type=float, metavar="P",
                        help="leave out rows in whose context an arm had a probability below P (two arms, or "
                        "--estimate-probabilities)")  # fmt: skip
    parser.add_argument("--one-sided", choices=("lower", "upper"), help="only this end of every interval, at --level")
    parser.add_argument("--engine", metavar="dask://HOST:PORT", help="read parts of the log on a Dask cluster")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--explain", action="store_true", help="also print the reasons for the plan and the details of the numbers"
    )
    parser.add_argument("--plot", metavar="FILE", help="write the intervals as a picture")
    parser.add_argument("--drift", metavar="FILE", help="write a picture of the arms' rewards over the rows of the log")
    parser.add_argument("--report", metavar="FILE", help="write an HTML page")


def judge(args: argparse.Namespace, work: Callable[[Any, dict[str, Any]], Any]) -> None:
    """Open the log, call ``work`` with it and the common options, and print the result."""
    from armwise import offline

    def result() -> Any:
        log = open_log(args)
        if args.drift:
            log.drift().plot(args.drift)
        table = None
        if args.estimate_probabilities:
            model = offline.PropensityModel(seed=args.seed)
            log = model.fill(log, cluster=args.cluster, progress=sys.stderr.isatty())
            table = model.probabilities
        if args.trim is not None:
            log = log.trimmed(args.trim, table)
        return work(log, {
            "reward_model": reward_model(args.reward_model, args.seed), "interval": args.interval, "level": args.level,
            "cluster": args.cluster, "reward_range": reward_range(args.reward_range), "seed": args.seed,
            "progress": sys.stderr.isatty(), "engine": args.engine, "one_sided": args.one_sided,
        })  # fmt: skip

    found = telling(args, result)
    finish(args, found, found.text(args.explain), found.to_dict())


def reward_range(text: str | None) -> tuple[float, float] | None:
    """Read two numbers separated by a comma."""
    if text is None:
        return None
    try:
        low, high = (float(end) for end in split_commas(text))
    except ValueError:
        raise BadInput(f"--reward-range must be two numbers, as in 0,1, got {text!r}") from None
    return low, high


def read_policies(args: argparse.Namespace, log: Any) -> dict[str, Any]:
    """Read the policies by name: NAME=POLICY, or the policy's text as its name."""
    found = {}
    for text in args.policy:
        name, equals, rest = text.partition("=")
        label, text = (name, rest) if equals and ":" not in name and not Path(text).exists() else (text, text)
        if label in found:
            raise BadInput(f"--policy names {label!r} twice")
        found[label] = read_policy(text, args, log)
    return found


def labels_of(log: Any) -> list[str]:
    """The names of the arms, or 0, 1, ..."""
    return [str(label) for label in (log.arm_names if log.arm_names is not None else range(log.n_arms))]


def read_policy(text: str, args: argparse.Namespace, log: Any, option: str = "--policy") -> Any:
    """Read a policy from its text; ``option`` is the option that gave it."""
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
    raise BadInput(f"cannot read policy {text!r}: expected {KNOWN_POLICIES}{arms}")


def some_of(log: Any) -> str:
    """The names of the first arms, for a message."""
    labels = labels_of(log)
    return ", ".join(labels[:MAX_NAMED]) + (", ..." if len(labels) > MAX_NAMED else "")


def _uniform(log: Any) -> Any:
    from armwise.policies import Uniform

    return Uniform(log.n_arms)


def _constant(name: str, log: Any, option: str) -> Any:
    from armwise.offline.evaluation.targets import Always

    labels = labels_of(log)
    if name not in labels:
        raise BadInput(f"{option} arm:{name}: the arms are {some_of(log)}")
    return Always(labels.index(name))


def reward_model(name: str, seed: int) -> Any:
    """Make the reward model that ``--reward-model`` names."""
    if name == "logistic":
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=1000)
    if name == "forest":
        from sklearn.ensemble import RandomForestRegressor

        return RandomForestRegressor(min_samples_leaf=20, random_state=seed)
    return None
