// SPDX-License-Identifier: Apache-2.0
#include "app/report/plot/drawing.h"

#include <array>
#include <cmath>
#include <numbers>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::plot {

Colour SeriesColour(size_t i) {
  static constexpr std::array<Colour, kSeriesColours> kColours = {
      kBlue, kVermilion, kGreen, kOrange, kPurple, kSky, kBlack};
  return kColours[i % kColours.size()];
}

Colour Between(Colour a, Colour b, double t) {
  const auto mix = [t](uint8_t from, uint8_t to) {
    return static_cast<uint8_t>(std::lround(from + t * (to - from)));
  };
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

void Drawing::AddBox(Point c, double width, double height, Colour fill, double opacity,
                     std::string tooltip) {
  AddArea({c, {c.x + width, c.y}, {c.x + width, c.y + height}, {c.x, c.y + height}}, fill, opacity,
          std::move(tooltip));
}

void Drawing::AddFrame(Point c, double width, double height, const Stroke& stroke) {
  AddLine({c, {c.x + width, c.y}, {c.x + width, c.y + height}, {c.x, c.y + height}, c}, stroke);
}

void Drawing::AddDot(Point centre, double radius, Colour fill) {
  constexpr int kCorners = 20;
  std::vector<Point> points;
  for (int i = 0; i < kCorners; ++i) {
    const double angle = 2 * std::numbers::pi * i / kCorners;
    points.push_back({centre.x + radius * std::cos(angle), centre.y + radius * std::sin(angle)});
  }
  AddArea(std::move(points), fill);
}

void Save(const Drawing& drawing, const std::string& path) {
  for (const char* ending : {".svg", ".png"}) SaveAs(drawing, path + ending);
}

void SaveAs(const Drawing& drawing, const std::string& path) {
  if (path.ends_with(".svg")) return WriteFileAtomically(path, ToSvg(drawing));
  if (path.ends_with(".png")) return WriteFileAtomically(path, io::EncodePng(ToImage(drawing)));
  Throw(ErrorKind::kUsage, "{}: figures are written as .svg or .png; use one of these extensions",
        path);
}

}  // namespace mxtrain::plot
