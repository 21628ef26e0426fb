"""Records the golden files of this version: ``python -m tests.golden.record`` (into ``tests/golden/VERSION``).

What this version wrote, later versions load, replay and continue: a model file of every agent and every ranker with
what it does next, a journal with what the service says of it, its exports, the folder of a Decider, a certificate and
exported policies. Done once, in the last commit before a release; from then on a format changes only with a migration
that these files prove.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import armwise as aw
from armwise.core import saving
from armwise.core.policy_document import Policy
from armwise.export.evaluators import python
from armwise.features.encoding.arms import read_arms
from armwise.service.adapters.flags.flag import flag_of
from armwise.service.engine.application import Application
from armwise.service.engine.engine import Engine
from armwise.service.engine.requests.ranking import read_ranking
from armwise.service.engine.requests.slots import MARK, prepare_slots
from armwise.service.engine.rollout import add_version
from armwise.service.experiments.definition import Definition
from armwise.service.experiments.hosted import HostedExperiment, create
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Creation
from armwise.service.journal.writes import keyed
from armwise.service.log.export_journal import FORMATS, pieces
from armwise.service.model.lessons import read_lessons
from armwise.testing.checks import rounds_for
from tests.agents.ranking.test_contract import RANKERS
from tests.cases import CASES

FOLDER = Path(__file__).parent
CONTEXTS: list[Any] = [{"hour": 9, "device": "phone"}, {"hour": 21, "tags": ["new", "late"]}, {}]
ARMS: list[Any] = ["a", {"id": "b", "features": {"price": 7.5, "fresh": True}}, "c"]
TAUGHT, NEXT = 30, 10  # rounds that a model has learnt, and rounds that it goes on for
NOW = 1_700_000_000.0
EXPERIMENT, UNITS = "colour", [f"u{k}" for k in range(12)]
APPS = {  # agents with the same bits on every machine: to estimate lam takes LAPACK, whose last bits each processor has
    "shop": Creation(agent={"class": "LinUCB", "alpha": 1.0, "lam": 1.0}, features={"dim": 16}),
    "sums": Creation(agent={"class": "LinThompson"}, features={"dim": 16}),
    "plain": Creation(features={"dim": 16}),  # with the agent that a service has by itself
    "costs": Creation(
        agent={"class": "HardStop", "agent": {"class": "UCB1", "n_arms": 2}, "budget": 20.0, "max_cost": 1.0},
        arms=["a", "b"],
    ),
    "several": Application(agent={"class": "LinUCB", "lam": 1.0}, features={"dim": 16}, rule="sum").creation(),
    "flag": Application(
        agent={"class": "LinUCB", "lam": 1.0}, features={"dim": 16}, variants={"on": True, "off": False}, control="off"
    ).creation(),
}
FOLDER_OPTIONS: dict[str, Any] = {"agent": aw.LinUCB(dim=16, lam=1.0), "window": 100.0, "seed": 3}


def agents() -> dict[str, Any]:
    """One of each public agent and ranker that can be saved, by the name of its class."""
    found: dict[str, Any] = {}
    for case in CASES:
        if case.saves:
            agent = case.make(7)
            found.setdefault(type(agent).__name__, agent)
    for make in RANKERS.values():
        found.setdefault(type(ranker := make(7)).__name__, ranker)
    return found


def teach(agent: Any) -> None:
    """Let an agent or a ranker learn a few rounds."""
    _rounds(agent, 0, TAUGHT)


def go_on(agent: Any) -> list[Any]:
    """What it does in the next rounds: arms and their probabilities."""
    return _rounds(agent, TAUGHT, TAUGHT + NEXT)


def _rounds(agent: Any, start: int, stop: int) -> list[Any]:
    done: list[Any] = []
    if isinstance(agent, aw.Ranker):
        rng = np.random.default_rng(start)
        rows = np.random.default_rng(5).uniform(0, 1, (6, 3))
        for _ in range(start, stop):
            seen: Any = None if agent.sees == "nothing" else rows
            ranking = agent.rank(seen, 3)
            agent.learn(seen, ranking, [float(rng.random() < 0.1 + 0.12 * arm) for arm in ranking.arms])
            done.append([int(arm) for arm in ranking.arms])
        return done
    rounds = rounds_for(agent, stop, 11)
    for t in range(start, stop):
        choice = agent.choose(rounds.context(t))
        rounds.teach(agent, t, choice)
        done.append([int(choice.arm), None if choice.probability is None else float(choice.probability)])
    return done


# ---------------------------------------------------------------------- what is recorded


def _models(folder: Path) -> None:
    expected: dict[str, Any] = {}
    with _Archive(folder / "models.zip") as archive:
        for name, agent in sorted(agents().items()):
            teach(agent)
            archive.put(f"{name}.aw", saving.dumps(agent))
            expected[name] = go_on(agent)
    _json(folder / "models.json", expected)


def _journal(folder: Path) -> None:
    """Decisions, rewards in time and late, keys, a catalogue, versions, lessons, a reset, windows that close, lists,
    costs, final rewards, a flag, an experiment."""
    clock = [NOW]
    with tempfile.TemporaryDirectory() as where:
        path = Path(where) / "journal.db"
        engine = Engine(SQLite(path), dict(APPS), clock=lambda: clock[0])
        engine.start()
        large = [b'{"id": "a%d", "features": {"x": "%s"}}' % (k, b"y" * 60) for k in range(60)]
        for k in range(40):
            app = ("shop", "sums")[k % 2]
            arms = large if k % 20 == 3 else [b'"a"', b'{"id": "b", "features": {"size": %d}}' % (k % 4), b'"c"']
            context = b'{"hour": %d, "user": "u%d", "old": [1.5, null, true]}' % (k % 5, k % 3)
            engine.decide(app, context, arms, id=f"e{k}", request=f"key {k}" if k % 3 else "", deferred=k % 11 == 5)
            if k % 4 != 2:
                engine.reward(app, f"e{k}", round(k / 40.0, 3), request=f"reward {k}")
            clock[0] += 20.0
            if k == 10:
                add_version(engine, "shop", "bold", Creation(agent={"class": "LinUCB", "alpha": 2.0, "lam": 1.0},
                                                             features={"dim": 16}), share=0.3)  # fmt: skip
            if k == 16:
                engine.activate("sums", "e5")
                row = {"context": {"hour": 1}, "arms": ["a", "b"], "arm": "a", "probability": 0.5, "reward": 1.0}
                engine.teach("shop", read_lessons([row, row]), request="lessons")
            if k == 24:
                engine.reset("sums")
        rewards = [engine.prepare_reward("shop", id, 0.25) for id in ("e36", "e38")]
        engine.writer.write(keyed(rewards, lambda part: f"batch {part}"))
        for k in range(TAUGHT):
            engine.decide(
                "plain", b'{"hour": %d}' % (k % 5), [b'"a"', b'{"id": "b", "features": {"size": 2}}'], id=f"p{k}"
            )
            engine.reward("plain", f"p{k}", float(k % 3 == 0))
        _lists(engine)
        _costs(engine)
        _several(engine)
        _flag(engine)
        _experiment(engine)
        clock[0] += 700.0
        engine.expire()
        engine.reward("shop", "e0", 0.5)  # late
        engine.decide("shop", b"{}", [b'"a"', b'"b"'], id="open")
        engine.snapshot()
        said = describe(engine) | {"experiment": verdict(engine), "flag": flags(engine)}
        said["models"] = {app: [model.lessons, model.version] for app, model in engine.models.items()}
        with engine.reading as journal:
            for kind in FORMATS:
                (folder / f"export.{kind}").write_bytes(b"".join(pieces(journal, "shop", kind)))
        engine.stop()
        with _Archive(folder / "journal.zip") as archive:
            archive.put("sums.model", saving.dumps(engine.models["sums"]))
            for file in sorted(path.parent.glob("journal.db*")):
                if file.suffix not in (".lock", ".db-shm") and file.stat().st_size:
                    archive.put(file.name, file.read_bytes())
    _json(folder / "journal.json", said)


def _lists(engine: Engine) -> None:
    """Lists of two slots, one with a pinned arm; a reward of one slot each."""
    arms = read_arms([b'"a"', b'{"id": "b", "features": {"size": 1}}', b'"c"'])
    for k in range(6):
        asked = read_ranking(b'{"hour": %d}' % k, arms, 2, f"list{k}", pinned={"1": "c"} if k == 3 else None)
        engine.writer.write(prepare_slots(engine, "shop", asked, lambda slot, k=k: f"list {k} {slot}"))  # type: ignore[misc]
        engine.writer.write([engine.prepare_reward("shop", f"list{k}", k / 8.0, slot=f"{MARK}{k % 2}")])


def _costs(engine: Engine) -> None:
    """Decisions under a budget, each with what it cost."""
    for k in range(12):
        arm = engine.decide("costs", b"{}", [b'"a"', b'"b"'], id=f"c{k}").arm
        engine.reward("costs", f"c{k}", float(k % 3 == 0), cost=0.25 if arm == "a" else 0.75)
        engine.wait_learnt()


def _several(engine: Engine) -> None:
    """Decisions with several rewards, of which the last is final, is not, or never comes."""
    for k in range(9):
        engine.decide("several", b'{"hour": %d}' % (k % 5), [b'"a"', b'"b"'], id=f"s{k}")
        for n in range(k % 3):
            engine.writer.write([engine.prepare_reward("several", f"s{k}", 0.25 + n, final=n == 1)])


def _flag(engine: Engine) -> None:
    """Units of a feature flag, of which some were rewarded."""
    flag = flag_of(engine.model("flag"))
    assert flag is not None
    for k, unit in enumerate(UNITS[:6]):
        id = flag.decision(unit, engine.now())
        engine.decide("flag", b'{"country": "c%d"}' % (k % 2), [bytes(arm) for arm in flag.arms.raws], id=id)
        if k % 2:
            engine.reward("flag", id, 1.0)


def flags(engine: Engine) -> dict[str, Any]:
    """What the flag is: the value of each variant, the arm of held-out units, and where a unit's decision is found."""
    flag = flag_of(engine.model("flag"))
    assert flag is not None
    return {"values": flag.values, "control": flag.control, "decision": flag.decision(UNITS[0], int(NOW * 1000))}


