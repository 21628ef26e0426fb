"""Agents over linear rewards that eliminate arms in stages: SupLinUCB, SupLinREL, and the staging they share.

It may import linear, models, theory, core and native.
Invariant: within a stage the rewards are independent of which rounds it holds, unless the stages share one model.
"""
