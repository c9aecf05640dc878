// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/geometry.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <mutex>
#include <opencv2/core.hpp>
#include <opencv2/core/ocl.hpp>
#include <opencv2/imgproc.hpp>
#include <utility>

#include "mxtrain/base/error.h"

namespace mxtrain::io {
namespace {

// The pipeline has its own threads.
void KeepOpenCvToOneThread() {
  static std::once_flag once;
  std::call_once(once, [] {
    cv::setNumThreads(1);
    cv::ocl::setUseOpenCL(false);
  });
}

// A cv::Mat header over the image's pixels.
cv::Mat View(Image& image) {
  return cv::Mat(image.height, image.width, CV_8UC(image.channels), image.pixels.data());
}

int BorderOf(Outside::Mode mode) {
  if (mode == Outside::kEdge) return cv::BORDER_REPLICATE;
  return mode == Outside::kReflect ? cv::BORDER_REFLECT : cv::BORDER_CONSTANT;
}

}  // namespace

void CheckPixels(int64_t height, int64_t width, const char* owner) {
  // In this order: the product of two edges within their limit does not overflow.
  if (std::max(height, width) <= kLongestEdge && height * width <= kMostPixels) return;
  Throw(ErrorKind::kConfig,
        "{} would make an image of {}x{} pixels; at most {} are supported, with edges up to {}",
        owner, width, height, kMostPixels, kLongestEdge);
}

SizePair ParseSize(const TShape& size, const char* owner) {
  const bool good =
      (size.ndim() == 1 || size.ndim() == 2) &&
      std::all_of(size.begin(), size.end(), [](int64_t d) { return d > 0 && d <= kLongestEdge; });
  if (!good) {
    Throw(ErrorKind::kConfig, "{}: size = {}: expected one number or (height, width), each 1 .. {}",
          owner, size.ToTuple(), kLongestEdge);
  }
  CheckPixels(size[0], size[size.ndim() - 1], owner);  // a shorter edge: no longer one is shorter
  return {static_cast<int>(size[0]), static_cast<int>(size[size.ndim() - 1]), size.ndim() == 1};
}

Resampling CheckResampling(const Resampling& resampling, const char* owner) {
  if (resampling.antialias &&
      (resampling.interpolation == kNearest || resampling.interpolation == kArea)) {
    Throw(
        ErrorKind::kConfig, "{}: antialias is for bilinear and bicubic interpolation; {}", owner,
        resampling.interpolation == kArea ? "area already takes means" : "nearest takes one pixel");
  }
  return resampling;
}

bool CoverAtLeast(int height, int width, const char* owner, CropResize* crop) {
  if (crop->height() >= height && crop->width() >= width) return true;
  const double scale = std::max(double(height) / crop->height(), double(width) / crop->width());
  const int64_t new_height = std::max<int64_t>(height, std::lround(crop->height() * scale));
  const int64_t new_width = std::max<int64_t>(width, std::lround(crop->width() * scale));
  CheckPixels(new_height, new_width, owner);
  return crop->Resize(static_cast<int>(new_height), static_cast<int>(new_width), kAuto);
}

// Coordinates of Affine count from the center of the first pixel. The linear part of every warp is
// invertible.
PointMap Affine::Map(int height, int width) const {
  const double cx = width / 2.0, cy = height / 2.0;
  const double determinant = matrix[0][0] * matrix[1][1] - matrix[0][1] * matrix[1][0];
  const PointMap inverse{matrix[1][1] / determinant,  -matrix[0][1] / determinant, cx,
                         -matrix[1][0] / determinant, matrix[0][0] / determinant,  cy};
  return PointMap::Shift(-cx - shift[0], -cy - shift[1]).Then(inverse);
}

namespace {

void CheckWarped(const Image& from) {
  constexpr int kLongest = SHRT_MAX - 1;  // of OpenCV's remap
  if (std::max(from.height, from.width) <= kLongest) return;
  Throw(ErrorKind::kConfig,
        "an image of {}x{} pixels cannot be rotated, scaled or sheared: edges up to {} are "
        "supported",
        from.width, from.height, kLongest);
}

int WarpFlags(bool nearest) {
  return (nearest ? cv::INTER_NEAREST : cv::INTER_LINEAR) | cv::WARP_INVERSE_MAP;
}

}  // namespace

void Warp(const PointMap& map, bool nearest, const Outside& outside, Image* image, Image* scratch) {
  CheckWarped(*image);
  KeepOpenCvToOneThread();
  scratch->Resize(image->height, image->width, image->channels);
  // Coordinates of OpenCV count from the center of the first pixel.
  const PointMap back =
      PointMap::Shift(0.5, 0.5).Then(map.Inverse()).Then(PointMap::Shift(-0.5, -0.5));
  const cv::Matx33d inverse(back.xx, back.xy, back.x0, back.yx, back.yy, back.y0, back.zx, back.zy,
                            back.z);
  cv::Mat result = View(*scratch);
  cv::warpPerspective(View(*image), result, inverse, result.size(), WarpFlags(nearest),
                      BorderOf(outside.mode), cv::Scalar::all(outside.value));
  std::swap(*image, *scratch);
}

void Warp(const Affine& affine, bool nearest, const Outside& outside, Image* image,
          Image* scratch) {
  const Image& from = *image;
  CheckWarped(from);
  KeepOpenCvToOneThread();
  scratch->Resize(from.height, from.width, from.channels);
  const double cx = (from.width - 1) / 2.0, cy = (from.height - 1) / 2.0;
  const auto& m = affine.matrix;
  const cv::Matx23d inverse(m[0][0], m[0][1],
                            cx - m[0][0] * cx - m[0][1] * cy + affine.shift[0],  //
                            m[1][0], m[1][1], cy - m[1][0] * cx - m[1][1] * cy + affine.shift[1]);
  cv::Mat result = View(*scratch);
  cv::warpAffine(View(*image), result, inverse, result.size(), WarpFlags(nearest),
                 BorderOf(outside.mode), cv::Scalar::all(outside.value));
  std::swap(*image, *scratch);
}

void CopyBox(const Image& from, const Box& box, uint8_t fill, Image* to) {
  to->Resize(box.height, box.width, from.channels);
  const int first = std::max(box.x, 0), last = std::min(box.x + box.width, from.width);
  const auto bytes = [&from](int pixels) {
    return static_cast<size_t>(pixels) * static_cast<size_t>(from.channels);
  };
  for (int y = 0; y < box.height; ++y) {
    uint8_t* out = to->row(y);
    const int from_y = box.y + y;
    if (from_y < 0 || from_y >= from.height || first >= last) {
      std::memset(out, fill, bytes(box.width));
      continue;
    }
    std::memset(out, fill, bytes(first - box.x));
    std::memcpy(out + bytes(first - box.x), from.row(from_y) + bytes(first), bytes(last - first));
    std::memset(out + bytes(last - box.x), fill, bytes(box.x + box.width - last));
  }
}

}  // namespace mxtrain::io
