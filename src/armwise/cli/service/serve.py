"""``armwise serve``: decisions over HTTP."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from armwise.cli.shared import BadInput, command_parser, show


def add_parser(commands: Any) -> None:
    parser = command_parser(commands, "serve", "serve decisions over HTTP", "armwise serve shop.toml")
    parser.add_argument(
        "config",
        nargs="?",
        help="a TOML file, or a folder that a Decider or a service wrote (default: on loopback, with a journal in "
        "./armwise-data)",
    )
    parser.add_argument("--listen", metavar="ADDRESS:PORT", help="instead of the configured one")
    parser.add_argument("--storage", metavar="FOLDER|URL", action="append", help="instead of the configured one; "
                        "may be repeated: decisions are sharded over these databases")  # fmt: skip
    parser.add_argument("--new-key", metavar="NAME", help="print a new key and the lines that allow it, then stop")


def run(args: argparse.Namespace) -> int:
    # A decision takes a few small matrix products: more BLAS threads would only contend.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if args.new_key is not None:
        _new_key(args)
        return 0
    import msgspec

    from armwise.service.server.config import Config, load_config

    changes: dict[str, Any] = {"listen": args.listen} if args.listen else {}
    if args.storage:
        changes["storage"] = args.storage if len(args.storage) > 1 else args.storage[0]

    def read() -> Config:
        # Without a configuration file, an application in the folder keeps its settings.
        if not args.config:
            config = Config(adopt=True)
        elif os.path.isdir(args.config):
            config = Config(storage=args.config, adopt=True)
        else:
            config = load_config(args.config)
        if changes:
            config = msgspec.structs.replace(config, **changes)
            config.__post_init__()
        return config

    config = read()
    from armwise.service.server.run import serve

    return serve(config, sys.stdout, as_json=args.json, read=read)


def _new_key(args: argparse.Namespace) -> None:
    from armwise.service.web.keys import digest, new_secret

    name = args.new_key
    if not name.strip() or not name.isprintable() or len(name) > 256:
        raise BadInput(f"--new-key must be a name of 1 to 256 printable characters, got {name[:40]!r}")
    secret = new_secret()
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    lines = f'[[keys]]\nname = "{quoted}"\nsha256 = "{digest(secret)}"\nroles = ["decide", "reward"]'
    text = f"The key, shown only now:\n  {secret}\nFor the configuration:\n{lines}"
    show(args, text, {"name": name, "key": secret, "sha256": digest(secret)})
