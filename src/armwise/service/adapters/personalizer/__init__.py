"""Azure AI Personalizer's API, so that its official clients work unmodified.

It may import web, log, engine, model, journal, offline, features and core.
Invariant: a request gets the status and the fields that Personalizer's clients expect.
"""
