"""Decisions under constraints: hard budgets, prices of resources, pacing, a baseline to beat.

It may import arms, wrappers, linear, oracle, models, policies, theory, core and native.
Invariant: a hard budget is never overspent, to the last bit.
"""
