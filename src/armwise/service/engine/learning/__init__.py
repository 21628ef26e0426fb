"""Learning: the fold of the journal into models, and the thread that does it.

It may import model, journal, features and core.
Invariant: the same events in the same order give the same models, bit for bit.
"""
