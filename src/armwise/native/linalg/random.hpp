// numpy's random stream in compiled code: the same numbers as the Generator's methods.
#pragma once

#include "array.hpp"

#include <numpy/random/bitgen.h>
extern "C" {
#include <numpy/random/distributions.h>
}

namespace armwise {

// A numpy.random.Generator through the C interface of its bit generator. Its lock is not taken: one thread uses an agent.
class Generator {
  public:
    double random() const { return bits_->next_double(bits_->state); }
    double standard_normal() const { return random_standard_normal(bits_); }
    double beta(double a, double b) const { return random_beta(bits_, a, b); }

    bitgen_t* bits_ = nullptr;
};

}  // namespace armwise

namespace nanobind::detail {

template <> struct type_caster<armwise::Generator> {
    NB_TYPE_CASTER(armwise::Generator, const_name("numpy.random.Generator"))

    bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
        PyObject* bits = PyObject_GetAttrString(source.ptr(), "bit_generator");
        PyObject* capsule = bits ? PyObject_GetAttrString(bits, "capsule") : nullptr;
        if (capsule) value.bits_ = static_cast<bitgen_t*>(PyCapsule_GetPointer(capsule, "BitGenerator"));
        Py_XDECREF(capsule);  // the bit generator, which the Generator owns, owns the pointer's target
        Py_XDECREF(bits);
        PyErr_Clear();
        return value.bits_ != nullptr;
    }
    static handle from_cpp(const armwise::Generator&, rv_policy, cleanup_list*) noexcept { return handle(); }
};

}  // namespace nanobind::detail
