// The extension module: one submodule per file of kernels.
#define ARMWISE_IMPORTS_NUMPY
#include "array.hpp"
#include "modules.hpp"

namespace {

int import_numpy() {
    import_array1(-1);
    return 0;
}

}  // namespace

NB_MODULE(ARMWISE_MODULE, m) {
    nb::set_leak_warnings(false);  // agents, and objects of daemon threads, may live until the interpreter ends
    if (import_numpy() < 0) throw nb::python_error();
    m.doc() = "The kernels of armwise.native, compiled for one kind of processor.";
#define ARMWISE_BIND(name)                        \
    {                                             \
        nb::module_ sub = m.def_submodule(#name); \
        bind_##name(sub);                         \
    }
    ARMWISE_MODULES(ARMWISE_BIND)
}
