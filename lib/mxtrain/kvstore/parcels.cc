// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/internal/parcels.h"

#include <algorithm>

#include "mxtrain/kvstore/internal/rounded_gradient.h"
#include "mxtrain/kvstore/shards.h"

namespace mxtrain {
namespace {

// As the buckets of dist_sync.
constexpr int64_t kParcelBytes = int64_t{1} << 20;

}  // namespace

std::map<int, int> PlanOwners(const std::map<int, TensorSpec>& specs, int ranks) {
  std::vector<int64_t> bytes;
  for (const auto& [key, spec] : specs) bytes.push_back(spec.Bytes());
  const std::vector<int> owners = AssignOwners(bytes, ranks);
  std::map<int, int> planned;
  size_t next = 0;
  for (const auto& [key, spec] : specs) planned[key] = owners[next++];
  return planned;
}

std::vector<Parcel> PlanParcels(const std::map<int, TensorSpec>& specs,
                                const std::map<int, int>& owners) {
  std::vector<Parcel> parcels;
  for (auto key = specs.rbegin(); key != specs.rend(); ++key) {
    const TensorSpec& spec = key->second;
    const int64_t bytes = AlignedInBuffer(spec.Bytes());
    const int owner = owners.at(key->first);
    auto parcel = std::find_if(parcels.begin(), parcels.end(), [&](const Parcel& p) {
      return p.owner == owner && p.type == spec.type && p.bytes + bytes <= kParcelBytes;
    });
    if (parcel == parcels.end()) parcel = parcels.insert(parcel, {owner, spec.type, {}, 0});
    parcel->keys.push_back(key->first);
    parcel->bytes += bytes;
  }
  return parcels;
}

ParcelArrays::ParcelArrays(Runtime& runtime, const Parcel& parcel,
                           const std::map<int, TensorSpec>& specs) {
  if (parcel.keys.size() == 1) {
    const TensorSpec& spec = specs.at(parcel.keys[0]);
    whole = NDArray::Zeros(runtime, spec.shape, spec.type, Context::cpu(), spec.layout);
    parts = {whole};
    return;
  }
  whole = NDArray::Zeros(runtime, TShape({parcel.bytes / SizeOf(parcel.type)}), parcel.type);
  int64_t offset = 0;
  for (int key : parcel.keys) {
    const TensorSpec& spec = specs.at(key);
    parts.emplace_back(whole, offset, spec.shape, spec.type, spec.layout);
    offset += AlignedInBuffer(spec.Bytes());
  }
}

}  // namespace mxtrain
