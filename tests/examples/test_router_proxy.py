"""The OpenAI-compatible proxy, against back ends that stand in for models: answers, streams, failures, the budget."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

ROUTER = Path(__file__).parents[2] / "examples" / "router"
ASK = {"model": "auto", "messages": [{"role": "user", "content": "What is 2 plus 2?"}]}


class StandIn(ThreadingHTTPServer):
    """A model: answers with 20 tokens after a prompt of 10; ``mode`` says how it fails."""

    daemon_threads = True

    def __init__(self, mode="works", tokens=20):
        super().__init__(("127.0.0.1", 0), Answering)
        self.mode, self.tokens = mode, tokens
        self.asked: list[object] = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Answering(BaseHTTPRequestHandler):
    server: StandIn

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(body)
        mode, usage = self.server.mode, {"prompt_tokens": 10, "completion_tokens": self.server.tokens}
        if mode == "slow":
            time.sleep(0.6)
        if mode == "fails":
            return self.reply(500, b"{}")
        if mode == "refuses":
            return self.reply(400, b'{"error": {"message": "too long"}}')
        if not body.get("stream"):
            message = {"role": "assistant", "content": body["model"]}
            answer = {"id": "theirs", "model": body["model"], "choices": [{"message": message}], "usage": usage}
            return self.reply(200, json.dumps(answer).encode())
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for k in range(3):
            self.event({"id": "theirs", "choices": [{"delta": {"content": str(k)}}]})
            if mode == "breaks":
                raise ConnectionResetError
        assert body["stream_options"] == {"include_usage": True}
        self.event({"id": "theirs", "choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, data):
        self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
        self.wfile.flush()

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def make(monkeypatch):
    """Makes a proxy over stand-ins: ``make({"small": StandIn(), ...}, dollars=...)``."""
    monkeypatch.syspath_prepend(str(ROUTER))
    import backends
    import proxy

    import router

    started = []

    def made(standins, dollars=None, service=None, **options):
        started.extend(standins.values())
        prices = {"small": 1.0, "large": 10.0}
        models = [
            backends.Model(name, each.url, f"{name}-1", 0.1, prices.get(name, 1.0), max_tokens=100, timeout=0.3)
            for name, each in standins.items()
        ]
        return proxy.Proxy(
            router.Router(list(standins), 1.0, prompts=1000, service=service), models, dollars, **options
        )

    yield made
    for each in started:
        each.shutdown()
        each.server_close()
    for name in ("backends", "proxy", "router"):
        sys.modules.pop(name, None)


def ask(app, *requests):
    """The answers to requests (method, path, body) that are made at the same time."""

    async def all_of_them():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as client:
            return await asyncio.gather(*(client.request(method, path, json=body) for method, path, body in requests))

    return asyncio.run(all_of_them())


def chat(app, n=1, **more):
    return ask(app, *[("POST", "/v1/chat/completions", ASK | more)] * n)


def logged(app):
    """(arm, reward, cost) of every decision with an outcome, in order."""
    log = app.router.decider.log()
    return list(zip(log.arms.tolist(), log.rewards.tolist(), [] if log.costs is None else log.costs.tolist()))


def test_an_answer_its_dollars_and_feedback_later(make):
    app = make({"small": StandIn(), "large": StandIn()})
    (answer,) = chat(app)
    name, id = answer.headers["x-router-model"], answer.headers["x-router-id"]
    assert answer.status_code == 200 and answer.json()["id"] == f"chatcmpl-{id}"
    assert answer.json()["choices"][0]["message"]["content"] == f"{name}-1"
    dollars = (10 * 0.1 + 20 * {"small": 1.0, "large": 10.0}[name]) / 1e6
    assert float(answer.headers["x-router-dollars"]) == pytest.approx(dollars) == app.ledger.spent
    assert logged(app) == []
    assert ask(app, ("POST", "/v1/feedback", {"id": answer.json()["id"], "score": 0.9}))[0].status_code == 200
    assert [row[1:] for row in logged(app)] == [(0.9, pytest.approx(dollars))]
    for bad, status in (({"id": id, "score": 0.9}, 404), ({"id": id, "score": 2}, 400), ({"id": id}, 400)):
        assert ask(app, ("POST", "/v1/feedback", bad))[0].status_code == status


def test_answers_without_feedback_are_learnt_with_the_default(make):
    app = make({"small": StandIn()}, patience=0.0, default=0.25)
    chat(app, 3)
    assert [row[1] for row in logged(app)] == [0.25] * 3


def test_a_stream_goes_through_as_it_comes(make):
    app = make({"small": StandIn()})
    sent = []

    async def run():
        messages = [{"type": "http.request", "body": json.dumps(ASK | {"stream": True}).encode()}]

        async def receive():
            return messages.pop()

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
        await app(scope, receive, send)

    asyncio.run(run())
    assert sent[0]["status"] == 200 and (b"content-type", b"text/event-stream") in sent[0]["headers"]
    bodies = [message["body"] for message in sent[1:]]
    assert len(bodies) >= 5 and b"".join(bodies).endswith(b"data: [DONE]\n\n")
    chunks = [json.loads(body[6:]) for body in bodies if body.startswith(b"data: {")]
    assert "".join(c["choices"][0]["delta"]["content"] for c in chunks if c["choices"]) == "012"
    assert {c["id"] for c in chunks} == {f"chatcmpl-{dict(sent[0]['headers'])[b'x-router-id'].decode()}"}
    assert app.ledger.spent == pytest.approx((10 * 0.1 + 20 * 1.0) / 1e6)


def test_a_dead_back_end_is_left_for_another_and_the_log_says_so(make):
    dead = StandIn("fails")
    app = make({"small": StandIn(), "large": dead}, rest=60.0)
    answers = chat(app, 12)
    assert {answer.headers["x-router-model"] for answer in answers} == {"small"}
    failed, asked_before = [row for row in logged(app) if row[1:] == (0.0, 0.0)], len(dead.asked)
    assert len(failed) == asked_before > 0  # each failure is a decision that earned nothing
    chat(app, 5)
    assert len(dead.asked) == asked_before  # it rests
    app.ledger.spent = 0.0
    alone = make({"large": StandIn("fails"), "slow": StandIn("slow")})
    (answer,) = chat(alone)
    assert answer.status_code == 502 and "large, slow" in answer.json()["error"]["message"]
    most = alone.models["slow"].most(ASK)  # it had the request when time was up, and may charge for it
    assert alone.ledger.spent == pytest.approx(most) and alone.ledger._aside == pytest.approx(0.0)
    assert sorted(row[2] for row in logged(alone)) == [0.0, pytest.approx(most)]
    keyless = make({"small": StandIn()})
    keyless.models["small"] = dataclasses.replace(keyless.models["small"], key_from="NO_SUCH_KEY")
    assert chat(keyless)[0].status_code == 502  # not an error inside


def test_a_stream_that_breaks_off_is_paid_in_full_and_said(make):
    app = make({"small": StandIn("breaks")})
    (answer,) = chat(app, stream=True)
    assert "broke off" in answer.text
    assert app.ledger.spent == pytest.approx(app.models["small"].most(ASK | {"stream": True}))
    assert [row[1:] for row in logged(app)] == [(0.0, pytest.approx(app.ledger.spent))]


def test_a_wrong_request_is_no_fault_of_the_model(make):
    app = make({"small": StandIn("refuses")})
    assert chat(app)[0].status_code == 400 and logged(app) == []
    for body, status in ((ASK | {"model": "other"}, 404), ({"model": "auto"}, 400), ([1], 400)):
        assert ask(app, ("POST", "/v1/chat/completions", body))[0].status_code == status
    guarded = make({"small": StandIn()}, key="secret")
    assert chat(guarded)[0].status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages": [3]}',
        b'{"messages": [{"role": "user", "content": 5}]}',
        b'{"messages": [{"role": "user", "content": "x"}], "model": ["a"]}',
        b'{"messages": [{"role": "user", "content": "x"}], "stream": "yes"}',
        b'{"messages": [{"role": "user", "content": "x"}], "temperature": NaN}',
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"messages": ' + b"[" * 100_000,
        b"",
    ],
)
def test_what_is_no_request_is_said_and_not_asked(make, body):
    standin = StandIn()
    app = make({"small": standin}, dollars=1.0)

    async def send():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as client:
            return await client.post("/v1/chat/completions", content=body)

    answer = asyncio.run(send())
    assert answer.status_code == 400 and answer.json()["error"]["message"]
    assert not standin.asked and app.ledger.left == 1.0


def test_a_model_or_a_configuration_that_is_none_is_refused_by_name(make, tmp_path):
    app = make({"small": StandIn()})
    good = {"url": "http://127.0.0.1:1/v1", "model": "m", "input": 1.0, "output": 1.0}
    for name, value in (("url", "ftp://x"), ("timeout", 0), ("max_tokens", 0), ("input", -1.0), ("model", 3)):
        (answer,) = ask(app, ("PUT", "/v1/models/new", good | {name: value}))
        assert answer.status_code == 400 and answer.json()["error"]["message"].startswith(f"{name} of a model must be")
    (answer,) = ask(app, ("PUT", "/v1/models/new", {"url": good["url"]}))
    assert "a model needs model" in answer.json()["error"]["message"] and list(app.models) == ["small"]
    (answer,) = ask(app, ("POST", "/v1/feedback", {"id": 3, "score": 1.0}))
    assert answer.status_code == 400
    import proxy

    assert proxy.usage_of({"usage": {"prompt_tokens": -5}}) is None  # would give money back
    listed = [good | {"name": "a"}]
    for config, why in (
        ("x", "Expecting value"), ("{}", "'models' is missing"), ('{"models": []}', "models must have"),
        ("3", "an object with a list of models, got 3"), ('{"models": 3}', "an object with a list of models"),
        (json.dumps({"models": listed * 2}), "each one once"),
        (json.dumps({"models": listed}), "dollars_per_thousand must be"),
        (json.dumps({"models": listed, "dollars_per_thousand": 1.0, "dollars": -1}), "dollars must be"),
        (json.dumps({"models": listed, "dollars_per_thousand": 1.0, "budget": "b"}), "no service is given"),
        (json.dumps({"models": listed, "dollars_per_thousand": 1.0, "budget": "b", "service": "http://x"}),
         "request_dollars must be"),
    ):  # fmt: skip
        path = tmp_path / "router.json"
        path.write_text(config)
        with pytest.raises(SystemExit, match=r"router\.json") as error:
            proxy.read_config(str(path))
        assert why in str(error.value)
    path.write_text(json.dumps({"models": listed, "dollars_per_thousand": 1}))
    assert proxy.read_config(str(path))["models"][0].name == "a"


@pytest.mark.parametrize(
    ("field", "value"), [("max_tokens", "many"), ("max_tokens", -5), ("max_completion_tokens", 0), ("n", -1000)]
)
def test_a_limit_that_is_none_is_refused_by_name(make, field, value):
    """A negative number would set less than nothing aside, and the budget would grow."""
    app = make({"small": StandIn()}, dollars=1.0)
    [answer] = ask(app, ("POST", "/v1/chat/completions", ASK | {field: value}))
    assert answer.status_code == 400 and field in answer.json()["error"]["message"]
    assert app.ledger.left == 1.0


def test_what_is_set_aside_covers_tools_and_either_limit(make):
    standin = StandIn()
    app = make({"small": standin}, dollars=1.0)
    [model] = app.models.values()
    tools = [{"type": "function", "function": {"name": "look_up", "description": "word " * 1000}}]
    assert model.most(ASK | {"tools": tools}) - model.most(ASK) > 5000 * model.input / 1e6
    [answer] = ask(app, ("POST", "/v1/chat/completions", ASK | {"max_completion_tokens": 100_000}))
    assert answer.status_code == 200
    sent: Any = standin.asked[0]
    assert sent["max_tokens"] == 100 and "max_completion_tokens" not in sent
    picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}]
    [answer] = ask(app, ("POST", "/v1/chat/completions", ASK | {"messages": picture}))
    assert answer.status_code == 400 and "picture" in answer.json()["error"]["message"]


def test_concurrent_requests_never_overspend(make):
    """60 requests at once, of which each may cost 1.1e-4 dollars at most (and costs 2.1e-5): 10 fit at a time."""
    app = make({"small": StandIn()}, dollars=0.0)
    app.ledger.dollars = 10.5 * app.models["small"].most(ASK)  # not 10: the tenth would hang on rounding
    statuses = [answer.status_code for answer in chat(app, 60)]
    assert statuses.count(200) >= 10 and set(statuses) <= {200, 429}
    while chat(app)[0].status_code == 200:  # until what is left does not cover one more
        pass
    assert app.ledger.spent <= app.ledger.dollars
    assert app.ledger.left < app.models["small"].most(ASK)
    assert chat(app)[0].json()["error"]["type"] == "insufficient_quota"


def test_a_killed_proxy_goes_on_with_what_was_spent_and_what_waits(make, tmp_path):
    """A budget that begins anew with every start is none; what was under way counts as if it had cost all it could."""
    path, standin = str(tmp_path / "dollars"), StandIn()
    before = make({"small": standin}, ledger=path)
    ids = [answer.headers["x-router-id"] for answer in chat(before, 3)]
    ask(before, ("POST", "/v1/feedback", {"id": ids[0], "score": 1.0}))
    with pytest.raises(BlockingIOError, match="another proxy"):
        make({"small": standin}, ledger=path)
    most = before.models["small"].most(ASK)
    before.ledger.asks("under way", most)
    before.ledger._file.write(b'{"paid": "half a li')
    before.ledger.close()  # as the kernel does after kill -9: nothing else is said
    after = make({"small": standin}, dollars=before.ledger.spent + 1.5 * most, ledger=path)
    assert after.ledger.spent == pytest.approx(before.ledger.spent + most)
    assert chat(after)[0].status_code == 429  # half a request is left
    after.router = before.router  # the journal, which was kept
    assert ask(after, ("POST", "/v1/feedback", {"id": ids[0], "score": 0.9}))[0].status_code == 404
    assert ask(after, ("POST", "/v1/feedback", {"id": ids[1], "score": 0.9}))[0].status_code == 200
    assert [row[1] for row in logged(after)] == [1.0, 0.9]
    after.ledger.close()
    again = make({"small": standin}, ledger=path)  # and so on
    assert again.ledger.spent == after.ledger.spent and list(again.ledger.waiting) == ids[2:]
    again.learn_without_feedback(0.0)  # a journal that does not know them does not stop anything
    assert not again.ledger.waiting and chat(again)[0].status_code == 200
    again.ledger.close()
    Path(path).write_text("rubbish\n{}\n")
    with pytest.raises(ValueError, match="line 1"):
        make({"small": standin}, ledger=path)


def test_models_come_and_go_and_prices_change(make):
    app, large = make({"small": StandIn()}), StandIn()
    try:
        spec = {"url": large.url, "model": "large-1", "input": 0.1, "output": 10.0}
        assert ask(app, ("PUT", "/v1/models/large", spec))[0].status_code == 200
        (named,) = chat(app, model="large")
        assert float(named.headers["x-router-dollars"]) == pytest.approx((1.0 + 200.0) / 1e6)
        ask(app, ("PUT", "/v1/models/large", spec | {"output": 5.0}))
        assert float(chat(app, model="large")[0].headers["x-router-dollars"]) == pytest.approx((1.0 + 100.0) / 1e6)
        assert ask(app, ("PUT", "/v1/models/large", {"url": 3}))[0].status_code == 400
        assert ask(app, ("DELETE", "/v1/models/large", None))[0].status_code == 200
        assert chat(app, model="large")[0].status_code == 404
        assert [each["id"] for each in ask(app, ("GET", "/v1/models", None))[0].json()["data"]] == ["auto", "small"]
        assert ask(app, ("GET", "/v1/budget", None))[0].json()["dollars"] is None
    finally:
        large.shutdown()
        large.server_close()


def test_over_a_running_service(make, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "serve"))
    from serving import Running

    import router
    from armwise.serve.app import Service
    from armwise.serve.config import Config
    from armwise.serve.engine.application import Application

    agent = router.agent_of(1.0, 1000)
    running = Running(Service(Config(storage=str(tmp_path / "d"), applications={"router": Application(agent=agent)})))
    try:
        app = make({"small": StandIn(), "large": StandIn("fails")}, service=running.url, patience=0.0)
        assert {answer.status_code for answer in chat(app, 6)} == {200}
        assert {row[1] for row in logged(app)} <= {0.0, app.default} and len(logged(app)) >= 6
        app.patience = 3600.0
        [last] = chat(app)
    finally:
        running.stop()
    app.router.decider.retries = 0
    feedback = ("POST", "/v1/feedback", {"id": last.json()["id"], "score": 1.0})
    gone = [*chat(app), *ask(app, feedback)]
    assert [answer.status_code for answer in gone] == [503, 503] and "service" in gone[0].json()["error"]["message"]
    app.learn_without_feedback(0.0)
    assert list(app.ledger.waiting) == [last.headers["x-router-id"]]  # for when it is back
    assert app.ledger._aside == pytest.approx(0.0)
    app.router.close()


def test_several_proxies_share_a_budget_that_the_service_holds(make, monkeypatch, tmp_path):
    """Two proxies, requests at once: what both spend stays within the one budget, also while the service is away.

    A failure means that each proxy counts for itself: then two of them spend twice the budget.
    """
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "serve"))
    from serving import Running

    import armwise as aw
    import router
    from armwise.serve.app import Service
    from armwise.serve.config import Config
    from armwise.serve.engine.application import Application

    standins = {"large": StandIn(tokens=90)}
    most = make(standins).models["large"].most(ASK)
    budget = 8.5 * most
    applications = {
        "router": Application(agent=router.agent_of(1.0, 1000)),
        "dollars": Application(agent=router.budget_of(budget, most), arms=["ask"]),
    }
    running = Running(Service(Config(storage=str(tmp_path / "d"), applications=applications)))

    def proxy_of():
        app = make(standins)
        app.router.decider = aw.Client(running.url, app="router")
        app.tickets = router.Tickets(aw.Client(running.url, app="dollars", retries=0), most)
        return app

    try:
        both = [proxy_of(), proxy_of()]
        (long,) = chat(both[0], messages=[{"role": "user", "content": "word " * 20_000}])
        assert long.status_code == 400 and "may cost more" in long.json()["error"]["message"]
        spent, refused = 0.0, [False, False]
        for _ in range(50):
            for k, app in enumerate(both):
                answers = chat(app, 3)
                assert {answer.status_code for answer in answers} <= {200, 429}
                refused[k] = any(answer.status_code == 429 for answer in answers)
            spent = sum(app.ledger.spent for app in both)
            assert spent <= budget
            if all(refused):
                if spent > budget - 2 * most:
                    break
                time.sleep(0.1)  # what was set aside and not spent is given back when it is learnt
        assert all(refused) and spent > budget - 2 * most  # nearly all of it is used
        assert both[0].ledger.spent > 0.0 < both[1].ledger.spent and not both[0]._owed and not both[1]._taken
    finally:
        running.stop()
    both[0].router.decider.retries = 0
    assert chat(both[0])[0].status_code == 503  # nobody holds the budget: nothing is asked
    both[1]._taken["x"] = "a ticket"
    both[1].give("x", 0.1)
    assert both[1]._owed == {"a ticket": 0.1}  # for when it is back
    for app in both:
        app.router.close()
        app.tickets.close()
