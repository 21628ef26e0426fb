"""Any scikit-learn estimator as an argmax oracle: by weighted classification, or by one regression per arm."""

from __future__ import annotations

import contextlib
import copy
import functools
import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, Self

import numpy as np

from armwise.agents.oracle.oracles.oracle import Ints, Oracle
from armwise.core.agent import Floats, count
from armwise.core.saving import CannotSave, Saved
from armwise.core.tools.extras import needs
from armwise.core.tools.threads import thread_pools
from armwise.policies.fixed import Constant, Policy, Tree

_ROWS_FOR_THREADS = 50_000  # from here on, threads save more than it costs to start them


class SklearnEstimator(Saved):
    """A scikit-learn estimator, fitted or not, that can be saved: its class, its settings, its fitted attributes.

    Only classes of scikit-learn itself are saved, and only those whose fitted attributes are numbers and arrays
    (linear models, naive Bayes and their pipelines; forests are not, and say so).
    """

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        module, _, qualname = name.partition(":")
        if module.partition(".")[0] != "sklearn":
            raise ValueError(f"name must be a class of scikit-learn, got {name!r}")
        cls = getattr(import_module(module), qualname)
        if not (isinstance(cls, type) and hasattr(cls, "get_params")):
            raise ValueError(f"name must be an estimator of scikit-learn, got {name!r}")
        self.thing: Any = cls(**_unpack(settings))

    @classmethod
    def wrap(cls, thing: Any) -> Self:
        """The wrapper around an estimator that exists already."""
        wrapper = cls.__new__(cls)
        wrapper.thing = thing
        return wrapper

    def params(self) -> dict[str, Any]:
        kind = type(self.thing)
        if kind.__module__.partition(".")[0] != "sklearn":
            raise CannotSave(
                f"{kind.__module__}.{kind.__qualname__} cannot be saved: only scikit-learn's own estimators have a "
                "safe file format"
            )
        return {"name": f"{kind.__module__}:{kind.__qualname__}", "settings": _pack(self.thing.get_params(deep=False))}

    def _state(self) -> dict[str, Any]:
        settings = self.thing.get_params(deep=False)
        # The loss object of stochastic gradient descent is made anew by every partial_fit.
        return {k: _pack(v) for k, v in vars(self.thing).items() if k not in settings and k != "_loss_function_"}

    def _restore(self, state: dict[str, Any]) -> None:
        vars(self.thing).update(_unpack(state))

    def unfitted(self) -> SklearnEstimator:
        """Another with the same settings."""
        with needs("sklearn"):
            from sklearn.base import clone

        return SklearnEstimator.wrap(clone(self.thing))

    def fit(self, X: Floats, y: np.ndarray, weights: Floats, **partial: Any) -> None:
        """Fit, or ``partial_fit`` where its arguments are given; weights are only passed where they differ from 1."""
        options: dict[str, Any] = {k: v for k, v in partial.items() if v is not None}
        if np.any(weights != 1.0):
            options[self.weight_name()] = weights
        if partial:
            self.thing.partial_fit(X, y, **options)
            return
        with self._threads(len(X)):
            self.thing.fit(X, y, **options)

    def predict(self, X: Floats) -> np.ndarray:
        """The predictions of the fitted estimator."""
        kind: type = type(self.thing)
        answer = _linear(kind) if hasattr(self.thing, "coef_") else None
        if answer is not None and _plain(X):
            return answer(self.thing, X)
        with self._threads(len(X)):
            answers: np.ndarray = np.asarray(self.thing.predict(X))
        return answers

    def _threads(self, rows: int) -> Any:
        # Estimators with partial_fit are taught and asked row by row, and have no threads to limit.
        free = rows > _ROWS_FOR_THREADS or hasattr(self.thing, "partial_fit")
        return contextlib.nullcontext() if free else one_thread()

    def weight_name(self) -> str:
        """The name of the weights in ``fit``; a pipeline passes them to its last step."""
        steps = getattr(self.thing, "steps", None)
        return f"{steps[-1][0]}__sample_weight" if steps else "sample_weight"

    def __repr__(self) -> str:
        return repr(self.thing)


@functools.cache
def _linear(kind: type) -> Callable[[Any, Floats], np.ndarray] | None:
    """Predictions of scikit-learn's linear models without their checks, which cost ten times the product."""
    if not kind.__module__.startswith("sklearn."):
        return None
    from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

    asked, scores = (getattr(kind, name, None) for name in ("predict", "decision_function"))
    if asked in (LinearRegression.predict, Ridge.predict):
        return _value
    alike = asked is LogisticRegression.predict and scores is LogisticRegression.decision_function
    return _class if alike else None


