"""Kernel agents: GP-UCB, CGP-UCB, KernelUCB and SupKernelUCB (survey 4.2).

It may import linear, models, theory, core and native.
Invariant: the incremental posterior equals the one that inverts the whole matrix.
"""
