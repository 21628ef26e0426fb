"""Policies at the edge and flags: how exact, how fast, and whether they learn.

    python -m benchmarks.edges exact [n] [decider]...
                                          # 10,000 contexts through every evaluator, and through Eppo's SDK
    python -m benchmarks.edges speed      # a decision in JavaScript and Python, 10 arms x 20 features, beside ours
    python -m benchmarks.edges learn [python|node] [users] [seed]
                                          # 5,000 users through OpenFeature clients, clicks of 10 % against 30 %
    python -m benchmarks.edges flags      # OFREP beside the native API, and 50 flags in one commit; needs wrk

Conformance files of Eppo: ARMWISE_EPPO_FILES=<folder ufc> python -m pytest tests/export/test_eppo.py
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from eppo_client import Configuration

import armwise as aw
from armwise import export
from armwise.export.eppo import EppoColumns, eppo, eppo_flag, model_version, to_json
from armwise.features.encoding.arms import read_arms
from armwise.service.engine.application import Application
from armwise.service.experiments.definition import Definition
from armwise.service.experiments.hosted import create
from armwise.service.model.model import DrawRequest
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.export.test_eppo import ACTIONS, context, through_sdk
from tests.export.test_evaluators import DECIDERS, in_database, shop_of
from tests.export.worlds import asked_at_home, request, through_node, through_python
from tests.service.database import Server
from tests.service.serving import Running

ROOT = Path(__file__).parents[1]


def exact(contexts: str = "10000", *deciders: str) -> None:
    n = int(contexts)
    folder = Path(tempfile.mkdtemp())
    for which in deciders or DECIDERS:
        shop = shop_of(which)
        policy = shop.export(folder / "policy.json")
        for ending in (".mjs", ".py"):
            export.write(policy, folder / f"policy{ending}")
        chance = random.Random(11)
        asked = [request(chance) for _ in range(n)]
        ours = asked_at_home(shop, asked)
        told(which, "JavaScript", through_node(folder, "policy.mjs", asked), ours)
        told(which, "python -S", through_python(folder, "policy", asked), ours)
        database = sqlite3.connect(":memory:")
        database.executescript(export.sql(policy, "sqlite"))
        told(which, "SQLite", in_database(database, asked, "?"), ours)
        with Server() as server, psycopg.connect(server.new_database(), autocommit=True) as connection:
            connection.execute(export.sql(policy, "postgresql"))
            told(which, "PostgreSQL", in_database(connection, asked, "%s"), ours)
    if not deciders:
        exact_for_eppo(n)


def exact_for_eppo(n: int) -> None:
    chance = random.Random(1)
    seen = [context(chance, unseen=False) for _ in range(1000)]
    columns = EppoColumns(seen)
    agent = aw.SquareCB(len(columns.names), n_arms=3, gamma=7.0, lam=1.0, seed=1)
    agent.play(columns.rows(seen), np.random.default_rng(2).random((1000, 3)) * [0.2, 0.5, 0.8])
    policy = agent.policy(columns=columns.names, arms=ACTIONS)
    configuration = Configuration(
        flags_configuration=to_json(eppo_flag("colours", model_version(policy))),
        bandits_configuration=to_json(eppo(policy, "colours", columns)),
    )
    asked = [context(chance) for _ in range(n)]
    logged = through_sdk(configuration, [(subject, {name: {} for name in ACTIONS}) for subject in asked])
    worst = max(
        abs(
            event["actionProbability"] - agent.probabilities(columns.rows([subject])[0])[ACTIONS.index(event["action"])]
        )
        for subject, event in zip(asked, logged, strict=True)
    )
    print(f"Eppo's SDK: {n} contexts, largest difference {worst:.1e}")


def told(which: str, where: str, answers: list[Any], ours: list[Any]) -> None:
    worst = max(float(np.abs(np.subtract(a, b)).max()) for a, b in zip(answers, ours, strict=True))
    same = sum(a == b for a, b in zip(answers, ours))
    print(
        f"{which}: {where}: {len(ours)} contexts, {same} equal to the bit, largest difference {worst:.1e}", flush=True
    )


def speed() -> None:
    """Processor time of a decision, the least of several turns, with widths (the default agent) and without."""
    for name, agent in (("the default agent", None), ("SquareCB, gamma=50", {"class": "SquareCB", "gamma": 50.0})):
        chance, folder = random.Random(3), Path(tempfile.mkdtemp())
        shop, arms = aw.Decider(agent=agent, dim=128, learn="arrival", seed=1), [f"arm {k}" for k in range(10)]
        contexts = [{f"f{j}": round(chance.gauss(0, 1), 4) for j in range(20)} for _ in range(2000)]
        for each in contexts[:500]:
            made = shop.decide(each, arms)
            shop.reward(made.id, float(chance.random() < 0.3))
        shop.export(folder / "policy.mjs")
        shop.export(folder / "policy.py")
        (folder / "contexts.json").write_text(json.dumps(contexts))
        (folder / "time.mjs").write_text(
            'import { readFileSync } from "node:fs"; import { probabilities } from "./policy.mjs";\n'
            'const contexts = JSON.parse(readFileSync(new URL("contexts.json", import.meta.url)));\n'
            "const arms = Array.from({ length: 10 }, (_, k) => `arm ${k}`), took = [];\n"
            "for (let turn = 0; turn < 20; ++turn) {\n  const begin = process.cpuUsage();\n"
            "  for (const context of contexts) probabilities(context, arms);\n"
            "  const { user, system } = process.cpuUsage(begin);\n"
            "  took.push((user + system) / contexts.length);\n}\n"
            "console.log(Math.min(...took));\n"
        )
        model = shop._backend.model()
        read = read_arms([json.dumps(arm).encode() for arm in arms])
        requests = [DrawRequest(json.dumps(each).encode(), read, 0.5) for each in contexts]
        space: dict[str, Any] = {}
        exec((folder / "policy.py").read_text(), space)
        ours, python, script = [], [], []
        for _ in range(5):  # in turns
            begin = time.process_time()
            model.decide(requests)
            ours.append((time.process_time() - begin) / len(requests) * 1e6)
            begin = time.process_time()
            for each in contexts[:20]:
                space["probabilities"](each, arms)
            python.append((time.process_time() - begin) / 20 * 1e6)
            done = subprocess.run(["node", str(folder / "time.mjs")], capture_output=True, text=True, check=True)
            script.append(float(done.stdout))
        print(f"{name}: ours {min(ours):.1f} us, JavaScript {min(script):.1f} us, Python {min(python):.0f} us")


def learn(client: str = "both", users: str = "5000", seed: str = "3") -> None:
    """One client, or both after each other, each with a service of its own."""
    flag = {"banner": Application(variants={"off": False, "on": True}, window=7 * 86400.0)}
    more = {name: Application(variants={"a": "x", "b": "y"}) for name in ("words", "price", "layout")}
    for name, through in (("python", _through_python), ("node", _through_node)):
        if client in (name, "both"):
            running = Running(Service(Config(storage=tempfile.mkdtemp(), applications=flag | more)))
            report(*through(running.url, int(users), int(seed)), running)


def _through_python(url: str, users: int, seed: int) -> tuple[str, list[int]]:
    sys.path.insert(0, str(ROOT / "examples" / "flags"))
    import openfeature.api
    from openfeature.contrib.provider.ofrep import OFREPProvider
    from openfeature.evaluation_context import EvaluationContext
    from tracking import Tracking

    openfeature.api.set_provider(OFREPProvider(url))
    client, tracking, chance, shown = openfeature.api.get_client(), Tracking(url), random.Random(seed), []
    for i in range(users):
        found = client.get_boolean_details(
            "banner", False, EvaluationContext(f"user {i}", {"device": chance.choice(["phone", "tv"])})
        )
        shown.append(int(found.value))
        name = "click" if chance.random() < (0.3 if found.value else 0.1) else "exposure"
        tracking.track(name, f"user {i}", flag="banner", decision=found.flag_metadata["decision"])
    return f"openfeature-sdk (PyPI), seed {seed}", shown


def _through_node(url: str, users: int, seed: int) -> tuple[str, list[int]]:
    folder, here = Path(tempfile.mkdtemp()), ROOT / "tests" / "service" / "adapters" / "flags" / "npm"
    (folder / "package.json").write_text((here / "package.json").read_text())
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder, check=True)
    given = json.dumps({"users": users, "seed": seed, "headers": {}, "rates": [0.1, 0.3]})
    script = [str(here / "loop.mjs"), url, str(ROOT / "examples" / "flags" / "tracking.mjs"), given]
    done = subprocess.run(["node", *script], cwd=folder, capture_output=True, text=True, check=True)
    return f"@openfeature/server-sdk (npm), seed {seed}", json.loads(done.stdout)["shown"]


def report(client: str, shown: list[int], running: Running) -> None:
    [engine] = running.service.engine.each
    journal = engine.reading.journal
    [(made,)] = journal.connection.execute("SELECT count(*) FROM decisions WHERE app = 'banner'")
    journal.connection.wait_until_durable()
    last = shown[-1000:]
    print(f"{client}: {len(shown)} users, {made} decisions, better arm in the last 1,000: {sum(last) / len(last):.3f}")
    running.stop()


SCRIPT = """
local n, salt = 0, "%s"
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
request = function()
  n = n + 1
  local body = '%s'
  return wrk.format(nil, "%s", nil, (body:gsub("UNIT", salt .. tostring(wrk.thread) .. n)))
