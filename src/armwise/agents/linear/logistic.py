"""LogisticThompson: Thompson sampling with a diagonal Laplace posterior (survey Algorithm 5; Chapelle and Li 2011)."""

from __future__ import annotations

from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armwise.agents.linear.lin_thompson import NO_TIES, SamplingAgent
from armwise.core.agent import Choice, Choices, Floats, Played, Seed, Theory, count, positive
from armwise.core.arguments import MAX_MAGNITUDE
from armwise.core.capabilities.per_arm import PerArm
from armwise.core.inputs import is_sparse
from armwise.core.rounds import Batches
from armwise.models.ridge import read_mean
from armwise.native import logistic
from armwise.native.choice import all_finite

Indices = NDArray[np.int64]


def _check_size(X: Floats) -> None:
    if X.size and max(X.max(), -X.min()) > MAX_MAGNITUDE:
        raise ValueError(f"X must be at most {MAX_MAGNITUDE:g} in size, so that squares do not overflow")


class SparseRows(NamedTuple):
    """The non-zeros of a context, one row per arm, in CSR form."""

    indptr: Indices
    indices: Indices
    data: Floats

    @property
    def shape(self) -> tuple[int]:
        """One entry, the number of rows; a CSR form does not know its columns."""
        return (len(self.indptr) - 1,)

    def numbered(self) -> tuple[Indices, Indices, Indices, Floats]:
        """The form for the kernels: over the distinct coordinates, and for each entry the place of its own."""
        found, place = np.unique(self.indices, return_inverse=True)
        return self.indptr, found, place, self.data


class SparseBlock:
    """Contexts of many rounds, K rows each: a (T, K, dim) array, or one CSR form. ``block[t]`` is a round's rows."""

    def __init__(self, contexts: Floats | SparseRows, n_arms: int) -> None:
        self.contexts, self.n_arms = contexts, n_arms

    @classmethod
    def joined(cls, rounds: list[SparseRows]) -> SparseBlock:
        """The rounds of a list, all with as many rows."""
        sizes = np.concatenate([np.diff(rows.indptr) for rows in rounds])
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        indices, data = np.concatenate([r.indices for r in rounds]), np.concatenate([r.data for r in rounds])
        return cls(SparseRows(indptr, indices, data), len(rounds[0].indptr) - 1)

    def __len__(self) -> int:
        if isinstance(self.contexts, np.ndarray):
            return len(self.contexts)
        return (len(self.contexts.indptr) - 1) // self.n_arms

    @overload
    def __getitem__(self, t: int) -> SparseRows: ...
    @overload
    def __getitem__(self, t: slice) -> SparseBlock: ...
    def __getitem__(self, t: int | slice) -> SparseRows | SparseBlock:
        first, stop, _ = (t if isinstance(t, slice) else slice(t, t + 1)).indices(len(self))
        part = self._part(first, stop)
        if isinstance(t, slice):
            return SparseBlock(part, self.n_arms)
        return SparseRows(*logistic.sparse_rows(part[0])) if isinstance(part, np.ndarray) else part

    def _part(self, first: int, stop: int) -> Floats | SparseRows:
        if isinstance(self.contexts, np.ndarray):
            return self.contexts[first:stop]
        indptr, indices, data = self.contexts
        indptr = indptr[first * self.n_arms : stop * self.n_arms + 1]
        part = slice(indptr[0], indptr[-1])
        return SparseRows(indptr - indptr[0], indices[part], data[part])

    def play(self, posterior: Floats, rewards: Floats, *settings: Any) -> tuple[Indices, Floats, Floats]:
        """The kernel for its form: arms, probabilities, rewards; ``settings`` are scale, draws, learns, generator."""
        if isinstance(self.contexts, np.ndarray):
            return logistic.play_dense(posterior, self.contexts, rewards, *settings)
        return logistic.play(posterior, *self.contexts, rewards, *settings)


