"""When to stop: thresholds that hold at all times, and the least number of rounds that any correct rule needs.

Divergences are d(x, y) of one-parameter families: Bernoulli for rewards in [0, 1] (whose moment generating function is
at most a Bernoulli's of the same mean, so that the thresholds hold for them too), Gaussian where ``noise`` is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def bernoulli_divergence(x: float, y: float) -> float:
    """kl(x, y) of two Bernoulli means."""
    total = 0.0
    for p, q in ((x, y), (1.0 - x, 1.0 - y)):
        if p > 0.0:
            if q <= 0.0:
                return math.inf
            total += p * math.log(p / q)
    return max(total, 0.0)


def divergence(x: float, y: float, noise: float | None) -> float:
    """d(x, y): Bernoulli, or Gaussian with deviation ``noise``."""
    return bernoulli_divergence(x, y) if noise is None else 0.5 * ((x - y) / noise) ** 2


# ---------------------------------------------------------------------- thresholds (Kaufmann, Koolen 2021)


def _inverse_h(x: float) -> float:
    """The u >= 1 with u - ln u = x, for x >= 1."""
    u = x + math.log(x) if x > 1.0 else 1.0
    u = max(u, 1.0 + math.sqrt(2.0 * max(x - 1.0, 0.0)))  # right of the root, where Newton's steps fall to it
    for _ in range(60):
        if u <= 1.0:
            return 1.0
        step = (u - math.log(u) - x) / (1.0 - 1.0 / u)
        u -= step
        if abs(step) <= 1e-13 * u:
            break
    return max(u, 1.0)


def mixture_cost(x: float) -> float:
    """C_exp of one arm: sums of n d(mean, true mean) - 3 ln(1 + ln n) over a set S exceed |S| C_exp(x / |S|) with
    probability at most e^-x (Kaufmann, Koolen 2021, Theorem 7).
    """
    y = 0.5 * (_inverse_h(1.0 + x) + math.log(2.0 * math.pi**2 / 6.0))
    z = 1.5
    edge = 1.0 / math.log(z)
    if y >= edge - math.log(edge):
        u = _inverse_h(y)
        return 2.0 * math.exp(1.0 / u) * u
    return 2.0 * z * (y - math.log(math.log(z)))


def gaussian_cost(x: float) -> float:
    """C_g of one arm: the same for Gaussian rewards of known deviation, with 2 ln(4 + ln n) in place of 3 ln(1 + ln n).

    C_g(x) is the least (g(lam) + x) / lam over 1/2 < lam < 1, with g(lam) = 2 lam - 2 lam ln(4 lam) + ln zeta(2 lam)
    - ln(1 - lam) / 2.
    """
    low, high = 0.5 + 1e-6, 1.0 - 1e-9
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)

    def cost(lam: float) -> float:
        g = 2.0 * lam - 2.0 * lam * math.log(4.0 * lam) + math.log(_zeta(2.0 * lam)) - 0.5 * math.log1p(-lam)
        return (g + x) / lam

    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = cost(left), cost(right)
    while high - low > 1e-10:  # golden section: any lam gives a threshold that holds
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = cost(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = cost(right)
    return cost(0.5 * (low + high))


def _zeta(s: float) -> float:
    """Riemann's zeta for 1 < s <= 2, by Euler and Maclaurin with 20 terms."""
    n = 20
    head = math.fsum(math.pow(k, -s) for k in range(1, n))
    last = math.pow(n, -s)
    tail = last * n / (s - 1.0) + 0.5 * last + s * last / (12.0 * n)
    return head + tail - s * (s + 1.0) * (s + 2.0) * last / (720.0 * n**3)


class Threshold:
    """The evidence that is enough, at all times at once, to be wrong with probability at most ``delta``.

    ``between(n, m)`` is what a comparison of two arms after n and m rewards must exceed (n_a d_a + n_b d_b, over K - 1
    comparisons with the best arm); ``around(n, t)`` is what n d(mean, end) may be at the ends of one of K intervals.
    ``kind="heuristic"`` is ln((1 + ln t) / delta), which no theorem supports and which experiments use.
    """

    def __init__(self, n_arms: int, delta: float, noise: float | None, kind: str) -> None:
        self.delta, self.noise, self.kind = delta, noise, kind
        cost = mixture_cost if noise is None else gaussian_cost
        self._pair = 2.0 * cost(0.5 * math.log(max(n_arms - 1, 1) / delta))
        self._single = cost(math.log(n_arms / delta))

    def _growth(self, n: float) -> float:
        return 3.0 * math.log1p(math.log(n)) if self.noise is None else 2.0 * math.log(4.0 + math.log(n))

    def between(self, n: float, m: float) -> float:
        """The threshold of n d(mean_a, x) + m d(mean_b, x), at the x between the means that makes it least."""
        if self.kind == "heuristic":
            return math.log((1.0 + math.log(n + m)) / self.delta)
        return self._pair + self._growth(n) + self._growth(m)

    def around(self, n: float, t: float) -> float:
        """The value of n d(mean, end) at the ends of an interval around the mean of n rewards, of t in all."""
        if self.kind == "heuristic":
            return math.log((1.0 + math.log(t)) / self.delta)
        return self._single + self._growth(n)


