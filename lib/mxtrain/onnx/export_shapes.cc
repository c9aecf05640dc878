// SPDX-License-Identifier: Apache-2.0
// Shapes: reshaping, permuting, slicing, joining, repeating, padding.
#include <algorithm>
#include <limits>
#include <numeric>

#include "mxtrain/onnx/internal/export_node.h"

namespace mxtrain::onnx {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

// Whatever the parameters say, the output's shape is known.
void Reshape(ExportNode& node) {
  node.OutIs(node.Reshape(node.in(0), node.in_shape(0), node.out_shape()));
}

void Flatten(ExportNode& node) {
  if (node.ndim() == 2) return node.OutIs(node.in(0));
  node.Out("Flatten", {node.in(0)}, {{"axis", int64_t{1}}});
}

void ExpandDims(ExportNode& node) {
  const int axis = ExportNode::Axis(node.Get<int>("axis"), node.out_shape().ndim());
  node.Out("Unsqueeze", {node.in(0), node.Ints({axis})});
}

void Squeeze(ExportNode& node) {
  std::vector<int64_t> axes;
  if (node.Is("axis", "None")) {
    for (int i = 0; i < node.ndim(); ++i) {
      if (node.in_shape(0)[i] == 1) axes.push_back(i);
    }
  } else {
    for (const int64_t axis : node.Get<TShape>("axis"))
      axes.push_back(ExportNode::Axis(static_cast<int>(axis), node.ndim()));
  }
  if (axes.empty()) return node.OutIs(node.in(0));
  node.Out("Squeeze", {node.in(0), node.Ints(axes)});
}

void Transpose(ExportNode& node) {
  const auto axes = node.Get<TShape>("axes");
  std::vector<int64_t> order;
  for (const int64_t axis : axes)
    order.push_back(ExportNode::Axis(static_cast<int>(axis), node.ndim()));
  for (int i = node.ndim() - 1; axes.ndim() == 0 && i >= 0; --i) order.push_back(i);
  node.Out("Transpose", {node.in(0)}, {{"perm", order}});
}

void SwapAxis(ExportNode& node) {
  std::vector<int64_t> order(static_cast<size_t>(node.ndim()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(node.Axis("dim1"))],
            order[static_cast<size_t>(node.Axis("dim2"))]);
  node.Out("Transpose", {node.in(0)}, {{"perm", order}});
}

// --- slices ---

void Slice(ExportNode& node) {
  const auto begin = node.Get<std::vector<std::string>>("begin"),
             end = node.Get<std::vector<std::string>>("end"),
             step = node.Get<std::vector<std::string>>("step");
  std::vector<int64_t> starts, ends, axes, steps;
  const auto number = [](const std::string& text, int64_t otherwise) {
    int64_t value = otherwise;
    if (text != "None") params::Parse(text, &value);
    return value;
  };
  for (size_t i = 0; i < begin.size(); ++i) {
    steps.push_back(i < step.size() ? number(step[i], 1) : 1);
    const bool forward = steps.back() > 0;
    starts.push_back(number(begin[i], forward ? 0 : kEnd));
    ends.push_back(number(end[i], forward ? kEnd : std::numeric_limits<int64_t>::min()));
    axes.push_back(static_cast<int64_t>(i));
  }
  node.Out("Slice",
           {node.in(0), node.Ints(starts), node.Ints(ends), node.Ints(axes), node.Ints(steps)});
}

void SliceAxis(ExportNode& node) {
  const int64_t end = node.Is("end", "None") ? kEnd : node.Get<int64_t>("end");
  node.Out("Slice", {node.in(0), node.Ints({node.Get<int64_t>("begin")}), node.Ints({end}),
                     node.Ints({node.Axis("axis")})});
}

[[noreturn]] void RefuseAxis(const ExportNode& node, int axis) {
  node.Refuse("what it takes of axis {} depends on the size of the batch", axis);
}

// The first indices of each axis, from `begin`, as many as the output has.
void SliceTo(ExportNode& node, const std::vector<int64_t>& begin) {
  std::vector<int64_t> starts, ends, axes;
  for (int i = 0; i < node.ndim(); ++i) {
    const int64_t in = node.in_shape(0)[i], out = node.out_shape()[i];
    if (in == out) continue;
    if (out == TShape::kUnknown || in == TShape::kUnknown) RefuseAxis(node, i);
    starts.push_back(begin[static_cast<size_t>(i)]);
    ends.push_back(starts.back() + out);
    axes.push_back(i);
  }
  if (axes.empty()) return node.OutIs(node.in(0));
  node.Out("Slice", {node.in(0), node.Ints(starts), node.Ints(ends), node.Ints(axes)});
}

void SliceLike(ExportNode& node) {
  std::vector<bool> named(static_cast<size_t>(node.ndim()), node.Get<TShape>("axes").ndim() == 0);
  for (const int64_t axis : node.Get<TShape>("axes"))
    named[static_cast<size_t>(ExportNode::Axis(static_cast<int>(axis), node.ndim()))] = true;
  // Two lengths that depend on the batch look alike.
  for (int i = 0; i < node.ndim(); ++i) {
    const bool unknown = node.in_shape(0)[i] == TShape::kUnknown;
    if (named[static_cast<size_t>(i)] && unknown && !node.SameLength(0, 1, i)) RefuseAxis(node, i);
  }
  SliceTo(node, std::vector<int64_t>(static_cast<size_t>(node.ndim()), 0));
}

void Crop(ExportNode& node) {
  const auto offset = node.Get<TShape>("offset");
  std::vector<int64_t> begin{0, 0, offset[0], offset[1]};
  for (int i = 2; i < 4 && node.Get<bool>("center_crop"); ++i)
    begin[static_cast<size_t>(i)] = (node.in_shape(0)[i] - node.out_shape()[i]) / 2;
  SliceTo(node, begin);
}

void SliceChannel(ExportNode& node) {
  const int axis = node.Axis("axis");
  const auto parts = node.Get<int64_t>("num_outputs");
  const int64_t length = node.in_shape(0)[axis];
  if (length == TShape::kUnknown) node.Refuse("axis {} depends on the size of the batch", axis);
  const std::vector<int64_t> sizes(static_cast<size_t>(parts), length / parts);
  const std::vector<std::string> inputs{node.in(0), node.Ints(sizes)};
  if (!node.Get<bool>("squeeze_axis"))
    return node.OutAll("Split", inputs, {{"axis", int64_t{axis}}});
  std::vector<std::string> split;
  for (int64_t i = 0; i < parts; ++i)
    split.push_back(node.builder().NewName(format("{}_part{}", node.name(), i)));
  node.builder().model().nodes.push_back(
      {"Split", node.name() + "_split", "", inputs, split, {{"axis", int64_t{axis}}}});
  const std::string axes = node.Ints({axis});
  for (int64_t i = 0; i < parts; ++i)
    node.Out("Squeeze", {split[static_cast<size_t>(i)], axes}, {}, static_cast<int>(i));
}

// --- joining and repeating ---

void Concat(ExportNode& node) {
  std::vector<std::string> inputs;
  for (int i = 0; i < node.num_inputs(); ++i) inputs.push_back(node.in(i));
  node.Out("Concat", inputs, {{"axis", int64_t{node.Axis("dim")}}});
}

void Stack(ExportNode& node) {
  const int axis = ExportNode::Axis(node.Get<int>("axis"), node.out_shape().ndim());
  const std::string axes = node.Ints({axis});
  std::vector<std::string> inputs;
  for (int i = 0; i < node.num_inputs(); ++i)
    inputs.push_back(node.Add("Unsqueeze", {node.in(i), axes}));
  node.Out("Concat", inputs, {{"axis", int64_t{axis}}});
}

// The axis of the second input of broadcast_like that an axis of the output is as long as.
int AxisOfLike(const ExportNode& node, int axis) {
  if (node.Is("lhs_axes", "None")) return axis;
  const auto ours = node.Get<TShape>("lhs_axes"), theirs = node.Get<TShape>("rhs_axes");
  for (int i = 0; i < ours.ndim(); ++i) {
    if (ExportNode::Axis(static_cast<int>(ours[i]), node.ndim()) == axis)
      return ExportNode::Axis(static_cast<int>(theirs[i]), node.in_shape(1).ndim());
  }
  return axis;
}

// broadcast_axis, broadcast_to, broadcast_like.
void Expand(ExportNode& node) {
  const TShape &in = node.in_shape(0), &out = node.out_shape();
  std::vector<int64_t> dims;
  if (node.op() == "broadcast_like" && out[0] == TShape::kUnknown && in[0] == 1) {
    // For every example, as a class token is: the length of the batch is the other input's.
    const int64_t like = AxisOfLike(node, 0);
    const std::string batch = node.Add(
        "Slice", {node.Add("Shape", {node.in(1)}), node.Ints({like}), node.Ints({like + 1})});
    for (int i = 1; i < out.ndim(); ++i)
      dims.push_back(out[i] == TShape::kUnknown ? 1 : out[i]);  // 1 keeps the length
    const std::string to =
        dims.empty() ? batch : node.Add("Concat", {batch, node.Ints(dims)}, {{"axis", int64_t{0}}});
    return node.Out("Expand", {node.in(0), to});
  }
  for (int i = 0; i < out.ndim(); ++i) {
    if (out[i] == TShape::kUnknown && in[i] != TShape::kUnknown)
      node.Refuse("how often it repeats axis {} depends on the size of the batch", i);
    dims.push_back(out[i] == TShape::kUnknown ? 1 : out[i]);  // 1 keeps the length
  }
  node.Out("Expand", {node.in(0), node.Ints(dims)});
}

void Tile(ExportNode& node) {
  const auto reps = node.Get<TShape>("reps");
  std::vector<int64_t> repeats(reps.begin(), reps.end());
  std::string data = node.in(0);
  const int more = reps.ndim() - node.ndim();
  if (more > 0) {
    std::vector<int64_t> axes(static_cast<size_t>(more));
    std::iota(axes.begin(), axes.end(), 0);
    data = node.Add("Unsqueeze", {data, node.Ints(axes)});
  }
  repeats.insert(repeats.begin(), static_cast<size_t>(std::max(0, -more)), 1);
  node.Out("Tile", {data, node.Ints(repeats)});
}

void Repeat(ExportNode& node) {
  if (node.Is("axis", "None"))
    node.Refuse("without an axis it repeats elements of the whole batch");
  const int axis = node.Axis("axis");
  std::vector<int64_t> repeats(static_cast<size_t>(node.ndim()) + 1, 1);
  repeats[static_cast<size_t>(axis) + 1] = node.Get<int64_t>("repeats");
  const std::string apart = node.Add("Unsqueeze", {node.in(0), node.Ints({axis + 1})});
  const std::string tiled = node.Add("Tile", {apart, node.Ints(repeats)});
  std::vector<int64_t> dims(node.out_shape().begin(), node.out_shape().end());
  if (axis == 0) {
    dims[0] = -1;
  } else if (dims[0] == TShape::kUnknown) {
    dims[0] = 0;
  }
  node.Out("Reshape", {tiled, node.Ints(dims)});
}

// Along every axis the last elements, then the first ones.
void Roll(ExportNode& node) {
  if (node.Is("axis", "None")) node.Refuse("without an axis it rolls the whole batch");
  const auto axes = node.Get<TShape>("axis"), shifts = node.Get<TShape>("shift");
  std::string data = node.in(0);
  for (int i = 0; i < axes.ndim(); ++i) {
    const int axis = ExportNode::Axis(static_cast<int>(axes[i]), node.ndim());
    const int64_t length = node.in_shape(0)[axis];
    if (length == TShape::kUnknown) node.Refuse("axis {} depends on the size of the batch", axis);
    const int64_t shift = (shifts[shifts.ndim() == 1 ? 0 : i] % length + length) % length;
    if (shift == 0) continue;
    const auto slice = [&](int64_t begin, int64_t end) {
      return node.Add("Slice",
                      {data, node.Ints({begin}), node.Ints({end}), node.Ints({int64_t{axis}})});
    };
    const std::string last = slice(length - shift, length), first = slice(0, length - shift);
    data = node.Add("Concat", {last, first}, {{"axis", int64_t{axis}}});
  }
  node.OutIs(data);
}

void Pad(ExportNode& node) {
  const auto widths = node.Get<std::vector<double>>("pad_width");  // before and after each axis
  std::vector<int64_t> pads;
  for (const size_t side : {0, 1}) {
    for (size_t i = side; i < widths.size(); i += 2)
      pads.push_back(static_cast<int64_t>(widths[i]));
  }
  node.Out("Pad", {node.in(0), node.Ints(pads), node.Scalar(node.Number("constant_value"))},
           {{"mode", node.Text("mode")}});
}

void DepthToSpace(ExportNode& node) {
  node.Out("DepthToSpace", {node.in(0)},
           {{"blocksize", node.Get<int64_t>("block_size")}, {"mode", std::string("DCR")}});
}

void SpaceToDepth(ExportNode& node) {
  node.Out("SpaceToDepth", {node.in(0)}, {{"blocksize", node.Get<int64_t>("block_size")}});
}

}  // namespace

std::vector<ExportEntry> ShapeExports() {
  return {
      {"Reshape", Reshape},
      {"_reshape_to", Reshape},
      {"reshape_like", Reshape},
      {"Flatten", Flatten},
      {"expand_dims", ExpandDims},
      {"squeeze", Squeeze},
      {"transpose", Transpose},
      {"SwapAxis", SwapAxis},
      {"slice", Slice},
      {"slice_axis", SliceAxis},
      {"slice_like", SliceLike},
      {"Crop", Crop},
      {"SliceChannel", SliceChannel},
      {"Concat", Concat},
      {"stack", Stack},
      {"broadcast_axis", Expand},
      {"broadcast_to", Expand},
      {"broadcast_like", Expand},
      {"tile", Tile},
      {"repeat", Repeat},
      {"roll", Roll},
      {"Pad", Pad},
      {"depth_to_space", DepthToSpace},
      {"space_to_depth", SpaceToDepth},
  };
}

}  // namespace mxtrain::onnx
