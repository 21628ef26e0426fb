// Working memory of a call: on the stack up to MAX_ON_STACK numbers, on the heap beyond.
#pragma once

#include <cstddef>
#include <memory>

namespace armwise {

class Scratch {
  public:
    // `n` numbers, aligned to a cache line; the first `zeros` are 0.
    explicit Scratch(std::ptrdiff_t n, std::ptrdiff_t zeros = 0) {
        if (n > MAX_ON_STACK) {
            heap_.reset(new double[std::size_t(n) + 8]);
            const auto address = reinterpret_cast<std::uintptr_t>(heap_.get());
            data_ = heap_.get() + (64 - address % 64) % 64 / 8;
        }
        for (std::ptrdiff_t i = 0; i < zeros; ++i) data_[i] = 0.0;
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    double* data() { return data_; }

  private:
    static constexpr std::ptrdiff_t MAX_ON_STACK = 1024;
    alignas(64) double stack_[MAX_ON_STACK];
    std::unique_ptr<double[]> heap_;
    double* data_ = stack_;
};

}  // namespace armwise
