// SPDX-License-Identifier: Apache-2.0
#include "app/commands/net_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "app/commands/net_boxes.h"
#include "app/commands/net_layout.h"
#include "app/report/plot/font.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/math.h"

namespace mxtrain::commands {
namespace {

using plot::Anchor;
using plot::Drawing;
using plot::Point;

constexpr double kTextSize = 12, kTitleSize = 16;
constexpr double kBoxWidth = 276, kBoxHeight = 38, kPitch = 66, kPassing = 18, kLaneGap = 14,
                 kColumnGap = 56, kMargin = 24, kTopMargin = 92;
constexpr int kMostOfOneColumn = 14;  // maximum number of rows without a break into columns
const plot::Stroke kConnection{plot::kGray, 1.3, {}};

plot::Colour ColourOf(NetBox::Family family) {
  static constexpr std::array kColours = {plot::kBlack, plot::kSky,    plot::kOrange,
                                          plot::kGreen, plot::kYellow, plot::kVermilion,
                                          plot::kPurple};
  return kColours[static_cast<size_t>(family)];
}

// "1.2 M", "9.4 k".
std::string ShortCount(int64_t count) {
  const auto value = static_cast<double>(count);
  return value >= 1e6   ? format("{:.1f} M", value / 1e6)
         : value >= 1e4 ? format("{:.0f} k", value / 1e3)
                        : std::to_string(count);
}

// The rows after a narrow one, up to the next narrow one: a single row of a chain, or branches and
// their join.
struct Segment {
  int first = 0, last = 0;
  std::map<int, double> lanes;  // middle of each lane; lane 0 is at 0
  double left = 0, right = 0;   // extent of boxes and connections
  int column = 0;
  int rows() const { return last - first + 1; }
};

class NetImage {
 public:
  NetImage(std::vector<NetBox> boxes, std::string title)
      : boxes_(std::move(boxes)), title_(std::move(title)) {
    std::vector<std::vector<int>> inputs;
    for (const NetBox& box : boxes_) inputs.push_back(box.inputs);
    layout_ = LayOutNet(inputs);
    MakeSegments();
    BreakIntoColumns();
  }

  Drawing Draw() {
    double width = 2 * kMargin - kColumnGap;
    for (double column : column_widths_) width += column + kColumnGap;
    int most = 0;
    for (const Segment& s : segments_) most = std::max(most, s.last - ColumnBegin(s.column) + 1);
    Drawing drawing(std::max({width, 2 * kMargin + plot::TextWidth(title_, kTitleSize),
                              2 * kMargin + kLegendWidth}),
                    kTopMargin + kPitch * most + kMargin);
    DrawTitle(&drawing);
    for (const Segment& s : segments_) DrawGround(s, &drawing);
    for (size_t v = 0; v < layout_.vertices.size(); ++v)
      DrawConnections(static_cast<int>(v), &drawing);
    for (const NetLayout::Vertex& vertex : layout_.vertices) DrawBox(vertex, &drawing);
    return drawing;
  }

 private:
  static constexpr double kLegendWidth = 620;

  void MakeSegments() {
    segment_of_.resize(static_cast<size_t>(layout_.rows));
    for (int row = 0; row < layout_.rows; ++row) {
      if (row == 0 || layout_.narrow[static_cast<size_t>(row - 1)]) {
        Segment s;
        s.first = row;
        segments_.push_back(std::move(s));
      }
      segments_.back().last = row;
      segment_of_[static_cast<size_t>(row)] = segments_.size() - 1;
    }
    for (const NetLayout::Vertex& v : layout_.vertices) {
      double& width = SegmentOf(v).lanes[v.lane];
      width = std::max(width, v.box >= 0 ? kBoxWidth : kPassing);
    }
    for (Segment& s : segments_) PlaceLanes(&s);
  }

  // From widths to middles.
  static void PlaceLanes(Segment* s) {
    const std::map<int, double> widths = s->lanes;
    s->right = widths.at(0) / 2, s->left = -s->right;
    s->lanes[0] = 0;
    for (auto lane = widths.upper_bound(0); lane != widths.end(); ++lane) {
      s->lanes[lane->first] = s->right + kLaneGap + lane->second / 2;
      s->right += kLaneGap + lane->second;
    }
    for (auto lane = widths.find(0); lane != widths.begin();) {
      --lane;
      s->lanes[lane->first] = s->left - kLaneGap - lane->second / 2;
      s->left -= kLaneGap + lane->second;
    }
  }

