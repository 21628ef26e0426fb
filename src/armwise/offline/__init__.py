"""What another policy would have earned on logged decisions (survey 6).

>>> import armwise as aw
>>> log = aw.offline.Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=[0.5] * 100, n_arms=2)
>>> aw.offline.evaluate(log, aw.Constant(0), estimators=["ips"])["ips"].value
1.0
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "log": ("Log",),
    "rows": ("LogError",),
    "evaluation": ("compare", "evaluate", "scores"),
    "result": ("Comparison", "Estimate", "Evaluation"),
    "estimators": ("DM", "DR", "DRos", "Estimator", "IPS", "SNDR", "SNIPS", "SwitchDR"),
    "intervals": ("ConfidenceSequence", "confidence_sequence"),
    "diagnostics": ("Diagnostics", "WeakLogWarning"),
    "propensities": ("PropensityModel",),
    "reward_models": ("Crossfit", "CrossfitRidge"),
    "playback": ("Replay", "replay"),
    "fitting": ("Fitted", "fit"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'armwise.offline' has no attribute {name!r}")
    value = getattr(import_module(f"armwise.offline.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