def confidence_ends(mean: float, level: float, noise: float | None) -> tuple[float, float]:
    """The two x with d(mean, x) = level; within [0, 1] for Bernoulli means."""
    if noise is not None:
        half = noise * math.sqrt(2.0 * level)
        return mean - half, mean + half
    return 1.0 - _upper(1.0 - mean, level), _upper(mean, level)


def _upper(mean: float, level: float) -> float:
    """The largest q with kl(mean, q) <= level: Newton's method from the right, where kl is convex."""
    if mean >= 1.0 or level <= 0.0:
        return min(mean, 1.0)
    if mean <= 0.0:
        return -math.expm1(-level)
    q = min(mean + math.sqrt(0.5 * level), 1.0 - 1e-15)  # Pinsker: not left of the root, unless it is beyond the cut
    for _ in range(100):
        excess = bernoulli_divergence(mean, q) - level
        if excess <= 0.0:
            break
        step = excess * q * (1.0 - q) / (q - mean)
        q -= step
        if step <= 1e-14:
            break
    return q


# ---------------------------------------------------------------------- how many rounds are needed at least


def optimal_shares(means: Sequence[float] | Floats, noise: float | None = None) -> tuple[float, Floats]:
    """The characteristic time T*, and the share of the rounds that each arm has in the quickest identification.

    1 / T* = max over shares w of the least of w_1 d(mu_1, x_a) + w_a d(mu_a, x_a) over the other arms a, with x_a the
    weighted mean of both (Garivier, Kaufmann 2016, Lemma 3 and Theorem 5). Arms that tie for the best have T* = inf.
    """
    mu = [float(mean) for mean in means]
    best = max(mu)
    leaders = [a for a, mean in enumerate(mu) if mean == best]
    shares = np.zeros(len(mu))
    if len(leaders) > 1 or len(mu) == 1:
        shares[leaders] = 1.0 / len(leaders)
        return math.inf if len(mu) > 1 else 0.0, shares
    others = [mean for mean in mu if mean != best]
    second = max(others)

    def balance(x: float) -> tuple[float, float, dict[float, float]]:
        """With x = w_second / w_best: the sum that is 1 at the optimum, the gain y, and each other mean's ratio."""
        y = _gain(best, second, x, noise)
        ratios = {mean: x if mean == second else _ratio(best, mean, y, noise) for mean in set(others)}
        total = 0.0
        for mean in others:
            middle = (best + ratios[mean] * mean) / (1.0 + ratios[mean])
            total += divergence(best, middle, noise) / divergence(mean, middle, noise)
        return total, y, ratios

    low, high = 1.0, 1.0
    while (at_low := math.log(balance(low)[0])) > 0.0:
        low *= 0.25
    while (at_high := math.log(balance(high)[0])) < 0.0:
        high *= 4.0
    last = 0
    while high > low * (1.0 + 1e-9):  # regula falsi in logarithms, where the sum is almost a line (Illinois)
        x = low * (high / low) ** (at_low / (at_low - at_high))
        at = math.log(balance(x)[0])
        if at < 0.0:
            low, at_low, at_high, last = x, at, at_high * (0.5 if last == -1 else 1.0), -1
        else:
            high, at_high, at_low, last = x, at, at_low * (0.5 if last == 1 else 1.0), 1
        if abs(at) < 1e-12:
            low = high = x
    _, y, ratios = balance(high)
    for a, mean in enumerate(mu):
        shares[a] = 1.0 if mean == best else ratios[mean]
    total = float(shares.sum())
    return total / y, shares / total


def _gain(best: float, mean: float, x: float, noise: float | None) -> float:
    """d(best, middle) + x d(mean, middle), with the middle of both at the weights 1 and x."""
    middle = (best + x * mean) / (1.0 + x)
    return divergence(best, middle, noise) + x * divergence(mean, middle, noise)


def _ratio(best: float, mean: float, y: float, noise: float | None) -> float:
    """The x with ``_gain`` = y: Newton's method from the left, where the gain is concave."""
    x = y / divergence(mean, best, noise) if divergence(mean, best, noise) < math.inf else 1e-12
    for _ in range(200):
        slope = divergence(mean, (best + x * mean) / (1.0 + x), noise)
        step = (y - _gain(best, mean, x, noise)) / slope
        x += step
        if step <= 1e-12 * x:
            break
    return x


def least_stopping_time(means: ArrayLike, delta: float, noise: float | None = None) -> float:
    """The mean rounds that any rule with error at most ``delta`` needs for the best arm: kl(delta, 1 - delta) T*.

    ``means`` are the arms' chances of a click, or with ``noise`` the means of amounts of that deviation (Garivier,
    Kaufmann 2016, Theorem 1).
    """
    time, _ = optimal_shares(np.asarray(means, np.float64), noise)
    return bernoulli_divergence(delta, 1.0 - delta) * time
