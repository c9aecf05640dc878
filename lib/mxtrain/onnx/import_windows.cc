// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/internal/import_windows.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain::onnx {

int64_t LengthOf(const ImportNode& node, size_t axis) {
  return node.shape(0)[2 + static_cast<int>(axis)];
}

Windows WindowsOf(const ImportNode& node, std::vector<int64_t> kernel, bool automatic_padding) {
  if (node.ndim() < 3 || node.ndim() > 5)
    node.Refuse("its data {} are not sequences [N, C, W], images [N, C, H, W] or volumes",
                node.shape(0).ToString());
  const size_t axes = static_cast<size_t>(node.ndim()) - 2;
  const std::vector<int64_t> ones(axes, 1), zeros(2 * axes, 0);
  Windows w{std::move(kernel), node.Ints("strides", ones), node.Ints("dilations", ones), {}, {}};
  const std::vector<int64_t> pads = node.Ints("pads", zeros);
  const auto good = [](const std::vector<int64_t>& values, size_t count, int64_t least) {
    return values.size() == count &&
           std::ranges::all_of(values, [least](int64_t v) { return v >= least && v < 1 << 20; });
  };
  if (!good(w.kernel, axes, 1) || !good(w.stride, axes, 1) || !good(w.dilation, axes, 1) ||
      !good(pads, 2 * axes, 0)) {
    Throw(ErrorKind::kData,
          "{}: kernel_shape, strides, dilations or pads do not describe windows of {} axes",
          node.Describe(), axes);
  }
  const auto middle = pads.begin() + static_cast<int64_t>(axes);
  w.begin.assign(pads.begin(), middle);
  w.end.assign(middle, pads.end());
  const std::string automatic = automatic_padding ? node.Word("auto_pad", "NOTSET") : "NOTSET";
  if (automatic == "VALID") w.begin = w.end = std::vector<int64_t>(axes, 0);
  if (automatic.starts_with("SAME")) {
    for (size_t axis = 0; axis < axes; ++axis) {
      const int64_t in = LengthOf(node, axis);
      const int64_t out = (in + w.stride[axis] - 1) / w.stride[axis];
      const int64_t needed = (out - 1) * w.stride[axis] + w.Span(axis) - in;
      // One cell that no window needs is at the end whichever way it is counted.
      if (needed < -1)
        node.Refuse("auto_pad = {} has no equivalent where windows do not need {} cells of an axis",
                    automatic, -needed);
      const int64_t whole = std::max<int64_t>(0, needed);
      const int64_t less = whole / 2, more = whole - less;
      w.begin[axis] = automatic == "SAME_LOWER" ? more : less;
      w.end[axis] = automatic == "SAME_LOWER" ? less : more;
    }
  }
  return w;
}

std::string Padded(ImportNode& node, Windows* w, double value) {
  std::vector<int64_t> widths(4, 0);
  for (size_t axis = 0; axis < w->axes(); ++axis)
    widths.insert(widths.end(), {w->begin[axis], w->end[axis]});
  std::string text;
  for (const int64_t width : widths) text += (text.empty() ? "(" : ", ") + params::Print(width);
  const std::string padded = node.Add(
      "Pad", {node.ref(0)},
      {{"mode", "constant"}, {"pad_width", text + ")"}, {"constant_value", params::Print(value)}});
  w->begin = w->end = std::vector<int64_t>(w->axes(), 0);
  return padded;
}

}  // namespace mxtrain::onnx
