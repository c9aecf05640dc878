// SPDX-License-Identifier: Apache-2.0
#include "app/inference/published_arrays.h"

#include <algorithm>

#include "mxtrain/train/weights.h"

namespace mxtrain::inference {

bool HaveUsualNames(const std::vector<PublishedArray>& arrays) {
  return std::ranges::all_of(arrays,
                             [](const PublishedArray& array) { return array.own == array.usual; });
}

std::map<std::string, NDArray> RenamedArrays(const std::vector<PublishedArray>& arrays,
                                             const Model& model) {
  std::map<std::string, NDArray> renamed;
  for (const PublishedArray& array : arrays) {
    const NDArray& own = model.args.at(array.own);
    if (array.transposed) {
      renamed[array.theirs] = TransposedMatrix(own);
    } else {
      renamed[array.theirs] = array.shape.has_rank() ? own.ToPlain().Reshape(array.shape) : own;
    }
  }
  return renamed;
}

}  // namespace mxtrain::inference
