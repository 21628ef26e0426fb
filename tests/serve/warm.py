"""Imported once by the process that services are forked from: loads and compiles what each would need."""

import msgspec

import noregret.serve.run  # noqa: F401
from noregret.serve.engine import _warm
from noregret.serve.model import Creation

model = Creation().build()
_warm(model.copy())
msgspec.json.encode(model.settings)
