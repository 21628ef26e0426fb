"""Advice: an expert's questions, and at most three calls to begin with, with practical parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from armwise.core.agent import count, fraction, positive
from armwise.theory.algorithm_table import row_of

Feedback = Literal["clicks", "amounts"]
Features = Literal["arms", "visitor", "none"]
MAX_ANSWERS = 3
MAX_PROCESS_ROUNDS = 2_000  # up to which a Gaussian process is affordable and worth its cost
RARE = 0.15  # share of clicks below which, and above 1 less it, widths for [0, 1] are too wide
MIN_SPARSE_NODES = 5_000  # nodes from which a graph is given as a sparse matrix


@dataclass(frozen=True)
class Situation:
    """The answers to an expert's questions; see ``advise``."""

    feedback: Feedback = "clicks"
    n_arms: int = 10
    arms_change: bool = False
    features: Features = "none"
    dim: int = 20
    kinds: int | None = None
    graph: bool = False
    policies: int | None = None
    rounds: int | None = None
    horizon_known: bool = False
    smooth: bool = False
    sparse: bool = False
    drift: bool = False
    delay: bool = False
    log: bool = False
    adversarial: bool = False
    slots: int | None = None
    rate: float | None = None
    gap: float | None = None
    traffic: float | None = None

    @property
    def decisions(self) -> int | None:
        """About how many decisions until four of five go to the best arm, where all others are ``gap`` worse.

        3 K log2(K) s^2 / gap^2, with s^2 = rate (1 - rate) the variance of a click, for arms without features: in
        simulations of BetaThompson and LinUCB with 2 to 10 arms it took .8 to 1.2 times as many.
        """
        if self.rate is None or self.gap is None:
            return None
        middle = self.rate + self.gap / self.n_arms
        return math.ceil(3.0 * self.n_arms * math.log2(self.n_arms) * middle * (1.0 - middle) / self.gap**2)

    @property
    def horizon(self) -> int:
        """The number of rounds to plan for: as stated, or 10,000."""
        return self.rounds or 10_000

    @property
    def rare(self) -> bool:
        """Whether clicks are so rare, or so common, that widths for rewards in [0, 1] explore for too long.

        At 1 to 3 % UCB1 with a third of its width has 2.3 times the regret of BetaThompson, which knows a click's
        variance; at .9 and .95 twice; around a half it has less.
        """
        return self.rate is not None and not RARE < self.rate < 1.0 - RARE

    @property
    def sizes(self) -> str:
        """The arguments that every linear agent takes: the features, and the arms where each has a model."""
        return f"dim={self.dim}" if self.features == "arms" else f"dim={self.dim}, n_arms={self.n_arms}"


@dataclass(frozen=True)
class Recommendation:
    """One call that runs, the reason for it, its parameters in words, and its regret bound."""

    call: str
    why: str
    setting: str
    theory: str

    @property
    def agent(self) -> str:
        """The class that the call makes."""
        return self.call.removeprefix("aw.").split("(")[0].split(".")[0]


@dataclass(frozen=True)
class Advice:
    """At most three recommendations, the best first; prints as text, ``data`` is for machines."""

    situation: Situation
    recommendations: tuple[Recommendation, ...]

    @property
    def first(self) -> Recommendation:
        """The recommendation to begin with."""
        return self.recommendations[0]

    def __iter__(self) -> Iterator[Recommendation]:
        return iter(self.recommendations)

    def data(self) -> dict[str, Any]:
        """Plain dicts and lists."""
        shown = [{"agent": each.agent, **asdict(each)} for each in self.recommendations]
        data: dict[str, Any] = {"situation": asdict(self.situation), "recommendations": shown}
        if (decisions := self.situation.decisions) is not None:
            traffic = self.situation.traffic
            data["decisions"] = decisions
            data["days"] = None if traffic is None else round(decisions / traffic, 1)
        return data

    def __str__(self) -> str:
        lines = []
        for i, each in enumerate(self.recommendations, start=1):
            lines += [f"{i}. {each.call}", f"   {each.why}", f"   Setting: {each.setting}", f"   Theory: {each.theory}"]
        lines += _patience(self.situation)
        lines.append("Not sure? Race them on a world like yours (armwise race), or replay them on your log.")
        return "\n".join(lines)

    __repr__ = __str__


