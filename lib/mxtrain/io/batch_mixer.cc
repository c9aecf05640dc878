// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/batch_mixer.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "mxtrain/base/error.h"
#include "mxtrain/io/boxes.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/internal/field_kinds.h"

namespace mxtrain::io {
namespace {

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
double DrawGamma(double shape, RandomStream* random) {
  if (shape < 1) {
    const double larger = DrawGamma(shape + 1, random);
    return larger * std::pow(1 - double{random->Uniform()}, 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random->Normal(), v = std::pow(1 + c * x, 3);
    const double u = 1 - double{random->Uniform()};
    if (v > 0 && std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

// A sample of Beta(alpha, alpha).
double DrawShare(double alpha, RandomStream* random) {
  const double a = DrawGamma(alpha, random), b = DrawGamma(alpha, random);
  return a + b > 0 ? a / (a + b) : 0.5;
}

// Both rows at once, each with the other.
void Blend(double share, int64_t size, float* a, float* b) {
  const auto own = static_cast<float>(share), other = static_cast<float>(1 - share);
  for (int64_t k = 0; k < size; ++k) {
    const float x = a[k], y = b[k];
    a[k] = own * x + other * y;
    b[k] = own * y + other * x;
  }
}

// The share of a label in a mix of examples with these weights.
double WeighedShare(double share, double own, double other) {
  const double sum = share * own + (1 - share) * other;
  return sum > 0 ? share * own / sum : share;
}

// As Blend, each row with a share of its own.
void BlendApart(double share_a, double share_b, int64_t size, float* a, float* b) {
  for (int64_t k = 0; k < size; ++k) {
    const double x = a[k], y = b[k];
    a[k] = static_cast<float>(share_a * x + (1 - share_a) * y);
    b[k] = static_cast<float>(share_b * y + (1 - share_b) * x);
  }
}

bool IsImageShape(const TShape& shape) {
  return shape.ndim() == 3;
}

// A box of 1 - share of the area about a random point, clipped to the image; *share becomes the
// fraction outside.
Box DrawBox(const TShape& image, double* share, RandomStream* random) {
  const auto height = static_cast<int>(image[1]), width = static_cast<int>(image[2]);
  const double side = std::sqrt(1 - *share);
  const auto y = static_cast<int>(random->Below(height)),
             x = static_cast<int>(random->Below(width));
  const int h = static_cast<int>(height * side), w = static_cast<int>(width * side);
  const int top = std::max(y - h / 2, 0), left = std::max(x - w / 2, 0);
  const Box box = {top, left, std::min(y - h / 2 + h, height) - top,
                   std::min(x - w / 2 + w, width) - left};
  *share = 1 - static_cast<double>(box.height) * box.width / (static_cast<double>(height) * width);
  return box;
}

// Exchanges the box of two images [C, H, W].
void ExchangeBox(const TShape& shape, const Box& box, float* a, float* b) {
  for (int64_t c = 0; c < shape[0]; ++c) {
    for (int64_t y = box.y; y < box.y + box.height; ++y) {
      const int64_t at = (c * shape[1] + y) * shape[2] + box.x;
      std::swap_ranges(a + at, a + at + box.width, b + at);
    }
  }
}

bool HoldsBoxes(const Source& source) {
  return std::ranges::any_of(source.label_fields(), [](const FieldSpec& label) {
    return label.kind == FieldKind::kBoxes;
  });
}

// Puts the objects of `other` behind those of `to`, rows of boxes with room for both.
void AddObjects(std::span<const float> other, std::span<float> to) {
  size_t end = 0;
  while (end < to.size() && !BoxRow(&to[end]).empty()) end += kBoxColumns;
  for (size_t k = 0; k < other.size() && !BoxRow(&other[k]).empty(); k += kBoxColumns) {
    MXTRAIN_ASSERT(end < to.size());
    std::copy_n(&other[k], kBoxColumns, &to[end]);
    end += kBoxColumns;
  }
}

}  // namespace

void BatchMixer::Check(const Source& source) const {
  if (!mixes()) return;
  for (const FieldSpec& label : source.label_fields()) {
    if (label.kind == FieldKind::kValues && !HoldsBoxes(source)) continue;
    if (label.kind == FieldKind::kBoxes && cutmix_.alpha == 0) continue;
    Throw(ErrorKind::kConfig,
          "{} the classes of two examples, but the label '{}' is {}: turn {} off",
          label.kind == FieldKind::kBoxes ? "cutmix mixes" : "mixup and cutmix mix", label.name,
          WhatIs(label.kind), label.kind == FieldKind::kBoxes ? "it" : "them");
  }
  for (const FieldSpec& data : source.data_fields()) {
    if (data.kind == FieldKind::kImage || !HoldsBoxes(source)) continue;
    Throw(ErrorKind::kConfig,
          "mixup of boxes is for images, but the data '{}' is numbers: turn it off", data.name);
  }
}

// In place: row 0, which the last one needs, is kept.
void BatchMixer::MixNeighbours(int64_t count, const ExampleLoader& loader,
                               const BatchPointers& rows, RandomStream* random) const {
  if (count < 2) return;
  std::vector<float> shares;
  for (int64_t i = 0; i < count; ++i)
    shares.push_back(static_cast<float>(DrawShare(mixup_.alpha, random)));
  for (size_t f = 0; f < loader.data_shapes().size(); ++f) {
    const int64_t size = loader.data_shapes()[f].Size();
    auto* const images = static_cast<float*>(rows.data[f]);
    const std::vector<float> first(images, images + size);
    for (int64_t i = 0; i < count; ++i) {
      const float own = shares[static_cast<size_t>(i)];
      float* const image = images + i * size;
      const float* const next = i + 1 < count ? image + size : first.data();
      for (int64_t k = 0; k < size; ++k) image[k] = own * image[k] + (1 - own) * next[k];
    }
  }
  for (size_t f = 0; f < loader.label_shapes().size(); ++f) {
    const auto size = static_cast<size_t>(loader.label_shapes()[f].Size());
    const std::vector<float> first(rows.labels[f], rows.labels[f] + size);
    for (int64_t i = 0; i < count; ++i) {
      float* const boxes = rows.labels[f] + static_cast<size_t>(i) * size;
      AddObjects({i + 1 < count ? boxes + size : first.data(), size}, {boxes, size});
    }
  }
  for (int64_t i = 0; rows.origins && i < count; ++i) rows.origins[i] = ImageOrigin();
}

void BatchMixer::Mix(int64_t epoch, int64_t batch, int64_t count, const ExampleLoader& loader,
                     const BatchPointers& rows) const {
  const auto is_on = [epoch](const MixOptions& mix) {
    return mix.alpha > 0 && (mix.epochs < 0 || epoch < mix.epochs);
  };
  const bool mixup = is_on(mixup_), cutmix = is_on(cutmix_);
  if (!mixup && !cutmix) return;
  RandomStream random(seed_, epoch, batch, "io.mix");
  if (HoldsBoxes(loader.source())) return MixNeighbours(count, loader, rows, &random);
  const std::vector<TShape>&data = loader.data_shapes(), &labels = loader.label_shapes();
  const std::optional<size_t> weights = WeightField(loader.source());
  // If there are several, they have one size.
  const auto image = std::find_if(data.begin(), data.end(), IsImageShape);
  for (int64_t i = 0, j = count - 1; i < j; ++i, --j) {
    const bool cuts = random.Chance(0.5) ? cutmix : !mixup;
    double share = DrawShare(cuts ? cutmix_.alpha : mixup_.alpha, &random);
    const Box box = cuts && image != data.end() ? DrawBox(*image, &share, &random) : Box{};
    for (size_t f = 0; f < data.size(); ++f) {
      auto* const first = static_cast<float*>(rows.data[f]);
      float *a = first + i * data[f].Size(), *b = first + j * data[f].Size();
      if (cuts && image != data.end() && data[f] == *image) {
        ExchangeBox(data[f], box, a, b);
      } else {
        Blend(share, data[f].Size(), a, b);
      }
    }
    const float* const w = weights ? rows.labels[*weights] : nullptr;
    const double share_i = w ? WeighedShare(share, w[i], w[j]) : share,
                 share_j = w ? WeighedShare(share, w[j], w[i]) : share;
    for (size_t f = 0; f < labels.size(); ++f) {
      const int64_t size = labels[f].Size();
      float *a = rows.labels[f] + i * size, *b = rows.labels[f] + j * size;
      if (weights == f) continue;  // the others need it as it is
      if (w) {
        BlendApart(share_i, share_j, size, a, b);
      } else {
        Blend(share, size, a, b);
      }
    }
    if (weights) Blend(share, 1, rows.labels[*weights] + i, rows.labels[*weights] + j);
  }
}

}  // namespace mxtrain::io
