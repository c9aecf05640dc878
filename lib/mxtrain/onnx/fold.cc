// SPDX-License-Identifier: Apache-2.0
// What an ONNX graph computes from shapes and constants alone.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_node.h"

namespace mxtrain::onnx {
namespace {

// Of what is computed; arrays that are only renamed, cast, permuted or reshaped may be larger.
constexpr int64_t kMostElements = int64_t{1} << 20;

using Inputs = std::vector<const Tensor*>;
using FoldFn = std::optional<Tensor> (*)(const ModelNode& node, const Inputs& in);

void Require(bool good, const char* what) {
  if (!good) Throw(ErrorKind::kData, "{}", what);
}

const Tensor& At(const Inputs& in, size_t i) {
  Require(i < in.size() && in[i], "an input is missing");
  return *in[i];
}
bool Has(const Inputs& in, size_t i) {
  return i < in.size() && in[i];
}

int64_t IntOr(const ModelNode& node, const std::string& name, int64_t otherwise) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return otherwise;
  const auto* value = std::get_if<int64_t>(&found->second);
  Require(value, "an attribute is not an integer");
  return *value;
}
// Axes as an attribute or, since opset 13, an input.
std::optional<std::vector<int64_t>> Axes(const ModelNode& node, const Inputs& in, size_t input,
                                         const std::string& name) {
  if (Has(in, input)) return in[input]->ToInts();
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return std::nullopt;
  const auto* value = std::get_if<std::vector<int64_t>>(&found->second);
  Require(value, "an attribute is not a list of integers");
  return *value;
}
size_t AxisOf(int64_t axis, size_t ndim) {
  const auto n = static_cast<int64_t>(ndim);
  Require(axis >= -n && axis < n, "an axis is out of range");
  return static_cast<size_t>(axis < 0 ? axis + n : axis);
}

int64_t Count(const std::vector<int64_t>& dims) {
  return Tensor{ElementType::kInt8, dims, ""}.Size();
}
std::vector<int64_t> StridesOf(const std::vector<int64_t>& dims) {
  Count(dims);  // throws where a stride would overflow
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

bool IsWhole(const Tensor& tensor) {
  return tensor.type != ElementType::kFloat && tensor.type != ElementType::kDouble &&
         tensor.type != ElementType::kFloat16 && tensor.type != ElementType::kBfloat16;
}

// A tensor whose element at `index` is the input's at from(index).
Tensor Gathered(const Tensor& in, std::vector<int64_t> dims,
                const std::function<int64_t(const std::vector<int64_t>&)>& from) {
  const int64_t size = Count(dims), bytes = SizeOf(in.type);
  Require(bytes > 0, "elements are no numbers");
  Tensor out{in.type, dims, std::string(static_cast<size_t>(size * bytes), '\0')};
  std::vector<int64_t> index(dims.size(), 0);
  const int64_t most = static_cast<int64_t>(in.bytes.size()) / bytes;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t source = from(index);
    Require(source >= 0 && source < most, "an index is out of range");
    std::memcpy(out.bytes.data() + i * bytes, in.bytes.data() + source * bytes,
                static_cast<size_t>(bytes));
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
  return out;
}

Tensor WithDims(const Tensor& in, std::vector<int64_t> dims) {
  Require(Count(dims) == in.Size(), "a reshape changes the number of elements");
  return {in.type, std::move(dims), in.bytes};
}

// --- operators ---

std::optional<Tensor> Constant(const ModelNode& node, const Inputs&) {
  const auto& attributes = node.attributes;
  const auto get = [&attributes]<typename T>(const char* name, T*) -> const T* {
    const auto found = attributes.find(name);
    return found == attributes.end() ? nullptr : std::get_if<T>(&found->second);
  };
  if (const auto* value = get("value", static_cast<Tensor*>(nullptr))) return *value;
  if (const auto* value = get("value_float", static_cast<float*>(nullptr)))
    return Tensor::Scalar(*value);
  if (const auto* value = get("value_int", static_cast<int64_t*>(nullptr)))
    return Tensor::Ints({}, {*value});
  if (const auto* values = get("value_floats", static_cast<std::vector<float>*>(nullptr)))
    return Tensor::Floats({static_cast<int64_t>(values->size())}, *values);
  if (const auto* values = get("value_ints", static_cast<std::vector<int64_t>*>(nullptr)))
    return Tensor::Ints({static_cast<int64_t>(values->size())}, *values);
  Throw(ErrorKind::kConfig, "only numbers are supported as constants");
}

// The importer passes an input of the shape without elements.
std::optional<Tensor> Shape(const ModelNode& node, const Inputs& in) {
  const std::vector<int64_t>& dims = At(in, 0).dims;
  const auto ndim = static_cast<int64_t>(dims.size());
  const auto bound = [ndim](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + ndim : at, 0, ndim);
  };
  const int64_t start = bound(IntOr(node, "start", 0)), end = bound(IntOr(node, "end", ndim));
  const std::vector<int64_t> part(dims.begin() + start, dims.begin() + std::max(start, end));
  return Tensor::Ints({static_cast<int64_t>(part.size())}, part);
}
std::optional<Tensor> Size(const ModelNode&, const Inputs& in) {
  return Tensor::Ints({}, {Count(At(in, 0).dims)});
}

std::optional<Tensor> Identity(const ModelNode&, const Inputs& in) {
  return At(in, 0);
}

std::optional<Tensor> Cast(const ModelNode& node, const Inputs& in) {
  const Tensor& from = At(in, 0);
  const auto to = static_cast<ElementType>(IntOr(node, "to", 0));
  if (to == from.type) return from;
  if (to == ElementType::kFloat || to == ElementType::kFloat16 || to == ElementType::kDouble ||
      to == ElementType::kBfloat16)
    return Tensor::Floats(from.dims, from.ToFloats());
  if (IsWhole(from)) {
    std::vector<int64_t> values = from.ToInts();
    for (int64_t& value : values) value = to == ElementType::kBool ? value != 0 : value;
    return Tensor::Ints(from.dims, values);
  }
  std::vector<int64_t> values;
  for (const double value : from.Doubles()) {
    Require(to == ElementType::kBool || std::abs(value) < 0x1p63,
            "a number is too large for an integer");
    values.push_back(to == ElementType::kBool ? value != 0 : static_cast<int64_t>(value));
  }
  return Tensor::Ints(from.dims, values);
}

std::optional<Tensor> Gather(const ModelNode& node, const Inputs& in) {
  const Tensor &data = At(in, 0), &indices = At(in, 1);
  const size_t axis = AxisOf(IntOr(node, "axis", 0), data.dims.size());
  std::vector<int64_t> dims(data.dims.begin(), data.dims.begin() + static_cast<int64_t>(axis));
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), data.dims.begin() + static_cast<int64_t>(axis) + 1, data.dims.end());
  if (Count(dims) > kMostElements) return std::nullopt;
  const std::vector<int64_t> at = indices.ToInts(), strides = StridesOf(data.dims),
                             index_strides = StridesOf(indices.dims);
  const size_t middle = indices.dims.size();
  return Gathered(data, dims, [&](const std::vector<int64_t>& index) {
    int64_t which = 0, source = 0;
    for (size_t i = 0; i < middle; ++i) which += index[axis + i] * index_strides[i];
    int64_t row = at[static_cast<size_t>(which)];
    if (row < 0) row += data.dims[axis];
    Require(row >= 0 && row < data.dims[axis], "an index is out of range");
    for (size_t i = 0; i < axis; ++i) source += index[i] * strides[i];
    source += row * strides[axis];
    for (size_t i = axis + 1; i < data.dims.size(); ++i)
      source += index[i - 1 + middle] * strides[i];
    return source;
  });
}

