// SPDX-License-Identifier: Apache-2.0
// Elements at indices, and their order. Indices are float32 numbers here; negative ones count from
// the end.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_node.h"

namespace mxtrain::onnx {
namespace {

std::string Tuple(const std::vector<int64_t>& values) {
  return TShape(std::span<const int64_t>(values)).ToTuple();
}

// --- Gather ---

// Whether a flat array is read in order: exporters write a view of memory (as_strided) so.
bool InOrder(const ImportNode& node) {
  if (node.ndim() != 1 || !node.in(1).is_constant()) return false;
  for (size_t batch = 0; batch < 2; ++batch) {
    const std::vector<int64_t> indices = node.in(1).constant[batch]->ToInts();
    if (static_cast<int64_t>(indices.size()) != node.in(0).shape[batch].Size()) return false;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] != static_cast<int64_t>(i)) return false;
    }
  }
  return true;
}

// Whether computed indices are known not to be negative: those that this program exports are.
bool IsClipped(ImportNode& node) {
  const ImportedNet::Layer* layer = node.LayerOf(1);
  if (!layer || layer->op != "clip") return false;
  const auto least =
      std::ranges::find(layer->params, "a_min", [](const auto& p) { return p.first; });
  return least != layer->params.end() && !least->second.starts_with('-');
}

// Rows of an array of the file at computed indices that are not negative.
bool IsEmbedding(ImportNode& node, int axis) {
  return node.is_array(0) && !node.in(1).is_constant() && node.ndim() == 2 && axis == 0 &&
         IsClipped(node);
}

// Constant indices that are evenly spaced are a slice. `shape`: of the indices.
bool TakesSlice(ImportNode& node, int axis, const std::vector<int64_t>& at, const TShape& shape) {
  const int64_t step = at.size() > 1 ? at[1] - at[0] : 1;
  for (size_t i = 1; i < at.size(); ++i) {
    if (step == 0 || at[i] - at[i - 1] != step) return false;
  }
  const int64_t length = node.shape(0)[axis], end = at.back() + (step > 0 ? 1 : -1);
  const std::string begin = params::Print(at[0]), stop = end < 0 ? "None" : params::Print(end);
  std::string part = node.ref(0);
  if (step == 1 && static_cast<int64_t>(at.size()) != length) {
    part = node.Add("slice_axis", {part},
                    {{"axis", params::Print(axis)}, {"begin", begin}, {"end", stop}});
  } else if (step != 1) {
    const auto along = [axis](const std::string& text) {
      std::vector<std::string> texts(static_cast<size_t>(axis), "None");
      texts.push_back(text);
      return format("({})", join(texts, ", "));
    };
    part = node.Add(
        "slice", {part},
        {{"begin", along(begin)}, {"end", along(stop)}, {"step", along(params::Print(step))}});
  }
  Shapes to;
  for (size_t batch = 0; batch < 2; ++batch) {
    const TShape& from = node.in(0).shape[batch];
    std::vector<int64_t> dims(from.begin(), from.begin() + axis);
    dims.insert(dims.end(), shape.begin(), shape.end());
    dims.insert(dims.end(), from.begin() + axis + 1, from.end());
    to[batch] = TShape(std::span<const int64_t>(dims));
  }
  if (shape.ndim() == 0) {
    node.Out("squeeze", {part}, {{"axis", Tuple({axis})}});
  } else {
    node.OutIs(node.Reshape(part, to));
  }
  return true;
}

void Gather(ImportNode& node) {
  if (InOrder(node)) {
    const auto& indices = node.in(1).constant;
    return node.OutIs(node.Reshape(node.ref(0), {ShapeOf(*indices[0]), ShapeOf(*indices[1])}));
  }
  const int axis = node.Axis(node.Int("axis", 0), node.ndim());
  if (node.DependsOnBatch(0, axis)) node.Refuse("it selects examples of the batch");
  const int64_t length = node.shape(0)[axis];
  if (IsEmbedding(node, axis)) {
    const Tensor& table = node.array(0);
    node.NameAfter(node.in(0).array);
    return node.Out(
        "Embedding", {node.ref(1)},
        {{"input_dim", params::Print(table.dims[0])}, {"output_dim", params::Print(table.dims[1])}},
        {node.ArgumentOf(0, "weight")});
  }
  if (node.in(1).is_constant()) {
    const Tensor& indices = node.array(1);
    std::vector<int64_t> at = indices.ToInts();
    for (int64_t& index : at) {
      if (index < -length || index >= length)
        Throw(ErrorKind::kData, "{}: index {} is out of range for {}", node.Describe(), index,
              length);
      index += index < 0 ? length : 0;
    }
    if (at.empty()) node.Refuse("it selects nothing");
    if (TakesSlice(node, axis, at, ShapeOf(indices))) return;
  }
  node.Out("take", {node.ref(0), node.ref(1)}, {{"axis", params::Print(axis)}, {"mode", "wrap"}});
}

