// The extension module: one submodule per file of kernels.
#define ARMWISE_IMPORTS_NUMPY
#include "array.hpp"
#include "modules.hpp"

namespace {

int import_numpy() {
    import_array1(-1);
    return 0;
}

// What the processor, and the operating system, can run: the name of the best variant.
const char* best_variant() {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return "v3";
#endif
    return "baseline";
}

}  // namespace

NB_MODULE(ARMWISE_MODULE, m) {
    nb::set_leak_warnings(false);  // an agent that lives until the interpreter ends is no leak worth a message
    if (import_numpy() < 0) throw nb::python_error();
    nb::set_leak_warnings(false);  // a thread that still sleeps when the program ends holds what it holds
    m.doc() = "The kernels of armwise.numerics, compiled for one kind of processor.";
    m.def("best_variant", best_variant, "The variant that this machine's processor runs fastest.");
#define ARMWISE_BIND(name)                        \
    {                                             \
        nb::module_ sub = m.def_submodule(#name); \
        bind_##name(sub);                         \
    }
    ARMWISE_MODULES(ARMWISE_BIND)
}
