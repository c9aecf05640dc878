// SPDX-License-Identifier: Apache-2.0
#pragma once
// Iterates over the class scores of a batch. Private to this module.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "mxtrain/base/error.h"
#include "mxtrain/metric/metric.h"

namespace mxtrain {

// The scores of one example at one position: element j is class j.
struct Scores {
  const float* first;
  int64_t stride, classes;
  float operator[](int64_t j) const { return first[j * stride]; }
};

// Number of classes before `j` when scores are sorted in descending order, ties by index. Scores
// with a NaN predict no class: the number is then beyond that of the classes.
inline int64_t RankOf(const Scores& scores, int64_t j) {
  const float own = scores[j];
  int64_t rank = 0;
  for (int64_t i = 0; i < scores.classes; ++i) {
    if (std::isnan(scores[i])) return std::numeric_limits<int64_t>::max();
    rank += scores[i] > own || (i < j && scores[i] == own);
  }
  return rank;
}

// Calls f(scores, class, row) for each position of the first `count` rows, except labels equal to
// `ignore`. `pred`: (N, classes, spatial...), or (N, spatial...,
// classes) if the label fits that alone. `label`: one class index per position, or scores of pred's
// shape.
template <typename F>
void ForEachPosition(const std::string& metric, const TBlob& label, const TBlob& pred,
                     int64_t count, const std::optional<int>& ignore, F&& f) {
  const TShape& shape = pred.shape;
  const bool scored = label.shape == shape;
  const bool first = shape.ndim() >= 2 && shape[1] >= 2 &&
                     (scored || label.shape.Size() == shape[0] * shape.Product(2, shape.ndim()));
  const bool last = !first && shape.ndim() > 2 && shape[shape.ndim() - 1] >= 2 &&
                    label.shape.ndim() == shape.ndim() - 1 &&
                    std::equal(label.shape.begin(), label.shape.end(), shape.begin());
  if (!first && !last) {
    Throw(ErrorKind::kConfig,
          "metric {}: labels {} do not fit an output {}; it takes class indices (N) for scores (N, "
          "classes), or (N, spatial...) for (N, "
          "classes, spatial...), of two classes or more",
          metric, label.shape.ToString(), shape.ToString());
  }
  const int64_t classes = last ? shape[shape.ndim() - 1] : shape[1],
                spatial = shape.Product(1, shape.ndim()) / classes;
  auto scores_at = [=](const TBlob& blob, int64_t i) {
    if (last) return Scores{blob.dptr<float>() + i * classes, 1, classes};
    return Scores{blob.dptr<float>() + (i / spatial * classes * spatial + i % spatial), spatial,
                  classes};
  };
  auto class_at = [&](int64_t i) -> int64_t {
    if (scored) {
      const Scores wanted = scores_at(label, i);
      for (int64_t j = 0; j < classes; ++j) {
        if (RankOf(wanted, j) == 0) return j;
      }
      Throw(ErrorKind::kData, "metric {}: the label in row {} is not a number", metric,
            i / spatial);
    }
    const float wanted = label.dptr<float>()[i];
    if (ignore && wanted == static_cast<float>(*ignore)) return -1;
    if (!(wanted >= 0 && wanted < static_cast<float>(classes)) || wanted != std::floor(wanted)) {
      Throw(ErrorKind::kData,
            "metric {}: label {} in row {} is out of range for the {} classes of the output",
            metric, wanted, i / spatial, classes);
    }
    return static_cast<int64_t>(wanted);
  };
  for (int64_t i = 0; i < count * spatial; ++i) {
    const int64_t wanted = class_at(i);
    if (wanted < 0) continue;
    f(scores_at(pred, i), wanted, i / spatial);
  }
}

}  // namespace mxtrain
