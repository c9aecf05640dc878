// SPDX-License-Identifier: Apache-2.0
#pragma once
// Regions of interest, the five numbers [image, x1, y1, x2, y2], as ROIPooling and ROIAlign read
// them: a negative image means no region; an image beyond the batch or a non-finite number is an
// error on the CPU, and NaN in the output of a GPU.
#include <cmath>
#include <span>

#include "mxtrain/operator/kernel.h"

namespace mxtrain::roi_pooling {

enum class RoiStatus { kValid, kSkipped, kInvalid };

template <typename R>
MXTRAIN_HD RoiStatus StatusOf(const R* roi, int64_t images) {
  for (int i = 0; i < 5; ++i) {
    if (!(roi[i] - roi[i] == 0)) return RoiStatus::kInvalid;  // not finite
  }
  return roi[0] < 0                        ? RoiStatus::kSkipped
         : roi[0] < static_cast<R>(images) ? RoiStatus::kValid
                                           : RoiStatus::kInvalid;
}

// Throws kData for the first region that is invalid; a GPU does not check.
template <typename R>
void CheckRegions(const OnCpu&, const char* who, const R* rois, int64_t count, int64_t images) {
  for (int64_t r = 0; r < count; ++r) {
    const R* roi = rois + r * 5;
    if (StatusOf(roi, images) != RoiStatus::kInvalid) continue;
    if (std::isfinite(roi[0]) && roi[0] >= static_cast<R>(images)) {
      Throw(ErrorKind::kData, "{}: region {} refers to image {}, but the batch has {}", who, r,
            static_cast<double>(roi[0]), images);
    }
    Throw(ErrorKind::kData, "{}: region {} is ({}); expected finite numbers: image, x1, y1, x2, y2",
          who, r, join(std::span(roi, 5), ", "));
  }
}
template <typename Device, typename R>
void CheckRegions(const Device&, const char*, const R*, int64_t, int64_t) {}

}  // namespace mxtrain::roi_pooling
