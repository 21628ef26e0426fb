"""``armwise app``: manage the applications of a decision service and the versions of their models."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import urllib.parse
from typing import Any

from armwise.cli.shared import BadInput, command_parser, show

TASKS = {  # method, path, arguments of the task
    "list": ("GET", "/v1/agents", ()),
    "add": ("PUT", "/v1/apps/{application}", ("application",)),
    "remove": ("DELETE", "/v1/apps/{application}", ("application",)),
    "versions": ("GET", "/apps/{application}/v1/versions", ("application",)),
    "challenge": ("POST", "/apps/{application}/v1/versions", ("application", "version")),
    "share": ("PATCH", "/apps/{application}/v1/versions/{version}", ("application", "version")),
    "promote": ("POST", "/apps/{application}/v1/versions/{version}/promote", ("application", "version")),
    "rollback": ("POST", "/apps/{application}/v1/rollback", ("application",)),
    "drop": ("DELETE", "/apps/{application}/v1/versions/{version}", ("application", "version")),
}


def add_parser(commands: Any) -> None:
    parser = command_parser(
        commands,
        "app",
        "list, add and remove applications of a decision service, and versions of their models",
        'armwise app challenge shop bold --agent \'{"class": "LinUCB", "alpha": 1.0}\' --share 0.1',
    )
    parser.add_argument("task", choices=tuple(TASKS), help="challenge: train a version beside the leading one; "
                        "share, promote, rollback, drop: change its role")  # fmt: skip
    parser.add_argument("names", nargs="*", metavar="NAME", help="the application, and for some tasks the version")
    parser.add_argument("--url", default="http://127.0.0.1:8484", help="a running service (default: %(default)s)")
    parser.add_argument("--key", default=os.environ.get("ARMWISE_KEY"), help="its key (default: $ARMWISE_KEY)")
    parser.add_argument("--stopped", metavar="FILE|FOLDER", help="instead of a running service: the configuration or "
                        "the folder of one that is stopped")  # fmt: skip
    parser.add_argument("--agent", type=_table, metavar="JSON", help="add, challenge: the agent")
    parser.add_argument("--features", type=_table, metavar="JSON", help="add, challenge: how features are made")
    parser.add_argument("--with", type=_table, default={}, dest="others", metavar="JSON",
                        help="add: everything else, as in a configuration file")  # fmt: skip
    parser.add_argument(
        "--share", type=float, metavar="X", help="challenge, share: the share of decisions that it makes"
    )


def _table(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {text[:40]!r}: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {text[:40]!r}")
    return value


def run(args: argparse.Namespace) -> int:
    method, path, expected = TASKS[args.task]
    if len(args.names) != len(expected):
        wanted = " and ".join(f"one {each}" for each in expected) or "no name"
        raise BadInput(f"{args.task} takes {wanted}, got {len(args.names)} names")
    named = dict(zip(expected, args.names))
    quoted = {place: urllib.parse.quote(name, safe="") for place, name in named.items()}
    body = _body(args, named)
    ask = _ask_stopped if args.stopped else _ask_running
    status, answer = ask(args, method, path.format(**quoted), body)
    if status >= 400:
        raise BadInput(answer["error"]["message"] if "error" in answer else f"the service answered {status}")
    show(args, _as_text(args, answer), answer)
    return 0


def _body(args: argparse.Namespace, named: dict[str, str]) -> dict[str, Any] | None:
    described = {name: getattr(args, name) for name in ("agent", "features") if getattr(args, name) is not None}
    if args.task == "add":
        others: dict[str, Any] = args.others
        return others | described
    if args.task == "challenge":
        share = {} if args.share is None else {"share": args.share}
        return {"name": named["version"]} | described | share
    if args.task == "share":
        if args.share is None:
            raise BadInput("share needs --share X, the share of decisions that the version makes")
        return {"share": args.share}
    return None


def _ask_running(args: argparse.Namespace, method: str, path: str, body: Any) -> tuple[int, Any]:
    parts = urllib.parse.urlsplit(args.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"--url must begin with http:// or https:// and name a host, got {args.url!r}")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    headers = {"Authorization": f"Bearer {args.key}"} if args.key else {}
    connection = kind(parts.netloc, timeout=300.0)  # a version is trained before the answer
    try:
        connection.request(
            method, parts.path.rstrip("/") + path, json.dumps(body) if body is not None else None, headers
        )
        answer = connection.getresponse()
        data = answer.read()
    except OSError as error:
        raise BadInput(f"{args.url} cannot be reached: {error}; --stopped is for a service that is stopped") from None
    finally:
        connection.close()
    return answer.status, json.loads(data or b"{}")


def _ask_stopped(args: argparse.Namespace, method: str, path: str, body: Any) -> tuple[int, Any]:
    """Send the request to a service that is started in this process for it."""
    import asyncio

    from armwise.service.server.app import asked_once
    from armwise.service.server.config import Config, load_config

    stopped = args.stopped
    if os.path.isdir(stopped):
        from pathlib import Path

        if not (Path(stopped) / "journal.db").exists():
            raise BadInput(f"there is no journal in {stopped}")
        config = Config(storage=stopped, adopt=True)
    else:
        config = load_config(stopped)
    sent = json.dumps(body).encode() if body is not None else b""
    try:
        status, data = asyncio.run(asked_once(config, method, path, sent))
    except RuntimeError as error:  # another process serves it
        raise BadInput(f"{error}: use --url") from None
    return status, json.loads(data or b"{}")


def _as_text(args: argparse.Namespace, answer: Any) -> str:
    if "agents" in answer:
        return "\n".join(f"{one['name']}: {one['agent']}, {one['lessons']} lessons" for one in answer["agents"])
    if "versions" in answer:
        return "\n".join(map(_version, answer["versions"]))
    if args.task == "add":
        return f"{answer['name']}: {answer['agent']}, {answer['lessons']} lessons"
    return f"{args.names[-1]} is removed"


def _version(one: dict[str, Any]) -> str:
    part = f"{one['share']:.0%} of the decisions" if one["share"] else "asked only"
    lessons = f"{one['lessons']} lessons" + (", each when its window closes" if one["learns"] == "close" else "")
    text = f"{one['name']}{' (leads)' if one['leads'] else ''}: {part}, {lessons}, {one['agent']}"
    uplift = one.get("uplift")
    if not uplift:
        return text
    if not uplift["n"]:
        return f"{text}\n  no decision since it began is old enough to be judged"
    ends = f"{uplift['value']:+.4f} [{uplift['low']:+.4f}, {uplift['high']:+.4f}]"
    from armwise.offline.logs.cohorts import duration

    horizon = uplift.get("horizon")
    within = "in their whole window" if horizon is None else f"within {duration(horizon)}, clicked or not"
    return f"{text}\n  uplift per decision {ends}, by what {uplift['n']} decisions earned {within}"
