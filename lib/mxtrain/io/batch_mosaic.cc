// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/batch_mosaic.h"

#include <algorithm>
#include <array>

#include "mxtrain/base/error.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/internal/field_kinds.h"

namespace mxtrain::io {
namespace {

constexpr int kParts = BatchMosaic::kParts;
using Quarters = std::array<Box, kParts>;
// The rows of a field of the four examples.
using Rows = std::array<float*, kParts>;

Quarters QuartersAt(int height, int width, RandomStream* random) {
  const int y = height / 4 + static_cast<int>(random->Below(height / 2 + 1)),
            x = width / 4 + static_cast<int>(random->Below(width / 2 + 1));
  return {Box{0, 0, y, x}, Box{0, x, y, width - x}, Box{y, 0, height - y, x},
          Box{y, x, height - y, width - x}};
}

// Of planes of height x width.
void ExchangePlanes(const Quarters& quarters, int64_t planes, int64_t height, int64_t width,
                    const Rows& rows) {
  std::vector<float> lines(static_cast<size_t>(kParts * width));
  for (size_t q = 1; q < kParts; ++q) {
    const Box& part = quarters[q];
    for (int64_t line = 0; line < planes * part.height; ++line) {
      const int64_t plane = line / part.height, y = part.y + line % part.height;
      const int64_t at = (plane * height + y) * width + part.x;
      for (size_t i = 0; i < kParts; ++i)
        std::copy_n(rows[i] + at, part.width, lines.begin() + static_cast<int64_t>(i) * width);
      for (size_t i = 0; i < kParts; ++i)
        std::copy_n(lines.begin() + static_cast<int64_t>((i + q) % kParts) * width, part.width,
                    rows[i] + at);
    }
  }
}

// What is seen of an image where only a part of it is left, in place.
ImageOrigin OnlyPart(const Box& part, int height, int width) {
  ImageOrigin origin(height, width);
  origin.Moves(PointMap::Shift(-part.x, -part.y));
  origin.EndsAt(part.height, part.width);
  origin.Moves(PointMap::Shift(part.x, part.y));
  return origin;
}

// `shape`: [rows, kBoxColumns].
void ExchangeBoxes(const FieldSpec& spec, const Quarters& quarters, int height, int width,
                   const TShape& shape, const Rows& rows) {
  const auto numbers = static_cast<size_t>(shape.Size());
  const FieldSpec batch_spec{spec.name, spec.kind, shape};
  std::array<std::vector<float>, kParts> mixed;
  std::vector<float> cut(numbers);
  for (size_t i = 0; i < kParts; ++i) {
    for (size_t q = 0; q < kParts; ++q) {
      const std::span<const float> from(rows[(i + q) % kParts], numbers);
      if (auto refusal =
              WriteBoxes(batch_spec, from, OnlyPart(quarters[q], height, width), shape, cut.data()))
        Throw(ErrorKind::kBug, "mosaic: {}", refusal->reason);
      for (size_t k = 0; k < numbers && !BoxRow(&cut[k]).empty(); k += kBoxColumns)
        mixed[i].insert(mixed[i].end(), cut.begin() + static_cast<int64_t>(k),
                        cut.begin() + static_cast<int64_t>(k) + kBoxColumns);
    }
    MXTRAIN_ASSERT(mixed[i].size() <= numbers);
    mixed[i].resize(numbers, kNoBox);
  }
  for (size_t i = 0; i < kParts; ++i) std::ranges::copy(mixed[i], rows[i]);
}

}  // namespace

void BatchMosaic::Check(const Source& source) {
  for (const FieldSpec& data : source.data_fields()) {
    if (data.kind == FieldKind::kImage) continue;
    Throw(ErrorKind::kConfig, "mosaic is for images, but the data '{}' is numbers: turn it off",
          data.name);
  }
  for (const FieldSpec& label : source.label_fields()) {
    if (label.kind != FieldKind::kValues && label.kind != FieldKind::kPoints) continue;
    if (label.name == kExampleWeight) {
      Throw(ErrorKind::kConfig,
            "mosaic joins parts of four examples, which have a weight each: turn it off");
    }
    Throw(ErrorKind::kConfig,
          "mosaic is for boxes, masks and images as labels, but the label '{}' is {}: turn it off",
          label.name, WhatIs(label.kind));
  }
}

void BatchMosaic::Apply(int64_t epoch, int64_t batch, int64_t count, const ExampleLoader& loader,
                        const BatchPointers& rows) const {
  const bool is_on = options_.probability > 0 && (options_.epochs < 0 || epoch < options_.epochs);
  if (!is_on) return;
  RandomStream random(seed_, epoch, batch, "io.mosaic");
  const std::vector<TShape>&data = loader.data_shapes(), &labels = loader.label_shapes();
  const auto height = static_cast<int>(data[0][1]), width = static_cast<int>(data[0][2]);
  for (int64_t first = 0; first + kParts <= count; first += kParts) {
    const bool chosen = random.Chance(options_.probability);
    const Quarters quarters = QuartersAt(height, width, &random);
    if (!chosen) continue;
    const auto rows_of = [first](void* field, const TShape& shape) {
      Rows four;
      for (int64_t i = 0; i < kParts; ++i)
        four[static_cast<size_t>(i)] = static_cast<float*>(field) + (first + i) * shape.Size();
      return four;
    };
    for (size_t f = 0; f < data.size(); ++f)
      ExchangePlanes(quarters, data[f][0], height, width, rows_of(rows.data[f], data[f]));
    for (size_t f = 0; f < labels.size(); ++f) {
      const FieldSpec& spec = loader.source().label_fields()[f];
      const Rows four = rows_of(rows.labels[f], labels[f]);
      if (spec.kind == FieldKind::kBoxes) {
        ExchangeBoxes(spec, quarters, height, width, labels[f], four);
      } else {
        const int64_t planes = spec.kind == FieldKind::kMask ? 1 : labels[f][0];
        ExchangePlanes(quarters, planes, height, width, four);
      }
    }
    for (int64_t i = 0; rows.origins && i < kParts; ++i) rows.origins[first + i] = ImageOrigin();
  }
}

}  // namespace mxtrain::io
