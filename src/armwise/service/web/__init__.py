"""The HTTP API of the service: admission, keys, metrics, requests and responses.

It imports log, engine, model, journal and features.
Invariant: bad input gets a 4xx with a reason, in bounded time and memory.
"""
