"""The engine: draws arms, commits events, learns from the journal; no web framework; ``requests`` and ``learning``.

It may import model, journal, features, agents and core.
Invariant: a replay of the journal, a recovery from a snapshot and the running model agree to the bit.
"""
