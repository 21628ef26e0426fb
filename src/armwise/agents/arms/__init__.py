"""Bandits with K arms and no context: UCB1, Exp3, Thompson sampling, epsilon-greedy (survey 2).

It may import models, theory, core and native.
Invariant: one decision and a block of decisions give the same bits.
"""
