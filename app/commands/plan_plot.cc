// SPDX-License-Identifier: Apache-2.0
#include "app/commands/plan_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "app/report/plot/axis.h"
#include "app/report/plot/font.h"
#include "app/report/plot/free_place.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/math.h"
#include "mxtrain/device/backend.h"

namespace mxtrain::commands {
namespace {

using executor::Buffer;
using executor::ExecGraph;
using executor::ExecNode;
using executor::MemoryPlan;

constexpr double kWidth = 1200, kHeight = 720, kLeft = 90, kRight = 20, kTop = 86, kBottom = 60;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr double kTextSize = 12, kTitleSize = 16;

enum Class { kActivation, kAgain, kSaved, kGradient, kWorkspace, kClasses };
struct Style {
  const char* name;
  plot::Colour colour;
};
constexpr std::array<Style, kClasses> kStyles = {{{"activations", plot::kSky},
                                                  {"recomputed activations", plot::kBlue},
                                                  {"saved for backward", plot::kGreen},
                                                  {"gradients", plot::kOrange},
                                                  {"workspace", plot::kPurple}}};

struct Box {
  const Buffer* buffer = nullptr;
  Class kind = kActivation;
  std::string name;
};

Class ClassOf(const ExecNode& node, int output) {
  if (node.kind == Node::Kind::kForward && output >= node.num_outputs()) return kSaved;
  if (!node.backward_pass) return kActivation;
  return node.forward >= 0 && node.kind != Node::Kind::kBackward ? kAgain : kGradient;
}

// Every block of the arena, named after the first array in it.
std::vector<Box> Boxes(const ExecGraph& graph, const MemoryPlan& plan) {
  std::vector<Box> boxes(plan.buffers.size());
  for (size_t b = 0; b < boxes.size(); ++b) boxes[b].buffer = &plan.buffers[b];
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const ExecNode& node = graph.nodes[id];
    auto name = [&](int buffer, Class kind) {
      if (buffer >= 0 && boxes[buffer].name.empty())
        boxes[buffer].kind = kind, boxes[buffer].name = node.name;
    };
    for (size_t i = 0; i < plan.buffer_of[id].size(); ++i)
      name(plan.buffer_of[id][i], ClassOf(node, static_cast<int>(i)));
    name(plan.workspace_of[id], kWorkspace);
    for (int buffer : plan.temp_space_of[id]) name(buffer, kWorkspace);
  }
  std::erase_if(boxes, [](const Box& b) { return b.buffer->external || b.buffer->bytes == 0; });
  return boxes;
}

class Plot {
 public:
  Plot(const ExecGraph& graph, const MemoryPlan& plan)
      : graph_(graph),
        plan_(plan),
        times_(std::max<double>(static_cast<double>(graph.nodes.size()), 1)),
        bytes_(std::max<double>(static_cast<double>(plan.arena_bytes), 1)) {}

  plot::Drawing Draw(const std::string& title) {
    drawing_.AddText({kLeft, 26}, title, {.size = kTitleSize});
    drawing_.AddText({kLeft, 46},
                     format("arena, the memory of activations and workspaces: {}; lower bound, the "
                            "most in use at once: {}",
                            FormatBytes(plan_.arena_bytes), FormatBytes(plan_.lower_bound)));
    const std::vector<Box> boxes = Boxes(graph_, plan_);
    alive_ = AliveBytes(boxes);
    Legend(boxes);
    Axes();
    for (const Box& box : boxes) Draw(box);
    Devices();
    Alive();
    PassLine();
    return std::move(drawing_);
  }

 private:
  // Arenas of several devices are stacked.
  double BaseOf(int arena) const {
    double base = 0;
    for (int a = 0; a < arena; ++a) base += static_cast<double>(plan_.arenas[a].bytes);
    return base;
  }
  void Devices() {
    for (int a = 0; a < static_cast<int>(plan_.arenas.size()) && plan_.arenas.size() > 1; ++a) {
      const double y = Y(BaseOf(a));
      drawing_.AddLine({{kLeft, y}, {kLeft + kPlotWidth, y}}, {});
      drawing_.AddText({kLeft + 6, y - 6}, plan_.arenas[a].ctx.ToString());
    }
  }

  double X(double time) const { return kLeft + time / times_ * kPlotWidth; }
  double Y(double bytes) const { return kTop + kPlotHeight - bytes / bytes_ * kPlotHeight; }

  void Legend(const std::vector<Box>& boxes) {
    double x = kLeft;
    for (int k = 0; k < kClasses; ++k) {
      if (std::none_of(boxes.begin(), boxes.end(), [k](const Box& b) { return b.kind == k; }))
        continue;
      drawing_.AddBox({x, 58}, 14, 14, kStyles[k].colour);
      drawing_.AddText({x + 20, 70}, kStyles[k].name);
      x += 44 + plot::TextWidth(kStyles[k].name, kTextSize);
    }
    drawing_.AddLine({{x, 65}, {x + 16, 65}}, {plot::kBlack, 1.5});
    drawing_.AddText({x + 22, 70}, "bytes alive");
  }

