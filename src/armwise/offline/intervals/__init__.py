"""Confidence intervals and sequences for weighted means.

It imports core and native.
Invariant: intervals cover as often as they say.
"""
