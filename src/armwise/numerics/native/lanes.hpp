// Four numbers at a time, for sums along long rows: the lanes, and the order in which they are added, are fixed here,
// so that a sum has the same bits whatever the processor's registers hold.
#pragma once

#include "array.hpp"

#include <cstring>

namespace armwise {

#if defined(__GNUC__)
typedef double Four __attribute__((vector_size(32)));
#else
struct Four {
    double lane[4];
    double& operator[](int i) { return lane[i]; }
    double operator[](int i) const { return lane[i]; }
};
inline Four operator+(Four a, Four b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]}; }
inline Four operator-(Four a, Four b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]}; }
inline Four operator*(Four a, Four b) { return {a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]}; }
inline Four& operator+=(Four& a, Four b) { return a = a + b; }
inline Four& operator-=(Four& a, Four b) { return a = a - b; }
#endif

inline Four load4(const double* from) {
    Four four;
    std::memcpy(&four, from, sizeof four);
    return four;
}
inline void store4(double* to, Four four) { std::memcpy(to, &four, sizeof four); }
inline Four splat4(double number) { return Four{number, number, number, number}; }
inline double sum4(Four four) { return (four[0] + four[2]) + (four[1] + four[3]); }

// a.b: eight partial sums in two fours, then what is left over, one by one.
inline double dot(const double* a, const double* b, Index n) {
    Four even = splat4(0.0), odd = splat4(0.0);
    Index j = 0;
    for (; j + 8 <= n; j += 8) {
        even += load4(a + j) * load4(b + j);
        odd += load4(a + j + 4) * load4(b + j + 4);
    }
    double total = sum4(even + odd);
    for (; j < n; ++j) total += a[j] * b[j];
    return total;
}

}  // namespace armwise
