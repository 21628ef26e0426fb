"""Agents raced on a world: runner, result, pictures, report. (Not named race: that is the function.)"""

from armwise.racing.result import Result
from armwise.racing.run import Heat, Run
from armwise.racing.runner import RaceError, RaceWarning, race, race_all

__all__ = ["Heat", "RaceError", "RaceWarning", "Result", "Run", "race", "race_all"]
