"""``armwise replay``: let an agent learn from logged data, and judge it."""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
from pathlib import Path
from typing import Any

from armwise.cli.offline.logs import add_log_options, finish, open_log, telling
from armwise.cli.shared import BadInput, command_parser, match


def add_parser(commands: Any) -> None:
    parser = command_parser(
        commands, "replay", "let an agent learn from logged data, and judge it",
        "armwise replay log.parquet --agent linucb --set alpha=0.5 --horizon 5000",
    )  # fmt: skip
    add_log_options(parser)
    parser.add_argument("--agent", required=True, help="an agent's name, or a file that agent.save wrote")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the agent")
    parser.add_argument("--horizon", type=int, help="stop after this many matching rows")
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, help="replays of resampled logs for the interval (default: 20 "
                                                 "for logs of up to 3,000 rows, else none)")  # fmt: skip
    parser.add_argument("--save", metavar="FILE", help="save the agent after the last row")
    parser.add_argument("--plot", metavar="FILE", help="write the learning curve as a picture")
    parser.add_argument("--report", metavar="FILE", help="write an HTML page")


def run(args: argparse.Namespace) -> None:
    from armwise import offline

    def result() -> Any:
        log = open_log(args)
        agent = make_agent(args, log)
        return offline.replay(log, agent, horizon=args.horizon, level=args.level, runs=args.runs, seed=args.seed,
                              progress=sys.stderr.isatty())  # fmt: skip

    found = telling(args, result)
    if args.save:
        found.agent.save(args.save)
    finish(args, found, found.table(), {"agent": repr(found.agent), **found.to_dict()})


def make_agent(args: argparse.Namespace, log: Any) -> Any:
    """Build the agent that ``--agent`` names for the arms and contexts of this log."""
    import armwise

    if Path(args.agent).is_file():
        return armwise.load(args.agent)
    name = match("agent", args.agent, [name for name in armwise.__all__ if name[0].isupper()])
    cls = getattr(armwise, name)
    if not _is_agent(cls):
        raise BadInput(f"{name} is not an agent that can be made here: give a file that agent.save wrote")
    known = inspect.signature(cls).parameters
    values: dict[str, Any] = {"seed": args.seed}
    rows = next(iter(log.batches(1)))
    per_arm = rows.arm_features is not None or getattr(rows.contexts, "ndim", 0) == 3
    if "dim" in known:
        if per_arm:
            values["dim"] = rows.features().shape[-1]
        elif getattr(rows.contexts, "ndim", 0) == 2:
            values["dim"] = rows.contexts.shape[1]
        else:
            raise BadInput(f"{cls.__name__} needs contexts, but the log has none")
    if "n_arms" in known and not ("dim" in known and per_arm):
        values["n_arms"] = log.n_arms
    if "horizon" in known and known["horizon"].default is inspect.Parameter.empty:
        values["horizon"] = len(log)
    for text in args.set:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            raise BadInput(
                f"--set {text!r}: expected NAME=VALUE with a parameter of {cls.__name__}: {', '.join(known)}"
            )
        values[name] = _value(value)
    missing = [n for n, p in known.items() if p.default is p.empty and n not in values and p.kind is not p.VAR_KEYWORD]
    if missing:
        raise BadInput(f"{cls.__name__} also needs {', '.join(missing)}: give --set, or a file that agent.save wrote")
    return cls(**values)


def _is_agent(value: Any) -> bool:
    from armwise.core.agent import Agent

    return inspect.isclass(value) and issubclass(value, Agent) and not inspect.isabstract(value)


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
