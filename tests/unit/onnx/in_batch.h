// SPDX-License-Identifier: Apache-2.0
#pragma once
// The batches that the tests of ONNX run.
#include <span>
#include <vector>

#include "mxtrain/base/shape.h"

namespace mxtrain::test {

inline constexpr int64_t kBatch = 3;  // the export infers shapes for others

// `example` behind an axis of the batch.
inline TShape InBatch(const TShape& example, int64_t batch = kBatch) {
  std::vector<int64_t> dims{batch};
  dims.insert(dims.end(), example.begin(), example.end());
  return TShape(std::span<const int64_t>(dims));
}

}  // namespace mxtrain::test
