// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/draw_label.h"

#include <algorithm>
#include <cmath>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"

namespace mxtrain::io {
namespace {

constexpr int kLeastEdge = 128, kMostEdge = 4096;
constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;

// Replicates every pixel `factor` x `factor` times.
void Enlarge(int factor, Image* image) {
  const Image small = std::move(*image);
  *image = Image();
  image->Resize(small.height * factor, small.width * factor, small.channels);
  for (int y = 0; y < image->height; ++y) {
    uint8_t* out = image->row(y);
    for (int x = 0; x < image->width; ++x)
      out = std::copy_n(small.row(y / factor) + x / factor * small.channels, small.channels, out);
  }
}

// Replaces each UTF-8 character missing from the font by one '?'.
std::string InAscii(const std::string& text) {
  std::string ascii;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0) != 0x80) ascii += byte >= ' ' && byte <= '~' ? c : '?';
  }
  return ascii;
}

}  // namespace

void DrawLabel(const std::string& text, Image* image) {
  if (image->pixels.empty()) Throw(ErrorKind::kData, "cannot draw '{}' onto an empty image", text);
  ConvertChannels(3, image);
  const auto [shorter, longer] = std::minmax(image->height, image->width);
  const int factor = std::min(CeilDivide(kLeastEdge, shorter), kMostEdge / longer);
  if (factor > 1) Enlarge(factor, image);

  const std::string line = InAscii(text);
  int below = 0;  // below the baseline
  const cv::Size unit = cv::getTextSize(line, kFont, 1, 1, &below);
  const int margin = std::min(std::max(3, image->height / 100), image->width / 4);
  const double by_width = double(image->width - 2 * margin) / std::max(unit.width, 1);
  const double scale = std::min(by_width, image->height / 12.0 / (unit.height + below));
  const int thickness = std::max(1, static_cast<int>(std::floor(scale * 1.5 + 0.5)));
  const cv::Size size = cv::getTextSize(line, kFont, scale, thickness, &below);

  cv::Mat canvas(image->height, image->width, CV_8UC3, image->pixels.data());
  cv::rectangle(canvas, {0, 0}, {image->width, size.height + below + 2 * margin},
                cv::Scalar(32, 32, 32), cv::FILLED);
  cv::putText(canvas, line, {margin, margin + size.height}, kFont, scale, cv::Scalar(255, 255, 255),
              thickness, cv::LINE_AA);
}

void DrawBox(double left, double top, double right, double bottom, const Rgb& colour,
             const std::string& text, Image* image) {
  ConvertChannels(3, image);
  const int edge = std::max(image->height, image->width), width = std::max(1, edge / 400);
  const auto pixel = [edge](double at) {
    return static_cast<int>(std::lround(std::clamp(at, -1.0 * edge, 2.0 * edge)));
  };
  const cv::Point from(pixel(left), pixel(top)), to(pixel(right) - 1, pixel(bottom) - 1);
  const cv::Scalar paint(colour[0], colour[1], colour[2]);
  cv::Mat canvas(image->height, image->width, CV_8UC3, image->pixels.data());
  cv::rectangle(canvas, from, to, paint, width);
  if (text.empty()) return;
  const double scale = std::max(0.3, edge / 1600.0);
  int below = 0;
  const std::string line = InAscii(text);
  const cv::Size size = cv::getTextSize(line, kFont, scale, 1, &below);
  const int height = size.height + below + 2;
  const int y = std::clamp(from.y >= height ? from.y - height : from.y, 0,
                           std::max(0, image->height - height)),
            x = std::clamp(from.x, 0, std::max(0, image->width - size.width));
  cv::rectangle(canvas, {x, y}, {x + size.width, y + height}, paint, cv::FILLED);
  const bool dark = 0.3 * colour[0] + 0.6 * colour[1] + 0.1 * colour[2] < 128;
  cv::putText(canvas, line, {x, y + size.height + 1}, kFont, scale,
              dark ? cv::Scalar(255, 255, 255) : cv::Scalar(0, 0, 0), 1, cv::LINE_AA);
}

}  // namespace mxtrain::io
