"""Memory, a folder and HTTP run one engine: the same requests get the same answers and teach the same model."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import armwise as aw
from armwise.core import saving
from armwise.service.decider.decided import Ranked
from armwise.service.engine.application import Application
from armwise.service.log.export_journal import as_dsjson, entries
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.serving import Clock, Running

CASES: dict[str, tuple[dict[str, Any], str]] = {  # the agent and what several rewards come to
    "default": ({}, "earliest"),
    "one that learns when windows close": ({"class": "LinThompson", "draws": 8}, "sum"),
    "one that revises by steps": ({"class": "SquareCB"}, "latest"),
}


class Verb(NamedTuple):
    """A verb of the three and its arguments."""

    name: str
    given: tuple[Any, ...]
    named: dict[str, Any] = {}

    def said(self, to: Any) -> str:
        """What it answers, with the probability of every arm, or refuses."""
        try:
            found = getattr(to, self.name)(*self.given, **self.named)
        except aw.UnknownDecision as error:
            return str(error)
        except ValueError as error:
            return f"refused: {error}"
        if isinstance(found, Ranked):
            return repr([found.id, found.arms, found.probabilities])
        every = found if isinstance(found, list) else [found]
        return repr([(one, getattr(one, "probabilities", None)) for one in every])


def script() -> list[Verb | float]:
    """Verbs, and seconds that pass: retries, conflicts, batches, lists, rewards that are final, late or repeated."""
    rng = random.Random(7)
    steps: list[Verb | float] = []

    def request(k: int) -> dict[str, Any]:
        arms: list[Any] = ["a", "b", {"id": "c", "price": k % 3, "new": True}]
        return {"context": {"hour": rng.random() * 24, "city": f"c{k % 5}"}, "arms": arms[: 2 + k % 2], "id": f"e{k}"}

    for k in range(36):
        one, two, three = request(k), request(100 + k), request(200 + k)
        steps.append(Verb("decide", (), one))
        steps.append(Verb("reward", (f"e{k}", round(rng.random(), 3)), {"final": k % 4 == 0}))
        if k % 5 == 0:
            steps += [Verb("decide", (), one), Verb("decide", (), one | {"context": {"hour": -1}})]
            steps += [Verb("reward", (f"e{k}", 0.125)), Verb("reward", (f"nobody{k}", 0.5))]
        if k % 7 == 0:
            steps.append(Verb("decide_many", ([two, three],)))
            steps.append(Verb("reward_many", ([(f"e{100 + k}", 1.0), ("nobody", 1.0)],)))
            steps.append(Verb("reward_many", ([(f"e{100 + k}", 1.0), (f"e{200 + k}", 0.25)],)))
        if k % 11 == 0:
            steps.append(Verb("rank", (one["context"], ["a", "b", "c"], 2), {"id": f"list{k}"}))
            steps.append(Verb("reward", (f"list{k}", {0: 1.0})))
        if k % 9 == 8:
            steps += [7.0, 3_601.0, Verb("reward", (f"e{k}", 0.5))]
    return steps


@pytest.mark.parametrize("case", CASES)
def test_the_three_answer_and_learn_alike(case: str, tmp_path: Path) -> None:
    # A difference would mean that one of them has rules, an encoder or a learner of its own.
    clock = Clock(4_000_000_000.0)  # later than the service was made: the time of a journal never goes back
    described, rule = CASES[case]
    options: dict[str, Any] = {"window": 3600.0, "rule": rule}
    agent: dict[str, Any] = {"agent": described} if described else {}
    application = Application(features={"dim": 32}, **options, **agent)
    running = Running(Service(Config(storage=str(tmp_path / "http"), applications={"default": application})))
    served = running.service.engine
    with (
        aw.Decider(tmp_path / "folder", dim=32, clock=clock, **options, **agent) as folder,
        aw.Decider(dim=32, clock=clock, **options, **agent) as memory,
        aw.Client(running.url) as client,
    ):
        disk: Any = folder._backend.engine
        inside: Any = memory._backend.engine
        served._clock = clock  # type: ignore[attr-defined]
        served._secret = disk._secret  # type: ignore[attr-defined]
        inside.uniform = disk.uniform  # by default its numbers are the seed's
        for k, step in enumerate(script()):
            if isinstance(step, float):
                clock.now += step
                for engine in (disk, served):
                    engine.expire()
            else:
                answers = [step.said(to) for to in (memory, folder, client)]
                assert answers[0] == answers[1] == answers[2], k
            for engine in (disk, served):
                engine.wait_learnt()
            inside.begin()
        models = [inside.model("default"), disk.model("default"), served.model("default")]
        logs = [list(memory._backend.lines()), list(folder._backend.lines())]
        with served.each[0].reading as journal:
            logs.append(list(map(as_dsjson, entries(journal, "default", 0, served.now()))))
        states = [saving.dumps(model) for model in models[:2]]
        agents = [saving.dumps(model.agent) for model in models]
    running.stop()
    assert states[0] == states[1] and agents[0] == agents[1] == agents[2]
    assert logs[0] == logs[1] and len(logs[0]) > 50
    assert list(map(unnumbered, logs[0])) == list(map(unnumbered, logs[2]))


def unnumbered(line: bytes) -> dict[str, Any]:
    """A line of a log without the number of the model's last event: a batch over HTTP is an event by itself."""
    fields: dict[str, Any] = msgspec.json.decode(line)
    del fields["VWState"]
    return fields