def _plain(X: Any) -> bool:
    """Return whether these are rows of numbers; what is wrong with others, scikit-learn says itself."""
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype == np.float64 and math.isfinite(X.sum())


def _value(model: Any, X: Floats) -> np.ndarray:
    return np.asarray(X @ model.coef_.T + model.intercept_)


def _class(model: Any, X: Floats) -> np.ndarray:
    scores = _value(model, X)
    which = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return np.asarray(model.classes_[which])


def one_thread() -> Any:
    """OpenMP and BLAS on one thread while an estimator works: it sees few rows at a time, for which starting threads
    costs far more than they save.
    """
    with needs("sklearn"):
        return thread_pools().limit(limits=1)


class EstimatorPolicy(Policy):
    """The arm that a fitted classifier predicts, or whose fitted regressor predicts most (the first, if they tie)."""

    def __init__(self, models: list[SklearnEstimator]) -> None:
        self.models = models

    def many(self, contexts: Any) -> Ints:
        answers = [model.predict(contexts) for model in self.models]
        return answers[0].astype(np.int64) if len(answers) == 1 else np.argmax(answers, axis=0)


class ExampleLearner(Saved):
    """One estimator taught example by example: by ``partial_fit`` where it has one, otherwise by fitting all examples
    again whenever their number has grown by the factor ``refit`` since the last time.
    """

    _learnt = ("_X", "_y", "_weights", "_n_fitted", "_model")

    def __init__(self, estimator: SklearnEstimator, refit: float = 1.1, n_classes: int | None = None) -> None:
        self.estimator, self.refit, self.n_classes = estimator, refit, n_classes
        self._model: SklearnEstimator | None = None
        self._blocks: list[tuple[Floats, np.ndarray, Floats]] = []
        self._n = self._n_fitted = 0

    @property
    def incremental(self) -> bool:
        """Whether the model changes with every example."""
        return hasattr(self.estimator.thing, "partial_fit")

    @property
    def blank(self) -> bool:
        """Whether no example has come yet."""
        return self._model is None and not self._blocks

    @property
    def fitted_share(self) -> float:
        """The share of the examples that the model has been fitted to."""
        return 1.0 if self.incremental or not self._n else self._n_fitted / self._n

    @property
    def steady_rounds(self) -> int:
        """At least so many examples from now on do not change the model."""
        return 0 if self.incremental else max(0, math.ceil(self.refit * self._n_fitted) - 1 - self._n)

    @property
    def model(self) -> SklearnEstimator | None:
        """The fitted model, another object after each fit; None before there is one."""
        return self._model

    def add(self, X: Floats, y: np.ndarray, weights: Floats) -> None:
        """Learn examples, targets and weights."""
        if not len(y):
            return
        if self.incremental:
            model = self._model or self.estimator.unfitted()
            model.fit(X, y, weights, classes=None if self.n_classes is None else np.arange(self.n_classes))
            self._model = model
            return
        self._blocks.append((X, y, weights))
        self._n += len(y)
        if self._n >= self.refit * self._n_fitted:
            self._fit(self._n)

    def change_targets(self, y: np.ndarray) -> None:
        """Fit to other targets, one for each example so far, as often as to the old ones."""
        X, _, weights = (np.concatenate(column) for column in zip(*self._blocks))
        self._blocks = [(X, y, weights)]
        self._fit(self._n_fitted)

    @property
    def targets(self) -> np.ndarray:
        """The targets of all examples that are kept, in their order."""
        return np.concatenate([y for _, y, _ in self._blocks]) if self._blocks else np.empty(0)

    def predict(self, X: Floats) -> np.ndarray:
        """The model's prediction: 0 before the first example, the only class seen where there is only one."""
        if self._model is None:
            y = self._blocks[0][1] if self._blocks else np.zeros(1)
            return np.full(len(X), y[0])
        return self._model.predict(X)

    def fixed(self) -> SklearnEstimator | None:
        """The model as it is now; None before there is one."""
        return copy.deepcopy(self._model) if self.incremental else self._model

    def _fit(self, n: int) -> None:
        X, y, weights = (np.concatenate(column)[:n] for column in zip(*self._blocks))
        self._n_fitted = n
        if self.n_classes is not None and np.all(y == y[0]):
            self._model = None  # many classifiers refuse a single class
            return
        self._model = self.estimator.unfitted()
        self._model.fit(X, y, weights)

    def _state(self) -> dict[str, Any]:
        columns = [np.concatenate(column) for column in zip(*self._blocks)]
        named: dict[str, Any] = dict(zip(("_X", "_y", "_weights"), columns or (None, None, None)))
        # A model that is fitted anew is not saved: fitting it to the same examples gives it back.
        return named | {"_n_fitted": self._n_fitted, "_model": self._model if self.incremental else None}

    def _restore(self, state: dict[str, Any]) -> None:
        self._model = state["_model"]
        if state["_X"] is not None:
            self._blocks = [(state["_X"], state["_y"], state["_weights"])]
            self._n = len(state["_y"])
            self._fit(state["_n_fitted"])


