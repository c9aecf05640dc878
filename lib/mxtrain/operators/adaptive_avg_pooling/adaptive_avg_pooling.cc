// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/adaptive_avg_pooling/adaptive_avg_pooling.h"

#include "mxtrain/operator/images.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {
namespace {

constexpr int64_t kLongest = int64_t{1} << 30;  // products of two lengths stay within int64_t

// The number of windows along axis 0 or 1 of the grid.
int64_t WindowsOf(const TShape& output_size, int axis) {
  return output_size.ndim() == 0 ? 1 : output_size[output_size.ndim() == 1 ? 0 : axis];
}

}  // namespace

void AdaptiveAvgPoolingProperty::Check() {
  const TShape& size = param_.output_size;
  bool good = size.ndim() <= 2;
  for (int axis = 0; good && axis < 2; ++axis)
    good = WindowsOf(size, axis) >= 1 && WindowsOf(size, axis) <= kLongest;
  if (!good) {
    Throw(ErrorKind::kConfig,
          "{}: output_size = {}: expected (h, w), one number for both, or (); each from 1 to {}",
          TypeString(), size.ToTuple(), kLongest);
  }
}

bool AdaptiveAvgPoolingProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                            std::vector<TShape>*) const {
  TShape &data = (*in)[0], &output = (*out)[0];
  UnifyImages(&data, TypeString(), "data");
  for (int axis = 2; axis < 4; ++axis) {
    if (data[axis] == 0 || data[axis] > kLongest) {
      Throw(ErrorKind::kConfig, "{}: axis {} of data {} must have a length from 1 to {}",
            TypeString(), axis, data.ToString(), kLongest);
    }
  }
  UnifyShape(
      TShape{data[0], data[1], WindowsOf(param_.output_size, 0), WindowsOf(param_.output_size, 1)},
      &output, TypeString(), "output");
  data[0] = output[0];
  data[1] = output[1];
  return data.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(adaptive_avg_pooling, registry) {
  registry.AddProperty("AdaptiveAvgPooling2D", {"_contrib_AdaptiveAvgPooling2D"},
                       [] { return std::make_unique<mxtrain::AdaptiveAvgPoolingProperty>(); });
}
