// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays that travel together between ranks, in one buffer.
#include <map>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// Keys of one owner and one type, from the highest to the lowest. A large one is alone.
struct Parcel {
  int owner = 0;
  DType type = DType::kFloat32;
  std::vector<int> keys;
  int64_t bytes = 0;  // of the buffer
};

// The owner of each key (shards.h).
std::map<int, int> PlanOwners(const std::map<int, TensorSpec>& specs, int ranks);
std::vector<Parcel> PlanParcels(const std::map<int, TensorSpec>& specs,
                                const std::map<int, int>& owners);

// An array for each key, in host memory. A single one has no buffer but itself.
struct ParcelArrays {
  NDArray whole;
  std::vector<NDArray> parts;

  ParcelArrays(Runtime& runtime, const Parcel& parcel, const std::map<int, TensorSpec>& specs);
};

}  // namespace mxtrain
