// SPDX-License-Identifier: Apache-2.0
// Shapes: reshaping, permuting, slicing, joining, repeating, padding.
#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_parts.h"

namespace mxtrain::onnx {
namespace {

TShape AsShape(const ImportNode& node, const std::vector<int64_t>& dims) {
  if (dims.size() > static_cast<size_t>(TShape::kMaxDims))
    node.Refuse("its output has {} axes; {} are supported", dims.size(), TShape::kMaxDims);
  return TShape(std::span<const int64_t>(dims));
}

// The node's output is its input in these shapes.
void Into(ImportNode& node, const Shapes& to) {
  const std::string reference = node.ref(0);
  const Shapes& from = node.ShapesOf(reference);
  for (size_t batch = 0; batch < 2; ++batch) {
    if (from[batch].Size() != to[batch].Size())
      Throw(ErrorKind::kData, "{}: {} cannot become {}", node.Describe(), from[batch].ToString(),
            to[batch].ToString());
  }
  node.OutIs(node.Reshape(reference, to));
}

// With code 0 for a copied length and -1 for the rest. Nothing if the lengths do not fit.
std::optional<TShape> Resolved(const ImportNode& node, std::vector<int64_t> dims,
                               const TShape& from) {
  const bool zero_copies = node.Int("allowzero", 0) == 0;
  int64_t known = 1;
  int open = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && zero_copies) {
      if (static_cast<int>(i) >= from.ndim()) node.Refuse("a code 0 has no axis to copy");
      dims[i] = from[static_cast<int>(i)];
    }
    if (dims[i] == -1) {
      if (open >= 0) node.Refuse("two lengths are to be inferred");
      open = static_cast<int>(i);
    } else if (dims[i] < 1 || dims[i] > TShape::kMaxSize / known) {
      node.Refuse("a length of its output is {}", dims[i]);
    } else {
      known *= dims[i];
    }
  }
  if (from.Size() % known != 0 || (open < 0 && from.Size() != known)) return std::nullopt;
  if (open >= 0) dims[static_cast<size_t>(open)] = from.Size() / known;
  return AsShape(node, dims);
}

// --- shapes that a file holds for a batch of fixed size ---

// The axis that a batch of any size makes longer; -1: none. Throws for several.
int BatchAxis(const ImportNode& node, const Shapes& shapes) {
  int axis = -1;
  for (int i = 0; i < shapes[0].ndim(); ++i) {
    if (shapes[0][i] == shapes[1][i]) continue;
    if (axis >= 0) node.Refuse("several axes of its data depend on the size of the batch");
    axis = i;
  }
  return axis;
}

// How many positions of the axes up to `axis`, which has the batch, have one example after the
// other. 0: not known.
int64_t BeforeBatch(const ImportNode& node, const Shapes& from, int axis) {
  const int64_t more = from[0][axis] / node.state().batches[0];
  int64_t inside = 1;
  if (more > 1) {
    const auto merged = node.state().merged.find(more);
    if (merged == node.state().merged.end() || merged->second.size() != 1) return 0;
    inside = *merged->second.begin();
  }
  return from[0].Product(0, axis) * inside;
}

// The axis of `to`, a shape for the batch of the file, that the batch is in; -1: none. Best it has
// the batch alone, then not at the end, then with what comes before the batch.
int AxisOfBatch(const TShape& to, int64_t before, int64_t batch) {
  int best = -1, best_rank = 4;
  for (int i = 0; i < to.ndim(); ++i) {
    const int64_t outer = to.Product(0, i);
    if (outer == 0 || before % outer != 0 || to[i] % (before / outer * batch) != 0) continue;
    const bool apart = before == outer;
    const int rank = apart && to[i] == batch                          ? 0
                     : apart && (i + 1 < to.ndim() || to.ndim() == 1) ? 1
                     : !apart                                         ? 2
                                                                      : 3;
    if (rank < best_rank) {
      best = i;
      best_rank = rank;
    }
  }
  return best;
}

