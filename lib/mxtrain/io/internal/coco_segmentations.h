// SPDX-License-Identifier: Apache-2.0
#pragma once
// What "segmentation" says of the annotations of a COCO file, kept in few bytes until an image is
// read. Private to io.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/expected.h"
#include "mxtrain/io/internal/pixel_runs.h"

namespace mxtrain::io {

// All those of a file, one after the other. After construction calls may come from any thread.
class CocoSegmentations {
 public:
  static constexpr uint64_t kNone = 0;  // of an annotation without one

  // Each returns where the segmentation is. Of polygons[i] the corners are corners[...] up to
  // ends[i]; counts add up to height * width; `reason`: why it is none, for the reader of the
  // image.
  uint64_t AddPolygons(const std::vector<GridCorner>& corners, const std::vector<size_t>& ends);
  uint64_t AddCounts(int64_t height, int64_t width, const std::vector<int64_t>& counts);
  uint64_t AddBad(std::string_view reason);

  // The pixels of the segmentation in an image of this size, sorted. Refuses kNone, what was bad,
  // and counts of another size.
  Expected<PixelRuns, Refusal> Read(uint64_t at, int height, int width) const;

 private:
  enum Form : char { kPolygons, kCounts, kBad };
  uint64_t Begin(Form form);
  void Put(int64_t number);  // small magnitudes take few bytes
  int64_t Take(uint64_t* at) const;

  std::string bytes_ = " ";  // of kNone
};

// Takes one segmentation from the events of a parser. `below`: the brackets that are open within
// it, "" for the value itself.
class CocoSegmentationReader {
 public:
  void Open(std::string_view below, char bracket);
  void Key(std::string_view below, std::string_view name);
  // NaN: something that is neither number nor text.
  void Number(std::string_view below, double value);
  void Text(std::string_view below, std::string_view value);
  // Adds what was read since the last call; the reader is empty again.
  uint64_t Finish(CocoSegmentations* all);

 private:
  enum Part { kOther, kCounts, kSize };
  void Clear();
  void AddCoordinate(double value);
  void Refuse(std::string reason);
  void EndPolygon();
  std::string WhyBadCounts() const;  // "" if they are not

  std::string bad_;
  bool is_object_ = false, has_x_ = false, in_polygon_ = false;
  GridCorner corner_;
  std::vector<GridCorner> corners_;
  std::vector<size_t> ends_;  // of the polygons
  Part part_ = kOther;
  std::vector<int64_t> counts_, size_;
};

}  // namespace mxtrain::io
