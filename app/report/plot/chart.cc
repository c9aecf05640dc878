// SPDX-License-Identifier: Apache-2.0
#include "app/report/plot/chart.h"

#include <algorithm>
#include <cmath>

#include "app/report/plot/font.h"
#include "mxtrain/base/format.h"

namespace mxtrain::plot {
namespace {

constexpr double kTextSize = 12, kTitleSize = 16, kMargin = 16, kTickLength = 5, kLineHeight = 20,
                 kDot = 3.5;

struct LegendItem {
  std::string name;
  Colour colour;
  Chart::Series::Kind kind = Chart::Series::Kind::kLine;
  bool dashed = false;
};

// The rectangle of the data on its page. Surrounding elements are added from the outside in.
class Frame {
 public:
  Frame(double width, double height)
      : drawing_(width, height),
        left_(kMargin),
        top_(kMargin),
        right_(width - kMargin),
        bottom_(height - kMargin) {}

  void AddTitle(const std::string& title, const std::string& subtitle) {
    if (!title.empty()) {
      drawing_.AddText({left_, top_ + 12}, FitText(title, kTitleSize, right_ - left_),
                       {.size = kTitleSize});
      top_ += 24;
    }
    if (!subtitle.empty()) {
      drawing_.AddText({left_, top_ + 9}, FitText(subtitle, kTextSize, right_ - left_),
                       {.size = kTextSize, .colour = kGray});
      top_ += kLineHeight;
    }
  }

  // Left-aligned, in as many lines as needed.
  void AddLegend(const std::vector<LegendItem>& items) {
    if (items.empty()) return;
    constexpr double kSample = 22, kGap = 6, kBetween = 20;
    double x = left_;
    top_ += 2;
    for (const LegendItem& item : items) {
      const std::string name = FitName(item.name, kTextSize, right_ - left_ - kSample - kGap);
      const double width = kSample + kGap + TextWidth(name, kTextSize);
      if (x > left_ && x + width > right_) x = left_, top_ += kLineHeight;
      switch (item.kind) {
        case Chart::Series::Kind::kLine:
          drawing_.AddLine({{x, top_ + 6}, {x + kSample, top_ + 6}},
                           LineStroke(item.colour, item.dashed));
          break;
        case Chart::Series::Kind::kPoints:
          drawing_.AddDot({x + kSample / 2, top_ + 6}, kDot, item.colour);
          break;
        case Chart::Series::Kind::kColumns:
          drawing_.AddBox({x + 5, top_}, 12, 12, item.colour);
          break;
      }
      drawing_.AddText({x + kSample + kGap, top_ + 10.5}, name, {.size = kTextSize});
      x += width + kBetween;
    }
    top_ += kLineHeight + 4;
  }

  static Stroke LineStroke(Colour colour, bool dashed) {
    Stroke stroke{colour, 2};
    if (dashed) stroke.dashes = {6, 4};
    return stroke;
  }

  // Reserves room for the numbers and the label of an axis; the axis is drawn once the rectangle is
  // known.
  void ReserveLeft(double width, const std::string& label) {
    left_ += width + kTickLength + 4 + (label.empty() ? 0 : kLineHeight);
  }
  void ReserveBottom(const std::string& label) {
    bottom_ -= 18 + kTickLength + (label.empty() ? 0 : kLineHeight);
  }
  void ReserveTop() { top_ += kLineHeight; }  // for a line of text
  void ReserveRight(double width) { right_ -= width; }

  double X(const Axis& axis, double value) const {
    return left_ + axis.Place(value) * (right_ - left_);
  }
  double Y(const Axis& axis, double value) const {
    return bottom_ - axis.Place(value) * (bottom_ - top_);
  }

  void AddXAxis(const Axis& axis, const std::string& label, bool grid) {
    for (const Axis::Tick& tick : axis.ticks()) {
      const double x = X(axis, tick.value);
      if (grid) drawing_.AddLine({{x, top_}, {x, bottom_}}, {kGrid, 1});
      drawing_.AddLine({{x, bottom_}, {x, bottom_ + kTickLength}}, {kBlack, 1});
      drawing_.AddText({x, bottom_ + kTickLength + 13}, tick.text,
                       {.size = kTextSize, .anchor = Anchor::kMiddle});
    }
    if (!label.empty()) {
      drawing_.AddText({(left_ + right_) / 2, bottom_ + kTickLength + 13 + kLineHeight}, label,
                       {.size = kTextSize, .anchor = Anchor::kMiddle});
    }
  }
  void AddYAxis(const Axis& axis, const std::string& label) {
    double widest = 0;
    for (const Axis::Tick& tick : axis.ticks()) {
      const double y = Y(axis, tick.value);
      drawing_.AddLine({{left_, y}, {right_, y}}, {kGrid, 1});
      drawing_.AddLine({{left_ - kTickLength, y}, {left_, y}}, {kBlack, 1});
      drawing_.AddText({left_ - kTickLength - 4, y + 4.3}, tick.text,
                       {.size = kTextSize, .anchor = Anchor::kEnd});
      widest = std::max(widest, TextWidth(tick.text, kTextSize));
    }
    if (!label.empty()) {
      const double x = left_ - kTickLength - 4 - widest - 10;
      drawing_.AddText({x, (top_ + bottom_) / 2},
                       FitText(label, kTextSize, bottom_ - top_ + kLineHeight),
                       {.size = kTextSize, .anchor = Anchor::kMiddle, .upwards = true});
    }
  }
  // The two axis lines.
  void AddCorner() {
    drawing_.AddLine({{left_, top_}, {left_, bottom_}, {right_, bottom_}}, {kBlack, 1});
  }