// A shape that is written into the file for its batch, for batches of any size. Examples stay
// behind each other in memory, so that it is clear where the batch goes.
Shapes ForAnyBatch(ImportNode& node, const TShape& to, const std::vector<int64_t>& written) {
  const Shapes& from = node.in(0).shape;
  const int axis = BatchAxis(node, from);
  if (axis < 0) return {to, to};
  const int64_t batch = node.state().batches[0], before = BeforeBatch(node, from, axis);
  const int place = before == 0 ? -1 : AxisOfBatch(to, before, batch);
  if (place < 0) node.RefuseFixed("its shape {} holds", TupleOf(written));
  TShape larger = to;
  larger[place] = to[place] / batch * node.state().batches[1];
  if (to[place] != batch)
    node.state().merged[to[place] / batch].insert(before / to.Product(0, place));
  return {to, larger};
}

void Reshape(ImportNode& node) {
  if (!node.in(1).is_constant()) node.Refuse("its shape depends on the data");
  const Shapes& from = node.in(0).shape;
  // A batch of fixed size may be written into the file.
  const bool fixed = node.fixed_batch() && node.in(1).is_array();
  Shapes to;
  for (size_t batch = 0; batch < (fixed ? 1 : 2); ++batch) {
    const std::vector<int64_t> written = node.in(1).constant[batch]->ToInts();
    const std::optional<TShape> shape = Resolved(node, written, from[batch]);
    if (!shape)
      Throw(ErrorKind::kData, "{}: {} cannot become {}", node.Describe(), from[batch].ToString(),
            TupleOf(written));
    to[batch] = *shape;
    if (fixed) to = ForAnyBatch(node, *shape, written);
  }
  Into(node, to);
}

void Flatten(ImportNode& node) {
  const int64_t given = node.Int("axis", 1);
  const int axis = given == node.ndim() ? node.ndim() : node.Axis(given, node.ndim());
  if (axis == 1) return node.Out("Flatten", {node.ref(0)});
  Shapes to;
  for (size_t batch = 0; batch < 2; ++batch) {
    const TShape& from = node.in(0).shape[batch];
    to[batch] = TShape{from.Product(0, axis), from.Product(axis, from.ndim())};
  }
  if (node.fixed_batch()) to = ForAnyBatch(node, to[0], {to[0].begin(), to[0].end()});
  Into(node, to);
}

void Unsqueeze(ImportNode& node) {
  const auto axes = node.IntsOfInputOr(1, "axes");
  if (!axes) Throw(ErrorKind::kData, "{} has no axes", node.Describe());
  const int ndim = node.ndim() + static_cast<int>(axes->size());
  std::vector<bool> is_new(static_cast<size_t>(ndim), false);
  for (const int64_t axis : *axes) is_new[static_cast<size_t>(node.Axis(axis, ndim))] = true;
  if (std::ranges::count(is_new, true) != static_cast<int64_t>(axes->size()))
    Throw(ErrorKind::kData, "{} names an axis twice", node.Describe());
  Shapes to;
  for (size_t batch = 0; batch < 2; ++batch) {
    std::vector<int64_t> dims;
    int old = 0;
    for (const bool fresh : is_new) dims.push_back(fresh ? 1 : node.in(0).shape[batch][old++]);
    to[batch] = AsShape(node, dims);
  }
  Into(node, to);
}

void Squeeze(ImportNode& node) {
  const auto axes = node.IntsOfInputOr(1, "axes");
  std::vector<bool> removed(static_cast<size_t>(node.ndim()), false);
  for (int i = 0; i < node.ndim() && !axes; ++i)
    removed[static_cast<size_t>(i)] = node.shape(0)[i] == 1 && node.shape(0, 1)[i] == 1;
  for (const int64_t axis : axes.value_or(std::vector<int64_t>()))
    removed[static_cast<size_t>(node.Axis(axis, node.ndim()))] = true;
  Shapes to;
  for (size_t batch = 0; batch < 2; ++batch) {
    std::vector<int64_t> dims;
    for (int i = 0; i < node.ndim(); ++i) {
      if (!removed[static_cast<size_t>(i)]) dims.push_back(node.in(0).shape[batch][i]);
    }
    to[batch] = AsShape(node, dims);
  }
  Into(node, to);
}

