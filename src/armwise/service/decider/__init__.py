"""Decisions with names: the same verbs in memory, on disk and over HTTP."""
