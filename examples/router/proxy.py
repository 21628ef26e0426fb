"""An OpenAI-compatible proxy that learns which model answers which prompt, within a budget in dollars.

POST /v1/chat/completions   as OpenAI's, streams too; "model" is "auto", or the name of a model to be asked
POST /v1/feedback           {"id": ..., "score": 0.0 to 1.0}, whenever the quality is known
GET /v1/models              the models that are offered now
PUT /v1/models/NAME         a model that comes, or whose price changes; DELETE: it goes
GET /v1/budget              dollars spent and left
POST /v1/what-if            {"RULE": {"MODEL": share, ...}, ...}: what other rules would have scored and cost

Each attempt is a decision of its own in the journal, with the probabilities that it was drawn with: a back end that
fails, or refuses what another one answers, has earned 0 for what it cost, and another decision is made among those that
are left. The dollars are known with the answer, and are spent at once; quality and dollars are learnt together, with
the feedback or, where none comes within ``patience`` seconds, with the score ``default``.

Run it: python examples/router/proxy.py CONFIG.json; see docs/router.md
"""

from __future__ import annotations

import asyncio
import dataclasses
import hmac
import json
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from backends import BackendError, Ledger, Model, Refused, Resting
from configuration import read_config, read_model
from wire import Failure, Send, check, in_thread, prompt_of, read_body, respond, usage_of

import armwise as aw
from router import Router, Tickets

log = logging.getLogger("router")