class _EstimatorOracle(Oracle):
    _learnt = ("_learners",)
    _learners: list[ExampleLearner]

    def __init__(self, estimator: Any, n_arms: int | None, refit: float, n_policies: int) -> None:
        self.estimator = estimator if isinstance(estimator, SklearnEstimator) else SklearnEstimator.wrap(estimator)
        if not (hasattr(self.estimator.thing, "fit") and hasattr(self.estimator.thing, "predict")):
            raise ValueError(f"estimator must be a scikit-learn estimator, got {estimator!r:.80}")
        self.n_arms = None if n_arms is None else count("n_arms", n_arms)
        if not (isinstance(refit, (int, float)) and np.isfinite(refit) and refit >= 1.0):
            raise ValueError(f"refit must be a number >= 1, got {refit!r:.80}")
        self.refit, self.n_policies = float(refit), count("n_policies", n_policies)
        self._learners = []

    def _act(self, policy: Policy, seen: np.ndarray) -> Ints:
        arms: Any = policy.many(seen)
        return np.asarray(arms, np.int64)


class ClassifierOracle(_EstimatorOracle):
    """The policy that a weighted multiclass classifier finds, over any scikit-learn classifier.

    Each context appears once for each arm, with the arm as its class and (its reward - the row's least reward) as
    its weight: the weighted accuracy is then the policy's total reward up to a constant, so that the reduction is
    exact and the classifier's own loss is all that stands in for the argmax. Weights are scaled to mean 1.

    ``update`` uses ``partial_fit`` where the estimator has one; the others are fitted again when the examples have
    grown by the factor ``refit``. ``n_policies`` is the N that schedules of agents read.

    >>> from sklearn.linear_model import LogisticRegression
    >>> oracle = ClassifierOracle(LogisticRegression())
    >>> oracle.argmax([[-1.0], [1.0]], [[1.0, 0.0], [0.0, 1.0]]).many([[-2.0], [3.0]])
    array([0, 1])
    """

    def __init__(
        self, estimator: Any, n_arms: int | None = None, *, refit: float = 1.1, n_policies: int = 1000
    ) -> None:
        from sklearn.utils.validation import has_fit_parameter

        super().__init__(estimator, n_arms, refit, n_policies)
        last = getattr(self.estimator.thing, "steps", [(None, self.estimator.thing)])[-1][1]
        if not has_fit_parameter(last, "sample_weight"):
            raise ValueError(f"estimator must take sample_weight in fit, which {last!r:.80} does not")

    def best(self) -> Policy:
        model = self._learners[0].fixed() if self._learners else None
        if model is None:
            return Constant(int(self._learners[0].predict(np.zeros((1, 1)))[0]) if self._learners else 0)
        return _as_policy([model])

    def vote(self, context: Floats, n_arms: int) -> Floats:
        p = np.zeros(n_arms)
        p[int(self._learners[0].predict(context[None])[0]) if self._learners else 0] = 1.0
        return p

    def _argmax(self, seen: np.ndarray, rewards: Floats) -> Policy:
        rows, arms, weights = _examples(rewards)
        if not arms.size or np.all(arms == arms[0]):
            return Constant(int(arms[0]) if arms.size else 0)
        model = self.estimator.unfitted()
        model.fit(seen[rows], arms, weights / weights.mean())
        return _as_policy([model])

    def _update(self, seen: np.ndarray, rewards: Floats) -> None:
        if not self._learners:
            self._learners = [ExampleLearner(self.estimator, self.refit, n_classes=rewards.size)]
        rows, arms, weights = _examples(rewards[None])
        self._learners[0].add(seen[None][rows], arms, weights)