std::optional<Tensor> Slice(const ModelNode& node, const Inputs& in) {
  const Tensor& data = At(in, 0);
  const auto starts = Axes(node, in, 1, "starts"), ends = Axes(node, in, 2, "ends");
  Require(starts && ends && starts->size() == ends->size(), "starts and ends do not match");
  std::vector<int64_t> axes(starts->size());
  std::iota(axes.begin(), axes.end(), 0);
  if (const auto given = Axes(node, in, 3, "axes")) axes = *given;
  const std::vector<int64_t> steps =
      Has(in, 4) ? in[4]->ToInts() : std::vector<int64_t>(starts->size(), 1);
  Require(axes.size() == starts->size() && steps.size() == axes.size(), "axes do not match");
  std::vector<int64_t> dims = data.dims, first(dims.size(), 0), step(dims.size(), 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = AxisOf(axes[i], dims.size());
    const int64_t length = data.dims[axis], by = steps[i];
    Require(by != 0 && by >= -TShape::kMaxSize && by <= TShape::kMaxSize,
            "a step is zero or too large");
    const auto bound = [&](int64_t at) {
      const int64_t least = by > 0 ? 0 : -1, most = by > 0 ? length : length - 1;
      return std::clamp(at < 0 ? at + length : at, least, most);
    };
    const int64_t begin = bound((*starts)[i]), end = bound((*ends)[i]);
    dims[axis] = std::max<int64_t>(0, (end - begin + by + (by > 0 ? -1 : 1)) / by);
    first[axis] = begin;
    step[axis] = by;
  }
  if (Count(dims) > kMostElements) return std::nullopt;
  const std::vector<int64_t> strides = StridesOf(data.dims);
  return Gathered(data, dims, [&](const std::vector<int64_t>& index) {
    int64_t source = 0;
    for (size_t i = 0; i < index.size(); ++i)
      source += (first[i] + index[i] * step[i]) * strides[i];
    return source;
  });
}

