"""Agents over any policy class: they call an oracle that searches or fits it (survey 4.3).

It may import linear, models, policies, theory, core and native.
Invariant: policies and regressors are asked once per round, in ``play`` once per block.
"""
