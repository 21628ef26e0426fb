// The extension module _processor: which variant of the kernels the processor at hand runs. Compiled for any processor.
#include <Python.h>

namespace {

// What the processor, and the operating system, can run: the name of the best variant.
PyObject* best_variant(PyObject*, PyObject*) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return PyUnicode_FromString("v3");
#endif
    return PyUnicode_FromString("baseline");
}

PyMethodDef functions[] = {
    {"best_variant", best_variant, METH_NOARGS, "The variant that this machine's processor runs fastest."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_processor", "Which variant of the kernels suits this processor.", 0, functions,
    nullptr, nullptr, nullptr, nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit__processor() { return PyModuleDef_Init(&module); }
