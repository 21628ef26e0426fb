// The rows of the decision service: JSON's nesting, the scale of numbers, and hashed, crossed features.
//
// features/encoding/encoder.py specifies the rows to the bit; the numbers of steps are its own.
#include "features.hpp"
#include "modules.hpp"

#include <nanobind/stl/tuple.h>

#include <string_view>
#include <vector>

using namespace nb::literals;
using namespace armwise;

void bind_features(nb::module_& m) {
    m.doc() = "The rows of the decision service: JSON's nesting, the scale of numbers, and hashed, crossed features.";
    m.attr("SPAN") = SPAN;

    m.def("scan", [](nb::bytes given) {
        const std::string_view text(given.c_str(), given.size());
        Index depth = 0, deepest = 0, keys = 0;
        bool inside = false, skip = false;
        Unlocked unlocked(double(text.size()));
        for (const char byte : text) {
            if (skip)
                skip = false;
            else if (inside) {
                if (byte == '\\')
                    skip = true;
                else if (byte == '"')
                    inside = false;
            } else if (byte == '"')
                inside = true;
            else if (byte == ':')
                ++keys;
            else if (byte == '{' || byte == '[')
                deepest = std::max(deepest, ++depth);
            else if (byte == '}' || byte == ']')
                --depth;
        }
        return std::make_tuple(deepest, keys);
    }, "text"_a, R"(The depth and the number of keys of a JSON text outside its strings (the text need not be valid).

>>> scan(b'{"a": {"b:": 1}}')
(2, 2))");

    m.def("place", [](Const<uint64_t, 1> names, uint64_t name) { return place(names, name); }, "names"_a, "name"_a,
          R"(The index of a name among sorted names, or -1.

>>> place(np.array([3, 7], np.uint64), 7), place(np.array([3, 7], np.uint64), 8)
(1, -1))");

    m.def("scaled", scaled, "value"_a, "mean"_a, "deviation"_a,
          R"(A number scaled to [-1, 1]: step 3 of ``features.encoding``.

>>> scaled(5.0, 2.0, 2.0)
0.5)");

    m.def("varied", [](Const<uint64_t, 1> names, Const<double, 1> counts, Const<double, 1> means,
                       Const<double, 1> squares, Const<uint64_t, 2> table) {
        const Index n = names.size();
        require(counts.size() == n && means.size() == n && squares.size() == n && table.size(1) == 3,
                "names, counts, means and squares must have as many entries, and the table three columns");
        std::vector<char> wanted(n);
        for (Index k = 0; k < table.size(0); ++k)
            if (table(k, 2)) {
                const Index i = place(names, table(k, 0));
                if (i >= 0 && std::sqrt(squares[i] / counts[i]) > 0.0) wanted[i] = 1;
            }
        const Index rows = std::count(wanted.begin(), wanted.end(), 1);
        New<uint64_t, 1> found(rows);
        New<double, 1> mean(rows), deviation(rows);
        for (Index i = 0, k = 0; i < n; ++i)
            if (wanted[i]) {
                found[k] = names[i], mean[k] = means[i], deviation[k] = std::sqrt(squares[i] / counts[i]);
                ++k;
            }
        return std::make_tuple(std::move(found), std::move(mean), std::move(deviation));
    }, "names"_a, "counts"_a, "means"_a, "squares"_a, "table"_a,
          R"(Name, mean and deviation of the numeric tokens whose deviation is positive.

>>> one, two = np.array([7], np.uint64), np.array([2.0])
>>> varied(one, two, two, two, np.array([[7, 0, 1]], np.uint64))
(array([7], dtype=uint64), array([2.]), array([1.])))");

    m.def("welford", [](Const<uint64_t, 1> names, Array<double, 1> counts, Array<double, 1> means,
                        Array<double, 1> squares, Const<uint64_t, 2> table, bool strangers) {
        const Index n = names.size(), rows = table.size(0);
        require(counts.size() == n && means.size() == n && squares.size() == n && table.size(1) == 3,
                "names, counts, means and squares must have as many entries, and the table three columns");
        Unlocked unlocked(20.0 * double(rows));
        std::vector<Index> places(rows);
        for (Index k = 0; k < rows; ++k) {
            places[k] = table(k, 2) ? place(names, table(k, 0)) : -1;
            if (places[k] < 0 && table(k, 2) && !strangers) return false;
        }
        for (Index k = 0; k < rows; ++k) {
            const Index i = places[k];
            if (i >= 0) {
                const double number = as_number(table(k, 1)), delta = number - means[i];
                counts[i] += 1.0;
                means[i] += delta / counts[i];
                squares[i] += delta * (number - means[i]);
            }
        }
        return true;
    }, "names"_a, "counts"_a, "means"_a, "squares"_a, "table"_a, "strangers"_a,
          R"(Welford's update of each named mean and sum of squares.

With ``strangers`` unknown names are skipped; without, one leaves everything unchanged and returns False.

>>> n, m, s = np.zeros(1), np.zeros(1), np.zeros(1)
>>> table = np.array([[7, 0, 1], [7, 0, 1]], np.uint64)
>>> table.view(np.float64)[:, 1] = 1.0, 3.0
>>> welford(np.array([8], np.uint64), n, m, s, table, False)
False
>>> welford(np.array([7], np.uint64), n, m, s, table, False), m[0], s[0]
(True, np.float64(2.0), np.float64(2.0)))");

    m.def("mix", mix, "c"_a, "a"_a, R"(The hash of a pair: step 4 of ``features.encoding``.

>>> hex(mix(1, 2))
'0x975835de1c9756ce')");

    m.def("cross", [](Const<uint64_t, 1> words, Const<uint64_t, 1> names, Const<double, 1> means,
                      Const<double, 1> deviations, Index dim, bool interactions, bool alone, uint64_t one) {
        require(dim > 0, "dim must be positive");
        const Scaling scaling(names, means, deviations);
        Reader reader(words);
        const Index arms = reader.count(), K = alone ? 1 : arms, most = words.size() / 3 + 1;
        New<double, 2> X(K, dim);
        // About 180,000 pairs, a millisecond, for 600 words of tokens.
        Unlocked unlocked(double(words.size()) * double(words.size()) / 16.0);
        X.fill(0.0);
        std::vector<Index> places(most);
        std::vector<double> context(most), values(most);
        std::vector<uint64_t> hashes(most);
        const Index n = reader.count();
        const uint64_t* about = reader.tokens(n);
        scaling.valued(about, n, places.data(), context.data());
        for (Index k = 0; k < K; ++k) {
            double* row = X.view.data + k * dim;
            const uint64_t id = alone ? 0 : reader.word();
            const Index m = alone ? 0 : reader.count();
            const uint64_t* arm = reader.tokens(m);
            scaling.valued(arm, m, places.data(), values.data());
            crossed_into(row, dim, {about, n, context.data()}, alone ? nullptr : &id, {arm, m, values.data()}, interactions,
                         one, hashes.data());
        }
        return X;
    }, "words"_a, "names"_a, "means"_a, "deviations"_a, "dim"_a, "interactions"_a, "alone"_a, "one"_a,
          R"(The normalised rows: (constant + context) x (constant + id + arm), hashed into ``dim`` entries.

With ``alone`` it is one row of the context and the constant; ``one`` is the hash of the constant.

>>> none, zero = np.zeros(0, np.uint64), np.zeros(0)
>>> X = cross(np.zeros(2, np.uint64), none, zero, zero, 4, True, True, 7)
>>> float(np.abs(X).sum())
1.0)");
}
