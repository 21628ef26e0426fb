"""Measurements side by side with peers, in one run, printing ratios. Each module runs alone: python -m benchmarks.X."""