  Drawing& drawing() { return drawing_; }
  double left() const { return left_; }
  double top() const { return top_; }
  double right() const { return right_; }
  double bottom() const { return bottom_; }

 private:
  Drawing drawing_;
  double left_, top_, right_, bottom_;
};

double WidestTick(const Axis& axis) {
  double widest = 0;
  for (const Axis::Tick& tick : axis.ticks())
    widest = std::max(widest, TextWidth(tick.text, kTextSize));
  return widest;
}

// How far the text of the last tick would reach beyond the page, if the tick is at the right end.
double BeyondLastTick(const Axis& axis) {
  if (axis.ticks().empty()) return 0;
  return std::max(0.0, TextWidth(axis.ticks().back().text, kTextSize) / 2 - kMargin);
}

double WidestOf(const std::vector<std::string>& names) {
  double widest = 0;
  for (const std::string& name : names) widest = std::max(widest, TextWidth(name, kTextSize));
  return widest;
}

// A line is interrupted at points that its axes cannot show.
void DrawLine(Frame& frame, const Axis& x, const Axis& y, const Chart::Series& series,
              Colour colour) {
  std::vector<Point> piece;
  const auto end_piece = [&] {
    if (piece.size() == 1) frame.drawing().AddDot(piece[0], kDot, colour);
    if (piece.size() > 1) frame.drawing().AddLine(piece, Frame::LineStroke(colour, series.dashed));
    piece.clear();
  };
  for (const Point& p : series.points) {
    if (x.Shows(p.x) && y.Shows(p.y)) {
      piece.push_back({frame.X(x, p.x), frame.Y(y, p.y)});
    } else {
      end_piece();
    }
  }
  end_piece();
}

void DrawSeries(Frame& frame, const Axis& x, const Axis& y, const Chart::Series& series,
                Colour colour) {
  if (series.kind == Chart::Series::Kind::kLine) return DrawLine(frame, x, y, series, colour);
  for (const Point& p : series.points) {
    if (!x.Shows(p.x) || !y.Shows(p.y)) continue;
    if (series.kind == Chart::Series::Kind::kPoints) {
      frame.drawing().AddDot({frame.X(x, p.x), frame.Y(y, p.y)}, kDot, colour);
    } else {
      const double left = frame.X(x, p.x - series.width / 2), top = frame.Y(y, p.y);
      frame.drawing().AddBox({left, top}, frame.X(x, p.x + series.width / 2) - left - 1,
                             frame.bottom() - top, colour);
    }
  }
}

// Its text is above the data, which it would hide.
void DrawMark(Frame& frame, const Axis& x, const Chart::Mark& mark) {
  if (!x.Shows(mark.x)) return;
  const double at = frame.X(x, mark.x), half = TextWidth(mark.text, kTextSize) / 2;
  frame.drawing().AddLine({{at, frame.top() - 4}, {at, frame.bottom()}}, {kGray, 1, {3, 3}});
  frame.drawing().AddText(
      {std::clamp(at, std::min(frame.left() + half, frame.right() - half), frame.right() - half),
       frame.top() - 8},
      mark.text, {.size = kTextSize, .anchor = Anchor::kMiddle, .colour = kGray});
}

}  // namespace

Drawing Draw(const Chart& chart, double width, double height) {
  std::vector<double> xs, ys;
  std::vector<LegendItem> legend;
  const auto colour_of = [&](size_t i) { return chart.series[i].colour.value_or(SeriesColour(i)); };
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Chart::Series& s = chart.series[i];
    for (const Point& p : s.points) {
      xs.insert(xs.end(), {p.x - s.width / 2, p.x + s.width / 2});
      ys.push_back(p.y);
      if (s.kind == Chart::Series::Kind::kColumns) ys.push_back(0);
    }
    if (!s.name.empty()) legend.push_back({s.name, colour_of(i), s.kind, s.dashed});
  }
  const Axis x(chart.x, xs, std::max(2, static_cast<int>(width / 80))),
      y(chart.y, ys, std::max(2, static_cast<int>(height / 45)));
  Frame frame(width, height);
  frame.AddTitle(chart.title, chart.subtitle);
  frame.AddLegend(legend);
  if (!chart.marks.empty()) frame.ReserveTop();
  frame.ReserveLeft(WidestTick(y), chart.y.label);
  frame.ReserveBottom(chart.x.label);
  frame.ReserveRight(BeyondLastTick(x));
  frame.AddXAxis(x, chart.x.label, true);
  frame.AddYAxis(y, chart.y.label);
  for (size_t i = 0; i < chart.series.size(); ++i)
    DrawSeries(frame, x, y, chart.series[i], colour_of(i));
  for (const Chart::Mark& mark : chart.marks) DrawMark(frame, x, mark);
  frame.AddCorner();
  return std::move(frame.drawing());
}

