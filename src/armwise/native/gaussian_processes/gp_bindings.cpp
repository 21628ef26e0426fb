// Bindings of gp.hpp, and SupKernelUCB's block of rounds over joint posteriors.
#include "gp.hpp"
#include "modules.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

using namespace nb::literals;
using namespace armwise;

namespace {

template <class T> New<T, 1> copied(const std::vector<T>& values) {
    New<T, 1> copy(Index(values.size()));
    std::copy(values.begin(), values.end(), copy.view.begin());
    return copy;
}

New<double, 2> copied(const double* values, Index rows, Index columns) {
    New<double, 2> copy(rows, columns);
    std::copy(values, values + rows * columns, copy.view.begin());
    return copy;
}

template <class T> void assign(std::vector<T>& to, View<const T, 1> from, Index size) {
    require(from.size() == size, "the saved arrays do not fit together");
    to.assign(from.begin(), from.end());
}

void add_all(Points& points, View<const double, 2> rows) {
    for (Index i = 0; i < rows.size(0); ++i)
        require(points.add(rows.data + i * rows.size(1)) == i, "the rows must be distinct");
}

Factor restored_factor(double noise, Const<double, 2> points, Const<double, 1> L, Const<double, 1> c,
                       Const<double, 1> sums, Const<double, 1> prior, Const<int64_t, 1> counts,
                       Const<double, 2> offered, double gain, double saved, int64_t age) {
    Factor factor(points.size(1), noise);
    require(offered.size(1) == points.size(1), "the saved arrays do not fit together");
    add_all(factor.learnt, points);
    add_all(factor.offered, offered);
    const Index n = points.size(0);
    assign<double>(factor.L, L, packed(n));
    assign<double>(factor.c, c, n);
    assign<double>(factor.sums, sums, n);
    assign<double>(factor.prior, prior, n);
    assign<int64_t>(factor.counts, counts, n);
    for (const int64_t count : factor.counts) require(count > 0, "the saved arrays do not fit together");
    factor.gain = gain, factor.saved = saved, factor.age = age;
    return factor;
}

void bind_factor(nb::module_& m) {
    nb::class_<Factor>(m, "Factor", R"(The posterior as a Cholesky factor LL' = K + noise / counts over the distinct rows learnt.

It costs O(n^2) per reward and per estimated row. It remembers the rows offered: ``due`` tells when their joint posterior
would be cheaper, as they come back often.

>>> factor = Factor(1, 3.0)
>>> factor.learn(np.zeros(1), np.zeros((1, 0)), 1.0, 4.0), factor.L, factor.c
(1.0, array([2.]), array([2.])))")
        .def(nb::init<Index, double>(), "dim"_a, "noise"_a)
        .def_static("restored", restored_factor, "noise"_a, "points"_a, "L"_a, "c"_a, "sums"_a, "prior"_a, "counts"_a,
                    "offered"_a, "gain"_a, "saved"_a, "age"_a, "A factor from what another one's properties say.")
        .def("__len__", &Factor::size)
        .def_rw("gain", &Factor::gain, "The information gain of what was learnt.")
        .def_ro("saved", &Factor::saved, "The work that a joint posterior would have spared, -1: too many rows came.")
        .def_ro("age", &Factor::age, "How often a row was learnt again since the factor was last made from scratch.")
        .def_prop_ro("points", [](const Factor& f) { return copied(f.learnt.data(), f.size(), f.learnt.dim()); })
        .def_prop_ro("offered", [](const Factor& f) {
            return copied(f.offered.data(), f.offered.size(), f.offered.dim());
        })
        .def_prop_ro("L", [](const Factor& f) { return copied(f.L); })
        .def_prop_ro("c", [](const Factor& f) { return copied(f.c); })
        .def_prop_ro("sums", [](const Factor& f) { return copied(f.sums); })
        .def_prop_ro("prior", [](const Factor& f) { return copied(f.prior); })
        .def_prop_ro("counts", [](const Factor& f) { return copied(f.counts); })
        .def_prop_ro("due", &Factor::due, "Whether the rows offered come back so often that a ``Joint`` is cheaper.")
        .def_prop_ro("stale", &Factor::stale, "Whether rounding has added up enough for a ``refresh``.")
        .def("cross", [](const Factor& f, const ProgramArgument& code, Const<double, 2> X) {
            Program program(code);
            require(X.size(1) == f.learnt.dim(), "X must have the columns of the rows learnt so far");
            program.check_width(X.size(1));
            New<double, 2> V(X.size(0), f.size());
            Unlocked unlocked(double(V.view.size()) * double(X.size(1) + 10));
            program.cross(X, f.learnt.view(), V.view.data);
            return V;
        }, "program"_a, "X"_a, "k(x, z) for the rows of X and the rows learnt.")
        .def("estimate", [](const Factor& f, Array<double, 2> V, Const<double, 1> prior) {
            const Index rows = V.size(0), n = f.size();
            require(V.size(1) == n && prior.size() == rows, "V must be (K, n) and prior (K,)");
            New<double, 1> means(rows), variances(rows);
            {
                Unlocked unlocked(double(rows) * double(n) * double(n) / 2);
                f.estimate(V.data, rows, prior.data, means.view.data, variances.view.data);
            }
            return std::make_tuple(std::move(means), std::move(variances));
        }, "V"_a, "prior"_a, "Means and variances of rows with k(x) in V, which is used up, and k(x, x) in ``prior``.")
        .def("learn", [](Factor& f, Const<double, 1> x, Array<double, 2> row, double prior, double reward,
                         int64_t count) {
            require(x.size() == f.learnt.dim() && row.size() == f.size() && count > 0,
                    "x must have the columns of the rows learnt, and row an entry for each of them");
            Unlocked unlocked(2.0 * double(f.size()) * double(f.size()));
            return f.learn(x.data, row.data, prior, reward, count);
        }, "x"_a, "row"_a, "prior"_a, "reward"_a, "count"_a = 1,
             R"(Learn a reward, or the mean of ``count``; ``row`` is k(x), which is overwritten. Return the variance at x before it; if it
shows that the kernel is not positive definite, nothing is changed.)")
        .def("refresh", [](Factor& f, Const<double, 2> gram) {
            require(gram.size(0) == f.size() && gram.size(1) == f.size(), "gram must be the (n, n) kernel matrix");
            Unlocked unlocked(double(gram.size()) * double(f.size()));
            f.refresh(gram.data);
        }, "gram"_a, "The factor from scratch, from the kernel matrix of its points.")
        .def("offer", [](Factor& f, Const<double, 2> X) {
            require(X.size(1) == f.offered.dim(), "X must have the columns of the rows learnt so far");
            f.offer(X);
        }, "X"_a, "Take note of the rows of a round.")
        .def("play", [](Factor& f, const ProgramArgument& code, const Width& width, int64_t t,
                        Const<double, 3> contexts, Const<double, 2> rewards, Generator rng, Array<int64_t, 1> arms,
                        Array<double, 1> probabilities, Array<double, 1> got) {
            const Rounds rounds{contexts, rewards, arms, probabilities, got};
            rounds.check(f.learnt.dim());
            Program program(code);
            program.check_width(f.learnt.dim());
            Unlocked unlocked(double(contexts.size()) * double(f.size() + 100) * double(f.size() + 100));
            return f.play(program, width, t, rounds, rng);
        }, "program"_a, "width"_a, "t"_a, "contexts"_a, "rewards"_a, "rng"_a, "arms"_a, "probabilities"_a, "got"_a,
             R"(Play rounds from t on and return their number. It stops when a ``Joint`` is due, and before a round in which a variance
shows that the kernel is not positive definite.)");
}

void bind_joint(nb::module_& m) {
    nb::class_<Joint>(m, "Joint", R"(The joint posterior of a set of distinct rows: O(n^2) per reward, O(1) per estimated row.

>>> joint = Joint(np.eye(2), np.array([[1.0, 0.5], [0.5, 1.0]]), 1.0)
>>> joint.learn(np.eye(2), 0, 2.0), joint.mean, joint.gain.__round__(4)
(True, array([1. , 0.5]), 0.3466))")
        .def("__init__", [](Joint* self, Const<double, 2> points, Const<double, 2> gram, double noise) {
            new (self) Joint(points, gram, noise);
        }, "points"_a, "gram"_a, "noise"_a)
        .def("__len__", &Joint::size)
        .def_rw("gain", &Joint::gain, "The information gain of what was learnt.")
        .def_ro("age", &Joint::age, "Rewards since the posterior was last made from scratch.")
        .def_prop_ro("points", [](const Joint& j) { return copied(j.points.data(), j.size(), j.points.dim()); })
        .def_prop_ro("prior", [](const Joint& j) { return copied(j.prior.data(), j.size(), j.size()); })
        .def_prop_ro("cov", [](const Joint& j) { return copied(j.cov.data(), j.size(), j.size()); })
        .def_prop_ro("mean", [](const Joint& j) { return copied(j.mean); })
        .def_prop_ro("sums", [](const Joint& j) { return copied(j.sums); })
        .def_prop_ro("noises", [](const Joint& j) { return copied(j.noises); })
        .def_prop_ro("counts", [](const Joint& j) { return copied(j.counts); })
        .def("restore", [](Joint& j, Const<int64_t, 1> counts, Const<double, 1> sums, Const<double, 1> mean,
                           Const<double, 2> cov, double gain, int64_t age) {
            require(cov.size(0) == j.size() && cov.size(1) == j.size(), "the saved arrays do not fit together");
            assign<int64_t>(j.counts, counts, j.size());
            assign<double>(j.sums, sums, j.size());
            assign<double>(j.mean, mean, j.size());
            j.cov.assign(cov.begin(), cov.end());
            j.gain = gain, j.age = age;
        }, "counts"_a, "sums"_a, "mean"_a, "cov"_a, "gain"_a, "age"_a, "What another one's properties say.")
        .def("recall", [](Joint& j, Const<int64_t, 1> counts, Const<double, 1> sums) {
            assign<int64_t>(j.counts, counts, j.size());
            assign<double>(j.sums, sums, j.size());
            for (const int64_t count : j.counts) require(count >= 0, "counts must not be negative");
            Unlocked unlocked(double(j.size()) * double(j.size()) * double(j.size()));
            j.refresh();
        }, "counts"_a, "sums"_a, R"(Set the posterior to that of ``counts`` rewards per row with these ``sums``.

>>> joint = Joint(np.zeros((1, 1)), np.eye(1), 1.0)
>>> joint.recall(np.array([3]), np.array([6.0])); joint.mean, joint.cov
(array([1.5]), array([[0.25]])))")
        .def("find", [](const Joint& j, Const<double, 2> X) {
            require(X.size(1) == j.points.dim(), "X must have the columns of the rows learnt so far");
            New<int64_t, 1> at(X.size(0));
            for (Index a = 0; a < X.size(0); ++a) at[a] = j.points.find(X.data + a * X.size(1));
            return at;
        }, "X"_a, "Where the rows of X are among the points; -1 for one that is not.")
        .def("estimate", [](const Joint& j, Const<double, 2> X)
                 -> std::optional<std::tuple<New<double, 1>, New<double, 1>>> {
            std::vector<Index> at;
            if (!j.find(X, at)) return std::nullopt;
            New<double, 1> means(X.size(0)), variances(X.size(0));
            for (Index a = 0; a < X.size(0); ++a)
                means[a] = j.mean_of(at[a]), variances[a] = j.variance_of(at[a]);
            return std::make_tuple(std::move(means), std::move(variances));
        }, "X"_a, "Means and variances of the rows of X; None if one is not among the points.")
        .def("learn", [](Joint& j, Const<double, 2> X, Index arm, double reward) {
            require_index(arm, X.size(0), "arm must be a row of X");
            std::vector<Index> at;
            if (!j.find(X, at)) return false;
            Unlocked unlocked(double(j.size()) * double(j.size()));
            j.learn(at[arm], reward);
            return true;
        }, "X"_a, "arm"_a, "reward"_a, "Learn the reward of a row of X; False, and nothing, if one is not known.")
        .def("play", [](Joint& j, const Width& width, int64_t t, Const<double, 3> contexts, Const<double, 2> rewards,
                        Generator rng, Array<int64_t, 1> arms, Array<double, 1> probabilities, Array<double, 1> got) {
            const Rounds rounds{contexts, rewards, arms, probabilities, got};
            rounds.check(j.points.dim());
            Unlocked unlocked(double(rounds.size()) * double(j.size()) * double(j.size()));
            return j.play(width, t, rounds, rng);
        }, "width"_a, "t"_a, "contexts"_a, "rewards"_a, "rng"_a, "arms"_a, "probabilities"_a, "got"_a,
             "Play rounds from t on, up to the first with a row that is not among the points; return their number.");
}

// A stage of SupKernelUCB: widths and scores of its posterior's rows, kept until it learns.
struct Stage {
    Joint* joint;
    double scale;
    std::vector<Index> places;  // of the block's distinct rows among its points: -1 absent, -2 not looked up
    std::vector<double> widths, scores;
    std::vector<Index> alive;  // the rows that reached this stage last time