void Transpose(ImportNode& node) {
  std::vector<int64_t> order(static_cast<size_t>(node.ndim()));
  std::iota(order.rbegin(), order.rend(), 0);
  const Kwargs axes{{"axes", TupleOf(node.Ints("perm", order))}};
  // Channels to the end and back are where they were.
  const ImportedNet::Layer* before = node.LayerOf(0);
  const bool back = before && before->op == "transpose" && node.ndim() == 4 &&
                    before->params == Kwargs{{"axes", "(0, 2, 3, 1)"}} &&
                    axes == Kwargs{{"axes", "(0, 3, 1, 2)"}};
  if (back) return node.OutIs(before->inputs[0]);
  node.Out("transpose", {node.ref(0)}, axes);
}

// --- slices ---

std::string IndexText(int64_t index) {
  constexpr int64_t kFar = int64_t{1} << 31;  // exporters write the ends of axes as huge numbers
  return index >= kFar || index <= -kFar ? "None" : params::Print(index);
}

// begin and end of a slice along an axis. Positions of an axis are clamped to it in ONNX.
std::pair<std::string, std::string> Bounds(const ImportNode& node, int axis, int64_t start,
                                           int64_t end, int64_t step) {
  const int64_t length = node.shape(0)[axis];
  if (node.DependsOnBatch(0, axis) && node.fixed_batch()) {
    const bool whole = (start == 0 || start <= -length) && end >= length && step == 1;
    if (!whole) node.RefuseFixed("it takes a part of axis {}, which holds", axis);
    return {"None", "None"};
  }
  if (node.DependsOnBatch(0, axis)) return {IndexText(start), IndexText(end)};
  if (length == 0) node.Refuse("axis {} has no elements", axis);
  const int64_t least = step > 0 ? 0 : -1, most = step > 0 ? length : length - 1;
  const auto clamped = [&](int64_t at, int64_t lowest) {
    return std::clamp(at < 0 ? at + length : at, lowest, most);
  };
  const int64_t first = clamped(start, 0), last = clamped(end, least);
  return {first == (step > 0 ? 0 : length - 1) ? "None" : params::Print(first),
          last == (step > 0 ? length : -1) ? "None" : params::Print(last)};
}

void Slice(ImportNode& node) {
  const auto starts = node.IntsOfInputOr(1, "starts"), ends = node.IntsOfInputOr(2, "ends");
  if (!starts || !ends || starts->size() != ends->size())
    Throw(ErrorKind::kData, "{}: starts and ends do not match", node.Describe());
  std::vector<int64_t> axes(starts->size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = node.IntsOfInputOr(3, "axes").value_or(axes);
  const std::vector<int64_t> steps =
      node.has(4) ? node.ints(4) : std::vector<int64_t>(starts->size(), 1);
  if (axes.size() != starts->size() || steps.size() != starts->size())
    Throw(ErrorKind::kData, "{}: axes or steps do not match", node.Describe());
  const auto count = static_cast<size_t>(node.ndim());
  std::vector<std::string> begin(count, "None"), end(count, "None"), step(count, "None");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = node.Axis(axes[i], node.ndim());
    const auto at = static_cast<size_t>(axis);
    if (steps[i] == 0) Throw(ErrorKind::kData, "{}: a step is 0", node.Describe());
    std::tie(begin[at], end[at]) = Bounds(node, axis, (*starts)[i], (*ends)[i], steps[i]);
    step[at] = params::Print(steps[i]);
  }
  const auto list = [](const std::vector<std::string>& texts) {
    return format("({})", join(texts, ", "));
  };
  node.Out("slice", {node.ref(0)},
           {{"begin", list(begin)}, {"end", list(end)}, {"step", list(step)}});
}

