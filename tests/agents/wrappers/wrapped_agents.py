"""Policies and an agent for the tests of the wrappers."""

import numpy as np

from armwise.core.agent import Agent
from armwise.core.saving import Saved

TABLE = np.array([[0, 1, 2], [2, 2, 0], [1, 0, 0], [2, 1, 2]])  # arm of each policy on contexts 0, 1, 2


class Lookup(Saved):
    """A policy that can be saved: the arm for context [i] is arms[i]."""

    def __init__(self, arms):
        self.arms = arms

    def __call__(self, context):
        return int(self.arms[int(context[0])])


class Coin(Saved):
    """A randomised policy: the same distribution whatever the context."""

    def __init__(self, probabilities):
        self.probabilities = probabilities

    def __call__(self, context):
        return self.probabilities


class Recorder(Agent):
    """A three-armed agent that remembers how it was taught; uneven probabilities, and a note."""

    sees = "nothing"
    n_arms = 3
    q = np.array([0.7, 0.2, 0.1])

    def __init__(self, *, seed=None):
        super().__init__(seed=seed)
        self.taught = []

    def _probabilities(self, context):
        return self.q

    def _choose(self, context):
        return super()._choose(context)._replace(note="mine")

    def _learn(self, context, choice, reward):
        self.taught.append((choice, reward))


def lookups():
    return [Lookup([int(a) for a in row]) for row in TABLE]
