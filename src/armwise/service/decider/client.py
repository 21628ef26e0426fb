"""Client: the verbs of Decider over HTTP against ``armwise serve``, with the standard library only."""

from __future__ import annotations

import http.client
import json
import math
import os
import threading
import time
import urllib.parse
import uuid
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, overload

from armwise.agents.budget.accounts import BudgetSpent
from armwise.features.encoding.arms import ArmColumns, read_arm
from armwise.features.encoding.from_python import read_context
from armwise.service.decider.asynchronous import AsyncVerbs
from armwise.service.decider.chaos import Chaos
from armwise.service.decider.decided import Decided, Explanation, ListRewards, Ranked, Receipt, UnknownDecision
from armwise.service.decider.parsing import (
    read_cost,
    read_decision,
    read_list_id,
    read_log,
    read_pairs,
    read_rankings,
    read_requests,
    read_reward,
    rewards_slots,
)
from armwise.service.engine.requests.ranking import DEFAULT_SLOTS, check_list_rewards, read_list_rewards, slot_number
from armwise.service.engine.requests.slots import MARK, SlotsRequest, offered_by_slot, slot_id
from armwise.service.model.lessons import read_lessons

_MAX_BATCH = 1000  # decisions or rewards per request
_MAX_REMEMBERED = 100_000  # remembered decisions that were answered without the service
_MAX_WARM_START_BYTES = 500_000  # bytes of warm-start rows per request
_INVALID = frozenset({400, 409, 413, 422})
_AGAIN = frozenset({429, 502, 503, 504})  # statuses after which a request is retried


class ServiceError(RuntimeError):
    """The service refused a request, or could not be reached; ``status`` is 0 for the latter.

    >>> ServiceError(503, "the journal is not writable").status
    503
    """

    def __init__(self, status: int, message: str, decision: str = "") -> None:
        super().__init__(message)
        self.status, self.decision = status, decision  # the id of the unknown decision


class InvalidRequest(ServiceError, ValueError):
    """The service refused invalid input, for which ``Decider`` raises ValueError."""


