// SPDX-License-Identifier: Apache-2.0
#pragma once
// Charts as data; Draw lays them out: title, legend above the data, never on it, axes with ticks
// and labels.
#include <optional>
#include <string>
#include <vector>

#include "app/report/plot/axis.h"
#include "app/report/plot/drawing.h"

namespace mxtrain::plot {

// Curves, points and columns over two axes of numbers.
struct Chart {
  struct Series {
    enum class Kind { kLine, kPoints, kColumns };
    std::string name = {};           // in the legend; "": not shown
    std::vector<Point> points = {};  // non-finite points interrupt a line
    Kind kind = Kind::kLine;
    std::optional<Colour> colour = {};  // default: by index of the series
    bool dashed = false;
    double width = 0;  // of columns, in units of x
  };
  // A marker at one x: a dashed vertical line with a text.
  struct Mark {
    double x;
    std::string text;
  };
  std::string title, subtitle;
  AxisSpec x, y;
  std::vector<Series> series;
  std::vector<Mark> marks;
};
Drawing Draw(const Chart& chart, double width = 720, double height = 450);

// Horizontal bars, one group per name.
struct BarChart {
  struct Series {
    std::string name;
    std::vector<double> values;  // one for each of `names`
  };
  std::string title, subtitle;
  std::vector<std::string> names;
  std::vector<Series> series;
  AxisSpec values;
};
Drawing Draw(const BarChart& chart, double width = 720);

// A table of numbers in shades of blue, first row on top.
struct HeatMap {
  std::string title, subtitle, row_label, column_label, value_label;
  std::vector<std::string> names;               // of rows and columns alike
  std::vector<std::vector<double>> shades;      // [row][column], 0 .. 1
  std::vector<std::vector<std::string>> texts;  // in the cells, if there is room
};
Drawing Draw(const HeatMap& map);

// Stacks two drawings vertically.
Drawing Stack(const Drawing& above, const Drawing& below);

}  // namespace mxtrain::plot
