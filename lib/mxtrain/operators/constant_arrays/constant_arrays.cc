// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/constant_arrays/constant_arrays.h"

#include <cmath>

#include "mxtrain/operator/registry.h"

namespace mxtrain::constant_arrays {

TShape ArangeParam::ShapeOf() const {
  if (!stop && infer_range) return TShape::OfRank(1);
  const double range = stop ? *stop - start : start;
  const double count = std::max(0.0, std::ceil(range / step));
  if (count * static_cast<double>(repeat) > static_cast<double>(TShape::kMaxSize)) {
    Throw(ErrorKind::kConfig, "_arange: start = {}, stop = {} and step = {} are too many numbers",
          start, params::Print(stop), step);
  }
  return {static_cast<int64_t>(count) * repeat};
}

namespace {

template <typename Property>
void Add(OperatorRegistry& registry, const char* name, const char* description,
         const std::vector<std::string>& aliases = {}) {
  registry.AddProperty(
      name, aliases, [name, description] { return std::make_unique<Property>(name, description); });
}

}  // namespace
}  // namespace mxtrain::constant_arrays

MXTRAIN_OPERATOR(constant_arrays, registry) {
  using namespace mxtrain::constant_arrays;
  Add<ConstantProperty<ConstantParam<0>>>(registry, "_zeros", "an array of zeros");
  Add<ConstantProperty<ConstantParam<1>>>(registry, "_ones", "an array of ones");
  Add<ConstantProperty<FullParam>>(registry, "_full", "an array of one value");
  Add<ConstantProperty<ArangeParam>>(registry, "_arange", "evenly spaced numbers within a range");
  Add<ConstantProperty<LinspaceParam>>(registry, "_linspace", "a number of evenly spaced numbers");
  Add<ConstantProperty<EyeParam>>(registry, "_eye", "a matrix with ones on a diagonal");
  Add<LikeProperty<FullLikeParam>>(
      registry, "full_like", "an array of one value in the shape of another", {"_npi_full_like"});
  Add<LikeProperty<ArangeLikeParam>>(registry, "arange_like",
                                     "evenly spaced numbers in the shape of another array",
                                     {"_contrib_arange_like"});
}
