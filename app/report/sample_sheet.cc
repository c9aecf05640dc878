// SPDX-License-Identifier: Apache-2.0
#include "app/report/sample_sheet.h"

#include <algorithm>
#include <cmath>

#include "app/report/plot/font.h"
#include "mxtrain/base/math.h"
#include "mxtrain/base/params.h"

namespace mxtrain::report {

namespace {

constexpr double kTextSize = 12, kTitleSize = 16;

}  // namespace

size_t SheetColumns(size_t images, double cell_width, double cell_height, double most_width) {
  const auto count = static_cast<double>(images);
  // Somewhat wider than high, like a screen.
  const double wanted = std::sqrt(1.5 * count * cell_height / cell_width);
  const auto most = static_cast<size_t>(std::max(1.0, most_width / cell_width));
  size_t best = 1, fewest = images;
  double nearest = HUGE_VAL;
  for (size_t columns = 1; columns <= std::min(images, most); ++columns) {
    const double away = std::abs(std::log(static_cast<double>(columns) / wanted));
    // Further away the sheet would be a strip; the nearest counts always.
    constexpr double kFar = 0.7;
    const size_t holes = away > kFar ? images : CeilDivide(images, columns) * columns - images;
    if (std::pair(holes, away) < std::pair(fewest, nearest))
      best = columns, fewest = holes, nearest = away;
  }
  return best;
}

plot::Drawing DrawSheet(const std::string& title, const std::vector<SheetImage>& images) {
  constexpr double kMargin = 16, kGap = 12, kLeast = 112, kMostForText = 180, kLine = 15,
                   kTitle = 30, kMostWidth = 1150;
  const io::Image& first = images.at(0).image;
  const double enlarged = std::max(1.0, std::ceil(kLeast / std::max(first.width, first.height)));
  const double width = enlarged * first.width, height = enlarged * first.height;
  size_t lines = 0;
  double text_width = 0;
  for (const SheetImage& p : images) {
    lines = std::max(lines, p.lines.size());
    for (const std::string& line : p.lines)
      text_width = std::max(text_width, plot::TextWidth(line, kTextSize));
  }
  const double cell = std::max({width, kLeast, std::min(std::ceil(text_width), kMostForText)});
  const double row = height + kLine * static_cast<double>(lines) + kGap;
  const size_t columns = SheetColumns(images.size(), cell + kGap, row, kMostWidth);
  const size_t rows = CeilDivide(images.size(), columns);
  const double sheet = static_cast<double>(columns) * (cell + kGap) - kGap;
  const double page = 2 * kMargin + std::max(sheet, plot::TextWidth(title, kTitleSize));
  plot::Drawing drawing(page, 2 * kMargin + kTitle + row * static_cast<double>(rows) - kGap);
  drawing.AddText({kMargin, kMargin + 14}, title, {.size = kTitleSize});
  for (size_t i = 0; i < images.size(); ++i) {
    const size_t across = i % columns, down = i / columns;
    const plot::Point at{kMargin + static_cast<double>(across) * (cell + kGap),
                         kMargin + kTitle + static_cast<double>(down) * row};
    drawing.AddImage({at.x + (cell - width) / 2, at.y}, width, height, images[i].image);
    for (size_t k = 0; k < images[i].lines.size(); ++k) {
      const std::string text = plot::FitName(images[i].lines[k], kTextSize, cell);
      drawing.AddText({at.x + cell / 2, at.y + height + kLine * static_cast<double>(k + 1) - 2},
                      text, {.size = kTextSize, .anchor = plot::Anchor::kMiddle});
    }
  }
  return drawing;
}

ImageReader::ImageReader(const std::vector<io::TransformSpec>& transforms) {
  if (transforms.empty() || transforms.back().name != "normalize") return;
  for (const auto& [key, value] : transforms.back().kwargs) {
    if (key == "mean") params::Parse(value, &mean_);
    if (key == "std") params::Parse(value, &std_);
  }
}

bool ImageReader::IsImage(const DataDesc& input) {
  return input.shape.ndim() == 4 && (input.shape[1] == 1 || input.shape[1] == 3) &&
         input.shape[2] > 1 && input.shape[3] > 1;
}

io::Image ImageReader::Read(const float* planes, const TShape& batch_shape) const {
  const auto channels = static_cast<size_t>(batch_shape[1]),
             pixels = static_cast<size_t>(batch_shape[2] * batch_shape[3]);
  io::Image image;
  image.Resize(static_cast<int>(batch_shape[2]), static_cast<int>(batch_shape[3]),
               static_cast<int>(channels));
  for (size_t c = 0; c < channels; ++c) {
    const double mean = mean_[std::min(c, mean_.size() - 1)],
                 std = std_[std::min(c, std_.size() - 1)];
    for (size_t i = 0; i < pixels; ++i) {
      const double level = 255 * (planes[c * pixels + i] * std + mean);
      image.pixels[i * channels + c] =
          static_cast<uint8_t>(std::clamp(std::lround(level), 0L, 255L));
    }
  }
  return image;
}

}  // namespace mxtrain::report