  // Chooses the number of columns for a page about 1.5 times as wide as high.
  void BreakIntoColumns() {
    double widest = 0;
    for (const Segment& s : segments_) widest = std::max(widest, s.right - s.left);
    int columns = 1;
    while (layout_.rows > kMostOfOneColumn &&
           1.5 * kPitch * layout_.rows / columns > columns * (widest + kColumnGap))
      ++columns;
    const int most = CeilDivide(layout_.rows, columns);
    int begin = 0, column = 0;
    for (Segment& s : segments_) {
      if (s.last - begin + 1 > most && s.first > begin) begin = s.first, ++column;
      s.column = column;
    }
    column_widths_.assign(static_cast<size_t>(column) + 1, 0);
    column_lefts_.assign(static_cast<size_t>(column) + 1, 0);
    for (const Segment& s : segments_)
      column_lefts_[static_cast<size_t>(s.column)] =
          std::min(column_lefts_[static_cast<size_t>(s.column)], s.left);
    for (const Segment& s : segments_) {
      double& width = column_widths_[static_cast<size_t>(s.column)];
      width = std::max(width, s.right - column_lefts_[static_cast<size_t>(s.column)]);
    }
  }

  Segment& SegmentOf(const NetLayout::Vertex& v) {
    return segments_[segment_of_[static_cast<size_t>(v.row)]];
  }
  int ColumnBegin(int column) const {
    return std::find_if(segments_.begin(), segments_.end(),
                        [column](const Segment& s) { return s.column == column; })
        ->first;
  }
  // The position of lane 0 of a column.
  double ColumnMiddle(int column) const {
    double x = kMargin;
    for (int c = 0; c < column; ++c) x += column_widths_[static_cast<size_t>(c)] + kColumnGap;
    return x - column_lefts_[static_cast<size_t>(column)];
  }
  double RowTop(int row) const {
    const int column = segments_[segment_of_[static_cast<size_t>(row)]].column;
    return kTopMargin + kPitch * (row - ColumnBegin(column)) + (kPitch - kBoxHeight) / 2;
  }
  double MiddleOf(const NetLayout::Vertex& v) {
    const Segment& s = SegmentOf(v);
    return ColumnMiddle(s.column) + s.lanes.at(v.lane);
  }

  void DrawTitle(Drawing* drawing) const {
    int64_t parameters = 0;
    for (const NetBox& box : boxes_) parameters += box.parameters;
    drawing->AddText({kMargin, 34}, format("{}: {} parameters", title_, parameters),
                     {.size = kTitleSize});
    static constexpr std::pair<NetBox::Family, const char*> kNames[] = {
        {NetBox::Family::kConvolution, "convolution"},
        {NetBox::Family::kMatrix, "fully connected"},
        {NetBox::Family::kPooling, "pooling"},
        {NetBox::Family::kJoin, "join"},
        {NetBox::Family::kOther, "other"},
        {NetBox::Family::kHead, "output"}};
    double x = kMargin;
    for (const auto& [family, name] : kNames) {
      drawing->AddBox({x, 50}, 12, 12, plot::Between(plot::kWhite, ColourOf(family), 0.75));
      drawing->AddText({x + 17, 60.5}, name, {.size = kTextSize});
      x += 38 + plot::TextWidth(name, kTextSize);
    }
    drawing->AddText(
        {kMargin, 81},
        "lower line of each box: name of its first layer, output shape for one example, parameters",
        {.size = kTextSize, .colour = plot::kGray});
  }

  // The common prefix of the names of all boxes of a segment, up to an underscore.
  std::string CommonName(const Segment& s) const {
    std::optional<std::string> common;
    for (const NetLayout::Vertex& v : layout_.vertices) {
      if (v.box < 0 || v.row < s.first || v.row > s.last) continue;
      const std::string& name = boxes_[static_cast<size_t>(v.box)].name;
      if (!common) common = name;
      size_t same = 0;
      while (same < common->size() && same < name.size() && (*common)[same] == name[same]) ++same;
      common->resize(same);
    }
    const size_t end = common ? common->rfind('_') : std::string::npos;
    return end == std::string::npos ? "" : common->substr(0, end);
  }

