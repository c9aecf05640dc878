// SPDX-License-Identifier: Apache-2.0
// Elements at indices, and their order. Indices are float32 numbers here; negative ones count from
// the end.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_parts.h"

namespace mxtrain::onnx {
namespace {

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
    to[batch] = dims.empty() ? TShape::OfRank(0) : TShape(std::span<const int64_t>(dims));
  }
  if (shape.ndim() == 0 && to[0].ndim() > 0) {
    node.Out("squeeze", {part}, {{"axis", TupleOf({axis})}});
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

std::string NotNegative(ImportNode& node, const std::string& indices, int64_t length);

// The number along `axis` of every element of an array.
std::string NumbersAlong(ImportNode& node, const std::string& array, int axis) {
  const int ndim = node.ShapesOf(array)[0].ndim();
  const std::string numbers = node.Add("arange_like", {array}, {{"axis", params::Print(axis)}});
  std::vector<int64_t> dims(static_cast<size_t>(ndim), 1);
  dims[static_cast<size_t>(axis)] = -1;
  const std::string column = node.Add("Reshape", {numbers}, {{"shape", TupleOf(dims)}});
  return node.Add("broadcast_add", {node.Add("zeros_like", {array}), column});
}

void GatherElements(ImportNode& node) {
  const int axis = node.Axis(node.Int("axis", 0), node.ndim());
  if (node.ndim(1) != node.ndim())
    Throw(ErrorKind::kData, "{}: its data and indices do not have equally many axes",
          node.Describe());
  TShape column = node.shape(0);
  column[axis] = 1;
  TShape other = node.shape(0, 1);
  other[axis] = 1;
  if (node.DependsOnBatch(0, axis)) node.Refuse("it selects examples of the batch");
  if (node.in(1).shape == Shapes{column, other})
    return node.Out("pick", {node.ref(0), node.ref(1)},
                    {{"axis", params::Print(axis)}, {"keepdims", "True"}, {"mode", "wrap"}});
  // The other coordinates of an element are those of its index.
  const std::string indices = RefOverBatch(node, 1, axis);
  std::vector<std::string> coordinates;
  for (int i = 0; i < node.ndim(); ++i)
    coordinates.push_back(i == axis ? NotNegative(node, indices, node.shape(0)[axis])
                                    : NumbersAlong(node, indices, i));
  const std::string points = node.Add(
      "stack", coordinates, {{"num_args", format("{}", coordinates.size())}, {"axis", "0"}});
  node.Out("gather_nd", {node.ref(0), points});
}

// --- points ---

// Of indices [points..., axes], as the operators here read them, [axes, points...].
std::string Points(ImportNode& node, const std::string& indices) {
  const int ndim = node.ndim(1);
  if (ndim < 2) node.Refuse("its indices {} are one point", node.shape(1).ToString());
  std::vector<int64_t> order{ndim - 1};
  for (int i = 0; i < ndim - 1; ++i) order.push_back(i);
  return node.Add("transpose", {indices}, {{"axes", TupleOf(order)}});
}

// The indices [batch..., points..., axes] with those of the batch's own elements in front.
std::string BatchedIndices(ImportNode& node, int batch_dims) {
  if (batch_dims == 0) return node.ref(1);
  const int ndim = node.ndim(1);
  if (batch_dims < 0 || batch_dims >= std::min(ndim, node.ndim()))
    Throw(ErrorKind::kData, "{}: batch_dims {} is out of range", node.Describe(), batch_dims);
  for (int axis = 0; axis < batch_dims; ++axis) {
    if (node.shape(0)[axis] != node.shape(1)[axis] ||
        node.shape(0, 1)[axis] != node.shape(1, 1)[axis])
      node.Refuse("its data and indices differ along the axis {}", axis);
  }
  const std::string indices = node.ref(1), last = params::Print(ndim - 1);
  const std::string one =
      node.Add("slice_axis", {indices}, {{"axis", last}, {"begin", "0"}, {"end", "1"}});
  std::vector<std::string> columns;
  for (int axis = 0; axis < batch_dims; ++axis) {
    columns.push_back(NumbersAlong(node, one, axis));
  }
  columns.push_back(indices);
  return node.Add("Concat", columns, {{"num_args", params::Print(batch_dims + 1)}, {"dim", last}});
}

void GatherNd(ImportNode& node) {
  const int64_t batch_dims = node.Int("batch_dims", 0);
  const auto bounded = static_cast<int>(std::clamp<int64_t>(batch_dims, -1, TShape::kMaxDims));
  const std::string indices = BatchedIndices(node, bounded);
  node.Out("gather_nd", {node.ref(0), Points(node, indices)});
}

// Elsewhere than at the points the data stay.
void ScatterNd(ImportNode& node) {
  if (node.Word("reduction", "none") != "none") node.Refuse("reduction has no equivalent");
  const TShape& shape = node.shape(0);
  if (!(shape == node.shape(0, 1)))
    node.Refuse("its data {} depend on the size of the batch", shape.ToString());
  const std::string points = Points(node, node.ref(1)), updates = node.ref(2);
  const Kwargs like{{"shape", shape.ToTuple()}};
  const std::string given = node.Add("scatter_nd", {updates, points}, like);
  const std::string ones = node.Add("ones_like", {updates});
  const std::string is_given = node.Add("scatter_nd", {ones, points}, like);
  node.Out("where", {is_given, given, node.ref(0)});
}

// Negative indices count from the end of an axis of this length.
std::string NotNegative(ImportNode& node, const std::string& indices, int64_t length) {
  const std::string is_negative = node.Add("_lesser_scalar", {indices}, {{"scalar", "0"}});
  const std::string more =
      node.Add("_mul_scalar", {is_negative}, {{"scalar", params::Print(length)}});
  return node.Add("elemwise_add", {indices, more});
}

// An input with an axis at the end; a number that is written for every element, as that number.
std::string AtEnd(ImportNode& node, int i, int axis) {
  const int ndim = node.ndim(i);
  if (node.is_one_number(i)) return node.OneNumber(i, ndim);
  if (axis == ndim - 1) return node.ref(i);
  return node.Add("SwapAxis", {node.ref(i)},
                  {{"dim1", params::Print(axis)}, {"dim2", params::Print(ndim - 1)}});
}

// An element of every column at each index: of the columns at the end, [..., updates, column] says
// which update goes where. Elsewhere the data stay.
void ScatterElements(ImportNode& node) {
  const std::string reduction = node.Word("reduction", "none");
  if (reduction != "none" && reduction != "add")
    node.Refuse("reduction = {} has no equivalent", reduction);
  const int ndim = node.ndim(), axis = node.Axis(node.Int("axis", 0), ndim), last = ndim - 1;
  for (const int batch : {0, 1}) {
    TShape columns = node.shape(1, batch);
    if (columns.ndim() != ndim || !(columns == node.shape(2, batch)))
      Throw(ErrorKind::kData, "{}: its data, indices and updates do not have equally many axes",
            node.Describe());
    columns[axis] = node.shape(0, batch)[axis];
    if (!(columns == node.shape(0, batch)))
      node.Refuse("its indices {} leave columns of {} out", node.shape(1).ToString(),
                  node.shape(0).ToString());
  }
  if (node.DependsOnBatch(0, axis)) node.Refuse("it writes examples of the batch");
  if (ndim == TShape::kMaxDims) node.Refuse("its data have {} axes", ndim);
  if (node.is_one_number(1)) node.Refuse("it writes into one column");
  constexpr int64_t kMostElements = int64_t{1} << 31;
  const int64_t length = node.shape(0)[axis];
  if (length == 0 || node.shape(1).Size() > kMostElements / length)
    node.Refuse("its indices {} into columns of {} are too many", node.shape(1).ToString(), length);
  const std::string to = params::Print(last);
  const std::string hot = node.Add("one_hot", {NotNegative(node, AtEnd(node, 1, axis), length)},
                                   {{"depth", params::Print(length)}});
  // where, not a product: an update may be infinite.
  const std::string zeros = node.Add("zeros_like", {hot});
  const std::string updates =
      node.Add("expand_dims", {AtEnd(node, 2, axis)}, {{"axis", params::Print(ndim)}});
  const std::string spread = node.Add("broadcast_add", {zeros, updates});
  std::string given = node.Add("sum", {node.Add("where", {hot, spread, zeros})}, {{"axis", to}});
  std::string is_given = node.Add("sum", {hot}, {{"axis", to}});
  std::string data = AtEnd(node, 0, axis);
  if (node.is_one_number(0))
    data = node.Add("broadcast_add", {node.Add("zeros_like", {given}), data});
  const std::string result = reduction == "add" ? node.Add("elemwise_add", {data, given})
                                                : node.Add("where", {is_given, given, data});
  if (axis == last) return node.OutIs(result);
  node.Out("SwapAxis", {result}, {{"dim1", params::Print(axis)}, {"dim2", to}});
}

void OneHot(ImportNode& node) {
  const std::vector<int64_t> depth = node.ints(1);
  RequireExact(node, 2);
  const std::vector<float> values = node.array(2).ToFloats();
  if (depth.size() != 1 || values.size() != 2)
    Throw(ErrorKind::kData, "{}: its depth or values are not one number and two", node.Describe());
  const int ndim = node.ndim(), axis = node.Axis(node.Int("axis", -1), ndim + 1);
  const std::string hot = node.Add("one_hot", {NotNegative(node, node.ref(0), depth[0])},
                                   {{"depth", params::Print(depth[0])},
                                    {"on_value", params::Print(values[1])},
                                    {"off_value", params::Print(values[0])}});
  std::vector<int64_t> order;
  for (int i = 0; i < ndim; ++i) order.push_back(i);
  order.insert(order.begin() + axis, ndim);
  node.OutIs(Permuted(node, hot, order));
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
  const int along = node.Axis(axis[0], node.ndim());
  if (node.fixed_batch() && node.DependsOnBatch(0, along))
    node.RefuseFixed("it runs over axis {}, which holds", along);
  const bool reversed = node.Int("reverse", 0) != 0;
  const Kwargs turn{{"axis", TupleOf({along})}};
  std::string data = node.ref(0);
  if (reversed) data = node.Add("reverse", {data}, turn);
  std::string sums = node.Add("cumsum", {data}, {{"axis", params::Print(along)}});
  if (node.Int("exclusive", 0) != 0) {
    // The sums up to the element before: moved by one, behind a zero.
    const int64_t length = FixedLength(node, sums, along);
    std::vector<std::string> parts{node.Add("zeros_like", {Sliced(node, sums, along, 0, 1)})};
    if (length > 1) parts.push_back(Sliced(node, sums, along, 0, length - 1));
    sums = Joined(node, parts, along);
  }
  node.OutIs(reversed ? node.Add("reverse", {sums}, turn) : sums);
}

}  // namespace

std::vector<ImportEntry> IndexImports() {
  return {
      {"Gather", Gather},     {"GatherElements", GatherElements},
      {"GatherND", GatherNd}, {"ScatterND", ScatterNd},
      {"OneHot", OneHot},     {"ScatterElements", ScatterElements},
      {"TopK", TopK},         {"CumSum", CumSum},
  };
}

}  // namespace mxtrain::onnx
