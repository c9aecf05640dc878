// SPDX-License-Identifier: Apache-2.0
// Pooling.
#include <algorithm>
#include <limits>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_parts.h"
#include "mxtrain/onnx/internal/import_windows.h"

namespace mxtrain::onnx {
namespace {

std::vector<int64_t> OutputOf(const ImportNode& node, const Windows& w) {
  std::vector<int64_t> out;
  const bool up = node.Int("ceil_mode", 0) != 0;
  for (size_t axis = 0; axis < w.axes(); ++axis) {
    const int64_t in = LengthOf(node, axis),
                  spare = in + w.begin[axis] + w.end[axis] - w.Span(axis);
    if (spare < 0) node.Refuse("its window is larger than its data");
    int64_t count = (spare + (up ? w.stride[axis] - 1 : 0)) / w.stride[axis] + 1;
    // A last window that would begin behind the data is dropped.
    if (up && (count - 1) * w.stride[axis] >= in + w.begin[axis]) --count;
    out.push_back(count);
  }
  return out;
}

// Padding at the end such that the last window ends with it.
void PadForWindows(const ImportNode& node, const std::vector<int64_t>& out, Windows* w) {
  for (size_t axis = 0; axis < w->axes(); ++axis)
    w->end[axis] = std::max<int64_t>(0, (out[axis] - 1) * w->stride[axis] + w->Span(axis) -
                                            LengthOf(node, axis) - w->begin[axis]);
}

bool HasPadding(const Windows& w) {
  const auto is_padded = [](int64_t width) { return width > 0; };
  return std::ranges::any_of(w.begin, is_padded) || std::ranges::any_of(w.end, is_padded);
}

// Maxima or sums of windows with gaps: along one axis after the other, of slices that are moved
// against each other.
std::string Dilated(ImportNode& node, Windows w, const std::vector<int64_t>& out, bool sum) {
  constexpr int64_t kMost = 64;  // layers
  int64_t layers = 0;
  for (size_t axis = 0; axis < w.axes(); ++axis) layers += 2 * std::min(w.kernel[axis], kMost);
  if (layers > kMost) node.Refuse("its windows are dilated and large");
  PadForWindows(node, out, &w);
  const auto kernel = w.kernel, stride = w.stride, dilation = w.dilation;
  std::string data = HasPadding(w)
                         ? Padded(node, &w, sum ? 0 : std::numeric_limits<float>::lowest())
                         : node.ref(0);
  for (size_t axis = 0; axis < w.axes(); ++axis) {
    std::string result;
    for (int64_t i = 0; i < kernel[axis]; ++i) {
      const int64_t begin = i * dilation[axis];
      const auto along = [axis](int64_t number) {
        std::string text = "(None, None, ";
        for (size_t before = 0; before < axis; ++before) text += "None, ";
        return format("{}{})", text, number);
      };
      const std::string part = node.Add("slice", {data},
                                        {{"begin", along(begin)},
                                         {"end", along(begin + (out[axis] - 1) * stride[axis] + 1)},
                                         {"step", along(stride[axis])}});
      result = result.empty() ? part : node.Add(sum ? "elemwise_add" : "_maximum", {result, part});
    }
    data = result;
  }
  return data;
}

// 1 / cells of each window that count, [1, 1, windows...]. `padding`: its cells count too.
Tensor Shares(const ImportNode& node, const Windows& w, const std::vector<int64_t>& out,
              bool padding) {
  int64_t most = kMostOwnElements;
  for (const int64_t count : out) most /= std::max<int64_t>(1, count);
  if (most == 0) node.Refuse("it has too many windows with padding that does not count");
  std::vector<float> shares{1};
  std::vector<int64_t> dims{1, 1};
  for (size_t axis = 0; axis < w.axes(); ++axis) {
    const int64_t length = LengthOf(node, axis), least = padding ? -w.begin[axis] : 0,
                  last = padding ? length + w.end[axis] : length;
    std::vector<float> next;
    for (const float share : shares) {
      for (int64_t i = 0; i < out[axis]; ++i) {
        int64_t count = 0;
        for (int64_t k = 0; k < w.kernel[axis]; ++k) {
          const int64_t at = i * w.stride[axis] - w.begin[axis] + k * w.dilation[axis];
          count += at >= least && at < last;
        }
        next.push_back(share / static_cast<float>(std::max<int64_t>(1, count)));
      }
    }
    shares = std::move(next);
    dims.push_back(out[axis]);
  }
  return Tensor::Floats(dims, shares);
}

// Means as sums divided by how many cells count.
void AverageBySums(ImportNode& node, const Windows& w, const std::vector<int64_t>& out) {
  const bool counts = node.Int("count_include_pad", 0) != 0;
  const std::string shares = node.OwnArray("shares", Shares(node, w, out, counts));
  std::string sums;
  if (std::ranges::any_of(w.dilation, [](int64_t d) { return d != 1; })) {
    sums = Dilated(node, w, out, true);
  } else {
    Windows padded = w;
    PadForWindows(node, out, &padded);
    const std::string data = HasPadding(padded) ? Padded(node, &padded, 0) : node.ref(0);
    sums = node.Add(
        "Pooling", {data},
        {{"pool_type", "sum"}, {"kernel", TupleOf(w.kernel)}, {"stride", TupleOf(w.stride)}});
  }
  node.OutIs(Pair(node, "mul", sums, shares));
}

void PoolBy(ImportNode& node, const std::string& type, Kwargs more) {
  Windows w = WindowsOf(node, node.Ints("kernel_shape"));
  const std::vector<int64_t> out = OutputOf(node, w);
  const bool dilated = std::ranges::any_of(w.dilation, [](int64_t d) { return d != 1; });
  if (dilated && type == "lp")
    node.Refuse("dilated windows have an equivalent for maxima and means alone");
  if (dilated && type == "max") return node.OutIs(Dilated(node, std::move(w), out, false));
  // "full" adds what is needed at the far edge, which does not count; ONNX's padding at the end
  // may say the same.
  const bool counts = type == "avg" && node.Int("count_include_pad", 0) != 0;
  bool plain = !dilated && (w.symmetric() || !counts), full = false;
  for (size_t axis = 0; axis < w.axes(); ++axis) {
    const int64_t spare = LengthOf(node, axis) + 2 * w.begin[axis] - w.kernel[axis];
    plain = plain && spare >= 0 && w.begin[axis] < w.kernel[axis];
    if (!plain) break;
    const int64_t down = spare / w.stride[axis] + 1,
                  up = (spare + w.stride[axis] - 1) / w.stride[axis] + 1;
    full = full || out[axis] != down;
    plain = out[axis] == down || out[axis] == up;
  }
  // All axes are rounded the same way.
  for (size_t axis = 0; axis < w.axes() && plain && full; ++axis) {
    const int64_t spare = LengthOf(node, axis) + 2 * w.begin[axis] - w.kernel[axis];
    plain = out[axis] == (spare + w.stride[axis] - 1) / w.stride[axis] + 1;
  }
  if (!plain && type == "avg") return AverageBySums(node, w, out);
  std::string data;
  if (plain) {
    data = node.ref(0);
  } else {
    PadForWindows(node, out, &w);
    data = Padded(node, &w, type == "max" ? std::numeric_limits<float>::lowest() : 0);
  }
  Kwargs kwargs{{"pool_type", type},
                {"kernel", TupleOf(w.kernel)},
                {"stride", TupleOf(w.stride)},
                {"pad", TupleOf(w.begin)},
                {"pooling_convention", plain && full ? "full" : "valid"}};
  if (type == "avg") kwargs.emplace_back("count_include_pad", counts ? "True" : "False");
  kwargs.insert(kwargs.end(), more.begin(), more.end());
  node.Out("Pooling", {data}, kwargs);
}

void GlobalPoolBy(ImportNode& node, const std::string& type, const Kwargs& more) {
  if (node.ndim() < 3 || node.ndim() > 5)
    node.Refuse("its data {} are not sequences, images or volumes", node.shape(0).ToString());
  Kwargs kwargs{{"pool_type", type},
                {"kernel", TupleOf(std::vector<int64_t>(static_cast<size_t>(node.ndim()) - 2, 1))},
                {"global_pool", "True"}};
  kwargs.insert(kwargs.end(), more.begin(), more.end());
  node.Out("Pooling", {node.ref(0)}, kwargs);
}

Kwargs PowerOf(const ImportNode& node) {
  return {{"p_value", params::Print(node.Int("p", 2))}};
}

}  // namespace

std::vector<ImportEntry> PoolImports() {
  return {
      {"MaxPool", [](ImportNode& node) { PoolBy(node, "max", {}); }},
      {"AveragePool", [](ImportNode& node) { PoolBy(node, "avg", {}); }},
      {"LpPool", [](ImportNode& node) { PoolBy(node, "lp", PowerOf(node)); }},
      {"GlobalMaxPool", [](ImportNode& node) { GlobalPoolBy(node, "max", {}); }},
      {"GlobalAveragePool", [](ImportNode& node) { GlobalPoolBy(node, "avg", {}); }},
      {"GlobalLpPool", [](ImportNode& node) { GlobalPoolBy(node, "lp", PowerOf(node)); }},
  };
}

}  // namespace mxtrain::onnx
