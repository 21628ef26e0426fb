"""Experiments: sticky assignments and outcomes in the journal, and the verdict on them.

It may import log, engine, journal, offline, features and core.
Invariant: it keeps nothing of its own: arms, outcomes and settings are the journal's decisions, rewards and changes.
"""
