"""Reductions to K-armed bandits (survey 3), and wrappers that turn one agent into another."""
