"""Outcomes for flags that armwise answers: what OpenFeature's ``track`` has, sent where the protocol has no endpoint.

tracking = Tracking("http://127.0.0.1:8484", {"X-API-Key": key})
openfeature.api.add_hooks([tracking])               # every evaluation was shown; leave it out where some are not
openfeature.api.set_provider(TrackingProvider(OFREPProvider("http://127.0.0.1:8484", ...), tracking))
client.track("purchase", EvaluationContext("user-7"), TrackingEventDetails(3.5, {"flag": "banner"}))
tracking.track("purchase", "user-7", flag="banner", value=3.5)              # the same, and says what it counted for
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import requests
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.flag_evaluation import FlagEvaluationDetails, FlagValueType
from openfeature.hook import Hook, HookContext, HookHints
from openfeature.track import TrackingEventDetails


class Tracking(Hook):
    """A hook that reports what was shown, and ``track`` for what came of it."""

    def __init__(self, base_url: str, headers: Mapping[str, str] | None = None, timeout: float = 5.0) -> None:
        self._url, self._timeout = f"{base_url.rstrip('/')}/ofrep/v1/track", timeout
        self._session = requests.Session()
        self._session.headers.update(headers or {})

    def after(self, hook_context: HookContext, details: FlagEvaluationDetails[FlagValueType], hints: HookHints) -> None:
        decision = details.flag_metadata.get("decision")
        unit = hook_context.evaluation_context.targeting_key
        if decision and unit:
            self.report("exposure", unit, flag=hook_context.flag_key, decision=decision)

    def track(self, name: str, unit: str, **details: Any) -> list[dict[str, Any]]:
        """Report an event of a unit; ``flag``, ``decision``, ``value``, ``final`` and ``cost`` are read."""
        body: Any = {"name": name, "context": {"targetingKey": unit}, "details": details}
        answer = self._session.post(self._url, json=body, timeout=self._timeout)
        answer.raise_for_status()
        counted: list[dict[str, Any]] = answer.json()["counted"]
        return counted

    def report(self, name: str, unit: str, **details: Any) -> None:
        """``track``, but an event that is not taken is logged: it must not keep a user from what was decided."""
        try:
            self.track(name, unit, **details)
        except requests.RequestException as error:
            answer = "" if error.response is None else error.response.text
            logging.getLogger("flags").warning("%s was not tracked: %s %s", name, error, answer)


class TrackingProvider(OFREPProvider):
    """OFREP's provider, whose ``client.track`` reaches the service; an event that is not taken is logged."""

    def __init__(self, provider: OFREPProvider, tracking: Tracking) -> None:
        super().__init__(provider.base_url, headers_factory=provider.headers_factory, timeout=provider.timeout)
        self._tracking = tracking

    def track(
        self, tracking_event_name: str, evaluation_context: EvaluationContext | None = None,
        tracking_event_details: TrackingEventDetails | None = None,
    ) -> None:  # fmt: skip
        unit = evaluation_context.targeting_key if evaluation_context is not None else None
        given = tracking_event_details or TrackingEventDetails()
        details = dict(given.attributes) if given.value is None else {**given.attributes, "value": given.value}
        self._tracking.report(tracking_event_name, unit or "", **details)
