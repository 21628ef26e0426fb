"""The HTTP API of the service: admission, keys, metrics, requests and responses.

It may import log, engine, model, journal, agents, features and core.
Invariant: bad input gets a 4xx with a reason, in bounded time and memory.
"""
