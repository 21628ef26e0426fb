"""Typed code as users write it. Lines that end in ``# wrong`` must be refused by mypy and by pyright, all others pass.

``check.py`` runs both over this file, strictly; the file itself is never run.
"""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import armwise as aw

Floats = NDArray[np.float64]
X = np.eye(3)

# ---------------------------------------------------------------- agents

agent = aw.LinUCB(dim=3, alpha=0.5, lam=1.0, seed=7)
choice = agent.choose(X)
assert_type(choice, aw.Choice)
assert_type(choice.arm, int)
assert_type(choice.probability, float | None)
agent.learn(X, choice, reward=1.0)
assert_type(agent.clone(seed=8), aw.LinUCB)
assert_type(agent.probabilities([[0.0, 1.0, 0.5]]), Floats)
assert_type(agent.play(np.ones((5, 2, 3)), np.ones((5, 2))).rewards, Floats)
aw.PerContext(aw.UCB1(n_arms=2)).choose(("monday", 7))
aw.UCB1(n_arms=2).play(None, np.ones((5, 2)))
sized = aw.LinUCB(alpha=0.3, prior_mean=[0.0, 1.0, 0.5])
choices = sized.choose_many(np.ones((5, 2, 3)))
assert_type(choices, aw.Choices)
assert_type(choices[0], aw.Choice)
assert_type(choices[1:], aw.Choices)
assert_type(choices.arms, NDArray[np.int64])
sized.learn_many(np.ones((5, 2, 3)), choices, np.ones(5))
sized.learn_many(np.ones((1, 2, 3)), [choice], [1.0])
sized.choose_many([np.ones((2, 3)), np.ones((4, 3))])
assert_type(aw.UCB1(n_arms=2).choose_many(n=3)[0].arm, int)
assert_type(sized.merge(sized.clone()), aw.LinUCB)
assert_type(sized.estimate(X), tuple[Floats, Floats | None])
assert_type(aw.LinUCB(dim=3, n_arms=2).add_arm(), int)
assert_type(aw.HybridLinUCB(dim=5, n_arms=2, shared=2).choose(X).arm, int)
assert_type(aw.fit_log(sized, aw.offline.Log(arms=[0], rewards=[1.0])), aw.LinUCB)

aw.LinUCB(dim="x")  # wrong
aw.LinUBC()  # wrong
aw.HybridLinUCB()  # wrong
aw.LinUCB(dim=3, alfa=0.5)  # wrong
sized.merge(aw.UCB1(n_arms=2))  # wrong
sized.learn_many(X, choices)  # wrong
sized.choose_many(X, 3)  # wrong
sized.remove_arm("a")  # wrong
aw.fit_log(sized, "log.parquet")  # wrong
aw.fit_log(sized, aw.offline.Log(arms=[0], rewards=[1.0]), engine=3)  # wrong
choice.probabilty  # wrong
choice.probability + 1.0  # wrong
choice.arm = 2  # wrong
agent.chose(X)  # wrong
agent.choose({"age": 35})  # wrong
agent.learn(X, choice)  # wrong
agent.learn(X, choice, "1.0")  # wrong
agent.learn(X, 2, 1.0)  # wrong
agent.play(X, rewards=None)  # wrong
aw.Agent()  # wrong
aw.import_module  # wrong
assert_type(agent.choose(X), int)  # wrong

# ---------------------------------------------------------------- an agent of one's own


class Softmax(aw.Agent):
    sees = "nothing"
    _learnt = ("totals",)

    def __init__(self, n_arms: int, *, temperature: float = 1.0) -> None:
        super().__init__()
        self.n_arms, self.temperature = n_arms, temperature
        self.totals = np.zeros(n_arms)

    def _probabilities(self, context: None) -> Floats:
        p: Floats = np.exp(self.totals / self.temperature)
        return np.asarray(p / p.sum())

    def _learn(self, context: None, choice: aw.Choice, reward: float) -> None:
        self.totals[choice.arm] += reward


class Blind(aw.IndexAgent):
    sees = "everything"  # wrong


Softmax(n_arms=3).choose()
Softmax(n_arms="3")  # wrong

# ---------------------------------------------------------------- saved and loaded

agent.save("model.aw")
assert_type(aw.load("model.aw"), aw.Agent)
assert_type(aw.load("model.aw", aw.LinUCB), aw.LinUCB)
aw.load("model.aw").chose(X)  # wrong
aw.load(3)  # wrong

# ---------------------------------------------------------------- worlds and races

world = aw.environments.Linear(n_arms=10, dim=20, noise=0.1)
result = aw.race({"LinUCB": aw.LinUCB(dim=20)}, world, horizon=100, seeds=2, engine="threads")
result.plot(kind="loglog").savefig("race.png")
result.report("race.html")
aw.table("markdown").rows[0].agent
world.width("features")

aw.environments.Liner()  # wrong
aw.environments.Graph(kind="ring")  # wrong
aw.race([aw.LinUCB(dim=20)], world)  # wrong
aw.race([aw.LinUCB], world, horizon=100)  # wrong
aw.race([aw.LinUCB(dim=20)], "linear", horizon=100)  # wrong
result.plot(kind="regrets")  # wrong
result.tabel()  # wrong
aw.table("html")  # wrong
world.width("feature")  # wrong

# ---------------------------------------------------------------- logs

log = aw.offline.Log(contexts=X, arms=[0, 1, 0], rewards=[1.0, 0.0, 1.0], probabilities=[0.5] * 3, n_arms=2)
found = aw.offline.evaluate(log, aw.Constant(0), estimators=["ips", "dr"], interval="bootstrap")
assert_type(found["ips"].value, float)
assert_type(found["ips"].low, float)
assert_type(aw.offline.replay(log, agent).matched, int)
assert_type(aw.offline.compare(log, aw.Constant(0), lambda x: 1).better, str)

aw.offline.Log(context=X)  # wrong
aw.offline.evaluate(X, aw.Constant(0))  # wrong
aw.offline.evaluate(log, aw.Constant(0), interval="student")  # wrong
aw.offline.evaluate(log, aw.Constant(0), level="95%")  # wrong
found["ips"].vaule  # wrong
found[0]  # wrong
aw.offline.evaluat  # wrong
aw.offline.fit(log, aw.LinearOracle(dim=3), method="dm")  # wrong

# ---------------------------------------------------------------- policies and kernels

aw.policies.Stumps(dim=3)
aw.Stump(0, 0.5, 1, 0)
aw.GPUCB(aw.kernels.RBF(length_scale=0.5) + aw.kernels.Linear())
aw.PolicyArms(aw.Exp3(n_arms=2), [aw.Constant(0), lambda x: 1], sees="key")

aw.policies.Stmups(dim=3)  # wrong
aw.Constant("red")  # wrong
aw.kernels.RBF(length="0.5")  # wrong
aw.kernels.Rbf()  # wrong
aw.GPUCB("rbf")  # wrong
aw.PolicyArms(aw.Exp3(n_arms=2), [aw.Constant(0)], sees="advice")  # wrong
aw.OnlineCover(aw.LinearOracle(dim=3), 2, estimator="mrdr")  # wrong
aw.FinitePolicies(aw.Constant(0))  # wrong
