// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/pixel_levels.h"

#include "mxtrain/base/error.h"
#include "mxtrain/base/params.h"

namespace mxtrain {
namespace {

std::vector<double> PerChannel(std::vector<double> values, const char* name, int channels,
                               std::string_view who) {
  if (values.size() == 1) values.resize(static_cast<size_t>(channels), values[0]);
  if (values.size() != static_cast<size_t>(channels)) {
    Throw(ErrorKind::kConfig, "{}: {} has {} numbers, but the images have {}", who, name,
          values.size(), Counted(channels, "channel"));
  }
  return values;
}

}  // namespace

PixelLevels LevelsOf(const PixelNormalization& normalization, int channels, std::string_view who) {
  MXTRAIN_ASSERT(channels <= PixelLevels::kMostChannels);
  const std::vector<double> mean = PerChannel(normalization.mean, "mean", channels, who),
                            std = PerChannel(normalization.std, "std", channels, who);
  PixelLevels levels;
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    if (!(std[c] > 0))
      Throw(ErrorKind::kConfig, "{}: std = {}: expected positive numbers", who, params::Print(std));
    levels.scale[c] = static_cast<float>(1 / (255 * std[c]));
    levels.offset[c] = static_cast<float>(-mean[c] / std[c]);
    levels.by_255 = levels.by_255 && mean[c] == 0 && std[c] == 1;
  }
  return levels;
}

}  // namespace mxtrain
