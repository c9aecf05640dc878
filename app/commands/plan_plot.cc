#include "app/commands/plan_plot.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "mxtrain/base/format.h"

namespace mxtrain::commands {
namespace {

using executor::Buffer;
using executor::ExecGraph;
using executor::ExecNode;
using executor::MemoryPlan;

constexpr double kWidth = 1200, kHeight = 720, kLeft = 90, kRight = 20, kTop = 86, kBottom = 60;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr double kLetter = 6.2;  // width of a letter of the boxes' names

enum Class { kActivation, kAgain, kSaved, kGradient, kWorkspace, kClasses };
struct Style {
  const char* name;
  const char* colour;  // of Okabe and Ito's palette, told apart by colour-blind readers too
};
constexpr std::array<Style, kClasses> kStyles = {{{"activations", "#56B4E9"},
                                                  {"activations made again", "#0072B2"},
                                                  {"saved for backward", "#009E73"},
                                                  {"gradients", "#E69F00"},
                                                  {"workspace", "#CC79A7"}}};

struct Box {
  const Buffer* buffer = nullptr;
  Class kind = kActivation;
  std::string name;
};

std::string Escaped(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

Class ClassOf(const ExecNode& node, int output) {
  if (node.kind == Node::Kind::kForward && output >= node.num_outputs()) return kSaved;
  if (!node.backward_pass) return kActivation;
  return node.forward >= 0 && node.kind != Node::Kind::kBackward ? kAgain : kGradient;
}

// Every piece of the arena, named after the first array in it.
std::vector<Box> Boxes(const ExecGraph& graph, const MemoryPlan& plan) {
  std::vector<Box> boxes(plan.buffers.size());
  for (size_t b = 0; b < boxes.size(); ++b) boxes[b].buffer = &plan.buffers[b];
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const ExecNode& node = graph.nodes[id];
    auto name = [&](int buffer, Class kind) {
      if (buffer >= 0 && boxes[buffer].name.empty()) boxes[buffer].kind = kind, boxes[buffer].name = node.name;
    };
    for (size_t i = 0; i < plan.buffer_of[id].size(); ++i) name(plan.buffer_of[id][i], ClassOf(node, static_cast<int>(i)));
    name(plan.workspace_of[id], kWorkspace);
    for (int buffer : plan.temp_space_of[id]) name(buffer, kWorkspace);
  }
  std::erase_if(boxes, [](const Box& b) { return b.buffer->outer || b.buffer->bytes == 0; });
  return boxes;
}

// A round step of which some `count` make up `range`: 1, 2 or 5 times a power of ten, or a power of two for bytes.
double RoundStep(double range, int count, bool binary) {
  const double rough = std::max(range / count, 1.0);
  if (binary) return std::exp2(std::ceil(std::log2(rough)));
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

class Plot {
 public:
  Plot(const ExecGraph& graph, const MemoryPlan& plan)
      : graph_(graph),
        plan_(plan),
        times_(std::max<double>(static_cast<double>(graph.nodes.size()), 1)),
        bytes_(std::max<double>(static_cast<double>(plan.arena_bytes), 1)) {}

  std::string Draw(const std::string& title) {
    svg_ = format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" "
        "font-size=\"13\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        kWidth, kHeight);
    Text(kLeft, 26, "start", title, "font-size=\"17\" font-weight=\"bold\"");
    Text(kLeft, 46, "start", format("arena {}, lower bound {}", FormatBytes(plan_.arena_bytes), FormatBytes(plan_.lower_bound)));
    const std::vector<Box> boxes = Boxes(graph_, plan_);
    Legend(boxes);
    Axes();
    for (const Box& box : boxes) Draw(box);
    Alive(boxes);
    PassLine();
    return svg_ + "</svg>\n";
  }

 private:
  double X(double time) const { return kLeft + time / times_ * kPlotWidth; }
  double Y(double bytes) const { return kTop + kPlotHeight - bytes / bytes_ * kPlotHeight; }
  void Text(double x, double y, const char* anchor, const std::string& text, const std::string& more = "") {
    svg_ += format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, more, Escaped(text));
  }
  void Line(double x1, double y1, double x2, double y2, const char* style) {
    svg_ += format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
  }

  void Legend(const std::vector<Box>& boxes) {
    double x = kLeft;
    for (int k = 0; k < kClasses; ++k) {
      if (std::none_of(boxes.begin(), boxes.end(), [k](const Box& b) { return b.kind == k; })) continue;
      svg_ += format("<rect x=\"{:.1f}\" y=\"58\" width=\"14\" height=\"14\" fill=\"{}\" stroke=\"black\" stroke-width=\"0.4\"/>\n", x,
                     kStyles[k].colour);
      Text(x + 20, 70, "start", kStyles[k].name);
      x += 48 + 7.2 * static_cast<double>(std::string(kStyles[k].name).size());
    }
    Line(x, 65, x + 16, 65, "stroke=\"black\" stroke-width=\"1.5\"");
    Text(x + 22, 70, "start", "bytes alive");
  }

  void Axes() {
    const double unit = bytes_ >= 4 * 1048576.0 ? 1048576.0 : bytes_ >= 4096 ? 1024.0 : 1;
    const double byte_step = RoundStep(bytes_, 8, true), time_step = RoundStep(times_, 10, false);
    for (double b = 0; b <= bytes_; b += byte_step) {
      Line(kLeft - 5, Y(b), kLeft + kPlotWidth, Y(b), "stroke=\"#dddddd\"");
      Text(kLeft - 9, Y(b) + 4, "end", format("{:g}", b / unit));
    }
    for (double t = 0; t <= times_; t += time_step) {
      Line(X(t), Y(0), X(t), Y(0) + 5, "stroke=\"black\"");
      Text(X(t), Y(0) + 20, "middle", format("{:g}", t));
    }
    Line(kLeft, Y(0), kLeft + kPlotWidth, Y(0), "stroke=\"black\"");
    Line(kLeft, Y(0), kLeft, kTop, "stroke=\"black\"");
    Text(kLeft + kPlotWidth / 2, kHeight - 16, "middle", "time: nodes of one step, in order of execution");
    const double middle = kTop + kPlotHeight / 2;
    Text(24, middle, "middle",
         format("place in the arena, {}", unit > 1024 ? "MiB"
                                          : unit > 1  ? "KiB"
                                                      : "bytes"),
         format("transform=\"rotate(-90 24 {:.1f})\"", middle));
  }

  void Draw(const Box& box) {
    const Buffer& b = *box.buffer;
    const double x = X(b.first), width = X(b.last + 1) - x;
    const double y = Y(static_cast<double>(b.offset + b.bytes)), height = Y(static_cast<double>(b.offset)) - y;
    const std::string name = Escaped(box.name);
    svg_ += format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" stroke=\"black\" stroke-width=\"{}\">"
        "<title>{}: {}, {}, nodes {} to {}</title></rect>\n",
        x, y, width, height, kStyles[box.kind].colour, std::min(width, height) > 4 ? "0.5" : "0.1", name, kStyles[box.kind].name,
        FormatBytes(b.bytes), b.first, b.last);
    if (height >= 12 && width >= kLetter * static_cast<double>(box.name.size()) + 6) {
      Text(x + width / 2, y + height / 2 + 4, "middle", box.name, "font-size=\"11\"");
    }
  }