std::optional<Tensor> Concat(const ModelNode& node, const Inputs& in) {
  std::vector<int64_t> dims = At(in, 0).dims;
  const size_t axis = AxisOf(IntOr(node, "axis", 0), dims.size());
  int64_t length = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const Tensor& part = At(in, i);
    Require(part.dims.size() == dims.size() && part.type == At(in, 0).type,
            "arrays of different ranks or types are joined");
    length += part.dims[axis];
    for (size_t k = 0; k < dims.size(); ++k)
      Require(k == axis || part.dims[k] == dims[k], "arrays of different shapes are joined");
  }
  dims[axis] = length;
  const int64_t size = Count(dims);
  if (size > kMostElements) return std::nullopt;
  Tensor out{At(in, 0).type, dims, ""};
  if (size == 0) return out;  // however long the other axes are
  const int64_t outer = Count({dims.begin(), dims.begin() + static_cast<int64_t>(axis)});
  for (int64_t i = 0; i < outer; ++i) {
    for (const Tensor* part : in) {
      const size_t row = part->bytes.size() / static_cast<size_t>(outer);
      out.bytes.append(part->bytes, static_cast<size_t>(i) * row, row);
    }
  }
  return out;
}

std::optional<Tensor> Reshape(const ModelNode& node, const Inputs& in) {
  const Tensor& data = At(in, 0);
  std::vector<int64_t> dims = At(in, 1).ToInts();
  Require(dims.size() <= 64, "too many axes");
  int64_t known = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && IntOr(node, "allowzero", 0) == 0) {
      Require(i < data.dims.size(), "a code 0 has no axis to copy");
      dims[i] = data.dims[i];
    }
    if (dims[i] == -1) {
      Require(!open, "two lengths are to be inferred");
      open = i;
    } else {
      Require(dims[i] >= 0, "a length is negative");
      known = Count({known, dims[i]});
    }
  }
  if (open) {
    Require(known > 0 && data.Size() % known == 0, "a length cannot be inferred");
    dims[*open] = data.Size() / known;
  }
  return WithDims(data, dims);
}

