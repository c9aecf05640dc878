// SPDX-License-Identifier: Apache-2.0
#pragma once
// A figure as a list of shapes, rendered identically as SVG and PNG. One unit is one CSS pixel in
// SVG; x goes right, y down, from the upper left corner.
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mxtrain/io/image.h"

namespace mxtrain::plot {

struct Point {
  double x = 0, y = 0;
};

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
};

// The colour-blind safe palette of Okabe and Ito (2008), and shades of gray.
inline constexpr Colour kBlack{0, 0, 0}, kWhite{255, 255, 255}, kGray{110, 110, 110},
    kGrid{225, 225, 225};
inline constexpr Colour kBlue{0, 114, 178}, kVermilion{213, 94, 0}, kGreen{0, 158, 115},
    kOrange{230, 159, 0}, kSky{86, 180, 233}, kPurple{204, 121, 167}, kYellow{240, 228, 66};
// The i-th colour for lines and bars; the next after kSeriesColours is the first again.
constexpr size_t kSeriesColours = 7;
Colour SeriesColour(size_t i);
// t from 0 (a) to 1 (b).
Colour Between(Colour a, Colour b, double t);

struct Stroke {
  Colour colour = kBlack;
  double width = 1;
  std::vector<double> dashes = {};  // alternating lengths of dashes and gaps; empty: solid
};

enum class Anchor { kStart, kMiddle, kEnd };
struct TextStyle {
  double size = 12;
  Anchor anchor = Anchor::kStart;  // which part of the text is at its position
  Colour colour = kBlack;
  bool upwards = false;  // rotated by 90 degrees, reads bottom to top
};

class Drawing {
 public:
  struct Line {
    std::vector<Point> points;
    Stroke stroke;
  };
  struct Area {  // a polygon
    std::vector<Point> points;
    Colour fill;
    double opacity = 1;
    std::string tooltip;  // of the SVG
  };
  struct Text {
    Point at;  // on the baseline
    std::string text;
    TextStyle style;
  };
  struct Raster {
    Point at;
    double width = 0, height = 0;
    io::Image image;  // pixels stay sharp when enlarged
  };
  using Shape = std::variant<Line, Area, Text, Raster>;

  Drawing(double width, double height) : width_(width), height_(height) {}
  double width() const { return width_; }
  double height() const { return height_; }
  const std::vector<Shape>& shapes() const {
    return shapes_;
  }  // in drawing order; the background is white

  void Add(Shape shape) { shapes_.push_back(std::move(shape)); }
  void AddLine(std::vector<Point> points, const Stroke& stroke) {
    shapes_.emplace_back(Line{std::move(points), stroke});
  }
  void AddArea(std::vector<Point> points, Colour fill, double opacity = 1,
               std::string tooltip = "") {
    shapes_.emplace_back(Area{std::move(points), fill, opacity, std::move(tooltip)});
  }
  void AddBox(Point corner, double width, double height, Colour fill, double opacity = 1,
              std::string tooltip = "");
  void AddFrame(Point corner, double width, double height, const Stroke& stroke);
  void AddDot(Point centre, double radius, Colour fill);
  void AddText(Point at, const std::string& text, const TextStyle& style = {}) {
    shapes_.emplace_back(Text{at, text, style});
  }
  void AddImage(Point at, double width, double height, io::Image image) {
    shapes_.emplace_back(Raster{at, width, height, std::move(image)});
  }

 private:
  double width_, height_;
  std::vector<Shape> shapes_;
};

// Standalone SVG 1.1; names of files and classes are escaped.
std::string ToSvg(const Drawing& drawing);
// Whether a file holds nothing but what ToSvg writes: shapes, texts and embedded PNG files, no
// scripts, styles or links.
bool IsDrawing(std::string_view svg);
// RGB pixels, `scale` per unit.
io::Image ToImage(const Drawing& drawing, double scale = 2);
// Draws over an RGB image, one pixel per unit.
void DrawOnto(const Drawing& drawing, io::Image* image);
// Writes PATH.svg and PATH.png. Throws kFileSystem.
void Save(const Drawing& drawing, const std::string& path);
// Writes only the format of the path's extension: .svg, .png. Throws kUsage for others.
void SaveAs(const Drawing& drawing, const std::string& path);

// Text escaped for XML and HTML; invalid UTF-8 bytes become U+FFFD.
std::string EscapeXml(const std::string& text);
// "data:image/png;base64,..." of a file's bytes.
std::string PngDataUri(std::string_view png);

}  // namespace mxtrain::plot
