// Conversion of arguments to arrays, for all bindings; see array.hpp.
#include "array.hpp"

namespace armwise {

PyArrayObject* read_array(PyObject* object, int dtype, int dimensions, bool writes, bool converts, PyObject*& made) noexcept {
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    const bool same = PyArray_Check(object) && PyArray_TYPE(array) == dtype && PyArray_NDIM(array) == dimensions;
    if (same && (writes ? PyArray_ISCARRAY(array) : PyArray_ISCARRAY_RO(array))) return array;
    // Copy another layout of the same type always, another type only if the binding converts and no value changes.
    if (writes || !(same || converts)) return nullptr;
    made = PyArray_FROMANY(object, dtype, dimensions, dimensions, NPY_ARRAY_CARRAY_RO);
    if (!made) PyErr_Clear();
    return reinterpret_cast<PyArrayObject*>(made);
}

PyObject* make_array(int dimensions, const npy_intp* shape, int dtype) {
    PyObject* array = PyArray_SimpleNew(dimensions, const_cast<npy_intp*>(shape), dtype);
    if (!array) throw nb::python_error();
    return array;
}

}  // namespace armwise
