"""Agents that rank: a list of k arms, one per slot, and what the clicks on it teach.

It may import linear, wrappers, models, theory, core and native.
Invariant: a slot's probability is that of its arm given the arms above, exactly, or None.
"""
