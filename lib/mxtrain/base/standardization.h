// SPDX-License-Identifier: Apache-2.0
#pragma once
// Standardization of data to mean 0 and standard deviation 1, and its inverse.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mxtrain {

// Per element of an example: value = mean + std * standardized.
struct Standardization {
  std::vector<double> mean, std;

  // Transforms consecutive whole examples in place.
  void Restore(std::vector<float>* values) const {
    for (size_t i = 0; i < values->size(); ++i) {
      const size_t k = i % mean.size();
      (*values)[i] = static_cast<float>(mean[k] + std[k] * static_cast<double>((*values)[i]));
    }
  }
};

}  // namespace mxtrain
