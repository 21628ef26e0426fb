"""Decider: named arms, dictionaries as contexts, rewards by id, in this process; in memory or in a durable journal."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, overload

import msgspec

from armwise.core.agent import Agent
from armwise.core.arguments import FilePath
from armwise.core.policy_document import Policy
from armwise.export.evaluators import write
from armwise.features.encoding.arms import read_arms
from armwise.features.encoding.from_python import read_context, read_named_arms
from armwise.offline.logs.cohorts import duration
from armwise.service.decider.asynchronous import AsyncVerbs
from armwise.service.decider.backend import APP, Backend, forked, read_clock
from armwise.service.decider.decided import Decided, Explanation, ListRewards, Ranked, Receipt, UnknownDecision
from armwise.service.decider.describe import described, held_in_memory
from armwise.service.decider.folder import Folder
from armwise.service.decider.memory import Memory
from armwise.service.decider.parsing import (
    read_decision,
    read_id,
    read_list_id,
    read_log,
    read_pairs,
    read_rankings,
    read_requests,
    read_reward,
    rewards_slots,
)
from armwise.service.decider.transformed import read_encoder
from armwise.service.engine.requests.ranking import DEFAULT_SLOTS, read_list_rewards
from armwise.service.engine.requests.request import ParsedRequest
from armwise.service.engine.requests.slots import slot_id
from armwise.service.journal.errors import Conflict, Unknown
from armwise.service.journal.events import CLOSE, DEFAULT_AGENT, Creation, Settings
from armwise.service.model.dims import AUTOMATIC
from armwise.service.model.explain import explain
from armwise.service.model.exporting import exported
from armwise.service.model.lessons import read_lessons

WEEK = 7 * 86400.0
MAX_SILENT_WINDOW = 86400.0  # seconds until the first reward is learnt, above which the first decision warns


class Decider(AsyncVerbs):
    """Choose among named arms for a context, and learn from rewards given by decision id.

    ``Decider()`` keeps everything in memory, its log too, without bound: about 2 kB per decision with 20 numbers.
    ``Decider("decisions/")`` keeps it in the decision service's journal in that folder: a decision is answered when the
    disk has it, and ``armwise serve decisions/`` opens the folder later; as there, drift is watched for.
    ``agent`` is any agent, whose ``dim`` is left to the features (None: optimism over all pairs of context and arm,
    with one decision in ten spread over all arms); one over a model of scikit-learn lives in memory only. With a
    ``seed`` decisions in memory are reproducible. ``encoder`` is a ``features.Encoder``, or a fitted transformer of
    scikit-learn that is given every context first; its columns, by name, are the context then. What a folder was made
    of stays, where nothing else is asked for. Calls may come from any thread.

    A reward may take up to ``window`` seconds, a week unless said; a decision without one earned ``default``, and what
    several rewards come to is the ``rule``. ``learn`` says when outcomes are learnt: "provisional" is the default
    reward at once, corrected when a reward comes (the default, where the agent can revise); "close" each outcome once,
    when the window closes or with ``reward(..., final=True)`` (the default of all other agents); "arrival" each reward
    when it comes, which is the promise that every outcome is reported, zeros too (the default and the only way of an
    agent with a budget: each outcome comes with its cost). ``new_arms`` is the most that arms which are new beside
    known ones get of a decision, together, until each was drawn 100 times: 0.1 unless said, 1 for no limit. ``clock``
    gives the time in seconds in place of the system's, so that a test of a week takes a second.

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
        window: float | None = None,
        default: float | None = None,
        rule: str | None = None,
        learn: str | None = None,
        new_arms: float | None = None,
        encoder: Any = None,
        dim: int | None = None,
        seed: int | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        if isinstance(storage, Agent):
            storage, agent = None, storage
        self._encoded, wanted_features = read_encoder(encoder, dim)
        for name, value in (("window", window), ("default", default), ("new_arms", new_arms)):
            if value is not None and not isinstance(value, (int, float)):
                raise ValueError(f"{name} must be a number, got {type(value).__name__} {value!r:.60}")
        if storage is not None and not isinstance(storage, (str, os.PathLike)):
            raise ValueError(f"storage must be a folder, or an agent, got {type(storage).__name__} {storage!r:.60}")
        if storage is not None and os.path.isfile(storage) and not str(storage).endswith(".db"):
            raise ValueError(f"storage must be a folder, but {os.fspath(storage)!r} is a file")
        clock = read_clock(clock)
        own = held_in_memory(agent) if storage is None else None

        def creation(before: Creation | None) -> Creation:
            """Return the folder's settings, overridden by the arguments given."""
            extra = AUTOMATIC if before is None or before.settings.extra == AUTOMATIC else {}
            made = before or Creation(dict(DEFAULT_AGENT), settings=Settings(window=WEEK))
            wanted: dict[str, Any] = {"window": window, "default": default, "rule": rule, "learn": learn,
                                      "new_arms": new_arms}  # fmt: skip
            if extra and ("dim" in wanted_features or own is not None):
                extra = {}  # the dimension was given
            if extra or made.settings.extra == AUTOMATIC:
                wanted["extra"] = extra
            changed = {name: value for name, value in wanted.items() if value is not None}
            settings = msgspec.structs.replace(made.settings, **changed)
            features = made.features | wanted_features
            spec = made.agent if agent is None or own is not None else described(agent)
            if own is not None and own.dim is not None and "dim" not in features:
                features = features | {"dim": own.dim}
            return Creation(spec, features, made.arms, made.seed if seed is None else seed, settings, made.rewards)

        if storage is None:
            self._opened: Backend = Memory(creation(None), clock or time.time, seed, own)
        else:
            self._opened = Folder(os.fspath(storage), creation, clock)
        self._warned, self._process = learn is not None, os.getpid()

    @property
    def _backend(self) -> Backend:
        """Return the storage; raise RuntimeError in a process forked after it was opened."""
        if os.getpid() != self._process:
            raise RuntimeError(forked("Decider", self._process))
        return self._opened

    # ------------------------------------------------------------------ the verbs

    def decide(self, context: Any = None, arms: Iterable[Any] = (), *, id: str | None = None) -> Decided:
        """Choose one of the arms for this context.

        An arm is its id, or a dictionary with an ``id`` whose other names are its features. The same ``id`` of a
        decision gives the same answer again.

        >>> Decider().decide({"hour": 21}, arms=["red"]).arm
        'red'
        """
        if not self._warned:
            self._warn()
        text, tokens = read_context(context if self._encoded is None else self._encoded(context))
        asked = ParsedRequest(text, tokens, read_named_arms(arms), id if id is None else read_id(id))
        try:
            [decided] = self._backend.decide((asked,))
            return decided
        except Conflict as error:
            raise ValueError(str(error)) from None

    def decide_many(self, requests: Sequence[Mapping[str, Any]]) -> list[Decided]:
        """A batch of decisions, each a dictionary with ``context``, ``arms`` and, if wanted, ``id``; one commit.

        >>> [d.arm for d in Decider().decide_many([{"arms": ["a"]}, {"context": {"hour": 3}, "arms": ["b"]}])]
        ['a', 'b']
        """
        if not self._warned:
            self._warn()
        asked = read_requests(requests, self._encoded)
        try:
            return self._backend.decide(asked) if asked else []
        except Conflict as error:
            raise ValueError(str(error)) from None

    def rank(
        self, context: Any = None, arms: Iterable[Any] = (), k: int = DEFAULT_SLOTS, *, id: str | None = None,
        pinned: Mapping[int, str] | None = None, at_most: Mapping[str, int] | None = None,
    ) -> Ranked:  # fmt: skip
        """Fill k slots from the top, each with an arm that no slot above it shows; one id for the list.

        Each slot is a decision between the arms left, which sees its position too, so that its probability given the
        slots above is exact. ``pinned`` is {slot: arm} of slots that are not to be chosen; ``at_most`` {feature: n}: no
        more than n arms with one value of that feature. Rewards come by arm or by slot (see ``reward``); a slot without
        one earns the default when the window closes: silence is no click.

        >>> shop = Decider(seed=1)
        >>> ranked = shop.rank({"device": "phone"}, arms=["red", "green", "blue"], k=2, pinned={0: "blue"})
        >>> ranked.arms[0], len(ranked), [receipt.status for receipt in shop.reward(ranked, {"blue": 1})]
        ('blue', 2, ['taken'])
        """
        return self.rank_many([{"context": context, "arms": arms, "k": k, "id": id, "pinned": pinned,
                                "at_most": at_most}])[0]  # fmt: skip

    def rank_many(self, requests: Sequence[Mapping[str, Any]]) -> list[Ranked]:
        """A batch of lists, each a dictionary with what ``rank`` takes, by name; one commit.

        >>> [ranked.arms for ranked in Decider().rank_many([{"arms": ["a"], "k": 1}, {"arms": ["b"], "k": 1}])]
        [['a'], ['b']]
        """
        if not self._warned:
            self._warn()
        asked = read_rankings(requests, self._encoded)
        try:
            return self._backend.rank(asked) if asked else []
        except Conflict as error:
            raise ValueError(str(error)) from None

    def _warn(self) -> None:
        """Warn once that the agent will learn nothing for long."""
        self._warned = True
        model = self._backend.model()
        if model.learns == CLOSE and model.settings.window >= MAX_SILENT_WINDOW:
            warnings.warn(
                f"{type(model.agent).__name__} learns an outcome when its window of {duration(model.settings.window)} "
                "closes, and nothing before: give a shorter window=, reward(..., final=True), or learn='arrival' if "
                "every outcome is reported, zeros too",
                stacklevel=3,
            )

    @overload
    def reward(
        self, id: str | Decided, value: float, cost: float | Sequence[float] | None = None, *, final: bool = False
    ) -> Receipt: ...
    @overload
    def reward(
        self, id: str | Ranked, value: ListRewards, cost: None = None, *, final: bool = False
    ) -> list[Receipt]: ...
    def reward(self, id: Any, value: Any, cost: Any = None, *, final: bool = False) -> Receipt | list[Receipt]:
        """Give a decision its reward, now or days later; ``UnknownDecision`` if there is none with this id.

        A list takes {arm: value}, {slot: value} (slots are whole numbers from 0), or a value per slot, None where
        nothing is said; as often as there is news, a receipt for each.

        ``cost`` is what it cost, one number per resource: kept in the log, and counted by an agent with a budget.
        ``final`` says that no other reward of this decision will come: it is closed, and learnt now.

        >>> shop = Decider()
        >>> d = shop.decide({}, arms=["a", "b"])
        >>> shop.reward(d.id, 1.0).status, shop.reward(d.id, 1.0).status
        ('taken', 'repeated')
        """
        if isinstance(id, Ranked) or (type(value) is not float and rewards_slots(value)):
            return self._reward_list(id, value, cost, final)
        name, number = read_reward(id, value)
        try:
            [came] = self._backend.reward(((name, number, cost),), final)
            return came
        except Unknown as error:
            unknown = UnknownDecision(error.id)
        with contextlib.suppress(Unknown):
            read_list_rewards(self._backend.shown(name), number)  # which says how a list is rewarded
        raise unknown

    def _reward_list(self, id: Any, given: Any, cost: Any, final: bool) -> list[Receipt]:
        name = read_list_id(id, cost)
        try:
            rewards = read_list_rewards(id.arms if isinstance(id, Ranked) else self._backend.shown(name), given, final)
            return self._backend.reward([(slot_id(name, slot), value, None) for slot, value in rewards], final)
        except Unknown:
            raise UnknownDecision(name) from None

    def reward_many(self, rewards: Iterable[tuple[Any, ...]], *, final: bool = False) -> list[Receipt]:
        """Rewards of several decisions, (id, value) or (id, value, cost), in one commit; ``final`` as in ``reward``.

        >>> shop = Decider()
        >>> made = shop.decide_many([{"arms": ["a"]}, {"arms": ["b"]}])
        >>> [receipt.status for receipt in shop.reward_many((d, 0.5) for d in made)]
        ['taken', 'taken']
        """
        try:
            return self._backend.reward(read_pairs(rewards), final)
        except Unknown as error:
            raise UnknownDecision(error.id) from None

    def explain(self, decision: Decided) -> Explanation:
        """Per arm the estimate, its width and the probability now; per name of the context (and of the arm) what it
        adds to the estimate: the estimate with it minus the estimate without it.

        >>> shop = Decider(seed=1)
        >>> d = shop.decide({"device": "phone"}, arms=["red", "green"])
        >>> _ = shop.reward(d.id, 1.0)
        >>> sorted(shop.explain(d).contributions[d.arm])
        ['device']
        """
        context, arms = read_decision(decision)
        return Explanation(*explain(self._backend.model(), context, read_arms(arms)))

    def log(self, horizon: float | None = None) -> Any:
        """The decisions so far as a log for ``offline.evaluate`` and ``compare``, taken by age, never by outcome.

        It has every decision that is at least ``horizon`` seconds old, rewarded or not, with what it earned within
        them. Without a horizon that is the whole window where half of the decisions, or 300, are that old, else the
        median age; ``log.remarks`` says how many are left out. Where every decision has its outcome, all are taken.
        The log of lists alone is a ``SlateLog``, for ``offline.evaluate_slates``.

        >>> shop = Decider(seed=1)
        >>> for _ in range(3):
        ...     _ = shop.reward(shop.decide({"hour": 9}, arms=["a", "b"]).id, 1.0)
        >>> shop.log().rewards
        array([1., 1., 1.])
        """
        return read_log(self._backend.lines(), horizon)

    def warm_start(self, log: Any) -> int:
        """Learn from logged decisions first: an ``offline.Log`` with names, a ``SlateLog`` of lists, several of them,
        or dictionaries with context, arms, arm, probability and reward.

        Each is learnt as if this agent had drawn it with that probability; returns how many were learnt. They are no
        part of ``log()``, but a folder's journal has them: a replay learns them again.

        >>> shop = Decider(seed=1)
        >>> row = {"context": {"hour": 9}, "arms": ["a", "b"], "arm": "b", "probability": 0.5, "reward": 1.0}
        >>> shop.warm_start([row] * 20)
        20
        """
        lessons = read_lessons(log)
        model = self._backend.model()
        for i, reward in enumerate(lessons.rewards):
            try:
                model.check_reward(reward)
            except ValueError as error:
                raise ValueError(f"log, row {i}: {error}") from None
        if lessons.rewards:
            self._backend.teach(lessons)
        return len(lessons.rewards)

    def export(self, path: FilePath, format: str | None = None) -> Policy:
        """Write the policy of now, floor, widths and all: .json, or an evaluator of it (see ``armwise.export.write``).

        It has the same probabilities as ``decide`` would have now, for any context and arms, and says which model it
        is: version, position in the journal, checksum. A decider with an ``encoder`` exports what comes after it.

        >>> import tempfile
        >>> shop = Decider(seed=1)
        >>> shop.export(os.path.join(tempfile.mkdtemp(), "policy.json")).document["floors"]
        [0.1]
        """
        policy = exported(self._backend.model(), APP)
        write(policy, path, format)
        return policy

    # ------------------------------------------------------------------ life

    @property
    def agent(self) -> Agent:
        """The agent inside, as it has learnt so far.

        >>> Decider().agent
        Explore(agent=LinUCB(dim=128, ...), epsilon=0.1)
        """
        return self._backend.model().agent

    def close(self) -> None:
        """Commit, learn and let the folder go; what was answered is kept in any case.

        >>> Decider().close()
        """
        if os.getpid() == self._process:  # a forked child holds nothing
            self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