Drawing Draw(const BarChart& chart, double width) {
  constexpr double kBar = 8, kGap = 8, kMostName = 200;
  const double group = kBar * static_cast<double>(chart.series.size()) + kGap;
  std::vector<double> values{0};
  std::vector<LegendItem> legend;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    values.insert(values.end(), chart.series[i].values.begin(), chart.series[i].values.end());
    legend.push_back({chart.series[i].name, SeriesColour(i), Chart::Series::Kind::kColumns});
  }
  const Axis x(chart.values, values, 8);
  Frame frame(width, group * static_cast<double>(chart.names.size()) + kGap + 130 +
                         (chart.subtitle.empty() ? 0 : kLineHeight));
  frame.AddTitle(chart.title, chart.subtitle);
  frame.AddLegend(legend);
  frame.ReserveLeft(std::min(WidestOf(chart.names), kMostName), "");
  frame.ReserveBottom(chart.values.label);
  frame.ReserveRight(BeyondLastTick(x));
  frame.AddXAxis(x, chart.values.label, true);
  for (size_t k = 0; k < chart.names.size(); ++k) {
    const double top = frame.top() + kGap + group * static_cast<double>(k);
    frame.drawing().AddText({frame.left() - kTickLength - 4, top + (group - kGap) / 2 + 4.3},
                            FitName(chart.names[k], kTextSize, kMostName),
                            {.size = kTextSize, .anchor = Anchor::kEnd});
    for (size_t i = 0; i < chart.series.size(); ++i) {
      const double value = chart.series[i].values[k];
      if (!x.Shows(value)) continue;
      const double y = top + kBar * static_cast<double>(i), zero = frame.X(x, 0);
      frame.drawing().AddBox({zero, y}, frame.X(x, value) - zero, kBar - 1, SeriesColour(i), 1,
                             format("{}: {} {:.4f}", chart.names[k], chart.series[i].name, value));
    }
  }
  frame.AddCorner();
  return std::move(frame.drawing());
}

namespace {

constexpr Colour kDarkBlue{8, 48, 107};

// The cells as one raster image, if there are too many for separate shapes.
io::Image ToImage(const HeatMap& map) {
  io::Image image;
  const int n = static_cast<int>(map.shades.size());
  image.Resize(n, n, 3);
  for (int r = 0; r < n; ++r) {
    for (int c = 0; c < n; ++c) {
      const Colour colour =
          Between(kWhite, kDarkBlue, map.shades[static_cast<size_t>(r)][static_cast<size_t>(c)]);
      uint8_t* pixel = image.row(r) + 3 * c;
      pixel[0] = colour.red, pixel[1] = colour.green, pixel[2] = colour.blue;
    }
  }
  return image;
}

void DrawCells(Drawing& drawing, const HeatMap& map, Point corner, double cell) {
  constexpr double kLeastForText = 22;
  for (size_t r = 0; r < map.shades.size(); ++r) {
    for (size_t c = 0; c < map.shades[r].size(); ++c) {
      const double shade = map.shades[r][c];
      const Point at{corner.x + cell * static_cast<double>(c),
                     corner.y + cell * static_cast<double>(r)};
      drawing.AddBox(at, cell, cell, Between(kWhite, kDarkBlue, shade), 1,
                     format("{} \u2192 {}: {}", map.names[r], map.names[c], map.texts[r][c]));
      const double size = std::min(kTextSize, cell / 3.2);
      if (cell < kLeastForText || map.texts[r][c].empty() ||
          TextWidth(map.texts[r][c], size) > cell)
        continue;
      drawing.AddText(
          {at.x + cell / 2, at.y + cell / 2 + size * 0.36}, map.texts[r][c],
          {.size = size, .anchor = Anchor::kMiddle, .colour = shade > 0.5 ? kWhite : kBlack});
    }
  }
}

// The shades and their numbers, next to the cells.
void DrawScale(Drawing& drawing, Point at, double height, const std::string& label) {
  constexpr int kSteps = 100;
  constexpr double kWidth = 14;
  for (int i = 0; i < kSteps; ++i) {
    const double y = at.y + height * i / kSteps;
    drawing.AddBox({at.x, y}, kWidth, height / kSteps + 0.5,
                   Between(kDarkBlue, kWhite, (i + 0.5) / kSteps));
  }
  drawing.AddFrame(at, kWidth, height, {kBlack, 1});
  for (int i = 0; i <= 4; ++i) {
    drawing.AddText({at.x + kWidth + 5, at.y + height * (1 - i / 4.0) + 4}, format("{:g}", i / 4.0),
                    {.size = kTextSize});
  }
  drawing.AddText({at.x + kWidth + 48, at.y + height / 2}, label,
                  {.size = kTextSize, .anchor = Anchor::kMiddle, .upwards = true});
}

}  // namespace

