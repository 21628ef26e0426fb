// A whole decision in one call: tokens of dictionaries, their scale, rows, optimistic scores, the draw.
//
// Step by step the same operations in the same order as features.cpp, ridge.hpp and choice.hpp, so the same bits; what
// is saved is the way between them.
#include "block.hpp"
#include "features.hpp"
#include "modules.hpp"
#include "weights.hpp"

#include <nanobind/stl/tuple.h>

#include <vector>

using namespace nb::literals;
using namespace armwise;

namespace {

// What a dictionary has under a key, or nullptr; borrowed.
PyObject* found_in(PyObject* dictionary, PyObject* key) {
    PyObject* found = PyDict_GetItemWithError(dictionary, key);
    if (!found && PyErr_Occurred()) throw nb::python_error();
    return found;
}

bool has_size(PyObject* object, Py_ssize_t size) {
    return object && PyBytes_CheckExact(object) && PyBytes_GET_SIZE(object) == size;
}

nb::bytes as_bytes(const std::vector<uint64_t>& words) {
    return nb::bytes(reinterpret_cast<const char*>(words.data()), 8 * words.size());
}

Hashes as_words(const nb::bytes& text) {
    require(text.size() % 8 == 0, "words must have eight bytes each");
    Hashes words;
    words.data = reinterpret_cast<const uint64_t*>(text.c_str());  // the text of a bytes object is aligned
    words.shape[0] = Index(text.size() / 8);
    return words;
}

// Appends the token of a name and its value; false if it is not known, or not of a kind that is read here.
bool add_token(PyObject* name, PyObject* value, PyObject* heads, PyObject* texts, std::vector<uint64_t>& words) {
    PyObject* head = found_in(heads, name);
    if (!has_size(head, 8)) return false;
    uint64_t row[3] = {0, 0, 1};
    if (PyFloat_CheckExact(value) || PyLong_CheckExact(value)) {
        double number;
        if (PyFloat_CheckExact(value))
            number = PyFloat_AS_DOUBLE(value);
        else {
            int overflow = 0;
            const long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
            if (overflow) return false;  // JSON's readers do not take it
            number = double(whole);
        }
        if (number != number) return true;  // NaN: a missing value
        if (!(number > -1e150 && number < 1e150)) return false;
        std::memcpy(row, PyBytes_AS_STRING(head), 8);
        std::memcpy(row + 1, &number, 8);
    } else {
        if (value == Py_None) return true;
        if (!PyUnicode_CheckExact(value) && !PyBool_Check(value)) return false;
        PyObject* known = found_in(texts, name);
        PyObject* found = known && PyDict_CheckExact(known) ? found_in(known, value) : nullptr;
        if (!has_size(found, 24)) return false;
        std::memcpy(row, PyBytes_AS_STRING(found), 24);
    }
    words.insert(words.end(), row, row + 3);
    return true;
}

bool same_text(PyObject* a, PyObject* b) {
    return a == b || (PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b) && PyUnicode_Compare(a, b) == 0);
}

// Appends the number of a dictionary's tokens, and the tokens; what is under `except` is left out.
bool add_tokens(PyObject* names, PyObject* except, PyObject* heads, PyObject* texts, std::vector<uint64_t>& words) {
    const std::size_t at = words.size();
    words.push_back(0);
    PyObject *name, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(names, &position, &name, &value)) {
        if (!PyUnicode_CheckExact(name)) return false;
        if (except && same_text(name, except)) continue;
        if (!add_token(name, value, heads, texts, words)) return false;
    }
    words[at] = (words.size() - at - 1) / 3;
    return true;
}

