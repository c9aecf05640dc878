#pragma once
// How numbers of data were brought to a mean of 0 and a standard deviation of 1, and back.
#include <cstdint>
#include <vector>

namespace mxtrain {

// By element of an example: value = mean + std * standardized.
struct Standardization {
  std::vector<double> mean, std;

  // Whole examples, one after the other, in place.
  void Restore(std::vector<float>* values) const {
    for (size_t i = 0; i < values->size(); ++i) {
      const size_t k = i % mean.size();
      (*values)[i] = static_cast<float>(mean[k] + std[k] * static_cast<double>((*values)[i]));
    }
  }
};

}  // namespace mxtrain
