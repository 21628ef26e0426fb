"""Requests: one decision, a ranking, several slots; the draw that answers them.

It may import model, journal, agents, features and core.
Invariant: the arm is drawn with exactly the probability that is answered and journaled.
"""
