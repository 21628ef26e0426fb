"""The algorithms, one room per family and one file per algorithm.

It may import models, features, policies, theory, core and native.
Invariant: every public agent passes every check of ``armwise.testing``.
"""
