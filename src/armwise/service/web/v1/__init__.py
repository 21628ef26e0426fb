"""The service's own API: one file per group of verbs, with its handlers and its routes.

It imports the rooms that web imports, and the rest of web.
Invariant: a handler reads, calls the engine's public verbs and answers; ``schemas`` has each field on the wire.
"""
