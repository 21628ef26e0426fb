"""``armwise race``: race agents on worlds, print a table and write a report."""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import sys
import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armwise.cli.shared import BadInput, command_parser, did_you_mean, match
from armwise.core.tools.extras import expect

if TYPE_CHECKING:
    from armwise.environments import Environment
    from armwise.racing import Heat, Result

_EXAMPLE = """armwise race
  armwise race --world linear --set n_arms=10 --agents linucb,thompson,exp3 --horizon 10000 --seeds 20
  armwise race --world covertype.parquet --label y --agents linucb,thompson
  armwise race --world lists --set users=cascade --agents cascadeklucb,toprank,linucb"""
_DEFAULT_AGENTS = ("LinUCB", "LinThompson", "EpsilonGreedy", "Exp3")
_DEFAULT_RANKERS = ("CascadeKLUCB", "PositionThompson", "TopRank", "SlotBySlot")


def add_parser(commands: Any) -> None:
    parser = command_parser(commands, "race", "race agents on a world and write a report", _EXAMPLE)
    parser.add_argument("--world", help="a world by name (linear, tabular, ...) or a Parquet or CSV file; "
                        "default: every agent of the survey, each on a world that fits it")  # fmt: skip
    parser.add_argument("--data", metavar="FOLDER", help="a folder of classification sets (Parquet or CSV files with "
                        "a column label, class or target, or else the last one): a race on each")  # fmt: skip
    parser.add_argument("--label", help="the column of the file that the agents predict")
    parser.add_argument("--regression", action="store_true", help="the label is a number: arms are predictions of it")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the world")
    parser.add_argument("--agents", metavar="A,B", help=f"default: {','.join(_DEFAULT_AGENTS).lower()}; "
                        f"on lists {','.join(_DEFAULT_RANKERS).lower()}")  # fmt: skip
    parser.add_argument("--horizon", type=int, metavar="T", help="rounds (default: 10000, or the rows of the file)")
    parser.add_argument("--seeds", type=int, help="worlds to race on (default: 10)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="default: all cores")
    parser.add_argument("--engine", default="auto", help="auto, threads, processes or dask://host:port")
    parser.add_argument("--out", default="armwise-report", metavar="FOLDER", help="default: armwise-report")


def run(args: argparse.Namespace) -> int:
    for package in ("matplotlib", "pandas", "pyarrow", "tqdm", "threadpoolctl"):
        expect(package, "race")  # packages that write the report: check for them before the race
    heats = _sets(args) if args.data else [_own(args)] if args.world else _survey(args)
    from armwise.racing import RaceError, RaceWarning, race_all
    from armwise.racing.report.report import write_report
    from armwise.racing.run.checkpoints import Store

    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    unfinished = out / ".unfinished"  # checkpoints of an interrupted race
    seeds = args.seeds if args.seeds is not None else (10 if args.world else 4)  # four where there are many worlds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RaceWarning)  # printed below, one line each
        try:
            results = race_all(heats, seeds=seeds, workers=args.workers, engine=args.engine, checkpoint=unfinished,
                               command=_command(args))  # fmt: skip
        except RaceError as error:
            print(f"armwise race: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print(f"\narmwise race: stopped; the same command goes on from {unfinished}", file=sys.stderr)
            return 130
    title = f"A race on {heats[0].label}" if len(heats) == 1 else f"A race on {len(heats)} sets"
    title = title if args.world or args.data else "Every agent of the survey"
    page = write_report(results, out / "report.html", title, args.workers)
    _write_curves(results, out)
    Store(unfinished).clear()
    failures = [line for result in results for line in result.failures]
    for line in failures:
        print(f"armwise race: failed: {line}", file=sys.stderr)
    if args.json:
        rows = [{"world": r.label, **row} for r in results for row in _rows(r)]
        print(json.dumps({"report": str(page.resolve()), "results": rows, "failures": failures}, indent=2))
    else:
        for result in results:
            print(f"\n{result.label} (T = {result.horizon}, regret against {result.world.comparator})")
            if result.heat.about:
                print(textwrap.fill(result.heat.about, 120))
            print(_text(result))
        print(f"\nreport: {page.resolve()}")
    return 1 if failures else 0


def _survey(args: argparse.Namespace) -> list[Heat]:
    for name, value in (("--label", args.label), ("--agents", args.agents), ("--set", args.set)):
        if value:
            raise BadInput(f"{name} needs --world: without a world, every agent races on its own")
    from armwise.racing.report.survey_race import MAX_HORIZON, survey_heats

    horizon = args.horizon if args.horizon is not None else MAX_HORIZON
    if horizon < 1:
        raise BadInput(f"--horizon must be at least 1, got {horizon}")
    return survey_heats(scale=horizon / MAX_HORIZON)


def _sets(args: argparse.Namespace) -> list[Heat]:
    if args.world or args.set or args.regression:
        raise BadInput("--data is a folder of classification sets: --world, --set and --regression do not go with it")
    from armwise.environments import Classification
    from armwise.environments.data.frames import labelled_sets

    found = labelled_sets(args.data)
    return [_heat(args, Classification.from_file(path, args.label), name) for name, path in found.items()]


def _own(args: argparse.Namespace) -> Heat:
    return _heat(args, *_world(args))


def _heat(args: argparse.Namespace, world: Environment, name: str) -> Heat:
    from armwise.environments.lists import ListWorld
    from armwise.racing import Heat
    from armwise.racing.run.entries import ALIASES, enter, enter_ranker, entrants

    horizon = args.horizon if args.horizon is not None else getattr(world, "n_rows", 10_000)
    if horizon < 1:
        raise BadInput(f"--horizon must be at least 1, got {horizon}")
    usual = _DEFAULT_AGENTS if world.n_slots is None else _DEFAULT_RANKERS
    wanted = args.agents.split(",") if args.agents else usual
    known = entrants(world)
    agents: dict[str, Any] = {}
    for each in wanted:
        agent = ALIASES.get(each.strip().lower()) or match("agent", each.strip(), known)
        agents[agent] = (
            enter_ranker(agent, world, horizon) if isinstance(world, ListWorld) else enter(agent, world, horizon)
        )
    return Heat(world, agents, horizon, name)


def _world(args: argparse.Namespace) -> tuple[Environment, str]:
    from armwise import environments

    path = Path(args.world)
    if path.suffix or os.sep in args.world or path.is_file():
        if not args.label:
            raise BadInput(f"{args.world} is a file: name the column that the agents predict with --label")
        kind = environments.Regression if args.regression else environments.Classification
        if args.set:
            raise BadInput("--set is for worlds by name; a file has nothing to set")
        return kind.from_file(path, args.label), path.stem
    names = [n for n, thing in vars(environments).items() if isinstance(thing, type) and n not in _NOT_BY_NAME]
    published = [name for name in environments.protocols() if name not in map(str.lower, names)]
    name = match("world", args.world, [*names, *published])
    if args.label:
        raise BadInput(f"--label is for files; {name} has no columns")
    if name in published:
        if args.set:
            raise BadInput(f"--set is for worlds with parameters; {name} is a published protocol")
        return environments.published(name), name
    cls = getattr(environments, name)
    values = {}
    for setting in args.set:
        key, equals, text = setting.partition("=")
        if not equals:
            raise BadInput(f"--set expects NAME=VALUE, got {setting!r}")
        import inspect

        allowed = list(inspect.signature(cls).parameters)
        if key not in allowed:
            raise BadInput(f"{name} has no parameter {key!r}{did_you_mean(key, allowed)}")
        values[key] = _value(text)
    return cls(**values), name


# Worlds that need data, or another world.
_NOT_BY_NAME = ("Block", "Environment", "Rows", "Classification", "Regression", "Ratings", "Mushroom", "FromLog",
                "ListWorld", "RatedLists", "Drift", "Seasonal", "Switch", "protocols", "published")  # fmt: skip


def _value(text: str) -> Any:
    try:
        return json.loads(text.lower() if text in ("True", "False") else text)
    except json.JSONDecodeError:
        return text


def _command(args: argparse.Namespace) -> str:
    words = ["armwise", "race"]
    for name in ("world", "data", "label", "agents", "horizon", "seeds"):
        if getattr(args, name) is not None:
            words += [f"--{name}", str(getattr(args, name))]
    for setting in args.set:
        words += ["--set", setting]
    if args.regression:
        words.append("--regression")
    if args.out != "armwise-report":
        words += ["--out", args.out]
    return shlex.join(words)


def _write_curves(results: list[Result], out: Path) -> None:
    import pandas as pd

    frame = pd.concat([result.curves() for result in results], ignore_index=True)
    frame.to_parquet(out / "race.parquet", index=False)
    frame.to_csv(out / "race.csv", index=False)


def _rows(result: Result) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(result.table().to_json(orient="records"))
    return rows


def _text(result: Result) -> str:
    frame = result.table()
    verdicts = [result.verdict(name) for name in map(str, frame["agent"])]
    frame["verdict"] = [_SHORT.get(verdict) or words for verdict, words in verdicts]
    names = {"std_error": "± s.e.", "regret_max": "worst seed", "us_per_decision": "µs/decision"}
    certified = frame.get("certificate")
    if certified is not None and certified.notna().any():
        # A certificate is about one run, the rest of a row about all: that run's own regret stands beside it.
        names["certificate"] = f"seed {result.seeds[0]}: certified"
        frame["certificate"] = [
            "-" if math.isnan(proved) else f"{_figure(regret)} <= {_figure(proved)}"
            for regret, proved in zip(frame["certified_regret"], certified, strict=True)
        ]
    shown = ["agent", "regret", "std_error", "regret_max", "bound", "verdict", "certificate", "us_per_decision"]
    shown = [name for name in shown if name in frame] + ["failed"] * bool(frame["failed"].any())
    return frame[shown].rename(columns=names).to_string(index=False, na_rep="-", float_format=_figure)


_SHORT = {"below": "holds", "above": "ABOVE", "none": "-"}


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
