// A whole decision in one call: the scale of its numbers, rows, optimistic scores and the draw; and what the models learn
// of a decision.
//
// The operations are those of features.cpp, ridge.hpp and choice.hpp in the same order, so that the bits are the same; one
// call saves the Python between them.
#include "block.hpp"
#include "features.hpp"
#include "modules.hpp"
#include "weights.hpp"

#include <nanobind/stl/tuple.h>

#include <vector>

using namespace nb::literals;
using namespace armwise;

namespace {

// Call `read` with the tokens of the context, then of each arm, until it returns false; return whether it never did.
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
            if (i >= names.size() || names[i] != tokens[0]) {  // most arms have the same names in the same order
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

    // All names, then all means, then all deviations, as the journal stores them.
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

// Welford's update with all numbers of a request; if a name is unknown, change nothing and return false.
bool take_numbers(Hashes context, Hashes arms, Index K, Hashes names, View<double, 1> counts, View<double, 1> means,
                  View<double, 1> squares) {
    const Index n = names.size();
    require(counts.size() == n && means.size() == n && squares.size() == n,
            "names, counts, means and squares must have as many entries");
    std::vector<std::pair<Index, double>> met;
    met.reserve(std::size_t((context.size() + arms.size()) / 3));
    std::vector<Index> places;  // of the names of the previous arm: most arms have the same
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

// Working memory of a decision, one per thread: to allocate it each time would take a tenth of the decision's time.
struct Work {
    std::vector<double> X, values, own;
    std::vector<uint64_t> shared, hashes;
    std::vector<Index> places;
};

constexpr std::size_t MAX_CACHED_PAIRS = 1 << 14;  // of tokens, whose hashes are kept from arm to arm

bool same_names(const uint64_t* one, const uint64_t* two, Index n) {
    bool same = true;
    for (Index k = 0; k < 3 * n; k += 3) same &= one[k] == two[k];
    return same;
}

// The rows of `cross`, one below the other, not yet normalised.
void rows_into(Hashes context, Hashes arms, Index K, Scales& scales, Index dim, bool interactions, uint64_t one,
               Work& work) {
    Reader about_context(context), about_arms(arms);
    const std::size_t most = std::size_t((context.size() + arms.size()) / 3 + 2);
    work.X.assign(std::size_t(K * dim), 0.0);
    if (work.shared.size() < most) {
        work.values.resize(most), work.own.resize(most);
        work.shared.resize(most);
    }
    work.places.assign(most, 0);
    const Index n = about_context.count();
    const uint64_t* about = about_context.tokens(n);
    double *values = work.values.data(), *own = work.own.data();
    uint64_t* shared = work.shared.data();
    scales.valued(about, n, work.places.data(), values);
    for (Index c = -1; c < n; ++c) shared[c + 1] = mix(c < 0 ? one : about[3 * c], one);
    const uint64_t* before = nullptr;  // tokens of the previous arm, whose pairs have the cached hashes
    Index had = 0;
    for (Index k = 0; k < K; ++k) {
        double* row = work.X.data() + k * dim;
        const uint64_t id = about_arms.word();
        const Index m = about_arms.count();
        const uint64_t* arm = about_arms.tokens(m);
        scales.valued(arm, m, work.places.data(), own);
        const std::size_t pairs = std::size_t(n + 1) * std::size_t(m);
        const bool keep = pairs <= MAX_CACHED_PAIRS, again = keep && before && had == m && same_names(before, arm, m);
        if (work.hashes.size() < (keep ? pairs : std::size_t(m))) work.hashes.resize(keep ? pairs : std::size_t(m));
        for (Index c = -1; c < n; ++c) {
            const uint64_t hc = c < 0 ? one : about[3 * c];
            const double vc = c < 0 ? 1.0 : values[c];
            armwise::add(row, dim, shared[c + 1], vc);
            if (vc == 0.0 || (c >= 0 && !interactions)) continue;
            armwise::add(row, dim, mix(hc, id), vc);
            uint64_t* hashes = work.hashes.data() + (keep ? (c + 1) * m : 0);
            if (!again)
                for (Index a = 0; a < m; ++a) hashes[a] = mix(hc, arm[3 * a]);  // a loop of its own vectorises
            for (Index a = 0; a < m; ++a) armwise::add(row, dim, hashes[a], vc * own[a]);
        }
        before = keep ? arm : nullptr, had = m;
    }
}

// Write N rows side by side without the columns in which all are zero; return the number of columns left.
template <int N> Index packed_into(const double* const (&rows)[N], Index d, double* lanes, Index* columns) {
    Index n = 0;
    for (Index i = 0; i < d; ++i) {  // without a branch: empty columns are unpredictable
        uint64_t any = 0, bits;
        for (int a = 0; a < N; ++a) {
            std::memcpy(&bits, rows[a] + i, 8);
            std::memcpy(lanes + N * n + a, &bits, 8);
            any |= bits;
        }
        columns[n] = i;
        n += (any << 1) != 0;  // without the sign: -0 is zero, too
    }
    return n;
}

// Optimistic scores of rows, which are normalised on the way. The bits are those of `normalise` and `optimistic`: the sums
// have the same terms in the same order, without some zeros.
struct Scores {
    const Models& models;
    Width width;
    double scale;
    double *scores, *lengths, *means;
    Scratch room, nothing;
    std::vector<Index> columns;
    bool all = true;

    Scores(const Models& models, const Width& width, double* scores, double* lengths, double* means)
        : models(models), width(width), scale(width.multiplier(models[0], models.D, models.d, models.lam)), scores(scores),
          lengths(lengths), means(means), room(8 * (models.D + 1), 0), nothing(models.d, models.d),
          columns(std::size_t(models.D) + 1) {}

    // Score 4 H rows of X from `start` on, or those that are left.
    template <int H> void take(const double* X, Index K, Index start) {
        constexpr int N = 4 * H;
        const Index D = models.D, d = models.d;
        const double *model = models[0], *theta = models.theta(0);
        double* lanes = room.data();
        const double* rows[N];
        for (Index a = 0; a < N; ++a) rows[a] = start + a < K ? X + (start + a) * d : nothing.data();
        const Index n = packed_into<N>(rows, d, lanes, columns.data());
        Half square[H], mean[H], total[H];
        for (int h = 0; h < H; ++h) square[h] = mean[h] = total[h] = splat_half(0.0);
        for (Index k = 0; k < n; ++k)
            for (int h = 0; h < H; ++h) {
                const Half v = load_half(lanes + N * k + 4 * h);
                total[h] = total[h] + v * v;
            }
        double length[N];
        for (int a = 0; a < N; ++a) length[a] = total[a / 4][a % 4] > 0.0 ? std::sqrt(total[a / 4][a % 4]) : 1.0;
        for (Index k = 0; k < n; ++k)
            for (int a = 0; a < N; ++a) lanes[N * k + a] /= length[a];
        for (Index k = 0; k < n; ++k) {
            const Half t = splat_half(theta[columns[k]]);
            for (int h = 0; h < H; ++h) mean[h] = mean[h] + t * load_half(lanes + N * k + 4 * h);
        }
        Index within = 0;
        for (Index i = 0; i < D; i += 8) {
            while (within < n && columns[within] < i + 8) ++within;  // W is zero above its diagonal
            for (Index j = i; j < i + 8; j += 8 / H) add<H>(model + j * D, D, lanes, within, square);
        }
        for (Index a = 0; a < std::min<Index>(N, K - start); ++a) {
            lengths[start + a] = length[a], means[start + a] = mean[a / 4][int(a % 4)];
            const double root = std::sqrt(square[a / 4][int(a % 4)]);
            scores[start + a] = width.compares() ? root : means[start + a] + scale * root;  // widths, until all are known
            all &= is_finite(scores[start + a]);
        }
    }

  private:
    // Add the squared products of the lanes with 8 / H rows of W: as many sums at once as fit into the registers.
    template <int H> void add(const double* W, Index D, const double* lanes, Index n, Half (&square)[H]) const {
        constexpr int R = 8 / H;
        Half s[R][H];
        for (int r = 0; r < R; ++r)
            for (int h = 0; h < H; ++h) s[r][h] = splat_half(0.0);
        for (Index k = 0; k < n; ++k) {
            const double* w = W + columns[std::size_t(k)];
            Half v[H];
            for (int h = 0; h < H; ++h) v[h] = load_half(lanes + 4 * H * k + 4 * h);
            for (int r = 0; r < R; ++r) {
                const Half own = splat_half(w[r * D]);
                for (int h = 0; h < H; ++h) s[r][h] = s[r][h] + own * v[h];
            }
        }
        for (int r = 0; r < R; ++r)
            for (int h = 0; h < H; ++h) square[h] = square[h] + s[r][h] * s[r][h];
    }
};

void scores_into(const Models& models, const Width& width, const double* X, Index K, double* scores, double* lengths,
                 double* means) {
    Scores all(models, width, scores, lengths, means);
    for (Index start = 0; start < K;) {
        const bool few = K - start <= 4;
        if (few)
            all.take<1>(X, K, start);
        else
            all.take<2>(X, K, start);
        start += few ? 4 : 8;
    }
    require(all.all, OVERFLOWN);
    if (!width.compares()) return;
    Scratch widths(K);
    std::copy(scores, scores + K, widths.data());
    std::copy(means, means + K, scores);
    widen(scores, widths.data(), K, width);
}

// The settings of a decision: a ridge model with its width, the share of all arms (below 0: none), the encoding of rows.
struct Optimist {
    Models models;
    Width width;
    double epsilon;
    bool interactions;
    uint64_t one;

    // The arm that `u` in [0, 1) draws from `p`, with its row and the model's prediction, `mean`.
    Index draw_into(Hashes context, Hashes arms, Index K, Scales& scales, double u, double* p, double* row,
                    double& mean) const {
        const Index dim = models.d;
        Unlocked unlocked(double(context.size()) * double(arms.size()) / 16.0 + double(K * dim * dim));
        static thread_local Work work;
        rows_into(context, arms, K, scales, dim, interactions, one, work);
        Scratch room(3 * K);
        double *scores = room.data(), *lengths = scores + K, *means = lengths + K;
        scores_into(models, width, work.X.data(), K, scores, lengths, means);
        tied_probabilities_into(scores, K, p);
        if (epsilon >= 0.0) floored(p, K, epsilon, p);
        const Index arm = draw(p, K, u);
        for (Index i = 0; i < dim; ++i) row[i] = work.X[arm * dim + i] / lengths[arm];
        mean = means[arm];
        return arm;
    }
};

// A reward of a decision, as Python passes it: `row` is the drawn arm's; `scaling` has the names, means and deviations
// that the row was encoded with.
struct Lesson {
    Hashes context, arms, scaling;
    Index K, arm;
    const double* row;
    double reward;

    Lesson(nb::handle given, Index d) {
        require(PyTuple_Check(given.ptr()) && PyTuple_GET_SIZE(given.ptr()) == 7, "each lesson must have seven fields");
        const auto field = [&](int i) { return nb::handle(PyTuple_GET_ITEM(given.ptr(), i)); };
        const auto words = [&](int i) {
            require(PyBytes_Check(field(i).ptr()), "tokens and scaling must be bytes");
            return as_words(nb::borrow<nb::bytes>(field(i)));
        };
        context = words(0), arms = words(1), scaling = words(6);
        require(scaling.size() % 3 == 0, "scaling must have three columns");
        K = nb::cast<Index>(field(2)), reward = nb::cast<double>(field(4)), arm = nb::cast<Index>(field(5));
        require_index(arm, K, "the arm that was drawn must be one of the arms");
        auto* array = reinterpret_cast<PyArrayObject*>(field(3).ptr());
        require(PyArray_Check(field(3).ptr()) && PyArray_TYPE(array) == NPY_DOUBLE && PyArray_NDIM(array) == 2 &&
                    PyArray_ISCARRAY_RO(array) && PyArray_DIM(array, 0) == 1 && PyArray_DIM(array, 1) == d,
                "each row must be of the model's width");
        row = static_cast<const double*>(PyArray_DATA(array));
    }

    // The drawn arm's row without interactions.
    void plain_into(double* plain, Index dim, uint64_t one) const {
        static thread_local Work work;
        const Index n = scaling.size() / 3;
        Hashes names = scaling;
        names.shape[0] = n;
        Numbers means, deviations;
        means.data = reinterpret_cast<const double*>(scaling.data + n), deviations.data = means.data + n;
        means.shape[0] = deviations.shape[0] = n;
        const armwise::Scaling scaled(names, means, deviations);
        Reader about_context(context), about_arms(arms);
        const Index size = about_context.count();
        const uint64_t* about = about_context.tokens(size);
        uint64_t id = about_arms.word();
        Index m = about_arms.count();
        const uint64_t* own = about_arms.tokens(m);
        for (Index k = 0; k < arm; ++k) id = about_arms.word(), m = about_arms.count(), own = about_arms.tokens(m);
        const std::size_t most = std::size_t(std::max(size, m));
        work.places.assign(most, 0);
        if (work.shared.size() < most) work.values.resize(most), work.own.resize(most), work.shared.resize(most);
        scaled.valued(about, size, work.places.data(), work.values.data());
        scaled.valued(own, m, work.places.data(), work.own.data());
        std::fill(plain, plain + dim, 0.0);
        crossed_into(plain, dim, {about, size, work.values.data()}, &id, {own, m, work.own.data()}, false, one,
                     work.shared.data());
    }
};

Optimist as_optimist(const View<double, 3>& array, Index dim, double lam, Width width, double epsilon,
                     bool interactions, uint64_t one) {
    Models models = as_models(array, dim);
    require(models.M == 1, "there must be one model");
    models.lam = lam;
    return {models, width, epsilon, interactions, one};
}

// Sums that test whether arms differ in their context (interactions), beside a ridge model of rows without interactions
// (`model`). For x, a row with interactions, and z, the row without: x z', x_i^2, r x, r z, and 1, r, r^2.
struct Beside {
    Models model;
    View<double, 2> crossed;  // (d, D)
    View<double, 2> sums;     // (3, d)

    Beside(const View<double, 3>& models, const View<double, 2>& crossed, const View<double, 2>& sums)
        : model(as_models(models, crossed.size(0))), crossed(crossed), sums(sums) {
        require(model.M == 1 && crossed.size(1) == model.D, "there must be one model, and crossed of its width");
        require(sums.size(0) == 3 && sums.size(1) == model.d, "sums must have three rows of the model's width");
    }

    void learn(const double* x, const double* z, double reward) const {
        const Index d = model.d, D = model.D;
        require(all_within(x, d) && all_within(z, d), OVERFLOWN);
        update(model[0], D, z, d, reward, model.counted);
        Scratch padded(D, D);
        std::copy(z, z + d, padded.data());
        for (Index i = 0; i < d; ++i) {
            if (x[i] == 0.0) continue;
            double* row = crossed.data + i * D;
            for (Index j = 0; j < D; j += LANES) store(row + j, splat(x[i]) * load(padded.data() + j) + load(row + j));
            sums(0, i) += x[i] * x[i];
            sums(1, i) += reward * x[i];
        }
        for (Index i = 0; i < d; ++i) sums(2, i) += reward * z[i];
    }

    void revise(const double* x, const double* z, double change) const {
        armwise::revise(model[0], model.D, z, model.d, change);
        for (Index i = 0; i < model.d; ++i) sums(1, i) += change * x[i], sums(2, i) += change * z[i];
    }

    // The sum of two score tests of the interactions, each in standard deviations under the null: one of all weights
    // together, in which frequent values count most, and one of each weight in its own deviations.
    double surplus(double variance) const {
        const Index d = model.d, D = model.D;
        Scratch projected(D);
        double alike = 0.0, squares = 0.0, each = 0.0, n = 0.0;
        for (Index i = 0; i < d; ++i) {
            const double* row = crossed.data + i * D;
            const double score = sums(1, i) - padded_dot(row, model.theta(0), D);
            const double own = std::max(0.0, sums(0, i) - project(model[0], D, row, projected.data()));
            const double square = score * score / variance;
            alike += square - own, squares += own * own;
            if (own > MIN_INFORMATION) each += square / own - 1.0, n += 1.0;  // rarer weights are far from normal
        }
        return n > 0.0 ? alike / std::sqrt(2.0 * squares) + each / std::sqrt(2.0 * n) : 0.0;
    }

    static constexpr double MIN_INFORMATION = 1.0;  // of a weight that is tested by itself
};

}  // namespace

void bind_decisions(nb::module_& m) {
    m.doc() = "A whole decision in one call: scales, rows, optimistic scores and the draw; and learning from decisions.";

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
          R"(Welford's update with all numbers of a request; if a name is unknown, change nothing and return False.

>>> n, m, s = np.zeros(1), np.zeros(1), np.zeros(1)
>>> nine = np.array([1, 7, 0, 1], np.uint64)
>>> nine.view(float)[2] = 9.0
>>> take_numbers(nine.tobytes(), b"", 0, np.array([7], np.uint64), n, m, s), m[0]
(True, np.float64(9.0)))");

    m.def("register_decisions", [](nb::list decisions, Index first, Const<uint64_t, 1> names, Array<double, 1> counts,
                          Array<double, 1> means, Array<double, 1> squares, Array<double, 3> array, Index dim) {
        const Models models = as_models(array, dim);
        require(models.M == 1, "there must be one model");
        const Index n = Index(decisions.size());
        require(first >= 0 && first <= n, "first must be one of the decisions");
        std::vector<Lesson> all;
        all.reserve(std::size_t(n - first));
        double size = 0.0;
        for (Index k = first; k < n; ++k) {
            all.emplace_back(decisions[std::size_t(k)], dim);
            size += double(all.back().arms.size() + dim * dim);
        }
        New<double, 1> expected(n - first);
        Index k = 0, learnt = 0;
        {
            Unlocked unlocked(size);
            for (; k < n - first; ++k) {
                const Lesson& made = all[std::size_t(k)];
                means_into(models, made.row, 1, &expected.view[k]);
                if (!all_within(made.row, dim) ||
                    !take_numbers(made.context, made.arms, made.K, names, counts, means, squares))
                    break;
                try {
                    update(models[0], models.D, made.row, dim, made.reward, models.counted);
                    ++learnt;
                } catch (const std::invalid_argument&) {  // nothing was learnt; a replay refuses it, too
                }
            }
        }
        return std::make_tuple(first + k, learnt, std::move(expected));
    }, nb::sig("def register_decisions(decisions: list[tuple[bytes, bytes, int, numpy.typing.NDArray[numpy.float64], float, int, bytes]], "
               "first: int, names: numpy.typing.NDArray[numpy.uint64], counts: numpy.typing.NDArray[numpy.float64], "
               "means: numpy.typing.NDArray[numpy.float64], squares: numpy.typing.NDArray[numpy.float64], "
               "models: numpy.typing.NDArray[numpy.float64], dim: int) -> tuple[int, int, "
               "numpy.typing.NDArray[numpy.float64]]"),
          "decisions"_a, "first"_a, "names"_a, "counts"_a, "means"_a, "squares"_a, "models"_a, "dim"_a,
          R"(Call ``predicted``, ``take_numbers`` and ``ridge.learn_row`` for each decision from ``first`` on. A decision is a tuple: the tokens of
its context, those of its arms, the number of arms, the drawn arm's row, the reward, the drawn arm, and the scaling of the row.

It stops at a decision with an unknown name or with too large a row, and returns the position of that decision (or the number of
decisions), how many were learnt (the model may refuse one), and the prediction for each before it was learnt, the last one included.

>>> none, zero, models = np.zeros(0, np.uint64), np.zeros(0), np.zeros((1, 9, 8))
>>> models[0, 0, 0] = 1.0
>>> one = bytes(8), bytes(16), 1, np.ones((1, 1)), 1.0, 0, b""
>>> register_decisions([one, one], 0, none, zero, zero, zero, models, 1)
(2, 2, array([0. , 0.5])))");

    m.def("decide_optimistic", [](nb::bytes context, nb::bytes arms, Index K, Const<uint64_t, 1> names,
                                  Const<double, 1> counts, Const<double, 1> means, Const<double, 1> squares,
                                  bool interactions, uint64_t one, Array<double, 3> array, Index dim, double lam,
                                  double alpha, double noise, double delta, double extra, double beyond,
                                  double epsilon, double u) {
        require(K > 0, "there must be an arm");
        const Optimist optimist = as_optimist(array, dim, lam, {alpha, noise, delta, extra, beyond}, epsilon, interactions, one);
        New<double, 1> p(K);
        New<double, 2> row(1, dim);
        Scales scales(names, counts, means, squares);
        double mean;
        const Index arm = optimist.draw_into(as_words(context), as_words(arms), K, scales, u, p.view.data,
                                             row.view.data, mean);
        return std::make_tuple(arm, std::move(p), std::move(row), scales.packed());
    }, nb::sig("def decide_optimistic(context: bytes, arms: bytes, K: int, names: numpy.typing.NDArray[numpy.uint64], "
               "counts: numpy.typing.NDArray[numpy.float64], means: numpy.typing.NDArray[numpy.float64], "
               "squares: numpy.typing.NDArray[numpy.float64], interactions: bool, one: int, "
               "models: numpy.typing.NDArray[numpy.float64], dim: int, lam: float, alpha: float, noise: float, "
               "delta: float, extra: float, beyond: float, epsilon: float, u: float) -> tuple[int, numpy.typing.NDArray[numpy.float64], "
               "numpy.typing.NDArray[numpy.float64], bytes]"),
          "context"_a, "arms"_a, "K"_a, "names"_a, "counts"_a, "means"_a, "squares"_a, "interactions"_a, "one"_a,
          "models"_a, "dim"_a, "lam"_a, "alpha"_a, "noise"_a, "delta"_a, "extra"_a, "beyond"_a, "epsilon"_a, "u"_a,
          R"(The arm that ``u`` in [0, 1) draws, all probabilities, the arm's row, and the scaling used, packed.

Tokens of the context and of the arms are scaled, crossed and hashed as by ``features.cross`` and scored as by
``ridge.optimistic``. The best arms share 1, or 1 - ``epsilon`` (below 0: none) beside a share for all arms.

>>> none, zero, models = np.zeros(0, np.uint64), np.zeros(0), np.zeros((1, 9, 8))
>>> arm, p, row, scaling = decide_optimistic(
...     bytes(8), bytes(32), 2, none, zero, zero, zero, True, 7, models, 8, 1.0, 0.5, 0.0, 1.0, 0.0, 1.0, 0.2, 0.7)
>>> arm, p, row.shape, scaling
(1, array([0.5, 0.5]), (1, 8), b''))");

    m.def("learn_beside", [](nb::list decisions, Index first, Array<double, 3> models, Array<double, 2> crossed,
                             Array<double, 2> sums, Array<double, 1> rewards, double due, uint64_t one) {
        const Beside beside(models, crossed, sums);
        require(rewards.size() == 3, "rewards must be three sums");
        const Index n = Index(decisions.size()), d = beside.model.d;
        require(first >= 0 && first <= n, "first must be one of the decisions");
        std::vector<Lesson> all;
        all.reserve(std::size_t(n - first));
        for (Index k = first; k < n; ++k) all.emplace_back(decisions[std::size_t(k)], d);
        Index k = 0;
        {
            Unlocked unlocked(double(n - first) * double(2 * d * d));
            Scratch plain(d);
            for (; k < n - first && rewards[0] < due; ++k) {
                const double reward = all[std::size_t(k)].reward;
                try {
                    all[std::size_t(k)].plain_into(plain.data(), d, one);
                    beside.learn(all[std::size_t(k)].row, plain.data(), reward);
                } catch (const std::invalid_argument&) {  // nothing was learnt; a replay refuses it, too
                    continue;
                }
                rewards[0] += 1.0, rewards[1] += reward, rewards[2] += reward * reward;
            }
        }
        return first + k;
    }, nb::sig("def learn_beside(decisions: list[tuple[bytes, bytes, int, numpy.typing.NDArray[numpy.float64], float, int, bytes]], "
               "first: int, models: numpy.typing.NDArray[numpy.float64], crossed: numpy.typing.NDArray[numpy.float64], "
               "sums: numpy.typing.NDArray[numpy.float64], rewards: numpy.typing.NDArray[numpy.float64], due: float, one: int) -> int"),
          "decisions"_a, "first"_a, "models"_a, "crossed"_a, "sums"_a, "rewards"_a, "due"_a, "one"_a,
          R"(Learn, for the test of interactions, the rows of decisions (tuples as of ``register_decisions``) with and without interactions.

It starts at ``first``, stops when ``due`` were learnt, and returns the position of the next decision, or their number.

>>> models, crossed, sums, rewards = np.zeros((1, 9, 8)), np.zeros((1, 8)), np.zeros((3, 1)), np.zeros(3)
>>> models[0, 0, 0] = 1.0
>>> made = bytes(8), bytes(16), 1, np.full((1, 1), 3.0), 1.0, 0, b""
>>> learn_beside([made, made], 0, models, crossed, sums, rewards, 1.0, 7)
1
>>> abs(crossed[0, 0]), sums[:2, 0], rewards
(np.float64(3.0), array([9., 3.]), array([1., 1., 1.])))");

    m.def("revise_beside", [](nb::tuple decision, double squares, Array<double, 3> models, Array<double, 2> crossed,
                              Array<double, 2> sums, Array<double, 1> rewards, uint64_t one) {
        const Beside beside(models, crossed, sums);
        require(rewards.size() == 3, "rewards must be three sums");
        const Lesson change(decision, beside.model.d);
        Scratch plain(beside.model.d);
        change.plain_into(plain.data(), beside.model.d, one);
        beside.revise(change.row, plain.data(), change.reward);
        rewards[1] += change.reward, rewards[2] += squares;
    }, nb::sig("def revise_beside(decision: tuple[bytes, bytes, int, numpy.typing.NDArray[numpy.float64], float, int, bytes], "
               "squares: float, models: numpy.typing.NDArray[numpy.float64], crossed: numpy.typing.NDArray[numpy.float64], "
               "sums: numpy.typing.NDArray[numpy.float64], rewards: numpy.typing.NDArray[numpy.float64], one: int) -> None"),
          "decision"_a, "squares"_a, "models"_a, "crossed"_a, "sums"_a, "rewards"_a, "one"_a,
          R"(Add the decision's reward to the one that ``learn_beside`` learnt of it, and ``squares`` to the sum of squared rewards.

>>> models, crossed, sums, rewards = np.zeros((1, 9, 8)), np.zeros((1, 8)), np.zeros((3, 1)), np.zeros(3)
>>> models[0, 0, 0] = 1.0
>>> made = bytes(8), bytes(16), 1, np.full((1, 1), 3.0), 1.0, 0, b""
>>> revise_beside(made, 1.0, models, crossed, sums, rewards, 7)
>>> sums[1, 0], rewards
(np.float64(3.0), array([0., 1., 1.])))");

    m.def("surplus", [](Array<double, 3> models, Array<double, 2> crossed, Array<double, 2> sums, double variance) {
        const Beside beside(models, crossed, sums);
        require(variance > 0.0, "variance must be positive");
        Unlocked unlocked(double(beside.model.d) * double(beside.model.D * beside.model.D));
        return beside.surplus(variance);
    }, "models"_a, "crossed"_a, "sums"_a, "variance"_a,
          R"(The evidence for interactions: the sum of two score tests, in standard deviations under the null.

>>> models, crossed, sums = np.zeros((1, 9, 8)), np.zeros((1, 8)), np.zeros((3, 1))
>>> models[0, 0, 0] = 1.0
>>> surplus(models, crossed, sums, 1.0)
0.0)");

    m.def("predicted", [](Array<double, 3> array, Const<double, 2> row) {
        const Models models = as_models(array, row.size(1));
        double mean = 0.0;
        require(row.size(0) == 1, "there must be one row");
        means_into(models, row.data, 1, &mean);
        return mean;
    }, "models"_a, "row"_a, R"(The prediction of a ridge model for one row, summed in the same order on every processor.

>>> models = np.zeros((1, 9, 8))
>>> models[0, 8, :2] = 1.0, 2.0
>>> predicted(models, np.array([[0.5, 0.25]]))
1.0)");
}
