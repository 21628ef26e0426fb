"""Agents raced on a world: runner, result, pictures, report. (Not named race: that is the function.)"""