class Client(AsyncVerbs):
    """Decide and reward over HTTP.

    A request that fails on the way is sent again, up to ``retries`` times: decisions carry their id, rewards an
    idempotency key, so that nothing happens twice. Connections are kept and used again, from any thread. ``app`` names
    the application, where the service has several.

    With ``fallback`` (an arm, several in the order in which they are wanted, or a function of the context and the arms'
    names) a decision or a list that the service does not answer within ``deadline`` seconds (default: ``timeout``) is
    answered here, marked ``fallback=True``. It is no decision of the model: its probability is nan, and its reward is
    not sent.

    ``chaos`` lets attempts fail on purpose, to test an application's handlers: the probability of a ``"timeout"`` after
    the service took the request, of a ``"duplicate"``, of a ``"delay"`` of up to ``"seconds"``, of being
    ``"unavailable"`` (503); ``"seed"`` makes it repeatable.

    >>> Client("http://127.0.0.1:8484", key="secret").address
    '127.0.0.1:8484'
    >>> shop = Client("http://127.0.0.1:1", fallback="red", deadline=0.1)
    >>> decision = shop.decide({"hour": 9}, ["green", "red"])
    >>> decision.arm, decision.fallback, shop.reward(decision, 1.0).status
    ('red', True, 'fallback')
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        app: str | None = None,
        timeout: float = 5.0,
        retries: int = 3,
        fallback: str | Sequence[str] | Callable[[Any, list[str]], str] | None = None,
        deadline: float | None = None,
        chaos: Mapping[str, float] | None = None,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must begin with http:// or https:// and name a host, got {url!r}")
        if not timeout > 0.0 or retries < 0:
            raise ValueError(f"timeout must be above 0 and retries at least 0, got {timeout} and {retries}")
        self.address, self._scheme, self._path = parts.netloc, parts.scheme, parts.path.rstrip("/")
        if deadline is not None and (fallback is None or not deadline > 0.0):
            raise ValueError(f"deadline must be above 0 and needs a fallback, got {deadline} and {fallback!r}")
        self.key, self.app, self.timeout, self.retries = key, app, timeout, retries
        self.fallback, self.deadline = fallback, timeout if deadline is None else deadline
        self._chaos = None if chaos is None else Chaos(chaos)
        self._fell_back: dict[str, None] = {}  # ids of the newest decisions answered by the fallback
        self._idle: list[http.client.HTTPConnection] = []
        self._lock, self._process = threading.Lock(), os.getpid()
        weakref.finalize(self, _close_all, self._idle)  # close sockets of a client that was never closed

    # ------------------------------------------------------------------ the verbs

    def decide(self, context: Any = None, arms: Iterable[Any] = (), *, id: str | None = None) -> Decided:
        """As ``Decider.decide``.

        >>> Client("http://127.0.0.1:1", retries=0).decide({"hour": 9}, ["a"])
        Traceback (most recent call last):
        ...
        armwise.service.decider.client.ServiceError: 127.0.0.1:1 cannot be reached: [Errno 111] Connection refused
        """
        return self.decide_many([{"context": context, "arms": arms, "id": id}])[0]

    def decide_many(self, requests: Sequence[Mapping[str, Any]]) -> list[Decided]:
        """As ``Decider.decide_many``: up to 1,000 decisions are one request and one commit.

        >>> Client("http://127.0.0.1:1").decide_many([])
        []
        """
        asked = []
        for read in read_requests(requests):
            # Choose the id here, so that a retry finds the decision it made.
            asked.append((uuid.uuid4().hex if read.id is None else read.id, read.context, read.arms))
        found: list[Decided] = []
        for start in range(0, len(asked), _MAX_BATCH):
            some = asked[start : start + _MAX_BATCH]
            bodies = [
                b'{"id":%s,"context":%s,"arms":[%s]}'
                % (json.dumps(id).encode(), context, b",".join(map(bytes, arms.raws)))
                for id, context, arms in some
            ]
            until = None if self.fallback is None else time.monotonic() + self.deadline
            try:
                if len(bodies) == 1:
                    answers = [json.loads(self._send("POST", "/v1/decisions", bodies[0], until=until))]
                else:
                    body = b'{"decisions":[%s]}' % b",".join(bodies)
                    answers = json.loads(self._send("POST", "/v1/batch/decisions", body, until=until))["decisions"]
            except ServiceError as error:
                if not self._falls_back(error):
                    raise
                found += [self._fall_back(id, context, arms, error) for id, context, arms in some]
                continue
            for answer, (_, context, arms) in zip(answers, some):
                chances = {each["arm"]: each["probability"] for each in answer["probabilities"]}
                found.append(Decided(answer["id"], answer["arm"], answer["probability"], chances, context, arms))
        return found

    def rank(
        self, context: Any = None, arms: Iterable[Any] = (), k: int = DEFAULT_SLOTS, *, id: str | None = None,
        pinned: Mapping[int, str] | None = None, at_most: Mapping[str, int] | None = None,
    ) -> Ranked:  # fmt: skip
        """As ``Decider.rank``; with a ``fallback``, its arms come first, then the others in the order they came in.

        >>> Client("http://127.0.0.1:1", retries=0).rank({"hour": 9}, ["a"], k=1)
        Traceback (most recent call last):
        ...
        armwise.service.decider.client.ServiceError: 127.0.0.1:1 cannot be reached: [Errno 111] Connection refused
        """
        return self.rank_many([{"context": context, "arms": arms, "k": k, "id": id, "pinned": pinned,
                                "at_most": at_most}])[0]  # fmt: skip

    def rank_many(self, requests: Sequence[Mapping[str, Any]]) -> list[Ranked]:
        """As ``Decider.rank_many``, but each list is a request and a commit of its own.

        >>> Client("http://127.0.0.1:1").rank_many([])
        []
        """
        found = []
        for asked, request in zip(read_rankings(requests), requests):
            context, _ = read_context(request.get("context"))
            pinned, at_most = request.get("pinned"), request.get("at_most")
            more: dict[str, Any] = (
                {} if pinned is None else {"pinned": {str(slot): arm for slot, arm in pinned.items()}}
            )
            more |= {} if at_most is None else {"at_most": {name: int(n) for name, n in at_most.items()}}
            # Choose the id here, so that a retry finds the list it made.
            id = uuid.uuid4().hex if asked.id is None else asked.id
            sent = {"id": id, "k": len(asked.names)} | more
            body = b'%b,"context":%b,"arms":[%b]}' % (
                json.dumps(sent).encode()[:-1], context, b",".join(map(bytes, asked.arms.raws)),
            )  # fmt: skip
            until = None if self.fallback is None else time.monotonic() + self.deadline
            try:
                answer = json.loads(self._send("POST", "/v1/rankings", body, until=until))
            except ServiceError as error:
                if not self._falls_back(error):
                    raise
                found.append(self._fall_back_list(id, context, asked, error))
                continue
            offered = offered_by_slot(asked, [each["arm"] for each in answer["slots"]])
            slots = [
                Decided(slot_id(answer["id"], slot), each["arm"], each["probability"],
                        {each["arm"]: each["probability"]}, seen, arms)
                for slot, (each, seen, arms) in enumerate(zip(answer["slots"], asked.contexts, offered))
            ]  # fmt: skip
            found.append(Ranked(answer["id"], tuple(slots)))
        return found

    @overload
    def reward(
        self, id: str | Decided, value: float, cost: float | Sequence[float] | None = None, *, final: bool = False
    ) -> Receipt: ...
    @overload
    def reward(
        self, id: str | Ranked, value: ListRewards, cost: None = None, *, final: bool = False
    ) -> list[Receipt]: ...
    def reward(self, id: Any, value: Any, cost: Any = None, *, final: bool = False) -> Receipt | list[Receipt]:
        """As ``Decider.reward``.

        >>> Client("http://127.0.0.1:1", retries=0).reward("e1", 1.0)
        Traceback (most recent call last):
        ...
        armwise.service.decider.client.ServiceError: 127.0.0.1:1 cannot be reached: [Errno 111] Connection refused
        """
        if isinstance(id, Ranked) or rewards_slots(value):
            return self._reward_list(id, value, cost, final)
        name, number = read_reward(id, value)
        if MARK in name:  # a slot of a list
            return self.reward_many([(name, number, cost)], final=final)[0]
        if name in self._fell_back:
            return Receipt(name, "fallback")
        path = f"/v1/decisions/{urllib.parse.quote(name, safe='')}/reward"
        more = ({} if cost is None else {"cost": read_cost(cost)}) | ({"final": True} if final else {})
        body = json.dumps({"value": number} | more).encode()
        return _receipt(json.loads(self._keyed(path, body)))

    def _reward_list(self, id: Any, given: Any, cost: Any, final: bool) -> list[Receipt]:
        name = read_list_id(id, cost)
        checked = (
            dict(read_list_rewards(id.arms, given, final)) if isinstance(id, Ranked) else check_list_rewards(given)
        )
        if name in self._fell_back:
            said = checked.values() if isinstance(checked, dict) else checked
            return [Receipt(name, "fallback") for value in said if value is not None]
        sent: dict[str, Any] = {"rewards": checked}
        if isinstance(checked, dict):
            by_slot = {str(key): value for key, value in checked.items() if isinstance(key, int)}
            by_arm = {key: value for key, value in checked.items() if isinstance(key, str)}
            sent = ({"slots": by_slot} if by_slot else {}) | ({"rewards": by_arm} if by_arm or not by_slot else {})
        path = f"/v1/rankings/{urllib.parse.quote(name, safe='')}/rewards"
        body = json.dumps(sent | ({"final": True} if final else {})).encode()
        return [_receipt(each) for each in json.loads(self._keyed(path, body))["rewards"]]

    def reward_many(self, rewards: Iterable[tuple[Any, ...]], *, final: bool = False) -> list[Receipt]:
        """As ``Decider.reward_many``: up to 1,000 rewards are one request and one commit.

        >>> Client("http://127.0.0.1:1").reward_many([])
        []
        """
        every = read_pairs(rewards)
        pairs = [pair for pair in every if _event(pair[0]) not in self._fell_back]
        found: list[Receipt] = []
        for start in range(0, len(pairs), _MAX_BATCH):
            sent = [
                _named(id)
                | {"value": value}
                | ({} if cost is None else {"cost": read_cost(cost)})
                | ({"final": True} if final else {})
                for id, value, cost in pairs[start : start + _MAX_BATCH]
            ]
            answers = json.loads(self._keyed("/v1/batch/rewards", json.dumps({"rewards": sent}).encode()))
            found += [_receipt(answer) for answer in answers["rewards"]]
        taken = iter(found)
        return [Receipt(pair[0], "fallback") if _event(pair[0]) in self._fell_back else next(taken) for pair in every]

    def _falls_back(self, error: ServiceError) -> bool:
        """Whether an answer of the caller's own takes the place of one that did not come."""
        return self.fallback is not None and (error.status == 0 or error.status >= 500 or error.status == 429)

    def _fall_back(self, id: str, context: bytes, arms: ArmColumns, error: ServiceError) -> Decided:
        """The caller's own arm; raises the error if none is offered."""
        arm = self._own_arm(context, list(arms.ids), error)
        self._remember(id)
        return Decided(id, arm, math.nan, {}, context, arms, fallback=True)

    def _fall_back_list(self, id: str, context: bytes, asked: SlotsRequest, error: ServiceError) -> Ranked:
        """The caller's own list: the wanted arms first, then the others in the order in which they came."""
        slots: list[Decided] = []
        for slot, seen in enumerate(asked.contexts):
            free = asked.free([asked.arms.ids.index(each.arm) for each in slots])
            names = [name for name, one in zip(asked.arms.ids, free) if one]
            if len(names) == 1 or (slots and not callable(self.fallback) and not self._wanted(names)):
                arm = names[0]
            else:
                arm = self._own_arm(context, names, error)
            slots.append(Decided(slot_id(id, slot), arm, math.nan, {}, seen, asked.arms, fallback=True))
        self._remember(id)
        return Ranked(id, tuple(slots))

    def _own_arm(self, context: bytes, names: list[str], error: ServiceError) -> str:
        if callable(self.fallback):
            arm = self.fallback(json.loads(context), names)
            if arm not in names:
                raise ValueError(f"fallback must answer one of {names}, got {arm!r}") from error
            return arm
        if not (offered := self._wanted(names)):
            raise error
        return offered[0]

    def _wanted(self, names: Sequence[str]) -> list[str]:
        assert not callable(self.fallback)
        wanted = [self.fallback] if isinstance(self.fallback, str) else list(self.fallback or ())
        return [name for name in wanted if name in names]

    def _remember(self, id: str) -> None:
        with self._lock:
            self._fell_back[id] = None
            while len(self._fell_back) > _MAX_REMEMBERED:
                del self._fell_back[next(iter(self._fell_back))]

    def explain(self, decision: Decided) -> Explanation:
        """As ``Decider.explain``; the key needs the role read.

        >>> from armwise.features.encoding.from_python import read_named_arms
        >>> made = Decided("e1", "a", 1.0, {"a": 1.0}, b"{}", read_named_arms(["a"]))
        >>> Client("http://127.0.0.1:1", retries=0).explain(made)
        Traceback (most recent call last):
        ...
        armwise.service.decider.client.ServiceError: 127.0.0.1:1 cannot be reached: [Errno 111] Connection refused
        """
        context, arms = read_decision(decision)
        body = b'{"context":%s,"arms":[%s]}' % (context, b",".join(arms))
        return Explanation(**json.loads(self._send("POST", "/v1/explanations", body)))

    def warm_start(self, log: Any) -> int:
        """As ``Decider.warm_start``, in chunks; the key needs the role admin.

        >>> Client("http://127.0.0.1:1").warm_start([])
        0
        """
        lessons = read_lessons(log)
        rows = []
        for decision, reward in zip(lessons.decisions, lessons.rewards):
            arm = read_arm(bytes(decision.arms[decision.arm])).id
            rows.append(
                b'{"context":%s,"arms":[%s],"arm":%s,"probability":%s,"reward":%s}'
                % (
                    bytes(decision.context), b",".join(map(bytes, decision.arms)), json.dumps(arm).encode(),
                    json.dumps(decision.p[decision.arm]).encode(), json.dumps(reward).encode(),
                )
            )  # fmt: skip
        learnt = size = start = 0
        for end, row in enumerate([*rows, b""]):
            if end > start and (end == len(rows) or size + len(row) > _MAX_WARM_START_BYTES):
                answer = json.loads(self._keyed("/v1/lessons", b'{"rows":[%s]}' % b",".join(rows[start:end])))
                learnt, start, size = learnt + answer["learnt"], end, 0
            size += len(row) + 1
        return learnt

    def log(self, horizon: float | None = None) -> Any:
        """As ``Decider.log``; the key needs the role read.

        >>> Client("http://127.0.0.1:1", retries=0).log()
        Traceback (most recent call last):
        ...
        armwise.service.decider.client.ServiceError: 127.0.0.1:1 cannot be reached: [Errno 111] Connection refused
        """
        data = self._send("GET", "/v1/log?format=dsjson", None)
        return read_log(data.splitlines(), horizon)

    # ------------------------------------------------------------------ life

    def close(self) -> None:
        """Close idle connections.

        >>> Client("http://127.0.0.1:1").close()
        """
        with self._lock:
            _close_all(self._idle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, method: str, path: str, body: bytes | None) -> bytes:
        """Send any other request of the HTTP API, with the same key and retries.

        >>> Client("http://127.0.0.1:1", retries=0).send("GET", "/v1/experiments", None)
        Traceback (most recent call last):
        ...
        armwise.service.decider.client.ServiceError: 127.0.0.1:1 cannot be reached: [Errno 111] Connection refused
        """
        return self._send(method, path, body)

    def _keyed(self, path: str, body: bytes) -> bytes:
        """Post with an idempotency key, so that a retry changes nothing twice."""
        try:
            return self._send("POST", path, body, {"Idempotency-Key": uuid.uuid4().hex})
        except ServiceError as error:
            if error.decision:
                raise UnknownDecision(error.decision) from None
            raise

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None,
        until: float | None = None,
    ) -> bytes:  # fmt: skip
        """Send a request and retry it, but not after ``until``."""
        sent = {"Content-Type": "application/json", **(headers or {})}
        if self.key is not None:
            sent["Authorization"] = f"Bearer {self.key}"
        if self.app is not None:
            path = f"/apps/{urllib.parse.quote(self.app, safe='')}{path}"
        failure = ServiceError(0, "")
        for attempt in range(self.retries + 1):
            left = math.inf if until is None else until - time.monotonic()
            if attempt:
                time.sleep(max(0.0, min(2.0, 0.05 * 2**attempt, left)))
                left = math.inf if until is None else until - time.monotonic()
            if left <= 0.0:
                failure = failure if attempt else ServiceError(0, f"{self.address} did not answer in time")
                break
            faults = self._chaos.draw() if self._chaos is not None else set()
            if "unavailable" in faults:
                failure = ServiceError(503, "chaos: the service is unavailable")
                continue
            connection = self._connection()
            connection.timeout = min(self.timeout, left)
            if connection.sock is not None:
                connection.sock.settimeout(connection.timeout)
            try:
                for _ in range(2 if "duplicate" in faults else 1):
                    connection.request(method, self._path + path, body, sent)
                    response = connection.getresponse()
                    data = response.read()
                if "timeout" in faults:
                    raise TimeoutError("chaos: timed out after the service had taken it")
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                failure = ServiceError(0, f"{self.address} cannot be reached: {error}")
                continue
            with self._lock:
                self._idle.append(connection)
            if response.status < 300:
                return data
            if response.status == 402:
                raise BudgetSpent(_reason(response.status, data)[0])
            kind = InvalidRequest if response.status in _INVALID else ServiceError
            failure = kind(response.status, *_reason(response.status, data))
            if response.status not in _AGAIN:
                break
        raise failure

    def _connection(self) -> http.client.HTTPConnection:
        if os.getpid() != self._process:  # a forked child opens its own connections
            self._idle, self._lock, self._process = [], threading.Lock(), os.getpid()
        with self._lock:
            if self._idle:
                return self._idle.pop()
        kind = http.client.HTTPSConnection if self._scheme == "https" else http.client.HTTPConnection
        return kind(self.address, timeout=self.timeout)


def _event(id: str) -> str:
    """The id of the decision, or of the list that it is a slot of."""
    return id.partition(MARK)[0]


def _named(id: str) -> dict[str, Any]:
    event, mark, slot = id.partition(MARK)
    return {"id": event} | ({"slot": slot_number(slot)} if mark else {})


def _close_all(connections: list[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _receipt(answer: dict[str, Any]) -> Receipt:
    return Receipt(answer["id"], "late" if answer["late"] else "repeated" if answer["repeated"] else "taken")


def _reason(status: int, data: bytes) -> tuple[str, str]:
    """Return the service's error message and, if it is about one, the id of the unknown decision."""
    try:
        answer = json.loads(data)
    except ValueError:
        return f"the service answered {status}", ""
    fault = answer.get("error", answer) if isinstance(answer, dict) else answer
    if not isinstance(fault, dict):
        return str(fault), ""
    return str(fault.get("message", fault)), str(fault.get("decision", ""))
