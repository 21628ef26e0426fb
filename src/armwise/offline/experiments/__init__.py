"""Experiments that may be looked at after every unit: lifts over control, verdicts, mismatch of shares, traffic.

It imports core.
Invariant: whoever looks after every unit stops for a wrong reason with a chance of at most the stated risk.
"""