def _patience(s: Situation) -> list[str]:
    """The number of rounds until the best arm is mostly played."""
    if s.decisions is None:
        return []
    assert s.rate is not None and s.gap is not None
    days = "" if s.traffic is None else f", {s.decisions / s.traffic:,.1f} days at {s.traffic:,g} a day"
    line = (
        f"Patience: about {s.decisions:,} decisions{days}, until four of five go to the best of {s.n_arms} arms, if it "
        f"brings {s.rate + s.gap:g} and each other {s.rate:g}."
    )
    if s.rounds is not None and s.decisions > s.rounds:
        line += f" That is more than your {s.rounds:,} rounds: offer fewer arms, or arms that differ more."
    more = " That is for arms without features: every feature that matters takes more." if s.features != "none" else ""
    return [line + more]


Suggestion = tuple[str, str, str]  # call, why, setting
Rule = Callable[[Situation], list[Suggestion]]


def advise(
    *,
    feedback: Feedback = "clicks",
    n_arms: int = 10,
    arms_change: bool = False,
    features: Features = "none",
    dim: int = 20,
    kinds: int | None = None,
    graph: bool = False,
    policies: int | None = None,
    rounds: int | None = None,
    horizon_known: bool = False,
    smooth: bool = False,
    sparse: bool = False,
    drift: bool = False,
    delay: bool = False,
    log: bool = False,
    adversarial: bool = False,
    slots: int | None = None,
    rate: float | None = None,
    gap: float | None = None,
    traffic: float | None = None,
) -> Advice:
    """Recommend at most three calls for a situation, the best first, each with a reason and practical parameters.

    ``feedback``: rewards are "clicks" (0 or 1) or "amounts". ``n_arms``, and whether ``arms_change`` from round to
    round. ``features``: of the "arms" (each has ``dim`` numbers, the visitor's may be part of them), of the "visitor"
    (``dim`` numbers, the same for all arms), or "none"; ``kinds``: visitors are one of so many kinds instead.
    ``graph``: the arms are nodes, and neighbours are alike. ``policies``: you have so many rules or models and want the
    best of them. ``rounds``: how many there will be, and whether that is certain (``horizon_known``). ``smooth``: the
    reward is a smooth function of the features, not a linear one. ``sparse``: very many features, few of them non-zero.
    ``drift``: the world changes. ``delay``: rewards come late or in batches. ``log``: the log must be usable
    afterwards, to evaluate other policies. ``adversarial``: somebody may choose the rewards against you. ``slots``: a
    round shows a list of so many arms, and the calls make rankers. ``rate``: the
    usual share of clicks, ``gap``: by how much a better arm would exceed it (0.01 for 3 % instead of 2 %), ``traffic``:
    decisions a day; the answer then says about how many decisions, and days, it takes until the best arm is mostly
    played.

    >>> print(advise(features="visitor", feedback="amounts", n_arms=5, dim=8).first.call)
    aw.Auto(dim=8, n_arms=5)
    >>> advise(features="visitor", n_arms=5, dim=8, log=True).first.call
    'aw.SquareCB(dim=8, n_arms=5)'
    """
    if feedback not in ("clicks", "amounts"):
        raise ValueError(f'feedback must be "clicks" or "amounts", got {feedback!r}')
    if features not in ("arms", "visitor", "none"):
        raise ValueError(f'features must be "arms", "visitor" or "none", got {features!r}')
    flags = {"arms_change": arms_change, "graph": graph, "horizon_known": horizon_known, "smooth": smooth,
             "sparse": sparse, "drift": drift, "delay": delay, "log": log, "adversarial": adversarial}  # fmt: skip
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False, got {value!r}")
    situation = Situation(
        feedback=feedback,
        n_arms=count("n_arms", n_arms, least=2),
        features=features,
        dim=count("dim", dim),
        kinds=None if kinds is None else count("kinds", kinds),
        policies=None if policies is None else count("policies", policies, least=2),
        slots=None if slots is None else count("slots", slots),
        rounds=None if rounds is None else count("rounds", rounds),
        rate=None if rate is None else fraction("rate", rate),
        gap=None if gap is None else positive("gap", gap),
        traffic=None if traffic is None else positive("traffic", traffic),
        **flags,
    )
    if (rate is None) != (gap is None):
        raise ValueError("rate and gap belong together: give both, or neither")
    if traffic is not None and rate is None:
        raise ValueError("traffic says how many days the decisions take: give rate and gap too")
    if rate is not None and gap is not None:
        if feedback != "clicks":
            raise ValueError('rate is the share of clicks: give feedback="clicks", or leave rate and gap out')
        if rate + gap >= 1.0:
            raise ValueError(f"rate + gap must be below 1, got {rate:g} + {gap:g}")
    if horizon_known and rounds is None:
        raise ValueError("horizon_known says that the number of rounds is certain: give rounds too")
    if situation.slots is not None:
        if situation.slots > situation.n_arms:
            raise ValueError(f"slots must be at most n_arms, {n_arms}, got {slots}: no list shows an arm twice")
        others = {"kinds": kinds, "graph": graph, "policies": policies, "smooth": smooth, "sparse": sparse,
                  "drift": drift, "adversarial": adversarial, "rate": rate}  # fmt: skip
        if more := [name for name, value in others.items() if value]:
            raise ValueError(f"slots is for lists, of which nothing is known with {more[0]}: leave one of them out")
    if kinds is not None and features != "none":
        raise ValueError(f'kinds are instead of features: give features="none", or dim columns, got {features!r}')
    if arms_change and features != "arms":
        raise ValueError('arms that change can only be told apart by their features: give features="arms"')
    answers: list[Suggestion] = []
    for applies, rule in RULES:
        if applies(situation):
            answers = rule(situation)
            break
    made = tuple(Recommendation(call, why, setting, _theory(call)) for call, why, setting in answers[:MAX_ANSWERS])
    return Advice(situation, made)


