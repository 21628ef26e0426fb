"""The entry point: finds the command and imports only its module.

A command is a file of ``offline``, ``service``, ``racing`` or this folder. It has ``add_parser(commands)``, which calls
``shared.command_parser``, and ``run(args)``, which may return an exit code. Wrong input is a ``BadInput``,
``ValueError`` or ``OSError``: one line, exit code 2.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from armwise import __version__
from armwise.cli.shared import BadInput, Parser, complaint, did_you_mean
from armwise.core.tools.extras import MissingExtra, needs

COMMANDS = {
    "race": "race agents on a world and write a report",
    "survey": "reproduce the survey, section by section, as a document",
    "table": "print the survey's table of algorithms",
    "advise": "answer an expert's questions, and get the agents to begin with",
    "evaluate": "judge a policy on logged data",
    "compare": "is one policy better than another, on logged data",
    "replay": "let an agent learn from logged data, and judge it",
    "export": "export a learnt policy, to run in JavaScript, Python or SQL",
    "plan": "units and days that an A/B test needs",
    "experiment": "list, show, stop and report experiments",
    "serve": "serve decisions over HTTP",
    "app": "list, add and remove applications of a decision service, and versions of their models",
    "journal": "read the log of a decision service",
}


# The extra that a command needs, for the message if it is not installed.
EXTRAS = {
    "race": "race",
    "survey": "race",
    "evaluate": "offline",
    "compare": "offline",
    "replay": "offline",
    "plan": "offline",
    "experiment": "offline",
    "serve": "serve",
    "app": "serve",
    "journal": "serve",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with needs(EXTRAS.get(words[0] if words else "")):
            return _run(words)
    except SystemExit as stop:  # argparse: 0 after --help, 2 after a mistake
        return int(stop.code or 0)
    except (BadInput, ValueError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # the reader (head, for example) closed the pipe
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return _complain(words, error)
    except MissingExtra as error:
        return _complain(words, error)
    except KeyboardInterrupt:
        return 130


def _load(name: str) -> ModuleType:
    """Import the module of one command: the others, and the packages that they need, are not loaded."""
    match name:
        case "race":
            from armwise.cli.racing import race

            return race
        case "survey":
            from armwise.cli.racing import survey

            return survey
        case "table":
            from armwise.cli.racing import table

            return table
        case "advise":
            from armwise.cli.racing import advise

            return advise
        case "evaluate":
            from armwise.cli.offline import evaluate

            return evaluate
        case "compare":
            from armwise.cli.offline import compare

            return compare
        case "replay":
            from armwise.cli.offline import replay

            return replay
        case "experiment":
            from armwise.cli.service import experiment

            return experiment
        case "plan":
            from armwise.cli.offline import plan

            return plan
        case "serve":
            from armwise.cli.service import serve

            return serve
        case "app":
            from armwise.cli.service import app

            return app
        case "export":
            from armwise.cli import export

            return export
    from armwise.cli.service import journal

    return journal


def _run(words: list[str]) -> int:
    name = words[0] if words and not words[0].startswith("-") else None
    if name is not None and name not in COMMANDS:
        raise BadInput(f"unknown command {name!r}{did_you_mean(name, COMMANDS)}")
    parser = Parser(
        prog="armwise",
        description="Contextual bandits from the paper to production.",
        epilog="armwise COMMAND --help shows a command's options and an example.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"armwise {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    module: Any = None
    for each, summary in COMMANDS.items():
        if each == name:
            module = _load(each)
            module.add_parser(commands)
        else:
            commands.add_parser(each, help=summary)
    args, unknown = parser.parse_known_args(words)
    if name is None:
        if unknown:
            parser.error(f"unknown option {unknown[0]}")
        parser.print_help()
        return 0
    if unknown:
        own: Parser = commands.choices[name]
        options = [option for option in own._option_string_actions if option.startswith("--")]
        hint = did_you_mean(unknown[0], options) if unknown[0].startswith("-") else ""
        own.error(f"unknown {'option' if hint else 'argument'} {unknown[0]}{hint}")
    return int(module.run(args) or 0)


def _complain(words: list[str], problem: object) -> int:
    program = "armwise" + (f" {words[0]}" if words and words[0] in COMMANDS else "")
    print(f"{program}: error: {complaint(problem)}", file=sys.stderr)
    return 2
