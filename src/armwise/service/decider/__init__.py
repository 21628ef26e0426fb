"""``Decider`` and ``Client``: the same verbs in memory, in a folder and over HTTP.

It may import server, experiments, log, engine, model, journal, export, offline, agents, features and core.
Invariant: memory, folder and HTTP give the same answers to the same calls.
"""
