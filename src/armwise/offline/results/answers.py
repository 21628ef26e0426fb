"""The answer of an evaluation in a sentence or two, for readers who do not read tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from armwise.offline.results.cautions import without_answer
from armwise.offline.results.terminal import ends_of, number, percent

if TYPE_CHECKING:
    from armwise.offline.results.estimates import Comparison, Estimate, Evaluation, Lift
    from armwise.offline.results.evaluations import Evaluations

BEST_FIRST = ("dr", "sndr", "snips", "ips", "dros", "switch-dr", "dm")  # whose value is the answer
_NAMED = 3  # policies named in a sentence
_LOGGED = "what the log itself earned"


def headline(result: Evaluation) -> Estimate:
    """The estimate that is the answer: that of the best estimator."""
    return result[next((name for name in BEST_FIRST if name in result), next(iter(result)))]


def of_evaluation(result: Evaluation) -> str:
    """The answer about one policy."""
    estimate = headline(result)
    against = without_answer(result.weaknesses)
    if against or not math.isfinite(estimate.value):
        return f"This log cannot say what {result.target} would have earned: {against or 'the value is undefined'}."
    text = f"{_capital(result.target)} would have earned {_value(estimate, result.level, result.per)}"
    if result.lift is not None:
        text += f", {_lift(result.lift, result.logged)}"
    return text + "." + _see(result.weaknesses)


def of_several(results: Evaluations) -> str:
    """Which of several policies would have earned most."""
    judged = {name: headline(each) for name, each in results.items()
              if not without_answer(each.weaknesses) and math.isfinite(headline(each).value)}  # fmt: skip
    left = [name for name in results if name not in judged]
    if not judged:
        first = next(iter(results.values()))
        return f"This log cannot say what any of the {len(results)} policies would have earned: {_why(first)}."
    if results.apart and len(judged) > 1:
        return _of_apart(results, judged) + _see(results.weaknesses)
    best = max(judged, key=lambda name: judged[name].value)
    top, level = judged[best], results[best].level
    lift = results[best].lift
    both_ends = math.isfinite(top.low) and math.isfinite(top.high)  # one end does not rank policies
    beaten = lift.baseline if lift is not None and lift.low > 0.0 else ""
    near = [name for name, e in judged.items() if name != best and e.high > top.low]
    rivals = [name for name in near if both_ends and name != beaten]
    none_is_worse = lift is not None and lift.low <= 0.0 and 0 < len(rivals) == len(judged) - 1
    text = f"Of {len(judged)} policies, {best} would have earned most: {_value(top, level, results[best].per)}"
    if none_is_worse:
        text = (f"This log does not tell which of {len(judged)} policies earns most: {best} has the highest value, "
                f"{_value(top, level, results[best].per)}")  # fmt: skip
    if len(judged) == 1:
        text = f"{best} would have earned {_value(top, level, results[best].per)}"
    text += f", {_lift(lift, results[best].logged)}." if lift is not None else "."
    if rivals and not none_is_worse:
        text += f" By these intervals {_listed(rivals)} may be as good."
    elif len(judged) > 1 and not near:
        text += " Its interval lies above those of all others."
    if left:
        text += f" This log cannot say what {_listed(left)} would have earned."
    return text + _see(results.weaknesses)


def _of_apart(results: Evaluations, judged: dict[str, Estimate]) -> str:
    """The answer about policies that were on offer in different rows: each one's value beyond the same rows' own."""
    lifts = {name: lift for name in judged if (lift := results[name].lift) is not None}
    if not lifts:
        return (f"The {len(judged)} policies were on offer in different rows, so their values do not compare: judge "
                'each against the same rows with baseline="logged" (--baseline logged).')  # fmt: skip
    best = max(lifts, key=lambda name: lifts[name].value)
    text = (f"Each of {len(judged)} policies is judged in the rows that offered it, against what these earned. Most "
            f"beyond that would have earned {best}: {_value(judged[best], results[best].level, results[best].per)}, "
            f"{_lift(lifts[best], results[best].logged)}.")  # fmt: skip
    rivals = [name for name, lift in lifts.items() if name != best and lift.high > lifts[best].low]
    return text + (f" By these intervals {_listed(rivals)} may be as good." if rivals else "")


def of_comparison(comparison: Comparison) -> str:
    """Which of two policies is better."""
    one, other = comparison.names if comparison.names[0] != comparison.names[1] else ("the first", "the second")
    against = without_answer(comparison.weaknesses)
    level, ends = percent(comparison.first.level), ends_of(comparison)
    if against or not math.isfinite(comparison.value):
        return f"This log cannot tell {one} from {other}: {against.partition(': ')[2] or 'the values are undefined'}."
    if comparison.better == "neither":
        difference = f"the difference is {signed(comparison.value)} per decision, {level} interval {ends}."
        return f"This log does not tell whether {one} or {other} earns more: {difference}" + _see(comparison.weaknesses)
    if comparison.better == "second":
        one, other = other, one
        ends = ends_of(_Turned(comparison))
    share = _share(abs(comparison.value), min(comparison.first.value, comparison.second.value))
    return (f"{_capital(one)} earns {number(abs(comparison.value))}{share} more per decision than {other}, "
            f"{level} interval {ends}: more than chance explains." + _see(comparison.weaknesses))  # fmt: skip


class _Turned:
    """A difference seen from the other side."""

    def __init__(self, d: Any) -> None:
        self.value, self.low, self.high = -d.value, -d.high, -d.low


def signed(value: float) -> str:
    """A number with its sign."""
    return ("+" if value > 0 else "") + number(value)


def _value(e: Estimate, level: float, per: str) -> str:
    share = percent(level)
    return f"{number(e.value)} per {per} ({share} interval {ends_of(e)})"


def _lift(lift: Lift, logged: float) -> str:
    over = _LOGGED if lift.baseline == "logged" else lift.baseline
    size = f"{number(abs(lift.value))}{_share(abs(lift.value), logged if lift.baseline == 'logged' else math.nan)}"
    if lift.low > 0 or lift.high < 0:
        return f"{size} {'more' if lift.value > 0 else 'less'} than {over}, which chance does not explain"
    return f"{size} {'more' if lift.value > 0 else 'less'} than {over}, which may be chance"


def _share(value: float, base: float) -> str:
    return f" ({value / base:.0%})" if math.isfinite(base) and base > 0 else ""


def _why(result: Evaluation) -> str:
    return without_answer(result.weaknesses) or "the values are undefined"


def _listed(names: list[str]) -> str:
    if len(names) > _NAMED + 1:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} others"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _capital(text: str) -> str:
    """The name of a policy at the beginning of a sentence; a name that somebody gave stays as it is."""
    return text[:1].upper() + text[1:] if text.startswith(("always ", "the ")) else text


def _see(weaknesses: list[str]) -> str:
    return " Read the warnings first." if weaknesses else ""
