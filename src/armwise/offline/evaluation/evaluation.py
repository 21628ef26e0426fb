"""Evaluation of fixed policies on a log: one pass for all of them, shared code for intervals, lifts and comparisons."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from armwise.core.agent import Agent, Floats
from armwise.offline.estimators.estimators import Estimator, Facts, named
from armwise.offline.estimators.reward_models import fitted_model
from armwise.offline.evaluation.offers import Mask, offered, remark, restricted, rows_of
from armwise.offline.evaluation.passes import Pass
from armwise.offline.evaluation.settings import EvaluationSettings, Logged
from armwise.offline.evaluation.tally import Tally
from armwise.offline.evaluation.targets import Always, Target
from armwise.offline.intervals.intervals import IntervalKind
from armwise.offline.logs.log import Log
from armwise.offline.logs.rows import WeakLogWarning
from armwise.offline.results import answers
from armwise.offline.results.analysis_plan import plan_of
from armwise.offline.results.answers import BEST_FIRST
from armwise.offline.results.estimates import Comparison, Estimate, Evaluation, Lift, OneSided, both_sides
from armwise.offline.results.evaluations import Evaluations

Names = str | Estimator | Iterable[str | Estimator]


class Options(TypedDict, total=False):
    """The keywords of ``evaluate``, for its two overloads."""

    by: Any
    baseline: str | None
    cluster: Any
    cap: float | None
    folds: int
    reward_range: tuple[float, float] | None
    max_weight: float | None
    resamples: int
    seed: int
    progress: bool
    engine: Any
    simultaneous: bool
    one_sided: OneSided | None
    warn: bool


@overload
def evaluate(
    log: Log, policy: Mapping[str, Any], estimators: Names = ..., reward_model: Any = ..., clip: float | None = ...,
    interval: IntervalKind = ..., level: float = ..., **options: Unpack[Options],
) -> Evaluations: ...  # fmt: skip
@overload
def evaluate(
    log: Log, policy: Any, estimators: Names = ..., reward_model: Any = ..., clip: float | None = ...,
    interval: IntervalKind = ..., level: float = ..., **options: Unpack[Options],
) -> Evaluation: ...  # fmt: skip
def evaluate(
    log: Log,
    policy: Any,
    estimators: Names = ("ips", "snips", "dm", "dr"),
    reward_model: Any = None,
    clip: float | None = None,
    interval: IntervalKind = "auto",
    level: float = 0.95,
    *,
    by: Any = None,
    baseline: str | None = None,
    cluster: Any = None,
    cap: float | None = None,
    folds: int = 3,
    reward_range: tuple[float, float] | None = None,
    max_weight: float | None = None,
    resamples: int = 1000,
    seed: int = 0,
    progress: bool = False,
    engine: Any = None,
    simultaneous: bool = True,
    one_sided: OneSided | None = None,
    warn: bool = True,
) -> Any:
    """Evaluate ``policy`` on the rounds of ``log``, with intervals, diagnostics and a verdict.

    ``policy`` is a policy, an agent (frozen as it is), an (n, K) array of probabilities or a table with one column per
    arm by name, or (n,) arms; or a dictionary of several by name: then all are judged in one pass, with intervals that
    hold for all of them at once. ``baseline`` adds the paired lift over what the log itself earned ("logged") or over
    another policy of the dictionary. ``by`` (a column's name, or an (n,) array) judges each segment too. ``cluster``
    (likewise) says which rows belong together, as those of one user.

    ``clip`` replaces a logged probability p by max(p, clip) (Strehl et al. 2010), ``cap`` a weight w by min(w, cap):
    less variance, for a bias that the intervals do not know; the verdict says so where it matters. ``interval`` is
    "auto" ("cressie-read" where rewards are bounded, else "skew-corrected"), "normal", "bootstrap", "bernstein",
    "betting" or "sequence" (valid at all times at once); the last two assume that the mean reward stays the same over
    the log. Rewards are bounded by ``reward_range``, or by 0 and 1 where all of them lie between. "bernstein",
    "betting" and "sequence" of a doubly robust estimate also need the largest possible weight: ``max_weight``, by
    default 1/clip or cap, or one over the log's smallest probability.
    ``reward_model``: None for a ridge, a scikit-learn regressor or classifier (both cross-fitted), an object with
    ``predict(contexts) -> (n, K)``, or an (n, K) array. An interval does not know the bias of "dm".
    ``engine`` names a Dask cluster for logs beyond one machine: "dask" (the client that is open), "dask://host:port",
    a ``Client`` or a cluster. Its workers read parts of the log, whose sums merge into the same numbers.
    ``simultaneous=False`` gives each policy's interval its own level instead of one for all at once. ``one_sided``
    "lower" or "upper" leaves only that end of every interval, at the whole ``level``, and p-values of that side.
    What speaks against the numbers is the result's ``verdict``, and a ``WeakLogWarning`` unless ``warn`` is False.

    >>> rng = np.random.default_rng(2)
    >>> arms = rng.integers(0, 2, 1000)
    >>> log = Log(arms=arms, rewards=rng.random(1000) < 0.2 + 0.5 * arms, probabilities=np.full(1000, 0.5), n_arms=2)
    >>> result = evaluate(log, [0.0, 1.0], estimators=["ips", "snips"])
    >>> bool(result["snips"].low < 0.7 < result["snips"].high)
    True
    >>> both = evaluate(log, {"never": [1.0, 0.0], "always": [0.0, 1.0]}, "snips", baseline="logged")
    >>> bool(both["always"].lift.low > 0), bool(both["never"].lift.high < 0)
    (True, True)
    """
    chosen = named(estimators)
    several = isinstance(policy, Mapping)
    policies = dict(policy) if several else {"": policy}
    if not policies:
        raise ValueError("policy is an empty dictionary: expected at least one policy by name")
    if baseline is not None and baseline != "logged" and (not several or baseline not in policies):
        known = ["logged", *(policies if several else ())]
        raise ValueError(f"baseline is {baseline!r}, expected one of {', '.join(map(repr, known))}")
    if (masks := offered(log, policies)) is not None:
        options: dict[str, Any] = {
            "clip": clip, "interval": interval, "baseline": baseline, "cap": cap, "folds": folds,
            "reward_range": reward_range, "max_weight": max_weight, "resamples": resamples, "seed": seed,
            "progress": progress, "engine": engine, "simultaneous": simultaneous,
            "one_sided": one_sided, "warn": False,
        }  # fmt: skip
        rest = {"by": by, "cluster": cluster, "reward_model": reward_model}
        found = _where_offered(log, policies, masks, chosen, level, rest, options)
        apart = None if len({mask.tobytes() for mask in masks.values()}) == 1 else float(np.mean(log.rewards))
        whole = Evaluations(found, baseline, by if isinstance(by, str) else "segment", apart) if several else found[""]
        if warn and whole.weaknesses:
            warnings.warn(WeakLogWarning("; ".join(whole.weaknesses)), stacklevel=2)
        return whole
    asked, level = level, both_sides(level, one_sided)
    together = len(policies) if simultaneous else 1
    single = 1.0 - (1.0 - level) / together if interval in ("betting", "sequence") else level
    job = EvaluationSettings(log, clip, interval, single, reward_range, max_weight, folds, cap, cluster is not None)
    targets = {name: Target(each, log, name or None) for name, each in policies.items()}
    reported = (Logged(),) if baseline == "logged" else ()
    pairs = [(e, t) for t in targets.values() for e in chosen]
    run = Pass(job, pairs, reward_model, folds, seed, by, cluster, reported)
    run.go(progress, engine)
    question = _Answers(targets, chosen, baseline, level, resamples, seed, simultaneous)
    # copies in both halves of the rows are a pattern that a tree learns by heart: they are what has to be said
    found = question.of(run.whole, log, list if log.copies else run.balance.missed)
    for each in found.values():
        each.plan = plan_of(log, each, answers.headline(each).name, interval, cluster)
        each.copies, each.remarks = log.copies, log.remarks
    if by is not None:
        share = level ** (1.0 / max(len(run.segments), 1)) if simultaneous else level
        for segment, tally in run.segments.items():
            inside = _Answers(targets, chosen, baseline, share, resamples, seed, simultaneous).of(tally, log)
            for name, each in inside.items():
                found[name].segments[segment] = each
    if one_sided is not None:
        found = {name: each.one_sided(one_sided, asked) for name, each in found.items()}
    result = Evaluations(found, baseline, by if isinstance(by, str) else "segment") if several else found[""]
    if warn and result.weaknesses:
        warnings.warn(WeakLogWarning("; ".join(result.weaknesses)), stacklevel=2)
    return result


def _where_offered(
    log: Log, policies: dict[str, Any], masks: dict[str, Mask], chosen: Any, level: float, rest: dict[str, Any],
    options: dict[str, Any],
) -> dict[str, Evaluation]:  # fmt: skip
    """Each policy on the rows in which it was on offer; intervals still hold for all of them at once."""
    base = options["baseline"]
    if base in masks:  # a lift is paired: both must be on offer
        masks = {name: mask & masks[base] for name, mask in masks.items()}
    found: dict[str, Evaluation] = {}
    for mask in {mask.tobytes(): mask for mask in masks.values()}.values():
        names = [name for name, each in masks.items() if (each == mask).all()]
        paired = dict.fromkeys([*names, base] if base in masks else names)
        group = {name: rows_of(policies[name], mask) for name in paired}
        part = restricted(log, mask, names[0])
        share = 1.0 - (1.0 - level) * len(names) / len(masks) if options["simultaneous"] else level
        inside = {name: rows_of(values, mask) for name, values in rest.items()}
        judged = evaluate(part, group, chosen, level=share, **inside, **options)
        for name in names:
            found[name] = judged[name]
            if not mask.all():
                found[name].remarks = [*found[name].remarks, remark(mask, found[name])]
    return {name: found[name] for name in policies}


class _Answers:
    """Estimates, lifts and checks of every policy from one tally."""

    def __init__(
        self, targets: dict[str, Target], chosen: list[Estimator], baseline: str | None, level: float,
        resamples: int, seed: int, simultaneous: bool,
    ) -> None:  # fmt: skip
        self._targets, self._chosen, self._baseline = targets, chosen, baseline
        self._level, self._resamples, self._seed, self._simultaneous = level, resamples, seed, simultaneous

    def _single(self, tally: Tally, gradients: list[Floats]) -> float:
        """The level of each of several intervals."""
        return tally.simultaneous_level(gradients, self._level, self._seed) if self._simultaneous else self._level

    def of(self, tally: Tally, log: Log, missed: Callable[[], list[str]] = list) -> dict[str, Evaluation]:
        m, names = len(self._chosen), list(self._targets)
        found: dict[str, dict[str, Estimate]] = {name: {} for name in names}
        for j, estimator in enumerate(self._chosen):
            pairs = [i * m + j for i in range(len(names))]
            level = self._single(tally, [tally.gradient(p) for p in pairs])
            for name, pair in zip(names, pairs, strict=True):
                found[name][estimator.name] = tally.estimate(pair, level, self._resamples, self._seed, self._level)
        lifts = self._lifts(tally)
        kind = tally.kind
        return {
            name: Evaluation(found[name], tally.diagnostics(self._targets[name]), self._targets[name].name, kind,
                             self._level, lift=lifts.get(name), columns=log.columns_used, logged=tally.mean_reward,
                             reward_range=tally.reward_range, policies=len(names) if self._simultaneous else 1,
                             estimated=log.estimated, missed=missed)
            for name in names
        }  # fmt: skip

    def _lifts(self, tally: Tally) -> dict[str, Lift]:
        if self._baseline is None:
            return {}
        names, m = list(self._targets), len(self._chosen)
        known = [e.name for e in self._chosen]
        best = known.index(next(name for name in (*BEST_FIRST, *known) if name in known))
        base = len(names) * m if self._baseline == "logged" else names.index(self._baseline) * m + best
        pairs = {name: i * m + best for i, name in enumerate(names) if i * m + best != base}
        gradients = [tally.gradient(p) - tally.gradient(base) for p in pairs.values()]
        level = self._single(tally, gradients)
        differences = [tally.difference(pair, base, level, self._resamples, self._seed) for pair in pairs.values()]
        p_values = [d.p_value for d in differences]
        if self._simultaneous:
            p_values = tally.simultaneous_p(gradients, p_values, self._seed)
        found = {}
        for name, d, p in zip(pairs, differences, p_values, strict=True):
            value = min(max(d.value, d.low), d.high)  # cut, as its interval is, to what the rewards' range allows
            error = math.sqrt(max(d.variance, 0.0) / tally.n)
            found[name] = Lift(self._baseline, known[best], value, d.low, d.high, p, self._level, d.kind, error)
        return found


def effects(
    log: Log, control: Any, estimators: Names = "dr", *, by: Any = None, level: float = 0.95, **options: Any
) -> Evaluations:  # fmt: skip
    """Estimate each arm's effect against ``control``, overall and by segment: ``evaluate`` with a policy per arm.

    The result has each arm by its name; ``lift`` is the effect, with an interval and a p-value; with ``by`` (a column's
    name, or an array) ``segments`` have their own, and ``heterogeneity`` is the p-value of "the effect is the same in
    all segments". ``options`` go to ``evaluate``.

    >>> rng = np.random.default_rng(2)
    >>> arms = rng.choice(["mail", "none"], 4000)
    >>> log = Log(arms=arms, rewards=rng.random(4000) < 0.2 + 0.1 * (arms == "mail"), probabilities=0.5)
    >>> found = effects(log, "none", "snips", by=rng.integers(0, 2, 4000))
    >>> bool(found["mail"].lift.low > 0), bool(found["mail"].heterogeneity > 0.01)
    (True, True)
    """
    labels = [str(label) for label in (log.arm_names if log.arm_names is not None else range(log.n_arms))]
    if str(control) not in labels:
        raise ValueError(f"control is {control!r}, expected one of the arms: {', '.join(labels[:20])}")
    policies = {label: Always(place) for place, label in enumerate(labels)}
    found: Evaluations = evaluate(log, policies, estimators, level=level, by=by, baseline=str(control), **options)
    return found


def compare(
    log: Log,
    first: Any,
    second: Any,
    estimator: str | Estimator = "dr",
    reward_model: Any = None,
    clip: float | None = None,
    interval: IntervalKind = "auto",
    level: float = 0.95,
    *,
    cluster: Any = None,
    cap: float | None = None,
    folds: int = 3,
    reward_range: tuple[float, float] | None = None,
    max_weight: float | None = None,
    resamples: int = 1000,
    seed: int = 0,
    progress: bool = False,
    engine: Any = None,
    one_sided: OneSided | None = None,
    warn: bool = True,
) -> Comparison:
    """Compare two policies: the difference of their values, paired row by row.

    What both would have earned in the same round cancels, so the interval is narrower than two apart would say. The
    p-value and the interval of the difference are of one kind: with "auto", "cressie-read" where rewards are bounded,
    else "skew-corrected". ``one_sided`` and ``warn`` as in ``evaluate``.

    >>> rng = np.random.default_rng(2)
    >>> arms = rng.integers(0, 2, 1000)
    >>> log = Log(arms=arms, rewards=rng.random(1000) < 0.2 + 0.5 * arms, probabilities=np.full(1000, 0.5), n_arms=2)
    >>> compare(log, [0.0, 1.0], [1.0, 0.0], "snips").better
    'first'
    """
    [chosen] = named(estimator)
    left = ""
    if (masks := offered(log, {"first": first, "second": second})) is not None:
        both_offered = masks["first"] & masks["second"]
        if not both_offered.all():
            first, second, cluster, reward_model = (
                rows_of(each, both_offered) for each in (first, second, cluster, reward_model)
            )
            n, log = len(both_offered), restricted(log, both_offered, "first and second")
            left = f"both policies were on offer in {len(log):,} of {n:,} rows, and are compared on these"
    asked, level = level, both_sides(level, one_sided)
    job = EvaluationSettings(log, clip, interval, level, reward_range, max_weight, folds, cap, cluster is not None)
    targets = [Target(first, log), Target(second, log)]
    run = Pass(job, [(chosen, target) for target in targets], reward_model, folds, seed, None, cluster)
    run.go(progress, engine)
    both = [run.whole.estimate(i, level, resamples, seed) for i in range(2)]
    verdicts = []
    if all(isinstance(each, Agent) and not each._n_learnt for each in (first, second)):
        verdicts.append(
            "both agents have learnt nothing, so this compares what they do before the first reward: to compare how "
            "they learn, use armwise.offline.compare_learners"
        )
    difference = run.whole.difference(0, 1, level, resamples, seed)
    names = (targets[0].name, targets[1].name)
    verdicts += [log.copies] if log.copies else run.balance.missed()
    plan = plan_of(log, {chosen.name: both[0]}, chosen.name, interval, cluster, difference.kind)
    comparison = Comparison.of(both[0], both[1], difference, names, log.columns_used, verdicts, plan,
                               [*log.remarks, *([left] if left else [])], log.estimated)  # fmt: skip
    if one_sided is not None:
        comparison = comparison.one_sided(one_sided, asked)
    if comparison.weaknesses and warn:
        warnings.warn(WeakLogWarning("; ".join(comparison.weaknesses)), stacklevel=2)
    return comparison


def scores(
    log: Log,
    policy: Any,
    estimator: str | Estimator = "ips",
    reward_model: Any = None,
    clip: float | None = None,
    *,
    cap: float | None = None,
    folds: int = 3,
    seed: int = 0,
) -> Floats:
    """Return the per-round scores of an estimator, whose mean is its value (linearised if self-normalised).

    >>> log = Log(arms=[0, 1], rewards=[1, 1], probabilities=[0.5, 0.5], n_arms=2)
    >>> scores(log, [1.0, 0.0], "ips")
    array([2., 0.])
    """
    [chosen] = named(estimator)
    job = EvaluationSettings(log, clip, "normal", 0.95, None, None, folds, cap)
    target, model = Target(policy, log), None
    if chosen.needs_model:
        model = fitted_model(reward_model, log, folds, seed)
    parts = [
        job.facts(rows, target.answers(rows), None if model is None else model.predict(rows))[0]
        for rows in job.batches(model is not None or target.needs_contexts)
    ]
    whole = Facts(*(_concatenated([getattr(p, name) for p in parts]) for name in Facts.__dataclass_fields__))
    columns = np.stack(chosen.columns(whole), axis=-1)
    covariance = np.atleast_2d(np.cov(columns, rowvar=False))
    return chosen.settled(columns.mean(axis=0), covariance, len(columns)).scores(whole)


def _concatenated(parts: list[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)
