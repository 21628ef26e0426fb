"""What another policy would have earned on logged decisions (survey 6).

>>> import armwise as aw
>>> log = aw.offline.Log(arms=[0, 1] * 50, rewards=[1, 0, 0, 0] * 25, probabilities=[0.5] * 100, n_arms=2)
>>> aw.offline.evaluate(log, aw.Constant(0), estimators=["ips"])["ips"].value
0.5
"""

from typing import TYPE_CHECKING, Any

_HOMES = {
    "log": ("Log",),
    "rows": ("LogError",),
    "evaluation": ("compare", "evaluate", "scores"),
    "result": ("Comparison", "Estimate", "Evaluation", "Lift"),
    "several": ("Evaluations",),
    "estimators": ("DM", "DR", "DRos", "Estimator", "IPS", "SNDR", "SNIPS", "SwitchDR"),
    "intervals": ("ConfidenceSequence", "confidence_sequence"),
    "diagnostics": ("Diagnostics", "WeakLogWarning"),
    "propensities": ("PropensityModel",),
    "reward_models": ("Crossfit", "CrossfitRidge"),
    "playback": ("LearnerComparison", "Replay", "compare_learners", "replay"),
    "fitting": ("ById", "Fitted", "fit"),
    "continuous": ("ContinuousLog", "evaluate_continuous"),
    "slate_log": ("SlateLog",),
    "slates": ("evaluate_slates",),
    "embedded": ("evaluate_embedded",),
    "loggers": ("evaluate_loggers",),
    "subgaussian": ("SGDR", "SGIPS"),
    "adaptive_logs": ("adaptive",),
    "adaptive_result": ("AdaptiveEvaluation",),
    "costs": ("Mixture", "Tradeoff", "best_mixture", "tradeoff"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME_OF)


# Type checkers and editors read this list; at run time a name is imported when it is first asked for. A test holds the
# two together.
if TYPE_CHECKING:
    from armwise.offline.adaptive_logs import adaptive as adaptive
    from armwise.offline.adaptive_result import AdaptiveEvaluation as AdaptiveEvaluation
    from armwise.offline.continuous import ContinuousLog as ContinuousLog
    from armwise.offline.continuous import evaluate_continuous as evaluate_continuous
    from armwise.offline.costs import Mixture as Mixture
    from armwise.offline.costs import Tradeoff as Tradeoff
    from armwise.offline.costs import best_mixture as best_mixture
    from armwise.offline.costs import tradeoff as tradeoff
    from armwise.offline.diagnostics import Diagnostics as Diagnostics
    from armwise.offline.diagnostics import WeakLogWarning as WeakLogWarning
    from armwise.offline.embedded import evaluate_embedded as evaluate_embedded
    from armwise.offline.estimators import DM as DM
    from armwise.offline.estimators import DR as DR
    from armwise.offline.estimators import IPS as IPS
    from armwise.offline.estimators import SNDR as SNDR
    from armwise.offline.estimators import SNIPS as SNIPS
    from armwise.offline.estimators import DRos as DRos
    from armwise.offline.estimators import Estimator as Estimator
    from armwise.offline.estimators import SwitchDR as SwitchDR
    from armwise.offline.evaluation import compare as compare
    from armwise.offline.evaluation import evaluate as evaluate
    from armwise.offline.evaluation import scores as scores
    from armwise.offline.fitting import ById as ById
    from armwise.offline.fitting import Fitted as Fitted
    from armwise.offline.fitting import fit as fit
    from armwise.offline.intervals import ConfidenceSequence as ConfidenceSequence
    from armwise.offline.intervals import confidence_sequence as confidence_sequence
    from armwise.offline.log import Log as Log
    from armwise.offline.loggers import evaluate_loggers as evaluate_loggers
    from armwise.offline.playback import LearnerComparison as LearnerComparison
    from armwise.offline.playback import Replay as Replay
    from armwise.offline.playback import compare_learners as compare_learners
    from armwise.offline.playback import replay as replay
    from armwise.offline.propensities import PropensityModel as PropensityModel
    from armwise.offline.result import Comparison as Comparison
    from armwise.offline.result import Estimate as Estimate
    from armwise.offline.result import Evaluation as Evaluation
    from armwise.offline.result import Lift as Lift
    from armwise.offline.reward_models import Crossfit as Crossfit
    from armwise.offline.reward_models import CrossfitRidge as CrossfitRidge
    from armwise.offline.rows import LogError as LogError
    from armwise.offline.several import Evaluations as Evaluations
    from armwise.offline.slate_log import SlateLog as SlateLog
    from armwise.offline.slates import evaluate_slates as evaluate_slates
    from armwise.offline.subgaussian import SGDR as SGDR
    from armwise.offline.subgaussian import SGIPS as SGIPS
else:

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        from armwise.extras import needs

        if name not in _HOME_OF:
            raise AttributeError(f"module 'armwise.offline' has no attribute {name!r}")
        with needs():
            value = getattr(import_module(f"armwise.offline.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
