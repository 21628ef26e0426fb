"""Feature maps, row by row: standardised and placed numbers, indicators of categories, random Fourier features."""

from armwise.native._native import maps as _maps

columns = _maps.columns
fourier = _maps.fourier
