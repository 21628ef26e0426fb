"""OpenFeature's remote evaluation protocol (OFREP): applications are flags, outcomes come through tracking.

It may import web, experiments, engine, model, journal, features and core.
Invariant: a unit has one durable decision per flag and window, however often it is evaluated.
"""
