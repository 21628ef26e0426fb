"""Kill a process that uses a durable ``Decider``, again and again; nothing it acknowledged may be missing or changed.

``python -m tests.service.decider.decider_kills --kills 200``; the tests run 5. Each process decides
in batches, ranks lists and gives rewards, and writes what it was answered to a pipe, after it was answered; SIGKILL
comes at a random moment.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import tempfile
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import armwise as aw
from armwise.service.engine.requests.slots import MARK, slot_id
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.journal import Journal
from armwise.service.log.export_journal import entries, played_arm
from armwise.service.log.verify import verify

_FORKING = multiprocessing.get_context("forkserver")


def use(folder: str, seed: int, told: Connection) -> None:
    """Decide and reward until killed; every answer goes into the pipe when it is there, and not before."""
    chance = random.Random(seed)
    shop, waiting, n = aw.Decider(folder), [], 0
    told.send(("open", None))
    while True:
        n += 1
        contexts = [
            {"x": chance.random(), "day": chance.choice(["mo", "tu"])} for _ in range(chance.choice([1, 7, 40]))
        ]
        asked = [{"context": context, "arms": ["a", {"id": "b", "y": n % 3}, "c"]} for context in contexts]
        made = shop.decide_many(asked)
        told.send(("decided", [(d.id, d.arm, d.probability) for d in made]))
        waiting += made
        some = [waiting.pop(chance.randrange(len(waiting))) for _ in range(min(len(waiting), 5))]
        receipts = shop.reward_many((d, round(chance.random(), 3)) for d in some)
        told.send(("rewarded", [receipt.id for receipt in receipts]))
        lists = shop.rank_many([{"context": contexts[0], "arms": ["a", {"id": "b", "y": n % 3}, "c"], "k": 3}] * 4)
        told.send(("decided", [(slot_id(r.id, k), s.arm, s.probability) for r in lists for k, s in enumerate(r.slots)]))
        shop.reward(lists[0], [0.5, 1.0, None])
        told.send(("rewarded", [slot_id(lists[0].id, 1), slot_id(lists[0].id, 0)]))


def kill_again_and_again(kills: int, folder: str, seed: int = 1, say: Any = lambda text: None) -> dict[str, int]:
    """AssertionError with what broke, or how much was put to the test."""
    chance = random.Random(seed)
    decided: dict[str, tuple[str, float]] = {}
    rewarded: set[str] = set()
    _FORKING.set_forkserver_preload(["armwise.service.decider.decider"])
    for kill in range(kills):
        ours, theirs = multiprocessing.Pipe(duplex=False)
        process = _FORKING.Process(target=use, args=(folder, seed * 10_000 + kill, theirs), daemon=True)
        process.start()
        theirs.close()
        assert ours.poll(120.0), "the folder could not be opened again"
        until = time.monotonic() + 120.0
        while time.monotonic() < until:
            kind, what = ours.recv()
            if kind == "open":
                until = time.monotonic() + chance.uniform(0.0, 0.25)
            elif kind == "decided":
                decided |= {id: (arm, probability) for id, arm, probability in what}
            else:
                rewarded |= set(what)
            if not ours.poll(max(0.0, until - time.monotonic())):
                break
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        while ours.poll():  # what it was answered before it died
            try:
                kind, what = ours.recv()
            except EOFError:
                break
            if kind == "decided":
                decided |= {id: (arm, probability) for id, arm, probability in what}
            elif kind == "rewarded":
                rewarded |= set(what)
        ours.close()
        if kill % 20 == 19:
            say(f"{kill + 1} kills, {len(decided)} decisions, {len(rewarded)} rewards")
    return check(folder, decided, rewarded) | {"kills": kills}


def check(folder: str, decided: dict[str, tuple[str, float]], rewarded: set[str]) -> dict[str, int]:
    """Everything acknowledged is in the journal once, as it was answered, and the models equal a replay."""
    with aw.Decider(folder) as shop:  # it opens once more, and what is there is learnt
        _ = shop.agent
    journal = Journal(SQLite(Path(folder) / "journal.db").connect())
    try:
        there = {entry.row.id: entry for entry in entries(journal, "default")}
        report = verify(journal)
    finally:
        journal.connection.close()
    assert not report.problems, report.problems[:3]
    lost = [id for id in decided if id not in there]
    assert not lost, f"{len(lost)} acknowledged decisions are lost, such as {lost[0]}"
    for id, (arm, probability) in decided.items():
        decision = there[id].decision
        assert (played_arm(decision), decision.p[decision.arm]) == (arm, probability), f"{id} was answered otherwise"
    lists = Counter(id.partition(MARK)[0] for id in there if MARK in id)
    halves = [event for event, slots in lists.items() if slots != len(there[slot_id(event, 0)].decision.slots)]
    assert not halves, f"{len(halves)} lists are there in part, such as {halves[0]}"
    lost = [id for id in rewarded if len(there[id].outcomes) != 1]
    assert not lost, f"{len(lost)} acknowledged rewards are lost or doubled, such as that of {lost[0]}"
    return {
        "decisions": len(decided),
        "lists": len({id.partition(MARK)[0] for id in decided if MARK in id}),
        "rewards": len(rewarded),
        "events": report.events,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(kill_again_and_again(args.kills, folder, args.seed, say=print)))


if __name__ == "__main__":
    main()
