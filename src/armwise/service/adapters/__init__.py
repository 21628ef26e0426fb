"""Protocols of other people, each in a folder: Personalizer's API is the first.

May import the web room and what lies below it. Architecture invariant: an adapter uses the engine's public verbs only;
a new protocol touches neither engine nor journal.
"""
