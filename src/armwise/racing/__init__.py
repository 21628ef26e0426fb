"""Agents raced on a world: runner, result, pictures, report. (Not named race: that is the function.)"""

from armwise.racing.results.result import Result
from armwise.racing.results.results import Results
from armwise.racing.run.entries import enter
from armwise.racing.run.run import Heat, Run, Stretch
from armwise.racing.run.runner import RaceError, RaceWarning, race, race_all
from armwise.racing.run.variants import variants

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
