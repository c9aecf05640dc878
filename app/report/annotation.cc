// SPDX-License-Identifier: Apache-2.0
#include "app/report/annotation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

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

// On whole pixels. In place: a drawing would take memory by the area.
void Fill(const Area& area, const io::Rgb& colour, io::Image* image) {
  const auto within = [](double at, int most) {
    return static_cast<int>(std::clamp(std::round(at), 0.0, static_cast<double>(most)));
  };
  const int left = within(area.left, image->width),
            right = within(area.left + area.width, image->width);
  for (int y = within(area.top, image->height); y < within(area.top + area.height, image->height);
       ++y) {
    for (int x = left; x < right; ++x)
      std::copy(colour.begin(), colour.end(), image->row(y) + 3 * x);
  }
}

// Lines inside the box.
void AddOutline(const LabelledBox& box, double width, io::Image* image) {
  const double left = std::round(box.left), top = std::round(box.top),
               right = std::max(std::round(box.right), left + 1),
               bottom = std::max(std::round(box.bottom), top + 1);
  const double across = std::min(width, right - left), down = std::min(width, bottom - top);
  for (const Area& line :
       {Area{left, top, right - left, down}, Area{left, bottom - down, right - left, down},
        Area{left, top, across, bottom - top}, Area{right - across, top, across, bottom - top}})
    Fill(line, box.colour, image);
}

// Within the image and beside the texts that have their places.
std::optional<Area> PlaceOf(const LabelledBox& box, double width, double height,
                            const io::Image& image, const std::vector<Area>& taken) {
  const double x = std::clamp(std::round(box.left), 0.0, std::max(0.0, image.width - width));
  for (const double y : {box.top - height, box.top, box.bottom, box.bottom - height}) {
    const Area area{x, std::round(y), width, height};
    if (area.top < 0 || area.top + height > image.height) continue;
    if (std::ranges::none_of(taken, [&](const Area& other) { return area.Overlaps(other); }))
      return area;
  }
  return std::nullopt;
}

double SizeOfNames(const io::Image& image) {
  return std::max(kLeastSize, std::max(image.height, image.width) / 55.0);
}

void AddText(const io::Rgb& ground, const std::string& text, const Area& area, double size,
             plot::Drawing* drawing) {
  const bool dark = 0.3 * ground[0] + 0.6 * ground[1] + 0.1 * ground[2] < 128;
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
  Fill({0, 0, static_cast<double>(image->width), size * kLine + 2 * margin}, {32, 32, 32}, image);
  plot::Drawing drawing(image->width, image->height);
  drawing.AddText({margin, margin + size * kAbove}, plot::FitName(text, size, room),
                  {.size = size, .colour = plot::kWhite});
  plot::DrawOnto(drawing, image);
}

void DrawBoxes(const std::vector<LabelledBox>& boxes, io::Image* image) {
  const double factor = Prepare(image);
  const int edge = std::max(image->height, image->width);
  const double width = std::max(1, edge / 400), size = SizeOfNames(*image);
  plot::Drawing drawing(image->width, image->height);
  const auto placed = [&](const LabelledBox& box) {
    const auto pixel = [&](double at) { return std::clamp(at * factor, -1.0 * edge, 2.0 * edge); };
    return LabelledBox{pixel(box.left),   pixel(box.top), pixel(box.right),
                       pixel(box.bottom), box.colour,     {}};
  };
  for (auto box = boxes.rbegin(); box != boxes.rend(); ++box)
    AddOutline(placed(*box), width, image);
  std::vector<Area> taken;
  for (const LabelledBox& box : boxes) {
    if (box.text.empty()) continue;
    const std::string text = plot::FitName(box.text, size, image->width - 4);
    const std::optional<Area> area =
        PlaceOf(placed(box), std::ceil(plot::TextWidth(text, size)) + 4,
                std::ceil(size * kLine) + 2, *image, taken);
    if (!area) continue;
    taken.push_back(*area);
    Fill(*area, box.colour, image);
    AddText(box.colour, text, *area, size, &drawing);
  }
  plot::DrawOnto(drawing, image);
}

void DrawLegend(const std::vector<LegendEntry>& entries, io::Image* image) {
  Prepare(image);
  const double size = SizeOfNames(*image), height = std::ceil(size * kLine) + 2;
  const auto shown =
      std::min(entries.size(), static_cast<size_t>(std::max(image->height / 2 / height, 1.0)));
  plot::Drawing drawing(image->width, image->height);
  double top = image->height - static_cast<double>(shown) * height;
  for (const LegendEntry& entry : std::span(entries).first(shown)) {
    const std::string text = plot::FitName(entry.text, size, image->width - 4);
    const Area area{0, top, std::ceil(plot::TextWidth(text, size)) + 4, height};
    Fill(area, entry.colour, image);
    AddText(entry.colour, text, area, size, &drawing);
    top += height;
  }
  plot::DrawOnto(drawing, image);
}

}  // namespace mxtrain::report
