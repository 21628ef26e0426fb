"""``Decider`` and ``Client``: the same verbs in memory, in a folder and over HTTP.

It imports engine, model, log, journal, features, offline and core.
Invariant: memory, folder and HTTP give the same answers to the same calls.
"""
