"""How a request becomes an arm: tokens become an agent's view, the view a distribution, that an arm; what is in flight.

It imports journal, features, agents and core, and of model what is inside agents.
Invariant: an arm is drawn with exactly the probability that is answered, and drawing changes nothing that was learnt.
"""
