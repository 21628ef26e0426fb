"""Worlds for the kernel agents: a function drawn from a Gaussian process, and one of known norm."""

from __future__ import annotations

import numpy as np

from armwise.models.kernels import Kernel


class KernelWorld:
    """K rows drawn uniformly from [0, 1]^dim a round; the reward of a row is f(row) plus Gaussian noise."""

    def __init__(self, f, dim: int, noise: float, rng: np.random.Generator) -> None:
        self.f, self.dim, self.noise, self.rng = f, dim, noise, rng

    def rounds(self, T: int, K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Contexts (T, K, dim), expected rewards (T, K), rewards (T, K)."""
        X = self.rng.random((T, K, self.dim))
        values = self.f(X.reshape(T * K, -1)).reshape(T, K)
        return X, values, values + self.noise * self.rng.standard_normal((T, K))


def gp_world(kernel: Kernel, dim: int, noise: float, seed: int, n_points: int = 400) -> KernelWorld:
    """f drawn from the process at n_points places, and its interpolant between them (a draw, up to resolution)."""
    rng = np.random.default_rng(seed)
    Z = rng.random((n_points, dim))
    K = kernel(Z) + 1e-8 * np.eye(n_points)
    weights = np.linalg.solve(K, np.linalg.cholesky(K) @ rng.standard_normal(n_points))
    return KernelWorld(lambda X: kernel(X, Z) @ weights, dim, noise, rng)


def rkhs_world(kernel: Kernel, dim: int, noise: float, norm: float, seed: int, n_points: int = 20) -> KernelWorld:
    """f = sum_i w_i k(z_i, .) scaled to <f, f> = w'Kw = norm^2."""
    rng = np.random.default_rng(seed)
    Z, w = rng.random((n_points, dim)), rng.standard_normal(n_points)
    w *= norm / np.sqrt(w @ kernel(Z) @ w)
    return KernelWorld(lambda X: kernel(X, Z) @ w, dim, noise, rng)