void Split(ImportNode& node) {
  const int axis = node.Axis(node.Int("axis", 0), node.ndim());
  const int64_t length = node.shape(0)[axis];
  const int count = node.num_outputs();
  const int64_t each = (length + count - 1) / count;  // the last one may be shorter
  std::vector<int64_t> sizes(static_cast<size_t>(count), each);
  sizes.back() = length - each * (count - 1);
  sizes = node.IntsOfInputOr(1, "split").value_or(sizes);
  if (node.shape(0)[axis] != node.shape(0, 1)[axis]) node.Refuse("axis {} is the batch", axis);
  if (static_cast<int>(sizes.size()) != count ||
      std::ranges::any_of(sizes, [&](int64_t size) { return size < 0 || size > length; }) ||
      std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != length)
    Throw(ErrorKind::kData, "{}: its parts do not add up to {}", node.Describe(), length);
  const bool equal = std::ranges::all_of(sizes, [&](int64_t size) { return size == sizes[0]; });
  if (equal && count > 1)
    return node.OutAll("SliceChannel", {node.ref(0)},
                       {{"num_outputs", params::Print(count)}, {"axis", params::Print(axis)}});
  int64_t begin = 0;
  for (int i = 0; i < count; ++i) {
    const int64_t end = begin + sizes[static_cast<size_t>(i)];
    node.Out("slice_axis", {node.ref(0)},
             {{"axis", params::Print(axis)},
              {"begin", params::Print(begin)},
              {"end", params::Print(end)}},
             {}, i);
    begin = end;
  }
}

// --- joining and repeating ---

void Concat(ImportNode& node) {
  const int axis = node.Axis(node.Int("axis", 0), node.ndim());
  std::vector<std::string> inputs;
  for (int i = 0; i < node.num_inputs(); ++i) {
    inputs.push_back(RefOverBatch(node, i, axis));
  }
  node.Out("Concat", inputs,
           {{"num_args", params::Print(node.num_inputs())}, {"dim", params::Print(axis)}});
}

void Expand(ImportNode& node) {
  if (!node.in(1).is_constant()) node.Refuse("its shape depends on the data");
  std::string data = node.ref(0);
  const bool fixed = node.fixed_batch() && node.in(1).is_array();
  Shapes from = node.ShapesOf(data), to;
  for (size_t batch = 0; batch < 2; ++batch) {
    std::vector<int64_t> dims = node.in(1).constant[batch]->ToInts();
    TShape& shape = from[batch];
    if (static_cast<int>(dims.size()) < shape.ndim())
      dims.insert(dims.begin(), static_cast<size_t>(shape.ndim()) - dims.size(), 1);
    std::vector<int64_t> lifted(dims.size() - static_cast<size_t>(shape.ndim()), 1);
    lifted.insert(lifted.end(), shape.begin(), shape.end());
    shape = AsShape(node, lifted);
    for (size_t i = 0; i < dims.size(); ++i) {
      // The batch of the file, which is not repeated.
      const bool kept = fixed && from[0][static_cast<int>(i)] == dims[i];
      if (batch == 1 && kept) dims[i] = lifted[i];
      if (lifted[i] != dims[i] && lifted[i] != 1 && dims[i] != 1)
        Throw(ErrorKind::kData, "{}: {} does not broadcast to {}", node.Describe(),
              shape.ToString(), TupleOf(dims));
      dims[i] = lifted[i] == 1 ? dims[i] : lifted[i];
    }
    to[batch] = AsShape(node, dims);
  }
  std::vector<int64_t> sizes;
  bool batch_repeated = false;
  for (int i = 0; i < to[0].ndim(); ++i) {
    const bool repeated = from[0][i] != to[0][i] || from[1][i] != to[1][i],
               by_batch = repeated && to[0][i] != to[1][i];
    batch_repeated = batch_repeated || by_batch;
    sizes.push_back(repeated && !by_batch ? to[0][i] : 0);  // 0 keeps a length
  }
  data = node.Reshape(data, from);
  const Kwargs others{{"shape", TupleOf(sizes)}};
  if (!batch_repeated) return node.Out("broadcast_to", {data}, others);
  if (std::ranges::any_of(sizes, [](int64_t size) { return size != 0; }))
    data = node.Add("broadcast_to", {data}, others);
  // To the size of the batch, as a class token is: like an input.
  const std::array<int64_t, 2>& batches = node.state().batches;
  int place = -1;
  for (int i = 0; i < to[0].ndim(); ++i) {
    if (to[0][i] == to[1][i] || from[0][i] != 1 || from[1][i] != 1) continue;
    if (place >= 0 || to[0][i] != batches[0] || to[1][i] != batches[1])
      node.Refuse("it repeats an axis to a size that depends on the batch");
    place = i;
  }
  if (place < 0) node.Refuse("it repeats an axis to a size that depends on the batch");
  node.OutIs(node.LikeBatch(data, place));
}

