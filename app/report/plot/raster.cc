// SPDX-License-Identifier: Apache-2.0
// Rasterizes a drawing. Every shape is a set of polygons, filled with exact coverage: each edge
// adds the signed area to its right in every pixel that it crosses; a running sum along each row
// gives the covered fraction of each pixel.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "app/report/plot/drawing.h"
#include "app/report/plot/font.h"

namespace mxtrain::plot {
namespace {

using Contour = std::vector<Point>;

// The fraction of each pixel of a box that some contours cover.
class Coverage {
 public:
  // The box around the contours.
  explicit Coverage(const std::vector<Contour>& contours) {
    double left = HUGE_VAL, top = HUGE_VAL, right = -HUGE_VAL, bottom = -HUGE_VAL;
    for (const Contour& contour : contours) {
      for (const Point& p : contour) {
        left = std::min(left, p.x), right = std::max(right, p.x);
        top = std::min(top, p.y), bottom = std::max(bottom, p.y);
      }
    }
    if (left > right) return;  // nothing to cover
    left_ = static_cast<int>(std::floor(left)), top_ = static_cast<int>(std::floor(top));
    width_ = static_cast<int>(std::floor(right)) + 1 - left_,
    height_ = static_cast<int>(std::floor(bottom)) + 1 - top_;
    sums_.resize(static_cast<size_t>(width_ + 2) * static_cast<size_t>(height_));
    for (const Contour& contour : contours) {
      for (size_t i = 0; i < contour.size(); ++i)
        AddEdge(contour[i], contour[(i + 1) % contour.size()]);
    }
  }

  // Calls blend(x, y, part) for each covered pixel.
  template <typename Blend>
  void ForEach(Blend blend) const {
    for (int y = 0; y < height_; ++y) {
      double sum = 0;
      for (int x = 0; x < width_; ++x) {
        sum += sums_[Index(x, y)];
        const double part = std::min(std::abs(sum), 1.0);
        if (part > 1e-3) blend(left_ + x, top_ + y, part);
      }
    }
  }

 private:
  size_t Index(int x, int y) const {
    return static_cast<size_t>(y) * static_cast<size_t>(width_ + 2) + static_cast<size_t>(x);
  }

  void AddEdge(Point a, Point b) {
    a = {a.x - left_, a.y - top_}, b = {b.x - left_, b.y - top_};
    if (a.y == b.y) return;
    const double sign = a.y < b.y ? 1 : -1;
    if (a.y > b.y) std::swap(a, b);
    const double slope = (b.x - a.x) / (b.y - a.y);
    for (int y = static_cast<int>(a.y); y <= static_cast<int>(b.y); ++y) {
      const double from = std::max<double>(a.y, y), to = std::min<double>(b.y, y + 1);
      if (to > from)
        AddKernel(y, a.x + (from - a.y) * slope, a.x + (to - a.y) * slope, sign * (to - from));
    }
  }

  // An edge within one row, from x0 to x1, whose signed height is `height`.
  void AddKernel(int y, double x0, double x1, double height) {
    if (x0 > x1) std::swap(x0, x1);
    const int first = static_cast<int>(x0), last = static_cast<int>(x1);
    double before = 0;   // fraction of the edge in earlier pixels
    double carried = 0;  // its coverage carried from the previous pixel
    for (int x = first; x <= last; ++x) {
      // The edge within this pixel: its fraction of the height, and the position of its middle.
      const double l = std::max<double>(x0, x), r = std::min<double>(x1, x + 1);
      const double part = x1 > x0 ? (r - l) / (x1 - x0) : 1;
      // Of this pixel, by the edge so far.
      const double covered = before + part * (x + 1 - (l + r) / 2);
      sums_[Index(x, y)] += height * (covered - carried);
      carried = covered;
      before += part;
    }
    sums_[Index(last + 1, y)] += height * (1 - carried);
  }

  int left_ = 0, top_ = 0, width_ = 0, height_ = 0;
  // Differences along each row, with two extra entries: rounding may move an edge one pixel
  // further.
  std::vector<double> sums_;
};

class Raster {
 public:
  Raster(const Drawing& drawing, double scale) : scale_(scale) {
    image_.Resize(static_cast<int>(std::ceil(drawing.height() * scale)),
                  static_cast<int>(std::ceil(drawing.width() * scale)), 3);
    std::fill(image_.pixels.begin(), image_.pixels.end(), uint8_t{255});
    DrawAll(drawing);
  }
  // Over what is there, one pixel per unit.
  Raster(const Drawing& drawing, io::Image image) : scale_(1), image_(std::move(image)) {
    DrawAll(drawing);
  }
  io::Image Take() { return std::move(image_); }

 private:
  void DrawAll(const Drawing& drawing) {
    for (const Drawing::Shape& shape : drawing.shapes()) {
      std::visit([this](const auto& s) { Draw(s); }, shape);
    }
  }
  Point At(Point p) const { return {p.x * scale_, p.y * scale_}; }