// --- one element of every column ---

void GatherElements(ImportNode& node) {
  const int axis = node.Axis(node.Int("axis", 0), node.ndim());
  TShape column = node.shape(0);
  column[axis] = 1;
  TShape other = node.shape(0, 1);
  other[axis] = 1;
  if (node.DependsOnBatch(0, axis) || !(node.in(1).shape == Shapes{column, other}))
    node.Refuse("only one element of every column can be selected");
  node.Out("pick", {node.ref(0), node.ref(1)},
           {{"axis", params::Print(axis)}, {"keepdims", "True"}, {"mode", "wrap"}});
}

// --- points ---

// The indices [points..., axes] as the operators here read them, [axes, points...].
std::string Points(ImportNode& node) {
  const int ndim = node.ndim(1);
  if (ndim < 2) node.Refuse("its indices {} are one point", node.shape(1).ToString());
  std::vector<int64_t> order{ndim - 1};
  for (int i = 0; i < ndim - 1; ++i) order.push_back(i);
  return node.Add("transpose", {node.ref(1)}, {{"axes", Tuple(order)}});
}

void GatherNd(ImportNode& node) {
  if (node.Int("batch_dims", 0) != 0) node.Refuse("batch_dims has no equivalent");
  node.Out("gather_nd", {node.ref(0), Points(node)});
}

// Elsewhere than at the points the data stay.
void ScatterNd(ImportNode& node) {
  if (node.Word("reduction", "none") != "none") node.Refuse("reduction has no equivalent");
  const TShape& shape = node.shape(0);
  if (!(shape == node.shape(0, 1)))
    node.Refuse("its data {} depend on the size of the batch", shape.ToString());
  const std::string points = Points(node), updates = node.ref(2);
  const Kwargs like{{"shape", shape.ToTuple()}};
  const std::string given = node.Add("scatter_nd", {updates, points}, like);
  const std::string ones = node.Add("ones_like", {updates});
  const std::string is_given = node.Add("scatter_nd", {ones, points}, like);
  node.Out("where", {is_given, given, node.ref(0)});
}

void OneHot(ImportNode& node) {
  const std::vector<int64_t> depth = node.ints(1);
  const std::vector<float> values = node.array(2).ToFloats();
  if (depth.size() != 1 || values.size() != 2)
    Throw(ErrorKind::kData, "{}: its depth or values are not one number and two", node.Describe());
  if (node.Axis(node.Int("axis", -1), node.ndim() + 1) != node.ndim())
    node.Refuse("only the last axis can have the classes");
  // Negative indices count from the end.
  const std::string indices = node.ref(0);
  const std::string is_negative = node.Add("_lesser_scalar", {indices}, {{"scalar", "0"}});
  const std::string more =
      node.Add("_mul_scalar", {is_negative}, {{"scalar", params::Print(depth[0])}});
  node.Out("one_hot", {node.Add("elemwise_add", {indices, more})},
           {{"depth", params::Print(depth[0])},
            {"on_value", params::Print(values[1])},
            {"off_value", params::Print(values[0])}});
}

// --- order ---

void TopK(ImportNode& node) {
  const int axis = node.Axis(node.Int("axis", -1), node.ndim());
  const std::vector<int64_t> count = node.has("k") ? std::vector{node.Int("k", 1)} : node.ints(1);
  if (count.size() != 1 || count[0] < 1) node.Refuse("it does not give a number of elements");
  if (node.DependsOnBatch(0, axis)) node.Refuse("it orders the examples of a batch");
  node.OutAll("topk", {node.ref(0)},
              {{"axis", params::Print(axis)},
               {"k", params::Print(count[0])},
               {"ret_typ", "both"},
               {"is_ascend", node.Int("largest", 1) != 0 ? "False" : "True"}});
}

void CumSum(ImportNode& node) {
  const std::vector<int64_t> axis = node.ints(1);
  if (axis.size() != 1) Throw(ErrorKind::kData, "{}: its axis is not a number", node.Describe());
  if (node.Int("exclusive", 0) != 0 || node.Int("reverse", 0) != 0)
    node.Refuse("exclusive and reverse have no equivalent");
  node.Out("cumsum", {node.ref(0)}, {{"axis", params::Print(node.Axis(axis[0], node.ndim()))}});
}

}  // namespace

std::vector<ImportEntry> IndexImports() {
  return {
      {"Gather", Gather},     {"GatherElements", GatherElements},
      {"GatherND", GatherNd}, {"ScatterND", ScatterNd},
      {"OneHot", OneHot},     {"TopK", TopK},
      {"CumSum", CumSum},
  };
}

}  // namespace mxtrain::onnx
