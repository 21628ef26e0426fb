"""Exported policies, evaluated outside: the probabilities of the agent, to the bit or to 1e-12."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import armwise as aw
from armwise import export
from armwise.cli.main import main
from armwise.core.policy_document import CannotExport, Policy
from armwise.export.blake2b_sql import hash_ctes
from armwise.export.dialects import DIALECTS, signed
from armwise.features.encoding.arms import read_arms
from armwise.models.ridge import Ridge
from armwise.service.journal.events import Creation
from armwise.service.model.build import build_model
from armwise.service.model.exporting import exported
from armwise.service.model.model import DrawRequest
from tests.export.worlds import asked_at_home, request, rows_of, taught, through_node, through_python
from tests.service.database import Server

REQUESTS = 2000  # python -m benchmarks.edges has 10,000 of each
FIXED = ["red", "grün", "blue"]
SQUARECB = {"class": "Explore", "epsilon": 0.1, "agent": {"class": "SquareCB"}}
DECIDERS: dict[str, tuple[Any, list[str] | None]] = {
    "the default agent": (None, None),
    "widths of the noise": ({"class": "LinUCB"}, None),
    "inverse gap": (SQUARECB, None),
    "bounds": ({"class": "RegCB"}, None),
    "losses": ({"class": "FastCB"}, None),
    "multipliers": ({"class": "RandUCB"}, None),
}


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with Server() as server:
        yield server.new_database()


def shop_of(which: str) -> aw.Decider:
    agent, _ = DECIDERS[which]
    learn = None if which == "the default agent" else "arrival"
    return taught(aw.Decider(agent=agent, dim=16, seed=1, learn=learn), 300, seed=3)


@pytest.mark.parametrize("which", list(DECIDERS))
def test_every_evaluator_has_the_probabilities_of_the_decider(which: str, tmp_path: Path) -> None:
    """Sums are written down in their order: JavaScript and Python agree to the bit, but for logarithms."""
    shop = shop_of(which)
    policy = shop.export(tmp_path / "policy.json")
    export.write(policy, tmp_path / "policy.mjs")
    export.write(policy, tmp_path / "policy.py")
    chance = random.Random(5)
    asked = [request(chance) for _ in range(REQUESTS)]
    ours = asked_at_home(shop, asked)
    assert len({len(p) for p in ours}) > 2 and len({tuple(p) for p in ours}) > 10
    for answers in (through_node(tmp_path, "policy.mjs", asked), through_python(tmp_path, "policy", asked)):
        if which in ("widths of the noise", "bounds", "multipliers"):
            for a, b in zip(answers, ours):
                np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-12)
        else:
            assert answers == ours


NEW = 12  # tokens that a database hashes by itself


def in_database(database: Any, asked: list[dict[str, Any]], mark: str) -> list[list[float]]:
    rows = [
        (f"{i:05}", json.dumps(each["context"]), json.dumps(each["arms"]) if "arms" in each else None)
        for i, each in enumerate(asked)
    ]
    database.cursor().executemany(f"INSERT INTO policy_requests VALUES ({mark}, {mark}, {mark})", rows)
    cursor = database.cursor()
    with contextlib.suppress(sqlite3.OperationalError, psycopg.errors.UndefinedTable):  # of columns there are no tokens
        cursor.execute("SELECT DISTINCT token FROM policy_read_tokens ORDER BY token")
        tokens = [token for (token,) in cursor.fetchall()]
        known = [
            (t, signed(int.from_bytes(hashlib.blake2b(t.encode(), digest_size=8).digest(), "little"))) for t in tokens
        ]
        cursor.executemany(f"INSERT INTO policy_tokens VALUES ({mark}, {mark})", known[NEW:])
    found: list[list[float]] = [[] for _ in asked]
    cursor.execute("SELECT request, probability FROM policy_probabilities ORDER BY request, place")
    for name, p in cursor.fetchall():
        found[int(name)].append(float(p))
    return found


def in_sqlite(policy: Policy, asked: list[dict[str, Any]]) -> list[list[float]]:
    database = sqlite3.connect(":memory:")
    database.executescript(export.sql(policy, "sqlite"))
    return in_database(database, asked, "?")


def in_postgres(url: str, policy: Policy, asked: list[dict[str, Any]]) -> list[list[float]]:
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
        database.execute(export.sql(policy, "postgresql"))
        return in_database(database, asked, "%s")


def agree(answers: list[Any], ours: list[Any], tolerance: float = 1e-12) -> None:
    for a, b in zip(answers, ours, strict=True):
        np.testing.assert_allclose(a, b, rtol=0.0, atol=tolerance)


def hashes_in(database: Any, dialect: str, texts: list[str]) -> dict[str, int]:
    database.execute("CREATE TABLE some_tokens (token TEXT)")
    for text in texts:
        database.execute("INSERT INTO some_tokens VALUES ('" + text + "')")
    query = f"WITH RECURSIVE new_tokens(token) AS (SELECT token FROM some_tokens), {hash_ctes(DIALECTS[dialect])}"
    return dict(database.execute(f"{query} SELECT token, hash FROM hashes").fetchall())


def test_databases_hash_as_hashlib(postgres: str) -> None:
    """A wrong word anywhere changes every hash; padding matters at lengths around one block and two."""
    texts = ["", "c\x1fdevice\x1esphone", "zürich 日本 😀", "x" * 128, "y" * 129]
    wanted = {
        text: signed(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")) for text in texts
    }
    assert hashes_in(sqlite3.connect(":memory:"), "sqlite", texts) == wanted
    with psycopg.connect(postgres, autocommit=True) as database:
        database.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; SET jit = off")
        assert hashes_in(database, "postgresql", texts) == wanted


@pytest.mark.parametrize("which", list(DECIDERS))
def test_databases_have_the_probabilities_of_the_decider(which: str, postgres: str, tmp_path: Path) -> None:
    """Tokens of the first requests are known to the database, those of the last it hashes itself."""
    shop = shop_of(which)
    policy = shop.export(tmp_path / "policy.json")
    chance = random.Random(7)
    asked = [request(chance) for _ in range(150)]
    ours = asked_at_home(shop, asked)
    agree(in_sqlite(policy, asked), ours)
    agree(in_postgres(postgres, policy, asked), ours)


def test_a_new_arm_beside_known_ones_has_the_share_of_the_decider(postgres: str, tmp_path: Path) -> None:
    """Red is known, green tried, the others are new; where no known arm is on offer nothing is held back."""
    shop, chance = aw.Decider(dim=16, seed=1), random.Random(3)
    for i in range(80):
        arms = ["red", "green"] if i < 8 else ["red"]
        made = shop.decide_many([{"context": {"hour": j % 3}, "arms": arms} for j in range(15)])
        shop.reward_many([(each, float(chance.random() < 0.1)) for each in made], final=True)
    for _ in range(10):
        made = shop.decide_many([{"context": {}, "arms": ["green"]} for _ in range(15)])
        shop.reward_many([(each, 0.0) for each in made], final=True)
    policy = shop.export(tmp_path / "policy.json")
    ramp = policy.document["ramp"]
    assert (ramp["share"], len(ramp["tried"]), len(ramp["known"])) == (0.1, 1, 1)
    offers = [["red", "new"], ["red", "green", "new", "日本"], ["green", "new"], ["new", "other"], ["red", "green"],
              ["red", *(f"n{i}" for i in range(7))]]  # fmt: skip
    asked = [{"context": {"hour": i % 3}, "arms": arms} for i, arms in enumerate(offers * 3)]
    ours = asked_at_home(shop, asked)
    free = aw.export.Policy({**policy.document, "ramp": {**ramp, "share": 1.0}})
    for one, changes in ((policy, False), (free, True)):
        export.write(one, tmp_path / "policy.mjs")
        export.write(one, tmp_path / "policy.py")
        answers = through_node(tmp_path, "policy.mjs", asked)
        assert any(abs(a - b) > 0.1 for p, q in zip(answers, ours) for a, b in zip(p, q)) == changes
        agree(through_python(tmp_path, "policy", asked), answers)
        agree(in_sqlite(one, asked), answers)
        agree(in_postgres(postgres, one, asked), answers)
        if not changes:
            agree(answers, ours)


@pytest.mark.parametrize("agent", [None, {"class": "LinUCB", "n_arms": 3}, {"class": "UCB1", "n_arms": 3}])
def test_fixed_arms_are_offered_in_any_order_and_number(agent: Any, postgres: str, tmp_path: Path) -> None:
    engine_made = Creation(agent=agent or SQUARECB, features={"dim": 16}, arms=FIXED if agent else [])
    if agent is None:
        engine_made = Creation(agent={"class": "SquareCB", "n_arms": 3}, features={"dim": 16}, arms=FIXED)
    model = build_model(engine_made)
    chance = random.Random(2)
    for _ in range(200):
        context = request(chance, unseen=False, offered=FIXED)["context"]
        text, arms = json.dumps(context).encode(), read_arms([json.dumps(arm).encode() for arm in FIXED])
        [drawn] = model.decide([DrawRequest(text, arms, chance.random())])
        seen = model.see(text, arms)
        assert seen.stack is not None
        model.scaler.take(seen.stack)
        model.agent.learn(seen.view, aw.Choice(drawn.arm, drawn.p[drawn.arm]), float(chance.random() < 0.3 * drawn.arm))
    policy = exported(model, "shop")
    asked = [request(chance, offered=FIXED) for _ in range(60)]
    ours = []
    for each in asked:
        arms = read_arms([json.dumps(arm).encode() for arm in each["arms"]])
        [drawn] = model.decide([DrawRequest(json.dumps(each["context"]).encode(), arms, 0.5)])
        ours.append(drawn.p.tolist())
    export.write(policy, tmp_path / "policy.mjs")
    export.write(policy, tmp_path / "policy.py")
    agree(through_node(tmp_path, "policy.mjs", asked), ours)
    agree(through_python(tmp_path, "policy", asked), ours)
    agree(in_sqlite(policy, asked), ours)


AGENTS: dict[str, aw.Agent] = {
    "LinUCB": aw.LinUCB(4, seed=1),
    "RandUCB": aw.RandUCB(4, seed=1),
    "RandUCB disjoint": aw.RandUCB(4, n_arms=3, points=7, low=0.0, seed=1),
    "Explore RandUCB": aw.Explore(aw.RandUCB(4), epsilon=0.1),
    "LinUCB theoretical": aw.LinUCB.theoretical(4, noise=0.3),
    "LinUCB disjoint": aw.LinUCB(4, n_arms=3, seed=1),
    "LinUCB theoretical disjoint": aw.LinUCB.theoretical(4, noise=0.3, n_arms=3),
    "HybridLinUCB": aw.HybridLinUCB(4, n_arms=3, shared=2, alpha=0.3, seed=1),
    "CoFineUCB": aw.CoFineUCB(4, np.eye(4)[:, :2], seed=1),
    "SquareCB": aw.SquareCB(4, seed=1),
    "SquareCB disjoint": aw.SquareCB(4, n_arms=3, gamma=30.0, seed=1),
    "FastCB": aw.FastCB(4, n_arms=3, seed=1),
    "RegCB": aw.RegCB(4, n_arms=3, seed=1),
    "RegCB elimination": aw.RegCB(4, elimination=True, seed=1),
    "EpsilonGreedy": aw.EpsilonGreedy(model=Ridge(4), epsilon=0.2, seed=1),
    "Explore twice": aw.Explore(aw.Explore(aw.LinUCB(4, lam=1.0), epsilon=0.1), epsilon=0.2),
}


@pytest.mark.parametrize("which", list(AGENTS))
def test_linear_agents_over_columns(which: str, postgres: str, tmp_path: Path) -> None:
    agent, chance = AGENTS[which].clone(seed=1), np.random.default_rng(3)
    shape = (150, 4) if agent.sees == "shared" else (150, 3, 4)
    agent.play(chance.normal(size=shape), chance.random((150, 3)) * [0.5, 0.8, 1.0])
    policy = agent.export(tmp_path / "policy.json")
    draw = random.Random(4)
    contexts = [rows_of(policy, draw, 3, 4) for _ in range(60)]
    ours = [agent.probabilities(np.array(context)).tolist() for context in contexts]
    shared = agent.sees == "shared"
    asked = [{"context": c} if shared else {"context": {}, "arms": c} for c in contexts]
    for ending in (".mjs", ".py"):
        export.write(policy, tmp_path / f"policy{ending}")
    agree(through_node(tmp_path, "policy.mjs", asked), ours)
    agree(through_python(tmp_path, "policy", asked), ours)
    agree(in_sqlite(policy, asked), ours)
    agree(in_postgres(postgres, policy, asked), ours)


def test_columns_may_be_named(tmp_path: Path) -> None:
    agent = aw.SquareCB(2, n_arms=2, gamma=5.0)
    agent.play(np.random.default_rng(1).normal(size=(50, 2)), np.tile([0.2, 0.8], (50, 1)))
    policy = agent.export(tmp_path / "policy.json", columns=["age", "visits"], arms=["old", "new"])
    export.write(policy, tmp_path / "policy.mjs")
    asked: list[dict[str, Any]] = [
        {"context": {"visits": 2, "age": 1}, "arms": ["new", "old"]},
        {"context": {"age": 1}},
        {"context": [1, 2, 3]},
    ]
    named, missing, long = through_node(tmp_path, "policy.mjs", asked)
    assert named == agent.probabilities(np.array([1.0, 2.0])).tolist()[::-1]
    assert missing.startswith("visits must be a number") and long == "a row must have 2 numbers, got 3"


@pytest.mark.parametrize(
    ("context", "arms", "message"),
    [
        ({}, [], "arms must be a list"),
        ({}, ["a", "a"], "two arms have the same id"),
        ({}, [7], "an arm must be a text"),
        ({"x": 1e150}, ["a"], "beyond 1e150"),
        ([{"x": [{"y": -1e200}]}], ["a"], "beyond 1e150"),
        ("text", ["a"], "the context must be an object"),
        ([1], ["a"], "the context must be an object or a list of objects"),
        ([{}, None], ["a"], "the context must be an object or a list of objects"),
        ({}, [{"id": "a", "features": [[{}]]}], "an arm's features must be an object or a list of objects"),
        ({}, ["b", {"id": "a", "price": 3}], "an arm has an id and features: put price into features"),
        ({}, [{"id": "a", "features": None}], "an arm's features must be an object or a list of objects"),
    ],
)
def test_what_the_service_refuses_an_evaluator_refuses(context: Any, arms: Any, message: str, tmp_path: Path) -> None:
    shop = aw.Decider(dim=8)
    for ending in (".mjs", ".py"):
        shop.export(tmp_path / f"policy{ending}")
    asked = [{"context": context, "arms": arms}]
    for [answer] in (through_node(tmp_path, "policy.mjs", asked), through_python(tmp_path, "policy", asked)):
        assert message in answer


@pytest.mark.parametrize("u", ["1", "-0.1", '"much"'])
def test_the_number_of_a_draw_is_checked(u: str, tmp_path: Path) -> None:
    policy = aw.UCB1(n_arms=2).policy()
    export.write(policy, tmp_path / "policy.mjs")
    export.write(policy, tmp_path / "policy.py")
    (tmp_path / "draw.mjs").write_text(
        'import { decide } from "./policy.mjs";\n'
        f"try {{ decide({{}}, null, {{ u: {u} }}); }} catch (error) {{ console.log(error.message); }}\n"
    )
    done = subprocess.run(["node", str(tmp_path / "draw.mjs")], capture_output=True, text=True, check=True)
    assert "u must be a number in [0, 1)" in done.stdout
    space: dict[str, Any] = {}
    exec((tmp_path / "policy.py").read_text(), space)
    with pytest.raises(ValueError, match=r"u must be a number in \[0, 1\)"):
        space["decide"](u=json.loads(u))
    with pytest.raises(ValueError, match="arms must be a list"):
        space["decide"](arms=[])


# ---------------------------------------------------------------------- the document


def test_a_changed_policy_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    policy = aw.LinUCB(2, lam=1.0).export(path)
    whole = path.read_bytes()
    assert (
        Policy.load(path).document
        == policy.document
        == {name: value for name, value in json.loads(whole).items() if name != "checksum"}
    )
    for at in range(0, len(whole) - 2, 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ValueError, match=r"policy.json: "):
            Policy.load(path)


@pytest.mark.parametrize(
    "agent",
    [aw.LinThompson(2), aw.SupLinUCB(2, 100), aw.LinREL(2, 100), aw.Auto(2), aw.KernelUCB(aw.kernels.RBF(), 0.1)],
)
def test_what_cannot_be_exported_says_why_and_what_can(agent: aw.Agent, tmp_path: Path) -> None:
    with pytest.raises(CannotExport, match=r"cannot be exported exactly: .*; the nearest that can be is"):
        agent.export(tmp_path / "policy.json")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_says_its_version_and_position(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with aw.Decider(tmp_path / "shop", seed=1) as shop:
        taught(shop, 20, seed=1)
        policy = shop.export(tmp_path / "open.json")
    made = policy.document
    assert made["application"] == "default" and made["position"] >= 40 and made["version"] == "v1"
    assert main(["export", str(tmp_path / "shop"), "--output", str(tmp_path / "closed.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checksum"] == policy.checksum
    assert main(["export", str(tmp_path / "closed.json"), "--output", str(tmp_path / "p.sql")]) == 0
    assert "CREATE VIEW policy_probabilities" in (tmp_path / "p.sql").read_text()
    assert main(["export", str(tmp_path / "nowhere"), "--output", str(tmp_path / "q.json")]) == 2
    assert "there is no journal" in capsys.readouterr().err
    aw.LinUCB(2, alpha=0.5, lam=1.0).save(tmp_path / "agent.aw")
    words = ["export", str(tmp_path / "agent.aw"), "--output", str(tmp_path / "r.json"), "--columns", "age,visits"]
    assert main(words) == 0
    assert Policy.load(tmp_path / "r.json").document["encoder"]["columns"] == ["age", "visits"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["shop", "--output", "p.json", "--columns", "a,b"], "--columns has no meaning here: {}/shop is a journal"),
        (["shop", "--output", "p.json", "--arms", "a,b"], "--arms has no meaning here: {}/shop is a journal"),
        (["shop", "--output", "p.json", "--application", "none"], "there is none called 'none'; there are default"),
        (["shop", "--output", "no/p.json"], "{}/no/p.json cannot be written: there is no folder {}/no"),
        (["shop", "--output", "p.doc"], "path must end with .json"),
        (["agent.aw", "--output", "p.json", "--application", "x"], "--application has no meaning here"),
        (["agent.aw", "--output", "p.json", "--columns", "a"], "columns must be 2 names, one per column"),
        (["cut.json", "--output", "p.mjs"], "cut.json: not a policy that armwise exported"),
        (["empty", "--output", "p.json"], "there is no journal at"),
        (["garbage", "--output", "p.json"], "cannot be read: file is not a database"),
    ],
)
def test_bad_words_to_export_are_refused_and_nothing_is_written(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    aw.Decider(tmp_path / "shop").close()
    aw.LinUCB(2, alpha=0.5, lam=1.0).save(tmp_path / "agent.aw")
    (tmp_path / "cut.json").write_text(aw.UCB1(n_arms=2).policy().text[:200])
    for name in ("empty", "garbage"):
        (tmp_path / name).mkdir()
    (tmp_path / "garbage" / "journal.db").write_bytes(b"x" * 5000)
    before = sorted(tmp_path.iterdir())
    source, output, target, *rest = words
    assert main(["export", str(tmp_path / source), output, str(tmp_path / target), *rest]) == 2
    assert said.replace("{}", str(tmp_path)) in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_bad_arguments_of_exports_are_named(tmp_path: Path) -> None:
    agent, path = aw.LinUCB(3, alpha=0.5, lam=1.0, n_arms=2), tmp_path / "p.json"
    for columns in ("abc", ["a", "b"], ["a", "b", "b"], ["a", "b", 3], 5):
        with pytest.raises(ValueError, match="columns must be"):
            agent.export(path, columns=columns)  # type: ignore[arg-type]
    for arms in ("ab", ["a"], ["a", "a"]):
        with pytest.raises(ValueError, match="arms must be"):
            agent.export(path, arms=arms)
    with pytest.raises(ValueError, match=r"policy must be what export or Policy\.load returned, got str 'x'"):
        export.write("x", path)  # type: ignore[arg-type]
    bad: list[tuple[Any, str]] = [
        ("abc", "contexts must be dictionaries"),
        ([{"age": float("nan")}], "age must be a finite number"),
        ([{"age": [1]}], r"got \[1\]"),
    ]
    for contexts, said in bad:
        with pytest.raises(ValueError, match=said):
            export.EppoColumns(contexts)
    assert not path.exists()