std::optional<Tensor> Flatten(const ModelNode& node, const Inputs& in) {
  const Tensor& data = At(in, 0);
  const auto ndim = static_cast<int64_t>(data.dims.size());
  int64_t axis = IntOr(node, "axis", 1);
  axis = axis < 0 ? axis + ndim : axis;
  Require(axis >= 0 && axis <= ndim, "an axis is out of range");
  return WithDims(data, {Count({data.dims.begin(), data.dims.begin() + axis}),
                         Count({data.dims.begin() + axis, data.dims.end()})});
}

std::optional<Tensor> Unsqueeze(const ModelNode& node, const Inputs& in) {
  const Tensor& data = At(in, 0);
  const auto axes = Axes(node, in, 1, "axes");
  Require(axes && axes->size() <= 8, "axes are missing");
  const size_t ndim = data.dims.size() + axes->size();
  std::vector<bool> is_new(ndim, false);
  for (const int64_t axis : *axes) is_new[AxisOf(axis, ndim)] = true;
  std::vector<int64_t> dims;
  size_t old = 0;
  for (size_t i = 0; i < ndim; ++i) {
    Require(is_new[i] || old < data.dims.size(), "an axis is named twice");
    dims.push_back(is_new[i] ? 1 : data.dims[old++]);
  }
  return WithDims(data, dims);
}

std::optional<Tensor> Squeeze(const ModelNode& node, const Inputs& in) {
  const Tensor& data = At(in, 0);
  const auto axes = Axes(node, in, 1, "axes");
  std::vector<bool> removed(data.dims.size(), false);
  for (size_t i = 0; i < removed.size() && !axes; ++i) removed[i] = data.dims[i] == 1;
  for (const int64_t axis : axes.value_or(std::vector<int64_t>()))
    removed[AxisOf(axis, data.dims.size())] = true;
  std::vector<int64_t> dims;
  for (size_t i = 0; i < data.dims.size(); ++i) {
    if (!removed[i]) dims.push_back(data.dims[i]);
  }
  return WithDims(data, dims);
}

std::optional<Tensor> Transpose(const ModelNode& node, const Inputs& in) {
  const Tensor& data = At(in, 0);
  std::vector<int64_t> order(data.dims.size());
  std::iota(order.rbegin(), order.rend(), 0);
  if (const auto perm = Axes(node, in, 1, "perm")) order = *perm;
  std::vector<int64_t> sorted = order, plain(order.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(plain.begin(), plain.end(), 0);
  Require(sorted == plain && order.size() == data.dims.size(), "perm is no order of the axes");
  std::vector<int64_t> dims;
  for (const int64_t axis : order) dims.push_back(data.dims[static_cast<size_t>(axis)]);
  const std::vector<int64_t> strides = StridesOf(data.dims);
  return Gathered(data, dims, [&](const std::vector<int64_t>& index) {
    int64_t source = 0;
    for (size_t i = 0; i < index.size(); ++i)
      source += index[i] * strides[static_cast<size_t>(order[i])];
    return source;
  });
}

std::optional<Tensor> ConstantOfShape(const ModelNode& node, const Inputs& in) {
  Tensor value = Tensor::Scalar(0);
  if (const auto found = node.attributes.find("value"); found != node.attributes.end()) {
    const auto* given = std::get_if<Tensor>(&found->second);
    Require(given && given->Size() == 1, "value is not an array of one element");
    value = *given;
  }
  const std::vector<int64_t> dims = At(in, 0).ToInts();
  if (Count(dims) > kMostElements) return std::nullopt;
  return Gathered(value, dims, [](const std::vector<int64_t>&) { return 0; });
}

std::vector<int64_t> Broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> dims(std::max(a.size(), b.size()));
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    Require(x == y || x == 1 || y == 1, "shapes do not broadcast");
    dims[dims.size() - 1 - i] = x == 1 ? y : x;
  }
  return dims;
}
Tensor ExpandTo(const Tensor& data, const std::vector<int64_t>& dims) {
  if (data.dims == dims) return data;
  const std::vector<int64_t> strides = StridesOf(data.dims);
  const size_t more = dims.size() - data.dims.size();
  return Gathered(data, dims, [&](const std::vector<int64_t>& index) {
    int64_t source = 0;
    for (size_t i = 0; i < data.dims.size(); ++i)
      source += data.dims[i] == 1 ? 0 : index[more + i] * strides[i];
    return source;
  });
}
std::optional<Tensor> Expand(const ModelNode&, const Inputs& in) {
  const std::vector<int64_t> dims = Broadcast(At(in, 0).dims, At(in, 1).ToInts());
  if (Count(dims) > kMostElements) return std::nullopt;
  return ExpandTo(At(in, 0), dims);
}

