"""Adversarial rewards and expert advice: Exp4, Exp4.P, VE (survey 5).

It may import wrappers, policies, theory, core and native.
Invariant: each agent equals the survey's formulas written out.
"""
