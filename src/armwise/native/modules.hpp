// The files of kernels by the names of their submodules: add a line here for a new file.
#pragma once

#include <nanobind/nanobind.h>

#define ARMWISE_MODULES(bind) \
    bind(choice) \
    bind(ridge) \
    bind(thompson) \
    bind(regression) \
    bind(kary) \
    bind(weights) \
    bind(truncated) \
    bind(staged) \
    bind(cofine) \
    bind(kernels) \
    bind(gp) \
    bind(gp_budget) \
    bind(mixture) \
    bind(logistic) \
    bind(experts) \
    bind(policies) \
    bind(likelihood) \
    bind(fits) \
    bind(sequences) \
    bind(spectral) \
    bind(nested) \
    bind(maps) \
    bind(features) \
    bind(tokens) \
    bind(winning) \
    bind(decisions)

#define ARMWISE_DECLARE(name) [[gnu::cold]] void bind_##name(nanobind::module_&);
ARMWISE_MODULES(ARMWISE_DECLARE)
