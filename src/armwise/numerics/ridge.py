"""Ridge regression one row at a time, kept as a triangular factor of the inverse Gram matrix (native/ridge.hpp)."""

from armwise.numerics._native import ridge as _ridge

update = _ridge.update
update_rows = _ridge.update_rows
log_det = _ridge.log_det
refit = _ridge.refit
learn_row = _ridge.learn_row
learn = _ridge.learn
revise = _ridge.revise
estimate_into = _ridge.estimate_into
estimate_all = _ridge.estimate_all
optimistic = _ridge.optimistic
choose_optimistic = _ridge.choose_optimistic
play_optimistic = _ridge.play_optimistic
choose_many = _ridge.choose_many
learn_many = _ridge.learn_many
