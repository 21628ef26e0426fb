"""Agents over arbitrary policy classes (survey 4.3), and the oracles that search them."""
