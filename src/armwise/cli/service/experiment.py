"""``armwise experiment``: list, show, stop and report the experiments of a folder or of a running service."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armwise.cli.shared import BadInput, command_parser, match, show
from armwise.core.tools.text_tables import text_table

if TYPE_CHECKING:
    from armwise.service.decider.remote_experiment import RemoteExperiment
    from armwise.service.experiments.hosted import HostedExperiment

TASKS = ("list", "show", "stop", "report")


def add_parser(commands: Any) -> None:
    """The options of ``armwise experiment``."""
    parser = command_parser(
        commands,
        "experiment",
        "list, show, stop and report the experiments of a folder or of a running service",
        "armwise experiment report decisions/ checkout-colour --output report.html",
    )
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("storage", help="the folder, or PostgreSQL URL, that the experiments are in, or the "
                        "http address of the service that has it open")  # fmt: skip
    parser.add_argument("name", nargs="?", help="the experiment")
    parser.add_argument("--key", default=os.environ.get("ARMWISE_KEY"), help="of a service (default: $ARMWISE_KEY)")
    parser.add_argument("--arm", help="stop: what everybody gets (default: the verdict's, else control)")
    parser.add_argument("--by", default="", help="stop: who does")
    parser.add_argument("--why", default="", help="stop: the reason (default: the verdict)")
    parser.add_argument("--output", metavar="FILE", help="report: where to write it (default: NAME.html)")


def run(args: argparse.Namespace) -> None:
    """Do the task."""
    with _experiments(args.storage, args.key) as found:
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
            show(
                args,
                f"{experiment.name} is stopped: all get {arm} but the holdout, and who is not eligible",
                {"arm": arm},
            )
        else:
            output = Path(args.output or f"{experiment.name}.html")
            data = experiment.report_data()
            text = json.dumps(data, indent=2) if output.suffix == ".json" else experiment.report()
            output.write_text(text, encoding="utf-8")
            show(args, f"wrote {output}", data)


@contextlib.contextmanager
def _experiments(storage: str, key: str | None) -> Iterator[Mapping[str, HostedExperiment | RemoteExperiment]]:
    """The experiments of a folder, a database or a service, by name."""
    from armwise.service.decider.client import Client, ServiceError
    from armwise.service.decider.experiment import hosted_experiments
    from armwise.service.decider.remote_experiment import RemoteExperiment
    from armwise.service.server.config import open_store

    if storage.startswith(("http://", "https://")):
        with Client(storage, key=key) as client:
            try:
                told = json.loads(client.send("GET", "/v1/experiments", None))["experiments"]
                yield {each["name"]: RemoteExperiment(client, each["name"]) for each in told}
            except ServiceError as error:
                raise BadInput(f"{storage}: {error}") from None
        return
    path = getattr(open_store(storage), "path", None)
    if path is not None and not Path(path).exists():
        raise BadInput(f"there is no journal at {path}")
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(hosted_experiments(storage))
        except RuntimeError as error:
            raise BadInput(f"{error}: give the address of that service, such as http://127.0.0.1:8484") from None
        yield found
