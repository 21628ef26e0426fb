"""Agents over an estimate of every arm's reward: SquareCB, FastCB, RegCB, with ridge or a scikit-learn regressor.

It may import oracle, oracles, linear, models, theory, core and native.
Invariant: compiled blocks over ridge give the same choices, to the bit, as one round at a time.
"""
