"""Contexts as algorithms want them: each view of a round has one reader, which refuses the rest with a reason."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from armwise.core.arguments import MAX_MAGNITUDE, Sees, as_floats, short, wanted_numbers
from armwise.native.choice import all_within

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
_MAX_DENSE = 1_000_000  # numbers of a block of sparse rounds that are dense at a time


class Reader(Protocol):
    """The attributes of an agent that a reader needs."""

    sees: Sees
    dim: int | None
    n_arms: int | None
    n_experts: int | None
    keeps_sparse: bool


class TakesDim:
    """An agent that can be made without ``dim``: its first context says it. Others without a ``dim`` take any width."""

    def _take_dim(self, dim: int) -> None:
        """Take the width of the first context."""
        raise NotImplementedError


def is_sparse(context: Any) -> bool:
    """Return whether this is a SciPy sparse matrix."""
    sparse = sys.modules.get("scipy.sparse")  # whoever has a sparse matrix has imported it, to its end
    issparse = getattr(sparse, "issparse", None)  # another thread may be importing it now
    return issparse is not None and bool(issparse(context))


def read_csr(name: str, context: Any) -> csr_array[Any, Any]:
    """A sparse matrix as checked CSR of float64, without stored zeros or duplicates."""
    from scipy.sparse import csr_array  # it is there: the context is one of its matrices

    if context.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be a matrix of numbers, got a sparse matrix of {context.dtype}")
    matrix = csr_array(context, dtype=np.float64)
    if not np.isfinite(matrix.data).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity among its non-zeros")
    if matrix.data.size and np.abs(matrix.data).max() > MAX_MAGNITUDE:
        raise ValueError(f"{name} must be at most {MAX_MAGNITUDE:g} in size, so that squares do not overflow")
    if not (matrix.has_canonical_format and matrix.data.all()):
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


def dense(X: Any) -> Floats:
    """Rows as a dense array, whichever way they came."""
    return X if isinstance(X, np.ndarray) else np.asarray(X.toarray())


def dense_pieces(X: Any) -> Iterator[Floats]:
    """The rows of X in order, dense, some at a time: a million numbers at most (or one row)."""
    if isinstance(X, np.ndarray):
        yield X
        return
    step = max(1, _MAX_DENSE // X.shape[1])
    for start in range(0, X.shape[0], step):
        yield X[start : start + step].toarray()


def dense_row(X: Any, row: int) -> tuple[Any, int]:
    """Rows and the number of one of them, dense: the array itself, or that row alone of a sparse matrix."""
    return (X, row) if isinstance(X, np.ndarray) else (X[[row]].toarray(), 0)


class MixedBlock:
    """Contexts of many rounds of which some are sparse, all with as many arms."""

    def __init__(self, contexts: list[Any]) -> None:
        self.contexts = contexts

    def __len__(self) -> int:
        return len(self.contexts)

    def __getitem__(self, t: int) -> Any:
        return self.contexts[t]

    def pieces(self) -> Iterator[tuple[slice, Floats]]:
        """Dense (T, K, d) arrays of some rounds at a time, and which rounds these are."""
        K, d = self.contexts[0].shape
        step = max(1, _MAX_DENSE // (K * d))
        for start in range(0, len(self.contexts), step):
            part = slice(start, start + step)
            yield part, np.array([dense(X) for X in self.contexts[part]])


def read_block(agent: Any, contexts: Any, T: int) -> Any:
    """``T`` contexts, one per row, as ``play`` takes them; every row is checked."""
    if agent.sees == "nothing" and contexts is None:
        return None
    if not hasattr(contexts, "__len__") or len(contexts) != T:
        came = f"{len(contexts)} rows" if hasattr(contexts, "__len__") else short(contexts)
        raise ValueError(f"contexts must have one row for each of the {T} rows of rewards, got {came}")
    if agent.sees == "nothing":
        _refuse_other_than_numbers("contexts", agent, contexts)
        return None
    if agent.sees == "key":
        return [agent._read(key) for key in contexts]
    if _some_sparse(contexts):
        return _read_sparse_block(agent, contexts)
    block = as_floats("contexts", contexts)
    ndim = 2 if agent.sees == "shared" else 3
    if block.ndim != ndim:
        raise ValueError(f"contexts must have {ndim} dimensions, got shape {block.shape}")
    if not all_within(block):
        raise ValueError(f"contexts must be {wanted_numbers(block)}")
    if T:
        try:
            agent._read(block[0])  # the shape of every row is the shape of the first
        except ValueError as error:
            raise ValueError(f"contexts, row 0: {error}") from None
    if agent.sees == "advice" and not (distributed := _distributed(block).all(axis=1)).all():
        _read_advice(agent, block[int(np.argmin(distributed))])  # which says what is wrong with it
    return block


def read_each(agent: Any, contexts: Any, T: int) -> Any:
    """As ``read_block``, but a list whose rounds differ in shape, or hold sparse rows, stays a list."""
    several = isinstance(contexts, (list, tuple)) and agent.sees not in ("key", "nothing")
    if not several or len(contexts) != T or (not _some_sparse(contexts) and len(set(map(np.shape, contexts))) <= 1):
        return agent._read_block(contexts, T)
    return _each(agent, contexts)


def _some_sparse(contexts: Any) -> bool:
    return isinstance(contexts, (list, tuple)) and any(map(is_sparse, contexts))


def _each(agent: Any, contexts: Any) -> list[Any]:
    rounds = []
    for t, context in enumerate(contexts):
        try:
            rounds.append(agent._read(context))
        except ValueError as error:
            raise ValueError(f"contexts, row {t}: {error}") from None
    return rounds


def _read_sparse_block(agent: Any, contexts: Any) -> Any:
    rounds = _each(agent, contexts)
    if agent.sees == "shared":
        return np.array(rounds)
    for t, X in enumerate(rounds):
        if X.shape[0] != rounds[0].shape[0]:
            raise ValueError(f"contexts, row {t}: {X.shape[0]} arms, but row 0 has {rounds[0].shape[0]}")
    return MixedBlock(rounds)


# ---------------------------------------------------------------------- one reader per view


def _read_nothing(agent: Reader, context: Any) -> None:
    """Numbers may come all the same, so that one line can give every agent the context of a world."""
    if context is not None:
        _refuse_other_than_numbers("context", agent, context)


def _refuse_other_than_numbers(name: str, agent: Reader, context: Any) -> None:
    if _some_sparse(context) or is_sparse(context):
        return
    try:
        as_floats(name, context)
    except ValueError:
        kind = type(agent).__name__
        raise ValueError(f"{name} must be None, or numbers: {kind} sees nothing, got {short(context)}") from None


def _read_features(agent: Reader, context: Any) -> Any:
    sparse = is_sparse(context)
    X = context if sparse else as_floats("X", context)
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] != (agent.dim or X.shape[1]):
        wanted = "d" if agent.dim is None else agent.dim
        raise ValueError(f"X must have shape (K, {wanted}), one row for each of K >= 1 arms, got shape {X.shape}")
    if sparse:
        X = read_csr("X", X) if agent.keeps_sparse else read_csr("X", X).toarray()
    elif not all_within(X):
        raise ValueError(f"X must be {wanted_numbers(X)}")
    if agent.n_arms is not None and agent.n_arms != X.shape[0]:
        raise ValueError(f"X must have {agent.n_arms} rows, one for each arm, got shape {X.shape}")
    if agent.dim is None and isinstance(agent, TakesDim):
        agent._take_dim(X.shape[1])
    return X


def _read_shared(agent: Reader, context: Any) -> Floats:
    x = read_csr("context", context.reshape(1, -1)).toarray()[0] if _one_row(context) else as_floats("context", context)
    if x.ndim != 1 or x.shape[0] != (agent.dim or x.shape[0]):
        wanted = "d" if agent.dim is None else agent.dim
        raise ValueError(f"context must have shape ({wanted},), got shape {x.shape}")
    if not all_within(x):
        raise ValueError(f"context must be {wanted_numbers(x)}")
    if agent.dim is None and isinstance(agent, TakesDim):
        agent._take_dim(len(x))
    return x


def _one_row(context: Any) -> bool:
    return is_sparse(context) and (context.ndim == 1 or context.shape[0] == 1)


def _read_key(agent: Reader, context: Any) -> Hashable:
    try:
        hash(context)
    except TypeError:
        raise ValueError(f"context must be hashable (a string, a number, a tuple), got {short(context)}") from None
    if isinstance(context, float) and context != context:
        raise ValueError("context must not be NaN: it never equals itself, so nothing could be learnt for it")
    return context  # type: ignore[no-any-return]


def _read_advice(agent: Reader, context: Any) -> Floats:
    advice = as_floats("advice", context)
    if advice.ndim != 2 or advice.shape != (agent.n_experts or advice.shape[0], agent.n_arms or advice.shape[1]):
        raise ValueError(
            f"advice must have shape ({agent.n_experts}, {agent.n_arms}), one distribution over the arms for "
            f"each expert, got shape {advice.shape}"
        )
    distributed = _distributed(advice)
    if not distributed.all():
        row = int(np.argmin(distributed))
        raise ValueError(
            f"advice row {row} must be a distribution: non-negative and summing to 1, got {advice[row]} "
            f"(sum {advice[row].sum()})"
        )
    return advice


def _distributed(advice: Floats) -> np.ndarray:
    """Return whether each row along the last axis is a distribution; one with a NaN is none."""
    valid: np.ndarray = np.abs(advice.sum(axis=-1) - 1.0) <= 1e-9
    positive = advice >= 0.0
    return valid if positive.all() else valid & positive.all(axis=-1)


READERS: dict[Sees, Callable[[Reader, Any], Any]] = {
    "nothing": _read_nothing,
    "features": _read_features,
    "shared": _read_shared,
    "key": _read_key,
    "advice": _read_advice,
}
