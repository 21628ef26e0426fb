"""Decider: named arms, dictionaries as contexts, rewards by id, in this process; in memory or in a durable journal."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from armwise.agent import Agent
from armwise.decider.answers import Decided, Explanation, Receipt, UnknownDecision
from armwise.decider.memory import APP, Memory
from armwise.decider.plain import arm_to_json, to_json
from armwise.features.arms import read_arms
from armwise.offline.log import Log
from armwise.persist import Saved
from armwise.serve.config import open_store
from armwise.serve.engine.draw import Answer, answer
from armwise.serve.engine.engine import Engine
from armwise.serve.errors import Unknown
from armwise.serve.journal.events import ARRIVAL, DEFAULT_AGENT, EARLIEST, Creation, Decision, Reward, Settings
from armwise.serve.journal.rules import Status
from armwise.serve.log.export import Entry, as_dsjson, entries
from armwise.serve.model.build import build_model
from armwise.serve.model.model import Model, offered

WEEK = 7 * 86400.0


class Decider:
    """Choose among named arms for a context with names, and learn from rewards that come by id.

    ``Decider()`` keeps everything in memory; ``Decider("decisions/")`` in the decision service's journal in that
    folder: a decision is answered when the disk has it, and ``armwise serve --storage decisions/`` opens the folder
    later. ``agent`` is any agent, whose ``dim`` is left to the features (None: optimism over all pairs of context and
    arm, with one decision in ten spread over all arms). A reward may take up to ``window`` seconds; after that
    ``default`` is learnt. Calls may come from any thread.

    >>> shop = Decider(seed=1)
    >>> for _ in range(200):
    ...     d = shop.decide({"device": "phone"}, arms=["red", "green", {"id": "blue", "price": 3}])
    ...     _ = shop.reward(d.id, 1.0 if d.arm == "green" else 0.0)
    >>> probabilities = shop.decide({"device": "phone"}, arms=["red", "green"]).probabilities
    >>> probabilities["green"] > 0.9
    True
    """

    def __init__(
        self,
        storage: str | os.PathLike[str] | Agent | None = None,
        *,
        agent: Agent | Mapping[str, Any] | None = None,
        window: float = WEEK,
        default: float = 0.0,
        rule: str = "earliest",
        dim: int = 128,
        seed: int = 1,
    ) -> None:
        if isinstance(storage, Agent):
            storage, agent = None, storage
        spec = dict(DEFAULT_AGENT) if agent is None else _described(agent)
        settings = Settings(window=window, default=default, rule=rule)
        creation = Creation(spec, {"dim": dim}, [], seed, settings)
        if not build_model(creation).agent.revises:
            # Where a reward that was learnt cannot be revised, it is learnt when it comes: a window may be days.
            creation.settings = msgspec.structs.replace(settings, learn=ARRIVAL)
        self._memory = self._engine = None
        if storage is None:
            self._memory = Memory(creation)
        else:
            folder = os.fspath(storage)
            self._engine = Engine(open_store(folder), {APP: creation}, publish_every=0.02)
            try:
                self._engine.start()
            except RuntimeError as error:
                raise RuntimeError(f"{folder}: {error}") from None

    # ------------------------------------------------------------------ the verbs

    def decide(self, context: Any = None, arms: Iterable[Any] = (), *, id: str | None = None) -> Decided:
        """Choose one of the arms for this context.

        An arm is its id, or a dictionary with an ``id`` whose other names are its features. The same ``id`` of a
        decision gives the same answer again.

        >>> Decider().decide({"hour": 21}, arms=["red"]).arm
        'red'
        """
        return self.decide_many([{"context": context, "arms": arms, "id": id}])[0]

    def decide_many(self, requests: Sequence[Mapping[str, Any]]) -> list[Decided]:
        """A batch of decisions, each a dictionary with ``context``, ``arms`` and, if wanted, ``id``; one commit.

        >>> [d.arm for d in Decider().decide_many([{"arms": ["a"]}, {"context": {"hour": 3}, "arms": ["b"]}])]
        ['a', 'b']
        """
        asked = []
        for request in requests:
            if strange := set(request) - {"context", "arms", "id"}:
                raise ValueError(f"a request has context, arms and id, got {sorted(strange)[0]!r}")
            arms = request.get("arms", ())
            if isinstance(arms, (str, bytes, Mapping)):
                raise ValueError(f"arms must be a list of ids or dictionaries, got {type(arms).__name__}")
            texts = [arm_to_json(arm) for arm in arms]
            asked.append((to_json("context", request.get("context")), texts, request.get("id")))
        if self._memory is not None:
            answers = self._memory.decide(asked)
        else:
            engine = self._open_engine()
            writes = [engine.prepare(APP, context, arms, id=id) for context, arms, id in asked]
            answers = [answer(w, write) for w, write in zip(engine.writer.write(writes), writes)]
        return [_decided(it, context, arms) for it, (context, arms, _) in zip(answers, asked)]

    def reward(self, id: str | Decided, value: float) -> Receipt:
        """Give a decision its reward, now or days later; ``UnknownDecision`` if there is none with this id.

        >>> shop = Decider()
        >>> d = shop.decide({}, arms=["a", "b"])
        >>> shop.reward(d.id, 1.0).status, shop.reward(d.id, 1.0).status
        ('taken', 'repeated')
        """
        return self.reward_many([(id, value)])[0]

    def reward_many(self, rewards: Iterable[tuple[str | Decided, float]]) -> list[Receipt]:
        """Rewards of several decisions, in one commit.

        >>> shop = Decider()
        >>> made = shop.decide_many([{"arms": ["a"]}, {"arms": ["b"]}])
        >>> [receipt.status for receipt in shop.reward_many((d, 0.5) for d in made)]
        ['taken', 'taken']
        """
        pairs = [(id.id if isinstance(id, Decided) else id, float(value)) for id, value in rewards]
        try:
            if self._memory is not None:
                came = self._memory.reward(pairs)
            else:
                engine = self._open_engine()
                writes = [engine.prepare_reward(APP, id, value) for id, value in pairs]
                written = engine.writer.write(writes)
                came = [(each.row.event, each.status) for each in written]
        except Unknown as error:
            raise UnknownDecision(str(error).rpartition(" ")[2]) from None
        return [_receipt(id, *each) for (id, _), each in zip(pairs, came)]

    def explain(self, decision: Decided) -> Explanation:
        """Per arm the estimate, its width and the probability now; per name of the context (and of the arm) what it
        adds to the estimate: the estimate with it minus the estimate without it.

        >>> shop = Decider(seed=1)
        >>> d = shop.decide({"device": "phone"}, arms=["red", "green"])
        >>> _ = shop.reward(d.id, 1.0)
        >>> sorted(shop.explain(d).contributions[d.arm])
        ['device']
        """
        model = self._model()
        context, arms = msgspec.json.decode(decision.context), [msgspec.json.decode(arm) for arm in decision.arms]
        chances = model.choose(decision.context, read_arms(list(decision.arms)), 0.0).p
        estimates, widths = _estimates(model, context, arms)
        names = list(decision.probabilities)
        shown: dict[str, dict[str, float]] = {}
        for i, name in enumerate(names):
            shown[name] = {"estimate": float(estimates[i])}
            if widths is not None:
                shown[name]["width"] = float(widths[i])
            shown[name]["probability"] = float(chances[i])
        adds: dict[str, dict[str, float]] = {name: {} for name in names}
        for key in context:
            without = _estimates(model, {k: v for k, v in context.items() if k != key}, arms)[0]
            for i, name in enumerate(names):
                adds[name][key] = float(estimates[i] - without[i])
        for i, (name, arm) in enumerate(zip(names, arms)):
            features = arm.get("features", {}) if isinstance(arm, dict) else {}
            for key in features if isinstance(features, dict) else ():
                rest = {"id": arm["id"], "features": {k: v for k, v in features.items() if k != key}}
                without = _estimates(model, context, [*arms[:i], rest, *arms[i + 1 :]])[0]
                adds[name][f"{name}.{key}"] = float(estimates[i] - without[i])
        return Explanation(shown, adds)

    def log(self) -> Log:
        """Everything decided so far whose outcome is known, as a log for ``offline.evaluate`` and ``compare``.

        >>> shop = Decider(seed=1)
        >>> for _ in range(3):
        ...     _ = shop.reward(shop.decide({"hour": 9}, arms=["a", "b"]).id, 1.0)
        >>> shop.log().rewards
        array([1., 1., 1.])
        """
        folder = tempfile.TemporaryDirectory(prefix="armwise-")
        path = Path(folder.name) / "log.dsjson"
        path.write_bytes(b"".join(as_dsjson(each) + b"\n" for each in self._entries() if each.status.closed))
        log = Log.from_dsjson(path)
        weakref.finalize(log, folder.cleanup)  # the log reads the file whenever it is asked for rows
        return log

    def warm_start(self, log: Any) -> int:
        """Learn from logged decisions first: dictionaries with context, arms, arm, probability and reward.

        Each is learnt as if this agent had drawn it with that probability; returns how many were learnt. In memory
        only: a journal holds what its own service decided.

        >>> shop = Decider(seed=1)
        >>> row = {"context": {"hour": 9}, "arms": ["a", "b"], "arm": "b", "probability": 0.5, "reward": 1.0}
        >>> shop.warm_start([row] * 20)
        20
        """
        if self._memory is None:
            raise ValueError("warm_start needs a Decider in memory: a journal holds only what was decided there")
        lessons = []
        for i, row in enumerate(log):
            if missing := [name for name in ("arms", "arm", "probability", "reward") if name not in row]:
                raise ValueError(
                    f"log, row {i}: {missing[0]} is missing; expected context, arms, arm, probability, reward"
                )
            texts = [arm_to_json(arm) for arm in row["arms"]]
            ids = read_arms(texts).ids
            if row["arm"] not in ids:
                raise ValueError(f"log, row {i}: arm {row['arm']!r} is not one of its arms {list(ids)}")
            p, arm = float(row["probability"]), ids.index(row["arm"])
            if not 0.0 < p <= 1.0:
                raise ValueError(f"log, row {i}: probability must lie in (0, 1], got {p}")
            rest = (1.0 - p) / max(1, len(ids) - 1)
            asked = Decision(
                msgspec.Raw(to_json(f"log, row {i}: context", row.get("context"))), [msgspec.Raw(t) for t in texts],
                [p if k == arm else rest for k in range(len(ids))], arm, 0, 1, 0.0,
            )  # fmt: skip
            lessons.append((asked, self._memory.model.check_reward(float(row["reward"]))))
        for asked, reward in lessons:
            self._memory.model.scaler.update(self._memory.model.numbers(asked))
            self._memory.model.learn(asked, reward)
        return len(lessons)

    # ------------------------------------------------------------------ life

    @property
    def agent(self) -> Agent:
        """The agent inside, as it has learnt so far.

        >>> Decider().agent
        Explore(agent=LinUCB(dim=128, ...), epsilon=0.1)
        """
        return self._model().agent

    def close(self) -> None:
        """Commit, learn and let the folder go; what was answered is kept in any case.

        >>> Decider().close()
        """
        if self._engine is not None:
            self._engine.stop()
            self._engine = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_engine(self) -> Engine:
        if self._engine is None:
            raise ValueError("this Decider is closed")
        return self._engine

    def _model(self) -> Model:
        if self._memory is not None:
            return self._memory.model
        engine = self._open_engine()
        engine.wait_learnt()
        return engine.model(APP)

    def _entries(self) -> list[Entry]:
        if self._memory is not None:
            return self._memory.entries()
        journal = self._open_engine().open_journal()
        try:
            return list(entries(journal, APP))
        finally:
            journal.connection.close()


def _decided(it: Answer, context: bytes, arms: list[bytes]) -> Decided:
    return Decided(it.id, it.arm, it.probability, dict(it.probabilities), context, tuple(arms))


def _receipt(id: str, event: Any, status: Status | None) -> Receipt:
    assert isinstance(event, Reward) and status is not None
    again = status.rule == EARLIEST and status.n > 1
    return Receipt(id, "late" if event.late else "repeated" if again else "taken")


def _estimates(model: Model, context: Any, arms: list[Any]) -> tuple[Any, Any]:
    """What the agent thinks of each arm: estimates, and widths where it has them."""
    asked = Decision(
        msgspec.Raw(msgspec.json.encode(context)), [msgspec.Raw(msgspec.json.encode(arm)) for arm in arms],
        [1.0 / len(arms)] * len(arms), 0, 0, 1, 0.0,
    )  # fmt: skip
    sent = offered(asked)
    stack = model._stack(asked)[1]
    view, positions = model._view(bytes(asked.context), stack, sent.ids, model.scaler.scaling(stack))
    means, widths = model.agent.estimate(view)
    if positions is None:
        return means, widths
    return means[positions], None if widths is None else widths[positions]


def _described(agent: Agent | Mapping[str, Any]) -> dict[str, Any]:
    """An agent as the journal describes it; its ``dim`` is left to the features."""
    if isinstance(agent, Mapping):
        return dict(agent)
    spec: dict[str, Any] = _spec("agent", agent)
    return spec


def _spec(where: str, value: Any) -> Any:
    if isinstance(value, Saved):
        name = f"{value._namespace}{type(value).__qualname__}"
        inside = {key: _spec(f"{where}.{key}", each) for key, each in value.params().items() if each is not None}
        if isinstance(value, Agent):
            inside.pop("dim", None)
        return {"class": name, **inside}
    if isinstance(value, (list, tuple)):
        return [_spec(f"{where}[{i}]", each) for i, each in enumerate(value)]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(
        f"{where} is {type(value).__name__}, which a journal cannot describe: use an agent of plain numbers"
    )
