// SPDX-License-Identifier: Apache-2.0
#pragma once
// The objects of an image that was looked at in tiles.
#include <vector>

#include "app/tasks/detection/found_boxes.h"
#include "mxtrain/io/tiles.h"

namespace mxtrain::tasks {

// Boxes of different tiles are of one object if they are of one class and agree where both tiles
// look: the parts of them there have an IoU of at least a half, or one ends with its tile and lies
// in the other. Each side of the object's box is
// that of the best of its boxes that does not end there with its tile, and if all do, the
// outermost.
class JoinedBoxes {
 public:
  // The boxes that were found in a tile, in pixels of the file, cut at its edges.
  void Add(const io::Tile& tile, std::vector<FoundBox> found);
  // Of the image, the best first; afterwards there are none.
  std::vector<FoundBox> Take();

 private:
  struct TileBox {
    FoundBox box;
    io::Tile tile;
    size_t number;  // of the tile
  };
  struct Sides {
    bool left = false, top = false, right = false, bottom = false;
  };
  static Sides CutSides(const TileBox& of);
  static bool IsPieceOf(const TileBox& a, const TileBox& b);
  static bool AreOfOneObject(const TileBox& a, const TileBox& b);
  using Object = std::vector<size_t>;  // its boxes, the best first, each of another tile
  bool ShareTile(const Object& a, const Object& b) const;
  std::vector<std::vector<size_t>> Neighbours() const;
  FoundBox Joined(const Object& object) const;

  std::vector<TileBox> boxes_;
  std::vector<io::Box> tiles_;
};

}  // namespace mxtrain::tasks
