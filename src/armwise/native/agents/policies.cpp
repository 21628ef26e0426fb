// Sums over rounds for every policy of an explicit class at once: the inner loops of the oracle agents.
//
// table[j, h] is the arm that policy h recommends in the j-th distinct context, in the smallest type that holds an arm.
#include "array.hpp"
#include "modules.hpp"

#include <algorithm>

namespace armwise {
template <> struct Dtype<uint16_t> {
    static constexpr int number = NPY_UINT16;
    static constexpr auto name = nb::detail::const_name("numpy.uint16");
};
template <> struct Dtype<uint32_t> {
    static constexpr int number = NPY_UINT32;
    static constexpr auto name = nb::detail::const_name("numpy.uint32");
};
}  // namespace armwise

using namespace nb::literals;
using namespace armwise;

namespace {

template <class Arm> void check_arms(View<const Arm, 1> row, Index K) {
    Arm top = 0, low = 0;
    for (Arm arm : row) top = std::max(top, arm), low = std::min(low, arm);
    require_index(Index(low), K, "the table must hold arms");
    require_index(Index(top), K, "the table must hold arms");
}

template <class Arm> void bind_table(nb::module_& m) {
    m.def("policy_totals", [](Const<Arm, 2> table, Const<double, 2> rewards) {
        const Index n = table.size(0), N = table.size(1);
        require(rewards.size(0) == n && (n == 0 || rewards.size(1) > 0), "rewards must have a row per row of the table");
        New<double, 1> totals(N);
        totals.fill(0.0);
        Unlocked unlocked(double(n) * double(N));
        for (Index j = 0; j < n; ++j) {
            const View<const Arm, 1> row = table[j];
            const View<const double, 1> reward = rewards[j];
            check_arms(row, reward.size());
            for (Index h = 0; h < N; ++h) totals[h] += reward[Index(row[h])];
        }
        return totals;
    }, nb::arg("table").noconvert(), "rewards"_a,
          R"(Each policy's total of ``rewards[j, table[j, h]]`` over the rows, in one pass over the table.

>>> policy_totals(np.array([[0, 1], [1, 1]], np.uint8), np.array([[1.0, 2.0], [3.0, 4.0]]))
array([5., 6.]))");

    m.def("add_rewards", [](Array<double, 1> totals, Const<Arm, 1> row, Const<double, 1> rewards) {
        require(totals.size() == row.size() && rewards.size() > 0, "totals must have one entry per policy");
        Unlocked unlocked(double(row.size()));
        check_arms<Arm>(row, rewards.size());
        for (Index h = 0; h < row.size(); ++h) totals[h] += rewards[Index(row[h])];
    }, "totals"_a, nb::arg("row").noconvert(), "rewards"_a,
          R"(Add the rewards of one more row to the totals of the policies, by the arms they recommend.

>>> totals = np.zeros(3)
>>> add_rewards(totals, np.array([0, 1, 1], np.uint8), np.array([0.0, 2.0]))
>>> totals
array([0., 2., 2.]))");

    m.def("arm_masses", [](Const<Arm, 2> table, Const<double, 1> weights, Index n_arms) {
        const Index n = table.size(0), N = table.size(1);
        require(weights.size() == N && n_arms > 0, "weights must have one entry per policy");
        New<double, 2> masses(n, n_arms);
        masses.fill(0.0);
        Unlocked unlocked(double(n) * double(N));
        for (Index j = 0; j < n; ++j) check_arms<Arm>(table[j], n_arms);
        // Four rows at a time: within a row, each addition waits for the write before it.
        const Arm* row = table.data;
        double* mass = masses.view.data;
        Index j = 0;
        for (; j + 4 <= n; j += 4, row += 4 * N, mass += 4 * n_arms)
            for (Index h = 0; h < N; ++h)
                for (Index r = 0; r < 4; ++r) mass[r * n_arms + Index(row[r * N + h])] += weights[h];
        for (; j < n; ++j, row += N, mass += n_arms)
            for (Index h = 0; h < N; ++h) mass[Index(row[h])] += weights[h];
        return masses;
    }, nb::arg("table").noconvert(), "weights"_a, "n_arms"_a,
          R"(W[j, a]: the total weight of the policies that recommend arm a in row j.

>>> arm_masses(np.array([[0, 1, 1]], np.uint8), np.array([0.5, 0.25, 0.25]), 3)
array([[0.5, 0.5, 0. ]]))");
}

}  // namespace

void bind_policies(nb::module_& m) {
    m.doc() = "Sums over rounds for every policy of an explicit class at once: the inner loops of the oracle agents.";
    bind_table<uint8_t>(m);
    bind_table<uint16_t>(m);
    bind_table<uint32_t>(m);
    bind_table<int64_t>(m);
}
