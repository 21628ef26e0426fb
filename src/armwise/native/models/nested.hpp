// Nested ridge models: one factor for every prefix of the features.
//
// W is lower triangular with A^-1 = W'W, as in ridge.hpp. Its leading block is the factor of the model of the first
// features only, so that p = W x gives the widths of all prefixes as running sums of p_i^2, and one Carlson step updates
// all of them. Only the estimate theta is kept for each prefix. Prefixes end at multiples of eight.
//
// `Evidence` selects the prefix that decides by its errors one step ahead. They fade, so that early errors stop counting.
#pragma once

#include "choice.hpp"
#include "scratch.hpp"
#include "simd.hpp"
#include "triangular.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace armwise {

struct Nested {
    double *factors, *thetas;  // (M, D, D) and (M, B, D)
    Index M, B, D;
    const int64_t* ends;  // B prefixes, increasing, the last is D
    const double* prior;  // (D): the prior scale of each weight

    double* factor(Index m) const { return factors + m * D * D; }
    double* theta(Index m, Index b) const { return thetas + (m * B + b) * D; }
    Index stride() const { return D * D + B * D; }
};

// Each prefix's prediction for x under model m.
inline void predict(const Nested& model, Index m, const double* x, double* means) {
    for (Index b = 0; b < model.B; ++b) means[b] = padded_dot(model.theta(m, b), x, model.ends[b]);
}

constexpr Index BLOCK_ROWS = 4;  // of W, which learn at once: their coefficients fit into the registers

// Carlson's step for BLOCK_ROWS rows of W in order: row = keep row + take k, k += add (row before). Each place of all rows is
// done at once, so that k is read and written once.
inline void turn(double* rows, Index D, Index width, const double* keep, const double* take, const double* add,
                 double* k) {
    for (Index j = 0; j < width; j += LANES / 2) {
        Half sofar = load_half(k + j);
        for (Index r = 0; r < BLOCK_ROWS; ++r) {
            const Half w = load_half(rows + r * D + j);
            store_half(rows + r * D + j, splat_half(keep[r]) * w + splat_half(take[r]) * sofar);
            sofar = splat_half(add[r]) * w + sofar;
        }
        store_half(k + j, sofar);
    }
}

// A += x x', b += r x for every prefix at once; `errors` are r minus each prefix's prediction before.
// `growth` becomes 1 + the squared width of x before, for each prefix.
inline void learn_nested(const Nested& model, Index m, const double* x, const double* errors, double* growth) {
    const Index D = model.D;
    Scratch scratch(2 * D, 2 * D);
    double *p = scratch.data(), *k = p + D, *W = model.factor(m);
    require(is_finite(project(W, D, x, p)), "context must be finite (and its square must not overflow)");
    double before = 1.0;
    Index b = 0;
    for (Index i = 0; i < D; i += BLOCK_ROWS) {
        double keep[BLOCK_ROWS], take[BLOCK_ROWS];
        for (Index r = 0; r < BLOCK_ROWS; ++r) {
            const double after = before + p[i + r] * p[i + r], root = std::sqrt(before * after);
            keep[r] = before / root, take[r] = -p[i + r] / root;
            before = after;
        }
        turn(W + i * D, D, (i / LANES + 1) * LANES, keep, take, p + i, k);
        for (; b < model.B && i + BLOCK_ROWS == model.ends[b]; ++b) {
            growth[b] = before;
            const Lanes step = splat(errors[b] / before);
            double* theta = model.theta(m, b);
            for (Index j = 0; j < model.ends[b]; j += LANES) store(theta + j, step * load(k + j) + load(theta + j));
        }
    }
}

// The evidence of errors one step ahead, with rewards in units of their range. `state` is (6 + 5 B): the number of rewards
// learnt; the faded sum of squared errors of the selected prefix, and their faded number; then for each prefix the faded
// sums of the difference (longest's squared error - its own) and of its square, the number of rewards learnt while it was
// selected, and the faded sums of error^2 / growth and of ln growth; at last the sum of squared errors of the selected
// prefixes, which does not fade and compares models; an amount that the fit of the models adds to NARROW; and the distance
// between the arms' constants (see `apart`).
//
// With one model per arm, an arm's model meets contexts of every kind, and little optimism is enough. With one model for
// rows that describe arms, rows never chosen are known from the model alone, which needs rewards before it is trusted. Then
// the prefix of the largest marginal likelihood decides, and the longest adds to its width while its likelihood is not
// negligible. Faded evidence against too long a prefix stays bounded, while ln t would grow: such a prefix would be
// selected by chance again and again, with weights of noise. So a longer prefix must be likelier by LIKELIER once there are
// enough rewards.
struct Evidence {
    double* state;
    Index B, M;

