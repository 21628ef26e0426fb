"""The service's own API: one file per group of verbs, with its handlers and its routes.

It imports what web imports, and the other modules of web.
Invariant: a handler parses, calls public methods of the engine and answers; ``schemas`` has every field of the API.
"""