    Stage(Joint* joint, double scale) : joint(joint), scale(scale) {
        if (joint) refresh();
    }
    void refresh() {
        const Index n = joint->size();
        widths.resize(n), scores.resize(n);
        for (Index i = 0; i < n; ++i) {
            widths[i] = scale * std::sqrt(std::max(joint->variance_of(i), 0.0));
            scores[i] = joint->mean_of(i) + widths[i];
        }
    }
    Index place(const Points& rows, Index i) {
        if (Index(places.size()) <= i) places.resize(rows.size(), -2);
        if (places[i] == -2) places[i] = joint->points.find(rows[i]);
        return places[i];
    }
    void learn(Index i, double reward) {
        joint->learn(i, reward);
        refresh();
    }
};

// Staged elimination over joint posteriors (see ``staging.Staged``); a stage without a posterior has its prior.
//
// It works on the distinct rows of a round. While the same rows are offered, in any order, only the stage that has learnt
// since and the stages after it are computed again.
class StagedRounds {
  public:
    StagedRounds(const std::vector<Joint*>& joints, Program& program, double scale, double horizon,
                 const Rounds& rounds, const Generator& rng)
        : program_(program), scale_(scale), sure_(1.0 / std::sqrt(horizon)), rounds_(rounds), rng_(rng),
          rows_(rounds.contexts.size(2)), row_(rounds.n_arms()) {
        for (Joint* joint : joints) stages_.emplace_back(joint, scale);
    }

