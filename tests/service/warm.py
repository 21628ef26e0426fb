"""Imported once by the process that services are forked from: loads and compiles what each would need."""

import msgspec

import armwise.service.server.run  # noqa: F401
from armwise.service.journal.events import Creation
from armwise.service.model.build import build_model
from armwise.service.model.trial import rehearse

model = build_model(Creation())
for k in range(2):
    rehearse(model, k)
msgspec.json.encode(model.settings)
