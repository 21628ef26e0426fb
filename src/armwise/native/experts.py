"""Exponential weights over experts (survey 5), step and block: one kernel for both lanes (native/experts.cpp)."""

from armwise.native._native import experts as _experts

advised = _experts.advised
recentre = _experts.recentre
exp4_learn = _experts.exp4_learn
exp4p_learn = _experts.exp4p_learn
exp4_play = _experts.exp4_play
exp4p_play = _experts.exp4p_play
voted = _experts.voted
voted_learn = _experts.voted_learn
voted_play = _experts.voted_play