// Whether two arms are the same to the type of each value: texts, or flat dictionaries with the same names in order.
bool same_value(PyObject* a, PyObject* b) {
    if (a == b) return true;
    if (Py_TYPE(a) != Py_TYPE(b)) return false;
    if (PyFloat_CheckExact(a)) {
        const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
        return std::memcmp(&x, &y, sizeof x) == 0;
    }
    if (PyUnicode_CheckExact(a)) return same_text(a, b);
    if (PyLong_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
    return false;  // None and the booleans are the same object or not the same
}

// Whether an arm is what `snapshot` wrote down of one.
bool same_arm(PyObject* arm, PyObject* before) {
    if (!PyDict_CheckExact(arm)) return PyUnicode_CheckExact(arm) && same_value(arm, before);
    if (!PyTuple_CheckExact(before) || 2 * PyDict_GET_SIZE(arm) != PyTuple_GET_SIZE(before)) return false;
    PyObject *name, *value;
    Py_ssize_t position = 0, k = 0;
    for (; PyDict_Next(arm, &position, &name, &value); k += 2)
        if (!same_value(name, PyTuple_GET_ITEM(before, k)) || !same_value(value, PyTuple_GET_ITEM(before, k + 1)))
            return false;
    return true;
}

// Calls `read` with the tokens of the context, then of each arm, until it says false; whether it never did.
template <class Read> bool each_part(Hashes context, Hashes arms, Index K, Read read) {
    Reader about_context(context), about_arms(arms);
    const Index n = about_context.count();
    if (!read(about_context.tokens(n), n)) return false;
    for (Index k = 0; k < K; ++k) {
        about_arms.word();
        const Index own = about_arms.count();
        if (!read(about_arms.tokens(own), own)) return false;
    }
    return true;
}

// The running means and spreads of named numbers; `wanted` marks those that a request has and that have varied.
struct Scales {
    Hashes names;
    Numbers counts, means, squares;
    std::vector<double> deviations;
    std::vector<char> wanted;

    Scales(Hashes names, Numbers counts, Numbers means, Numbers squares)
        : names(names), counts(counts), means(means), squares(squares), deviations(std::size_t(names.size())),
          wanted(std::size_t(names.size())) {
        const Index n = names.size();
        require(counts.size() == n && means.size() == n && squares.size() == n,
                "names, counts, means and squares must have as many entries");
    }

    void valued(const uint64_t* tokens, Index n, Index* places, double* values) {
        for (Index k = 0; k < n; ++k, tokens += 3) {
            values[k] = as_number(tokens[1]);
            if (!tokens[2]) continue;
            Index i = places[k];
            if (i >= names.size() || names[i] != tokens[0]) {  // arms have mostly the same names in the same order
                i = place(names, tokens[0]);
                places[k] = std::max<Index>(i, 0);
            }
            if (i >= 0 && !wanted[i]) {
                deviations[i] = std::sqrt(squares[i] / counts[i]);
                wanted[i] = deviations[i] > 0.0 ? 1 : 2;
            }
            values[k] = i < 0 || wanted[i] == 2 ? 0.0 : scaled(values[k], means[i], deviations[i]);
        }
    }

    // All names, then all means, then all deviations: what the journal has of it.
    nb::bytes packed() const {
        std::vector<uint64_t> words;
        words.reserve(3 * wanted.size());
        for (Index i = 0; i < names.size(); ++i)
            if (wanted[i] == 1) words.push_back(names[i]);
        const std::size_t n = words.size();
        words.resize(3 * n);
        std::size_t k = n;
        for (Index i = 0; i < names.size(); ++i)
            if (wanted[i] == 1) {
                std::memcpy(&words[k], &means[i], 8);
                std::memcpy(&words[k++ + n], &deviations[i], 8);
            }
        return as_bytes(words);
    }
};

// Welford's update with all numbers of a request; if one's name is not there, nothing is changed.
bool take_numbers(Hashes context, Hashes arms, Index K, Hashes names, View<double, 1> counts, View<double, 1> means,
                  View<double, 1> squares) {
    const Index n = names.size();
    require(counts.size() == n && means.size() == n && squares.size() == n,
            "names, counts, means and squares must have as many entries");
    std::vector<std::pair<Index, double>> met;
    std::vector<Index> places;  // where the names of the part before were found: arms have mostly the same
    const bool known = each_part(context, arms, K, [&](const uint64_t* tokens, Index size) {
        if (Index(places.size()) < size) places.resize(std::size_t(size));
        for (Index k = 0; k < size; ++k, tokens += 3)
            if (tokens[2]) {
                Index& i = places[k];
                if (i >= n || names[i] != tokens[0]) i = std::max<Index>(place(names, tokens[0]), 0);
                if (i >= n || names[i] != tokens[0]) return false;
                met.emplace_back(i, as_number(tokens[1]));
            }
        return true;
    });
    if (!known) return false;
    for (const auto& [i, number] : met) {
        const double delta = number - means[i];
        counts[i] += 1.0;
        means[i] += delta / counts[i];
        squares[i] += delta * (number - means[i]);
    }
    return true;
}

// Working memory of a decision, kept by each thread: asking for it anew would cost a tenth of the time.
struct Work {
    std::vector<double> X, values, own;
    std::vector<uint64_t> shared, hashes;
    std::vector<Index> places;
};

// The rows of `cross`, one below the other, before they are normalised.
void rows_into(Hashes context, Hashes arms, Index K, Scales& scales, Index dim, bool interactions, uint64_t one,
               Work& work) {
    Reader about_context(context), about_arms(arms);
    const std::size_t most = std::size_t((context.size() + arms.size()) / 3 + 2);
    work.X.assign(std::size_t(K * dim), 0.0);
    if (work.shared.size() < most) {
        work.values.resize(most), work.own.resize(most);
        work.shared.resize(most), work.hashes.resize(most);
    }
    work.places.assign(most, 0);
    const Index n = about_context.count();
    const uint64_t* about = about_context.tokens(n);
    double *values = work.values.data(), *own = work.own.data();
    uint64_t *shared = work.shared.data(), *hashes = work.hashes.data();
    scales.valued(about, n, work.places.data(), values);
    for (Index c = -1; c < n; ++c) shared[c + 1] = mix(c < 0 ? one : about[3 * c], one);
    for (Index k = 0; k < K; ++k) {
        double* row = work.X.data() + k * dim;
        const uint64_t id = about_arms.word();
        const Index m = about_arms.count();
        const uint64_t* arm = about_arms.tokens(m);
        scales.valued(arm, m, work.places.data(), own);
        for (Index c = -1; c < n; ++c) {
            const uint64_t hc = c < 0 ? one : about[3 * c];
            const double vc = c < 0 ? 1.0 : values[c];
            armwise::add(row, dim, shared[c + 1], vc);
            if (vc == 0.0 || (c >= 0 && !interactions)) continue;
            armwise::add(row, dim, mix(hc, id), vc);
            for (Index a = 0; a < m; ++a) hashes[a] = mix(hc, arm[3 * a]);  // by itself, so that it vectorises
            for (Index a = 0; a < m; ++a) armwise::add(row, dim, hashes[a], vc * own[a]);
        }
    }
}

// Four rows side by side, only the columns in which one of them is not zero. Returns how many those are.
Index packed_into(const double* const (&rows)[4], Index d, double* lanes, Index* columns) {
    Index n = 0;
    for (Index i = 0; i < d; ++i) {  // without a branch: which column is empty cannot be foreseen
        const double x[4] = {rows[0][i], rows[1][i], rows[2][i], rows[3][i]};
        std::memcpy(lanes + 4 * n, x, sizeof x);
        columns[n] = i;
        n += (x[0] != 0.0) | (x[1] != 0.0) | (x[2] != 0.0) | (x[3] != 0.0);
    }
    return n;
}

// Optimistic scores of the K rows of X, which are divided by their lengths on the way: to the bit those of `normalise`
// and `optimistic`, whose sums have the same terms in the same order, and zeros, which change nothing, beside them.
void scores_into(const Models& models, const Width& width, const double* X, Index K, double* scores, double* lengths) {
    const Index D = models.D, d = models.d;
    const double *model = models[0], *theta = models.theta(0);
    const double scale = width.multiplier(model, D, d, models.lam);
    Scratch room(4 * (D + 1) + D, 0), nothing(d, d);
    double* lanes = room.data();
    std::vector<Index> columns(std::size_t(D) + 1);
    bool all = true;
    for (Index start = 0; start < K; start += 4) {
        const double* rows[4];
        for (Index a = 0; a < 4; ++a) rows[a] = start + a < K ? X + (start + a) * d : nothing.data();
        const Index n = packed_into(rows, d, lanes, columns.data());
        Half square = splat_half(0.0), mean = square, total = square;
        for (Index k = 0; k < n; ++k) total = total + load_half(lanes + 4 * k) * load_half(lanes + 4 * k);
        double length[4];
        for (int a = 0; a < 4; ++a) length[a] = total[a] > 0.0 ? std::sqrt(total[a]) : 1.0;
        for (Index k = 0; k < n; ++k)
            for (int a = 0; a < 4; ++a) lanes[4 * k + a] /= length[a];
        for (Index k = 0; k < n; ++k) mean = mean + splat_half(theta[columns[k]]) * load_half(lanes + 4 * k);
        Index within = 0;
        for (Index i = 0; i < D; i += 8) {
            while (within < n && columns[within] < i + 8) ++within;  // W is zero beyond
            Half s[8] = {splat_half(0.0), splat_half(0.0), splat_half(0.0), splat_half(0.0),
                         splat_half(0.0), splat_half(0.0), splat_half(0.0), splat_half(0.0)};
            for (Index k = 0; k < within; ++k) {
                const double* w = model + i * D + columns[k];
                const Half v = load_half(lanes + 4 * k);
                for (int r = 0; r < 8; ++r) s[r] = s[r] + splat_half(w[r * D]) * v;
            }
            for (int r = 0; r < 8; ++r) square = square + s[r] * s[r];
        }
        for (Index a = start; a < std::min(start + 4, K); ++a) {
            lengths[a] = length[a - start];
            scores[a] = mean[int(a - start)] + scale * std::sqrt(square[int(a - start)]);
            all &= is_finite(scores[a]);
        }
    }
    require(all, OVERFLOWN);
}

}  // namespace

