"""Several agents behind one: model selection by regret balancing, and Corral.

It may import wrappers, theory, core and native.
Invariant: only the base that chose learns, with the probability that was played.
"""
