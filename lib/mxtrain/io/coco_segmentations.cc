// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/coco_segmentations.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "mxtrain/base/format.h"
#include "mxtrain/io/image.h"

namespace mxtrain::io {
namespace {

constexpr int64_t kMostCount = int64_t{1} << 40;  // of the pixels of an image

constexpr int kPutBits = 7;
constexpr uint64_t kPutGroup = uint64_t{1} << kPutBits;

constexpr std::string_view kNoForm =
    "its segmentation is neither polygons nor {\"counts\": ..., \"size\": [height, width]}";

}  // namespace

uint64_t CocoSegmentations::AddPolygons(const std::vector<GridCorner>& corners,
                                        const std::vector<size_t>& ends) {
  const uint64_t at = Begin(kPolygons);
  Put(std::ssize(ends));
  GridCorner last;
  size_t next = 0;
  for (const size_t end : ends) {
    Put(static_cast<int64_t>(end - next));
    for (; next < end; ++next) {
      Put(corners[next].x - last.x);
      Put(corners[next].y - last.y);
      last = corners[next];
    }
  }
  return at;
}

uint64_t CocoSegmentations::AddCounts(int64_t height, int64_t width,
                                      const std::vector<int64_t>& counts) {
  const uint64_t at = Begin(kCounts);
  Put(height);
  Put(width);
  Put(std::ssize(counts));
  for (const int64_t count : counts) Put(count);
  return at;
}

uint64_t CocoSegmentations::AddBad(std::string_view reason) {
  const uint64_t at = Begin(kBad);
  Put(std::ssize(reason));
  bytes_ += reason;
  return at;
}

Expected<PixelRuns, Refusal> CocoSegmentations::Read(uint64_t at, int height, int width) const {
  if (at == kNone) return Refusal{"it has no segmentation"};
  const auto form = static_cast<Form>(bytes_[at++]);
  PixelRuns runs;
  if (form == kBad) {
    const auto size = static_cast<size_t>(Take(&at));
    return Refusal{bytes_.substr(at, size)};
  }
  if (form == kCounts) {
    const int64_t own_height = Take(&at), own_width = Take(&at);
    if (own_height != height || own_width != width)
      return Refusal{format("its segmentation is of {}x{} pixels, but the image has {}x{}",
                            own_width, own_height, width, height)};
    std::vector<int64_t> counts(static_cast<size_t>(Take(&at)));
    for (int64_t& count : counts) count = Take(&at);
    io::AddCounts(counts, &runs);
    return Union(std::move(runs));
  }
  GridCorner last;
  std::vector<GridCorner> corners;
  for (int64_t polygons = Take(&at); polygons > 0; --polygons) {
    corners.resize(static_cast<size_t>(Take(&at)));
    for (GridCorner& corner : corners) {
      last.x += Take(&at);
      last.y += Take(&at);
      corner = last;
    }
    AddPolygon(corners, height, width, &runs);
    if (runs.size() > 2 * MostRuns(height, width)) runs = Union(std::move(runs));
  }
  return Union(std::move(runs));
}

uint64_t CocoSegmentations::Begin(Form form) {
  bytes_ += form;
  return bytes_.size() - 1;
}

// The sign becomes the lowest bit; then groups of seven bits, the lowest first, all but the last
// marked by the eighth.
void CocoSegmentations::Put(int64_t number) {
  uint64_t rest = static_cast<uint64_t>(number) << 1;
  if (number < 0) rest = ~rest;
  for (; rest >= kPutGroup; rest >>= kPutBits)
    bytes_ += static_cast<char>(kPutGroup | rest % kPutGroup);
  bytes_ += static_cast<char>(rest);
}

int64_t CocoSegmentations::Take(uint64_t* at) const {
  uint64_t number = 0;
  for (int shift = 0;; shift += kPutBits) {
    const auto group = static_cast<uint8_t>(bytes_[(*at)++]);
    number |= (group % kPutGroup) << shift;
    if (group < kPutGroup) break;
  }
  return static_cast<int64_t>(number & 1 ? ~(number >> 1) : number >> 1);
}

void CocoSegmentationReader::Open(std::string_view below, char bracket) {
  if (below.empty()) {
    Clear();
    is_object_ = bracket == '{';
  } else if (below == "[" && bracket == '[') {
    EndPolygon();
    in_polygon_ = true;
  } else if (below == "{" && bracket == '[' && part_ != kOther) {
    (part_ == kCounts ? counts_ : size_).clear();
  } else if (below.front() == '[' || (below == "{" && part_ != kOther)) {
    Refuse(std::string(kNoForm));
  }
}

void CocoSegmentationReader::Key(std::string_view below, std::string_view name) {
  if (below == "{") part_ = name == "counts" ? kCounts : name == "size" ? kSize : kOther;
}

void CocoSegmentationReader::Number(std::string_view below, double value) {
  if (below.empty() && std::isnan(value)) return;  // null
  if (below == "[[") return AddCoordinate(value);
  if (below == "{[" && part_ != kOther) {
    const bool is_count = value >= 0 && value < kMostCount && value == std::floor(value);
    if (!is_count) return Refuse(format("{} in counts or size is not a number of pixels", value));
    (part_ == kCounts ? counts_ : size_).push_back(static_cast<int64_t>(value));
  } else if (below.empty() || below.front() == '[' || (below == "{" && part_ != kOther)) {
    Refuse(std::string(kNoForm));
  }
}

void CocoSegmentationReader::Text(std::string_view below, std::string_view value) {
  if (below == "{" && part_ == kCounts) {
    if (const auto refusal = ReadCounts(value, &counts_))
      Refuse("its counts are damaged: " + refusal->reason);
  } else if (below.empty() || below.front() == '[' || part_ != kOther) {
    Refuse(std::string(kNoForm));
  }
}

uint64_t CocoSegmentationReader::Finish(CocoSegmentations* all) {
  EndPolygon();
  if (is_object_) {
    if (std::string why = WhyBadCounts(); !why.empty()) Refuse(std::move(why));
  }
  uint64_t at = CocoSegmentations::kNone;
  if (!bad_.empty()) {
    at = all->AddBad(bad_);
  } else if (is_object_) {
    at = all->AddCounts(size_[0], size_[1], counts_);
  } else if (!ends_.empty()) {
    at = all->AddPolygons(corners_, ends_);
  }
  Clear();
  return at;
}

void CocoSegmentationReader::Clear() {
  bad_.clear(), corners_.clear(), ends_.clear(), counts_.clear(), size_.clear();
  is_object_ = has_x_ = in_polygon_ = false;
  part_ = kOther;
}

void CocoSegmentationReader::AddCoordinate(double value) {
  if (!(std::abs(value) <= kMostPolygonCoordinate)) {
    return Refuse(std::isnan(value) ? "something in a polygon is not a number"
                                    : format("{} is too large for a coordinate in pixels", value));
  }
  (has_x_ ? corner_.y : corner_.x) = OnPolygonGrid(value);
  if (has_x_) corners_.push_back(corner_);
  has_x_ = !has_x_;
}

void CocoSegmentationReader::EndPolygon() {
  if (!in_polygon_) return;
  const size_t corners = corners_.size() - (ends_.empty() ? 0 : ends_.back());
  if (has_x_) {
    Refuse(format("a polygon has {} numbers, which is odd; expected x and y of each corner",
                  2 * corners + 1));
  } else if (corners < 3) {
    Refuse(format("a polygon has {}; expected x and y of three corners or more",
                  Counted(2 * corners, "number")));
  }
  ends_.push_back(corners_.size());
  in_polygon_ = has_x_ = false;
}

std::string CocoSegmentationReader::WhyBadCounts() const {
  if (counts_.empty() || size_.size() != 2) return std::string(kNoForm);
  int64_t pixels = 0;
  for (const int64_t count : counts_) pixels = std::min(pixels + count, kMostCount);
  const bool fits = size_[0] <= kLongestEdge && size_[1] <= kLongestEdge;
  if (fits && pixels == size_[0] * size_[1]) return "";
  return format("its counts add up to {} pixels, but its size is {}x{}", pixels, size_[1],
                size_[0]);
}

void CocoSegmentationReader::Refuse(std::string reason) {
  if (bad_.empty()) bad_ = std::move(reason);
}

}  // namespace mxtrain::io
