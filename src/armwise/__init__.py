"""armwise: contextual bandits from the paper to production.

>>> import numpy as np, armwise as aw
>>> agent = aw.LinUCB(dim=3, alpha=0.5, lam=1.0, seed=7)
>>> X = np.eye(3)                       # one row of features for each arm
>>> choice = agent.choose(X)
>>> agent.learn(X, choice, reward=1.0)
>>> agent.choose(X).arm == choice.arm
True

``__init__.pyi`` lists the public names. Each is imported when it is first used, so that ``import armwise`` is quick.
"""

from armwise.core.public_names import PublicNames

__version__ = "0.2.0"
_public = PublicNames(__name__, stub=f"{__file__}i")
__all__ = sorted(_public.homes)
__getattr__, __dir__ = _public.load, _public.listed
