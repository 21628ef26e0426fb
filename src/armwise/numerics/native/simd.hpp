// Eight numbers at a time, for kernels whose loops are too short for the compiler to vectorise.
//
// A ridge model's rows are 10 to 100 numbers long; on such loops automatic vectorisation spends its time in the scalar
// remainder. A row padded to a multiple of eight is read with `load`, combined lane by lane, and written with `store`.
// Two halves of 32 bytes each compile well with and without AVX; the order of every sum is written out here, so the
// bits do not depend on the processor.
#pragma once

#include <cstddef>
#include <cstring>

#if defined(__GNUC__)
#define ARMWISE_INLINE inline __attribute__((always_inline))
#define ARMWISE_LAMBDA __attribute__((always_inline))
#else
#define ARMWISE_INLINE inline
#define ARMWISE_LAMBDA
#endif

namespace armwise {

constexpr std::ptrdiff_t LANES = 8;

inline std::ptrdiff_t padded(std::ptrdiff_t n) { return (n + LANES - 1) / LANES * LANES; }

#if defined(__GNUC__)
typedef double Half __attribute__((vector_size(32)));
#else
struct Half {  // the same operations in plain C++, for compilers without vector types
    double lane[4];
    double operator[](int i) const { return lane[i]; }
};
#define ARMWISE_HALF(op)                                                                                   \
    inline Half operator op(const Half& a, const Half& b) {                                                \
        return {{a.lane[0] op b.lane[0], a.lane[1] op b.lane[1], a.lane[2] op b.lane[2], a.lane[3] op b.lane[3]}}; \
    }
ARMWISE_HALF(+)
ARMWISE_HALF(-)
ARMWISE_HALF(*)
#undef ARMWISE_HALF
#endif

struct Lanes {
    Half low, high;
};

ARMWISE_INLINE Lanes operator+(Lanes a, Lanes b) { return {a.low + b.low, a.high + b.high}; }
ARMWISE_INLINE Lanes operator-(Lanes a, Lanes b) { return {a.low - b.low, a.high - b.high}; }
ARMWISE_INLINE Lanes operator*(Lanes a, Lanes b) { return {a.low * b.low, a.high * b.high}; }
ARMWISE_INLINE Lanes& operator+=(Lanes& a, Lanes b) { return a = a + b; }

ARMWISE_INLINE Half splat_half(double x) { return Half{x, x, x, x}; }
ARMWISE_INLINE Lanes splat(double x) { return {splat_half(x), splat_half(x)}; }
ARMWISE_INLINE Lanes zero() { return splat(0.0); }

ARMWISE_INLINE Lanes load(const double* from) {
    Lanes v;
    std::memcpy(&v.low, from, sizeof v.low);
    std::memcpy(&v.high, from + 4, sizeof v.high);
    return v;
}
ARMWISE_INLINE Half load_half(const double* from) {
    Half v;
    std::memcpy(&v, from, sizeof v);
    return v;
}
ARMWISE_INLINE void store(double* to, Lanes v) {
    std::memcpy(to, &v.low, sizeof v.low);
    std::memcpy(to + 4, &v.high, sizeof v.high);
}

ARMWISE_INLINE void store_half(double* to, Half v) { std::memcpy(to, &v, sizeof v); }
ARMWISE_INLINE double total_half(Half v) { return (v[0] + v[2]) + (v[1] + v[3]); }

// The sum of the eight lanes: halves first, then quarters, then the pair.
ARMWISE_INLINE double total(Lanes v) {
    return total_half(v.low + v.high);
}

// The sums of eight vectors as one vector; each adds neighbours, then pairs, then the two halves.
#if defined(__clang__)
#define ARMWISE_SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#elif defined(__GNUC__)
typedef long long HalfIndex __attribute__((vector_size(32)));
#define ARMWISE_SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, HalfIndex{i, j, k, l})
#else
ARMWISE_INLINE Half shuffle(const Half& a, const Half& b, int i, int j, int k, int l) {
    const auto at = [&](int n) { return n < 4 ? a[n] : b[n - 4]; };
    return {{at(i), at(j), at(k), at(l)}};
}
#define ARMWISE_SHUFFLE(a, b, i, j, k, l) shuffle(a, b, i, j, k, l)
#endif

ARMWISE_INLINE Half pair_sums(Half a, Half b, Half c, Half d) {  // of each: (0 + 1) + (2 + 3)
    const Half ab = ARMWISE_SHUFFLE(a, b, 0, 4, 2, 6) + ARMWISE_SHUFFLE(a, b, 1, 5, 3, 7);
    const Half cd = ARMWISE_SHUFFLE(c, d, 0, 4, 2, 6) + ARMWISE_SHUFFLE(c, d, 1, 5, 3, 7);
    return ARMWISE_SHUFFLE(ab, cd, 0, 1, 4, 5) + ARMWISE_SHUFFLE(ab, cd, 2, 3, 6, 7);
}
ARMWISE_INLINE Lanes totals(const Lanes (&s)[8]) {
    return {pair_sums(s[0].low, s[1].low, s[2].low, s[3].low) + pair_sums(s[0].high, s[1].high, s[2].high, s[3].high),
            pair_sums(s[4].low, s[5].low, s[6].low, s[7].low) + pair_sums(s[4].high, s[5].high, s[6].high, s[7].high)};
}

// Four lines of four numbers, rows for columns.
ARMWISE_INLINE void transpose(Half (&line)[4]) {
    const Half a = ARMWISE_SHUFFLE(line[0], line[1], 0, 4, 2, 6), b = ARMWISE_SHUFFLE(line[0], line[1], 1, 5, 3, 7);
    const Half c = ARMWISE_SHUFFLE(line[2], line[3], 0, 4, 2, 6), d = ARMWISE_SHUFFLE(line[2], line[3], 1, 5, 3, 7);
    line[0] = ARMWISE_SHUFFLE(a, c, 0, 1, 4, 5), line[1] = ARMWISE_SHUFFLE(b, d, 0, 1, 4, 5);
    line[2] = ARMWISE_SHUFFLE(a, c, 2, 3, 6, 7), line[3] = ARMWISE_SHUFFLE(b, d, 2, 3, 6, 7);
}

// x . y over n numbers: eight running sums, then what is left over, one by one.
inline double lane_dot(const double* x, const double* y, std::ptrdiff_t n) {
    Lanes sums = zero();
    std::ptrdiff_t i = 0;
    for (; i + LANES <= n; i += LANES) sums += load(x + i) * load(y + i);
    double rest = 0.0;
    for (; i < n; ++i) rest += x[i] * y[i];
    return total(sums) + rest;
}

}  // namespace armwise
