"""The survey section by section: its claim, and the race that shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armwise.core.seeds import stream
from armwise.racing.report.survey_race import HEATS, MORE
from armwise.racing.run.heat import Heat


@dataclass(frozen=True)
class Chapter:
    """One section of the survey: its claim, the heat that shows it, and a factor for the horizon."""

    section: str
    title: str
    claim: str
    look: str  # what to look for in the figure
    heat: str
    longer: float = 1.0
    without: tuple[str, ...] = ()  # entries of the heat that cost too much here
    only: tuple[str, ...] = ()  # the classes that this section is about; empty: all

    def at(self, scale: float) -> Heat:
        """The heat with all horizons ``scale`` times as long."""
        heat = (HEATS | MORE)[self.heat](self.longer * scale)
        agents = {
            name: agent
            for name, agent in heat.agents.items()
            if name not in self.without and (not self.only or type(agent).__name__ in self.only)
        }
        return replace(heat, agents=agents, name=f"{self.section} {self.title}")


CHAPTERS = [
    Chapter(
        "3", "Reduction to K arms, one copy per context",
        "With C contexts that can be told apart, one copy of a K-armed agent in each has regret O(sqrt(T C K ln K)) "
        "against the best map from contexts to arms: the copies share nothing, so C multiplies under the root.",
        "Exp3 in each context follows its root; the same Exp3 without the context pays a fixed price in every round, "
        "and its slope is near 1. UCB1 and Thompson sampling inside make use of chances that never change.",
        "tabular", 4.0,
    ),
    Chapter(
        "3", "Reduction to K arms, one arm per policy",
        "The other way: each of N policies is an arm of a K-armed agent, which has regret O(sqrt(T N ln N)) against "
        "the best policy. N stands under the root itself, where the agents of section 4.3 have its logarithm.",
        "Exp3 over the 20 policies follows its root, and loses more than twice what Epoch-Greedy loses on the same "
        "world below (section 4.3.1): it learns of one policy per round, where that one reward says something of "
        "each.",
        "planted", 20.0, only=("PolicyArms",),
    ),
    Chapter(
        "3", "The K-armed agents inside",
        "For rewards drawn from fixed distributions UCB1 has expected regret O(sqrt(T K ln T)) whatever the gaps "
        "are, and Thompson sampling O(sqrt(T K ln K)) on average over worlds drawn from its prior, as these are.",
        "Once the best arm stands out, UCB1 and Thompson sampling grow like a logarithm, far below the root that is "
        "proved for the worst gaps. Exp3 assumes nothing and pays the root. EpsilonGreedy explores a fixed share for "
        "ever: its slope is near 1, and so is its bound's.",
        "arms", 8.0,
    ),
    Chapter(
        "3", "Why adversarial agents draw their arms",
        "Against rewards fixed in advance by anyone, Exp3 has expected regret O(sqrt(T K ln K)) against the best "
        "single arm. No deterministic agent can: whoever knows its rule lets the arm it is about to play pay "
        "nothing.",
        "These rewards were written against UCB1, which loses nearly every round; the greedy agent loses a small "
        "share of them, but for ever: its slope is 1. Exp3's is not far from one half, and its regret is least where "
        "it knows the horizon: restarts at doubled horizons cost a constant.",
        "adversarial", 6.0,
    ),
    Chapter(
        "4.1.1", "Linear rewards: LinUCB and SupLinUCB",
        "If an arm's expected reward is a linear function of its features, regret is O~(sqrt(T)), and the number of "
        "arms comes in by a logarithm at most: LinUCB pays d, the staged SupLinUCB sqrt(d).",
        "LinUCB has all but stopped losing, in the setting of its proof too: five arms in five dimensions are soon "
        "told apart. SupLinUCB in its proof's setting begins with slope 1 and leaves its first stages within these "
        "horizons; its last doubling is close to one half.",
        "linear", 80 / 3, only=("LinUCB", "SupLinUCB"),
    ),
    Chapter(
        "4.1.2", "LinREL and SupLinREL",
        "The older way to the same rate: confidence by eigenvectors of the Gram matrix, the small ones cut off. The "
        "proof is for the staged SupLinREL; for LinREL itself none is known.",
        "As in 4.1.1: SupLinREL in its proof's setting is close to uniform play up to ten thousand rounds, then "
        "turns towards one half. LinREL, for which nothing is proved, loses next to nothing.",
        "linear", 80 / 3, only=("LinREL", "SupLinREL"),
    ),
    Chapter(
        "4.1.3", "CoFineUCB: a subspace known from the past",
        "Where users lie near a k-dimensional subspace, exploring mostly inside it replaces d by about k in the "
        "regret.",
        "CoFineUCB trusts the subspace and begins with far less to learn: half of LinUCB's regret at the last horizon. "
        "What lies outside the subspace it learns late, so that its line is the steeper one.",
        "hierarchical", 4.0,
    ),
    Chapter(
        "4.1.3", "CoFineUCB in the setting of its proof",
        "The bound is proved for widths that cover the errors of both estimates. What of theta lies outside the "
        "subspace enters the coarse width times sqrt(T), so that the rate is sqrt(T) only where nothing does: as "
        "here.",
        "Nothing is gained over LinUCB here: in both proofs' settings a few rounds are enough, and the fine width "
        "still covers all d directions. The saving is that of the chapter before, with practical widths.",
        "subspace", 8.0,
    ),
    Chapter(
        "4.1.4", "Thompson sampling with linear rewards",
        "Playing the arm that is best for a draw from the posterior has regret O~(d^2 / epsilon sqrt(T^(1 + "
        "epsilon))) with a posterior wide enough; the proof asks for a width that grows with ln T.",
        "The exponent that is printed is one half, which is the proved one for an epsilon that falls as 1 / ln T; "
        "with the epsilon of this race, 0.5, the bound itself grows like T^0.75.",
        "linear", 10.0, only=("LinThompson",),
    ),
    Chapter(
        "4.1.4", "Thompson sampling with logistic rewards",
        "For clicks the survey gives Chapelle and Li's heuristic: a Gaussian posterior by batches, sampled. Nothing "
        "is proved for it.",
        "No exponent stands beside these slopes, because there is none. LinUCB's is the steeper one: a line does not "
        "fit chances of clicks.",
        "logistic", 5.0,
    ),
    Chapter(
        "4.1.5", "SpectralUCB: arms on a graph",
        "The survey leaves this section empty. If neighbours on a graph pay alike, few eigenvectors describe all "
        "arms, and regret follows the effective dimension of the graph, not its number of nodes.",
        "SpectralUCB loses a third of what UCB1 loses at the shortest horizon and half at the longest: knowing the "
        "graph is worth most while most arms are new. With the proof's width, exploration has hardly begun to pay.",
        "graph", 20.0,
    ),
    Chapter(
        "4.2.1", "GP-UCB: smooth rewards",
        "For a reward function drawn from a Gaussian process, regret is O~(sqrt(T gamma_T)): gamma_T, what T samples "
        "can tell about the function, grows by logarithms only for the usual kernels.",
        "With the theorem's width the slope is far below one half, which is no contradiction: on finitely many arms "
        "regret grows like a logarithm once the best stands out. The practical widths settle on another arm on a few "
        "seeds, pay for it in every round, and lose more on average: 1 is not excluded for them.",
        "process", 30.0,
    ),
    Chapter(
        "4.2.1", "CGP-UCB: smooth in context and arm",
        "The same with a kernel over context and arm together: gamma_T is that of the product kernel.",
        "LinUCB on the same features cannot represent the function: its slope stays near 1. The practical width "
        "loses less than the theorem's on average, and on one seed much more.",
        "contextual process", 40.0,
    ),
    Chapter(
        "4.2.2", "KernelUCB: a function of bounded norm",
        "SupKernelUCB has regret O~(sqrt(B d~ T)), d~ the number of directions of the kernel that the data reveal. "
        "For KernelUCB itself nothing is proved.",
        "SupKernelUCB in its proof's setting leaves its first stages within these horizons. KernelUCB's practical "
        "width is narrow: on one seed it settles on an arm that is not the best and pays for it in every round, "
        "which is what its standard error says.",
        "bounded norm", 80.0, without=("SupKernelUCB",),
    ),
    Chapter(
        "4.3.1", "A class of policies: Epoch-Greedy",
        "Against the best of N policies, Epoch-Greedy has O(T^(2/3)) with any learner of policies: it explores in "
        "rounds of their own, and believes the learner in all others.",
        "In the proof's setting, which counts its epochs, the interval of the slope holds the proved 2/3. The "
        "practical schedule explores less.",
        "planted", 12.0, only=("EpochGreedy",),
    ),
    Chapter(
        "4.3.2", "A class of policies: PolicyElimination",
        "Drop policies that are surely worse, and play those that are left so that the value of each stays measured: "
        "O(sqrt(T K ln N)), with the distribution of contexts known.",
        "With the proof's constants no policy is dropped at the shortest horizons, where the slope is 1, and the "
        "bend comes within the race. With a third of the width (the default) the slope is the proved one.",
        "far apart", 16.0, only=("PolicyElimination",),
    ),
    Chapter(
        "4.3.2", "A class of policies: RandomizedUCB",
        "The same rate with the distribution of contexts unknown, by a convex program over the policies.",
        "Below 1, but not yet the root that is proved: the slope grows with every doubling. While t is below some "
        "720 K C_t / gap^2 (here hundreds of thousands of rounds) the program may keep a small fixed share on every "
        "policy, and with the paper's constants does; only then can it fall.",
        "far apart", 8.0, only=("RandomizedUCB",),
    ),
    Chapter(
        "4.3.3", "A class of policies: ILOVETOCONBANDITS",
        "The same rate with O~(sqrt(K T / ln N)) calls of an argmax oracle in all, far fewer than RandomizedUCB's.",
        "With psi = 0.1, the default, the slope is the proved one. With the proof's psi = 100 it weighs all policies "
        "alike up to the longest horizon, and would for some million rounds: no affordable T shows its rate.",
        "far apart", 10.0, only=("ILoveToConBandits",),
    ),
    Chapter(
        "5.1", "EXP4 and EXP4.P: advice of experts",
        "With N experts and rewards chosen by an adversary, Exp4 has expected regret O(sqrt(T K ln N)) against the "
        "best expert; Exp4P has it with high probability, which Exp4 has not.",
        "Exp4 is close to its root. Exp4P pays nearly twice the regret for its guarantee, and its slope falls with "
        "every doubling.",
        "experts", 2.0,
    ),
    Chapter(
        "5.3", "Infinitely many experts",
        "For a class of finite VC dimension d, VE explores first, then competes over the policies that the sample "
        "tells apart: O(sqrt(T d ln(T / d))).",
        "Its first phase, uniform play, is as long as a root of T; most of the regret is that of the second, which "
        "competes over all the policies that the sample tells apart.",
        "stumps", 4.0,
    ),
    Chapter(
        "beyond", "SquareCB: a regression oracle",
        "With a regressor whose squared error is bounded online, weighting arms by the inverse of their gap has "
        "regret O(sqrt(K T Reg_Sq(T))): one prediction per arm, no class of policies to search.",
        "The theorem's constant gamma explores much; its bound is above T up to here, and the slope below 1 already. "
        "The default, whose gamma grows with t, loses a small part of that.",
        "disjoint", 8.0, only=("SquareCB",),
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Unbiased:
    """Section 2 in numbers: the value of a policy on the log of another, with and without weights, over the seeds."""

    truth: float
    weighted: float
    weighted_error: float
    plain: float
    plain_error: float
    seeds: int


def unbiased(seeds: int = 20, rows: int = 2_000) -> Unbiased:
    """Section 2: r 1{a = pi(x)} / p is unbiased; the plain mean over the rounds that agree is not.

    The log plays the better arm more often in contexts that pay more, so that the rounds that agree are the good ones.
    """
    weighted, plain = [], []
    for seed in range(seeds):
        rng = stream(seed, "survey section 2")
        x = rng.random(rows)
        p = np.where(x > 0.5, 0.8, 0.2)  # chance that the log plays arm 1, the policy's arm
        agrees = rng.random(rows) < p
        reward = (rng.random(rows) < x).astype(np.float64)
        weighted.append(float((reward * agrees / p).mean()))
        plain.append(float(reward[agrees].mean()))
    root = float(np.sqrt(seeds))
    return Unbiased(0.5, float(np.mean(weighted)), float(np.std(weighted, ddof=1)) / root, float(np.mean(plain)),
                    float(np.std(plain, ddof=1)) / root, seeds)  # fmt: skip


def errata(chapter_heat: Heat) -> list[str]:
    """The errata of the survey about the agents of a heat."""
    found: dict[str, str] = {}
    for agent in chapter_heat.agents.values():
        theory = getattr(agent, "theory", None)
        if theory is not None and theory.erratum:
            found[type(agent).__name__] = theory.erratum
    return [f"{name}: {text}" for name, text in found.items()]
