"""What each constructor parameter means, in a few words; a name alone holds where an agent has no line of its own."""

import inspect
import re

from armwise.theory.algorithm_table import agents

WORDS = {
    "n_arms": "Number of arms K.",
    "LinUCB.n_arms": "None: one model over per-arm features. K: one for each of K arms over a shared context.",
    "LinThompson.n_arms": "None: one model over per-arm features. K: one for each of K arms over a shared context.",
    "SquareCB.n_arms": "None: one regressor over per-arm features. K: one for each of K arms over a shared context.",
    "FastCB.n_arms": "None: one regressor over per-arm features. K: one for each of K arms over a shared context.",
    "RegCB.n_arms": "None: one regressor over per-arm features. K: one for each of K arms over a shared context.",
    "PolicyArms.n_arms": "Number of arms K, if no policy says it.",
    "EpsilonGreedy.n_arms": "Number of arms K; left out with a model.",
    "n_experts": "Number of experts N: rows of the advice.",
    "dim": "Number of features d.",
    "LinUCB.dim": "Number of features d; None takes as many as the first context has.",
    "LinThompson.dim": "Number of features d; None takes as many as the first context has.",
    "SquareCB.dim": "Number of features d; None takes as many as the first context has.",
    "FastCB.dim": "Number of features d; None takes as many as the first context has.",
    "RegCB.dim": "Number of features d; None takes as many as the first context has.",
    "HybridLinUCB.dim": "Columns of an arm's row: the shared ones, then its own.",
    "teaches": '`"all"`: learn from every reward, weighted by its probability; `"uniform"`: from exploration only.',
    "shared": "How many columns, from the left, have weights that all arms share.",
    "HybridLinUCB.alpha": "Multiplier of the width; None: in units of the rewards' noise.",
    "prior_mean": "A guess of the weights before any reward: the ridge shrinks towards it; None: towards zero.",
    "features": "A map of `aw.features` from what the agent is shown to the columns of the model.",
    "first_order": "True: explore in proportion to the variance of the rewards, so less where losses are small.",
    "horizon": "Number of rounds T that the agent is tuned to.",
    "delta": "Probability with which the guarantee may fail.",
    "seed": "A number, a SeedSequence or a Generator: the same seed gives the same arms.",
    "gamma": "Share of the rounds spread uniformly over the arms.",
    "KernelUCB.gamma": "Regulariser of the kernel ridge.",
    "SupKernelUCB.gamma": "Regulariser of the kernel ridge.",
    "alpha": "Multiplier of the confidence width.",
    "LinUCB.alpha": "Width multiplier: a number, `aw.Ellipsoid(noise, norm, delta)`, or None: in units of the noise.",
    "alpha_coarse": "Multiplier of the width inside the subspace.",
    "lam": "Ridge: how strongly weights shrink to zero; None follows the size of the first rows.",
    "SpectralUCB.lam": "Added to every eigenvalue of the Laplacian.",
    "LogisticThompson.lam": "Prior precision of every weight.",
    "lam_coarse": "Ridge inside the subspace.",
    "prior": "Successes and failures each arm starts with.",
    "draws": "More than 1: every choice has a probability, exact or from the smoothed wins of so many draws.",
    "epsilon": "Share of the rounds in which any arm is played.",
    "decay": "The share falls as t to the power of minus this.",
    "model": "Estimates from features: a `Ridge`, or anything with its `estimate` and `update`.",
    "agent": "The agent inside.",
    "policies": "The policies: objects or functions of a context that answer an arm.",
    "experts": "The policies that advise: objects, functions of a context, or frozen agents.",
    "policy_class": "A class of known dimension: `aw.policies.Stumps(dim)`, `PlanarSeparators()`, ...",
    "sees": "Which view of a round the policies read.",
    "make_agent": "An agent class, a class method such as `Exp3.theoretical` (or its name), or a function of T.",
    "arguments": "Further arguments for `make_agent`.",
    "discount": "Below 1, all models forget: every reward multiplies the weight of earlier ones by this factor.",
    "window": "How many of the last rewards count; None: all.",
    "subspace": "U, (d, k): where users' weights mostly lie; see `learn_subspace`.",
    "v": "Scale of the posterior: a number, `aw.ThompsonScale(noise, epsilon, delta)`, or None: in units of the noise.",
    "batch_size": "Rewards collected before the posterior is fitted.",
    "basis": "How many of the smoothest eigenvectors are used; None: all up to 1,000 nodes, 100 beyond.",
    "laplacian": "Laplacian of the graph, (n, n), dense or sparse.",
    "noise": "Standard deviation of the rewards' noise.",
    "SpectralUCB.noise": "Sub-Gaussian constant R of the rewards.",
    "norm": "C: at least the norm of the mean rewards on the graph.",
    "kernel": "A kernel of `aw.kernels`, a sum or product of them, or a scikit-learn kernel.",
    "context_kernel": "Kernel of the context's columns.",
    "arm_kernel": "Kernel of the arm's columns.",
    "context_dim": "How many columns, from the left, are the context.",
    "beta": "Squared width: a number, `aw.FiniteArmsBeta(delta)` or `aw.AgnosticBeta(norm, delta)`.",
    "eta": "Multiplier of the width.",
    "budget": "Largest number of inducing points; None keeps every reward.",
    "fit_at": "After how many rewards the kernel's parameters are fitted.",
    "oracle": "An argmax oracle, or a list of policies.",
    "schedule": "A function s(l) that replaces the paper's.",
    "RandomizedUCB.schedule": "When to solve again: a factor, a list of times, or a function.",
    "contexts": "A sample of the distribution of contexts, (n, d).",
    "tolerance": "How far the objective may be from the least, in units of reward.",
    "epochs": "When an epoch ends: a factor, a list of times, or a function.",
    "size": "Policies in the cover.",
    "ILoveToConBandits.psi": "How little estimated regret counts against a policy: smaller explores less.",
    "psi": "Pay for arms that others neglect: larger explores more.",
    "uniform": "Add a uniform expert, which the bounds require.",
    "OnlineCover.uniform": "Keep a floor under every arm's probability.",
    "estimator": 'How rewards of all arms are estimated: "dm", "dr" or "ips".',
    "scale": "Multiplies the exploration: larger explores more; the theorem's own is 1 (`theoretical`).",
    "exponent": "How fast exploration fades.",
    "regressor": "A scikit-learn regressor instead of ridge.",
    "fits": "Fits to rewards plus noise, whose spread is the width (over scikit-learn). None: the paper's search.",
    "refit": "Fit again when examples have grown by this factor (regressors without `partial_fit`).",
    "mellowness": "How much worse than the best a regressor may fit; None: in units of the noise.",
    "SquareCB.gamma": "Multiplier of the gaps (larger explores less); None: in units of the noise.",
    "floor": "The share of decisions spread evenly over all arms: every probability is at least floor / K.",
    "drift": "True: forget, and learn how fast: memories of 64, 256 and 1,024 rewards compete.",
    "Auto.n_arms": "None: one model over per-arm features. K: one for each of K arms over a shared context.",
    "agents": "The bases: agents with the same view of a round; one of them decides each round.",
    "d_min": "The least coefficient of a base's regret.",
    "Corral.eta": "The first learning rate; None is sqrt(M / T).",
    "FastCB.gamma": "Multiplier of the gaps (larger explores less); None is 10.",
    "LagrangeCB.oracle": "An agent that estimates (SquareCB, Auto, ...): clones of it learn the rewards and each cost.",
    "LagrangeCB.budget": "Total that the decisions may cost: a number, or one per resource.",
    "LinCBwK.budget": "Total that the decisions may cost: a number, or one per resource.",
    "HardStop.budget": "Total that the decisions may cost: a number, or one per resource.",
    "aim": "The share of the budget that the prices aim at; the rest absorbs costs with long tails.",
    "expected_costs": "The expected cost of each arm before it is played, such as a price list.",
    "weighting": 'How an arm is drawn: by the gaps of the estimates, or with the chance that it is the best ("wins").',
    "covering": "Per resource: the budget is a minimum to use instead of a maximum.",
    "LagrangeCB.prior": "The expected reward of an arm that was never played: one number, or one per arm.",
    "LagrangeCB.gamma": "Multiplier of the gaps (larger explores less); None: in units of the noise.",
    "dual": 'How prices follow the budget: "resolve" (over recent rounds) or "gradient" (the theorem\'s).',
    "ceiling": "The largest price, in rewards per unit of the spend rate.",
    "max_cost": "The largest cost of one decision: a number, or one per arm.",
    "LinCBwK.max_cost": "The largest cost of one decision; costs are measured in units of it.",
    "LinCBwK.n_arms": "None: one model over per-arm features. K: one for each of K arms over a shared context.",
    "LinCBwK.alpha": "The widths: `aw.Ellipsoid(noise, norm, delta)`, or None: in units of the noise.",
    "Z": "How much costs weigh against rewards; None estimates OPT / B.",
    "stretch": "Rounds spread evenly over the arms, from which Z is estimated; None is sqrt(T).",
    "fallback": "The arm that can always be paid: the free one, or the cheapest.",
    "rate": "The amount to spend per decision, or per `per` seconds.",
    "cheap": "The arm that is played to save.",
    "per": "Seconds that the rate is for (86,400: a day); None: per decision.",
    "Pacing.window": "Number of decisions within which the spending returns to its rate.",
    "baseline": "The arm, or the policy, that the agent must not fall much behind.",
    "Conservative.alpha": "The share of the baseline's reward that may be lost.",
    "Conservative.norm": "A bound on the length of the reward's parameter.",
    "Conservative.noise": "Sub-Gaussian constant of the rewards: 0.5 if they lie in [0, 1].",
    "HardStop.horizon": "How many decisions there will be; needed where the fallback is not free.",
    "pooled": "One model serves all stages and learns every reward; False: one model per stage, as the bound requires.",
    "elimination": "Draw uniformly from the arms that may be best.",
}


def words(agent: str, parameter: str) -> str:
    """What this parameter of this agent means: its line here, or in the arguments section of the class's docstring.

    >>> words("Exp3", "gamma") == words("KernelUCB", "gamma")
    False
    """
    return WORDS.get(f"{agent}.{parameter}") or arguments(agents()[agent]).get(parameter) or WORDS[parameter]


def arguments(cls: type) -> dict[str, str]:
    """The arguments section of a docstring: a line ``name: meaning`` for each, indented below ``Args:``.

    >>> class Softmax:
    ...     '''Draw by weights.
    ...
    ...     Args:
    ...         temperature: Larger explores more.
    ...     '''
    >>> arguments(Softmax)
    {'temperature': 'Larger explores more.'}
    """
    section = inspect.cleandoc(cls.__doc__ or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    return dict(re.findall(r"^    (\w+): (.+)$", section, flags=re.MULTILINE))
