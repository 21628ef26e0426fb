"""Wrappers that turn one agent into another, and reductions to K-armed bandits (survey 3).

It may import arms, features, policies, theory, core and native.
Invariant: a wrapper's seed determines every draw inside it.
"""
