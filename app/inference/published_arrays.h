// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arrays of a net under the names that a published net of the same form has for them.
#include <map>
#include <string>
#include <vector>

#include "mxtrain/train/model.h"

namespace mxtrain::inference {

struct PublishedArray {
  std::string own, theirs;  // names
  std::string usual;        // what the configuration that comes with the program calls it
  bool transposed = false;  // [in, out] there
  TShape shape;             // there, if it has as many elements in other axes
};

// Whether every array has its usual name, so that the list of names for train.weights.map reads
// back what is written.
bool HaveUsualNames(const std::vector<PublishedArray>& arrays);
// The model's arrays under their names there.
std::map<std::string, NDArray> RenamedArrays(const std::vector<PublishedArray>& arrays,
                                             const Model& model);

}  // namespace mxtrain::inference
