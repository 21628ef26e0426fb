"""The OpenAI-compatible proxy, against back ends that stand in for models: answers, streams, failures, the budget."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

import armwise as aw

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
        if mode == "lost":
            return self.reply(404, b'{"error": {"message": "no such model"}}')
        if mode == "page":
            return self.reply(200, b"<html>log in first</html>", "text/html")
        if mode == "refuses":
            return self.reply(400, b'{"error": {"message": "too long"}}')
        if not body.get("stream") or mode == "streams not":
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

    def reply(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("content-type", kind)
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
    for name in ("backends", "configuration", "proxy", "router", "wire"):
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
    """(arm, reward, cost) of every decision with a known cost, in order: the others are judged by their age alone."""
    log = app.router.decider.log()
    rows = zip(log.arms.tolist(), log.rewards.tolist(), [] if log.costs is None else log.costs.tolist())
    return [row for row in rows if not math.isnan(row[2])]


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
    said = answer.json()["error"]["message"]
    assert answer.status_code == 502 and "large answers with status 500" in said and "slow: timed out" in said
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


@pytest.mark.parametrize("mode", ["lost", "page", "streams not"])
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_no_answer_is_not_sent_on_and_another_is_asked(make, mode, stream):
    """A wrong address, a page to log in, a stream that is none: the client has an answer of another model."""
    odd = StandIn(mode)
    app = make({"odd": odd, "small": StandIn()}, rest=60.0)
    answers = chat(app, 8, stream=stream)
    if mode == "streams not" and not stream:
        return  # an answer
    assert {(answer.status_code, answer.headers["x-router-model"]) for answer in answers} == {(200, "small")}
    assert not any("html" in answer.text or "odd-1" in answer.text for answer in answers)
    asked = len(odd.asked)
    chat(app, 5, stream=stream)
    assert len(odd.asked) == asked > 0  # it rests
    most = app.models["odd"].most(ASK | {"stream": stream})
    failed = [row for row in logged(app) if row[1] == 0.0]
    assert [row[2] for row in failed] == [pytest.approx(0.0 if mode == "lost" else most)] * asked
    (named,) = chat(app, model="odd", stream=stream)
    assert named.status_code == 502 and "odd" in named.json()["error"]["message"]


def test_what_one_model_refuses_another_may_answer(make):
    """A prompt may be too long for one model only. Where none takes it, the request is wrong: nothing is learnt."""
    app = make({"short": StandIn("refuses"), "small": StandIn()})
    answers = chat(app, 10)
    assert {answer.headers.get("x-router-model") for answer in answers} == {"small"}
    assert logged(app) and {row[1:] for row in logged(app)} == {(0.0, 0.0)}
    n = len(logged(app))
    (answer,) = chat(app, model="short")
    assert answer.status_code == 400 and answer.json()["error"]["message"] == "too long" and len(logged(app)) == n
    assert app.ledger._aside == pytest.approx(0.0)


def test_no_model_at_all_is_said(make):
    app = make({"small": StandIn()})
    ask(app, ("DELETE", "/v1/models/small", None))
    (again,) = ask(app, ("DELETE", "/v1/models/small", None))
    assert again.status_code == 404 and again.json()["error"]["message"] == "no model is called 'small': see /v1/models"
    (answer,) = chat(app)
    assert answer.status_code == 503 and "no model" in answer.json()["error"]["message"]


def test_a_model_that_calls_its_limit_otherwise(make):
    standin = StandIn()
    app = make({"small": standin}, dollars=1.0)
    app.models["small"] = dataclasses.replace(app.models["small"], limit="max_completion_tokens")
    assert chat(app, max_tokens=7)[0].status_code == 200
    sent: Any = standin.asked[0]
    assert sent["max_completion_tokens"] == 7 and "max_tokens" not in sent


def test_what_if_of_a_proxy_whose_models_came_and_went(make):
    """Rules are by name. A failure means that the arms of a journal were counted by their place among those on offer.

    Each model always scores and costs the same, so the right answer is exact; half of the decisions offer one model.
    """
    large = StandIn()
    app = make({"large": large, "small": StandIn()}, patience=3600.0)
    import router

    app.router.decider = aw.Decider(agent=router.agent_of(1.0, 1000, explore=0.5), seed=1)
    scores = {"large": 0.9, "small": 0.2}
    spec = {"url": large.url, "model": "large-1", "input": 0.1, "output": 10.0}
    for i in range(60):
        if i % 20 == 0:
            assert ask(app, ("DELETE", "/v1/models/large", None))[0].status_code == 200
        if i % 20 == 10:
            ask(app, ("PUT", "/v1/models/large", spec))  # from now on in the second place
        (answer,) = chat(app)
        name = answer.headers["x-router-model"]
        ask(app, ("POST", "/v1/feedback", {"id": answer.json()["id"], "score": scores[name]}))
    rules = {"small": {"small": 1.0}, "large": {"large": 1.0}, "mine": [0.25, 0.75]}
    (answer,) = ask(app, ("POST", "/v1/what-if", rules))
    told = answer.json()
    assert answer.status_code == 200 and "30 of the 60 decisions" in told["warnings"][0]
    for name, score, dollars in (("small", 0.2, 21e-6), ("large", 0.9, 201e-6)):
        assert told["rules"][name]["score"]["value"] == pytest.approx(score)
        assert told["rules"][name]["dollars"]["value"] == pytest.approx(dollars)
    assert 0.2 < told["rules"]["mine"]["score"]["value"] < 0.9
    alone = ask(app, ("POST", "/v1/what-if", {"small": {"small": 1.0}}))[0].json()
    assert not any("left out" in each for each in alone["warnings"])
    for bad, why in (
        ({"x": {"huge": 1.0}}, "'huge'"), ({"x": {"small": 0.5}}, "come to 1"), ({"x": [1.0]}, "one for each"),
        ({}, "no rule"), ({"x": {"small": "1"}}, "must be a finite number"),
        ({"x": {"small": 2.0, "large": -1.0}}, "from 0 on"),
    ):  # fmt: skip
        (answer,) = ask(app, ("POST", "/v1/what-if", bad))
        assert answer.status_code == 400 and why in answer.json()["error"]["message"]
    fresh = make({"small": StandIn()})
    assert "no decision" in ask(fresh, ("POST", "/v1/what-if", rules))[0].json()["error"]["message"]


def test_a_stop_keeps_what_waits_for_feedback(make, tmp_path):
    """A restart is no reason to learn the default in the place of feedback that comes a minute later."""
    path, standin = str(tmp_path / "dollars"), StandIn()

    def stop(app):
        async def run():
            events = iter(["lifespan.startup", "lifespan.shutdown"])

            async def receive():
                return {"type": next(events)}

            async def send(message):
                pass

            await app({"type": "lifespan"}, receive, send)

        asyncio.run(run())

    before = make({"small": standin}, ledger=path)
    before.router.decider = aw.Decider(
        str(tmp_path / "journal"), agent={"class": "UCB1", "n_arms": 1}, learn="arrival", seed=1
    )
    (answer,) = chat(before)
    stop(before)
    after = make({"small": standin}, ledger=path)
    after.router.decider = aw.Decider(
        str(tmp_path / "journal"), agent={"class": "UCB1", "n_arms": 1}, learn="arrival", seed=1
    )
    assert ask(after, ("POST", "/v1/feedback", {"id": answer.json()["id"], "score": 1.0}))[0].status_code == 200
    assert [row[1] for row in logged(after)] == [1.0]
    stop(after)
    alone = make({"small": standin})  # nobody will ask again: the journal has the default
    decider = alone.router.decider = aw.Decider(
        str(tmp_path / "other"), agent={"class": "UCB1", "n_arms": 1}, learn="arrival", seed=1
    )
    chat(alone)
    stop(alone)
    del decider
    assert aw.Decider(str(tmp_path / "other")).log().rewards.tolist() == [alone.default]


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
    good: dict[str, Any] = {"url": "http://127.0.0.1:1/v1", "model": "m", "input": 1.0, "output": 1.0}
    for name, value in (
        ("timeout", 0), ("max_tokens", 0), ("input", -1.0), ("output", "1"), ("output", True), ("model", 3),
        ("limit", "n"),
        ("url", "ftp://x"), ("url", "http://"), ("url", "http://a:x/v1"), ("url", "http://[::1/v1"),
        ("url", "http://.example/v1"), ("url", "http://127.0.0.1:99999/v1"), ("url", "http://exa mple/v1"),
    ):  # fmt: skip
        (answer,) = ask(app, ("PUT", "/v1/models/new", good | {name: value}))
        assert answer.status_code == 400, (name, value)
        assert answer.json()["error"]["message"].startswith(f"{name} of the model 'new' must be")
    (answer,) = ask(app, ("PUT", "/v1/models/new", {"url": good["url"]}))
    assert "the model 'new' needs model" in answer.json()["error"]["message"] and list(app.models) == ["small"]
    (answer,) = ask(app, ("PUT", "/v1/models/new", good | {"key_from": "NO_SUCH_KEY"}))
    assert answer.status_code == 400 and "environment as NO_SUCH_KEY" in answer.json()["error"]["message"]
    assert ask(app, ("PUT", "/v1/models/a%0Ab", good))[0].status_code == 400  # its name goes into a header
    (answer,) = ask(app, ("POST", "/v1/feedback", {"id": 3, "score": 1.0}))
    assert answer.status_code == 400
    import configuration
    import wire

    assert wire.usage_of({"usage": {"prompt_tokens": -5}}) is None  # would give money back
    listed = [good | {"name": "a"}]
    plain = {"models": listed, "dollars_per_thousand": 1.0}
    for config, why in (
        ("x", "Expecting value"), ("{}", "at least one"), ('{"models": []}', "at least one"),
        ("3", "an object with a list of models, got 3"), ('{"models": 3}', "an object with a list of models"),
        ('{"models": [3]}', "a model is an object"), (plain | {"models": listed * 2}, "each once"),
        ({"models": listed}, "dollars_per_thousand must be"), (plain | {"dollars": -1}, "dollars must be"),
        (plain | {"dollars": 0}, "dollars must be"), (plain | {"dollars_per_thousand": 1e999}, "must be a number"),
        (plain | {"dolars": 5.0}, "'dolars' is unknown"),  # else there would be no budget, and nobody would know
        (plain | {"patience": "x"}, "patience must be"), (plain | {"default": 7}, "default must be"),
        (plain | {"port": "x"}, "port must be"), (plain | {"key": 5}, "key must be"),
        (plain | {"journal": 5}, "journal must be"), (plain | {"explore": 2}, "explore must be"),
        (plain | {"prompts": 0}, "prompts must be"), (plain | {"service": "nowhere"}, "service must be"),
        (plain | {"budget": "b"}, "no service is given"),
        (plain | {"budget": "b", "service": "http://x"}, "request_dollars must be"),
    ):  # fmt: skip
        path = tmp_path / "router.json"
        path.write_text(config if isinstance(config, str) else json.dumps(config))
        with pytest.raises(SystemExit, match=r"router\.json") as error:
            configuration.read_config(str(path))
        assert why in str(error.value), config
    path.write_text(json.dumps(plain))
    assert configuration.read_config(str(path))["models"][0].name == "a"


def test_the_configuration_of_the_page_is_one(make, monkeypatch, tmp_path):
    """Both files of docs/router.md as they stand there, and what is left of the journal after a start."""
    import configuration
    import proxy

    page = (Path(__file__).parents[2] / "docs" / "router.md").read_text()
    monkeypatch.setenv("LARGE_KEY", "k")
    monkeypatch.chdir(tmp_path)
    for i, text in enumerate(re.findall(r"```json\n(.*?)```", page, re.DOTALL)):
        Path(f"{i}.json").write_text(text)
        app = proxy.make(configuration.read_config(f"{i}.json"))
        assert list(app.models) == ["small", "large"] and app.bounded
        with pytest.raises((RuntimeError, BlockingIOError)):  # the journal, or the ledger, is held by one process
            proxy.make(configuration.read_config(f"{i}.json"))
        app.ledger.close()
        app.router.close()


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
    for text, line in (("rubbish\n{}\n", 1), ('{"learnt": "a"}\n{"paid": "b"}\n{"learnt": "a"}\n', 2)):
        Path(path).write_text(text)  # a payment that cannot be read would be money to be spent again
        with pytest.raises(ValueError, match=f"line {line}"):
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
    import router
    from armwise.service.engine.application import Application
    from armwise.service.server.app import Service
    from armwise.service.server.config import Config
    from tests.service.serving import Running

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
    import armwise as aw
    import router
    from armwise.service.engine.application import Application
    from armwise.service.server.app import Service
    from armwise.service.server.config import Config
    from tests.service.serving import Running

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
