#include "mxtrain/io/geometry.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <mutex>
#include <opencv2/core.hpp>
#include <opencv2/core/ocl.hpp>
#include <opencv2/imgproc.hpp>

#include "mxtrain/base/error.h"

namespace mxtrain::io {
namespace {

// The pipeline has threads of its own.
void KeepOpenCvToOneThread() {
  static std::once_flag once;
  std::call_once(once, [] {
    cv::setNumThreads(1);
    cv::ocl::setUseOpenCL(false);
  });
}

// A header over the picture's pixels.
cv::Mat View(Image& image) {
  return cv::Mat(image.height, image.width, CV_8UC(image.channels), image.pixels.data());
}

int MethodOf(int interpolation, const Box& box, int height, int width) {
  switch (interpolation) {
    case kNearest:
      return cv::INTER_NEAREST;
    case kBilinear:
      return cv::INTER_LINEAR;
    case kCubic:
      return cv::INTER_CUBIC;
    case kArea:
      return cv::INTER_AREA;
    default:
      return 2 * height <= box.height || 2 * width <= box.width ? cv::INTER_AREA : cv::INTER_LINEAR;
  }
}

}  // namespace

SizePair ParseSize(const TShape& size, const char* owner) {
  const bool good =
      (size.ndim() == 1 || size.ndim() == 2) && std::all_of(size.begin(), size.end(), [](int64_t d) { return d > 0 && d <= 65535; });
  if (!good) {
    Throw(ErrorKind::kConfig, "{}: size = {}: expected one number or (height, width), each 1 .. 65535", owner, size.ToTuple());
  }
  return {static_cast<int>(size[0]), static_cast<int>(size[size.ndim() - 1]), size.ndim() == 1};
}

void ResizeBox(const Image& from, const Box& box, int height, int width, int interpolation, Image* to) {
  if (box.height == height && box.width == width) return CopyBox(from, box, 0, to);
  KeepOpenCvToOneThread();
  to->Resize(height, width, from.channels);
  const cv::Mat part = View(const_cast<Image&>(from))(cv::Rect(box.x, box.y, box.width, box.height));
  cv::Mat result = View(*to);
  cv::resize(part, result, result.size(), 0, 0, MethodOf(interpolation, box, height, width));
}

void CoverAtLeast(int height, int width, Image* image, Image* scratch) {
  if (image->height >= height && image->width >= width) return;
  const double scale = std::max(double(height) / image->height, double(width) / image->width);
  const int new_height = std::max(height, static_cast<int>(std::lround(image->height * scale)));
  const int new_width = std::max(width, static_cast<int>(std::lround(image->width * scale)));
  ResizeBox(*image, {0, 0, image->height, image->width}, new_height, new_width, kAuto, scratch);
  std::swap(*image, *scratch);
}

void CopyBox(const Image& from, const Box& box, uint8_t fill, Image* to) {
  to->Resize(box.height, box.width, from.channels);
  const int first = std::max(box.x, 0), last = std::min(box.x + box.width, from.width);
  const auto bytes = [&from](int pixels) { return static_cast<size_t>(pixels) * static_cast<size_t>(from.channels); };
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

void FlipHorizontal(Image* image) {
  const auto channels = static_cast<std::ptrdiff_t>(image->channels);
  for (int y = 0; y < image->height; ++y) {
    uint8_t* left = image->row(y);
    uint8_t* right = left + (image->width - 1) * channels;
    for (; left < right; left += channels, right -= channels) std::swap_ranges(left, left + channels, right);
  }
}

void FlipVertical(Image* image) {
  const std::ptrdiff_t row = std::ptrdiff_t{image->width} * image->channels;
  for (int y = 0; y < image->height / 2; ++y) std::swap_ranges(image->row(y), image->row(y) + row, image->row(image->height - 1 - y));
}

}  // namespace mxtrain::io
