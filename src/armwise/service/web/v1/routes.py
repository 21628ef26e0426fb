"""Every route of the service's own API: a new verb is a handler in this folder and its file's ``ROUTES`` here."""

from __future__ import annotations

from armwise.service.web.v1 import applications, batch, decisions, experiments, log_stream, rankings, rollout

ROUTES = [
    *decisions.ROUTES,
    *batch.ROUTES,
    *rankings.ROUTES,
    *applications.ROUTES,
    *rollout.ROUTES,
    *log_stream.ROUTES,
    *experiments.ROUTES,
]