def _theory(call: str) -> str:
    """The agent's regret bound from its row of the table; for a wrapper, that of the agent inside."""
    names = call.replace('aw.Doubling("', "aw.").removeprefix("aw.").split("aw.")
    own = names[1] if names[0].split("(")[0] in ("Explore", "PerContext") and len(names) > 1 else names[0]
    name = own.split("(")[0].split(".")[0].strip('"')
    row = row_of(name)
    text = f"regret {row.regret}, against {row.comparator}; assumes {row.assumes}."
    proof = row.bound and row.section != "rankings"  # a race says whether a ranker's hypotheses hold
    return text + (f" The proof is for {name}.theoretical, not for this setting." if proof else "")


# ---------------------------------------------------------------------- the rules, most special first


def _lists(s: Situation) -> list[Suggestion]:
    K, k = s.n_arms, s.slots
    if _too_wide(s):
        return [(f"aw.SlotBySlot({call})", why, setting) for call, why, setting in _wide(s)]
    sizes = {"arms": f"dim={s.dim}", "visitor": f"dim={s.dim}, n_arms={K}", "none": f"dim=1, n_arms={K}"}[s.features]
    one = f"; {_ONE}" if s.features == "none" else ""
    logged = (f"aw.SlotBySlot(aw.SquareCB({sizes}))", "Every list has a known probability above zero.",
              f"the default{one}; feedback= says what a list teaches.")  # fmt: skip
    if s.log:
        return [logged]
    linear = (f"aw.SlotBySlot(aw.LinUCB({sizes}))", "The best of what is left for each slot, by one linear model.",
              f"the default{one}; feedback= says what a list teaches.")  # fmt: skip
    if s.features == "arms" and s.feedback == "amounts":
        differ = "All slots are learnt; diversity= makes an arm worth less below others like it."
        return [linear, (f"aw.C2UCB(dim={s.dim})", differ, "the default."), logged]
    if s.features == "arms":
        most = (f"aw.SlotBySlot(aw.RegCB(dim={s.dim}))", "The most clicks where it was compared.",
                'feedback= as users read: "cascade" where they leave after a click.')  # fmt: skip
        return [most, linear, logged]
    if s.features == "visitor" or s.feedback == "amounts":
        return [linear, logged]
    return [
        (f"aw.PositionThompson(n_arms={K}, n_slots={k})", "It learns how often each slot is looked at.",
         "none: kappa is learnt."),
        (f"aw.CascadeKLUCB(n_arms={K})", "Where users leave after a click.", "none."),
        (f"aw.TopRank(n_arms={K}, horizon={s.horizon})", "Where no model of the users is to be trusted.",
         f"delta = 1 / T for T = {s.horizon:,}."),
    ]  # fmt: skip