// As often as the batch is long along one axis: the data are repeated along a new axis before it.
void TileByBatch(ImportNode& node, std::array<std::vector<int64_t>, 2> repeats) {
  const std::array<int64_t, 2>& batches = node.state().batches;
  int place = -1;
  for (int i = 0; i < node.ndim(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (repeats[0][at] == repeats[1][at]) continue;
    const int64_t times = repeats[0][at] / batches[0];
    if (place >= 0 || repeats[0][at] != times * batches[0] ||
        repeats[1][at] != times * batches[1] || node.DependsOnBatch(0, i))
      node.Refuse("it repeats an axis by a number that depends on the batch");
    place = i;
    repeats[0][at] = times;
  }
  const auto at = static_cast<size_t>(place);
  std::string data = node.ref(0, node.ndim());
  if (std::ranges::any_of(repeats[0], [](int64_t times) { return times != 1; }))
    data = node.Add("tile", {data}, {{"reps", TupleOf(repeats[0])}});
  const Shapes once = node.ShapesOf(data);
  if (once[0][place] == 1) return node.OutIs(node.LikeBatch(data, place));
  Shapes apart, whole = once;
  for (size_t batch = 0; batch < 2; ++batch) {
    std::vector<int64_t> dims(once[batch].begin(), once[batch].end());
    dims.insert(dims.begin() + place, 1);
    apart[batch] = AsShape(node, dims);
    whole[batch][place] = dims[at + 1] * batches[batch];
  }
  node.OutIs(node.Reshape(node.LikeBatch(node.Reshape(data, apart), place), whole));
}

void Tile(ImportNode& node) {
  if (!node.in(1).is_constant()) node.Refuse("its numbers of repeats depend on the data");
  const std::array<std::vector<int64_t>, 2> repeats{node.in(1).constant[0]->ToInts(),
                                                    node.in(1).constant[1]->ToInts()};
  if (static_cast<int>(repeats[0].size()) != node.ndim())
    Throw(ErrorKind::kData, "{}: its repeats are not one number per axis", node.Describe());
  if (repeats[0] != repeats[1]) return TileByBatch(node, repeats);
  node.Out("tile", {node.ref(0)}, {{"reps", TupleOf(repeats[0])}});
}

// Elements before and after each axis, negative ones to cut off.
struct Widths {
  std::vector<int64_t> before, after;
};
Widths WidthsOf(const ImportNode& node) {
  const auto pads = node.IntsOfInputOr(1, "pads");
  std::vector<int64_t> axes;
  if (node.has(3)) axes = node.ints(3);
  for (int i = 0; i < node.ndim() && !node.has(3); ++i) axes.push_back(i);
  if (!pads || pads->size() != 2 * axes.size())
    Throw(ErrorKind::kData, "{}: its pads do not have two numbers per axis", node.Describe());
  const auto count = static_cast<size_t>(node.ndim());
  Widths widths{std::vector<int64_t>(count, 0), std::vector<int64_t>(count, 0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(node.Axis(axes[i], node.ndim()));
    for (const int64_t width : {(*pads)[i], (*pads)[axes.size() + i]}) {
      if (width < -TShape::kMaxSize || width > TShape::kMaxSize)
        Throw(ErrorKind::kData, "{}: a width of its padding is {}", node.Describe(), width);
    }
    widths.before[axis] = (*pads)[i];
    widths.after[axis] = (*pads)[axes.size() + i];
  }
  return widths;
}

// What is cut off; the widths that remain are added.
std::string Cut(ImportNode& node, std::string data, Widths* widths) {
  for (int axis = 0; axis < node.ndim(); ++axis) {
    int64_t& before = widths->before[static_cast<size_t>(axis)];
    int64_t& after = widths->after[static_cast<size_t>(axis)];
    if (before >= 0 && after >= 0) continue;
    const int64_t length = FixedLength(node, data, axis), begin = before < 0 ? -before : 0,
                  end = length + (after < 0 ? after : 0);
    if (begin >= end) node.Refuse("its padding leaves nothing of axis {}", axis);
    data = Sliced(node, data, axis, begin, end);
    before = std::max<int64_t>(0, before);
    after = std::max<int64_t>(0, after);
  }
  return data;
}

// The elements continue at the other end.
std::string Wrapped(ImportNode& node, std::string data, const Widths& widths) {
  for (int axis = 0; axis < node.ndim(); ++axis) {
    const int64_t before = widths.before[static_cast<size_t>(axis)],
                  after = widths.after[static_cast<size_t>(axis)];
    if (before == 0 && after == 0) continue;
    const int64_t length = FixedLength(node, data, axis);
    if (before > length || after > length) node.Refuse("it repeats axis {} more than once", axis);
    std::vector<std::string> parts;
    if (before > 0) parts.push_back(Sliced(node, data, axis, length - before, length));
    parts.push_back(data);
    if (after > 0) parts.push_back(Sliced(node, data, axis, 0, after));
    data = Joined(node, parts, axis);
  }
  return data;
}

void Pad(ImportNode& node) {
  const std::string mode = node.Word("mode", "constant");
  Widths widths = WidthsOf(node);
  const std::string data = Cut(node, node.ref(0), &widths);
  if (mode == "wrap") return node.OutIs(Wrapped(node, data, widths));
  if (mode != "constant" && mode != "edge" && mode != "reflect")
    node.Refuse("mode '{}' has no equivalent", mode);
  std::string text;
  for (size_t i = 0; i < widths.before.size(); ++i)
    text += format("{}{}, {}", i == 0 ? "(" : ", ", widths.before[i], widths.after[i]);
  node.Out("Pad", {data},
           {{"mode", mode},
            {"pad_width", text + ")"},
            {"constant_value", params::Print(node.NumberOfInputOr(2, "value").value_or(0))}});
}

// The blocks of channels of DepthToSpace and SpaceToDepth come first (DCR), or the places in a
// block change slowest (CRD).
bool BlocksFirst(const ImportNode& node) {
  const std::string mode = node.Word("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    Throw(ErrorKind::kData, "{}: there is no mode '{}'", node.Describe(), mode);
  return mode == "DCR";
}

int64_t BlockOf(const ImportNode& node) {
  const int64_t block = node.Int("blocksize", 1);
  if (node.ndim() != 4 || block < 1 || block > 1 << 20)
    Throw(ErrorKind::kData, "{}: its blocksize is {} for {}", node.Describe(), block,
          node.shape(0).ToString());
  return block;
}

// [N, C b b, H, W] as [N, C, H b, W b]
void DepthToSpace(ImportNode& node) {
  const int64_t b = BlockOf(node);
  if (BlocksFirst(node))
    return node.Out("depth_to_space", {node.ref(0)}, {{"block_size", params::Print(b)}});
  Shapes apart = node.in(0).shape, to = apart;
  for (size_t i = 0; i < 2; ++i) {
    const TShape s = apart[i];
    if (s[1] % (b * b) != 0)
      Throw(ErrorKind::kData, "{}: {} channels are no blocks of {} x {}", node.Describe(), s[1], b,
            b);
    apart[i] = TShape{s[0], s[1] / (b * b), b, b, s[2], s[3]};
    to[i] = TShape{s[0], s[1] / (b * b), s[2] * b, s[3] * b};
  }
  const std::string blocks = node.Reshape(node.ref(0), apart);
  node.OutIs(node.Reshape(Permuted(node, blocks, {0, 1, 4, 2, 5, 3}), to));
}

// [N, C, H b, W b] as [N, C b b, H, W]
void SpaceToDepth(ImportNode& node) {
  const int64_t b = BlockOf(node);
  if (BlocksFirst(node))
    return node.Out("space_to_depth", {node.ref(0)}, {{"block_size", params::Print(b)}});
  Shapes apart = node.in(0).shape, to = apart;
  for (size_t i = 0; i < 2; ++i) {
    const TShape s = apart[i];
    if (s[2] % b != 0 || s[3] % b != 0)
      Throw(ErrorKind::kData, "{}: {} has no blocks of {} x {}", node.Describe(), s.ToString(), b,
            b);
    apart[i] = TShape{s[0], s[1], s[2] / b, b, s[3] / b, b};
    to[i] = TShape{s[0], s[1] * b * b, s[2] / b, s[3] / b};
  }
  const std::string blocks = node.Reshape(node.ref(0), apart);
  node.OutIs(node.Reshape(Permuted(node, blocks, {0, 1, 3, 5, 2, 4}), to));
}

// Columns [N, C * block, places] added up where their windows lie in the image.
void ColToIm(ImportNode& node) {
  const std::vector<int64_t> image = node.ints(1), block = node.ints(2);
  const std::vector<int64_t> ones(block.size(), 1), zeros(2 * block.size(), 0);
  const std::vector<int64_t> pads = node.Ints("pads", zeros);
  if (image.size() != block.size() || pads.size() != zeros.size())
    Throw(ErrorKind::kData, "{}: its shapes and pads do not have equally many axes",
          node.Describe());
  // With the padding, which is cut off afterwards.
  std::vector<int64_t> whole = image;
  for (size_t i = 0; i < whole.size(); ++i) whole[i] += pads[i] + pads[whole.size() + i];
  std::string result = node.Add("col2im", {node.ref(0)},
                                {{"output_size", TupleOf(whole)},
                                 {"kernel", TupleOf(block)},
                                 {"stride", TupleOf(node.Ints("strides", ones))},
                                 {"dilate", TupleOf(node.Ints("dilations", ones))}});
  for (size_t i = 0; i < image.size(); ++i)
    result = Sliced(node, result, 2 + static_cast<int>(i), pads[i], pads[i] + image[i]);
  node.OutIs(result);
}

}  // namespace

std::vector<ImportEntry> ShapeImports() {
  return {
      {"Reshape", Reshape},
      {"Flatten", Flatten},
      {"Unsqueeze", Unsqueeze},
      {"Squeeze", Squeeze},
      {"Transpose", Transpose},
      {"Slice", Slice},
      {"Split", Split},
      {"Concat", Concat},
      {"Expand", Expand},
      {"Tile", Tile},
      {"Pad", Pad},
      {"DepthToSpace", DepthToSpace},
      {"SpaceToDepth", SpaceToDepth},
      {"Col2Im", ColToIm},
  };
}

}  // namespace mxtrain::onnx