    Index play(View<int64_t, 1> learnt) {
        for (Index i = 0; i < rounds_.size(); ++i) {
            offer(i);
            if (!decide()) return i;
            Index ties = 0;
            for (const Index row : row_) ties += best_[row] == decision_;
            Index which = ties == 1 ? 0 : Index(rng_.random() * double(ties)), arm = 0;
            while (best_[row_[arm]] != decision_ || which-- > 0) ++arm;
            rounds_.arms[i] = arm, rounds_.probabilities[i] = 1.0 / double(ties);
            rounds_.got[i] = rounds_.rewards(i, arm);
            learnt[i] = winner_ < 0 ? 0 : winner_ + 1;
            if (winner_ < 0) continue;
            Stage& stage = stages_[winner_];
            stage.learn(stage.place(rows_, row_[arm]), rounds_.got[i]);
            from_ = winner_;
        }
        return rounds_.size();
    }

  private:
    Program& program_;
    double scale_, sure_;
    const Rounds& rounds_;
    const Generator& rng_;
    std::vector<Stage> stages_;
    Points rows_;             // all rows of the block so far
    std::vector<Index> row_;  // the row of each arm of this round
    std::vector<Index> offered_;
    // For each row: the last set of rows and the last round with it, and the last decision in which it was the best.
    std::vector<int64_t> seen_, mark_, best_;
    std::vector<double> prior_, widths_, scores_;
    int64_t set_ = 0, decision_ = 0;
    Index winner_ = -1, from_ = 0;  // the stage that plays (-1: no stage learns); the first one to compute

