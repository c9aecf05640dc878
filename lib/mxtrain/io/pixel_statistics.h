#pragma once
// What `normalize: auto` stands for.
#include <vector>

#include "mxtrain/io/source.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::io {

// Of pixel / 255, per channel.
struct PixelStatistics {
  std::vector<double> mean, std;
  int64_t pictures = 0;  // measured
};

// Whether the chain ends with `normalize: auto`.
MXTRAIN_API bool WantsStatistics(const std::vector<TransformSpec>& specs);
// Measures all pictures of the source, or `most` that lie evenly in it, at full size; those that cannot be had are left out. The same
// numbers each time. `channels`: 1 or 3. Throws kData when no picture can be had, kConfig when the source holds none.
MXTRAIN_API PixelStatistics MeasurePixels(const Source& source, int channels, int64_t most = 1000);
// The numbers in place of `auto`. A channel of one value throughout gets the std 1.
MXTRAIN_API std::vector<TransformSpec> WithStatistics(std::vector<TransformSpec> specs, const PixelStatistics& statistics);

}  // namespace mxtrain::io
