// Views of numpy arrays as kernels read them: C-contiguous, of one element type and a fixed number of dimensions.
//
// `Array<double, 2>` accepts only an array of exactly that type and layout, and may write into it (a copy would lose the
// writes). `Const<double, 2>` also accepts whatever converts to it. Arguments are read through numpy's C interface: a few
// nanoseconds each, against 100 for DLPack or the buffer protocol.
#pragma once

#include <nanobind/nanobind.h>

#define PY_ARRAY_UNIQUE_SYMBOL armwise_numpy
#ifndef ARMWISE_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <cstdint>
#include <initializer_list>
#include <stdexcept>

namespace nb = nanobind;

namespace armwise {

using Index = std::ptrdiff_t;

template <class T> struct Dtype;
template <> struct Dtype<double> {
    static constexpr int number = NPY_DOUBLE;
    static constexpr auto name = nb::detail::const_name("numpy.float64");
};
template <> struct Dtype<int64_t> {
    static constexpr int number = NPY_INT64;
    static constexpr auto name = nb::detail::const_name("numpy.int64");
};
template <> struct Dtype<uint64_t> {
    static constexpr int number = NPY_UINT64;
    static constexpr auto name = nb::detail::const_name("numpy.uint64");
};
template <> struct Dtype<uint8_t> {
    static constexpr int number = NPY_UINT8;
    static constexpr auto name = nb::detail::const_name("numpy.uint8");
};
template <> struct Dtype<bool> {
    static constexpr int number = NPY_BOOL;
    static constexpr auto name = nb::detail::const_name("numpy.bool");
};

// A view: a pointer and N sizes. It does not own its memory.
template <class T, int N> struct View {
    T* data = nullptr;
    Index shape[N] = {};

    Index size() const {
        Index n = 1;
        for (int i = 0; i < N; ++i) n *= shape[i];
        return n;
    }
    Index size(int axis) const { return shape[axis]; }

    // view[i]: an element of a one-dimensional view, a row (view of N - 1 dimensions) of any other.
    decltype(auto) operator[](Index i) const {
        if constexpr (N == 1) {
            return (data[i]);
        } else {
            View<T, N - 1> row;
            Index stride = 1;
            for (int k = 1; k < N; ++k) stride *= row.shape[k - 1] = shape[k];
            row.data = data + i * stride;
            return row;
        }
    }
    T& operator()(Index i, Index j) const {
        static_assert(N == 2);
        return data[i * shape[1] + j];
    }
    T& operator()(Index i, Index j, Index k) const {
        static_assert(N == 3);
        return data[(i * shape[1] + j) * shape[2] + k];
    }
    T* begin() const { return data; }
    T* end() const { return data + size(); }
    operator View<const T, N>() const {
        View<const T, N> view;
        view.data = data;
        for (int i = 0; i < N; ++i) view.shape[i] = shape[i];
        return view;
    }
};

// Return the argument as an array or, for kernels that only read it, a converted copy (owned by `made`); null if it is no
// array. Neither this function nor the next is inline: every argument of every binding would repeat their code.
PyArrayObject* read_array(PyObject* object, int dtype, int dimensions, bool writes, bool converts, PyObject*& made) noexcept;

// A new array, uninitialised.
PyObject* make_array(int dimensions, const npy_intp* shape, int dtype);

// Arguments, filled by the caster below. Their arrays live as long as the call.
template <class T, int N> struct Array : View<T, N> {};
template <class T, int N> struct Const : View<const T, N> {};

// A new numpy array, returned as a Python object and filled through `view`.
template <class T, int N> struct New {
    nb::object object;
    View<T, N> view;

    template <class... Sizes> explicit New(Sizes... sizes) {
        static_assert(sizeof...(sizes) == N);
        npy_intp shape[N] = {static_cast<npy_intp>(sizes)...};
        object = nb::steal(make_array(N, shape, Dtype<T>::number));
        view.data = static_cast<T*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(object.ptr())));
        for (int i = 0; i < N; ++i) view.shape[i] = shape[i];
    }
    decltype(auto) operator[](Index i) const { return view[i]; }
    void fill(T value) const {
        for (T& entry : view) entry = value;
    }
};

inline void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

// An index from a caller.
inline void require_index(Index i, Index n, const char* message) {
    if (i < 0 || i >= n) throw std::out_of_range(message);
}

// Release the GIL for long work. A step of a few microseconds keeps it: to take it back from busy threads would take much
// longer. `operations` is about the number of operations of the work.
class Unlocked {
  public:
    explicit Unlocked(double operations) : state_(operations >= 2e5 ? PyEval_SaveThread() : nullptr) {}
    ~Unlocked() {
        if (state_) PyEval_RestoreThread(state_);
    }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

  private:
    PyThreadState* state_;
};

}  // namespace armwise

namespace nanobind::detail {

template <class T, int N, bool Writes, class Kind> struct array_caster {
    NB_TYPE_CASTER(Kind, const_name("numpy.typing.NDArray[") + armwise::Dtype<T>::name + const_name("]"))

    bool from_python(handle source, uint8_t flags, cleanup_list*) noexcept {
        const bool converts = !Writes && (flags & (uint8_t)cast_flags::convert);
        PyObject* made = nullptr;
        PyArrayObject* array = armwise::read_array(source.ptr(), armwise::Dtype<T>::number, N, Writes, converts, made);
        if (!array) return false;
        converted_ = steal(made);
        value.data = static_cast<T*>(PyArray_DATA(array));
        for (int i = 0; i < N; ++i) value.shape[i] = PyArray_DIM(array, i);
        return true;
    }

    static handle from_cpp(const Kind&, rv_policy, cleanup_list*) noexcept { return handle(); }

  private:
    object converted_;
};

template <class T, int N>
struct type_caster<armwise::Array<T, N>> : array_caster<T, N, true, armwise::Array<T, N>> {};
template <class T, int N>
struct type_caster<armwise::Const<T, N>> : array_caster<T, N, false, armwise::Const<T, N>> {};

template <class T, int N> struct type_caster<armwise::New<T, N>> {
    using Value = armwise::New<T, N>;
    static constexpr auto Name =
        const_name("numpy.typing.NDArray[") + armwise::Dtype<T>::name + const_name("]");
    static handle from_cpp(const Value& value, rv_policy, cleanup_list*) noexcept {
        return handle(value.object).inc_ref();
    }
};

}  // namespace nanobind::detail
