"""Outcomes for flags that armwise answers: what OpenFeature's ``track`` has, sent where the protocol has no endpoint.

tracking = Tracking("http://127.0.0.1:8000", {"X-API-Key": key})
openfeature.api.add_hooks([tracking])               # every evaluation was shown; leave it out where some are not
tracking.track("purchase", "user-7", flag="banner", value=3.5)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests
from openfeature.flag_evaluation import FlagEvaluationDetails, FlagValueType
from openfeature.hook import Hook, HookContext, HookHints


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
            self.track("exposure", unit, flag=hook_context.flag_key, decision=decision)

    def track(self, name: str, unit: str, **details: Any) -> list[dict[str, Any]]:
        """Report an event of a unit; ``flag``, ``decision``, ``value``, ``final`` and ``cost`` are read."""
        body: Any = {"name": name, "context": {"targetingKey": unit}, "details": details}
        answer = self._session.post(self._url, json=body, timeout=self._timeout)
        answer.raise_for_status()
        counted: list[dict[str, Any]] = answer.json()["counted"]
        return counted
