"""Azure AI Personalizer's API, so that its official clients work unmodified.

It imports web, log, engine, model, journal and features.
Invariant: a request gets the status and the fields that Personalizer's clients expect.
"""