  // The sum of what is alive at each time.
  void Alive(const std::vector<Box>& boxes) {
    std::vector<int64_t> change(graph_.nodes.size() + 1);
    for (const Box& box : boxes) {
      const int64_t stored = (box.buffer->bytes + 63) / 64 * 64;
      change[box.buffer->first] += stored;
      change[box.buffer->last + 1] -= stored;
    }
    svg_ += "<polyline fill=\"none\" stroke=\"black\" stroke-width=\"1.5\" points=\"";
    int64_t alive = 0;
    for (size_t t = 0; t < graph_.nodes.size(); ++t) {
      alive += change[t];
      for (size_t end : {t, t + 1}) svg_ += format("{:.1f},{:.1f} ", X(static_cast<double>(end)), Y(static_cast<double>(alive)));
    }
    svg_ += "\"/>\n";
  }

  void PassLine() {
    if (graph_.first_backward < 0) return;
    const double x = X(graph_.first_backward);
    Line(x, kTop - 4, x, Y(0), "stroke=\"black\" stroke-dasharray=\"5 4\"");
    Text(x - 6, kTop - 2, "end", "forward", "font-size=\"12\"");
    Text(x + 6, kTop - 2, "start", "backward", "font-size=\"12\"");
  }

  const ExecGraph& graph_;
  const MemoryPlan& plan_;
  const double times_, bytes_;
  std::string svg_;
};

}  // namespace

std::string PlotMemory(const ExecGraph& graph, const MemoryPlan& plan, const std::string& title) {
  return Plot(graph, plan).Draw(title);
}

}  // namespace mxtrain::commands
