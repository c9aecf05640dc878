// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which tiles of an image were seen, where the tiles of one image come after those of another.
#include "mxtrain/io/tiles.h"

namespace mxtrain::tasks {

class TileCount {
 public:
  // Returns whether it is the first of its image. Those of an image before are forgotten: one of
  // them could not be read.
  bool Add(const io::Tile& tile) {
    const bool begins = tile.image != image_;
    seen_ = begins ? 1 : seen_ + 1;
    image_ = tile.image, count_ = tile.count;
    return begins;
  }
  // Whether all tiles of the image were added.
  bool complete() const { return seen_ == count_; }

 private:
  int64_t image_ = -1, seen_ = 0, count_ = 0;
};

}  // namespace mxtrain::tasks
