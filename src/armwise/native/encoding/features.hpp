// Tokens, their scale, and hashed, crossed rows, for the encoder's kernels and those of whole decisions.
//
// features/encoding/encoder.py specifies the rows to the bit; the numbers of steps are its own.
#pragma once

#include "array.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace armwise {

constexpr double SPAN = 3.0;  // standard deviations that fill [-1, 1]
using Hashes = View<const uint64_t, 1>;
using Numbers = View<const double, 1>;

inline double as_number(uint64_t bits) {
    double number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}

inline nb::bytes as_bytes(const std::vector<uint64_t>& words) {
    return nb::bytes(reinterpret_cast<const char*>(words.data()), 8 * words.size());
}

inline Hashes as_words(const nb::bytes& text) {
    require(text.size() % 8 == 0, "words must have eight bytes each");
    Hashes words;
    words.data = reinterpret_cast<const uint64_t*>(text.c_str());  // the text of a bytes object is aligned
    words.shape[0] = Index(text.size() / 8);
    return words;
}

inline Index place(Hashes names, uint64_t name) {
    const uint64_t* found = std::lower_bound(names.begin(), names.end(), name);
    return found != names.end() && *found == name ? found - names.begin() : -1;
}

inline double scaled(double value, double mean, double deviation) {
    return std::min(std::max((value - mean) / (SPAN * deviation), -1.0), 1.0);
}

inline uint64_t mix(uint64_t c, uint64_t a) {
    uint64_t z = c * 0x9E3779B97F4A7C15u + a;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

inline void add(double* row, Index dim, uint64_t z, double value) {
    const auto n = uint64_t(dim), rest = z & 0x7FFFFFFFFFFFFFFFu;
    const uint64_t i = (n & (n - 1)) == 0 ? rest & (n - 1) : rest % n;  // division is slow
    uint64_t bits;  // the sign without a branch, which would be unpredictable
    std::memcpy(&bits, &value, sizeof bits);
    row[i] += as_number(bits ^ (z & 0x8000000000000000u));
}

struct Scaling {
    Hashes names;
    Numbers means, deviations;

    Scaling(Hashes names, Numbers means, Numbers deviations) : names(names), means(means), deviations(deviations) {
        require(means.size() == names.size() && deviations.size() == names.size(),
                "names, means and deviations must have as many entries");
    }

    // The values of the n tokens at `tokens`; `places` has the places of the names of the previous value.
    void valued(const uint64_t* tokens, Index n, Index* places, double* values) const {
        for (Index k = 0; k < n; ++k, tokens += 3) {
            values[k] = as_number(tokens[1]);
            if (tokens[2]) {
                Index i = places[k];
                if (i >= names.size() || names[i] != tokens[0]) {  // most arms have the same names in the same order
                    i = place(names, tokens[0]);
                    places[k] = std::max<Index>(i, 0);
                }
                values[k] = i < 0 ? 0.0 : scaled(values[k], means[i], deviations[i]);
            }
        }
    }
};

// Reads a request's words in order; a count beyond their end is refused.
class Reader {
  public:
    explicit Reader(Hashes words) : words_(words) {}
    uint64_t word() {
        require(at_ < words_.size(), "words end too early");
        return words_[at_++];
    }
    Index count() {
        const uint64_t n = word();
        require(n <= uint64_t(words_.size()), "words announce more than they hold");
        return Index(n);
    }
    const uint64_t* tokens(Index n) {
        require(3 * n <= words_.size() - at_, "words announce more tokens than they hold");
        const uint64_t* first = words_.data + at_;
        at_ += 3 * n;
        return first;
    }

  private:
    Hashes words_;
    Index at_ = 0;
};

inline void normalise(double* row, Index dim) {
    double total = 0.0;
    for (Index i = 0; i < dim; ++i) total += row[i] * row[i];
    if (total > 0.0) {
        const double norm = std::sqrt(total);
        for (Index i = 0; i < dim; ++i) row[i] /= norm;
    }
}

// Some tokens, with their values after scaling.
struct Valued {
    const uint64_t* tokens;
    Index n;
    const double* values;
};

// Add (constant + context) x (constant + id + arm) to a row of zeros and normalise it; without an arm (`id` is null) add the
// context and the constant. `hashes` has room for the arm's tokens.
inline void crossed_into(double* row, Index dim, const Valued& context, const uint64_t* id, const Valued& arm,
                         bool interactions, uint64_t one, uint64_t* hashes) {
    for (Index c = -1; c < context.n; ++c) {
        const uint64_t hc = c < 0 ? one : context.tokens[3 * c];
        const double vc = c < 0 ? 1.0 : context.values[c];
        add(row, dim, mix(hc, one), vc);
        if (vc == 0.0 || (c >= 0 && !interactions)) continue;
        if (id) add(row, dim, mix(hc, *id), vc);
        for (Index a = 0; a < arm.n; ++a) hashes[a] = mix(hc, arm.tokens[3 * a]);  // a loop of its own vectorises
        for (Index a = 0; a < arm.n; ++a) add(row, dim, hashes[a], vc * arm.values[a]);
    }
    normalise(row, dim);
}

}  // namespace armwise
