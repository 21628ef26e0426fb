"""Experiments that may be looked at after every unit: lifts over control, verdicts, mismatch of shares, traffic.

It may import logs and core.
Invariant: with a look after every unit, the chance of ever stopping wrongly is at most the stated risk.
"""
