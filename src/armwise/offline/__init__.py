"""Off-policy evaluation and learning: what another policy would have earned on logged decisions (survey 6).

It may import agents, policies, core and native.
Invariant: a number that the log does not support comes with a verdict that says so.

>>> import armwise as aw
>>> log = aw.offline.Log(arms=[0, 1] * 50, rewards=[1, 0, 0, 0] * 25, probabilities=[0.5] * 100, n_arms=2)
>>> aw.offline.evaluate(log, aw.Constant(0), estimators=["ips"])["ips"].value
0.5
"""

from armwise.core.public_names import PublicNames

_public = PublicNames(__name__, stub=f"{__file__}i")
__all__ = sorted(_public.homes)
__getattr__, __dir__ = _public.load, _public.listed
