"""An agent of your own: a class with three methods gets saving, races, offline evaluation and the service.

    python examples/own_agent.py

Softmax draws each arm with probability proportional to exp(estimate / temperature), over the ridge estimate that
LinUCB uses. It passes `aw.testing.check_agent`, which is how to find out whether an agent keeps the contract.
"""

import numpy as np

import armwise as aw
from armwise.core.agent import positive
from armwise.models.ridge import Ridge


class Softmax(aw.Agent):
    """Better arms more often: p(a) ~ exp(x_a' theta / temperature)."""

    theory = aw.Theory(
        section="-",
        regret="not proved",
        comparator="the best arm of each round",
        assumes="rewards linear in the features",
        reference="Sutton and Barto 2018, 2.8",
        exponent=1.0,
    )
    sees = "features"
    reward_range = (-np.inf, np.inf)
    _learnt = ("model",)  # what learning changes; constructor arguments are kept by their names

    def __init__(self, dim, temperature=0.1, lam=1.0, *, seed=None):
        super().__init__(seed=seed)
        self.dim, self.lam = dim, lam
        self.temperature = positive("temperature", temperature)
        self.model = Ridge(dim, lam)

    def _probabilities(self, X):
        means, _ = self.model.estimate(X)
        odds = np.exp((means - means.max()) / self.temperature)
        return odds / odds.sum()

    def _learn(self, X, choice, reward):
        self.model.update(X[choice.arm], reward)


def main():
    world = aw.environments.Linear(n_arms=5, dim=6, noise=0.1)
    agents = {"Softmax": Softmax(6, temperature=0.02), "LinUCB": aw.LinUCB(6, alpha=0.3), "Exp3": aw.Exp3(5)}
    result = aw.race(agents, world, horizon=2000, seeds=5, name="own agent")
    print(result.table()[["agent", "regret", "std_error", "us_per_decision"]].round(2).to_string(index=False))
    return result


if __name__ == "__main__":
    main()
