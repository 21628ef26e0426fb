"""What must hold when a schedule is over, whatever happened in it."""

from __future__ import annotations

from collections import Counter

from armwise.core import saving
from armwise.service.engine.learning.fold import fold
from armwise.service.journal.compaction_snapshots import compaction_snapshot
from armwise.service.journal.events import Decision, Lessons, Reward
from armwise.service.journal.journal import Journal
from armwise.service.log.verify import verify
from armwise.service.model.model import Model
from tests.service.simulation.cluster import BUDGET, Cluster
from tests.service.simulation.workload import EXPERIMENTS, UNITS, History


def check(cluster: Cluster, journal: Journal, history: History) -> None:
    """Note in the history what is wrong; the journal is read in a task, when all processes are well again."""
    wrong = history.wrong
    for problem in verify(journal).problems:
        wrong(f"verify: {problem}")
    decisions: Counter[tuple[str, str]] = Counter()
    rewards: Counter[tuple[str, str, float]] = Counter()
    lessons: Counter[tuple[str, float]] = Counter()
    spent: dict[str, float] = {}
    for row in journal.events():
        event = row.event
        if isinstance(event, Decision):
            decisions[row.app, row.id] += 1
            if row.app == "paid":
                spent[row.id] = float(event.arm)
        elif isinstance(event, Reward):
            rewards[row.app, row.id, event.value] += 1
            if row.app == "paid" and isinstance(event.cost, float):
                spent[row.id] = min(spent.get(row.id, 0.0), event.cost)
        elif isinstance(event, Lessons):
            lessons.update((row.app, value) for value in event.rewards)
    base = journal.base().seq
    if sum(spent.values()) > BUDGET:
        wrong(f"{sum(spent.values())} was spent of a budget of {BUDGET}")
    _units(cluster, history, decisions)
    _decisions(history, decisions)
    for key, (least, most) in history.rewards.items():
        gone = history.gone(*key[:2])
        if not (0 if gone else least) <= rewards[key] <= most:
            wrong(f"the reward {key} is there {rewards[key]} times; it was acknowledged {least} times")
    for key in set(rewards) - set(history.rewards):
        wrong(f"the reward {key} was never given")
    for (app, value), (least, most) in history.lessons.items():
        if base == 0 and not least <= lessons[app, value] <= most:
            wrong(f"the lesson {value} of {app} is there {lessons[app, value]} times, acknowledged {least} times")
    for process, led in cluster.server.published:
        if not led:
            wrong(f"{process} stored models and did not lead")
    _models(cluster, journal, history)


def _decisions(history: History, decisions: Counter[tuple[str, str]]) -> None:
    wrong = history.wrong
    for key, acknowledged in history.asked.items():
        there = decisions[key]
        if acknowledged and not there and not history.gone(*key):
            wrong(f"the decision {key} was acknowledged and is gone")
    for key, there in decisions.items():
        if there > 1:
            wrong(f"the decision {key} is there {there} times")
    for key, ids in history.keyed.items():
        if len(ids) > 1 and key[0] not in history.anew:
            wrong(f"the idempotency key {key} made several decisions: {sorted(ids)}")
    strange: Counter[str] = Counter(app for app, id in decisions if (app, id) not in history.asked)
    for app, n in strange.items():
        if n > history.nameless.get(app, 0):
            wrong(f"{n} decisions of {app} are there that nobody asked for")


def _units(cluster: Cluster, history: History, decisions: Counter[tuple[str, str]]) -> None:
    """Each unit of an experiment has at most one decision of each kind, and nobody else has one."""
    hosted = cluster.places[0].engine
    ids = {f"unit{n}": hosted.pseudonym(f"unit\0unit{n}") for n in range(UNITS)}
    for name in EXPERIMENTS:
        assigned = f"{name}/assigned" if EXPERIMENTS[name]["exposure"] else name
        for unit, id in ids.items():
            arm = history.units.get((name, unit))
            if arm is not None and not decisions[assigned, id] and not history.retained:
                history.wrong(f"the assignment of {unit} in {name} was acknowledged and is gone")
            for app in (name, f"{name}/harm", f"{name}/assigned"):
                if (name, unit) in history.units and decisions[app, id]:
                    history.may_be(app, id)
    for (name, unit, value), least in history.unit_rewards.items():
        kept = 0 if history.retained or unit == f"unit{UNITS - 1}" else least  # the last one may be erased
        history.rewards[name, ids[unit], value] = kept, 1


def _models(cluster: Cluster, journal: Journal, history: History) -> None:
    """Every process serves, bit for bit, what a replay of the journal gives."""
    learners = {process.name: process.engine.learner for process in cluster.places}
    while True:
        models, last = _replayed(journal)
        while any(learner.published < last for learner in learners.values()):
            cluster.kernel.sleep(0.1)
        if all(learner.published == last for learner in learners.values()):
            break  # otherwise a window ended meanwhile
    for name, learner in learners.items():
        if learner.broken:
            history.wrong(f"{name} withholds {learner.broken}")
        for app, model in models.items():
            served = learner.models.get(app)
            if served is None or served.version != model.version:
                history.wrong(f"{name}, event {last}: {app} is served as of {served and served.version}, "
                              f"a replay is at {model.version}")  # fmt: skip
            elif saving.dumps(served) != saving.dumps(model):
                history.wrong(f"{name} serves a model of {app} that a replay does not give")


def _replayed(journal: Journal) -> tuple[dict[str, Model], int]:
    """The models that a replay of the journal gives, and its last event."""
    models: dict[str, Model] = {}
    journal.connection.begin_reading()  # retention may move the beginning meanwhile
    try:
        for (app,) in journal.connection.execute("SELECT app FROM bases"):
            models[app] = saving.loads(compaction_snapshot(journal.connection, app) or b"")
        for row in journal.events(journal.base().seq):
            fold(models, [row], journal)
        return models, journal.last()[0]
    finally:
        journal.connection.rollback()
