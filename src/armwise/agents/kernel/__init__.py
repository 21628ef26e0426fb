"""Kernel agents (survey 4.2): kernels, one incremental posterior, and four agents over it."""