// Without overflow: integers here are lengths.
int64_t WholeBinary(const std::string& op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (op == "Add") overflow = __builtin_add_overflow(a, b, &result);
  if (op == "Sub") overflow = __builtin_sub_overflow(a, b, &result);
  if (op == "Mul") overflow = __builtin_mul_overflow(a, b, &result);
  if (op == "Div" || op == "Mod" || op == "fmod") {
    Require(b != 0 && !(a == INT64_MIN && b == -1), "a division by zero");
    result = op == "Div" ? a / b : a % b;
    if (op == "Mod" && result != 0 && (result < 0) != (b < 0)) result += b;
  }
  if (op == "Max") result = std::max(a, b);
  if (op == "Min") result = std::min(a, b);
  if (op == "Equal") result = a == b;
  if (op == "Greater") result = a > b;
  if (op == "Less") result = a < b;
  Require(!overflow, "a number is too large");
  return result;
}
double FloatBinary(const std::string& op, double a, double b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  if (op == "Pow") return std::pow(a, b);
  if (op == "Max") return std::max(a, b);
  if (op == "Min") return std::min(a, b);
  if (op == "Equal") return a == b;
  if (op == "Greater") return a > b;
  if (op == "Less") return a < b;
  return std::fmod(a, b);
}

// Powers of integers are integers.
Tensor WholePowers(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.Doubles(), y = b.Doubles();
  std::vector<int64_t> powers(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double power = std::pow(x[i], y[i]);
    Require(std::abs(power) <= 0x1p53, "a number is too large");
    powers[i] = static_cast<int64_t>(power);
  }
  return Tensor::Ints(a.dims, powers);
}

