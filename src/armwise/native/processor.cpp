// The extension module _processor: names the variant of the kernels for this processor. It runs on every processor.
#include <Python.h>

namespace {

// The name of the fastest variant that the processor and the operating system support.
PyObject* best_variant(PyObject*, PyObject*) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return PyUnicode_FromString("v3");
#endif
    return PyUnicode_FromString("baseline");
}

PyMethodDef functions[] = {
    {"best_variant", best_variant, METH_NOARGS, "Return the name of the fastest variant that this processor supports."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_processor", "The choice of a variant of the kernels for this processor.", 0, functions,
    nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit__processor() { return PyModuleDef_Init(&module); }
