"""Agents for rewards that are linear in the features: LinUCB and its relatives (survey 4.1).

It may import models, theory, core and native.
Invariant: each agent equals its paper's formula with explicit inverses over the whole history.
"""
