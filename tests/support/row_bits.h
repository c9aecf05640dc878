// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a processor gives a row the same bits in batches of all sizes.
#include <random>
#include <string>
#include <vector>

#include "mxtrain/operator/imperative.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {

// oneDNN's products of matrices in AVX2 add the terms of an output in an order that depends on the
// number of rows; with AVX-512 they do not. Where they do, validation of ranks, whose batches are
// smaller, and features computed in other batches agree with the undivided run only nearly.
inline bool RowsDependOnBatch() {
  static const bool depend = [] {
    Runtime runtime({}, BuiltinOperators());
    constexpr int64_t kRows = 8, kInputs = 24, kHidden = 16;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    const auto array = [&](const TShape& shape) {
      std::vector<float> values(static_cast<size_t>(shape.Size()));
      for (float& value : values) value = normal(random);
      return NDArray::FromVector(runtime, shape, values);
    };
    const NDArray data = array({kRows, kInputs}), weight = array({kHidden, kInputs});
    const auto product = [&](const NDArray& rows) {
      const NDArray in[] = {rows, weight};
      return Invoke("FullyConnected", in,
                    {{"num_hidden", std::to_string(kHidden)}, {"no_bias", "True"}})[0]
          .ToVector();
    };
    const std::vector<float> whole = product(data);
    for (int64_t rows = 1; rows < kRows; ++rows) {
      const std::vector<float> part = product(data.Slice(0, rows));
      if (!std::equal(part.begin(), part.end(), whole.begin())) return true;
    }
    return false;
  }();
  return depend;
}

}  // namespace mxtrain::test
