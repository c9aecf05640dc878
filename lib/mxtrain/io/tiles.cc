// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/tiles.h"

#include <exception>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cpu/parallel.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::io {
namespace {

void Check(const Source& source) {
  const std::vector<FieldSpec>& data = source.data_fields();
  if (data.size() != 1 || data[0].kind != FieldKind::kImage)
    Throw(ErrorKind::kConfig, "tiles are parts of images: the data must be one image");
  for (const FieldSpec& label : source.label_fields()) {
    if (label.kind != FieldKind::kValues || label.name == kExampleWeight) continue;
    Throw(ErrorKind::kConfig,
          "the label '{}' belongs to the image as a whole; tiles are for masks, boxes, points and "
          "images as labels",
          label.name);
  }
}

// Nothing for an image that cannot be read.
ImageSize ShownSizeOf(const Source& source, int64_t index, Sample* scratch) {
  const TShape& shape = source.data_fields()[0].shape;
  if (shape.known()) return {static_cast<int>(shape[1]), static_cast<int>(shape[2])};
  try {
    source.Read(index, scratch);
  } catch (const std::exception&) {  // whoever reads it again learns why
    return {};
  }
  const auto info = ProbeImage(scratch->data[0].encoded);
  return info ? ImageSize{info->height, info->width} : ImageSize{};
}

class TiledSource final : public Source {
 public:
  TiledSource(std::shared_ptr<const Source> source, const TileOptions& options)
      : source_(std::move(source)) {
    notes_ = source_->notes();
    warnings_ = source_->warnings();
    losses_ = source_->losses();
    found_ = source_->found();
    std::vector<ImageSize> sizes(static_cast<size_t>(source_->size()));
    ParallelFor(source_->size(), 1, [&](int64_t begin, int64_t end) {
      Sample scratch;
      for (int64_t i = begin; i < end; ++i)
        sizes[static_cast<size_t>(i)] = ShownSizeOf(*source_, i, &scratch);
    });
    for (int64_t i = 0; i < source_->size(); ++i)
      AddTiles(i, sizes[static_cast<size_t>(i)], options);
  }

  int64_t size() const override { return static_cast<int64_t>(tiles_.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return source_->data_fields(); }
  const std::vector<FieldSpec>& label_fields() const override { return source_->label_fields(); }
  void Read(int64_t index, Sample* sample) const override { source_->Read(ImageOf(index), sample); }
  std::span<const float> LabelOf(int64_t index, size_t position, Sample* scratch) const override {
    return source_->LabelOf(ImageOf(index), position, scratch);
  }
  std::span<const float> Rests(int64_t index, bool label, size_t position) const override {
    return source_->Rests(ImageOf(index), label, position);
  }
  std::string Name(int64_t index) const override { return source_->Name(ImageOf(index)); }
  std::string FileOf(int64_t index) const override { return source_->FileOf(ImageOf(index)); }
  std::optional<int> ClassOf(int64_t index) const override {
    return source_->ClassOf(ImageOf(index));
  }
  const std::vector<std::string>& class_names() const override { return source_->class_names(); }
  const Tile* TileOf(int64_t index) const override { return &tiles_[static_cast<size_t>(index)]; }

 private:
  int64_t ImageOf(int64_t index) const { return TileOf(index)->image; }

  void AddTiles(int64_t image, const ImageSize& size, const TileOptions& options) {
    if (!size.known()) {
      tiles_.emplace_back().image = image;
      return;
    }
    const std::vector<TileSpan> rows = TilesAlong(size.height, options),
                                columns = TilesAlong(size.width, options);
    for (const TileSpan& y : rows) {
      for (const TileSpan& x : columns) {
        tiles_.push_back(
            {.image = image,
             .box = {y.begin, x.begin, y.length, x.length},
             .own = {y.own_begin, x.own_begin, y.own_end - y.own_begin, x.own_end - x.own_begin},
             .height = size.height,
             .width = size.width,
             .count = static_cast<int64_t>(rows.size() * columns.size())});
      }
    }
  }

  const std::shared_ptr<const Source> source_;
  std::vector<Tile> tiles_;
};

}  // namespace

TileOptions TilesOf(int64_t side, std::optional<int64_t> overlap) {
  if (side < kLeastTile || side > kLongestEdge) {
    Throw(ErrorKind::kConfig, "tiles of {} pixels: expected {} .. {}", side, kLeastTile,
          kLongestEdge);
  }
  const int64_t shared = overlap.value_or(side / 8);
  if (shared < 0 || shared > side / 2) {
    Throw(ErrorKind::kConfig,
          "tiles of {} pixels cannot overlap by {}: expected 0 .. {}, half of them", side, shared,
          side / 2);
  }
  return {static_cast<int>(side), static_cast<int>(shared)};
}

std::vector<TileSpan> TilesAlong(int length, const TileOptions& options) {
  if (length <= options.side) return {{0, length, 0, length}};
  const int step = options.side - options.overlap, spare = length - options.side;
  const int count = 1 + (spare + step - 1) / step;
  std::vector<TileSpan> spans;
  for (int i = 0; i < count; ++i) {
    const auto begin = static_cast<int>(int64_t{spare} * i / (count - 1));
    spans.push_back({begin, options.side, 0, length});
  }
  for (size_t i = 0; i + 1 < spans.size(); ++i) {
    const int seam = (spans[i].begin + options.side + spans[i + 1].begin) / 2;
    spans[i].own_end = spans[i + 1].own_begin = seam;
  }
  return spans;
}

std::shared_ptr<const Source> NewTiledSource(std::shared_ptr<const Source> source,
                                             const TileOptions& options) {
  Check(*source);
  return std::make_shared<TiledSource>(std::move(source), options);
}

}  // namespace mxtrain::io
