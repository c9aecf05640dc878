// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/detection/joined_boxes.h"

#include <algorithm>

namespace mxtrain::tasks {
namespace {

constexpr double kLeastAgreement = 0.5;  // IoU of what two tiles see of an object
constexpr double kLeastCovered = 0.7;    // of a box that ends with its tile, by another
constexpr double kEdge = 1.0 / 32;  // of a tile: a box that comes so near to its edge ends there

TrueBox AsTruth(const FoundBox& box) {
  return {box.label, box.left, box.top, box.right, box.bottom};
}

// The part of a box within another; empty (right <= left or bottom <= top) if there is none.
FoundBox Within(FoundBox box, double left, double top, double right, double bottom) {
  box.left = std::max(box.left, left), box.top = std::max(box.top, top);
  box.right = std::min(box.right, right), box.bottom = std::min(box.bottom, bottom);
  return box;
}

double AreaOf(const FoundBox& box) {
  return (box.right - box.left) * (box.bottom - box.top);
}

bool IsEmpty(const FoundBox& box) {
  return box.right <= box.left || box.bottom <= box.top;
}

}  // namespace

void JoinedBoxes::Add(const io::Tile& tile, std::vector<FoundBox> found) {
  const double right = tile.box.x + tile.box.width, bottom = tile.box.y + tile.box.height;
  for (const FoundBox& box : found) {
    const FoundBox inside = Within(box, tile.box.x, tile.box.y, right, bottom);
    if (!IsEmpty(inside)) boxes_.push_back({inside, tile, tiles_.size()});
  }
  tiles_.push_back(tile.box);
}

JoinedBoxes::Sides JoinedBoxes::CutSides(const TileBox& of) {
  const FoundBox& box = of.box;
  const io::Tile& tile = of.tile;
  const double near_x = kEdge * tile.box.width, near_y = kEdge * tile.box.height;
  const int right = tile.box.x + tile.box.width, bottom = tile.box.y + tile.box.height;
  return {tile.box.x > 0 && box.left<tile.box.x + near_x, tile.box.y> 0 &&
              box.top < tile.box.y + near_y,
          right < tile.width && box.right > right - near_x,
          bottom < tile.height && box.bottom > bottom - near_y};
}

// Whether `a` ends with its tile and lies in `b`: what is left of an object is not judged well by
// the tile that sees less of it.
bool JoinedBoxes::IsPieceOf(const TileBox& a, const TileBox& b) {
  const Sides cut = CutSides(a);
  if (!(cut.left || cut.top || cut.right || cut.bottom)) return false;
  const FoundBox both = Within(a.box, b.box.left, b.box.top, b.box.right, b.box.bottom);
  return !IsEmpty(both) && AreaOf(both) >= kLeastCovered * AreaOf(a.box);
}

bool JoinedBoxes::AreOfOneObject(const TileBox& a, const TileBox& b) {
  if (a.box.label != b.box.label) return false;
  if (IsPieceOf(a, b) || IsPieceOf(b, a)) return true;
  const io::Box &of_a = a.tile.box, &of_b = b.tile.box;
  const double left = std::max(of_a.x, of_b.x), top = std::max(of_a.y, of_b.y),
               right = std::min(of_a.x + of_a.width, of_b.x + of_b.width),
               bottom = std::min(of_a.y + of_a.height, of_b.y + of_b.height);
  const FoundBox part_a = Within(a.box, left, top, right, bottom),
                 part_b = Within(b.box, left, top, right, bottom);
  if (IsEmpty(part_a) || IsEmpty(part_b)) return false;
  return IntersectionOverUnion(part_a, AsTruth(part_b)) >= kLeastAgreement;
}

bool JoinedBoxes::ShareTile(const Object& a, const Object& b) const {
  return std::ranges::any_of(a, [&](size_t i) {
    return std::ranges::any_of(b, [&](size_t k) { return boxes_[i].number == boxes_[k].number; });
  });
}

// Of each tile those that overlap it.
std::vector<std::vector<size_t>> JoinedBoxes::Neighbours() const {
  std::vector<std::vector<size_t>> neighbours(tiles_.size());
  for (size_t i = 0; i < tiles_.size(); ++i) {
    for (size_t k = 0; k < tiles_.size(); ++k) {
      const io::Box &a = tiles_[i], &b = tiles_[k];
      if (i != k && a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height &&
          b.y < a.y + a.height)
        neighbours[i].push_back(k);
    }
  }
  return neighbours;
}

FoundBox JoinedBoxes::Joined(const Object& object) const {
  FoundBox joined = boxes_[object.front()].box;
  Sides known;
  for (const size_t part : object) {
    const TileBox& of = boxes_[part];
    const Sides cut = CutSides(of);
    const auto take = [](bool is_cut, bool* is_known, double own, double outer, double* side) {
      if (!is_cut && !*is_known) *side = own;
      if (is_cut && !*is_known) *side = outer;
      *is_known = *is_known || !is_cut;
    };
    take(cut.left, &known.left, of.box.left, std::min(joined.left, of.box.left), &joined.left);
    take(cut.top, &known.top, of.box.top, std::min(joined.top, of.box.top), &joined.top);
    take(cut.right, &known.right, of.box.right, std::max(joined.right, of.box.right),
         &joined.right);
    take(cut.bottom, &known.bottom, of.box.bottom, std::max(joined.bottom, of.box.bottom),
         &joined.bottom);
  }
  return joined;
}

std::vector<FoundBox> JoinedBoxes::Take() {
  const auto by_score = [](const TileBox& a, const TileBox& b) {
    return a.box.score > b.box.score;
  };
  std::ranges::stable_sort(boxes_, by_score);
  const std::vector<std::vector<size_t>> neighbours = Neighbours();
  std::vector<Object> objects;
  std::vector<size_t> object_of;                           // of each box so far
  std::vector<std::vector<size_t>> placed(tiles_.size());  // of each tile its boxes so far
  for (size_t i = 0; i < boxes_.size(); ++i) {
    // Joins all that it is a part of: two tiles that do not touch each other may see the ends of an
    // object whose middle is in a third.
    Object own{i};
    for (const size_t tile : neighbours[boxes_[i].number]) {
      for (const size_t k : placed[tile]) {
        Object& other = objects[object_of[k]];
        if (other.empty() || !AreOfOneObject(boxes_[i], boxes_[k]) || ShareTile(other, own))
          continue;
        own.insert(own.end(), other.begin(), other.end());
        other.clear();
      }
    }
    placed[boxes_[i].number].push_back(i);
    object_of.push_back(objects.size());
    for (const size_t part : own) object_of[part] = objects.size();
    std::ranges::sort(own);
    objects.push_back(std::move(own));
  }
  std::vector<FoundBox> joined;
  for (const Object& object : objects) {
    if (!object.empty()) joined.push_back(Joined(object));
  }
  std::ranges::stable_sort(joined,
                           [](const FoundBox& a, const FoundBox& b) { return a.score > b.score; });
  boxes_.clear();
  tiles_.clear();
  return joined;
}

}  // namespace mxtrain::tasks
