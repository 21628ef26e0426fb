"""What a ridge model explains of the squares of its rewards (native/fits.cpp)."""

from armwise.numerics._native import fits as _fits

explained = _fits.explained
