"""Compiled kernels and small exact tools; every hot loop of the package lives here."""
