"""From a request to an arm: tokens, the agent's view, the distribution, the draw; and the decisions in flight.

It may import model, journal, agents, features, core and native.
Invariant: an arm is drawn with exactly the probability that is answered, and drawing changes nothing that was learnt.
"""
