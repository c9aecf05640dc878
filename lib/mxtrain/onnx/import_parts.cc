// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/internal/import_parts.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "mxtrain/base/error.h"

namespace mxtrain::onnx {

std::string TupleOf(const std::vector<int64_t>& values) {
  return TShape(std::span<const int64_t>(values)).ToTuple();
}

namespace {

TShape ShapeOfList(const std::vector<int64_t>& dims) {
  return TShape(std::span<const int64_t>(dims));
}

// Lengths of the axes [first, last).
std::vector<int64_t> Part(const TShape& shape, int first, int last) {
  return {shape.begin() + first, shape.begin() + last};
}

}  // namespace

std::string WithNumber(ImportNode& node, const std::string& op, const std::string& value,
                       double number) {
  return node.Add(op, {value}, {{"scalar", params::Print(number)}});
}

std::string Lifted(ImportNode& node, const std::string& value, int ndim) {
  Shapes to = node.ShapesOf(value);
  if (to[0].ndim() >= ndim) return value;
  for (TShape& shape : to) {
    std::vector<int64_t> dims(static_cast<size_t>(ndim - shape.ndim()), 1);
    dims.insert(dims.end(), shape.begin(), shape.end());
    shape = ShapeOfList(dims);
  }
  return node.Reshape(value, to);
}

std::string Pair(ImportNode& node, const std::string& op, const std::string& a,
                 const std::string& b) {
  const int ndim = std::max(node.ShapesOf(a)[0].ndim(), node.ShapesOf(b)[0].ndim());
  const std::string x = Lifted(node, a, ndim), y = Lifted(node, b, ndim);
  return node.Add("broadcast_" + op, {x, y});
}

Shapes BroadcastShapes(const ImportNode& node, const Shapes& a, const Shapes& b) {
  Shapes to;
  for (size_t batch = 0; batch < 2; ++batch) {
    const TShape &x = a[batch], &y = b[batch];
    const int ndim = std::max(x.ndim(), y.ndim());
    std::vector<int64_t> dims(static_cast<size_t>(ndim));
    for (int back = 1; back <= ndim; ++back) {
      const int64_t i = back <= x.ndim() ? x[x.ndim() - back] : 1,
                    j = back <= y.ndim() ? y[y.ndim() - back] : 1;
      if (i != j && i != 1 && j != 1)
        node.Refuse("{} and {} do not broadcast", x.ToString(), y.ToString());
      dims[static_cast<size_t>(ndim - back)] = i == 1 ? j : i;
    }
    to[batch] = ShapeOfList(dims);
  }
  return to;
}

std::string RepeatedLike(ImportNode& node, const std::string& value, const std::string& like) {
  const Shapes to = node.ShapesOf(like);
  const std::string lifted = Lifted(node, value, to[0].ndim());
  const Shapes from = node.ShapesOf(lifted);
  if (from == to) return lifted;
  std::vector<int64_t> axes;
  for (int i = 0; i < to[0].ndim(); ++i) {
    if (from[0][i] != to[0][i] || from[1][i] != to[1][i]) axes.push_back(i);
  }
  return node.Add("broadcast_like", {lifted, like},
                  {{"lhs_axes", TupleOf(axes)}, {"rhs_axes", TupleOf(axes)}});
}

std::string Chosen(ImportNode& node, const std::string& condition, const std::string& x,
                   const std::string& y) {
  const Shapes to = BroadcastShapes(node, node.ShapesOf(condition),
                                    BroadcastShapes(node, node.ShapesOf(x), node.ShapesOf(y)));
  std::vector<std::string> values{condition, x, y};
  // A value of the whole shape; none: zeros that are the sum of all.
  auto whole = std::ranges::find_if(
      values, [&](const std::string& value) { return node.ShapesOf(value) == to; });
  std::string like = whole == values.end() ? "" : *whole;
  if (like.empty()) {
    like = node.Add("zeros_like", {condition});
    for (const std::string& value : {x, y})
      like = Pair(node, "add", like, node.Add("zeros_like", {value}));
  }
  for (std::string& value : values) value = RepeatedLike(node, value, like);
  return node.Add("where", values);
}

std::string Permuted(ImportNode& node, const std::string& value,
                     const std::vector<int64_t>& order) {
  if (std::ranges::is_sorted(order)) return value;
  return node.Add("transpose", {value}, {{"axes", TupleOf(order)}});
}

std::string RefOverBatch(ImportNode& node, int input, int along) {
  const int64_t batch = node.state().batches[0];
  const bool fixed = node.fixed_batch() && node.is_array(input);
  for (int i = 0; i < node.num_inputs() && fixed; ++i) {
    if (!node.has(i) || node.in(i).is_constant() || node.ndim(i) != node.ndim(input)) continue;
    for (int axis = 0; axis < node.ndim(i); ++axis) {
      if (axis != along && node.DependsOnBatch(i, axis) && node.shape(i)[axis] == batch &&
          node.shape(input)[axis] == batch)
        return node.ForEveryExample(input, axis);
    }
  }
  return node.ref(input);
}

int64_t FixedLength(const ImportNode& node, const std::string& value, int axis) {
  const Shapes& shapes = node.ShapesOf(value);
  if (shapes[0][axis] != shapes[1][axis])
    node.Refuse("the length of axis {} depends on the size of the batch", axis);
  return shapes[0][axis];
}

std::string Sliced(ImportNode& node, const std::string& value, int axis, int64_t begin,
                   int64_t end) {
  if (begin == 0 && end == FixedLength(node, value, axis)) return value;
  return node.Add("slice_axis", {value},
                  {{"axis", params::Print(axis)},
                   {"begin", params::Print(begin)},
                   {"end", params::Print(end)}});
}

std::string Joined(ImportNode& node, const std::vector<std::string>& values, int axis) {
  if (values.size() == 1) return values[0];
  return node.Add("Concat", values,
                  {{"num_args", format("{}", values.size())}, {"dim", params::Print(axis)}});
}

std::string Reduced(ImportNode& node, const std::string& op, const std::string& value,
                    const std::vector<int64_t>& axes, bool keep) {
  const Shapes from = node.ShapesOf(value);
  for (const int64_t axis : axes) {
    if (from[0][static_cast<int>(axis)] != from[1][static_cast<int>(axis)])
      node.Refuse("it reduces the batch axis");
  }
  if (axes.empty()) return value;
  Kwargs params{{"axis", TupleOf(axes)}, {"keepdims", keep ? "True" : "False"}};
  if (op == "norm1" || op == "norm2") params.insert(params.begin(), {"ord", op.substr(4)});
  const std::string result = node.Add(op.starts_with("norm") ? "norm" : op, {value}, params);
  // Of all axes one element is left here, no axis in ONNX.
  const bool number = !keep && static_cast<int>(axes.size()) == from[0].ndim();
  const TShape none = TShape::OfRank(0);
  return number ? node.Reshape(result, {none, none}) : result;
}

namespace {

// The axes before the last two in one.
std::string Stacked(ImportNode& node, const std::string& value) {
  Shapes to = node.ShapesOf(value);
  for (TShape& s : to) s = TShape{s.Product(0, s.ndim() - 2), s[s.ndim() - 2], s[s.ndim() - 1]};
  return node.Reshape(value, to);
}

}  // namespace

std::string MatrixProduct(ImportNode& node, const std::string& a, const std::string& b) {
  const int ndim = std::max(node.ShapesOf(a)[0].ndim(), node.ShapesOf(b)[0].ndim());
  if (ndim == 2) return node.Add("dot", {a, b});
  Shapes to, leading[2];
  for (size_t batch = 0; batch < 2; ++batch) {
    for (int i = 0; i < 2; ++i) {
      const TShape& shape = node.ShapesOf(i == 0 ? a : b)[batch];
      leading[i][batch] = ShapeOfList(Part(shape, 0, shape.ndim() - 2));
    }
  }
  to = BroadcastShapes(node, leading[0], leading[1]);
  std::string factors[2] = {Lifted(node, a, ndim), Lifted(node, b, ndim)};
  const std::string given[2] = {factors[0], factors[1]};
  for (int i = 0; i < 2; ++i) {
    const Shapes from = node.ShapesOf(given[i]);
    std::vector<int64_t> axes;
    for (int axis = 0; axis < ndim - 2; ++axis) {
      if (from[0][axis] != to[0][axis] || from[1][axis] != to[1][axis]) axes.push_back(axis);
    }
    if (axes.empty()) continue;
    factors[i] = node.Add("broadcast_like", {given[i], given[1 - i]},
                          {{"lhs_axes", TupleOf(axes)}, {"rhs_axes", TupleOf(axes)}});
  }
  const std::string product =
      node.Add("batch_dot", {Stacked(node, factors[0]), Stacked(node, factors[1])});
  for (size_t batch = 0; batch < 2; ++batch) {
    std::vector<int64_t> dims(to[batch].begin(), to[batch].end());
    const TShape& shape = node.ShapesOf(product)[batch];
    dims.insert(dims.end(), {shape[1], shape[2]});
    to[batch] = ShapeOfList(dims);
  }
  return node.Reshape(product, to);
}

std::string RoundedToEven(ImportNode& node, const std::string& value) {
  // One away from zero is added to the whole part behind a half, and at a half to odd ones.
  const std::string whole = node.Add("trunc", {value});
  const std::string rest = node.Add("abs", {node.Add("elemwise_sub", {value, whole})});
  const std::string above = WithNumber(node, "_greater_scalar", rest, 0.5);
  const std::string half = WithNumber(node, "_equal_scalar", rest, 0.5);
  const std::string odd = WithNumber(node, "_mod_scalar", node.Add("abs", {whole}), 2);
  const std::string up = node.Add("elemwise_add", {above, node.Add("elemwise_mul", {half, odd})});
  const std::string step = node.Add("elemwise_mul", {up, node.Add("sign", {value})});
  const std::string rounded = node.Add("elemwise_add", {whole, step});
  // Whole numbers and infinities stay.
  return node.Add("where", {node.Add("_equal", {value, whole}), value, rounded});
}

std::optional<int64_t> InexactInteger(const Tensor& tensor) {
  if (!IsInteger(tensor.type)) return std::nullopt;
  const std::vector<int64_t> numbers = tensor.ToInts();
  const auto found = std::ranges::find_if(numbers, [](int64_t number) {
    const auto sign = static_cast<uint64_t>(number < 0 ? -1 : 0);
    const uint64_t size = (static_cast<uint64_t>(number) ^ sign) - sign;
    return size != 0 && size >> std::countr_zero(size) > static_cast<uint64_t>(kMostExact);
  });
  return found == numbers.end() ? std::nullopt : std::optional(*found);
}

void RequireExact(const ImportNode& node, int input) {
  if (const std::optional<int64_t> number = InexactInteger(node.array(input)))
    node.Refuse("its input {} has the integer {}, which float32 does not hold", input, *number);
}

Tensor Transposed(const Tensor& matrix) {
  const std::vector<float> values = matrix.ToFloats();
  const auto rows = static_cast<size_t>(matrix.dims[0]),
             columns = static_cast<size_t>(matrix.dims[1]);
  std::vector<float> result(values.size());
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) result[j * rows + i] = values[i * columns + j];
  }
  return Tensor::Floats({matrix.dims[1], matrix.dims[0]}, result);
}

}  // namespace mxtrain::onnx
