"""Client: the verbs of Decider against a real service, through failures on the way."""

import asyncio
import gc
import http.server
import json
import threading
from pathlib import Path

import pytest

import armwise as aw
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.serving import Running

ANSWER = {"id": "e1", "arm": "a", "probability": 1.0, "probabilities": [{"arm": "a", "probability": 1.0}], "version": 1}


@pytest.fixture
def client(tmp_path: Path):
    running = Running(Service(Config(storage=str(tmp_path / "d"))))
    with aw.Client(running.url) as client:
        yield client
    running.stop()


def test_the_verbs_are_those_of_decider(client: aw.Client) -> None:
    made = client.decide({"device": "phone"}, ["red", {"id": "blue", "price": 3}])
    assert made.probability == made.probabilities[made.arm]
    assert [client.reward(made, 1.0).status, client.reward(made.id, 1.0).status] == ["taken", "repeated"]
    with pytest.raises(aw.UnknownDecision):
        client.reward("nobody", 1.0)
    with pytest.raises(ValueError, match="arms"):
        client.decide({}, [])
    assert client.decide({}, ["a"], id="e/1").id == "e/1"
    assert client.reward("e/1", 0.5).status == "taken"
    assert len(client.decide_many([{"arms": ["a"]}, {"arms": ["b"], "context": {"hour": 3}}])) == 2


def test_an_unknown_decision_is_a_field_of_the_answer_and_not_read_from_its_text(client: aw.Client) -> None:
    """A message that is parsed takes an application's name, or an id with the same words, for something else."""
    with pytest.raises(aw.UnknownDecision) as unknown:
        client.reward("a the id b", 1.0)
    assert str(unknown.value) == str(aw.UnknownDecision("a the id b"))
    with aw.Client(f"http://{client.address}", app="no decision has the id e1") as elsewhere:
        with pytest.raises(aw.ServiceError) as refused:
            elsewhere.reward("e1", 1.0)
        assert (refused.value.status, refused.value.decision) == (404, "")


def test_its_log_is_a_log(client: aw.Client) -> None:
    for _ in range(5):
        client.reward(client.decide({"hour": 3}, ["a", "b"]), 1.0)
    assert list(client.log().rewards) == [1.0] * 5


def test_a_client_that_nobody_closes_leaves_no_socket_behind(client: aw.Client) -> None:
    forgotten = aw.Client(f"http://{client.address}", app=client.app)
    forgotten.decide({}, ["a"])
    [connection] = forgotten._idle
    assert connection.sock is not None
    del forgotten
    gc.collect()
    assert connection.sock is None


def test_asyncio(client: aw.Client) -> None:
    async def both() -> str:
        made = await client.adecide({"hour": 3}, ["a", "b"])
        return (await client.areward(made, 1.0)).status

    assert asyncio.run(both()) == "taken"


def test_a_request_that_failed_on_the_way_is_sent_again_with_the_same_id() -> None:
    bodies: list[bytes] = []

    class Flaky(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            if len(bodies) == 1:
                self.connection.close()  # after it may have been decided
                return
            status, answer = (503, b"{}") if len(bodies) == 2 else (201, json.dumps(ANSWER).encode())
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Flaky)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with aw.Client(f"http://127.0.0.1:{server.server_port}") as client:
            assert client.decide({}, ["a"]).arm == "a"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert len(bodies) == 3
    assert len(set(bodies)) == 1  # one id: what was decided is found again


def test_bad_settings_are_named() -> None:
    with pytest.raises(ValueError, match="url must begin with http"):
        aw.Client("127.0.0.1:8484")
    with pytest.raises(ValueError, match="timeout"):
        aw.Client("http://127.0.0.1:8484", timeout=0.0)
    with pytest.raises(aw.ServiceError, match="cannot be reached"):
        aw.Client("http://127.0.0.1:1", retries=0).decide({}, ["a"])
