"""Cautions: what speaks against a result, each finding once, the most important first, each with a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Findings in the order of their importance: a phrase of the finding, and what to do. Those without a remedy here have
# it in their own words. The first findings say that there is no answer at all.
_NO_ANSWER = (
    ("undefined", "Judge a policy that plays arms of the log."),
    ("never tries there", "Judge a policy that stays with arms that the log tried, or explore more and log again."),
    ("cannot answer the question", "Collect more rows, or judge a policy nearer to the one that made the log."),
    ("too few rows answer the question", "Collect more rows before you decide."),
)
_OTHERS = (
    ("an outcome is no context", ""),
    ("known only with the reward", ""),
    ("are copies of other rows", ""),
    ("do not match how often arms appear", "Check that the column holds the probability of the arm that was drawn."),
    ("the weights average", "Check the probabilities, and that no rows were left out of the log."),
    ("weighted by 1/p, differ in", "Correct the probabilities, or leave the column out of contexts."),
    ("one row carries", "Cap the weights (cap=, --cap), or judge a policy nearer to the one that made the log."),
    ("miss an interaction", "Estimate them with a model of interactions (PropensityModel of a boosted classifier)."),
    ("miss how the arms depend", "Estimate them with a boosted classifier (PropensityModel), or correct them."),
    ("the mean moves over the log", "Judge the parts of the log apart, or ask for interval='cressie-read'."),
    ("few clusters", "Take the interval as a rough one, or collect rows of more of them."),
    ("a few rows decide the answer", "Judge a reward with a limit, such as min(reward, 500), or collect more rows."),
    ("the reward model alone", "Take dr or snips."),
    ("heavy tail", "Cap the weights (cap=, --cap), or collect more rows."),
    ("barely answers the question", "Take the interval as a rough one, or collect more rows."),
    ("matching rows have the reward", "Collect more rows before you decide."),
    ("few different rewards", "Collect more rows before you decide."),
    ("no width", "Collect more rows before you decide."),
    ("biased: clipping", "Clip less, or not at all."),
    ("outside its interval", ""),
    ("looks like the probabilities", ""),
    ("look like outcomes", ""),
    ("rows were left out", ""),
    ("row was left out", ""),
    ("two columns are called", ""),
)
_ORDER = (*_NO_ANSWER, *_OTHERS)
_NUMBERS = re.compile(r"\d[\d,.]*%?")
_MAX_SUBJECTS = 3  # subjects named for one finding

Finding = tuple[str, str]  # of what (a policy, a segment; empty for the whole log), and the text


def distinct(findings: Iterable[Finding]) -> list[str]:
    """The findings as sentences: those that differ in their numbers alone are one, with all their names."""
    return [_sentence(text) for text in merged(findings)]


def merged(findings: Iterable[Finding]) -> list[str]:
    """The findings, most important first; those that differ in their numbers alone are one, with all their names."""
    kinds: dict[str, dict[str, str]] = {}
    for subject, text in findings:
        kinds.setdefault(_NUMBERS.sub("#", text), {}).setdefault(subject, text)
    found = []
    for by_subject in sorted(kinds.values(), key=lambda kind: _rank(next(iter(kind.values())))):
        subject, *others = by_subject
        if "" in by_subject:
            found.append(by_subject[""])
            continue
        named, more = others[:_MAX_SUBJECTS], len(others) - _MAX_SUBJECTS
        also = ", ".join(named) + (f" and {more} more" if more > 0 else "")
        found.append(f"{subject}: {by_subject[subject]}" + (f" (also {also})" if others else ""))
    return found


def _sentence(text: str) -> str:
    remedy = next((remedy for phrase, remedy in _ORDER if phrase in text), "")
    return f"{text}." + (f" {remedy}" if remedy else "")


def _rank(text: str) -> int:
    return next((i for i, (phrase, _) in enumerate(_ORDER) if phrase in text), len(_NO_ANSWER))


def without_answer(texts: Sequence[str]) -> str:
    """The finding that leaves no answer at all; empty if there is none."""
    return next((text for phrase, _ in _NO_ANSWER for text in texts if phrase in text), "")
