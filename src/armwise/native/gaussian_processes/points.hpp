// A set of distinct rows, found by value: the order of the arms does not matter.
#pragma once

#include "array.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace armwise {

class Points {
  public:
    explicit Points(Index dim = 0) : dim_(dim), factors_(size_t(dim)) {
        uint64_t factor = 0x9E3779B97F4A7C15u;
        for (uint64_t& odd : factors_) odd = factor, factor *= 0xBF58476D1CE4E5B9u;
    }

    Index size() const { return n_; }
    Index dim() const { return dim_; }
    const double* data() const { return rows_.data(); }
    const double* operator[](Index i) const { return rows_.data() + i * dim_; }
    View<const double, 2> view() const {
        View<const double, 2> all;
        all.data = rows_.data(), all.shape[0] = n_, all.shape[1] = dim_;
        return all;
    }

    // The place of the row, or -1.
    Index find(const double* x) const {
        if (n_ == 0) return -1;
        for (size_t slot = hash(x) >> shift_;; slot = (slot + 1) & mask()) {
            const Index i = slots_[slot] - 1;
            if (i < 0 || same(x, (*this)[i])) return i;
        }
    }

    // The place of the row, which is appended if it is new.
    Index add(const double* x) {
        const Index found = find(x);
        if (found >= 0) return found;
        rows_.insert(rows_.end(), x, x + dim_);
        ++n_;
        if (4 * size_t(n_) > slots_.size()) {
            --shift_;
            slots_.assign(size_t(1) << (64 - shift_), 0);
            for (Index i = 0; i < n_; ++i) enter(i);
        } else {
            enter(n_ - 1);
        }
        return n_ - 1;
    }

  private:
    Index dim_, n_ = 0;
    std::vector<uint64_t> factors_;  // of the columns, in the hash
    std::vector<double> rows_;
    int shift_ = 61;            // the upper bits of a row's hash are its first slot
    std::vector<Index> slots_;  // open addressing: 1 + the row's number, 0 if empty; at least three of four are empty

    size_t mask() const { return slots_.size() - 1; }
    // A sum of independent products, which is fast: every row of every round is looked up. Only the upper bits are used,
    // which a product mixes best.
    uint64_t hash(const double* x) const {
        uint64_t h = 0;
        for (Index c = 0; c < dim_; ++c) {
            const double entry = x[c] + 0.0;  // -0 equals 0
            uint64_t bits;
            std::memcpy(&bits, &entry, sizeof bits);
            h += (bits ^ (bits >> 32)) * factors_[c];
        }
        return h;
    }
    bool same(const double* x, const double* y) const {
        Index differ = 0;  // to the end, without a branch: most compared rows are equal
        for (Index c = 0; c < dim_; ++c) differ += x[c] != y[c];
        return differ == 0;
    }
    void enter(Index i) {
        size_t slot = hash((*this)[i]) >> shift_;
        while (slots_[slot]) slot = (slot + 1) & mask();
        slots_[slot] = i + 1;
    }
};

}  // namespace armwise
