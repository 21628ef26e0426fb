"""Theory of each agent, and advice on which one to take: bounds, hypotheses, the survey's table, advice, certificates.

It may import core only.
Invariant: a printed bound has had its hypotheses checked against the agent and the world.
"""
