"""Imported once by the process that services are forked from: loads and compiles what each would need."""

import msgspec

import armwise.serve.run  # noqa: F401
from armwise.serve.journal.events import Creation
from armwise.serve.model.build import build_model
from armwise.serve.model.trial import rehearse

model = build_model(Creation())
for k in range(2):
    rehearse(model, k)
msgspec.json.encode(model.settings)
