"""``armwise experiment``: list, show, stop and report the experiments of a folder."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from armwise.cli.shared import BadInput, command_parser, match, show
from armwise.core.tools.text_tables import text_table

TASKS = ("list", "show", "stop", "report")


def add_parser(commands: Any) -> None:
    """The options of ``armwise experiment``."""
    parser = command_parser(
        commands,
        "experiment",
        "list, show, stop and report the experiments of a folder",
        "armwise experiment report decisions/ checkout-colour --output report.html",
    )
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("storage", help="the folder, or PostgreSQL URL, that the experiments are in")
    parser.add_argument("name", nargs="?", help="the experiment")
    parser.add_argument("--arm", help="stop: what everybody gets (default: the verdict's, else control)")
    parser.add_argument("--by", default="", help="stop: who does")
    parser.add_argument("--why", default="", help="stop: the reason (default: the verdict)")
    parser.add_argument("--output", metavar="FILE", help="report: where to write it (default: NAME.html)")


def run(args: argparse.Namespace) -> None:
    """Do the task."""
    from armwise.service.config import open_store
    from armwise.service.decider.experiment import hosted_experiments

    path = getattr(open_store(args.storage), "path", None)
    if path is not None and not Path(path).exists():
        raise BadInput(f"there is no journal at {path}")
    with hosted_experiments(args.storage) as found:
        if args.task == "list":
            shown = [each.to_dict() for each in found.values()]
            rows = [[d["name"], d["state"], d.get("mode", "split"), ", ".join(d["arms"])] for d in shown]
            show(args, text_table(("experiment", "state", "mode", "arms"), rows) if rows else "no experiments", shown)
            return
        if args.name is None:
            raise BadInput(f"{args.task} takes the name of an experiment")
        experiment = found[match("experiment", args.name, found)]
        if args.task == "show":
            verdict = experiment.verdict()
            show(args, f"{experiment.name}: {experiment.to_dict()['state']}\n{verdict}", verdict.to_dict())
        elif args.task == "stop":
            arm = experiment.stop(args.arm, args.by, args.why)
            show(args, f"{experiment.name} is stopped: everybody gets {arm}", {"arm": arm})
        else:
            from armwise.service.experiments.report import report_data, report_html

            output = Path(args.output or f"{experiment.name}.html")
            data = report_data(experiment)
            text = json.dumps(data, indent=2) if output.suffix == ".json" else report_html(experiment)
            output.write_text(text, encoding="utf-8")
            show(args, f"wrote {output}", data)