    // Set the rows that round i offers; the same rows as in the round before keep the stages.
    void offer(Index i) {
        const View<const double, 2> X = rounds_.contexts[i];
        if (i > 0 && std::memcmp(X.data, X.data - X.size(), sizeof(double) * size_t(X.size())) == 0) return;
        for (Index a = 0; a < X.size(0); ++a) row_[a] = rows_.add(X.data + a * X.size(1));
        seen_.resize(rows_.size(), 0), mark_.resize(rows_.size(), 0), best_.resize(rows_.size(), 0);
        Index distinct = 0;
        bool same = true;
        for (const Index row : row_) {
            distinct += mark_[row] != i + 1;
            mark_[row] = i + 1;
            same &= seen_[row] == set_;
        }
        if (same && distinct == Index(offered_.size())) return;
        ++set_;
        offered_.clear();
        for (const Index row : row_)
            if (seen_[row] != set_) offered_.push_back(row), seen_[row] = set_;
        stages_[0].alive = offered_;
        from_ = 0;
    }

    // Compute the stages from the first that may have changed; return false if one of them lacks a row.
    bool decide() {
        for (Index s = from_; s < Index(stages_.size()); ++s) {
            Stage& stage = stages_[s];
            const std::vector<Index>& alive = stage.alive;
            const Index n = Index(alive.size());
            from_ = s;
            if (stage.joint) {
                for (const Index row : offered_)
                    if (stage.place(rows_, row) < 0) return false;
            } else {
                know_prior();
            }
            widths_.resize(n), scores_.resize(n);
            for (Index k = 0; k < n; ++k) {
                const Index row = alive[k];
                widths_[k] = stage.joint ? stage.widths[stage.places[row]] : scale_ * std::sqrt(std::max(prior_[row], 0.0));
                scores_[k] = stage.joint ? stage.scores[stage.places[row]] : widths_[k];
            }
            const double widest = *std::max_element(widths_.begin(), widths_.end());
            const bool sure = widest <= sure_, wide = widest > std::ldexp(1.0, -int(s + 1));
            if (sure || wide) {                      // rules 1 and 3
                if (!sure && !stage.joint) return false;  // its first reward creates the posterior
                const std::vector<double>& by = sure ? scores_ : widths_;
                first_best(by.data(), n);  // refuses NaN
                const double bar = *std::max_element(by.begin(), by.end()) - TIE;
                ++decision_;
                for (Index k = 0; k < n; ++k)
                    if (by[k] >= bar) best_[alive[k]] = decision_;
                winner_ = sure ? -1 : s;
                from_ = Index(stages_.size());
                return true;
            }
            const double bar = *std::max_element(scores_.begin(), scores_.end()) - std::ldexp(1.0, -int(s));  // rule 2
            require(s + 1 < Index(stages_.size()), "2^-S <= 1/sqrt(T), so stage S plays");
            stages_[s + 1].alive.clear();
            for (Index k = 0; k < n; ++k)
                if (scores_[k] >= bar) stages_[s + 1].alive.push_back(alive[k]);
        }
        return true;
    }
    void know_prior() {
        const Index first = Index(prior_.size());
        if (first == rows_.size()) return;
        prior_.resize(rows_.size());
        View<const double, 2> fresh = rows_.view();
        fresh.data += first * fresh.size(1), fresh.shape[0] -= first;
        program_.diagonal(fresh, prior_.data() + first);
    }
};

}  // namespace

