"""K-armed agents, step and block: one kernel for both lanes (native/kary.cpp)."""

from armwise.native._native import kary as _kary

exp3_learn = _kary.exp3_learn
exp3_play = _kary.exp3_play
ucb1_scores = _kary.ucb1_scores
ucb1_play = _kary.ucb1_play
greedy_mixed = _kary.greedy_mixed
decayed = _kary.decayed
greedy_play = _kary.greedy_play
beta_winner = _kary.beta_winner
beta_play = _kary.beta_play
arm_probability = _kary.arm_probability
exp3_policies = _kary.exp3_policies
ucb1_policies = _kary.ucb1_policies
greedy_policies = _kary.greedy_policies
beta_policies = _kary.beta_policies
