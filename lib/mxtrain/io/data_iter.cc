// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/data_iter.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/io/crop_resize.h"

namespace mxtrain {
namespace {

bool Fit(const std::vector<DataDesc>& descs, const std::vector<NDArray>& arrays) {
  return std::ranges::equal(descs, arrays, {}, &DataDesc::array_shape, &NDArray::shape);
}

}  // namespace

TShape DataDesc::array_shape() const {
  return pixels ? TShape{shape[0], shape[2], shape[3], shape[1]} : shape;
}

DType DataDesc::array_type() const {
  return pixels ? DType::kUint8 : type;
}

std::vector<float> InputValues(const DataDesc& desc, const NDArray& array) {
  if (!desc.pixels) return array.ToVector();
  const NDArray on_host = array.ToHost();
  on_host.WaitToRead();
  const auto channels = static_cast<int>(desc.shape[1]);
  const PixelLevels levels = LevelsOf(*desc.pixels, channels, desc.name);
  const auto size = static_cast<size_t>(desc.shape[1] * desc.shape[2] * desc.shape[3]);
  const uint8_t* pixels = on_host.data().dptr<uint8_t>();
  std::vector<float> values(static_cast<size_t>(desc.shape.Size()));
  for (size_t at = 0; at < values.size(); at += size)
    io::PixelsToPlanes({pixels + at, size}, channels, levels, values.data() + at);
  return values;
}

size_t IndexOfSize(std::span<const BatchArrays> sizes, const DataBatch& batch) {
  if (sizes.size() == 1) return 0;
  const auto found = std::ranges::find_if(sizes, [&batch](const BatchArrays& arrays) {
    return Fit(arrays.data, batch.data) && Fit(arrays.label, batch.label);
  });
  if (found == sizes.end()) {
    Throw(ErrorKind::kBug, "a batch of shape {} is of none of the {} sizes of its iterator",
          batch.data[0].shape().ToString(), sizes.size());
  }
  return static_cast<size_t>(found - sizes.begin());
}

BatchArrays ArraysOfBatch(const DataIter& iter, const DataBatch& batch) {
  std::vector<BatchArrays> sizes = iter.sizes();
  return std::move(sizes[IndexOfSize(sizes, batch)]);
}

}  // namespace mxtrain