class LogisticBatches(Batches["LogisticThompson"]):
    """Rounds up to the next fit; where every reward is a batch of its own the kernel fits too."""

    def compiled(self, agent: LogisticThompson) -> bool:
        return True

    def choose(self, agent: LogisticThompson, contexts: Any, n: int) -> Choices | None:
        if not isinstance(contexts, SparseBlock):
            return None
        arms, p, _ = self._play(agent, contexts, np.zeros((n, contexts.n_arms)), fits=False)
        return Choices(arms, p)

    def block(self, agent: LogisticThompson, contexts: SparseBlock, rewards: Floats) -> Played:
        fits = agent.batch_size == 1
        n = len(rewards) if fits else min(len(rewards), agent.batch_size - len(agent._waiting))
        played = Played(*self._play(agent, contexts[:n], rewards[:n], fits))
        for t in range(0 if fits else n):
            agent._collect(contexts[t], int(played.arms[t]), float(played.rewards[t]))
        return played

    def _play(self, agent: LogisticThompson, block: SparseBlock, rewards: Floats, fits: bool) -> tuple[Any, Any, Any]:
        return block.play(agent._posterior, rewards, agent.scale, agent.draws, fits, agent._rng)


class LogisticThompson(SamplingAgent, PerArm):
    """Draw weights w_i ~ N(m_i, 1/q_i) and play the arm with the largest x.w, hence the largest 1 / (1 + exp(-x.w)).

    Rewards are collected into batches of ``batch_size``. Each batch is fitted once, against the prior that the batch
    before it left: m becomes the minimiser of 1/2 sum q_i (w_i - m_i)^2 + sum ln(1 + exp(-y x.w)), y = 2r - 1, and q_i
    grows by sum x_i^2 p (1 - p). A reward strictly between 0 and 1 counts as a label 1 of weight r and a label 0 of
    weight 1 - r. ``agent.m`` and ``agent.q`` hold the posterior; m starts at ``prior_mean`` (zeros if None),
    q at ``lam``.

    X is a (K, dim) array or SciPy sparse matrix. Choosing and learning cost O(non-zeros), whatever ``dim``: only
    coordinates that some arm uses are drawn (once per round: arms that share a feature share its draw).
    ``scale`` multiplies the deviations of the draw: larger explores more, 1 draws from the posterior itself. A diagonal
    posterior overstates what is not known of features that occur together, hence the smaller default. ``draws`` as in
    LinThompson. With ``n_arms`` each arm has weights of its own over a shared context, (dim,): m and q hold those of
    arm a from a dim on.
    Errata: the survey's loss needs y in {-1, +1}; it fits all past data again with every batch, which counts old data
    many times; it draws w once per batch, where Chapelle and Li draw each round, as here.

    >>> from scipy.sparse import csr_array
    >>> agent = LogisticThompson(dim=2**18, lam=1.0, batch_size=10, seed=1)
    >>> X = csr_array(([1.0, 1.0], ([0, 1], [5, 200_000])), shape=(2, 2**18))
    >>> for _ in range(100):
    ...     choice = agent.choose(X)
    ...     agent.learn(X, choice, reward=[0, 1][choice.arm])
    >>> agent.choose(X).arm
    1
    """

    theory = Theory(
        section="4.1.4",
        regret="none proved",
        comparator="the best arm of each round",
        assumes="logistic rewards: P(r = 1 | x) = 1 / (1 + exp(-x.w))",
        reference="Chapelle and Li 2011",
        infinite_policies=True,
        erratum="y = 2r - 1 in the loss; each batch is fitted once, against the prior left by the batch before it; "
        "w is drawn every round",
        call="aw.LogisticThompson(dim={d}, lam=1.0, batch_size=1)",
    )
    dim: int
    _learnt = ("_posterior", "_waiting")

    plain_input = False  # the algorithm reads the non-zeros
    keeps_sparse = True
    batches = LogisticBatches()

    def __init__(
        self,
        dim: int,
        lam: float = 1.0,
        batch_size: int = 1,
        *,
        scale: float = 0.3,
        n_arms: int | None = None,
        draws: int = 1,
        prior_mean: ArrayLike | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.scale = positive("scale", scale, zero=True)
        self.dim, self.lam = count("dim", dim), positive("lam", lam)
        self.batch_size, self.draws = count("batch_size", batch_size), count("draws", draws)
        self._knows_probability = self.draws > 1
        self.n_arms = None if n_arms is None else count("n_arms", n_arms)
        self.sees, self.per_arm = ("features" if n_arms is None else "shared"), n_arms is not None
        models = self.n_arms or 1
        mean = None if prior_mean is None else read_mean(prior_mean, models, self.dim)
        self.prior_mean = mean.ravel() if mean is not None and models == 1 else mean
        self._posterior = np.tile([0.0, self.lam], (models * self.dim, 1))
        if mean is not None:
            self._posterior[:, 0] = np.broadcast_to(mean, (models, self.dim)).ravel()
        self._waiting: list[tuple[Indices, Floats, float]] = []  # the batch so far: one row and its reward each

    @property
    def m(self) -> Floats:
        """The posterior means of the weights.

        >>> LogisticThompson(dim=2).m
        array([0., 0.])
        """
        return self._posterior[:, 0]

    @property
    def q(self) -> Floats:
        """The posterior precisions of the weights.

        >>> LogisticThompson(dim=2, lam=0.5).q
        array([0.5, 0.5])
        """
        return self._posterior[:, 1]

    def _wins(self, context: SparseRows, draws: int, rng: np.random.Generator) -> Floats:
        rows = context.numbered()
        Z = self.scale * rng.standard_normal((draws, len(rows[1])))
        wins = logistic.compete(self._posterior, *rows, Z, NO_TIES)
        return logistic.compete(self._posterior, *rows, Z, rng.random(draws)) if wins[0] < 0 else wins

    def _score_posterior(self, context: SparseRows) -> tuple[Floats, Floats]:
        return logistic.score_posterior(self._posterior, *context.numbered(), self.scale)

    def _estimates(self, context: SparseRows) -> tuple[Floats, Floats]:
        """The chance of a reward at the posterior mean, and the posterior deviation of the score carried over to it."""
        row = np.repeat(np.arange(self._count_arms(context)), np.diff(context.indptr))
        m, q = self._posterior[context.indices].T
        scores, variances = np.zeros(self._count_arms(context)), np.zeros(self._count_arms(context))
        np.add.at(scores, row, context.data * m)
        np.add.at(variances, row, context.data**2 / q)
        chances = 0.5 * (1.0 + np.tanh(0.5 * scores))
        return chances, chances * (1.0 - chances) * np.sqrt(variances)

    def _learn(self, context: SparseRows, choice: Choice, reward: float) -> None:
        self._collect(context, choice.arm, reward)

    def _collect(self, rows: SparseRows, j: int, reward: float) -> None:
        """Row j joins the batch; a full batch is fitted."""
        row = slice(rows.indptr[j], rows.indptr[j + 1])
        self._waiting.append((rows.indices[row].copy(), rows.data[row].copy(), reward))
        if len(self._waiting) == self.batch_size:
            indices, data, rewards = zip(*self._waiting)
            batch = SparseRows(np.cumsum([0, *map(len, indices)]), np.concatenate(indices), np.concatenate(data))
            logistic.fit(self._posterior, *batch.numbered(), np.array(rewards))
            self._waiting = []

    def _add_arm(self) -> None:
        own = self.prior_mean is not None and self.prior_mean.ndim == 2
        fresh = np.tile([0.0, self.lam], (self.dim, 1))
        if self.prior_mean is not None and not own:
            fresh[:, 0] = self.prior_mean
        if own:
            self.prior_mean = np.concatenate([self.prior_mean, np.zeros((1, self.dim))])
        self._posterior = np.concatenate([self._posterior, fresh])

    def _remove_arm(self, arm: int) -> None:
        d = self.dim
        if self.prior_mean is not None and self.prior_mean.ndim == 2:
            self.prior_mean = np.delete(self.prior_mean, arm, axis=0)
        self._posterior = np.delete(self._posterior, slice(arm * d, (arm + 1) * d), axis=0)
        owners = [int(indices[0]) // d if len(indices) else -1 for indices, _, _ in self._waiting]
        self._waiting = [
            (indices - d * (owner > arm), data, reward)
            for owner, (indices, data, reward) in zip(owners, self._waiting)
            if owner != arm
        ]

    def _per_arm(self, contexts: Floats) -> SparseRows:
        """The rows of all arms of each context: its non-zeros, in each arm's own columns."""
        T, K, d = len(contexts), self._count_models(), self.dim
        rounds, columns = np.nonzero(contexts)
        sizes = np.repeat(np.bincount(rounds, minlength=T), K)  # non-zeros of each round's arms, one after the other
        begins = np.repeat(np.searchsorted(rounds, np.arange(T)), K)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        place = np.arange(indptr[-1]) + np.repeat(begins - indptr[:-1], sizes)
        arm = np.repeat(np.tile(np.arange(K), T), sizes)
        return SparseRows(indptr, arm * d + columns[place], contexts[rounds, columns][place])

    def _read(self, context: Any) -> SparseRows:
        if self.n_arms is not None:
            x = super()._read(context)[None]
            _check_size(x)
            return self._per_arm(x)
        if not is_sparse(context):
            X = super()._read(context)
            _check_size(X)
            return SparseRows(*logistic.sparse_rows(X))
        if context.ndim != 2 or context.shape[0] == 0 or context.shape[1] != self.dim:
            raise ValueError(
                f"X must have shape (K, {self.dim}), one row for each of K >= 1 arms, got shape {context.shape}"
            )
        if context.dtype.kind not in "biuf":
            raise ValueError(f"X must be a matrix of numbers, got a sparse matrix of {context.dtype}")
        X = context.tocsr()
        data = np.asarray(X.data, dtype=np.float64)
        if not all_finite(data):
            raise ValueError("X must be finite, got NaN or infinity among its non-zeros")
        _check_size(data)
        if not (X.has_canonical_format and data.all()):
            X = X.copy()
            X.sum_duplicates()
            X.eliminate_zeros()
            data = np.asarray(X.data, dtype=np.float64)
        return SparseRows(X.indptr.astype(np.int64), X.indices.astype(np.int64), data)

    def _read_block(self, contexts: Any, T: int) -> SparseBlock:
        """One context per round: a (T, K, dim) array, or a list of T matrices, dense or sparse, with K rows each; or,
        with a model per arm, (T, dim)."""
        if self.n_arms is not None:
            if isinstance(contexts, (list, tuple)):
                contexts = [x.toarray().ravel() if is_sparse(x) else x for x in contexts]
            block = super()._read_block(contexts, T)
            _check_size(block)
            return SparseBlock(self._per_arm(block), self.n_arms)
        if not (isinstance(contexts, (list, tuple)) and any(map(is_sparse, contexts))):
            dense: Floats = super()._read_block(contexts, T)
            _check_size(dense)
            return SparseBlock(dense, dense.shape[1])
        if len(contexts) != T:
            raise ValueError(
                f"contexts must have one row for each of the {T} rows of rewards, got {len(contexts)} rows"
            )
        rounds: list[SparseRows] = []
        for t, context in enumerate(contexts):
            try:
                rounds.append(self._read(context))
            except ValueError as error:
                raise ValueError(f"contexts, row {t}: {error}") from None
            arms, first = self._count_arms(rounds[t]), self._count_arms(rounds[0])
            if arms != first:
                raise ValueError(f"contexts, row {t}: {arms} arms, but row 0 has {first}")
        return SparseBlock.joined(rounds)