def _adversarial(s: Situation) -> list[Suggestion]:
    K, T = s.n_arms, s.horizon
    if s.policies is not None:
        N = s.policies + 1
        follows = "It follows the best of your policies whoever chooses the rewards."
        known = f"aw.Exp4.theoretical(n_experts={N}, n_arms={K}, horizon={T})"
        doubled = f'aw.Doubling("Exp4.theoretical", {{"n_experts": {N}, "n_arms": {K}}})'
        with_horizon = (f"aw.Advised({known}, policies, uniform=True)", follows, "gamma for the horizon.")
        restarts = f"{follows} Restarted at 1, 2, 4, ... it needs no horizon."
        without = (f"aw.Advised({doubled}, policies, uniform=True)", restarts, "none: the restarts set it.")
        return [with_horizon, without] if s.horizon_known else [without]
    known = f"aw.Exp3.theoretical(n_arms={K}, horizon={T})"
    doubled = f'aw.Doubling("Exp3.theoretical", {{"n_arms": {K}}})'
    why = "It draws its arms and weighs rewards by their probabilities, so nobody can work out its next arm."
    with_horizon = (known, why, f"gamma as the bound asks for T = {T:,}.")
    without = (doubled, why + " Restarted at 1, 2, 4, ... it needs no horizon.", "none: the restarts set it.")
    answers = [with_horizon, without] if s.horizon_known else [without]
    if not s.kinds:
        return answers
    each = max(1, T // s.kinds)
    inner = f"aw.Exp3.theoretical(n_arms={K}, horizon={each})" if s.horizon_known else doubled
    setting = f"gamma for T / kinds = {each:,} rounds." if s.horizon_known else "none: the restarts set it."
    return [(f"aw.PerContext({inner})", "One Exp3 for each kind of visitor.", setting), *answers]


def _graph(s: Situation) -> list[Suggestion]:
    matrix = (
        "a sparse Laplacian" if s.n_arms > MIN_SPARSE_NODES else "the graph's Laplacian (degrees less edge weights)"
    )
    call = f"aw.SpectralUCB(laplacian, horizon={s.horizon})"
    if s.feedback == "clicks":
        alone = (f"aw.BetaThompson(n_arms={s.n_arms}{_draws(s)})", "If the graph should turn out not to matter.",
                 "none: the prior is uniform.")  # fmt: skip
    else:
        alone = (f"aw.UCB1(n_arms={s.n_arms}, {_WIDTH}=0.1)", "If the graph should turn out not to matter.",
                 f"a tenth of the published width{_IN_RANGE}.")  # fmt: skip
    return _floored(s, [
        (call, "A reward teaches about the arm's neighbours too.", f"laplacian is {matrix}; the default scale."),
        alone,
    ])  # fmt: skip


def _policies(s: Situation) -> list[Suggestion]:
    K = s.n_arms
    range_ = _IN_RANGE.removeprefix("; ") if s.feedback == "amounts" else "none"
    return [
        (f"aw.OnlineCover(policies, n_arms={K})", "It plays a few good policies that disagree, and learns from all.",
         "the default: a cover of policies, doubly robust estimates."),
        (f"aw.PolicyArms(aw.BetaThompson(n_arms={s.policies}{_draws(s)}), policies, n_arms={K})",
         "Each policy is an arm: simplest, good for a handful of policies.", f"{range_}."),
        (f"aw.EpochGreedy(policies, n_arms={K})", "One uniform round now and then, whose log is unbiased.",
         "the default schedule."),
    ]  # fmt: skip


def _few_smooth(s: Situation) -> list[Suggestion]:
    return _floored(s, [
        ("aw.GPUCB(aw.kernels.RBF(length_scale=0.3), noise=0.1, beta=6.0)",
         "It uses every reward for all arms near by, which pays when rounds are few.",
         "beta = 6 (two and a half deviations); scale features to [0, 1] and give noise its standard deviation; "
         "fit_at=(50, 200) learns the length-scale."),
        ("aw.KernelUCB(aw.kernels.RBF(length_scale=0.3), gamma=0.01, eta=0.2)", "The same from kernel ridge.",
         "gamma the variance of the noise, eta two standard deviations of it."),
        (f"aw.LinUCB({s.sizes})", "If it is nearly linear after all, and far cheaper.", "the default."),
    ])  # fmt: skip


def _kinds(s: Situation) -> list[Suggestion]:
    K = s.n_arms
    vectors = f"dim={s.kinds}, n_arms={K}"
    as_vectors = "Kinds as indicator vectors"
    if s.drift:
        return _floored(s, _forgetting(s, vectors, f"; {as_vectors[0].lower()}{as_vectors[1:]}"))
    index = (f"aw.PerContext(aw.UCB1(n_arms={K}, {_WIDTH}=0.3))", "One bandit for each kind of visitor.",
             "a third of the published width, which is far too wide in practice.")  # fmt: skip
    clicks = (f"aw.PerContext(aw.BetaThompson(n_arms={K}{_draws(s)}))",
              "The same with random choices: rewards may come late.", "none: the prior is uniform.")  # fmt: skip
    linear = (f"aw.LinUCB({vectors})", f"{as_vectors}; other features can be added.", "the default.")
    if s.feedback == "amounts":
        return _floored(s, [linear, (index[0], index[1], index[2].removesuffix(".") + _IN_RANGE + ".")])
    if s.delay:
        drawn = (clicks[0], "One bandit for each kind of visitor; its choices stay spread while rewards are late.",
                 clicks[2])  # fmt: skip
        return _floored(s, [drawn, linear])
    return _floored(s, [clicks, linear, index] if s.rare else [index, clicks, linear])


def _no_features(s: Situation) -> list[Suggestion]:
    K = s.n_arms
    if s.drift:
        return _floored(s, _forgetting(s, f"dim=1, n_arms={K}", f"; {_ONE}")[::-1])  # the simplest first
    index = (f"aw.UCB1(n_arms={K}, {_WIDTH}=0.3)", "Means and widths: nothing else is known.",
             "a third of the published width, which is far too wide in practice.")  # fmt: skip
    clicks = (f"aw.BetaThompson(n_arms={K}{_draws(s)})",
              "It needs no tuning, and its choices stay spread while rewards are late.",
              "none: the prior is uniform.")  # fmt: skip
    if s.feedback == "amounts":
        size = f"its width follows the noise of your rewards, whatever their size; {_ONE}."
        linear = (f"aw.LinUCB(dim=1, n_arms={K})", "A mean and a width for each arm.", size)
        drawn = (
            f"aw.LinThompson(dim=1, n_arms={K}{_draws(s)})",
            "The same with random choices, which stay spread while rewards are late.",
            f"the default; {_ONE}.",
        )
        return _floored(s, [drawn, linear] if s.delay else [linear, drawn])
    return _floored(s, [clicks, index] if s.delay or s.rare else [index, clicks])


def _wide(s: Situation) -> list[Suggestion]:
    """Return whether a matrix of all pairs of columns would be too large."""
    d = s.dim if s.features == "arms" else s.dim * s.n_arms
    rows = "the default" if s.features == "arms" else "an arm's row is the visitor's, in columns of the arm's own"
    batch = ", batch_size=50" if s.delay else ""
    range_ = _IN_RANGE if s.feedback == "amounts" else ""
    logistic = (f"aw.LogisticThompson(dim={d}{batch}{_draws(s)})",
                "A variance for each column and no matrix: sparse rows cost only their non-zeros.",
                f"{rows}{range_}{'; it does not forget' if s.drift else ''}.")  # fmt: skip
    return [logistic]


def _auto(s: Situation) -> list[Suggestion]:
    why = "It scales the raw columns, and lets the best of a constant, a linear and a smooth model decide."
    first = (f"aw.Auto({s.sizes})", why, "none: give it the columns as they are.")
    if s.log:
        first = (f"aw.Auto({s.sizes}, floor=0.05)", why, "floor = 0.05: every arm has at least floor / K.")
    second, _, third = (_clicks if s.feedback == "clicks" else _linear)(s)
    return [third, first, second] if s.log else [first, second, third]  # a floor costs more than drawn choices


def _drift(s: Situation) -> list[Suggestion]:
    return _floored(s, _forgetting(s, s.sizes, ""))


def _forgetting(s: Situation, sizes: str, contexts: str) -> list[Suggestion]:
    floor = ", floor=0.05" if s.log else ""
    return [
        (f"aw.Auto({sizes}{floor}, drift=True)", "It learns how fast to forget, and more than linear rewards.",
         f"none{contexts}."),
        (f"aw.LinUCB({sizes}, discount=0.99)", "It forgets by time, so an arm that rests is tried again.",
         f"discount 0.99 remembers about 100 rounds, 0.999 about 1,000{contexts}."),
        (f"aw.LinThompson({sizes}, discount=0.99{_draws(s)})", "Random choices, for rewards that come late.",
         f"discount 0.99{contexts}."),
    ]  # fmt: skip


def _clicks(s: Situation) -> list[Suggestion]:
    if s.features == "visitor":  # one logistic model for all arms would need the arms' own features
        return _linear(s)
    batch = ", batch_size=50" if s.delay else ""
    return _usable(s, [
        (f"aw.LogisticThompson(dim={s.dim}{batch}{_draws(s)})",
         "Log-odds of a click are what is linear, and sparse features cost only their non-zeros.", "the default."),
        (f"aw.LinUCB(dim={s.dim})", "Linear is often good enough, and keeps correlations.", "the default."),
        (f"aw.SquareCB(dim={s.dim})", "Exact probabilities of every arm.", "the default."),
    ])  # fmt: skip


def _linear(s: Situation) -> list[Suggestion]:
    return _usable(s, [
        (f"aw.LinUCB({s.sizes})", "The least regret where rewards are about linear; it asks for no horizon.",
         "the default: the width follows the noise of your rewards."),
        (f"aw.LinThompson({s.sizes})", "Nearly as good, and its choices stay spread while rewards are late.",
         "the default: the spread follows the noise of your rewards."),
        (f"aw.SquareCB({s.sizes})", "Exact probabilities, any scikit-learn regressor; it asks for no horizon.",
         "the default."),
    ])  # fmt: skip


def _usable(s: Situation, answers: list[Suggestion]) -> list[Suggestion]:
    """Keep the answers if no log is needed; otherwise give agents that play every arm with a known probability > 0."""
    if not s.log:
        return answers
    drawn = (
        f"aw.LinThompson({s.sizes}{_draws(s)})",
        "Its probabilities are known, and none is 0.",
        f"{_DRAWS} posterior draws per decision: more is closer to Thompson, with smaller probabilities.",
    )
    igw = (f"aw.SquareCB({s.sizes})", "Exact probabilities that fall with an arm's estimated gap.", "the default.")
    return [drawn, *_floored(s, answers[:1]), igw]


def _floored(s: Situation, answers: list[Suggestion]) -> list[Suggestion]:
    """Keep the answers; if a log is needed, wrap deterministic agents in ``Explore``."""
    if not s.log:
        return answers
    floor = "epsilon = 0.1 gives every arm 0.1 / K; less costs less and makes the log weaker"
    return [
        each if "draws=" in each[0] or "floor=" in each[0]
        else (f"aw.Explore({each[0]}, epsilon=0.1)", each[1], f"{each[2].removesuffix('.')}; {floor}.")
        for each in answers
    ]  # fmt: skip


def _draws(s: Situation) -> str:
    """Thompson sampling with one draw does not know its probabilities."""
    return f", draws={_DRAWS}" if s.log else ""


_WIDTH = "scale"  # UCB1's name for the multiple of its published width
_DRAWS = 50
_ONE = "give it the context [1.0] every round"
_IN_RANGE = "; divide amounts by the largest that can come, for it reads [0, 1]"
MAX_MATRIX = 5e7  # numbers (400 MB) of a matrix of all pairs of columns


def _too_wide(s: Situation) -> bool:
    return s.features != "none" and s.dim**2 * (s.n_arms if s.features == "visitor" else 1) > MAX_MATRIX


# In order: the first rule that applies answers. Auto goes before the linear rules, not where an agent that knows
# more about the situation earns clearly more in it: arms that come and go, very many sparse features, late rewards.
RULES: list[tuple[Callable[[Situation], bool], Rule]] = [
    (lambda s: s.slots is not None, _lists),
    (lambda s: s.adversarial, _adversarial),
    (lambda s: s.graph, _graph),
    (lambda s: s.policies is not None, _policies),
    (_too_wide, _wide),
    (lambda s: s.features == "arms" and s.smooth and s.horizon <= MAX_PROCESS_ROUNDS and not s.drift, _few_smooth),
    (lambda s: s.kinds is not None and s.features == "none", _kinds),
    (lambda s: s.features == "none", _no_features),
    (lambda s: s.drift, _drift),
    (lambda s: not (s.arms_change or s.sparse or s.delay), _auto),
    (lambda s: s.feedback == "clicks", _clicks),
    (lambda s: True, _linear),
]
