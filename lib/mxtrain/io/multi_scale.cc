// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/multi_scale.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/io/random_stream.h"

namespace mxtrain::io {
namespace {

int Shorter(ImageSize size) {
  return std::min(size.height, size.width);
}

// side * to / from, rounded.
int64_t InProportion(int64_t side, int64_t from, int64_t to) {
  return std::max<int64_t>((side * to + from / 2) / from, 1);
}

// A side of a square or of an image's shorter side, or (height, width).
TShape Scaled(const TShape& named, ImageSize usual, ImageSize size) {
  if (named.ndim() == 2)
    return {InProportion(named[0], usual.height, size.height),
            InProportion(named[1], usual.width, size.width)};
  return {InProportion(named[0], Shorter(usual), Shorter(size))};
}

}  // namespace

size_t MultiScale::Draw(uint64_t seed, int64_t epoch, int64_t batch) const {
  if (chains.size() == 1) return 0;
  if (epochs >= 0 && epoch >= epochs) return usual;
  RandomStream random(seed, epoch, batch / batches, "io.multi_scale");
  return static_cast<size_t>(random.Below(std::ssize(chains)));
}

std::vector<ImageSize> SizesBeside(ImageSize usual, double least, double most, int64_t multiple) {
  MXTRAIN_ASSERT(usual.known() && multiple >= 1 && least > 0 && least <= most);
  const int64_t shorter = Shorter(usual), longer = std::max(usual.height, usual.width);
  const auto of = [&](double factor) { return factor * static_cast<double>(shorter); };
  std::vector<ImageSize> sizes;
  const auto step = static_cast<double>(multiple);
  for (auto k = static_cast<int64_t>(std::ceil(of(least) / step - 1e-9));
       static_cast<double>(k * multiple) <= of(most) + 1e-6; ++k) {
    const int64_t side = k * multiple;
    if (side == shorter || side <= 0) continue;
    const int64_t other = std::max(InProportion(longer * k, shorter, 1) * multiple, side);
    const bool upright = usual.height > usual.width;
    sizes.push_back(
        {static_cast<int>(upright ? other : side), static_cast<int>(upright ? side : other)});
  }
  sizes.push_back(usual);
  std::ranges::sort(sizes, {}, [](ImageSize size) { return int64_t{size.height} * size.width; });
  return sizes;
}

std::vector<TransformSpec> ScaledTransforms(const std::vector<TransformSpec>& chain,
                                            ImageSize usual, ImageSize size) {
  std::vector<TransformSpec> scaled = chain;
  for (TransformSpec& spec : scaled) {
    spec.kwargs = NamedKwargs(spec);
    for (auto& [key, text] : spec.kwargs) {
      if (key != "size") continue;
      TShape named;
      params::Parse(text, &named);
      text = params::Print(Scaled(named, usual, size));
    }
  }
  const ImageSize result = Augmenter(scaled, 3).OutputSize({});
  if (result.height == size.height && result.width == size.width) return scaled;
  const std::string made = result.known() ? format("of {}x{}", result.height, result.width)
                                          : "whose size differs from image to image";
  Throw(ErrorKind::kConfig, "for {}x{} instead of {}x{}, the transforms make images {}",
        size.height, size.width, usual.height, usual.width, made);
}

}  // namespace mxtrain::io
