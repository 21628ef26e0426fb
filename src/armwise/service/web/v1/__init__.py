"""The service's own API: one file per group of verbs, with its handlers and its routes.

It may import web, experiments, log, engine, model, journal, features and core.
Invariant: a handler parses, calls public methods of the engine and answers; ``schemas`` has every field of the API.
"""