  void Axes() {
    const plot::ByteUnit unit = plot::UnitOfBytes(bytes_);
    const double byte_step = plot::ByteStep(bytes_, 8),
                 time_step = std::max(plot::RoundStep(times_, 10), 1.0);
    for (double b = 0; b <= bytes_; b += byte_step) {
      drawing_.AddLine({{kLeft - 5, Y(b)}, {kLeft + kPlotWidth, Y(b)}}, {plot::kGrid});
      drawing_.AddText({kLeft - 9, Y(b) + 4}, format("{:g}", b / unit.bytes),
                       {.anchor = plot::Anchor::kEnd});
    }
    for (double t = 0; t <= times_; t += time_step) {
      drawing_.AddLine({{X(t), Y(0)}, {X(t), Y(0) + 5}}, {});
      drawing_.AddText({X(t), Y(0) + 20}, format("{:g}", t), {.anchor = plot::Anchor::kMiddle});
    }
    drawing_.AddLine({{kLeft, kTop}, {kLeft, Y(0)}, {kLeft + kPlotWidth, Y(0)}}, {});
    drawing_.AddText({kLeft + kPlotWidth / 2, kHeight - 16},
                     "time: nodes of one step, in order of execution",
                     {.anchor = plot::Anchor::kMiddle});
    drawing_.AddText({24, kTop + kPlotHeight / 2}, format("offset in the arena, {}", unit.name),
                     {.anchor = plot::Anchor::kMiddle, .upwards = true});
  }

  void Draw(const Box& box) {
    const Buffer& b = *box.buffer;
    const double x = X(b.first), width = X(b.last + 1) - x;
    const double offset = BaseOf(b.arena) + static_cast<double>(b.offset);
    const double y = Y(offset + static_cast<double>(b.bytes)), height = Y(offset) - y;
    drawing_.AddBox({x, y}, width, height, kStyles[box.kind].colour, 1,
                    format("{}: {}, {}, nodes {} to {}", box.name, kStyles[box.kind].name,
                           FormatBytes(b.bytes), b.first, b.last));
    drawing_.AddFrame({x, y}, width, height,
                      {plot::kBlack, std::min(width, height) > 4 ? 0.5 : 0.1});
    if (height < kTextSize) return;
    if (const auto at = NamePlace(box, y + height / 2)) {
      drawing_.AddText({*at, y + height / 2 + 4}, box.name,
                       {.size = kTextSize, .anchor = plot::Anchor::kMiddle});
    }
  }

  // Where no line crosses the name of a box whose middle is at height `y`.
  std::optional<double> NamePlace(const Box& box, double y) const {
    constexpr double kHalf = kTextSize / 2 + 1, kBeside = 3;
    std::vector<std::pair<double, double>> taken;
    const int first = box.buffer->first, last = box.buffer->last;
    for (int t = first; t <= last; ++t) {
      const double now = Y(static_cast<double>(alive_[static_cast<size_t>(t)])),
                   before =
                       t > 0 ? Y(static_cast<double>(alive_[static_cast<size_t>(t - 1)])) : now;
      if (std::abs(now - y) < kHalf) taken.emplace_back(X(t), X(t + 1));
      if (std::min(now, before) < y + kHalf && std::max(now, before) > y - kHalf)
        taken.emplace_back(X(t) - kBeside, X(t) + kBeside);
    }
    if (graph_.first_backward >= 0)
      taken.emplace_back(X(graph_.first_backward) - kBeside, X(graph_.first_backward) + kBeside);
    return plot::FreePlace(X(first) + kBeside, X(last + 1) - kBeside,
                           plot::TextWidth(box.name, kTextSize), std::move(taken));
  }

  // The sum of live bytes while each node runs.
  std::vector<int64_t> AliveBytes(const std::vector<Box>& boxes) const {
    std::vector<int64_t> change(graph_.nodes.size() + 1);
    for (const Box& box : boxes) {
      const int64_t stored = RoundUp(box.buffer->bytes, kBufferAlignment);
      change[box.buffer->first] += stored;
      change[box.buffer->last + 1] -= stored;
    }
    change.pop_back();
    std::partial_sum(change.begin(), change.end(), change.begin());
    return change;
  }

  void Alive() {
    std::vector<plot::Point> points;
    for (size_t t = 0; t < alive_.size(); ++t) {
      for (size_t end : {t, t + 1})
        points.push_back({X(static_cast<double>(end)), Y(static_cast<double>(alive_[t]))});
    }
    drawing_.AddLine(std::move(points), {plot::kBlack, 1.5});
  }

  void PassLine() {
    if (graph_.first_backward < 0) return;
    const double x = X(graph_.first_backward);
    drawing_.AddLine({{x, kTop - 4}, {x, Y(0)}}, {plot::kBlack, 1, {5, 4}});
    drawing_.AddText({x - 6, kTop - 2}, "forward", {.size = 12, .anchor = plot::Anchor::kEnd});
    drawing_.AddText({x + 6, kTop - 2}, "backward", {.size = 12});
  }

  const ExecGraph& graph_;
  const MemoryPlan& plan_;
  const double times_, bytes_;
  std::vector<int64_t> alive_;
  plot::Drawing drawing_{kWidth, kHeight};
};

}  // namespace

plot::Drawing PlotMemory(const ExecGraph& graph, const MemoryPlan& plan, const std::string& title) {
  return Plot(graph, plan).Draw(title);
}

}  // namespace mxtrain::commands
