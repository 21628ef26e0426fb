"""The survey's regret bounds, each with its constants: what the proof gives, errata applied."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence


def exp3(T: int, K: int) -> float:
    """Exp3 with tuned gamma: 2.63 sqrt(T K ln K) (survey 3; Auer et al. 2002, Corollary 3.2).

    >>> round(exp3(T=10_000, K=10))
    1262
    """
    return 2.63 * math.sqrt(T * K * math.log(K))


def linucb(
    T: int, d: int, R: float, S: float, L: float, lam: float, delta: float, models: int = 1, scale: float = 1.0
) -> float:
    """LinUCB with the ellipsoid's alpha: 2 alpha_T sqrt(2 T d ln(1 + T L^2 / (d lam))), ||x|| <= L (survey Theorem 3).

    alpha_T = R sqrt(d ln(1 + T L^2 / (d lam)) + 2 ln(1 / delta)) + lam^1/2 S bounds the multiplier through det A. The
    survey's display drops the factor 2 sqrt(2) of its own proof. Holds with probability 1 - delta, lam >= max(1, L^2).
    With ``models`` = K, one for each arm: each has delta / K (in alpha_T), and the widths are those of K d dimensions,
    which are largest when the rounds are shared equally. A ``scale`` above 1 multiplies the widths.

    >>> round(linucb(T=10_000, d=20, R=0.1, S=1.0, L=1.0, lam=1.0, delta=0.05))
    6754
    >>> round(linucb(T=10_000, d=20, R=0.1, S=1.0, L=1.0, lam=1.0, delta=0.05, models=10))
    17145
    """
    alpha = R * math.sqrt(d * math.log1p(T * L**2 / (d * lam)) + 2 * math.log(models / delta)) + math.sqrt(lam) * S
    D = models * d
    return (1 + scale) * alpha * math.sqrt(2 * T * D * math.log1p(T * L**2 / (D * lam)))


def sup_linucb(T: int, K: int, d: int, delta: float) -> float:
    """SupLinUCB: 2 sqrt(T) + 8 (1 + alpha) sqrt(2 d S T ln(1 + T/d)), S = max(1, ceil(ln T)) stages.

    Chu et al. 2011, Theorem 1, with the constants of its proof: an arm played at stage s is worse than the best by at
    most 8 * 2^-s < 8 w, a round of no stage by at most 2 / sqrt(T), and the widths of n rounds sum to at most
    (1 + alpha) sqrt(2 d n ln(1 + n/d)). Holds with probability 1 - S delta for the agent's own delta (run it with
    delta / S for 1 - delta), rewards in [0, 1], ||x|| and ||theta*|| at most 1.

    >>> round(sup_linucb(T=100_000, K=10, d=5, delta=0.05))
    345853
    """
    S = max(1, math.ceil(math.log(T)))
    alpha = math.sqrt(0.5 * math.log(2 * T * K / delta))
    return 2 * math.sqrt(T) + 8 * (1 + alpha) * math.sqrt(2 * d * S * T * math.log1p(T / d))


def sup_linrel(T: int, K: int, d: int, delta: float) -> float:
    """SupLinREL: 2 sqrt(T) + 16 sqrt((1 + ln(2TK/delta)) d S T ln(1 + T/d)), S = max(1, ceil(ln T)) stages.

    Of the order of Auer 2003, Theorem 6, sqrt(T d) (1 + ln(2KT ln(T)/delta))^(3/2); the constants by way of LinUCB's
    potential: ||w||^2 + ||v~||^2 <= 2 x' (I + D'D)^-1 x, since 1/l <= 2 / (1 + l) where l >= 1 and 1 <= 2 / (1 + l)
    where l < 1. Holds with probability 1 - S delta for the agent's own delta, rewards in [0, 1], ||x|| and
    ||theta*|| at most 1.

    >>> round(sup_linrel(T=100_000, K=10, d=5, delta=0.05))
    531185
    """
    S = max(1, math.ceil(math.log(T)))
    return 2 * math.sqrt(T) + 16 * math.sqrt((1 + math.log(2 * T * K / delta)) * d * S * T * math.log1p(T / d))


def exp4(T: int, K: int, N: int) -> float:
    """Exp4 with tuned gamma and a uniform expert: 2.63 sqrt(T K ln N) in expectation (survey 5.1; Auer et al. 2002).

    >>> round(exp4(T=10_000, K=10, N=8))
    1199
    """
    return 2.63 * math.sqrt(T * K * math.log(N))


def exp4p(T: int, K: int, N: int, delta: float) -> float:
    """Exp4P with a uniform expert: 6 sqrt(K T ln(N / delta)) with probability 1 - delta (survey 5.2).

    >>> round(exp4p(T=10_000, K=10, N=8, delta=0.05))
    4274
    """
    return 6.0 * math.sqrt(K * T * math.log(N / delta))


def ve(T: int, d: int, delta: float) -> float:
    """VE with two arms and a class of VC dimension d: 9 sqrt(2 T (d ln(e T / d) + ln(2 / delta))) (survey 5.3).

    With probability 1 - delta, for contexts that come in an exchangeable order (Beygelzimer et al. 2011).

    >>> round(ve(T=10_000, d=2, delta=0.05))
    6067
    """
    return 9.0 * math.sqrt(2.0 * T * (d * math.log(math.e * T / d) + math.log(2.0 / delta)))


def per_context(T: int, C: int, K: int) -> float:
    """Exp3 on each of C contexts: 2.63 sqrt(T C K ln K) (survey Theorem 1).

    Each copy's gamma is tuned to the rounds of its own context.

    >>> round(per_context(T=10_000, C=4, K=10))
    2524
    """
    return 2.63 * math.sqrt(T * C * K * math.log(K))


def policy_arms(T: int, N: int) -> float:
    """Exp3 with N policies as its arms: 2.63 sqrt(T N ln N) (survey 3, where the constant is left out).

    >>> round(policy_arms(T=10_000, N=10))
    1262
    """
    return exp3(T=T, K=N)


def ucb1(T: int, K: int, gaps: Sequence[float] | None = None, scale: float = 1.0) -> float:
    """UCB1's expected regret: sqrt(T K (8 ln T + 1 + pi^2 / 3)), whatever the arms.

    With the gaps of the arms, sum over gaps > 0 of 8 ln T / gap + (1 + pi^2 / 3) gap (Auer et al. 2002, Theorem 1), if
    that is smaller; the first form follows from it by Cauchy-Schwarz. A ``scale`` above 1 of the width has 8 scale^2.

    >>> round(ucb1(T=10_000, K=10)), round(ucb1(T=10_000, K=2, gaps=[0.0, 0.5]))
    (2792, 150)
    """
    plays = 8 * scale**2 * math.log(T)
    always = math.sqrt(T * K * (plays + 1 + math.pi**2 / 3))
    if gaps is None:
        return always
    return min(always, sum(plays / gap + (1 + math.pi**2 / 3) * gap for gap in gaps if gap > 0))


def beta_thompson(T: int, K: int) -> float:
    """Thompson sampling's regret averaged over its prior: sqrt(T K ln(K) / 2) (Russo, Van Roy 2016, Proposition 5).

    >>> round(beta_thompson(T=10_000, K=10))
    339
    """
    return math.sqrt(T * K * math.log(K) / 2)


def epsilon_greedy(T: int, K: int, epsilon: float) -> float:
    """Constant epsilon: epsilon T + 4 sqrt(T K ln(2 K T^2) / epsilon) + 8 K^2 / epsilon + 2, in expectation.

    Elementary: by round t each arm has epsilon t / (2K) exploring rounds, except with probability
    exp(-epsilon t / (8K)); then Hoeffding for every arm and count at once costs the greedy rounds
    2 sqrt(K ln(2 K T^2) / (epsilon t)) each.

    >>> round(epsilon_greedy(T=100_000, K=2, epsilon=0.1))
    38272
    """
    return epsilon * T + 4 * math.sqrt(T * K * math.log(2 * K * T**2) / epsilon) + 8 * K**2 / epsilon + 2


def explore(T: int, epsilon: float, bound: Callable[..., float], **letters: float) -> float:
    """A floor of epsilon / K under an agent costs at most epsilon T beside the agent's own ``bound``.

    For agents whose bound holds whatever arms the explored rounds add (the optimistic ones); rewards in [0, 1].

    >>> round(explore(T=10_000, epsilon=0.1, bound=exp3, K=10))
    2262
    """
    return epsilon * T + bound(T=T, **letters)


def doubling(T: int, bound: Callable[..., float], first: int = 1, **letters: float) -> float:
    """The sum of an agent's ``bound`` over runs of horizon ``first`` x 1, 2, 4, ... that cover T rounds.

    For a bound that grows as sqrt(T): at most sqrt(2) / (sqrt(2) - 1) = 3.41 times the bound at the last run's horizon.

    >>> round(doubling(T=1023, bound=exp3, K=10) / exp3(T=512, K=10), 2)
    3.31
    """
    total, horizon, covered = 0.0, first, 0
    while covered < T:
        total += bound(T=horizon, **letters)
        covered += horizon
        horizon *= 2
    return total


def epoch_greedy(
    T: int, K: int, N: int, delta: float, c: float = 1.0, schedule: Callable[[int], int] | None = None
) -> float:
    """Epoch-Greedy with s(l) = floor(c sqrt(l / (K ln(N/delta)))): L + sum_l s(l) 2 epsilon_l (survey 4.3.1).

    L is the epoch in which round T lies: O((K ln(N/delta))^(1/3) T^(2/3)). epsilon_l is Bernstein's deviation of N
    averages of l estimates (variance at most K, range K) that holds in all L epochs with probability 1 - delta. The sum
    is one for any ``schedule`` s(l), whose order may then be another.

    >>> round(epoch_greedy(T=20_000, K=2, N=100, delta=0.05))
    11084
    """
    complexity = K * math.log(N / delta)
    greedy: list[int] = []
    total = 0
    while total < T:
        epoch = len(greedy) + 1
        greedy.append(math.floor(c * math.sqrt(epoch / complexity)) if schedule is None else max(0, schedule(epoch)))
        total += 1 + greedy[-1]
    A = math.log(2 * N * len(greedy) / delta)
    regret = float(len(greedy))
    for i, s in enumerate(greedy):
        linear = A * K / (3 * (i + 1))
        regret += s * min(1.0, 2 * (linear + math.sqrt(linear**2 + 2 * A * K / (i + 1))))
    return regret


def policy_elimination(T: int, K: int, N: int, delta: float) -> float:
    """PolicyElimination: 17 sqrt(2 T K ln(4 T^2 N / delta)) with probability 1 - delta (survey 4.3.2, Theorem 10).

    The survey's 16 is the sum of 4 b_t; the smoothing costs K mu_t = b_t / 4 more per round.

    >>> round(policy_elimination(T=20_000, K=2, N=100, delta=0.05))
    25802
    """
    return 17 * math.sqrt(2 * T * K * math.log(4 * T**2 * N / delta))


def randomized_ucb(T: int, K: int, N: int, delta: float, c: float = 17 * math.sqrt(2)) -> float:
    """RandomizedUCB: c (sqrt(T K ln(T N / delta)) + K ln(N K / delta)) with probability 1 - delta (Dudik et al. 2011).

    The paper proves the order and leaves the constant open; ``c`` is by default PolicyElimination's.

    >>> round(randomized_ucb(T=20_000, K=2, N=100, delta=0.05))
    20516
    """
    return c * (math.sqrt(T * K * math.log(T * N / delta)) + K * math.log(N * K / delta))


def iltcb(T: int, K: int, N: int, delta: float, psi: float = 100.0) -> float:
    """ILOVETOCONBANDITS with doubling epochs: C (4 K d + sqrt(8 K d tau)) + sqrt(8 T ln(2 / delta)).

    C = 4 psi + c0 + 1 (Agarwal et al. 2014, appendix, where psi = 100): c0 = 4 sqrt(2) (1 + 94.1) relates true to
    estimated regret, Reg <= 2 Reg_hat + c0 K mu; the first constraint, sum Q Reg_hat <= 2 psi K mu, then leaves
    (4 psi + c0) K mu, and the smoothing adds K mu. tau < 2 T is the end of the epoch of round T,
    d = ln(16 tau^2 N / delta); below T only for T in the billions.

    >>> round(iltcb(T=20_000, K=2, N=100, delta=0.05))
    4458305
    """
    tau = 2 * T
    d = math.log(16 * tau**2 * N / delta)
    C = 4 * psi + 4 * math.sqrt(2) * (1 + 94.1) + 1
    return C * (4 * K * d + math.sqrt(8 * K * d * tau)) + math.sqrt(8 * T * math.log(2 / delta))


def lin_thompson(T: int, d: int, R: float, epsilon: float, delta: float) -> float:
    """LinThompson with v_T = R sqrt((24 / epsilon) d ln(T / delta)): the O() of the survey's theorem, opened.

    (g / p) (15 sqrt(d T ln T) + pi^2 / 3 + 6 sqrt(2 T ln(2 / delta))), with g = v_T sqrt(4 d ln T) + l_T, l_T = 1 +
    R sqrt(d ln(T^3 / delta)) and 1 / p = 4 e sqrt(pi T^epsilon), as Agrawal and Goyal 2013 sum their supermartingale.
    p may not exceed the chance that a normal passes l_t / v_t, so that chance is taken where it is smaller (small R).
    Of the order d^2 / epsilon sqrt(T^(1 + epsilon)) ln(T d) ln(1 / delta) or below; lam = 1, ||x||, ||mu*|| <= 1.

    >>> f"{lin_thompson(T=10_000, d=5, R=1.0, epsilon=0.5, delta=0.05):.1e}"
    '1.7e+09'
    """
    v = R * math.sqrt(24 / epsilon * d * math.log(T / delta))
    length = 1 + R * math.sqrt(d * math.log(T**3 / delta))
    first = R * math.sqrt(24 / epsilon * d * math.log(1 / delta))
    tail = 0.5 * math.erfc((math.sqrt(epsilon / 8) + 1 / first) / math.sqrt(2))  # l_t / v_t <= sqrt(epsilon/8) + 1/v_1
    p = min(1 / (4 * math.e * math.sqrt(math.pi * T**epsilon)), tail)
    g = v * math.sqrt(4 * d * math.log(T)) + length
    sums = 15 * math.sqrt(d * T * math.log(T)) + math.pi**2 / 3 + 6 * math.sqrt(2 * T * math.log(2 / delta))
    return g / p * sums


def cofine_ucb(
    T: int, d: int, L: float, U: float, lam: float, lam_coarse: float, alpha: float, alpha_coarse: float
) -> float:
    """CoFineUCB: 2 (alpha + alpha_coarse U sqrt(lam / lam_coarse)) sqrt(2 T d ln(1 + T L^2 / (d lam))), lam >= L^2.

    U is the largest singular value of the subspace. Holds whenever the two widths cover the error of every estimate:
    then a round's regret is at most twice its widths, the coarse width lam ||U' M^-1 x||_(M~^-1) is at most
    U sqrt(lam / lam_coarse) ||x||_(M^-1), and LinUCB's potential sums them. Yue et al. 2012 have sqrt(k) in the coarse
    term, with their own alphas.

    >>> round(cofine_ucb(T=10_000, d=20, L=1.0, U=1.0, lam=1.0, lam_coarse=1.0, alpha=1.0, alpha_coarse=0.5))
    4731
    """
    widths = alpha + alpha_coarse * U * math.sqrt(lam / lam_coarse)
    return 2 * widths * math.sqrt(2 * T * d * math.log1p(T * L**2 / (d * lam)))


def spectral_ucb(T: int, d: int, R: float, C: float, lam: float, delta: float) -> float:
    """SpectralUCB: (8 R sqrt(d ln(1 + T/lam) + 2 ln(1/delta)) + 4 C + 4) sqrt(d T ln(1 + T/lam)).

    Valko et al. 2014, Theorem 1, with probability 1 - delta; d is the effective dimension, mean rewards in [-1, 1].

    >>> round(spectral_ucb(T=10_000, d=5, R=0.1, C=1.0, lam=1.0, delta=0.05))
    9345
    """
    growth = d * math.log1p(T / lam)
    return (8 * R * math.sqrt(growth + 2 * math.log(1 / delta)) + 4 * C + 4) * math.sqrt(growth * T)


def gp_ucb(T: int, K: int, gamma_T: float, sigma: float, delta: float, B: float | None = None) -> float:
    """GPUCB, CGPUCB with ``FiniteArmsBeta``: sqrt(8 T beta_T gamma_T / ln(1 + sigma^-2)) (Srinivas et al. 2010, Th. 1).

    beta_T = 2 ln(K T^2 pi^2 / (6 delta)); gamma_T is the maximum information gain of T rows at noise sigma, see
    ``armwise.kernels.information_gain``. Holds with probability 1 - delta for f drawn from the process, k(x, x) <= 1.
    With ``B`` it is the bound of ``AgnosticBeta``, ``gp_ucb_agnostic``.

    >>> round(gp_ucb(T=10_000, K=10, gamma_T=20.0, sigma=0.1, delta=0.1))
    4039
    """
    if B is not None:
        return gp_ucb_agnostic(T, B, gamma_T, sigma, delta)
    beta = 2 * math.log(K * T**2 * math.pi**2 / (6 * delta))
    return math.sqrt(8 * T * beta * gamma_T / math.log1p(sigma**-2))


def gp_ucb_agnostic(T: int, B: float, gamma_T: float, sigma: float, delta: float) -> float:
    """GPUCB with ``AgnosticBeta``: sqrt(8 T beta_T gamma_T / ln(1 + sigma^-2)) (survey 4.2.1; Srinivas et al. 2010).

    beta_T = 2 B + 300 gamma_T ln^3(T / delta). Holds with probability 1 - delta for <f, f> <= B, noise bounded by
    sigma, k(x, x) <= 1.

    >>> round(gp_ucb_agnostic(T=10_000, B=1.0, gamma_T=20.0, sigma=0.1, delta=0.1))
    1781651
    """
    beta = 2 * B + 300 * gamma_T * math.log(T / delta) ** 3
    return math.sqrt(8 * T * beta * gamma_T / math.log1p(sigma**-2))


def sup_kernel_ucb(T: int, N: int, d_tilde: float, gamma: float, delta: float, kappa: float = 1.0) -> float:
    """SupKernelUCB: 2 sqrt(T) + 8 eta sqrt(S T V), S = max(1, ceil(ln T)) stages (Valko et al. 2013, its order).

    V = (c / ln(1 + c)) d~ (ln(1 + c T / d~) + ln T) bounds the squared widths of a stage, c = kappa / gamma and
    k(x, x) <= kappa: they are at most c, 1/2 sum ln(1 + width^2) is an information gain, and of its eigenvalues the
    first d~ are bounded by their mean and the rest by the definition of d~ (``armwise.kernels.effective_dimension``).
    Constants as for ``sup_linucb``. Holds with probability 1 - S delta for rewards in [0, 1] and
    gamma <f, f> <= ln(2TN/delta) / 2, so that half of eta covers the bias and half the noise.

    >>> round(sup_kernel_ucb(T=100_000, N=10, d_tilde=10.0, gamma=1.0, delta=0.05))
    897207
    """
    S = max(1, math.ceil(math.log(T)))
    eta = math.sqrt(2 * math.log(2 * T * N / delta))
    c = kappa / gamma
    V = c / math.log1p(c) * d_tilde * (math.log1p(c * T / d_tilde) + math.log(T))
    return 2 * math.sqrt(T) + 8 * eta * math.sqrt(S * T * V)


def ridge_regression(T: int, d: int, lam: float = 1.0, S: float = 1.0, L: float = 1.0, error: float = 2.0) -> float:
    """Online ridge against the best linear fit, in squared loss: lam S^2 + error^2 d ln(1 + T L^2 / (d lam)).

    For ||theta|| <= S, ||x|| <= L, and as long as no prediction is further than ``error`` from its reward
    (Cesa-Bianchi and Lugosi 2006, chapter 11): 2 by default, 1 where rewards lie in [0, 1] and predictions are clipped
    to it, since sum_t (1 - x_t.A_t^-1 x_t) (y_t - prediction)^2 is at most the loss of the best fit, clipped or not.

    >>> round(ridge_regression(T=10_000, d=10), 1)
    277.4
    """
    return lam * S**2 + error**2 * d * math.log1p(T * L**2 / (d * lam))


def squarecb(T: int, K: int, d: int, delta: float, lam: float = 1.0, S: float = 1.0, L: float = 1.0) -> float:
    """SquareCB over ridge, tuned gamma: 4 sqrt(K T Reg_Sq) + 8 sqrt(K T ln(2 / delta)) (Foster and Rakhlin 2020).

    Reg_Sq is ``ridge_regression`` of dimension d (with one model per arm, K times the context's). Theorem 1, with
    probability 1 - delta.

    >>> round(squarecb(T=10_000, K=2, d=10, delta=0.05))
    11594
    """
    regression = ridge_regression(T, d, lam, S, L)
    return 4.0 * math.sqrt(K * T * regression) + 8.0 * math.sqrt(K * T * math.log(2.0 / delta))


def lagrange_regression(T: int, K: int, d: int, rate: float, m: int = 1, lam: float = 1.0) -> float:
    """Squared error of estimated Lagrangians, K ridge models of dimension d each for rewards and for m costs.

    (dr - sum_i l_i dc_i)^2 <= 2 dr^2 + 2 m (1 / rate)^2 sum_i dc_i^2 for prices l_i <= 1 / rate; estimates are clipped
    to [0, 1], and each of the K models has a parameter of length at most 1.

    >>> round(lagrange_regression(T=10_000, K=2, d=3, rate=0.5))
    465
    """
    return 2.0 * (1.0 + (m / rate) ** 2) * ridge_regression(T, K * d, lam, math.sqrt(K), error=1.0)


def lagrange(T: int, K: int, d: int, rate: float, delta: float = 0.05, m: int = 1, lam: float = 1.0) -> float:
    """LagrangeCB that stops when its budget B is spent, against the LP (Slivkins, Sankararaman, Foster 2023).

    Their argument with its constants: with prices in [0, P], P = T / B = 1 / ``rate``, the primal player's regret
    (SquareCB's, on payoffs of range 1 + m P) and the dual player's (m P sqrt(T), online gradient) add up, because a
    resource that runs out at round s leaves P (B s / T - B) = s - T on the books, which is what the rounds after it
    could have brought; and Azuma's inequality for the rounds' own noise. With probability 1 - delta; rewards and costs
    in [0, 1], a null arm.

    >>> round(lagrange(T=1_000_000, K=3, d=4, rate=0.5))
    362092
    """
    P = 1.0 / rate
    primal = 4.0 * math.sqrt(K * T * lagrange_regression(T, K, d, rate, m, lam))
    primal += 8.0 * (1.0 + m * P) * math.sqrt(K * T * math.log(4.0 / delta))
    return primal + m * P * math.sqrt(T) + (1.0 + 2.0 * m * P) * math.sqrt(2.0 * T * math.log(4.0 / delta))


def lincbwk(T: int, d: int, rate: float, R: float = 1.0, delta: float = 0.05, m: int = 1, models: int = 1) -> float:
    """LinCBwK with Z = T / B that stops when its budget is spent, against the LP (Agrawal, Devanur 2016, Theorem 2).

    ``rate`` is B / T. (1 + Z) times LinUCB's bound for the optimistic Lagrangian (delta shared among 1 + m
    parameters), the regret of multiplicative weights Z 2 sqrt(T ln(1 + m)), and Azuma's inequality; ``lagrange`` says
    why they add up.

    >>> round(lincbwk(T=1_000_000, d=4, rate=0.5, R=0.1))
    123170
    """
    Z = 1.0 / rate
    optimism = (1.0 + Z) * linucb(T, d, R, 1.0, 1.0, 1.0, delta / (1 + m), models)
    return (
        optimism + Z * 2.0 * math.sqrt(T * math.log1p(m)) + (1.0 + 2.0 * Z) * math.sqrt(2.0 * T * math.log(4.0 / delta))
    )


def d3rb(T: int, M: int, d_star: float, delta: float, d_min: float = 1.0) -> float:
    """D3RB over M bases: 4 sqrt(2) M d* sqrt(T) + (2 W + 4 sqrt(2) (d*/d_min) (d* + 2 W)) sqrt(M T) + rest.

    d* >= d_min is the regret coefficient of the best base: n plays of it cost at most d* sqrt(n). W is
    sqrt(ln(M (1 + ln T) / delta)), so that means of n rewards in [0, 1] are W / sqrt(n) from their expectation, and the
    rest is M (9 + log2(T) / 2). Of the order of Pacchiano, Dann, Gentile 2023, Theorem 1, with constants that follow
    from its proof: the best base's coefficient never passes 2 d*, potentials differ at most twofold when a base is
    played, and d_j sqrt(n_j) is at most sqrt(2) times its potential. With probability 1 - delta, M / delta >= 13.

    >>> round(d3rb(T=10**6, M=2, d_star=1.0, delta=0.05))
    66927
    """
    W = _balancing_width(T, M, delta)
    each = 2.0 * W + 4.0 * math.sqrt(2.0) * d_star / d_min * (d_star + 2.0 * W)
    most = 4.0 * math.sqrt(2.0) * M * d_star * math.sqrt(T)
    return most + each * math.sqrt(M * T) + M * (9.0 + 0.5 * math.log2(T))


def ed2rb(T: int, M: int, d_star: float, delta: float, d_min: float = 1.0) -> float:
    """ED2RB over M bases: 2 M d* sqrt(T) + (2 W + 2 (d*/d_min) (d* + 2 W)) sqrt(M T) + rest, as in ``d3rb``.

    The best base's estimated coefficient never passes d*. A potential that may only double per play lags behind for at
    most log2(4 d* sqrt(T) / d_min) plays of a base, which are the rest, with 9 for its first plays.

    >>> round(ed2rb(T=10**6, M=2, d_star=1.0, delta=0.05))
    28311
    """
    W = _balancing_width(T, M, delta)
    each = 2.0 * W + 2.0 * d_star / d_min * (d_star + 2.0 * W)
    rest = M * (9.0 + math.log2(4.0 * d_star * math.sqrt(T) / d_min))
    return 2.0 * M * d_star * math.sqrt(T) + each * math.sqrt(M * T) + rest


def _balancing_width(T: int, M: int, delta: float) -> float:
    return math.sqrt(math.log(M * (1.0 + math.log(T)) / delta))


def corral(T: int, M: int, d_star: float, eta: float | None = None, fails: float = 0.0) -> float:
    """Corral over M bases: 2 + (M - 1) ln(T) / eta + (e^(1/ln 2) / 2) (T / (T - 1))^2 eta T + price + fails T.

    R = d* sqrt(T) is the regret that the best base has in the rounds in which it is drawn, whichever they are, with
    probability 1 - ``fails``. With rho twice the largest 1 / q it ever has, its proposals in all rounds cost at most
    rho R in expectation, and its growing rates bring back (c / eta) h((1 - 1/T)^2 rho / 2), where
    c = (1 - e^(-1 / ln T)) / e^(1/ln 2) and h(y) = y - 1 - ln y, once rho is beyond 2 M: ``price`` is the largest
    difference. Agarwal, Luo, Neyshabur, Schapire 2017, Theorem 4 with alpha = 1 (1 / (40 eta ln T) stands there for
    the slope in rho, and the constants of the rest are not worked out). Infinite where eta is too large for R; None is
    the smaller of half of that and the rate that balances the first two terms.

    >>> round(corral(T=20_000, M=2, d_star=0.0, eta=0.015))
    1297
    """
    growth, R, keeps = math.exp(1.0 / math.log(2.0)), d_star * math.sqrt(T), (1.0 - 1.0 / T) ** 2
    most = _corral_rate(T, R)
    if eta is None:
        eta = min(0.5 * most, math.sqrt(2.0 * M * math.log(T) / (growth * T)))
    elif eta >= most:
        return math.inf
    c = -math.expm1(-1.0 / math.log(T)) / growth  # a rate is raised fewer than log2(T) times, and so at most to growth
    slope = c * keeps / (2.0 * eta) - R
    rho = max(4.0 * M, c / (eta * slope))
    price = max(2.0 * M * R, c / eta * (1.0 + math.log(keeps * rho / 2.0)) - slope * rho)
    return 2.0 + (M - 1) * math.log(T) / eta + 0.5 * growth * eta * T / keeps + price + fails * T


def _corral_rate(T: int, R: float) -> float:
    """The first rate below which Corral's bound is finite for a base of regret R: c (1 - 1/T)^2 / (2 R)."""
    c = -math.expm1(-1.0 / math.log(T)) / math.exp(1.0 / math.log(2.0))
    return c * (1.0 - 1.0 / T) ** 2 / (2.0 * R) if R > 0.0 else math.inf
