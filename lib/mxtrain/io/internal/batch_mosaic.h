// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mosaic: examples made of parts of four (Bochkovskiy et al., arXiv 2004.10934, section 3.3), so
// that objects appear in other surroundings, cut by edges that are not those of an image.
//
// The examples of a batch are taken four at a time, in a shuffled epoch any four. A point of the
// middle half of the image divides it into quarters; quarter q of example i becomes that of example
// (i + q) % 4, in place. So every pixel of the four is seen once, at its size: what changes sizes
// are transforms. Boxes are cut at the quarters as transforms cut them at the edges of an image. A
// function of (seed, epoch, batch), independent of threads. Private to io.
#include <cstdint>
#include <span>
#include <vector>

#include "mxtrain/base/shape.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/internal/example_loader.h"

namespace mxtrain::io {

struct MosaicOptions {
  double probability = 0;  // of each four examples
  int64_t epochs = -1;     // number of first epochs with it; negative: all
};

// Immutable: calls may come from any thread.
class BatchMosaic {
 public:
  static constexpr int kParts = 4;

  BatchMosaic(const MosaicOptions& options, uint64_t seed) : options_(options), seed_(seed) {}

  // Throws kConfig unless the data are images, and labels have places in them.
  static void Check(const Source& source);
  // Of the first `count` rows of a batch of float32, in place; the last `count` % 4 are left alone.
  // Labels of boxes have room for those of four examples (LoaderOptions::box_rows).
  void Apply(int64_t epoch, int64_t batch, int64_t count, const ExampleLoader& loader,
             const BatchPointers& rows) const;

 private:
  MosaicOptions options_;
  uint64_t seed_;
};

}  // namespace mxtrain::io