def _experiment(engine: Engine) -> None:
    """Units that are assigned, some exposed, some with outcomes; a change of its settings."""
    metrics = [{"name": "revenue", "kind": "amount", "window": 100.0},
               {"name": "harm", "guardrail": True, "tolerance": 0.1, "window": 50.0}]  # fmt: skip
    made = Definition.read(["control", "blue"], metrics, exposure=True, start=2, planned=20)
    test = create(engine, EXPERIMENT, made)
    test.assign([(unit, {"hour": 1}) for unit in UNITS])
    test.ramp(0.5, "ann", "to see")
    test.expose(UNITS[:8])
    test.outcome([(unit, 0.5 + k, None, f"paid {k}") for k, unit in enumerate(UNITS[:6])])
    test.outcome([(UNITS[1], 1.0, "harm", None)])


def verdict(engine: Engine) -> dict[str, Any]:
    """What is known of the experiment: its settings, the arms of its units, and its verdict."""
    test = HostedExperiment(engine, EXPERIMENT)
    arms = [each.to_dict() for each in test.assign([(unit, {"hour": 1}) for unit in UNITS])]
    whole = {"settings": test.to_dict(), "arms": arms, "verdict": test.verdict().to_dict()}
    return json.loads(json.dumps(whole))  # type: ignore[no-any-return]