Drawing Draw(const HeatMap& map) {
  constexpr double kFewSide = 400, kSide = 560, kMostCell = 56, kLeastForNames = 9,
                   kMostShapes = 60, kMostName = 100, kScale = 84;
  const double count = static_cast<double>(map.shades.size());
  constexpr double kFew = 12;  // classes, whose matrix stands beside other figures in reports
  const double beside =
      kMargin + kLineHeight + std::min(WidestOf(map.names), kMostName) + 8 + kScale;
  const double wanted = count <= kFew ? std::min(kFewSide, kSide - std::ceil(beside)) : kSide;
  // The label of the scale stands upright beside the cells: two classes get larger ones for it.
  const double least = TextWidth(map.value_label, kTextSize) / count;
  const double cell = std::max(least, std::min(kMostCell, std::max(wanted / count, 0.5))),
               side = cell * count;
  const bool names = cell >= kLeastForNames;
  const double name_size = std::min(kTextSize, cell * 0.9),
               names_width = names ? std::min(WidestOf(map.names), kMostName) + 8 : 0;
  const double top = kMargin + 24 + (map.subtitle.empty() ? 0 : kLineHeight) + 6;
  // An integer, to avoid seams between cells.
  const double left = std::ceil(kMargin + kLineHeight + names_width);
  const double width =
      std::max(left + side + kScale, kMargin * 2 + TextWidth(map.title, kTitleSize));
  Frame frame(std::max(width, kMargin * 2 + TextWidth(map.subtitle, kTextSize)),
              top + side + names_width + kLineHeight + kMargin);
  frame.AddTitle(map.title, map.subtitle);
  Drawing& drawing = frame.drawing();
  const Point corner{left, top};
  if (count > kMostShapes) {
    drawing.AddImage(corner, side, side, ToImage(map));
  } else {
    DrawCells(drawing, map, corner, cell);
  }
  drawing.AddFrame(corner, side, side, {kBlack, 1});
  for (size_t k = 0; names && k < map.names.size(); ++k) {
    const double middle = cell * (static_cast<double>(k) + 0.5) + name_size * 0.36;
    const std::string name = FitName(map.names[k], name_size, kMostName);
    drawing.AddText({left - 6, top + middle}, name, {.size = name_size, .anchor = Anchor::kEnd});
    drawing.AddText({left + middle, top + side + 6}, name,
                    {.size = name_size, .anchor = Anchor::kEnd, .upwards = true});
  }
  drawing.AddText({kMargin + 10, top + side / 2}, map.row_label,
                  {.size = kTextSize, .anchor = Anchor::kMiddle, .upwards = true});
  drawing.AddText({left + side / 2, top + side + names_width + 16}, map.column_label,
                  {.size = kTextSize, .anchor = Anchor::kMiddle});
  DrawScale(drawing, {left + side + 18, top}, side, map.value_label);
  return std::move(drawing);
}

namespace {

// A shape, moved down.
Drawing::Shape Moved(Drawing::Shape shape, double dy) {
  struct Move {
    double dy;
    void operator()(Drawing::Line& line) const { Each(line.points); }
    void operator()(Drawing::Area& area) const { Each(area.points); }
    void operator()(Drawing::Text& text) const { text.at.y += dy; }
    void operator()(Drawing::Raster& raster) const { raster.at.y += dy; }
    void Each(std::vector<Point>& points) const {
      for (Point& p : points) p.y += dy;
    }
  };
  std::visit(Move{dy}, shape);
  return shape;
}

}  // namespace

Drawing Stack(const Drawing& above, const Drawing& below) {
  Drawing both(std::max(above.width(), below.width()), above.height() + below.height());
  for (const Drawing::Shape& shape : above.shapes()) both.Add(shape);
  for (const Drawing::Shape& shape : below.shapes()) both.Add(Moved(shape, above.height()));
  return both;
}

}  // namespace mxtrain::plot
