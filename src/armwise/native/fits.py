"""What a ridge model explains of the squares of its rewards (native/fits.cpp)."""

from armwise.native._native import fits as _fits

explained = _fits.explained
