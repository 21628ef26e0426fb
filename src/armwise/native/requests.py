"""JSON as most requests have it, taken apart into tokens in one call (native/requests.cpp, native/journaled.cpp)."""

from armwise.native._native import requests as _requests

blake = _requests.blake
read_part = _requests.read_part
read_offered = _requests.read_offered
read_decision = _requests.read_decision
distribution = _requests.distribution
linked = _requests.linked
read_journaled = _requests.read_journaled