class Proxy:
    """The ASGI app; ``router`` decides, ``dollars`` (None: no end) is the budget that no path overspends.

    With ``tickets`` a request also needs one of a budget that several proxies share.
    """

    def __init__(
        self,
        router: Router,
        models: list[Model],
        dollars: float | None = None,
        *,
        key: str = "",
        patience: float = 3600.0,
        default: float = 0.5,
        rest: float = 5.0,
        ledger: str | None = None,
        tickets: Tickets | None = None,
    ) -> None:
        self.router, self.models = router, {model.name: model for model in models}
        self.ledger, self.resting = Ledger(dollars, ledger), Resting(rest)
        self.key, self.patience, self.default = key, patience, default
        self.tickets = tickets
        self._taken: dict[str, str] = {}  # the ticket of a decision whose back end is being asked
        self._owed: dict[str, float] = {}  # tickets that the service could not be told of
        self._lock = threading.Lock()  # each outcome is learnt once

    @property
    def bounded(self) -> bool:
        """Whether there is a budget that no path overspends."""
        return self.ledger.dollars is not None or self.tickets is not None

    # ------------------------------------------------------------------ choosing, asking, learning (in threads)

    def offered(self, body: dict[str, Any]) -> list[Model]:
        """The models that can be asked now: named by the request, awake, and within what is left."""
        name = body.get("model", "auto")
        if name != "auto" and name not in self.models:
            raise Failure(404, "model_not_found", f"no model is called {name!r}: ask for 'auto', or see /v1/models")
        if not self.models:
            raise Failure(503, "service_unavailable", "no model is offered now: PUT /v1/models/NAME adds one")
        named = list(self.models.values()) if name == "auto" else [self.models[name]]
        most = float("inf") if self.tickets is None else self.tickets.most
        small = [model for model in named if model.most(body) <= most]
        if not small:
            raise Failure(400, "invalid_request_error", f"this request may cost more than {most} dollars: shorten it")
        paid = [model for model in small if model.most(body) <= self.ledger.left]
        if not paid:
            raise Failure(429, "insufficient_quota", "what is left of the budget does not cover this request")
        return [model for model in paid if not self.resting.rests(model.name)] or paid

    def reserve(self, body: dict[str, Any], failed: Mapping[str, str]) -> tuple[dict[str, Model], float]:
        """The models to decide between, and the most that any of them can cost, which is set aside."""
        while True:
            offered = [model for model in self.offered(body) if model.name not in failed]
            if not offered:
                raise Failure(502, "backend_error", f"no back end answers: {'; '.join(failed.values())}")
            most = max(model.most(body) for model in offered)
            if self.ledger.reserve(most):  # else others were quicker: less is offered then
                return {model.name: model for model in offered}, most

    def attempt(self, body: dict[str, Any]) -> tuple[str, Model, Iterator[bytes], float, bytes]:
        """Decide and ask until a back end begins to answer: the decision, its lines, what is set aside, the first line.

        Every attempt that fails is a decision with its own outcome; each model is asked once. A request that one
        refuses may suit another (a longer context, another name of a field); where none takes it, it is the request's
        fault, and the decisions stay without an outcome.
        """
        failed: dict[str, str] = {}
        refused: dict[str, Refused] = {}
        while True:
            try:
                offered, aside = self.reserve(body, failed)
            except Failure:
                for error in refused.values():
                    raise Failure(error.status, "invalid_request_error", error.said) from None
                raise
            ticket = ""
            try:
                ticket = self.take()
                decided = self.router.route(prompt_of(body), list(offered))
                model = offered[decided.arm]
                self.ledger.asks(decided.id, model.most(body))
                self._taken[decided.id] = ticket
                lines = model.ask(body)
                first = next(lines, b"")
            except Refused as error:
                self.ledger.settle(aside, 0.0, decided.id)
                self.give(decided.id, 0.0)
                failed[model.name], refused[decided.id] = f"{model.name} refuses the request", error
                continue
            except BackendError as error:
                log.warning("%s", error)
                dollars = model.most(body) if error.billed else 0.0
                self.ledger.settle(aside, dollars, decided.id, waits=True)
                self.give(decided.id, dollars)
                self.resting.failed(model.name)
                self.learn({decided.id: 0.0})
                failed[model.name] = str(error)
                continue
            except BaseException:
                self.ledger.settle(aside, 0.0)
                if ticket:  # nobody was asked
                    self._owed[ticket] = 0.0
                raise
            most = model.most(body)
            self.ledger.settle(aside - most, 0.0)
            self.resting.worked(model.name)
            self.refusals(list(refused))
            return decided.id, model, lines, most, first

    def refusals(self, ids: list[str]) -> None:
        """Learn that models could not answer what another one did."""
        for id in ids:
            try:
                self.router.outcome(id, 0.0, 0.0)
            except aw.ServiceError as error:
                log.warning("a refusal is not learnt: %s", error)

    def settle(self, id: str, model: Model, most: float, usage: dict[str, Any] | None) -> float:
        """Count what an answer cost: by its usage, or all that was set aside where the back end did not say."""
        dollars = most if usage is None else model.dollars(usage)
        if dollars > most:
            log.warning("%s cost %s dollars, more than the %s set aside: its prices or limits are wrong",
                        model.name, dollars, most)  # fmt: skip
        self.ledger.settle(most, dollars, id, waits=True)
        self.give(id, dollars)
        self.learn_without_feedback()
        return dollars

    def take(self) -> str:
        """A ticket of the shared budget, where there is one."""
        if self.tickets is None:
            return ""
        try:
            return self.tickets.take()
        except aw.BudgetSpent:
            said = "what is left of the shared budget does not cover this request"
            raise Failure(429, "insufficient_quota", said) from None

    def give(self, id: str, dollars: float) -> None:
        """Say what the ticket of a decision was spent on; what cannot be said now is said later."""
        if ticket := self._taken.pop(id, ""):
            self._owed[ticket] = dollars
        for ticket, spent in list(self._owed.items()):
            try:
                if self.tickets is not None and self._owed.pop(ticket, None) is not None:  # else another thread has it
                    self.tickets.give(ticket, spent)
            except aw.ServiceError as error:
                self._owed[ticket] = spent
                log.warning("what a ticket was spent on is kept for later: %s", error)
                return

    def feedback(self, id: str, score: float) -> None:
        """Learn the quality of an answer together with its dollars."""
        with self._lock:
            found = self.ledger.waiting.get(id)
            if found is None:
                raise Failure(404, "not_found", f"no answer with the id {id!r} waits for feedback")
            try:
                self.router.outcome(id, score, found[0])
            except aw.UnknownDecision:
                log.warning("the journal does not know the decision %s: it is another journal than the ledger's", id)
            self.ledger.learnt(id)

    def offer(self, models: dict[str, Model]) -> None:
        """From now on these models, and no others."""
        self.models, self.router.models = models, list(models)

    def what_if(self, rules: dict[str, Any]) -> dict[str, Any]:
        """What other rules would have scored and cost per prompt, by the journal; null: nothing is known."""
        try:
            judged, left_out = self.router.judge(rules)
        except ValueError as error:
            raise Failure(400, "invalid_request_error", str(error)) from None

        def told(x: Any) -> dict[str, float | None]:
            ends = {"value": x.value, "low": x.low, "high": x.high}
            return {name: end if math.isfinite(end) else None for name, end in ends.items()}

        found = {
            name: {
                "score": told(rule.value),
                "dollars": told(rule.cost),
                "dollars_per_score": told(rule.cost_per_reward),
            }
            for name, rule in judged.policies.items()
        }
        return {"rules": found, "warnings": [*filter(None, [left_out]), *judged.weaknesses]}

    def learn_without_feedback(self, patience: float | None = None) -> None:
        """Learn the answers whose feedback did not come in time, with the default score."""
        end = time.monotonic() - (self.patience if patience is None else patience)
        self.learn({id: self.default for id, (_, at) in list(self.ledger.waiting.items()) if at <= end})

    def learn(self, scores: Mapping[str, float]) -> None:
        """Scores that nobody waits for: while the service is away they stay for later, at the default."""
        for id, score in scores.items():
            try:
                self.feedback(id, score)
            except Failure:  # meanwhile the feedback came
                continue
            except aw.ServiceError as error:
                log.warning("an outcome is kept for later: %s", error)
                return

    # ------------------------------------------------------------------ HTTP

    async def __call__(self, scope: Mapping[str, Any], receive: Callable[[], Any], send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._live(receive, send)
        try:
            await self._answer(scope, receive, send)
        except Failure as failure:
            await respond(send, failure.status, failure.body)
        except aw.ServiceError as error:
            log.warning("the service: %s", error)
            told = Failure(503, "service_unavailable", "the service that decides does not answer: try again")
            await respond(send, told.status, told.body)

    async def _live(self, receive: Callable[[], Any], send: Send) -> None:
        while True:
            event = (await receive())["type"]
            if event == "lifespan.shutdown":
                if not self.ledger.kept:  # else what waits for feedback waits on, for the next start
                    await asyncio.to_thread(self.learn_without_feedback, 0.0)
                await asyncio.to_thread(self.give, "", 0.0)
                await asyncio.to_thread(self.router.close)
                if self.tickets is not None:
                    self.tickets.close()
                self.ledger.close()
            await send({"type": f"{event}.complete"})
            if event == "lifespan.shutdown":
                return

    async def _answer(self, scope: Mapping[str, Any], receive: Callable[[], Any], send: Send) -> None:
        headers = dict(scope["headers"])
        given = headers.get(b"authorization", b"")
        if self.key and not hmac.compare_digest(given, f"Bearer {self.key}".encode()):
            raise Failure(401, "invalid_api_key", "the request needs the proxy's key: Authorization: Bearer KEY")
        method, path = scope["method"], scope["path"]
        name = path.removeprefix("/v1/models/")
        match method, path:
            case "POST", "/v1/chat/completions":
                await self._complete(await read_body(receive), send)
            case "POST", "/v1/feedback":
                body = await read_body(receive)
                score, id = body.get("score"), body.get("id")
                if isinstance(score, bool) or not isinstance(score, (int, float)) or not 0.0 <= score <= 1.0:
                    raise Failure(
                        400, "invalid_request_error", f"score must be a number from 0 to 1, got {score!r:.80}"
                    )
                if not isinstance(id, str):
                    raise Failure(400, "invalid_request_error", f"id must be the answer's, got {id!r:.80}")
                await asyncio.to_thread(self.feedback, id.removeprefix("chatcmpl-"), float(score))
                await respond(send, 200, {"id": id, "score": score})
            case "GET", "/v1/models":
                listed = [{"id": each, "object": "model", "owned_by": "router"} for each in ["auto", *self.models]]
                await respond(send, 200, {"object": "list", "data": listed})
            case "GET", "/v1/budget":
                left = None if self.ledger.dollars is None else self.ledger.left
                await respond(send, 200, {"dollars": self.ledger.dollars, "spent": self.ledger.spent, "left": left})
            case "PUT", _ if path != name and name and name != "auto":
                try:
                    model = read_model({**await read_body(receive), "name": name})
                except ValueError as error:
                    raise Failure(400, "invalid_request_error", str(error)) from None
                self.offer(self.models | {name: model})
                await respond(send, 200, dataclasses.asdict(self.models[name]))
            case "DELETE", _ if path != name and name:
                if name not in self.models:
                    raise Failure(404, "model_not_found", f"no model is called {name!r:.80}: see /v1/models")
                self.offer({each: model for each, model in self.models.items() if each != name})
                await respond(send, 200, {"id": name, "deleted": True})
            case "POST", "/v1/what-if":
                await respond(send, 200, await asyncio.to_thread(self.what_if, await read_body(receive)))
            case _:
                raise Failure(404, "not_found", f"there is no {method} {path}")

    async def _complete(self, body: dict[str, Any], send: Send) -> None:
        check(body, self.bounded)
        id, model, lines, most, first = await asyncio.to_thread(self.attempt, body)
        more = [(b"x-router-id", id.encode()), (b"x-router-model", model.name.encode())]
        if not body.get("stream"):
            answer = json.loads(first)
            dollars = await asyncio.to_thread(self.settle, id, model, most, usage_of(answer))
            more.append((b"x-router-dollars", repr(dollars).encode()))
            return await respond(send, 200, answer | {"id": f"chatcmpl-{id}"}, more)
        usage, complete = None, False
        kind = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
        try:
            await send({"type": "http.response.start", "status": 200, "headers": kind + more})
            async for line in in_thread(first, lines):
                if line.startswith(b"data: {"):
                    chunk = json.loads(line[6:])
                    usage = usage_of(chunk) or usage
                    line = b"data: " + json.dumps(chunk | {"id": f"chatcmpl-{id}"}).encode() + b"\n"
                complete = complete or line.startswith(b"data: [DONE]")
                await send({"type": "http.response.body", "body": line, "more_body": True})
            if not complete:
                raise BackendError(f"{model.name} ended without [DONE]")
        except (BackendError, ValueError) as error:  # too late for another back end: the client is told
            log.warning("%s, in the middle of a stream", error)
            self.resting.failed(model.name)
            told = Failure(502, "backend_error", f"{model.name} broke off").body
            await send(
                {"type": "http.response.body", "body": b"data: %s\n\n" % json.dumps(told).encode(), "more_body": True}
            )
        finally:
            lines.close()  # type: ignore[attr-defined]
            await asyncio.shield(asyncio.to_thread(self.settle, id, model, most, usage))
        if not complete:
            await asyncio.to_thread(self.learn, {id: 0.0})
        await send({"type": "http.response.body", "body": b""})


def make(config: Mapping[str, Any]) -> Proxy:
    """The proxy of a configuration that was read."""
    models = config["models"]
    service, key = config.get("service"), config.get("service_key")
    options = {name: config[name] for name in ("prompts", "explore") if name in config}
    router = Router(
        [model.name for model in models], config["dollars_per_thousand"], config.get("journal"),
        service=service, key=key, application=config.get("application"), **options,
    )  # fmt: skip
    tickets = None
    if service and config.get("budget"):
        tickets = Tickets(aw.Client(service, key=key, app=config["budget"]), config["request_dollars"])
    options = {name: config[name] for name in ("key", "patience", "default", "ledger") if name in config}
    if config.get("journal"):
        options.setdefault("ledger", f"{config['journal'].rstrip('/')}.dollars")
    return Proxy(router, models, config.get("dollars"), tickets=tickets, **options)


def main() -> None:
    import uvicorn

    if len(sys.argv) != 2:
        raise SystemExit("python examples/router/proxy.py CONFIG.json; see docs/router.md")
    config = read_config(sys.argv[1])
    try:
        app = make(config)
    except (OSError, RuntimeError, ValueError) as error:
        raise SystemExit(f"{sys.argv[1]}: {error}") from None
    host, port = config.get("host", "127.0.0.1"), config.get("port", 8585)
    print(f"{', '.join(app.models)} behind http://{host}:{port}/v1 (stop with Ctrl-C)", flush=True)
    uvicorn.run(app, host=host, port=port, log_level="warning")


if __name__ == "__main__":
    main()
