// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/internal/place_map.h"

#include "mxtrain/base/error.h"
#include "mxtrain/device/blocked_layout.h"

namespace mxtrain::cuda {

PlaceMap::PlaceMap(const TensorSpec& spec) : ndim_(spec.shape.ndim()) {
  const auto* blocked = dynamic_cast<const BlockedLayout*>(spec.layout.desc());
  if (!spec.layout.plain() && !blocked)
    Throw(ErrorKind::kBug, "layout {} is not supported on the GPU", spec.layout.Name());
  const TShape padded = blocked ? blocked->PaddedShape(spec.shape) : spec.shape;
  size_ = padded.Size();
  for (int axis = 0; axis < ndim_; ++axis) {
    length_[axis] = spec.shape[axis];
    const int from = blocked ? blocked->order()[static_cast<size_t>(axis)] : axis;
    digits_[num_digits_++] = {from, blocked ? padded[from] / blocked->BlockOf(from) : padded[from],
                              1};
  }
  if (blocked) {
    if (ndim_ + blocked->blocks().size() > kMaxDigits)
      Throw(ErrorKind::kBug, "layout {} has too many blocks", spec.layout.Name());
    for (const BlockedLayout::Block& block : blocked->blocks())
      digits_[num_digits_++] = {block.axis, block.size, 1};
  }
  // A digit has the weight of the product of the digits of its axis to the right.
  for (int d = 0; d < num_digits_; ++d) {
    for (int right = d + 1; right < num_digits_; ++right) {
      if (digits_[right].axis == digits_[d].axis) digits_[d].weight *= digits_[right].size;
    }
  }
}

}  // namespace mxtrain::cuda