def describe(engine: Engine) -> dict[str, Any]:
    """What the service says of every decision: answer, status and rewards."""
    decisions: dict[str, Any] = {}
    with engine.reading as journal:
        ids = [(str(app), str(id)) for app, id in journal.connection.execute("SELECT app, id FROM decisions")]
    for app, id in sorted(ids):
        it, _, status, given = engine.find_with_rewards(app, id)
        rewards = [[row.event.value, row.event.late] for row in given]  # type: ignore[union-attr]
        decisions[f"{app}/{id}"] = {
            "arm": it.arm, "probability": it.probability, "probabilities": [list(pair) for pair in it.probabilities],
            "rewards": rewards, "closed": status.closed, "active": status.active, "outcome": status.outcome,
        }  # fmt: skip
    return {"decisions": decisions}


def certified() -> dict[str, Any]:
    """A certificate of rounds that are made up here."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3, 2)) / 3
    arms = rng.integers(3, size=200)
    rewards = X[np.arange(200), arms] @ np.array([0.5, -0.5]) + 0.1 * rng.normal(size=200)
    return aw.certificate(X, arms, rewards, noise=0.1, norm=1.0).data()


def policies() -> dict[str, Policy]:
    """Exported policies: over columns, and over hashed features of named arms."""
    agent = aw.LinUCB(dim=4, alpha=0.5, seed=7)
    teach(agent)
    with aw.Decider(dim=16) as decider, tempfile.TemporaryDirectory() as folder:
        for k in range(TAUGHT):
            decision = decider.decide(CONTEXTS[k % 3], ARMS)
            decider.reward(decision.id, float(decision.arm == "b"))
        return {
            "columns": agent.export(Path(folder) / "columns.json"),
            "hashed": decider.export(Path(folder) / "hashed.json"),
        }


def answers(policy: Policy) -> list[list[float]]:
    """The probabilities that an exported policy answers, by the module of Python that is made from it."""
    space: dict[str, Any] = {}
    exec(python(policy), space)
    if policy.document["encoder"]["kind"] == "hashed":
        return [space["probabilities"](context, ARMS) for context in CONTEXTS]
    rows = np.random.default_rng(5).normal(size=(3, 5, 4))
    return [space["probabilities"](None, each.tolist()) for each in rows]


def _decider(folder: Path) -> None:
    """The folder of a Decider: clicks, late clicks, silence whose window is over, lists, an open window."""
    clock = [NOW]
    with tempfile.TemporaryDirectory() as where:
        with aw.Decider(storage=where, clock=lambda: clock[0], **FOLDER_OPTIONS) as shop:
            for k in range(TAUGHT):
                clock[0] += 10.0
                shop.decide(CONTEXTS[k % 3], ARMS, id=f"d{k}")
                if k % 3 == 0:
                    shop.reward(f"d{k}", 1.0)
            shop.reward("d1", 1.0)  # late
            shop.rank(CONTEXTS[0], ARMS, k=2, id="list")
            shop.reward("list", {0: 1.0})
            log = logged(shop)
        with _Archive(folder / "folder.zip") as archive:
            for file in sorted(Path(where).iterdir()):
                if file.suffix not in (".lock", ".db-shm") and file.stat().st_size:
                    archive.put(file.name, file.read_bytes())
        with aw.Decider(storage=where, clock=lambda: clock[0]) as shop:
            said = {"log": log, "next": decided(shop)}
    _json(folder / "folder.json", said)


def logged(shop: aw.Decider) -> list[Any]:
    """The log of a Decider, decision by decision."""
    return [json.loads(line) for line in shop._backend.lines()]


def decided(shop: aw.Decider) -> list[Any]:
    """What a Decider decides next, and once more what it decided before."""
    both = [shop.decide(CONTEXTS[1], ARMS, id=id) for id in ("next", "d4")]
    return [[each.arm, each.probability, each.probabilities] for each in both]


def _policies(folder: Path) -> None:
    found = policies()
    for name, policy in found.items():
        policy.save(folder / f"policy.{name}.json")
    _json(folder / "policies.json", {name: answers(policy) for name, policy in found.items()})


class _Archive:
    """A zip file whose bytes depend on its contents alone."""

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path, "w")

    def put(self, name: str, data: bytes) -> None:
        self._zip.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)

    def __enter__(self) -> _Archive:
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, sort_keys=True) + "\n", encoding="utf-8")


RECORDED: dict[str, Callable[[Path], None]] = {
    "models": _models,
    "journal": _journal,
    "decider": _decider,
    "certificate": lambda folder: _json(folder / "certificate.json", certified()),
    "policies": _policies,
}


def record(folder: Path) -> int:
    """Write all golden files; how many bytes they have."""
    folder.mkdir(parents=True, exist_ok=True)
    for write in RECORDED.values():
        write(folder)
    return sum(file.stat().st_size for file in folder.iterdir())


def main() -> None:
    size = record(FOLDER / aw.__version__)
    print(f"tests/golden/{aw.__version__}: {len(agents())} models, {size:,} bytes in all")


if __name__ == "__main__":
    main()