void bind_gp(nb::module_& m) {
    m.doc() = "Gaussian process posteriors over distinct rows: n rewards of one row count as one of variance noise / n.";
    m.attr("JITTER") = JITTER;
    m.attr("MAX_ROUNDING") = MAX_ROUNDING;
    m.attr("MAX_JOINT_ROWS") = MAX_JOINT_ROWS;
    m.attr("FIXED") = int(FIXED);
    m.attr("FINITE_ARMS") = int(FINITE_ARMS);
    m.attr("AGNOSTIC") = int(AGNOSTIC);
    m.attr("STAGED") = int(STAGED);
    bind_factor(m);
    bind_joint(m);

    m.def("joint_work", joint_work, "n"_a, "m"_a,
          R"(Multiplications to compute a ``Joint`` of m rows, n of them learnt.

>>> joint_work(6, 6)
252.0)");

    m.def("multiplier", multiplier, "width"_a, "K"_a, "t"_a, "gain"_a,
          R"(The multiplier of the posterior's standard deviation: a number, or sqrt(beta_t) of a schedule.

>>> multiplier((FIXED, 1.5, 0.0), 10, 1, 0.0)
1.5
>>> round(multiplier((FINITE_ARMS, 0.1, 0.0), 10, 1, 0.0) ** 2, 4)   # 2 ln(K t^2 pi^2 / (6 delta))
10.2057
>>> multiplier((AGNOSTIC, 0.1, 2.0), 10, 1, 0.0)                      # 2 B + 300 gamma_t ln^3(t / delta)
2.0)");

    m.def("solve_lower", [](Const<double, 1> L, Index n, Array<double, 2> V) {
        require(n >= 0 && L.size() >= packed(n) && V.size(1) >= n, "L must hold n rows and V have n columns");
        Unlocked unlocked(double(V.size(0)) * double(n) * double(n) / 2);
        solve_lower(L.data, n, V.data, V.size(0), V.size(1));
    }, "L"_a, "n"_a, "V"_a, R"(L^-1 v in place for each row v of V.

>>> V = np.array([[2.0, 5.0]])
>>> solve_lower(np.array([2.0, 1.0, 4.0]), 2, V)
>>> V
array([[1., 1.]]))");

    m.def("play_stages", [](const std::vector<Joint*>& stages, const ProgramArgument& code, double scale,
                            double horizon, Const<double, 3> contexts, Const<double, 2> rewards, Generator rng,
                            Array<int64_t, 1> arms, Array<double, 1> probabilities, Array<double, 1> got,
                            Array<int64_t, 1> learnt) {
        const Rounds rounds{contexts, rewards, arms, probabilities, got};
        rounds.check(contexts.size(2));
        require(learnt.size() >= rounds.size() && !stages.empty(), "results need an entry per round");
        Program program(code);
        program.check_width(contexts.size(2));
        double work = 0.0;
        for (const Joint* stage : stages) work = std::max(work, stage ? double(stage->size()) : 0.0);
        Unlocked unlocked(double(rounds.size()) * work * work);
        return StagedRounds(stages, program, scale, horizon, rounds, rng).play(learnt);
    }, "stages"_a, "program"_a, "scale"_a, "horizon"_a, "contexts"_a, "rewards"_a, "rng"_a, "arms"_a,
          "probabilities"_a, "got"_a, "learnt"_a,
          R"(Play SupKernelUCB over a block of rounds, up to the first that needs a new posterior or row; return their number.

``stages`` has a ``Joint`` per stage, None before its first reward; ``learnt`` gets the stage that learnt in each round,
0 for none.)");
}
