"""Confidence intervals and sequences for weighted means.

It may import core and native.
Invariant: intervals cover as often as they say.
"""
