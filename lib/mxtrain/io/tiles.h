// SPDX-License-Identifier: Apache-2.0
#pragma once
// Large images in tiles: a source whose examples are parts of the images of another one. Labels
// with places (masks, boxes, points, images) are those of the tile, as transforms move them.
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

inline constexpr int kLeastTile = 16;

struct TileOptions {
  int side = 0;     // of a tile, in pixels of the file; at least kLeastTile
  int overlap = 0;  // of two neighbours, at least; at most half a side
};

// `overlap`: an eighth of the side if none is given. Throws kConfig if they are out of range.
MXTRAIN_API TileOptions TilesOf(int64_t side, std::optional<int64_t> overlap);

// Along one axis of an image, in order: where a tile begins, and the part that is nearer to its
// center than to that of another. The parts cover the axis without a gap and do not overlap.
struct TileSpan {
  int begin = 0, length = 0;
  int own_begin = 0, own_end = 0;
  friend bool operator==(const TileSpan&, const TileSpan&) = default;
};
// As few tiles of `side` as cover `length` with that overlap, evenly placed; one of `length` if
// that is not longer than `side`.
MXTRAIN_API std::vector<TileSpan> TilesAlong(int length, const TileOptions& options);

// A part of an image.
struct Tile {
  int64_t image = 0;          // among the examples of the source that is tiled
  Box box;                    // as shown; empty: the size of the image is not known
  Box own;                    // what of it is nearer to its center than to that of another tile
  int height = 0, width = 0;  // of the whole image
  int64_t count = 1;          // tiles of the image, which follow each other
};

// The tiles of every image of `source`, an image after the other, each row by row. Reads the
// headers of all images now. One that cannot be read is a single example, whose error Read throws
// or decoding gives. Names, files and classes of a tile are those of its image; labels are those of
// the file. Throws kConfig for data without images or with several, and for labels that belong to
// the image as a whole (numbers).
MXTRAIN_API std::shared_ptr<const Source> NewTiledSource(std::shared_ptr<const Source> source,
                                                         const TileOptions& options);

}  // namespace mxtrain::io