    static constexpr double MEMORY = 0.5, START = 20.0;     // errors fade at rate 1 / (MEMORY t + START)
    static constexpr double CONSTANT = 3.0, SHORTER = 0.25;  // evidence required, in standard errors
    static constexpr double PATIENCE = 30.0;                // rewards per arm before a constant may decide
    static constexpr double APART = 1.0;                    // deviations by which the constants must differ
    static constexpr double WIDE = 1.0, NARROW = 0.3;       // standard errors of optimism: a constant, a longer prefix
    static constexpr double ROWS = 0.8;                     // posterior deviations, of one model for all rows
    static constexpr double TEXTBOOK = 2.0;                 // of ln(1 + w^2 / v^2), where a constant decides
    static constexpr double EXTRA = 2.0, BEYOND = 10.0;     // for an arm known less than the leading one
    static constexpr double FIRST = 2.0, SQUARES = 0.1;     // prior number of rewards, and their squared errors
    static constexpr double TEMPER = 3.0;                   // of the likelihood ratio that widens
    static constexpr double LIKELIER = 3.0, ENOUGH = 300.0;    // of -2 ln(likelihood), and rewards until half of it counts

    double& learnt() const { return state[0]; }
    double& faded_error() const { return state[1]; }
    double& faded_count() const { return state[2]; }
    double* gaps() const { return state + 3; }
    double* squares() const { return state + 3 + B; }
    double* charge() const { return state + 3 + 2 * B; }
    double* sums() const { return state + 3 + 3 * B; }
    double* logs() const { return state + 3 + 4 * B; }
    double& loss() const { return state[3 + 5 * B]; }
    double more() const { return state[4 + 5 * B]; }
    double& apart() const { return state[5 + 5 * B]; }
    static Index size(Index B) { return 6 + 5 * B; }
    bool per_arm() const { return M > 1; }

    // -2 ln(marginal likelihood), the noise integrated out, with a prior of two rewards: 0.22 of the rewards' range.
    double cost(Index b) const { return logs()[b] + (FIRST + faded_count()) * std::log(variance(b)); }
    double variance(Index b) const { return (SQUARES + sums()[b]) / (FIRST + faded_count()); }

    Index level() const { return per_arm() ? level_per_arm() : likeliest(); }

    Index likeliest() const {
        Index chosen = B - 1;
        const double extra = LIKELIER * learnt() / (ENOUGH + learnt());
        for (Index b = B - 2; b >= 1; --b)
            if (cost(b) < cost(chosen) + extra) chosen = b;
        return chosen;
    }
    // The longest prefix, unless a shorter one did better by a quarter of the difference's standard error; of two such,
    // the better. The first prefix is a constant per arm. It needs strong evidence, because an arm that is not tried again
    // gives none. If it does not separate the arms it is not selected, however well it predicts: its choices would learn
    // nothing about the effect of a weak context.
    Index level_per_arm() const {
        Index chosen = B - 1;
        double best = 0.0;
        for (Index b = B - 2; b >= 1; --b) {
            const double value = gaps()[b] - SHORTER * std::sqrt(squares()[b] + 0.25);
            if (value >= best) best = value, chosen = b;
        }
        if (B > 1 && learnt() > PATIENCE * double(M) && apart() > APART && gaps()[0] > gaps()[chosen] &&
            gaps()[0] > CONSTANT * std::sqrt(squares()[0] + 0.25))
            return 0;
        return chosen;
    }
    // The residual standard deviation; a prior of four rewards sets it to half of the rewards' range.
    double noise(Index b) const { return std::sqrt(per_arm() ? (1.0 + faded_error()) / (4.0 + faded_count()) : variance(b)); }
    double radius(Index b) const { return (per_arm() ? (b == 0 ? WIDE : NARROW + more()) : ROWS) * noise(b); }
    // The margin of prefix b over the mean of an arm of squared width `square`, where the leading arm's is `leader`: the
    // radius times the width, and more for an arm known less than the leading one. Where a constant per arm decides it is
    // the textbook's index, sqrt(2 ln(1 + n_leader / n_arm) / n_arm).
    double margin(Index b, double square, double leader) const {
        const double s = noise(b), r = radius(b);
        if (!per_arm() || !(leader > 0.0)) return r * std::sqrt(square);
        if (b == 0) return s * std::sqrt(square * TEXTBOOK * std::log1p(std::min(square / leader, MAX_MAGNITUDE)));
        const double ratio = std::min(square / (BEYOND * leader), MAX_MAGNITUDE);
        return std::sqrt(square * (r * r + (ratio > 1.0 ? EXTRA * s * s * std::log(ratio) : 0.0)));
    }
    // The share, 0 to 1, of the longest prefix's squared width that counts beside that of the selected prefix.
    double share(Index b) const {
        if (per_arm() || b == B - 1) return 0.0;
        const double left = std::exp((cost(b) - cost(B - 1)) / (2.0 * TEMPER));
        return left < 1e-3 ? 0.0 : left;
    }

