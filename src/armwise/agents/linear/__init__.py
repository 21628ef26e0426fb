"""Agents under linear realizability (survey 4.1)."""
