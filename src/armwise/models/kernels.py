"""Kernels: linear, polynomial, RBF, Matern, their sums and products; scikit-learn's own are accepted beside them.

>>> import armwise as aw
>>> k = 2.0 * aw.kernels.RBF(length_scale=0.5) + aw.kernels.Linear()
>>> k(np.array([[1.0], [2.0]])).round(4)
array([[3.    , 2.2707],
       [2.2707, 6.    ]])
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from armwise.core import saving
from armwise.core.agent import Floats, count, positive
from armwise.core.tools.extras import needs
from armwise.native import kernels as compiled

__all__ = [
    "Columns", "Constant", "Kernel", "Linear", "Matern", "Polynomial", "Product", "RBF", "Sklearn", "Sum",
    "as_kernel", "effective_dimension", "information_gain",
]  # fmt: skip

Instruction = tuple[int, int, int, float, float]
Program = tuple[NDArray[np.int64], Floats]  # instructions in postfix order, and their constants
_GROWING = [compiled.LINEAR, compiled.POLYNOMIAL]  # with the rows


class Kernel(saving.Saved):
    """A positive definite function of two rows. Kernels never change; ``+`` and ``*`` make new ones.

    ``kernel(X, Z)`` is the matrix k(x, z), ``kernel(X)`` is k(x, x') within X and ``kernel.diag(X)`` its diagonal.
    A subclass defines ``_instructions`` (then everything is compiled), or ``_matrix`` and ``_diagonal``.

    >>> RBF()(np.zeros((1, 3)), np.ones((2, 3))).round(4)
    array([[0.2231, 0.2231]])
    """

    _namespace = "kernels."
    _tuned: ClassVar[tuple[str, ...]] = ()  # the parameters that marginal likelihood may fit, all positive

    def __init__(self) -> None:
        pass  # a kernel without parameters

    @abstractmethod
    def _instructions(self, low: int, high: int) -> list[Instruction] | None:
        """The postfix program on columns low to high (-1: the last), or None where only Python can evaluate it."""

    @cached_property
    def program(self) -> Program | None:
        """The kernel as ``armwise.native.kernels`` runs it, or None where only Python can evaluate it.

        >>> RBF().program is None
        False
        """
        rows = self._instructions(0, -1)
        if rows is None:
            return None
        return np.array([row[:3] for row in rows], np.int64), np.array([row[3:] for row in rows])

    @cached_property
    def bounded(self) -> bool:
        """Whether k(x, x) is the same everywhere, so that no row is too large for it.

        >>> RBF().bounded, (RBF() + Linear()).bounded
        (True, False)
        """
        return self.program is not None and not np.isin(self.program[0][:, 0], _GROWING).any()

    def __call__(self, X: Floats, Z: Floats | None = None) -> Floats:
        X = np.ascontiguousarray(X, np.float64)
        Z = X if Z is None else np.ascontiguousarray(Z, np.float64)
        return self._matrix(X, Z) if self.program is None else compiled.cross(self.program, X, Z)

    def diag(self, X: Floats) -> Floats:
        """k(x, x) for each row.

        >>> Linear().diag(np.array([[3.0, 4.0]]))
        array([25.])
        """
        X = np.ascontiguousarray(X, np.float64)
        return self._diagonal(X) if self.program is None else compiled.diagonal(self.program, X)

    def _matrix(self, X: Floats, Z: Floats) -> Floats:
        raise NotImplementedError

    def _diagonal(self, X: Floats) -> Floats:
        raise NotImplementedError

    @property
    def theta(self) -> Floats:
        """The logarithms of the length-scales and constants, which ``fit_at`` fits.

        >>> RBF(length_scale=1.0).theta
        array([0.])
        """
        return np.log([getattr(self, name) for name in self._tuned])

    def with_theta(self, theta: Floats) -> Kernel:
        """The same kernel with other values for what ``theta`` holds.

        >>> RBF(length_scale=1.0).with_theta(np.log([2.0])).length_scale
        2.0
        """
        return type(self)(**self.params() | dict(zip(self._tuned, np.exp(theta).tolist())))

    def __add__(self, other: Any) -> Kernel:
        return Sum(self, _operand(other))

    def __mul__(self, other: Any) -> Kernel:
        return Product(self, _operand(other))

    def __radd__(self, other: Any) -> Kernel:
        return Sum(_operand(other), self)

    def __rmul__(self, other: Any) -> Kernel:
        return Product(_operand(other), self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.params().items())})"


class Constant(Kernel):
    """k(x, x') = value: the prior variance of a constant, or a factor in a product. A plain number becomes one.

    >>> 3.0 * RBF()
    Product(left=Constant(value=3.0), right=RBF(length_scale=1.0))
    """

    _tuned = ("value",)

    def __init__(self, value: float) -> None:
        self.value = positive("value", value)

    def _instructions(self, low: int, high: int) -> list[Instruction]:
        return [(compiled.CONSTANT, low, high, self.value, 0.0)]


class Linear(Kernel):
    """k(x, x') = x.x', which makes KernelUCB the dual of LinUCB.

    >>> Linear()(np.eye(2))
    array([[1., 0.],
           [0., 1.]])
    """

    def _instructions(self, low: int, high: int) -> list[Instruction]:
        return [(compiled.LINEAR, low, high, 0.0, 0.0)]


class Polynomial(Kernel):
    """k(x, x') = (x.x' + offset)^degree.

    >>> Polynomial(degree=2, offset=1.0)(np.array([[2.0]]))
    array([[25.]])
    """

    def __init__(self, degree: int, offset: float = 1.0) -> None:
        self.degree = count("degree", degree)
        self.offset = positive("offset", offset, zero=True)  # below zero it is not positive definite

    def _instructions(self, low: int, high: int) -> list[Instruction]:
        return [(compiled.POLYNOMIAL, low, high, float(self.degree), self.offset)]


class RBF(Kernel):
    """k(x, x') = exp(-||x - x'||^2 / (2 length_scale^2)), also called squared exponential.

    >>> RBF(length_scale=2.0)(np.zeros((1, 1)), np.ones((1, 1))).round(4)
    array([[0.8825]])
    """

    _tuned = ("length_scale",)

    def __init__(self, length_scale: float = 1.0) -> None:
        self.length_scale = positive("length_scale", length_scale)

    def _instructions(self, low: int, high: int) -> list[Instruction]:
        return [(compiled.RBF, low, high, self.length_scale, 0.0)]


class Matern(Kernel):
    """The Matern kernel of smoothness ``nu``: 1/2, 3/2 or 5/2.

    >>> Matern(length_scale=1.0, nu=0.5)(np.zeros((1, 1)), np.ones((1, 1))).round(4)
    array([[0.3679]])
    """

    _tuned = ("length_scale",)
    _KINDS: ClassVar[dict[float, int]] = {0.5: compiled.MATERN12, 1.5: compiled.MATERN32, 2.5: compiled.MATERN52}

    def __init__(self, length_scale: float = 1.0, nu: float = 1.5) -> None:
        self.length_scale, self.nu = positive("length_scale", length_scale), positive("nu", nu)
        if self.nu not in self._KINDS:
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5, got {nu!r}; scikit-learn's Matern takes any other")

    def _instructions(self, low: int, high: int) -> list[Instruction]:
        return [(self._KINDS[self.nu], low, high, self.length_scale, 0.0)]


class _Pair(Kernel):
    """Two kernels joined by one operation."""

    _kind: ClassVar[int]
    _join: ClassVar[np.ufunc]

    def __init__(self, left: KernelLike, right: KernelLike) -> None:
        self.left, self.right = as_kernel(left), as_kernel(right)

    def _instructions(self, low: int, high: int) -> list[Instruction] | None:
        left, right = self.left._instructions(low, high), self.right._instructions(low, high)
        return None if left is None or right is None else [*left, *right, (self._kind, 0, 0, 0.0, 0.0)]

    def _matrix(self, X: Floats, Z: Floats) -> Floats:
        return np.asarray(self._join(self.left(X, Z), self.right(X, Z)))

    def _diagonal(self, X: Floats) -> Floats:
        return np.asarray(self._join(self.left.diag(X), self.right.diag(X)))

    @property
    def theta(self) -> Floats:
        return np.concatenate([self.left.theta, self.right.theta])

    def with_theta(self, theta: Floats) -> Self:
        n = len(self.left.theta)
        return type(self)(self.left.with_theta(theta[:n]), self.right.with_theta(theta[n:]))


class Sum(_Pair):
    """k1(x, x') + k2(x, x').

    >>> (Linear() + 1.0)(np.array([[2.0]]))
    array([[5.]])
    """

    _kind, _join = compiled.ADD, np.add


class Product(_Pair):
    """k1(x, x') k2(x, x').

    >>> (Linear() * Linear())(np.array([[2.0]]))
    array([[16.]])
    """

    _kind, _join = compiled.MULTIPLY, np.multiply


class Columns(Kernel):
    """A kernel that reads only columns ``start`` to ``stop`` (not included; None: to the end) of each row.

    >>> Columns(Linear(), 1, 2)(np.array([[5.0, 3.0, 7.0]]))
    array([[9.]])
    """

    def __init__(self, kernel: KernelLike, start: int, stop: int | None = None) -> None:
        self.kernel, self.start = as_kernel(kernel), count("start", start, least=0)
        self.stop = None if stop is None else count("stop", stop, least=self.start + 1)

    def _instructions(self, low: int, high: int) -> list[Instruction] | None:
        return self.kernel._instructions(low + self.start, high if self.stop is None else low + self.stop)

    def _matrix(self, X: Floats, Z: Floats) -> Floats:
        part = slice(self.start, self.stop)
        return self.kernel(np.ascontiguousarray(X[:, part]), np.ascontiguousarray(Z[:, part]))

    def _diagonal(self, X: Floats) -> Floats:
        return self.kernel.diag(np.ascontiguousarray(X[:, self.start : self.stop]))

    @property
    def theta(self) -> Floats:
        return self.kernel.theta

    def with_theta(self, theta: Floats) -> Columns:
        return Columns(self.kernel.with_theta(theta), self.start, self.stop)


class Sklearn(Kernel):
    """A kernel object of scikit-learn, or of a subclass of its ``Kernel``; agents wrap theirs by themselves.

    It is evaluated in Python, so ``play`` is then the plain loop. An agent with a kernel class that is not
    scikit-learn's own works, but cannot be saved.

    >>> from sklearn.gaussian_process.kernels import RationalQuadratic
    >>> Sklearn(RationalQuadratic())(np.zeros((1, 1)), np.ones((1, 1))).round(4)
    array([[0.6667]])
    """

    def __init__(self, kernel: Any) -> None:
        from sklearn.base import clone

        with needs("sklearn"):
            from sklearn.gaussian_process import kernels

        self.kernel = _build(kernel) if isinstance(kernel, dict) else clone(kernel)  # the user's may change, ours not
        if not isinstance(self.kernel, kernels.Kernel):
            raise ValueError(f"kernel must be a scikit-learn kernel, got {type(kernel).__name__} {kernel!r:.80}")
        if any(isinstance(part, kernels.WhiteKernel) for part in (self.kernel, *self.kernel.get_params().values())):
            raise ValueError(f"kernel must not hold a WhiteKernel, got {kernel!r}: pass the noise as the agent's own")

    def params(self) -> dict[str, Any]:
        return {"kernel": _describe(self.kernel)}

    def _instructions(self, low: int, high: int) -> None:
        return None

    def _matrix(self, X: Floats, Z: Floats) -> Floats:
        return self._checked(self.kernel(X, Z), (len(X), len(Z)))

    def _diagonal(self, X: Floats) -> Floats:
        return self._checked(self.kernel.diag(X), (len(X),))

    def _checked(self, answer: Any, shape: tuple[int, ...]) -> Floats:
        values: Floats = np.array(answer, np.float64, order="C")
        if values.shape != shape or not np.all(np.isfinite(values)):
            raise ValueError(f"kernel {self.kernel!r} must give finite values of shape {shape}, got {values!r:.200}")
        return values

    @property
    def theta(self) -> Floats:
        return np.asarray(self.kernel.theta, np.float64)

    def with_theta(self, theta: Floats) -> Sklearn:
        return Sklearn(self.kernel.clone_with_theta(theta))

    def __repr__(self) -> str:
        return f"Sklearn({self.kernel!r})"


def _describe(value: Any) -> Any:
    """A scikit-learn kernel as plain values: its class's name and its arguments."""
    if isinstance(value, (list, tuple)):
        return type(value)(_describe(v) for v in value)
    if not hasattr(value, "clone_with_theta"):
        return value
    if type(value).__module__ != "sklearn.gaussian_process.kernels":
        raise saving.CannotSave(
            f"kernel {value!r} cannot be saved: {type(value).__qualname__} is not a class of "
            "sklearn.gaussian_process.kernels, so a file could not say how to make it again"
        )
    arguments = {name: _describe(v) for name, v in value.get_params(deep=False).items()}
    return {"sklearn": type(value).__name__, "arguments": arguments}


def _build(value: Any) -> Any:
    """Build the kernel that ``_describe`` described."""
    if isinstance(value, (list, tuple)):
        return type(value)(_build(v) for v in value)
    if not (isinstance(value, dict) and "sklearn" in value):
        return value
    with needs("sklearn"):
        from sklearn.gaussian_process import kernels

    cls = getattr(kernels, value["sklearn"], None)
    if not (isinstance(cls, type) and issubclass(cls, kernels.Kernel)):
        raise ValueError(f"scikit-learn has no kernel {value['sklearn']!r}")
    return cls(**{name: _build(v) for name, v in value["arguments"].items()})


class SklearnKernel(Protocol):
    """The methods by which a kernel of scikit-learn is recognised."""

    def clone_with_theta(self, theta: Any) -> Any: ...


KernelLike = Kernel | SklearnKernel


def as_kernel(kernel: KernelLike) -> Kernel:
    """A kernel of ours, as it is or around scikit-learn's.

    >>> as_kernel("rbf")
    Traceback (most recent call last):
    ...
    ValueError: kernel must be one of armwise.kernels or a scikit-learn kernel object, got str 'rbf'
    """
    if isinstance(kernel, Kernel):
        return kernel
    if hasattr(kernel, "clone_with_theta"):
        return Sklearn(kernel)
    raise ValueError(
        "kernel must be one of armwise.kernels or a scikit-learn kernel object, "
        f"got {type(kernel).__name__} {kernel!r:.80}"
    )


def _operand(value: Any) -> Kernel:
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return Constant(value) if number else as_kernel(value)


def information_gain(kernel: KernelLike, X: Floats, noise: float) -> float:
    """I(r; f) = 1/2 ln det(I + K / noise^2): what rewards at the rows of X, in any order, tell about f (survey 4.2.1).

    The survey's gamma_T is its maximum over all sets of T rows; the gain of the rows an agent played, which
    ``GPUCB.information_gain`` keeps count of, is at most that.

    >>> round(information_gain(RBF(), np.array([[0.0], [0.0], [9.0]]), noise=1.0), 4)
    0.8959
    """
    gram = as_kernel(kernel)(np.asarray(X, np.float64)) / positive("noise", noise) ** 2
    return float(0.5 * np.linalg.slogdet(np.eye(len(gram)) + gram)[1])


def effective_dimension(kernel: KernelLike, X: Floats, gamma: float, T: int | None = None) -> int:
    """d~ = min{j >= 1: j gamma ln T >= sum_(i > j) (lambda_i - gamma)} (survey 4.2.2; Valko et al. 2013).

    lambda_i are the eigenvalues of Phi'Phi + gamma I in decreasing order, so each term is an eigenvalue of the kernel
    matrix of X; T is the number of rows unless given. With a linear kernel d~ is at most d.

    >>> effective_dimension(Linear(), np.tile(np.eye(2), (50, 1)), gamma=1.0)
    2
    """
    rows = np.asarray(X, np.float64)
    eigenvalues = np.linalg.eigvalsh(as_kernel(kernel)(rows))[::-1].clip(min=0.0)
    tails = np.append(eigenvalues[::-1].cumsum()[::-1][1:], 0.0)  # tails[j - 1] = sum over i > j
    tails[tails <= 1e-12 * eigenvalues.sum()] = 0.0  # rounding
    j = np.arange(1, len(tails) + 1)
    enough = j * positive("gamma", gamma) * np.log(len(rows) if T is None else count("T", T)) >= tails
    return int(j[np.argmax(enough)])
