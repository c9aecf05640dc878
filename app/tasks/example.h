// SPDX-License-Identifier: Apache-2.0
#pragma once
// The examples of a batch that a net was run over, as tasks see them beside the net's numbers.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/report/sample_sheet.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/io/source.h"
#include "mxtrain/io/tiles.h"

namespace mxtrain::tasks {

class Examples;

// One of them; views the batch. Default: one of which nothing is known.
class Example {
 public:
  Example() = default;

  int64_t index() const;  // in the source
  // As messages and tables name it.
  std::string name() const;
  // Where its first image comes from: the size of the file and what transforms did; as default
  // without an image, or if the iterator does not tell.
  const io::ImageOrigin& origin() const;
  // The part of its image that it is; null: all of it. Valid as long as the source.
  const io::Tile* tile() const { return source() ? source()->TileOf(index()) : nullptr; }
  // From points of the first image as the net reads it to those of its file (io/point_map.h).
  io::PointMap to_file() const { return origin().map().Inverse(); }
  // The values of an input as the net reads them, by its place among inputs().
  std::span<const float> Input(size_t input) const;
  // Its first image as the net reads it; nothing without one.
  std::optional<io::Image> Shown(const report::ImageReader& reader) const;
  const std::vector<DataDesc>& inputs() const;
  // The data, whose labels are those of the file, not moved; null if it has none (arrays).
  const io::Source* source() const;

 private:
  friend class Examples;
  Example(const Examples* all, size_t row) : all_(all), row_(row) {}

  const Examples* all_ = nullptr;
  size_t row_ = 0;
};

// Views the batch, the iterator and the source, which outlive it. Not thread-safe: what is asked of
// the inputs is read once for all examples.
class Examples {
 public:
  Examples(const DataBatch& batch, const DataIter& iter, const io::Source* source);
  Examples(const Examples&) = delete;
  Examples& operator=(const Examples&) = delete;

  size_t count() const { return static_cast<size_t>(batch_.count); }
  Example operator[](size_t row) const { return {this, row}; }
  const DataBatch& batch() const { return batch_; }
  const DataIter& iter() const { return iter_; }

 private:
  friend class Example;
  const DataBatch& batch_;
  const DataIter& iter_;
  const io::Source* source_;
  const std::vector<DataDesc> inputs_;
  mutable std::vector<std::vector<float>> values_;  // of each input, once it was asked for
};

}  // namespace mxtrain::tasks
