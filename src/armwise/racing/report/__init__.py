"""The survey's races as a document: chapters, pictures, LaTeX and HTML.

It may import run, results, environments, agents, theory and core.
Invariant: a page needs no other file, and the script in it repeats its numbers.
"""