end
done = function(summary, latency)
  io.write(string.format("RESULT %%f %%f %%d\\n", summary.requests / (summary.duration / 1e6),
    latency:percentile(99) / 1000, summary.errors.status + summary.errors.read + summary.errors.timeout))
end
"""


def flags(turns: int = 7, seconds: int = 2, connections: int = 32) -> None:
    applications = {f"flag{i}": Application(variants={"a": "x", "b": "y"}) for i in range(50)}
    running = Running(Service(Config(storage=tempfile.mkdtemp(), applications=applications)))
    folder, attributes = Path(tempfile.mkdtemp()), ",".join(f'"f{j}":{j / 7:.3f}' for j in range(20))
    create(running.service.engine, "test", Definition.read(["a", "b"], "buy", exposure=True))
    native = f'{{"id":"UNIT","context":{{{attributes}}},"arms":["a","b"],"defer":true}}'
    ofrep = f'{{"context":{{"targetingKey":"UNIT",{attributes}}}}}'
    assign = f'{{"units":[{{"unit":"UNIT","context":{{{attributes}}}}}]}}'
    for what, asked in (
        ("a flag", {"native": (native, "/apps/flag0/v1/decisions"),
                    "ofrep": (ofrep, "/ofrep/v1/evaluate/flags/flag1")}),
        ("an experiment", {"native": (assign, "/v1/experiments/test/assignments"),
                           "ofrep": (ofrep, "/ofrep/v1/evaluate/flags/test")}),
    ):  # fmt: skip
        ratios, tails = [], []
        for turn in range(turns):
            found = {}
            for name, (body, path) in asked.items():
                script = folder / f"{name}.lua"
                script.write_text(SCRIPT % (f"{name}{turn}-", body, path))
                command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script)]
                done = subprocess.run([*command, running.url], capture_output=True, text=True, check=True)
                rate, p99, errors = re.search(r"RESULT (\S+) (\S+) (\S+)", done.stdout).groups()  # type: ignore[union-attr]
                found[name] = float(rate), float(p99), int(errors)
            print(
                turn,
                {name: f"{rate:.0f}/s, p99 {p99:.1f} ms, {bad} errors" for name, (rate, p99, bad) in found.items()},
            )
            ratios.append(found["ofrep"][0] / found["native"][0])
            tails.append(found["ofrep"][1] / found["native"][1])
        print(
            f"{what}, OFREP over native: throughput {statistics.median(ratios):.2f}, p99 {statistics.median(tails):.2f}"
        )
    before = running.service.engine.writer.commits
    took = []
    for unit in range(20):
        begin = time.perf_counter()
        answer = running.client.post("/ofrep/v1/evaluate/flags", json={"context": {"targetingKey": f"bulk {unit}"}})
        took.append(1000 * (time.perf_counter() - begin))
        assert len(answer.json()["flags"]) == 51
    commits = running.service.engine.writer.commits - before
    print(f"bulk of 50 flags and an experiment: {commits / 20:.1f} commits, median {statistics.median(took):.1f} ms")
    running.stop()


if __name__ == "__main__":
    commands: dict[str, Callable[..., None]] = {"exact": exact, "speed": speed, "learn": learn, "flags": flags}
    commands[sys.argv[1]](*sys.argv[2:])
