"""Requests: one decision, a ranking, several slots; the draw that answers them.

It imports model, journal, features, agents and core.
Invariant: the arm is drawn with exactly the probability that is answered and journaled.
"""
