"""Exploration over regression estimates: inverse-gap weighting and confidence sets, step and block."""

from armwise.native._native import regression as _regression

UNTOUCHED = _regression.UNTOUCHED
inverse_gap = _regression.inverse_gap
estimates = _regression.estimates
cut = _regression.cut
confident = _regression.confident
gap_scale = _regression.gap_scale
confidence = _regression.confidence
squarecb_play = _regression.squarecb_play
regcb_play = _regression.regcb_play
greedy_play = _regression.greedy_play
squarecb_choose_many = _regression.squarecb_choose_many
regcb_choose_many = _regression.regcb_choose_many
