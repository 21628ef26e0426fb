"""An experiment of a running service, over HTTP: the verbs of ``HostedExperiment``."""

from __future__ import annotations

import json
import math
import urllib.parse
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from armwise.features.encoding.from_python import read_context
from armwise.offline.experiments.verdict import ArmResult, EarlyLook, ExperimentVerdict
from armwise.service.decider.client import Client
from armwise.service.experiments.arguments import (
    read_metric_name,
    read_outcome_id,
    read_said,
    read_unit,
    read_value,
)
from armwise.service.experiments.assignment import Assignment, OutcomeReceipt
from armwise.service.experiments.hosted import MAX_BATCH
from armwise.service.log.retain import Erased


class RemoteExperiment:
    """The verbs of ``Experiment`` over HTTP; a retry changes nothing twice."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self.name = client, name
        self._path = f"/v1/experiments/{urllib.parse.quote(name, safe='')}"

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        sent = None if body is None else msgspec.json.encode(body)
        return json.loads(self._client.send(method, self._path + path, sent))

    def _change(self, by: str, why: str, **changes: Any) -> dict[str, Any]:
        by, why = read_said(by, why)
        return dict(self._ask("PATCH", "", changes | {"by": by, "why": why})["experiment"])

    def create(self, told: dict[str, Any]) -> None:
        """Create it, or find the existing one."""
        self._ask("PUT", "", told)

    def assign(self, units: Sequence[tuple[str, Any]]) -> list[Assignment]:
        """The arms of units."""
        found: list[Assignment] = []
        for start in range(0, len(units), MAX_BATCH):
            some = [{"unit": read_unit(unit), "context": json.loads(read_context(context)[0])} for unit, context in
                    units[start : start + MAX_BATCH]]  # fmt: skip
            answer = self._ask("POST", "/assignments", {"units": some})["assignments"]
            found += [Assignment(each["arm"], each["unit"], each["reason"], each["probability"]) for each in answer]
        return found

    def expose(self, units: Sequence[str]) -> list[bool]:
        """Record that units saw their arms."""
        return list(self._ask("POST", "/exposures", {"units": [read_unit(unit) for unit in units]})["exposed"])

    def outcome(self, outcomes: Sequence[tuple[str, float, str | None, str | None]]) -> list[OutcomeReceipt]:
        """Report outcomes; each without an id gets one, so that a retry counts once."""
        found: list[OutcomeReceipt] = []
        for start in range(0, len(outcomes), MAX_BATCH):
            some = [
                {"unit": read_unit(unit), "value": read_value(value), "metric": read_metric_name(metric),
                 "id": uuid.uuid4().hex if id is None else read_outcome_id(id)}
                for unit, value, metric, id in outcomes[start : start + MAX_BATCH]
            ]  # fmt: skip
            answer = self._ask("POST", "/outcomes", {"outcomes": some})["outcomes"]
            found += [msgspec.convert(each, OutcomeReceipt) for each in answer]
        return found

    def verdict(self) -> ExperimentVerdict:
        """Return the current verdict."""
        told = self._ask("GET", "/verdict")["verdict"]
        early = tuple(EarlyLook(**(each | {"results": _results(each["results"])})) for each in told.pop("early"))
        results, notes, rests = _results(told.pop("results")), tuple(told.pop("notes")), tuple(told.pop("rests_on"))
        return ExperimentVerdict(**told, results=results, notes=notes, rests_on=rests, early=early)

    def stop(self, arm: str | None = None, by: str = "", why: str = "") -> str:
        """Give everybody one arm."""
        made = self._change(by, why, stop=arm or "")
        return str(made["stopped"])

    def mode(self, mode: str, by: str = "", why: str = "") -> None:
        """Switch the mode."""
        self._change(by, why, mode=mode)

    def ramp(self, share: float, by: str = "", why: str = "") -> None:
        """Let this share of the eligible units take part."""
        self._change(by, why, ramp=share)

    def split(self, split: Any, by: str = "", why: str = "") -> None:
        """Assign new units with these shares."""
        self._change(by, why, split=split)

    def force(self, unit: str, arm: str | None, by: str = "", why: str = "") -> None:
        """Give a tester this arm."""
        self._change(by, why, force={read_unit(unit): arm})

    def erase(self, unit: str) -> Erased:
        """Delete a unit's assignment and outcomes."""
        return msgspec.convert(self._ask("POST", "/erasures", {"unit": read_unit(unit)}), Erased)

    def to_dict(self) -> dict[str, Any]:
        """Settings and state."""
        return dict(self._ask("GET", "")["experiment"])

    def report_data(self) -> dict[str, Any]:
        """Everything that the page shows."""
        return dict(self._ask("GET", "/report?format=json"))

    def report(self) -> str:
        """The page."""
        return self._client.send("GET", f"{self._path}/report", None).decode()


def _results(told: list[dict[str, Any]]) -> tuple[ArmResult, ...]:
    """The numbers as they were sent: null is an infinite end of an interval, or a number that is not known."""
    found = []
    for each in told:
        known: dict[str, Any] = {}
        for name, value in each.items():
            unknown = math.inf if name.endswith("high") else -math.inf if name.endswith("low") else math.nan
            known[name] = unknown if value is None else value
        found.append(ArmResult(**known))
    return tuple(found)
