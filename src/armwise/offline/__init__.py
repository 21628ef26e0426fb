"""What another policy would have earned on logged decisions (survey 6).

>>> import armwise as aw
>>> log = aw.offline.Log(arms=[0, 1] * 50, rewards=[1, 0, 0, 0] * 25, probabilities=[0.5] * 100, n_arms=2)
>>> aw.offline.evaluate(log, aw.Constant(0), estimators=["ips"])["ips"].value
0.5
"""

from typing import TYPE_CHECKING, Any

_HOMES = {
    "logs.log": ("Log",),
    "logs.rows": ("LogError",),
    "evaluation.evaluation": ("compare", "evaluate", "scores"),
    "results.estimates": ("Comparison", "Estimate", "Evaluation", "Lift"),
    "results.evaluations": ("Evaluations",),
    "estimators.estimators": ("DM", "DR", "DRos", "Estimator", "IPS", "SNDR", "SNIPS", "SwitchDR"),
    "intervals.intervals": ("ConfidenceSequence", "confidence_sequence"),
    "evaluation.diagnostics": ("Diagnostics", "WeakLogWarning"),
    "estimators.propensities": ("PropensityModel",),
    "estimators.reward_models": ("Crossfit", "CrossfitRidge"),
    "learning.replay": ("LearnerComparison", "Replay", "compare_learners", "replay"),
    "learning.fit_policy": ("ById", "Fitted", "fit"),
    "designs.continuous": ("ContinuousLog", "evaluate_continuous"),
    "logs.slate_log": ("SlateLog",),
    "designs.slates": ("evaluate_slates",),
    "designs.embedded": ("evaluate_embedded",),
    "designs.loggers": ("evaluate_loggers",),
    "estimators.subgaussian": ("SGDR", "SGIPS"),
    "designs.adaptive_logs": ("adaptive",),
    "designs.adaptive_result": ("AdaptiveEvaluation",),
    "designs.costs": ("Mixture", "Tradeoff", "best_mixture", "tradeoff"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME_OF)


# Type checkers and editors read this list; at run time a name is imported when it is first asked for. A test holds the
# two together.
if TYPE_CHECKING:
    from armwise.offline.designs.adaptive_logs import adaptive as adaptive
    from armwise.offline.designs.adaptive_result import AdaptiveEvaluation as AdaptiveEvaluation
    from armwise.offline.designs.continuous import ContinuousLog as ContinuousLog
    from armwise.offline.designs.continuous import evaluate_continuous as evaluate_continuous
    from armwise.offline.designs.costs import Mixture as Mixture
    from armwise.offline.designs.costs import Tradeoff as Tradeoff
    from armwise.offline.designs.costs import best_mixture as best_mixture
    from armwise.offline.designs.costs import tradeoff as tradeoff
    from armwise.offline.designs.embedded import evaluate_embedded as evaluate_embedded
    from armwise.offline.designs.loggers import evaluate_loggers as evaluate_loggers
    from armwise.offline.designs.slates import evaluate_slates as evaluate_slates
    from armwise.offline.estimators.estimators import DM as DM
    from armwise.offline.estimators.estimators import DR as DR
    from armwise.offline.estimators.estimators import IPS as IPS
    from armwise.offline.estimators.estimators import SNDR as SNDR
    from armwise.offline.estimators.estimators import SNIPS as SNIPS
    from armwise.offline.estimators.estimators import DRos as DRos
    from armwise.offline.estimators.estimators import Estimator as Estimator
    from armwise.offline.estimators.estimators import SwitchDR as SwitchDR
    from armwise.offline.estimators.propensities import PropensityModel as PropensityModel
    from armwise.offline.estimators.reward_models import Crossfit as Crossfit
    from armwise.offline.estimators.reward_models import CrossfitRidge as CrossfitRidge
    from armwise.offline.estimators.subgaussian import SGDR as SGDR
    from armwise.offline.estimators.subgaussian import SGIPS as SGIPS
    from armwise.offline.evaluation.diagnostics import Diagnostics as Diagnostics
    from armwise.offline.evaluation.diagnostics import WeakLogWarning as WeakLogWarning
    from armwise.offline.evaluation.evaluation import compare as compare
    from armwise.offline.evaluation.evaluation import evaluate as evaluate
    from armwise.offline.evaluation.evaluation import scores as scores
    from armwise.offline.intervals.intervals import ConfidenceSequence as ConfidenceSequence
    from armwise.offline.intervals.intervals import confidence_sequence as confidence_sequence
    from armwise.offline.learning.fit_policy import ById as ById
    from armwise.offline.learning.fit_policy import Fitted as Fitted
    from armwise.offline.learning.fit_policy import fit as fit
    from armwise.offline.learning.replay import LearnerComparison as LearnerComparison
    from armwise.offline.learning.replay import Replay as Replay
    from armwise.offline.learning.replay import compare_learners as compare_learners
    from armwise.offline.learning.replay import replay as replay
    from armwise.offline.logs.log import Log as Log
    from armwise.offline.logs.rows import LogError as LogError
    from armwise.offline.logs.slate_log import SlateLog as SlateLog
    from armwise.offline.results.estimates import Comparison as Comparison
    from armwise.offline.results.estimates import Estimate as Estimate
    from armwise.offline.results.estimates import Evaluation as Evaluation
    from armwise.offline.results.estimates import Lift as Lift
    from armwise.offline.results.evaluations import Evaluations as Evaluations
else:

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        from armwise.core.extras import needs

        if name not in _HOME_OF:
            raise AttributeError(f"module 'armwise.offline' has no attribute {name!r}")
        with needs():
            value = getattr(import_module(f"armwise.offline.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
