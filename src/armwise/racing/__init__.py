"""Agents raced on a world: runner, result, pictures, report. (Not named race: that is the function.)"""

from armwise.racing.entries import enter
from armwise.racing.result import Result
from armwise.racing.results import Results
from armwise.racing.run import Heat, Run, Stretch
from armwise.racing.runner import RaceError, RaceWarning, race, race_all
from armwise.racing.variants import variants

__all__ = [
    "Heat",
    "RaceError",
    "RaceWarning",
    "Result",
    "Results",
    "Run",
    "Stretch",
    "enter",
    "race",
    "race_all",
    "variants",
]
