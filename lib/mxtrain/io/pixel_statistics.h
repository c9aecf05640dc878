// SPDX-License-Identifier: Apache-2.0
#pragma once
// The statistics behind `normalize: auto`.
#include <vector>

#include "mxtrain/io/source.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::io {

// Of pixel / 255 (of a deep image: / 65535), per channel.
struct PixelStatistics {
  std::vector<double> mean, std;
  int64_t images = 0;  // measured
};

// Whether the chain ends with `normalize: auto`.
MXTRAIN_API bool WantsStatistics(const std::vector<TransformSpec>& specs);
// Measures all images of the source, or `most` evenly spaced ones, at full size; unreadable ones
// are skipped. Deterministic. `channels`: 1 or 3; `bits`: see DecodeOptions. Throws kData if no
// image can be read, kConfig if the source has none.
MXTRAIN_API PixelStatistics MeasurePixels(const Source& source, int channels, int bits = 8,
                                          int64_t most = 1000);
// Replaces `auto` by the numbers. A constant channel gets std 1.
MXTRAIN_API std::vector<TransformSpec> WithStatistics(std::vector<TransformSpec> specs,
                                                      const PixelStatistics& statistics);

}  // namespace mxtrain::io
