"""The own API under schemathesis: no 5xx, nothing that its OpenAPI document does not say; and hostile bodies."""

from __future__ import annotations

import itertools
import re
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase
from openapi_spec_validator import validate
from schemathesis.specs.openapi.checks import positive_data_acceptance
from serving import Running

from armwise.serve.app import Service
from armwise.serve.config import Config
from armwise.serve.web.keys import Key, digest
from armwise.serve.web.openapi import document

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


OPERATIONS = [(method, path) for path, methods in document()["paths"].items() for method in methods]
CASES = [
    pytest.param(method, path, mode, id=f"{mode.value} {method} {path}")
    for method, path in OPERATIONS
    for mode in schemathesis.GenerationMode
    if mode is schemathesis.GenerationMode.POSITIVE or path not in ("/healthz", "/readyz")  # these take nothing
]
_WHERE, _WHAT = (
    r"(decisions\[\d+\]: |log, row \d+: )?",
    r"(\w+ arms have the id|excluded: |every arm is excluded|arm .* is not)",
)
BEYOND = re.compile(f'"message":"{_WHERE}{_WHAT}')  # what a schema cannot say


def validated(case: Any, response: Any) -> None:
    """All checks of schemathesis; a valid decision may still be refused for what no schema can say."""
    unsaid = response.status_code == 400 and BEYOND.search(response.text) is not None
    case.validate_response(response, headers=KEY, excluded_checks=[positive_data_acceptance] if unsaid else [])


def test_the_document_is_valid_openapi() -> None:
    validate(document())


@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_every_operation_keeps_to_the_document(shared: Any, method: str, path: str, mode: Any) -> None:
    operation = schemathesis.openapi.from_url(f"{shared.url}/openapi.json")[path][method.upper()]

    @FUZZ
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def fuzz(case: Any) -> None:
        validated(case, case.call(headers=KEY))

    fuzz()


def test_sequences_of_operations_keep_to_the_document(shared: Any) -> None:
    schema = schemathesis.openapi.from_url(f"{shared.url}/openapi.json")
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

    Machine.run(settings=hypothesis.settings(FUZZ, max_examples=8, stateful_step_count=6))
    counts = shared.service.metrics.requests
    linked = [counts["POST", f"v1/decisions/{{}}/{what}", 200] for what in ("reward", "activate")]
    assert min(counts["GET", "v1/decisions/{}", 200], *linked) > 0, "the links between operations were not followed"