class RegressorOracle(_EstimatorOracle):
    """The policy x -> argmax_a f_a(x), each f_a a scikit-learn regressor fitted to column a of the rewards.

    Also a model of rewards: ``observe`` teaches only the arm that was played, ``predict`` answers for all arms.
    ``partial_fit``, ``refit`` and ``n_policies`` as in ``ClassifierOracle``.

    >>> from sklearn.linear_model import LinearRegression
    >>> oracle = RegressorOracle(LinearRegression())
    >>> oracle.argmax([[-1.0], [1.0]], [[1.0, 0.0], [0.0, 1.0]]).many([[-2.0], [3.0]])
    array([0, 1])
    """

    def __init__(
        self, estimator: Any, n_arms: int | None = None, *, refit: float = 1.1, n_policies: int = 1000
    ) -> None:
        super().__init__(estimator, n_arms, refit, n_policies)
        self._allot(self.n_arms or 0)

    def _allot(self, n_arms: int) -> None:
        self._learners += [ExampleLearner(self.estimator, self.refit) for _ in range(n_arms - len(self._learners))]

    def predict(self, contexts: Any) -> Floats:
        """The predicted reward of every arm in n contexts, (n, K); 0 for an arm that has not been seen.

        >>> from sklearn.linear_model import SGDRegressor
        >>> RegressorOracle(SGDRegressor(), n_arms=3).predict([[1.0]])
        array([[0., 0., 0.]])
        """
        block = self._read_contexts(contexts)
        return np.column_stack([learner.predict(block) for learner in self._learners])

    def observe(self, context: Any, arm: int, reward: float, weight: float = 1.0) -> None:
        """The reward of the arm that was played, counted ``weight`` times.

        >>> from sklearn.linear_model import LinearRegression
        >>> oracle = RegressorOracle(LinearRegression(), n_arms=2)
        >>> oracle.observe([1.0], arm=1, reward=0.5)
        >>> oracle.predict([[1.0]])
        array([[0. , 0.5]])
        """
        self._allot(arm + 1)
        self._learners[arm].add(self._read_contexts([context]), np.array([float(reward)]), np.array([float(weight)]))

    def best(self) -> Policy:
        models = [learner.fixed() for learner in self._learners]
        if not models or any(model is None for model in models):
            return Constant(0)
        return _as_policy([model for model in models if model is not None])

    def vote(self, context: Floats, n_arms: int) -> Floats:
        p = np.zeros(n_arms)
        p[int(self.predict(context[None])[0].argmax()) if self._learners else 0] = 1.0
        return p

    def _argmax(self, seen: np.ndarray, rewards: Floats) -> Policy:
        if not len(seen):
            return Constant(0)
        models = [self.estimator.unfitted() for _ in range(rewards.shape[1])]
        for arm, model in enumerate(models):
            model.fit(seen, rewards[:, arm], np.ones(len(seen)))
        return _as_policy(models)

    def _update(self, seen: np.ndarray, rewards: Floats) -> None:
        self._allot(rewards.size)
        row = seen[None].copy()  # kept until the next fit, and the caller's
        for arm, learner in enumerate(self._learners):
            learner.add(row, rewards[arm : arm + 1], np.ones(1))


def _examples(rewards: Floats) -> tuple[Ints, Ints, Floats]:
    """Rows, classes and weights whose weighted accuracy is the total reward above each row's least."""
    above = rewards - rewards.min(axis=1, keepdims=True)
    rows, arms = np.nonzero(above)
    return rows, arms, above[rows, arms]


def _as_policy(models: list[SklearnEstimator]) -> Policy:
    if len(models) == 1 and hasattr(models[0].thing, "tree_") and hasattr(models[0].thing, "classes_"):
        return Tree.from_sklearn(models[0].thing)  # the same answers, and it can be saved
    return EstimatorPolicy(models)


def _pack(value: Any) -> Any:
    """The value with every estimator inside it wrapped."""
    if isinstance(value, dict):
        return {k: _pack(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_pack(v) for v in value)
    return SklearnEstimator.wrap(value) if hasattr(value, "get_params") and not isinstance(value, type) else value


def _unpack(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _unpack(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_unpack(v) for v in value)
    return value.thing if isinstance(value, SklearnEstimator) else value