    void learn(const double* errors, const double* growth, Index in_charge) {
        const double fade = 1.0 - 1.0 / (MEMORY * learnt() + START);
        const double longest = errors[B - 1] * errors[B - 1];
        for (Index b = 0; b < B; ++b) {
            const double gain = longest - errors[b] * errors[b];
            gaps()[b] = fade * gaps()[b] + gain;
            squares()[b] = fade * fade * squares()[b] + gain * gain;
            sums()[b] = fade * sums()[b] + errors[b] * errors[b] / growth[b];
            logs()[b] = fade * logs()[b] + std::log(growth[b]);
        }
        faded_error() = fade * faded_error() + errors[in_charge] * errors[in_charge];
        loss() += errors[in_charge] * errors[in_charge];
        faded_count() = fade * faded_count() + 1.0;
        learnt() += 1.0;
        charge()[in_charge] += 1.0;
    }
};

// Whether an arm with a model of its own remembers no reward: it is tried first.
inline bool untried(const Nested& model, Index m) {
    return model.M > 1 && model.factor(m)[0] >= model.prior[0] * (1.0 - 1e-9);
}

// The distance between the arms' constants: the sum of their squared distances from the common mean, each in its standard
// errors, less its expectation under equal constants, in standard deviations of that.
inline double apart(const Nested& model, double variance) {
    double rewards = 0.0, sum = 0.0, squares = 0.0;
    for (Index m = 0; m < model.M; ++m) {
        const double w = model.factor(m)[0] / model.prior[0], mean = model.theta(m, 0)[0];
        const double n = 1.0 / (w * w) - 1.0;  // the number of rewards of arm m, with a prior of 1
        rewards += n, sum += n * mean, squares += n * mean * mean;
    }
    const double chance = double(model.M - 1);
    return rewards > 0.0 ? ((squares - sum * sum / rewards) / variance - chance) / std::sqrt(2.0 * chance) : 0.0;
}

// Optimistic scores of K arms: mean + radius x width, of one row under each model or of each row under the one model.
// Untried arms come first; the score of an arm that cannot win even with the width of an arm never played is that upper
// bound.
inline void nested_scores(const Nested& model, const double* X, Index K, const Evidence& evidence, double* scores) {
    const Index D = model.D, level = evidence.level(), end = model.ends[level];
    const double radius = evidence.radius(level), share = evidence.share(level);
    const double longest = share > 0.0 ? evidence.radius(model.B - 1) : 0.0;
    const Index last = share > 0.0 ? D : end;
    Scratch scratch(D);
    double* p = scratch.data();
    const bool shared = model.M > 1;
    std::vector<std::pair<double, Index>> order(static_cast<std::size_t>(K));
    bool all = true;
    for (Index a = 0; a < K; ++a) {
        const double mean = padded_dot(model.theta(shared ? a : 0, level), shared ? X : X + a * D, end);
        all &= is_finite(mean);
        order[static_cast<std::size_t>(a)] = {-mean, a};
    }
    require(all, "context must be finite (and its square must not overflow)");
    std::sort(order.begin(), order.end());
    double best = -std::numeric_limits<double>::infinity(), leader = 0.0;
    for (const auto& [minus, a] : order) {
        const double* x = shared ? X : X + a * D;
        if (untried(model, a)) {
            scores[a] = best = std::numeric_limits<double>::infinity();
            continue;
        }
        double most = 0.0;
        for (Index j = 0; j < last; ++j) most += x[j] * x[j] * model.prior[j] * model.prior[j];
        const bool leads = shared && leader == 0.0;  // the largest mean of the tried arms
        if (!leads) {
            const double widest = shared ? evidence.margin(level, most, leader) : std::max(radius, longest) * std::sqrt(most);
            const double bound = widest - minus;
            scores[a] = bound;
            if (bound < best - 1e-6 * std::fabs(best)) continue;
        }
        const double whole = project(model.factor(shared ? a : 0), D, x, p, last);
        if (share > 0.0) {
            const double own = radius * radius * padded_dot(p, p, end);
            scores[a] = std::sqrt(own + share * std::max(0.0, longest * longest * whole - own)) - minus;
        } else {
            if (leads) leader = whole;
            scores[a] = evidence.margin(level, whole, leader) - minus;
        }
        require(is_finite(scores[a]), "context must be finite (and its square must not overflow)");
        best = std::max(best, scores[a]);
    }
}

}  // namespace armwise