std::optional<Tensor> Binary(const ModelNode& node, const Inputs& in) {
  if (in.size() != 2) return std::nullopt;
  const bool fmod = node.op == "Mod" && IntOr(node, "fmod", 0) != 0;
  const std::vector<int64_t> dims = Broadcast(At(in, 0).dims, At(in, 1).dims);
  if (Count(dims) > kMostElements) return std::nullopt;
  const Tensor a = ExpandTo(At(in, 0), dims), b = ExpandTo(At(in, 1), dims);
  if (IsWhole(a) && node.op == "Pow") return WholePowers(a, b);
  if (IsWhole(a) && IsWhole(b)) {
    std::vector<int64_t> x = a.ToInts();
    const std::vector<int64_t> y = b.ToInts();
    const std::string op = fmod ? "fmod" : node.op;
    for (size_t i = 0; i < x.size(); ++i) x[i] = WholeBinary(op, x[i], y[i]);
    return Tensor::Ints(dims, x);
  }
  // Of floats ONNX has the remainder with the sign of the dividend alone.
  if (node.op == "Mod" && !fmod) return std::nullopt;
  const std::vector<double> x = a.Doubles(), y = b.Doubles();
  std::vector<float> values(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    values[i] = static_cast<float>(FloatBinary(node.op, x[i], y[i]));
  return Tensor::Floats(dims, values);
}

Tensor WholeUnary(const std::string& op, const Tensor& data) {
  std::vector<int64_t> values = data.ToInts();
  for (int64_t& x : values) {
    Require(op == "Not" || x != INT64_MIN, "a number is too large");
    x = op == "Not" ? x == 0 : op == "Abs" && x >= 0 ? x : -x;
  }
  return Tensor::Ints(data.dims, values);
}

std::optional<Tensor> Unary(const ModelNode& node, const Inputs& in) {
  const Tensor& data = At(in, 0);
  if (data.Size() > kMostElements) return std::nullopt;
  if (IsWhole(data) && (node.op == "Not" || node.op == "Abs" || node.op == "Neg"))
    return WholeUnary(node.op, data);
  std::vector<float> values = data.ToFloats();
  for (float& x : values) {
    x = node.op == "Sqrt"    ? std::sqrt(x)
        : node.op == "Floor" ? std::floor(x)
        : node.op == "Ceil"  ? std::ceil(x)
        : node.op == "Exp"   ? std::exp(x)
        : node.op == "Log"   ? std::log(x)
        : node.op == "Not"   ? static_cast<float>(x == 0)
        : node.op == "Abs"   ? std::abs(x)
        : node.op == "Neg"   ? -x
                             : 1 / x;
  }
  if (!IsWhole(data) || node.op == "Reciprocal") return Tensor::Floats(data.dims, values);
  return Tensor::Ints(data.dims, Tensor::Floats(data.dims, values).ToInts());
}

std::optional<Tensor> Where(const ModelNode&, const Inputs& in) {
  const std::vector<int64_t> dims =
      Broadcast(At(in, 0).dims, Broadcast(At(in, 1).dims, At(in, 2).dims));
  if (Count(dims) > kMostElements) return std::nullopt;
  const std::vector<int64_t> condition = ExpandTo(At(in, 0), dims).ToInts();
  Tensor x = ExpandTo(At(in, 1), dims);
  const Tensor y = ExpandTo(At(in, 2), dims);
  Require(x.type == y.type, "its arrays have different types");
  const auto bytes = static_cast<size_t>(SizeOf(x.type));
  for (size_t i = 0; i < condition.size(); ++i) {
    if (condition[i] == 0) x.bytes.replace(i * bytes, bytes, y.bytes, i * bytes, bytes);
  }
  return x;
}

Tensor WholeRange(int64_t start, int64_t limit, int64_t delta) {
  std::vector<int64_t> values;
  int64_t next = start;
  bool overflow = false;  // the end of all numbers, and so of the range
  while (!overflow && (delta > 0 ? next < limit : next > limit)) {
    Require(static_cast<int64_t>(values.size()) < kMostElements, "a range is too long");
    values.push_back(next);
    overflow = __builtin_add_overflow(next, delta, &next);
  }
  return Tensor::Ints({static_cast<int64_t>(values.size())}, values);
}

std::optional<Tensor> ScatterNd(const ModelNode& node, const Inputs& in) {
  const Tensor &data = At(in, 0), &indices = At(in, 1), &updates = At(in, 2);
  const auto reduction = node.attributes.find("reduction");
  if (reduction != node.attributes.end()) {
    const auto* name = std::get_if<std::string>(&reduction->second);
    if (!name || *name != "none") return std::nullopt;
  }
  Require(!indices.dims.empty() && indices.dims.back() >= 1 &&
              indices.dims.back() <= static_cast<int64_t>(data.dims.size()),
          "a point has more coordinates than the array has axes");
  Require(data.type == updates.type, "its arrays have different types");
  const auto axes = static_cast<size_t>(indices.dims.back());
  const std::vector<int64_t> inner(data.dims.begin() + static_cast<int64_t>(axes), data.dims.end());
  if (data.Size() > kMostElements) return std::nullopt;
  const std::vector<int64_t> at = indices.ToInts(), strides = StridesOf(data.dims);
  const int64_t points = static_cast<int64_t>(at.size() / axes),
                bytes = SizeOf(data.type) * Count(inner);
  const auto given = static_cast<int64_t>(updates.bytes.size());
  Require(points == 0 ? given == 0 : given % points == 0 && given / points == bytes,
          "updates do not have the shape that the indices need");
  Tensor out = data;
  for (int64_t point = 0; point < points; ++point) {
    int64_t place = 0;
    for (size_t axis = 0; axis < axes; ++axis) {
      int64_t index = at[static_cast<size_t>(point) * axes + axis];
      if (index < 0) index += data.dims[axis];
      Require(index >= 0 && index < data.dims[axis], "an index is out of range");
      place += index * strides[axis];
    }
    std::memcpy(out.bytes.data() + place * SizeOf(data.type), updates.bytes.data() + point * bytes,
                static_cast<size_t>(bytes));
  }
  return out;
}

std::optional<Tensor> Range(const ModelNode&, const Inputs& in) {
  for (size_t i = 0; i < 3; ++i) Require(At(in, i).Size() == 1, "a bound is not one number");
  const double start = in[0]->Doubles()[0], limit = in[1]->Doubles()[0],
               delta = in[2]->Doubles()[0];
  Require(delta != 0, "a range has a step of 0");
  if (IsWhole(*in[0]) && IsWhole(*in[1]) && IsWhole(*in[2]))
    return WholeRange(in[0]->ToInts()[0], in[1]->ToInts()[0], in[2]->ToInts()[0]);
  const double count = std::ceil((limit - start) / delta);
  Require(count <= static_cast<double>(kMostElements), "a range is too long");
  std::vector<float> values;
  for (int64_t i = 0; static_cast<double>(i) < count; ++i)
    values.push_back(static_cast<float>(start + static_cast<double>(i) * delta));
  return Tensor::Floats({static_cast<int64_t>(values.size())}, values);
}

const std::map<std::string_view, FoldFn>& Folds() {
  static const std::map<std::string_view, FoldFn> folds = {
      {"Constant", Constant},   {"Shape", Shape},
      {"Size", Size},           {"Identity", Identity},
      {"Cast", Cast},           {"Gather", Gather},
      {"Slice", Slice},         {"Concat", Concat},
      {"Reshape", Reshape},     {"Flatten", Flatten},
      {"Unsqueeze", Unsqueeze}, {"Squeeze", Squeeze},
      {"Transpose", Transpose}, {"ConstantOfShape", ConstantOfShape},
      {"Expand", Expand},       {"Where", Where},
      {"Range", Range},         {"ScatterND", ScatterNd},
      {"Add", Binary},          {"Sub", Binary},
      {"Mul", Binary},          {"Div", Binary},
      {"Mod", Binary},          {"Pow", Binary},
      {"Max", Binary},          {"Min", Binary},
      {"Equal", Binary},        {"Greater", Binary},
      {"Less", Binary},         {"Sqrt", Unary},
      {"Floor", Unary},         {"Ceil", Unary},
      {"Exp", Unary},           {"Log", Unary},
      {"Not", Unary},           {"Abs", Unary},
      {"Neg", Unary},           {"Reciprocal", Unary},
  };
  return folds;
}

}  // namespace

bool CanFold(std::string_view op) {
  return Folds().contains(op);
}

std::optional<Tensor> Fold(const ModelNode& node, const std::vector<const Tensor*>& inputs) {
  std::optional<Tensor> result = Folds().at(node.op)(node, inputs);
  if (result && result->dims.size() > static_cast<size_t>(TShape::kMaxDims))
    Throw(ErrorKind::kData, "its result has {} axes", result->dims.size());
  return result;
}

}  // namespace mxtrain::onnx
