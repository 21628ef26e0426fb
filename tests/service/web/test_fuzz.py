"""The own API under schemathesis: no 5xx, nothing that its OpenAPI document does not say; and hostile bodies."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import hypothesis
import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase
from openapi_spec_validator import validate
from schemathesis.checks import not_a_server_error
from schemathesis.core.errors import InvalidSchema
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance, status_code_conformance

from armwise.service.server.app import Service
from armwise.service.server.config import Config
from armwise.service.web.keys import Key, digest
from armwise.service.web.v1.openapi import document
from tests.service.serving import Running

KEY = {"Authorization": "Bearer secret"}
FUZZ = hypothesis.settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    key = Key(name="fuzz", sha256=digest("secret"), roles=["admin"])
    running = Running(Service(Config(storage=str(tmp_path_factory.mktemp("data")), keys=[key])))
    yield running
    running.stop()


@functools.cache
def read(running: Running) -> Any:
    """The document that a service shows, read once."""
    return schemathesis.openapi.from_url(f"{running.url}/openapi.json")


ROUTES = Service(Config(storage=":none:")).router.routes
DOCUMENT = document(ROUTES)
NOTHING = ("/healthz", "/readyz", "/openapi.json", "/")  # these take nothing
OPERATIONS = [
    (method, path)
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if not path.startswith("/personalizer") and path != "/v1/live"  # which has no end
]
DIALECT = [
    (method, path)
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if path.startswith(("/personalizer/v1.0", "/personalizer/v1.1-preview.3/multislot"))
]
DESCRIBED = {  # agents, whose arguments are not in the document, and what experiments are made of
    "/v1/apps/{id}", "/v1/versions", "/v1/experiments/{id}",
    *(f"/v1/experiments/{{id}}/{verb}" for verb in ("assignments", "exposures", "outcomes", "erasures")),
}  # fmt: skip
CASES = [
    pytest.param(method, path, mode, id=f"{mode.value} {method} {path}")
    for method, path in OPERATIONS
    for mode in schemathesis.GenerationMode
    if mode is schemathesis.GenerationMode.POSITIVE or path not in NOTHING
]
_WHERE, _WHAT = (
    r"(decisions\[\d+\]: |log, row \d+: )?",
    r"(\w+ arms have the id|excluded: |every arm is excluded|arm .* is not|the body: arms and catalogue were both|"
    r"the body: Object missing required field `arms`|k must be at most|k is |pinned|at_most|rewards must|slots must|"
    r'the body must have \\"rewards|the body: Expected `int`, got `float`)',  # 14.0 is an integer to a schema
)
BEYOND = re.compile(f'"message":"{_WHERE}{_WHAT}')  # what a schema cannot say


def validated(case: Any, response: Any) -> None:
    """All checks of schemathesis; a valid decision may still be refused for what no schema can say."""
    unsaid = response.status_code == 400 and (
        BEYOND.search(response.text) is not None or case.operation.path in DESCRIBED
    )
    excluded = [positive_data_acceptance] if unsaid else []
    if response.status_code == 413:  # refused before it was read
        excluded.append(negative_data_rejection)
    case.validate_response(response, headers=KEY, excluded_checks=excluded)


def test_the_document_is_valid_openapi_and_complete() -> None:
    validate(DOCUMENT)
    there = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert there == {(route.method, "/" + route.path.replace("{}", "{id}")) for route in ROUTES}
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], f"nothing says what {method} {path} does"
            written = json.dumps(operation)
            assert '"schema": {"type": "object"}' not in written, f"{method} {path} says nothing of its form"
            if not path.startswith("/personalizer"):
                assert "requestBody" in operation or method in ("get", "delete") or "{id}" in path or "roll" in path


def test_every_example_is_one_and_is_accepted(run: Callable[..., Any]) -> None:
    client = run().client
    schemas = DOCUMENT["components"]["schemas"]
    bodies = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(DOCUMENT["paths"])))
    assert {name for name in bodies if "examples" not in schemas[name]} == set()  # whatever is sent or answered
    for name, schema in schemas.items():
        for example in schema.get("examples", []):
            jsonschema.validate(example, {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}})
    for id in ("e1", "e2"):
        client.post("/v1/decisions", json={"arms": ["a"], "id": id})
    client.post("/v1/rankings", json={"arms": ["salad"], "k": 1, "id": "e1"})
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if body is None or path.startswith(("/personalizer", "/ofrep")):
                continue
            [example] = schemas[body["$ref"].rpartition("/")[2]]["examples"]
            place = path.replace("{id}", {"/v1/versions/{id}": "bold", "/v1/apps/{id}": "news"}.get(path, "e1"))
            answer = client.request(method, place, json=example)
            assert answer.status_code < 300, f"{method} {path}: {answer.text}"


@pytest.fixture(scope="module")
def dialect(tmp_path_factory: pytest.TempPathFactory) -> Any:
    running = Running(Service(Config(storage=str(tmp_path_factory.mktemp("dialect")))))
    yield running
    running.stop()


ANSWERED = {  # what the dialect is asked, and answers as its schema says
    "POST multislot/rank": {"actions": [{"id": "a", "features": [{"n": 1}]}, {"id": "b", "features": []}],
                            "slots": [{"id": "top", "baselineAction": "a"}], "eventId": "e"},
    "POST multislot/events/e/reward": {"reward": [{"slotId": "top", "value": 1}]},
    "POST rank": {"actions": [{"id": "a", "features": []}], "contextFeatures": None, "eventId": "r"},
    "POST events/r/reward": {"value": 0.5},
    "GET configurations/service": None,
    "PUT configurations/service": {"rewardWaitTime": "PT10M", "defaultReward": 0, "rewardAggregation": "earliest"},
    "GET configurations/policy": None,
    "PUT configurations/policy": {"name": "bold", "arguments": '{"class": "LinUCB"}'},
    "DELETE configurations/policy": None,
    "GET model/properties": None,
    "GET logs/properties": None,
    "POST evaluations": {"name": "n", "startTime": "2000-01-01T00:00:00Z", "endTime": "2999-01-01T00:00:00Z",
                         "policies": [{"name": "bold", "arguments": '{"class": "LinUCB"}'}]},
    "PUT evaluations/x": {"name": "n", "startTime": "2000-01-01T00:00:00Z", "endTime": "2999-01-01T00:00:00Z"},
    "GET evaluations": None,
    "GET evaluations/x": None,
    "POST configurations/applyFromEvaluation": {"evaluationId": "x", "policyName": "none"},
}  # fmt: skip


@pytest.mark.parametrize("prefix", ["personalizer/v1.0", "personalizer/v1.1-preview.3", "personalizer"])
def test_the_dialect_takes_and_answers_what_the_document_says(run: Callable[..., Any], prefix: str) -> None:
    """A schema that says something else would make clients which cannot speak to the service."""
    client = run().client
    components = {"components": {"schemas": DOCUMENT["components"]["schemas"]}}
    for words, body in ANSWERED.items():
        method, place = words.split(" ")
        path = (
            f"/{prefix}/{place}".replace("/e/", "/{id}/")
            .replace("/r/", "/{id}/")
            .replace("evaluations/x", "evaluations/{id}")
        )
        operation = DOCUMENT["paths"][path][method.lower()]
        if body is not None:
            [taken] = operation["requestBody"]["content"].values()
            jsonschema.validate(body, taken["schema"] | components)
        for _ in range(100):
            answer = client.request(method, f"/{prefix}/{place}", json=body)
            if place != "evaluations/x" or answer.json()["status"] not in ("pending", "Running"):
                break
        said = operation["responses"][str(answer.status_code)]
        for content in said.get("content", {}).values():
            jsonschema.validate(answer.json(), content["schema"] | components)
        assert answer.status_code < 300 or "apply" in place, answer.text


@pytest.mark.parametrize(("method", "path"), DIALECT)
def test_the_dialect_never_fails(dialect: Any, method: str, path: str) -> None:
    """Bodies of any kind: no 5xx, and no status that the document does not name."""
    operation = read(dialect)[path][method.upper()]

    @hypothesis.settings(FUZZ, max_examples=4)
    @hypothesis.given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE))
    def fuzz(case: Any) -> None:
        case.validate_response(case.call(), checks=[not_a_server_error, status_code_conformance])

    fuzz()


@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_every_operation_keeps_to_the_document(shared: Any, method: str, path: str, mode: Any) -> None:
    operation = read(shared)[path][method.upper()]

    @hypothesis.settings(FUZZ, max_examples=10 if "decisions" in path else 6)
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def fuzz(case: Any) -> None:
        validated(case, case.call(headers=KEY))

    for seed in range(6):  # some sequences run into arrays that the generator cannot violate: then another one
        try:
            hypothesis.seed(seed)(fuzz)()
            break
        except InvalidSchema:
            if seed == 5:
                raise


def test_sequences_of_operations_keep_to_the_document(shared: Any) -> None:
    whole = schemathesis.openapi.from_url(f"{shared.url}/openapi.json")  # of its own: it is given other settings
    schema = whole.include(path_regex="^/v1/(decisions|batch|explanations|lessons|agents|settings|log)")
    runs = itertools.count()
    schema.config.generation.update(modes=[schemathesis.GenerationMode.POSITIVE])

    class Machine(schema.as_state_machine()):  # type: ignore[misc]
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            if isinstance(case.body, dict) and isinstance(case.body.get("id"), str):
                # What was decided before is answered 200: what comes of a run must not depend on the runs before it.
                case.body["id"] = f"{next(runs)}{case.body['id']}"[:256]
            return {"headers": KEY}

        def validate_response(self, response: Any, case: Any, **options: Any) -> None:
            validated(case, response)

    counts = shared.service.metrics.requests
    linked = [("GET", "v1/decisions/{}", 200)]
    linked += [("POST", f"v1/decisions/{{}}/{what}", 200) for what in ("reward", "activate")]
    # Which links a run follows is chance, and depends on the versions of the generators: run until each was followed.
    for seed in range(12):
        hypothesis.seed(seed)(Machine)
        Machine.run(settings=hypothesis.settings(FUZZ, max_examples=8, stateful_step_count=6))
        if all(counts[link] for link in linked):
            break
    followed = {link: counts[link] for link in linked}
    assert min(followed.values()) > 0, f"the links between operations were not followed: {followed}"
