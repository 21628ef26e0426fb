"""Models that predict a reward, with its uncertainty: ridge regression, Gaussian processes, nested models, kernels.

It may import core, native and features.
Invariant: a model after n updates equals the model fitted to the n rows at once.
"""