  void Fill(const std::vector<Contour>& contours, Colour colour, double opacity) {
    Coverage(contours).ForEach([&](int x, int y, double part) {
      if (x < 0 || x >= image_.width || y < 0 || y >= image_.height) return;
      uint8_t* pixel = image_.row(y) + 3 * x;
      const Colour mixed = Between({pixel[0], pixel[1], pixel[2]}, colour, part * opacity);
      pixel[0] = mixed.red, pixel[1] = mixed.green, pixel[2] = mixed.blue;
    });
  }

  void Draw(const Drawing::Area& area) {
    Contour contour;
    for (const Point& p : area.points) contour.push_back(At(p));
    Fill({contour}, area.fill, area.opacity);
  }

  void Draw(const Drawing::Text& text) {
    const double width = TextWidth(text.text, text.style.size);
    const double shift = text.style.anchor == Anchor::kStart    ? 0
                         : text.style.anchor == Anchor::kMiddle ? width / 2
                                                                : width;
    std::vector<Contour> contours = TextOutline(text.text, text.style.size);
    for (Contour& contour : contours) {
      for (Point& p : contour) {
        const double along = p.x - shift;
        p = At(text.style.upwards ? Point{text.at.x + p.y, text.at.y - along}
                                  : Point{text.at.x + along, text.at.y + p.y});
      }
    }
    Fill(contours, text.style.colour, 1);
  }

  void Draw(const Drawing::Raster& p) {
    const int left = static_cast<int>(std::lround(p.at.x * scale_)),
              top = static_cast<int>(std::lround(p.at.y * scale_));
    const int width = static_cast<int>(std::lround(p.width * scale_)),
              height = static_cast<int>(std::lround(p.height * scale_));
    for (int y = std::max(0, -top); y < height && top + y < image_.height; ++y) {
      const uint8_t* row = p.image.row(y * p.image.height / height);
      for (int x = std::max(0, -left); x < width && left + x < image_.width; ++x) {
        const uint8_t* from = row + x * p.image.width / width * p.image.channels;
        uint8_t* to = image_.row(top + y) + 3 * (left + x);
        for (int c = 0; c < 3; ++c) to[c] = from[p.image.channels == 3 ? c : 0];
      }
    }
  }

  // A rectangle for each line segment, and a disc at each corner. All have the same orientation, so
  // that overlaps do not cancel.
  void Draw(const Drawing::Line& line) {
    const double half = std::max(line.stroke.width * scale_ / 2, 0.35);
    std::vector<Contour> contours;
    for (const std::vector<Point>& piece : Dashes(line)) {
      for (size_t i = 0; i + 1 < piece.size(); ++i) {
        const Point a = At(piece[i]), b = At(piece[i + 1]);
        const double length = std::hypot(b.x - a.x, b.y - a.y);
        if (length == 0) continue;
        const double nx = -(b.y - a.y) / length * half, ny = (b.x - a.x) / length * half;
        contours.push_back({{a.x + nx, a.y + ny},
                            {a.x - nx, a.y - ny},
                            {b.x - nx, b.y - ny},
                            {b.x + nx, b.y + ny}});
        if (i > 0 && Turns(piece[i - 1], piece[i], piece[i + 1])) contours.push_back(Disc(a, half));
      }
    }
    Fill(contours, line.stroke.colour, 1);
  }

  static bool Turns(Point a, Point b, Point c) {
    const double ux = b.x - a.x, uy = b.y - a.y, vx = c.x - b.x, vy = c.y - b.y;
    return ux * vx + uy * vy < 0.98 * std::hypot(ux, uy) * std::hypot(vx, vy);
  }

  static Contour Disc(Point centre, double radius) {
    constexpr int kCorners = 16;
    Contour contour;
    for (int i = 0; i < kCorners; ++i) {
      const double angle = 2 * std::numbers::pi * i / kCorners;
      contour.push_back({centre.x + radius * std::cos(angle), centre.y + radius * std::sin(angle)});
    }
    return contour;
  }

  // The line, or its dashes.
  static std::vector<std::vector<Point>> Dashes(const Drawing::Line& line) {
    const std::vector<double>& dashes = line.stroke.dashes;
    if (dashes.empty() || line.points.size() < 2) return {line.points};
    std::vector<std::vector<Point>> pieces{{line.points[0]}};
    size_t dash = 0;
    double left = dashes[0];
    for (size_t i = 0; i + 1 < line.points.size(); ++i) {
      const Point a = line.points[i], b = line.points[i + 1];
      const double length = std::hypot(b.x - a.x, b.y - a.y);
      double done = 0;
      while (length - done > left) {
        done += left;
        const Point at{a.x + (b.x - a.x) * done / length, a.y + (b.y - a.y) * done / length};
        if (dash % 2 == 0) {
          pieces.back().push_back(at);
        } else {
          pieces.push_back({at});
        }
        left = dashes[++dash % dashes.size()];
      }
      left -= length - done;
      if (dash % 2 == 0) pieces.back().push_back(b);
    }
    return pieces;
  }

  const double scale_;
  io::Image image_;
};

}  // namespace

io::Image ToImage(const Drawing& drawing, double scale) {
  return Raster(drawing, scale).Take();
}

void DrawOnto(const Drawing& drawing, io::Image* image) {
  *image = Raster(drawing, std::move(*image)).Take();
}

}  // namespace mxtrain::plot
