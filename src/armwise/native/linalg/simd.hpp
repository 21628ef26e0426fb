// Eight numbers at a time, for kernels whose loops are too short for the compiler to vectorise.
//
// A ridge model's rows are 10 to 100 numbers long; on such loops automatic vectorisation spends its time in the scalar
// remainder. A row padded to a multiple of eight is read with `load`, combined lane by lane, and written with `store`.
// No vector is wider than the processor's. The order of every sum is fixed here, so that the bits do not depend on the
// processor.
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

// Four numbers: one vector on processors with vectors of 32 bytes, two of 16 on others (compilers generate poor code for
// vectors wider than the processor's), and single numbers for compilers without vector types.
#if defined(__GNUC__) && defined(__AVX__)
typedef double Half __attribute__((vector_size(32)));
ARMWISE_INLINE Half half_of(double a, double b, double c, double d) { return Half{a, b, c, d}; }
#else
#if defined(__GNUC__)
typedef double Pair __attribute__((vector_size(16)));
#else
struct Pair {
    double lane[2];
    double operator[](int i) const { return lane[i]; }
};
inline Pair operator+(const Pair& a, const Pair& b) { return {{a[0] + b[0], a[1] + b[1]}}; }
inline Pair operator-(const Pair& a, const Pair& b) { return {{a[0] - b[0], a[1] - b[1]}}; }
inline Pair operator*(const Pair& a, const Pair& b) { return {{a[0] * b[0], a[1] * b[1]}}; }
#endif
struct Half {
    Pair low, high;
    double operator[](int i) const { return i < 2 ? low[i] : high[i - 2]; }
};
ARMWISE_INLINE Half half_of(double a, double b, double c, double d) { return {Pair{a, b}, Pair{c, d}}; }
ARMWISE_INLINE Half operator+(const Half& a, const Half& b) { return {a.low + b.low, a.high + b.high}; }
ARMWISE_INLINE Half operator-(const Half& a, const Half& b) { return {a.low - b.low, a.high - b.high}; }
ARMWISE_INLINE Half operator*(const Half& a, const Half& b) { return {a.low * b.low, a.high * b.high}; }
ARMWISE_INLINE Half& operator+=(Half& a, const Half& b) { return a = a + b; }
ARMWISE_INLINE Half& operator-=(Half& a, const Half& b) { return a = a - b; }
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

// Of two vectors of four: interleave the even places, the odd places; join the first two places, the last two.
#if defined(__AVX__) && defined(__clang__)
#define ARMWISE_SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#elif defined(__AVX__) && defined(__GNUC__)
typedef long long HalfIndex __attribute__((vector_size(32)));
#define ARMWISE_SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, HalfIndex{i, j, k, l})
#endif
#if defined(ARMWISE_SHUFFLE)
ARMWISE_INLINE Half evens(Half a, Half b) { return ARMWISE_SHUFFLE(a, b, 0, 4, 2, 6); }
ARMWISE_INLINE Half odds(Half a, Half b) { return ARMWISE_SHUFFLE(a, b, 1, 5, 3, 7); }
ARMWISE_INLINE Half firsts(Half a, Half b) { return ARMWISE_SHUFFLE(a, b, 0, 1, 4, 5); }
ARMWISE_INLINE Half lasts(Half a, Half b) { return ARMWISE_SHUFFLE(a, b, 2, 3, 6, 7); }
#else
ARMWISE_INLINE Half evens(const Half& a, const Half& b) {
    return {Pair{a.low[0], b.low[0]}, Pair{a.high[0], b.high[0]}};
}
ARMWISE_INLINE Half odds(const Half& a, const Half& b) {
    return {Pair{a.low[1], b.low[1]}, Pair{a.high[1], b.high[1]}};
}
ARMWISE_INLINE Half firsts(const Half& a, const Half& b) { return {a.low, b.low}; }
ARMWISE_INLINE Half lasts(const Half& a, const Half& b) { return {a.high, b.high}; }
#endif

// The sums of eight vectors as one vector; each sum adds neighbours, then pairs, then the two halves.
ARMWISE_INLINE Half pair_sums(Half a, Half b, Half c, Half d) {  // of each: (0 + 1) + (2 + 3)
    const Half ab = evens(a, b) + odds(a, b), cd = evens(c, d) + odds(c, d);
    return firsts(ab, cd) + lasts(ab, cd);
}
ARMWISE_INLINE Lanes totals(const Lanes (&s)[8]) {
    return {pair_sums(s[0].low, s[1].low, s[2].low, s[3].low) + pair_sums(s[0].high, s[1].high, s[2].high, s[3].high),
            pair_sums(s[4].low, s[5].low, s[6].low, s[7].low) + pair_sums(s[4].high, s[5].high, s[6].high, s[7].high)};
}

// Transpose four lines of four numbers.
ARMWISE_INLINE void transpose(Half (&line)[4]) {
    const Half a = evens(line[0], line[1]), b = odds(line[0], line[1]);
    const Half c = evens(line[2], line[3]), d = odds(line[2], line[3]);
    line[0] = firsts(a, c), line[1] = firsts(b, d), line[2] = lasts(a, c), line[3] = lasts(b, d);
}

// x . y over n numbers: eight running sums, then the remainder one by one.
inline double lane_dot(const double* x, const double* y, std::ptrdiff_t n) {
    Lanes sums = zero();
    std::ptrdiff_t i = 0;
    for (; i + LANES <= n; i += LANES) sums += load(x + i) * load(y + i);
    double rest = 0.0;
    for (; i < n; ++i) rest += x[i] * y[i];
    return total(sums) + rest;
}

}  // namespace armwise