  void DrawGround(const Segment& s, Drawing* drawing) const {
    if (s.rows() < 2) return;
    const double left = ColumnMiddle(s.column) + s.left - 8, width = s.right - s.left + 16;
    const double top = RowTop(s.first) - 8, bottom = RowTop(s.last) + kBoxHeight + 13;
    drawing->AddBox({left, top}, width, bottom - top, plot::Colour{244, 244, 244});
    drawing->AddText({left + 8, bottom - 3},
                     plot::FitText(CommonName(s), kTextSize, width / 2 - 20),
                     {.size = kTextSize, .colour = plot::kGray});
  }

  void DrawConnections(int v, Drawing* drawing) {
    const NetLayout::Vertex& to = layout_.vertices[static_cast<size_t>(v)];
    const double x = MiddleOf(to), top = RowTop(to.row);
    if (to.box < 0) drawing->AddLine({{x, top}, {x, top + kBoxHeight}}, kConnection);
    for (int input : to.inputs) {
      const NetLayout::Vertex& from = layout_.vertices[static_cast<size_t>(input)];
      const double from_x = MiddleOf(from), bottom = RowTop(from.row) + kBoxHeight;
      const int from_column = SegmentOf(from).column;
      const double turn = top - (kPitch - kBoxHeight) / 2;
      std::vector<Point> way{{from_x, bottom}};
      if (from_column != SegmentOf(to).column) {
        // Runs below its column, up between the columns, and enters from above.
        const double between = ColumnMiddle(SegmentOf(to).column) +
                               column_lefts_[static_cast<size_t>(SegmentOf(to).column)] -
                               kColumnGap / 2;
        const double below = bottom + (kPitch - kBoxHeight) / 2;
        way.insert(way.end(), {{from_x, below}, {between, below}, {between, turn}, {x, turn}});
      } else if (from_x != x) {
        way.insert(way.end(), {{from_x, turn}, {x, turn}});
      }
      way.push_back({x, top});
      drawing->AddLine(std::move(way), kConnection);
    }
    if (to.box >= 0 && !to.inputs.empty())
      drawing->AddArea({{x, top}, {x - 4, top - 7}, {x + 4, top - 7}}, plot::kGray);
  }

  void DrawBox(const NetLayout::Vertex& v, Drawing* drawing) {
    if (v.box < 0) return;
    const NetBox& box = boxes_[static_cast<size_t>(v.box)];
    const double left = MiddleOf(v) - kBoxWidth / 2, top = RowTop(v.row), inner = kBoxWidth - 14;
    const plot::Colour colour = ColourOf(box.family);
    const std::string facts =
        box.parameters > 0 ? format("{}  ·  {}", box.shape, ShortCount(box.parameters)) : box.shape;
    drawing->AddBox(
        {left, top}, kBoxWidth, kBoxHeight,
        plot::Between(plot::kWhite, colour, box.family == NetBox::Family::kInput ? 0 : 0.28), 1,
        format("{}: {}; {}, {} parameters", box.name, box.what, box.shape, box.parameters));
    drawing->AddFrame({left, top}, kBoxWidth, kBoxHeight,
                      {plot::Between(colour, plot::kBlack, 0.3), 1, {}});
    drawing->AddText({left + 7, top + 15.5}, plot::FitText(box.what, kTextSize, inner),
                     {.size = kTextSize});
    const double facts_width = plot::TextWidth(facts, kTextSize);
    drawing->AddText({left + 7, top + 31},
                     plot::FitName(box.name, kTextSize, inner - facts_width - 8),
                     {.size = kTextSize, .colour = plot::kGray});
    drawing->AddText({left + kBoxWidth - 7, top + 31}, facts,
                     {.size = kTextSize, .anchor = Anchor::kEnd});
  }

  const std::vector<NetBox> boxes_;
  const std::string title_;
  NetLayout layout_;
  std::vector<Segment> segments_;
  std::vector<size_t> segment_of_;  // by row
  std::vector<double> column_widths_, column_lefts_;
};

}  // namespace

Drawing PlotNet(const Graph& graph, const InferredSpecs& specs, const std::set<std::string>& inputs,
                const std::set<std::string>& labels, const std::string& title) {
  return NetImage(MakeNetBoxes(graph, specs, inputs, labels), title).Draw();
}

}  // namespace mxtrain::commands
