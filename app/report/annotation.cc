// SPDX-License-Identifier: Apache-2.0
#include "app/report/annotation.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "app/report/plot/drawing.h"
#include "app/report/plot/font.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"

namespace mxtrain::report {
namespace {

constexpr int kLeastEdge = 128, kMostEdge = 4096;
// Of the letters, in units of their size: above the baseline and below it.
constexpr double kAbove = 0.93, kBelow = 0.25, kLine = kAbove + kBelow;
constexpr double kLeastSize = 9;  // that is read without effort

// Replicates every pixel of a small image; returns how many times along each axis.
int Enlarge(io::Image* image) {
  const auto [shorter, longer] = std::minmax(image->height, image->width);
  const int factor = std::min(CeilDivide(kLeastEdge, shorter), kMostEdge / longer);
  if (factor <= 1) return 1;
  const io::Image small = std::move(*image);
  *image = io::Image();
  image->Resize(small.height * factor, small.width * factor, small.channels);
  for (int y = 0; y < image->height; ++y) {
    uint8_t* out = image->row(y);
    for (int x = 0; x < image->width; ++x)
      out = std::copy_n(small.row(y / factor) + x / factor * small.channels, small.channels, out);
  }
  return factor;
}

int Prepare(io::Image* image) {
  if (image->pixels.empty()) Throw(ErrorKind::kData, "cannot draw onto an empty image");
  io::ConvertChannels(3, image);
  return Enlarge(image);
}

struct Area {
  double left, top, width, height;
  bool Overlaps(const Area& other) const {
    return left < other.left + other.width && other.left < left + width &&
           top < other.top + other.height && other.top < top + height;
  }
};

// Lines inside the box, on whole pixels.
void AddOutline(const LabelledBox& box, double width, plot::Drawing* drawing) {
  const double left = std::round(box.left), top = std::round(box.top),
               right = std::max(std::round(box.right), left + 1),
               bottom = std::max(std::round(box.bottom), top + 1);
  const plot::Colour colour{box.colour[0], box.colour[1], box.colour[2]};
  const double across = std::min(width, right - left), down = std::min(width, bottom - top);
  drawing->AddBox({left, top}, right - left, down, colour);
  drawing->AddBox({left, bottom - down}, right - left, down, colour);
  drawing->AddBox({left, top}, across, bottom - top, colour);
  drawing->AddBox({right - across, top}, across, bottom - top, colour);
}

// Within the image and beside the texts that have their places.
std::optional<Area> PlaceOf(const LabelledBox& box, double width, double height,
                            const plot::Drawing& image, const std::vector<Area>& taken) {
  const double x = std::clamp(std::round(box.left), 0.0, std::max(0.0, image.width() - width));
  for (const double y : {box.top - height, box.top, box.bottom, box.bottom - height}) {
    const Area area{x, std::round(y), width, height};
    if (area.top < 0 || area.top + height > image.height()) continue;
    if (std::ranges::none_of(taken, [&](const Area& other) { return area.Overlaps(other); }))
      return area;
  }
  return std::nullopt;
}

void AddText(const LabelledBox& box, const std::string& text, const Area& area, double size,
             plot::Drawing* drawing) {
  const io::Rgb& c = box.colour;
  drawing->AddBox({area.left, area.top}, area.width, area.height, {c[0], c[1], c[2]});
  const bool dark = 0.3 * c[0] + 0.6 * c[1] + 0.1 * c[2] < 128;
  drawing->AddText({area.left + 2, area.top + 1 + size * kAbove}, text,
                   {.size = size, .colour = dark ? plot::kWhite : plot::kBlack});
}

}  // namespace

void DrawLabel(const std::string& text, io::Image* image) {
  Prepare(image);
  const double margin = std::min(std::max(3, image->height / 100), image->width / 4);
  const double room = image->width - 2 * margin;
  const double by_width = room / std::max(plot::TextWidth(text, 1), 1e-3);
  const double size = std::max(std::min(by_width, image->height / 12.0 / kLine), kLeastSize);
  plot::Drawing drawing(image->width, image->height);
  drawing.AddBox({0, 0}, image->width, std::round(size * kLine + 2 * margin), {32, 32, 32});
  drawing.AddText({margin, margin + size * kAbove}, plot::FitName(text, size, room),
                  {.size = size, .colour = plot::kWhite});
  plot::DrawOnto(drawing, image);
}

void DrawBoxes(const std::vector<LabelledBox>& boxes, io::Image* image) {
  const double factor = Prepare(image);
  const int edge = std::max(image->height, image->width);
  const double width = std::max(1, edge / 400), size = std::max(kLeastSize, edge / 55.0);
  plot::Drawing drawing(image->width, image->height);
  const auto placed = [&](const LabelledBox& box) {
    const auto pixel = [&](double at) { return std::clamp(at * factor, -1.0 * edge, 2.0 * edge); };
    return LabelledBox{pixel(box.left),   pixel(box.top), pixel(box.right),
                       pixel(box.bottom), box.colour,     {}};
  };
  for (auto box = boxes.rbegin(); box != boxes.rend(); ++box)
    AddOutline(placed(*box), width, &drawing);
  std::vector<Area> taken;
  for (const LabelledBox& box : boxes) {
    if (box.text.empty()) continue;
    const std::string text = plot::FitName(box.text, size, image->width - 4);
    const std::optional<Area> area =
        PlaceOf(placed(box), std::ceil(plot::TextWidth(text, size)) + 4,
                std::ceil(size * kLine) + 2, drawing, taken);
    if (!area) continue;
    taken.push_back(*area);
    AddText(box, text, *area, size, &drawing);
  }
  plot::DrawOnto(drawing, image);
}

}  // namespace mxtrain::report
