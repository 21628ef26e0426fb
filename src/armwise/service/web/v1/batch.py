"""Batches over HTTP, each in one commit: decisions, rewards, warm-start rows; and explanations."""

from __future__ import annotations

from typing import Any

import msgspec

from armwise.features.encoding.tokens import InvalidInput, why
from armwise.service.engine.requests.draw import answer
from armwise.service.engine.requests.request import ParsedRequest
from armwise.service.engine.requests.slots import MARK, MAX_SLOTS
from armwise.service.journal.events import Decision, Reward
from armwise.service.journal.writes import Write, keyed
from armwise.service.model.explain import explain
from armwise.service.model.lessons import read_lessons
from armwise.service.web import admission
from armwise.service.web.http import Call, Response, Route, finite, read_object, reply
from armwise.service.web.offload import in_thread
from armwise.service.web.v1 import schemas
from armwise.service.web.v1.decisions import DecisionAnswer, draw, is_final, read, retry_key, reward_answer

MAX_BATCH = 1000  # decisions or rewards in one request


async def decide(call: Call) -> Response:
    """``POST /v1/batch/decisions``: make several decisions in one commit, all or none."""

    def drawn() -> list[Write]:
        asked = _asked(call)
        for each in asked:
            admission.heavy(call, [each.tokens], each.arms.tail, bool(each.catalogue))
        writes = [draw(call, each, "batch") for each in asked]
        return _keyed(call, "decide", writes)

    writes = await admission.aside(True, drawn)
    written = await call.submit(writes) if writes else []
    made = [(w, write) for w, write in zip(written, writes) if isinstance(write.event, Decision)]
    return reply({"decisions": [DecisionAnswer.of(answer(*each)) for each in made]})


def _keyed(call: Call, what: str, writes: list[Write]) -> list[Write]:
    """Return the writes of a batch, preceded by its idempotency record if it has a key."""
    if not (writes and call.request_id):
        return writes
    return keyed(writes, lambda part: retry_key(call, f"batch {what}", part))


def _asked(call: Call) -> list[ParsedRequest]:
    try:
        bodies = msgspec.json.decode(call.body, type=schemas.DecisionsRequest).decisions
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the body: {why(error, call.body)}") from None
    if len(bodies) > MAX_BATCH:
        raise InvalidInput(f"decisions: {len(bodies)} in one request, at most {MAX_BATCH} are accepted")
    found = []
    for i, body in enumerate(bodies):
        try:
            found.append(read(bytes(body), call.engine.catalogue))
        except InvalidInput as error:
            raise InvalidInput(f"decisions[{i}]: {error}") from None
    return found


async def reward(call: Call) -> Response:
    """``POST /v1/batch/rewards``: reward several decisions in one commit, all or none."""
    body = read_object(call.body, {"rewards"})
    rewards = body.get("rewards")
    if not isinstance(rewards, list) or len(rewards) > MAX_BATCH:
        raise InvalidInput(f"rewards must be a list of at most {MAX_BATCH} objects with id and value")
    writes = []
    for i, each in enumerate(rewards):
        if (
            not isinstance(each, dict)
            or not {"id", "value"} <= set(each) <= {"id", "value", "cost", "final", "slot"}
            or not isinstance(each["id"], str)
        ):
            raise InvalidInput(f"rewards[{i}] must be an object with id and value")
        value = finite(each["value"], f"rewards[{i}].value")
        final = is_final(each, f"rewards[{i}].final")
        mark, cost = _slot(each, f"rewards[{i}].slot"), each.get("cost")
        writes.append(
            call.engine.prepare_reward(call.application, each["id"], value, cost=cost, final=final, slot=mark)
        )
    written = await call.submit(_keyed(call, "reward", writes)) if writes else []
    return reply({"rewards": [reward_answer(each) for each in written if isinstance(each.row.event, Reward)]})


def _slot(reward: dict[str, Any], what: str) -> str:
    """The suffix that a slot's id has after that of its list; empty for a decision."""
    if "slot" not in reward:
        return ""
    slot = reward["slot"]
    if isinstance(slot, bool) or not isinstance(slot, (int, float)) or slot not in range(MAX_SLOTS):
        raise InvalidInput(f"{what} must be the number of a list's slot, from 0, got {slot!r:.60}")
    return f"{MARK}{int(slot)}"


async def explanation(call: Call) -> Response:
    """``POST /v1/explanations``: explain the probabilities for a context and arms, without deciding."""
    asked = await admission.aside(True, lambda: read(call.body, call.engine.catalogue))
    admission.heavy(call, [asked.tokens], asked.arms.tail, bool(asked.catalogue))
    await in_thread(call.engine.wait_learnt)
    model = call.engine.model(call.application)
    arms, contributions = await admission.aside(True, lambda: explain(model, asked.context, asked.arms))
    return reply({"arms": arms, "contributions": contributions})


async def teach(call: Call) -> Response:
    """``POST /v1/lessons``: warm start from the rows of a log; answer how many were learnt."""

    key = retry_key(call, "teach")

    def learnt() -> int:
        rows: Any = read_object(call.body, {"rows"}).get("rows")
        if not isinstance(rows, list):
            raise InvalidInput("rows must be a list of objects with context, arms, arm, probability and reward")
        try:
            lessons = read_lessons(rows)
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        if lessons.rewards:
            call.engine.teach(call.application, lessons, key)
        return len(lessons.rewards)

    return reply({"learnt": await in_thread(learnt)})


ROUTES = [
    Route("POST", "v1/batch/decisions", "decide", decide, takes=schemas.DecisionsRequest,
          gives={200: schemas.Decisions}),
    Route("POST", "v1/batch/rewards", "reward", reward, takes=schemas.RewardsRequest, gives={200: schemas.Rewards}),
    Route("POST", "v1/explanations", "read", explanation, takes=schemas.DecisionRequest,
          gives={200: schemas.ExplanationAnswer}),
    Route("POST", "v1/lessons", "admin", teach, takes=schemas.LessonsRequest, gives={200: schemas.Learnt}),
]  # fmt: skip
