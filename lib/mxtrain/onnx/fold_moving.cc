// SPDX-License-Identifier: Apache-2.0
// Constants whose elements are moved, repeated, joined or chosen, and shapes.
#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/fold.h"

namespace mxtrain::onnx {
namespace {

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

std::optional<Tensor> Constant(const Folding& f) {
  const auto& attributes = f.node.attributes;
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
std::optional<Tensor> Shape(const Folding& f) {
  const std::vector<int64_t>& dims = f.At(0).dims;
  const auto ndim = static_cast<int64_t>(dims.size());
  const auto bound = [ndim](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + ndim : at, 0, ndim);
  };
  const int64_t start = bound(f.IntOr("start", 0)), end = bound(f.IntOr("end", ndim));
  const std::vector<int64_t> part(dims.begin() + start, dims.begin() + std::max(start, end));
  return Tensor::Ints({static_cast<int64_t>(part.size())}, part);
}
std::optional<Tensor> Size(const Folding& f) {
  return Tensor::Ints({}, {Count(f.At(0).dims)});
}

std::optional<Tensor> Identity(const Folding& f) {
  return f.At(0);
}

std::optional<Tensor> Gather(const Folding& f) {
  const Tensor &data = f.At(0), &indices = f.At(1);
  const size_t axis = AxisOf(f.IntOr("axis", 0), data.dims.size());
  std::vector<int64_t> dims(data.dims.begin(), data.dims.begin() + static_cast<int64_t>(axis));
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), data.dims.begin() + static_cast<int64_t>(axis) + 1, data.dims.end());
  f.CheckRoom(dims, data.type);
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

std::optional<Tensor> Slice(const Folding& f) {
  const Tensor& data = f.At(0);
  const auto starts = f.Ints(1, "starts"), ends = f.Ints(2, "ends");
  Require(starts && ends && starts->size() == ends->size(), "starts and ends do not match");
  std::vector<int64_t> axes(starts->size());
  std::iota(axes.begin(), axes.end(), 0);
  if (const auto given = f.Ints(3, "axes")) axes = *given;
  const std::vector<int64_t> steps =
      f.Has(4) ? f.in[4]->ToInts() : std::vector<int64_t>(starts->size(), 1);
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
  f.CheckRoom(dims, data.type);
  const std::vector<int64_t> strides = StridesOf(data.dims);
  return Gathered(data, dims, [&](const std::vector<int64_t>& index) {
    int64_t source = 0;
    for (size_t i = 0; i < index.size(); ++i)
      source += (first[i] + index[i] * step[i]) * strides[i];
    return source;
  });
}

std::optional<Tensor> Concat(const Folding& f) {
  std::vector<int64_t> dims = f.At(0).dims;
  const size_t axis = AxisOf(f.IntOr("axis", 0), dims.size());
  int64_t length = 0;
  for (size_t i = 0; i < f.in.size(); ++i) {
    const Tensor& part = f.At(i);
    Require(part.dims.size() == dims.size() && part.type == f.At(0).type,
            "arrays of different ranks or types are joined");
    length += part.dims[axis];
    for (size_t k = 0; k < dims.size(); ++k)
      Require(k == axis || part.dims[k] == dims[k], "arrays of different shapes are joined");
  }
  dims[axis] = length;
  const int64_t size = Count(dims);
  f.CheckRoom(dims, f.At(0).type);
  Tensor out{f.At(0).type, dims, ""};
  if (size == 0) return out;  // however long the other axes are
  const int64_t outer = Count({dims.begin(), dims.begin() + static_cast<int64_t>(axis)});
  for (int64_t i = 0; i < outer; ++i) {
    for (const Tensor* part : f.in) {
      const size_t row = part->bytes.size() / static_cast<size_t>(outer);
      out.bytes.append(part->bytes, static_cast<size_t>(i) * row, row);
    }
  }
  return out;
}

std::optional<Tensor> Reshape(const Folding& f) {
  const Tensor& data = f.At(0);
  std::vector<int64_t> dims = f.At(1).ToInts();
  Require(dims.size() <= 64, "too many axes");
  int64_t known = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && f.IntOr("allowzero", 0) == 0) {
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

std::optional<Tensor> Flatten(const Folding& f) {
  const Tensor& data = f.At(0);
  const auto ndim = static_cast<int64_t>(data.dims.size());
  int64_t axis = f.IntOr("axis", 1);
  axis = axis < 0 ? axis + ndim : axis;
  Require(axis >= 0 && axis <= ndim, "an axis is out of range");
  return WithDims(data, {Count({data.dims.begin(), data.dims.begin() + axis}),
                         Count({data.dims.begin() + axis, data.dims.end()})});
}

std::optional<Tensor> Unsqueeze(const Folding& f) {
  const Tensor& data = f.At(0);
  const auto axes = f.Ints(1, "axes");
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

std::optional<Tensor> Squeeze(const Folding& f) {
  const Tensor& data = f.At(0);
  const auto axes = f.Ints(1, "axes");
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

std::optional<Tensor> Transpose(const Folding& f) {
  const Tensor& data = f.At(0);
  std::vector<int64_t> order(data.dims.size());
  std::iota(order.rbegin(), order.rend(), 0);
  if (const auto perm = f.Ints(1, "perm")) order = *perm;
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

std::optional<Tensor> ConstantOfShape(const Folding& f) {
  Tensor value = Tensor::Scalar(0);
  if (const auto found = f.node.attributes.find("value"); found != f.node.attributes.end()) {
    const auto* given = std::get_if<Tensor>(&found->second);
    Require(given && given->Size() == 1, "value is not an array of one element");
    value = *given;
  }
  const std::vector<int64_t> dims = f.At(0).ToInts();
  f.CheckRoom(dims, value.type);
  Require(SizeOf(value.type) > 0 && !value.bytes.empty(), "elements are no numbers");
  const auto whole = static_cast<size_t>(Count(dims)) * value.bytes.size();
  Tensor out{value.type, dims, ""};
  out.bytes.reserve(whole);
  while (out.bytes.size() < whole) {
    const std::string& part = out.bytes.empty() ? value.bytes : out.bytes;
    out.bytes.append(part, 0, std::min(part.size(), whole - out.bytes.size()));
  }
  return out;
}

std::optional<Tensor> Expand(const Folding& f) {
  const std::vector<int64_t> dims = Broadcast(f.At(0).dims, f.At(1).ToInts());
  f.CheckRoom(dims, f.At(0).type);
  return ExpandTo(f.At(0), dims);
}

std::optional<Tensor> Where(const Folding& f) {
  const std::vector<int64_t> dims = Broadcast(f.At(0).dims, Broadcast(f.At(1).dims, f.At(2).dims));
  f.CheckRoom(dims, f.At(1).type);
  const std::vector<int64_t> condition = ExpandTo(f.At(0), dims).ToInts();
  Tensor x = ExpandTo(f.At(1), dims);
  const Tensor y = ExpandTo(f.At(2), dims);
  Require(x.type == y.type, "its arrays have different types");
  const auto bytes = static_cast<size_t>(SizeOf(x.type));
  for (size_t i = 0; i < condition.size(); ++i) {
    if (condition[i] == 0) x.bytes.replace(i * bytes, bytes, y.bytes, i * bytes, bytes);
  }
  return x;
}

std::optional<Tensor> ScatterNd(const Folding& f) {
  const Tensor &data = f.At(0), &indices = f.At(1), &updates = f.At(2);
  const auto reduction = f.node.attributes.find("reduction");
  if (reduction != f.node.attributes.end()) {
    const auto* name = std::get_if<std::string>(&reduction->second);
    if (!name || *name != "none") return std::nullopt;
  }
  Require(!indices.dims.empty() && indices.dims.back() >= 1 &&
              indices.dims.back() <= static_cast<int64_t>(data.dims.size()),
          "a point has more coordinates than the array has axes");
  Require(data.type == updates.type, "its arrays have different types");
  const auto axes = static_cast<size_t>(indices.dims.back());
  const std::vector<int64_t> inner(data.dims.begin() + static_cast<int64_t>(axes), data.dims.end());
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

// As many parts as the node has outputs.
std::vector<Tensor> Split(const Folding& f) {
  const Tensor& data = f.At(0);
  const size_t axis = AxisOf(f.IntOr("axis", 0), data.dims.size());
  const auto count = static_cast<int64_t>(f.node.outputs.size());
  const int64_t length = data.dims[axis], each = (length + count - 1) / count;
  std::vector<int64_t> sizes(static_cast<size_t>(count), each);
  sizes.back() = length - each * (count - 1);
  if (const auto given = f.Ints(1, "split")) sizes = *given;
  Require(static_cast<int64_t>(sizes.size()) == count, "it has not as many parts as outputs");
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    Require(size >= 0 && size <= length - begin, "its parts do not add up to its data");
    begin += size;
  }
  Require(begin == length, "its parts do not add up to its data");
  const std::vector<int64_t> strides = StridesOf(data.dims);
  std::vector<Tensor> parts;
  begin = 0;
  for (const int64_t size : sizes) {
    std::vector<int64_t> dims = data.dims;
    dims[axis] = size;
    parts.push_back(Gathered(data, dims, [&](const std::vector<int64_t>& index) {
      return std::inner_product(index.begin(), index.end(), strides.begin(), begin * strides[axis]);
    }));
    begin += size;
  }
  return parts;
}

std::optional<Tensor> Tile(const Folding& f) {
  const Tensor& data = f.At(0);
  const std::vector<int64_t> repeats = f.At(1).ToInts();
  Require(repeats.size() == data.dims.size(), "it does not repeat every axis");
  std::vector<int64_t> dims = data.dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    Require(repeats[i] >= 0, "a number of repeats is negative");
    dims[i] = dims[i] == 0 ? 0 : Count({dims[i], repeats[i]});
  }
  f.CheckRoom(dims, data.type);
  const std::vector<int64_t> strides = StridesOf(data.dims);
  return Gathered(data, dims, [&](const std::vector<int64_t>& index) {
    int64_t source = 0;
    for (size_t i = 0; i < index.size(); ++i) source += index[i] % data.dims[i] * strides[i];
    return source;
  });
}

// Widths before and behind every axis; negative ones cut.
std::vector<int64_t> PadsOf(const Folding& f, size_t ndim) {
  const auto given = f.Ints(1, "pads");
  Require(given.has_value(), "pads are missing");
  std::vector<int64_t> axes(ndim);
  std::iota(axes.begin(), axes.end(), 0);
  if (f.Has(3)) axes = f.in[3]->ToInts();
  Require(given->size() == 2 * axes.size(), "pads do not have two numbers per axis");
  std::vector<int64_t> pads(2 * ndim, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = AxisOf(axes[i], ndim);
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const int64_t width = (*given)[i + side * axes.size()];
      Require(std::abs(width) <= TShape::kMaxSize, "a pad is too large");
      pads[axis + side * ndim] = width;
    }
  }
  return pads;
}

std::optional<Tensor> Pad(const Folding& f) {
  if (const auto mode = f.node.attributes.find("mode"); mode != f.node.attributes.end()) {
    const auto* name = std::get_if<std::string>(&mode->second);
    if (!name || *name != "constant") return std::nullopt;
  }
  const Tensor& data = f.At(0);
  const size_t ndim = data.dims.size();
  const std::vector<int64_t> pads = PadsOf(f, ndim), strides = StridesOf(data.dims);
  std::vector<int64_t> dims = data.dims;
  for (size_t i = 0; i < ndim; ++i) {
    dims[i] += pads[i] + pads[ndim + i];
    Require(dims[i] >= 0, "it cuts more than an axis has");
  }
  f.CheckRoom(dims, data.type);
  Tensor both = data;  // and the element that is added
  if (f.Has(2)) {
    Require(f.in[2]->type == data.type && f.in[2]->Size() == 1, "its value is not one element");
    both.bytes += f.in[2]->bytes;
  } else if (f.FloatOr("value", 0) == 0) {
    both.bytes.append(static_cast<size_t>(SizeOf(data.type)), '\0');
  } else {
    return std::nullopt;
  }
  return Gathered(both, dims, [&](const std::vector<int64_t>& index) {
    int64_t source = 0;
    for (size_t i = 0; i < ndim; ++i) {
      const int64_t at = index[i] - pads[i];
      if (at < 0 || at >= data.dims[i]) return data.Size();
      source += at * strides[i];
    }
    return source;
  });
}

// The indices of elements other than 0, an axis each.
std::optional<Tensor> NonZero(const Folding& f) {
  const Tensor& data = f.At(0);
  const std::vector<double> values = data.Doubles();
  const std::vector<int64_t> strides = StridesOf(data.dims);
  std::vector<std::vector<int64_t>> rows(data.dims.size());
  for (size_t i = 0; i < values.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = 0; axis < rows.size() && values[i] != 0; ++axis) {
      rows[axis].push_back(rest / strides[axis]);
      rest %= strides[axis];
    }
  }
  const int64_t count = rows.empty() ? 0 : static_cast<int64_t>(rows[0].size());
  f.CheckRoom({static_cast<int64_t>(rows.size()), count}, ElementType::kInt64);
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& row : rows) all.insert(all.end(), row.begin(), row.end());
  return Tensor::Ints({static_cast<int64_t>(rows.size()), count}, all);
}

}  // namespace

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

std::vector<FoldEntry> MovingFolds() {
  return {
      {"Constant", One<Constant>},
      {"Shape", One<Shape>},
      {"Size", One<Size>},
      {"Identity", One<Identity>},
      {"Gather", One<Gather>},
      {"Slice", One<Slice>},
      {"Concat", One<Concat>},
      {"Reshape", One<Reshape>},
      {"Flatten", One<Flatten>},
      {"Unsqueeze", One<Unsqueeze>},
      {"Squeeze", One<Squeeze>},
      {"Transpose", One<Transpose>},
      {"Expand", One<Expand>},
      {"ConstantOfShape", One<ConstantOfShape>},
      {"Where", One<Where>},
      {"ScatterND", One<ScatterNd>},
      {"Split", Split},
      {"Tile", One<Tile>},
      {"Pad", One<Pad>},
      {"NonZero", One<NonZero>},
  };
}

}  // namespace mxtrain::onnx
