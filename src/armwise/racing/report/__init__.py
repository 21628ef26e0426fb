"""The survey's races as a document: chapters, pictures, LaTeX and HTML.

It imports run, results, agents, environments, theory and core.
Invariant: a page needs no other file, and the script in it repeats its numbers.
"""
