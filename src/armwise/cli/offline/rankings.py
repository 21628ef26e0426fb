"""``armwise evaluate`` for a log of rankings: what another order would have earned."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from armwise.cli.offline.judging import some_of
from armwise.cli.offline.logs import finish, kind_of_log, show_with, split_commas, telling
from armwise.cli.shared import BadInput, complaint

_TAKEN = {"command", "run", "option_default", "json", "log", "format", "within", "skip_bad_rows", "policy",
          "estimators", "level", "explain", "plot", "report", "seed"}  # fmt: skip
POLICIES = "uniform, order:A,B,..., or a .npy file of probabilities"


def holds_rankings(args: argparse.Namespace) -> bool:
    """Whether the log is a file of rankings alone: VW's CCB or slates, or lists of the service."""
    from armwise.offline.logs.formats import slate_json

    path = Path(args.log[0])
    if len(args.log) > 1 or not path.is_file() or kind_of_log(args) == "csv":
        return False
    return slate_json.holds_rankings_alone(path)


def evaluate_rankings(args: argparse.Namespace, default: Callable[[str], Any]) -> None:
    """Evaluate policies on a log of rankings, and print their estimated values; ``default`` is an option's."""
    for name, value in vars(args).items():
        if name not in _TAKEN and value != default(name):
            raise BadInput(f"--{name.replace('_', '-')} is for logs of single decisions: {args.log[0]} holds rankings")
    found = telling(args, lambda: _evaluated(args))
    if len(found) == 1:
        [result] = found.values()
        finish(args, result, result.text(args.explain), result.to_dict())
        return
    for name in ("plot", "report"):
        if getattr(args, name):
            raise BadInput(f"--{name} shows one policy of rankings, got {len(found)}")
    cautions = dict.fromkeys(text for result in found.values() for text in result.cautions)
    tables = (f"{name}\n{result.text(args.explain)}" for name, result in found.items())
    show_with(args, cautions, "\n\n".join(tables), {name: result.to_dict() for name, result in found.items()})


def _evaluated(args: argparse.Namespace) -> dict[str, Any]:
    from armwise import offline

    log = offline.SlateLog.from_dsjson(args.log[0], skip=args.skip_bad_rows, horizon=args.within)
    estimators, found = None if args.estimators is None else split_commas(args.estimators), {}
    for text in args.policy or ["uniform"]:
        name, equals, rest = text.partition("=")
        name, text = (name, rest) if equals and ":" not in name and not Path(text).exists() else (text, text)
        if name in found:
            raise BadInput(f"--policy names {name!r} twice")
        policy = _policy(text, log)
        try:
            found[name] = offline.evaluate_slates(log, policy, estimators, level=args.level, seed=args.seed, warn=False)
        except ValueError as wrong:
            raise BadInput(f"--policy {text}: {complaint(wrong)}") from None
        found[name].target = name
    return found


def _policy(text: str, log: Any) -> Any:
    kind, _, rest = text.partition(":")
    if text == "uniform":
        return _uniform(log)
    if kind == "order" and rest:
        names = split_commas(rest)
        unknown = next((name for name in names if log.arm(_typed(name, log)) is None), None)
        if unknown is not None:
            raise BadInput(f"--policy {text}: there is no arm {unknown!r}; the arms are {some_of(log)}")
        return [_typed(name, log) for name in names]
    if Path(text).suffix == ".npy":
        import numpy as np

        if not Path(text).exists():
            raise BadInput(f"there is no file {text!r}")
        return np.load(text, allow_pickle=False)
    raise BadInput(f"cannot read policy {text!r} of rankings: expected {POLICIES}; the arms are {some_of(log)}")


def _typed(name: str, log: Any) -> Any:
    """An arm as the log calls it: its name, or its number."""
    return int(name) if log.arm_names is None and name.isdecimal() else name


def _uniform(log: Any) -> Any:
    """The policy that fills each slot with any of the arms left."""
    import numpy as np

    def uniform(context: Any, above: list[Any]) -> Any:
        p = np.ones(log.n_arms)
        p[[log.arm(each) for each in above]] = 0.0
        return p / p.sum()

    return uniform
