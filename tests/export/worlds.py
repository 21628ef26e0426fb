"""Policies of many kinds, and contexts that are hard to read: unicode, missing, unseen and extreme values."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import armwise as aw
from armwise.core.policy_document import Policy
from armwise.features.encoding.arms import read_arms
from armwise.service.model.model import DrawRequest

WORDS = ["phone", "tv", "zürich", "日本", "😀", 'a"b\\c', "", "'; --", "true", "null", "</script>", "x\u2028y"]
EXTREME = [0, -0.0, 1e-300, 1e149, -1e149, 2**70, 5e-324, 0.1, -3, 1e16 + 2]


def value(chance: random.Random, unseen: bool, depth: int = 0) -> Any:
    kind = chance.randrange(9 if depth < 3 else 6)
    if kind == 0:
        return None
    if kind == 1:
        return chance.random() < 0.5
    if kind in (2, 3):
        return chance.choice(WORDS) + (str(chance.randrange(10**9)) if unseen and chance.random() < 0.3 else "")
    if kind in (4, 5):
        return chance.choice(EXTREME) if unseen and chance.random() < 0.3 else chance.gauss(20.0, 9.0)
    if kind == 6:
        return [value(chance, unseen, depth + 1) for _ in range(chance.randrange(3))]
    return {name(chance): value(chance, unseen, depth + 1) for _ in range(chance.randrange(3))}


def name(chance: random.Random) -> str:
    return chance.choice(["device", "stunde ü", "日", "tags", "a.b", "k\"'", "price"])


def request(chance: random.Random, unseen: bool = True, offered: list[str] | None = None) -> dict[str, Any]:
    context = {name(chance): value(chance, unseen) for _ in range(chance.randrange(5))}
    if offered is not None:
        return {"context": context, "arms": chance.sample(offered, chance.randrange(1, len(offered) + 1))}
    arms: list[Any] = chance.sample(["red", "grün", "青", "a'b"], chance.randrange(1, 4))
    if unseen and chance.random() < 0.2:
        arms.append(f"new {chance.randrange(50)}")
    if chance.random() < 0.5:
        arms.append({"id": "described", "features": {name(chance): value(chance, unseen) for _ in range(2)}})
    return {"context": context, "arms": arms}


def python_arms(arms: list[Any]) -> list[Any]:
    """Arms as ``Decider.decide`` takes them: features beside the id."""
    return [arm if isinstance(arm, str) else {"id": arm["id"], **arm["features"]} for arm in arms]


def taught(shop: aw.Decider, n: int, seed: int, arms: list[str] | None = None) -> aw.Decider:
    chance = random.Random(seed)
    for _ in range(n):
        asked = request(chance, unseen=False, offered=arms)
        made = shop.decide(asked["context"], python_arms(asked["arms"]) if arms is None else arms)
        shop.reward(made.id, float(chance.random() < 0.2 + 0.1 * len(made.arm)), final=True)
    return shop


def through_node(folder: Path, module: str, asked: list[dict[str, Any]]) -> list[Any]:
    """What ``probabilities`` of a module answers, or the message of its error."""
    (folder / "ask.mjs").write_text(
        f'import {{ readFileSync, writeFileSync }} from "node:fs"; import {{ probabilities }} from "./{module}";\n'
        'const asked = JSON.parse(readFileSync(new URL("asked.json", import.meta.url), "utf8"));\n'
        "const answer = ({ context, arms }) => {\n"
        "  try { return probabilities(context, arms ?? null); } catch (error) { return error.message; }\n};\n"
        'writeFileSync(new URL("answers.json", import.meta.url), JSON.stringify(asked.map(answer)));\n'
    )
    return _asked_outside(folder, ["node", str(folder / "ask.mjs")], asked)


def through_python(folder: Path, module: str, asked: list[dict[str, Any]]) -> list[Any]:
    """The same of a Python module, with no package installed."""
    (folder / "ask.py").write_text(
        f"import json, sys, pathlib; folder = pathlib.Path(__file__).parent; sys.path.insert(0, str(folder))\n"
        f"from {module} import probabilities\n"
        "def answer(each):\n"
        "    try:\n        return probabilities(each['context'], each.get('arms'))\n"
        "    except ValueError as error:\n        return str(error)\n"
        "asked = json.loads((folder / 'asked.json').read_text())\n"
        "assert not any('site-packages' in place for place in sys.path)\n"
        "(folder / 'answers.json').write_text(json.dumps([answer(each) for each in asked]))\n"
    )
    # -B: two modules of one length, written within a second, would share the first one's bytecode
    return _asked_outside(folder, [sys.executable, "-B", "-S", "-E", str(folder / "ask.py")], asked)


def _asked_outside(folder: Path, command: list[str], asked: list[dict[str, Any]]) -> list[Any]:
    (folder / "asked.json").write_text(json.dumps(asked))
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder)
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads((folder / "answers.json").read_text())
    return answers


def rows_of(policy: Policy, chance: random.Random, n_arms: int, dim: int) -> Any:
    """A context of plain columns, now and then with numbers that are large, or 0."""

    def number() -> float:
        return chance.choice([0.0, -0.0, 1e9, -1e-9, 1.0]) if chance.random() < 0.2 else chance.gauss(0.0, 1.0)

    if policy.document["sees"] == "shared":
        return [number() for _ in range(dim)]
    return [[number() for _ in range(dim)] for _ in range(n_arms)]


def asked_at_home(shop: aw.Decider, asked: list[dict[str, Any]]) -> list[list[float]]:
    """The distributions of a decider for requests, none of which changes it."""
    model = shop._backend.model()
    found = []
    for each in asked:
        context = json.dumps(each["context"]).encode()
        arms = read_arms([json.dumps(arm).encode() for arm in each["arms"] or model.arms])
        [drawn] = model.decide([DrawRequest(context, arms, 0.5)])
        found.append(drawn.p.tolist())
    return found
