// Eigenvalues and eigenvectors of a symmetric matrix: Householder's tridiagonal form, then implicit QL steps.
//
// It uses only + - x / and square roots, in a fixed order: the same bits on every machine.
#pragma once

#include "choice.hpp"

#include <vector>

namespace armwise {

class SymmetricEigen {
  public:
    std::vector<double> values;   // ascending
    std::vector<double> vectors;  // row i is the eigenvector of values[i]

    explicit SymmetricEigen(Index n)
        : values(std::size_t(n)), vectors(std::size_t(n * n)), n_(n), A_(std::size_t(n * n)), off_(std::size_t(n)),
          beta_(std::size_t(n)), w_(std::size_t(n)), order_(std::size_t(n)) {}

    // `matrix` is (n, n), symmetric, finite, and given in full.
    void decompose(const double* matrix);

  private:
    Index n_;
    std::vector<double> A_, off_, beta_, w_;
    std::vector<Index> order_;
    std::vector<double> sorted_;

    // T = Q'AQ: diagonal into values, the line below it into off_, Q' into vectors.
    void tridiagonalise();
    // QL steps with Wilkinson's shift until eigenvalue l has converged.
    void descend(Index l);
    void sort();
};

}  // namespace armwise