void bind_decisions(nb::module_& m) {
    m.doc() = "A whole decision in one call: tokens of dictionaries, their scale, rows, optimistic scores, the draw.";

    m.def("flat", [](nb::dict names, nb::dict heads, nb::dict texts) -> nb::object {
        std::vector<uint64_t> words;
        words.reserve(std::size_t(1 + 3 * PyDict_GET_SIZE(names.ptr())));
        if (!add_tokens(names.ptr(), nullptr, heads.ptr(), texts.ptr(), words)) return nb::none();
        return as_bytes(words);
    }, nb::sig("def flat(names: dict[object, object], heads: dict[str, bytes], "
               "texts: dict[str, dict[str | bool, bytes]]) -> bytes | None"),
          "names"_a, "heads"_a, "texts"_a,
          R"(The tokens of a flat dictionary: how many, then three words for each.

``heads`` has the hash under each name, ``texts`` under each name and text (or boolean) the row; None if one is missing,
or if there is anything else in the dictionary.

>>> len(flat({"hour": 9, "vip": None}, {"hour": b"12345678", "vip": b"abcdefgh"}, {}))
32
>>> flat({"city": "Oslo"}, {}, {}) is None
True)");

    m.def("ids_of", [](nb::tuple arms, nb::str id) -> nb::object {
        nb::list ids;
        for (nb::handle arm : arms) {
            PyObject* found = PyDict_CheckExact(arm.ptr()) ? found_in(arm.ptr(), id.ptr()) : arm.ptr();
            if (!found || !PyUnicode_CheckExact(found)) return nb::none();
            ids.append(nb::handle(found));
        }
        return nb::tuple(ids);
    }, nb::sig("def ids_of(arms: tuple[object, ...], id: str) -> tuple[str, ...] | None"), "arms"_a, "id"_a,
          R"(What arms are called, texts or dictionaries with a text under ``id``; None if one is anything else.

>>> ids_of(("a", {"id": "b", "price": 3}), "id")
('a', 'b'))");

    m.def("snapshot", [](nb::tuple arms) {
        nb::object taken = nb::steal(PyTuple_New(Py_ssize_t(arms.size())));
        if (!taken.is_valid()) throw nb::python_error();
        for (std::size_t i = 0; i < arms.size(); ++i) {
            PyObject* arm = nb::handle(arms[i]).ptr();
            PyObject* now = arm;
            if (PyDict_CheckExact(arm)) {
                now = PyTuple_New(2 * PyDict_GET_SIZE(arm));
                if (!now) throw nb::python_error();
                PyObject *name, *value;
                Py_ssize_t position = 0, k = 0;
                for (; PyDict_Next(arm, &position, &name, &value); k += 2) {
                    PyTuple_SET_ITEM(now, k, Py_NewRef(name));
                    PyTuple_SET_ITEM(now, k + 1, Py_NewRef(value));
                }
            } else
                Py_INCREF(now);
            PyTuple_SET_ITEM(taken.ptr(), Py_ssize_t(i), now);
        }
        return taken;
    }, nb::sig("def snapshot(arms: tuple[object, ...]) -> tuple[object, ...]"), "arms"_a,
          R"(Arms as they are now, whatever becomes of them: of a dictionary its names and values, one after the other.

>>> snapshot(("a", {"id": "b", "price": 3}))
('a', ('id', 'b', 'price', 3)))");

    m.def("same_arms", [](nb::tuple arms, nb::tuple before) {
        if (arms.size() != before.size()) return false;
        for (std::size_t i = 0; i < arms.size(); ++i)
            if (!same_arm(nb::handle(arms[i]).ptr(), nb::handle(before[i]).ptr())) return false;
        return true;
    }, nb::sig("def same_arms(arms: tuple[object, ...], before: tuple[object, ...]) -> bool"), "arms"_a, "before"_a,
          R"(Whether arms are what a ``snapshot`` has, to the type of each value and the order of the names.

>>> same_arms(({"id": "a", "n": 3},), (("id", "a", "n", 3),)), same_arms(({"n": 3},), (("n", 3.0),))
(True, False))");

    m.def("flat_arms", [](nb::tuple arms, nb::str id, nb::dict hashes, nb::dict heads,
                          nb::dict texts) -> nb::object {
        std::vector<uint64_t> words;
        words.reserve(64 * arms.size());
        for (nb::handle arm : arms) {
            const bool described = PyDict_CheckExact(arm.ptr());
            PyObject* called = described ? found_in(arm.ptr(), id.ptr()) : arm.ptr();
            PyObject* hash = called && PyUnicode_CheckExact(called) ? found_in(hashes.ptr(), called) : nullptr;
            if (!has_size(hash, 8)) return nb::none();
            uint64_t word;
            std::memcpy(&word, PyBytes_AS_STRING(hash), 8);
            words.push_back(word);
            if (!described)
                words.push_back(0);
            else if (!add_tokens(arm.ptr(), id.ptr(), heads.ptr(), texts.ptr(), words))
                return nb::none();
        }
        return as_bytes(words);
    }, nb::sig("def flat_arms(arms: tuple[object, ...], id: str, hashes: dict[str, bytes], heads: dict[str, bytes], "
               "texts: dict[str, dict[str | bool, bytes]]) -> bytes | None"),
          "arms"_a, "id"_a, "hashes"_a, "heads"_a, "texts"_a,
          R"(The tokens of arms: per arm the hash of its id, and those of its other names as ``flat`` has them.

>>> len(flat_arms(("a", {"id": "b", "price": 3}), "id", {"a": b"1" * 8, "b": b"2" * 8}, {"price": b"3" * 8}, {}))
56)");

    m.def("numeric", [](nb::bytes context, nb::bytes arms, Index K) {
        std::vector<uint64_t> found;
        each_part(as_words(context), as_words(arms), K, [&](const uint64_t* tokens, Index size) {
            for (Index k = 0; k < 3 * size; k += 3)
                if (tokens[k + 2]) found.insert(found.end(), tokens + k, tokens + k + 3);
            return true;
        });
        return as_bytes(found);
    }, "context"_a, "arms"_a, "K"_a, R"(The numeric tokens of a request, those of the context first.

>>> len(numeric(np.array([1, 7, 0, 1], np.uint64).tobytes(), bytes(16), 1))
24)");

    m.def("take_numbers", [](nb::bytes context, nb::bytes arms, Index K, Const<uint64_t, 1> names,
                             Array<double, 1> counts, Array<double, 1> means, Array<double, 1> squares) {
        return take_numbers(as_words(context), as_words(arms), K, names, counts, means, squares);
    }, "context"_a, "arms"_a, "K"_a, "names"_a, "counts"_a, "means"_a, "squares"_a,
          R"(Welford's update with all numbers of a request; if one's name is not there, nothing is changed: False.

>>> n, m, s = np.zeros(1), np.zeros(1), np.zeros(1)
>>> nine = np.array([1, 7, 0, 1], np.uint64)
>>> nine.view(float)[2] = 9.0
>>> take_numbers(nine.tobytes(), b"", 0, np.array([7], np.uint64), n, m, s), m[0]
(True, np.float64(9.0)))");

    m.def("begin", [](nb::bytes context, nb::bytes arms, Index K, Const<uint64_t, 1> names, Array<double, 1> counts,
                      Array<double, 1> means, Array<double, 1> squares, Array<double, 3> array, Const<double, 2> row,
                      double reward) {
        const Models models = as_models(array, row.size(1));
        require(models.M == 1 && row.size(0) == 1, "there must be one model and one row");
        require(all_within(row.data, row.size()), TOO_LARGE);
        if (!take_numbers(as_words(context), as_words(arms), K, names, counts, means, squares)) return false;
        update(models[0], models.D, row.data, models.d, reward);
        return true;
    }, "context"_a, "arms"_a, "K"_a, "names"_a, "counts"_a, "means"_a, "squares"_a, "models"_a, "row"_a, "reward"_a,
          R"(``take_numbers`` and ``ridge.learn_row`` with the one row; if a name is not there, nothing is changed: False.

>>> none, zero, models = np.zeros(0, np.uint64), np.zeros(0), np.zeros((1, 9, 8))
>>> models[0, 0, 0] = 1.0
>>> begin(bytes(8), b"", 0, none, zero, zero, zero, models, np.ones((1, 1)), 1.0), models[0, 8, 0]
(True, np.float64(0.5)))");

    m.def("decide_optimistic", [](nb::bytes context, nb::bytes arms, Index K, Const<uint64_t, 1> names,
                                  Const<double, 1> counts, Const<double, 1> means, Const<double, 1> squares,
                                  bool interactions, uint64_t one, Array<double, 3> array, Index dim, double lam,
                                  double alpha, double noise, double delta, double epsilon, double u) {
        require(K > 0, "there must be an arm");
        Models models = as_models(array, dim);
        require(models.M == 1, "there must be one model");
        models.lam = lam;
        const Hashes about = as_words(context), offered = as_words(arms);
        New<double, 1> p(K);
        New<double, 2> row(1, dim);
        Scales scales(names, counts, means, squares);
        Index arm;
        {
            Unlocked unlocked(double(about.size()) * double(offered.size()) / 16.0 + double(K * dim * dim));
            static thread_local Work work;
            rows_into(about, offered, K, scales, dim, interactions, one, work);
            Scratch room(2 * K);
            double *scores = room.data(), *lengths = scores + K;
            scores_into(models, Width{alpha, noise, delta}, work.X.data(), K, scores, lengths);
            tied_probabilities_into(scores, K, p.view.data);
            if (epsilon >= 0.0) floored(p.view.data, K, epsilon, p.view.data);
            arm = draw(p.view.data, K, u);
            for (Index i = 0; i < dim; ++i) row.view.data[i] = work.X[arm * dim + i] / lengths[arm];
        }
        return std::make_tuple(arm, std::move(p), std::move(row), scales.packed());
    }, nb::sig("def decide_optimistic(context: bytes, arms: bytes, K: int, names: numpy.typing.NDArray[numpy.uint64], "
               "counts: numpy.typing.NDArray[numpy.float64], means: numpy.typing.NDArray[numpy.float64], "
               "squares: numpy.typing.NDArray[numpy.float64], interactions: bool, one: int, "
               "models: numpy.typing.NDArray[numpy.float64], dim: int, lam: float, alpha: float, noise: float, "
               "delta: float, epsilon: float, u: float) -> tuple[int, numpy.typing.NDArray[numpy.float64], "
               "numpy.typing.NDArray[numpy.float64], bytes]"),
          "context"_a, "arms"_a, "K"_a, "names"_a, "counts"_a, "means"_a, "squares"_a, "interactions"_a, "one"_a,
          "models"_a, "dim"_a, "lam"_a, "alpha"_a, "noise"_a, "delta"_a, "epsilon"_a, "u"_a,
          R"(The arm that ``u`` in [0, 1) draws, all probabilities, the arm's row, and the scaling used, packed.

The tokens of the context and of the arms are scaled, crossed and hashed as ``features.cross`` does it, scored as
``ridge.optimistic`` does it; the best share 1, or 1 - ``epsilon`` (below 0: there is none) beside a share for all.

>>> none, zero, models = np.zeros(0, np.uint64), np.zeros(0), np.zeros((1, 9, 8))
>>> arm, p, row, scaling = decide_optimistic(
...     bytes(8), bytes(32), 2, none, zero, zero, zero, True, 7, models, 8, 1.0, 0.5, 0.0, 1.0, 0.2, 0.7)
>>> arm, p, row.shape, scaling
(1, array([0.5, 0.5]), (1, 8), b''))");
}
