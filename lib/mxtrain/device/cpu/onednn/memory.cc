// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "mxtrain/device/cpu/onednn/internal/call.h"

namespace mxtrain::onednn {
namespace {

using library::Blocking;

// Strides of the outer axes and inner blocks, in elements: the common part of both descriptions.
struct StridedLayout {
  std::vector<int64_t> outer;   // length of each axis in blocks
  std::vector<int64_t> stride;  // of one block along each axis
  std::vector<BlockedLayout::Block> blocks;
};

StridedLayout StridedLayoutOf(const Blocking& blocking) {
  StridedLayout strided{{}, blocking.strides, blocking.blocks};
  for (size_t i = 0; i < blocking.dims.size(); ++i) {
    int64_t block = 1;
    for (const auto& b : strided.blocks) {
      if (b.axis == static_cast<int>(i)) block *= b.size;
    }
    strided.outer.push_back(blocking.padded[i] / block);
  }
  return strided;
}

// [groups, O/groups, ...] -> [O, ...]. False if a group is padded or both groups and outputs are
// blocked.
bool MergeGroups(const Blocking& blocking, StridedLayout* strided) {
  const bool depthwise = blocking.padded[1] == 1;
  if (!depthwise) {
    if (blocking.padded[1] != blocking.dims[1] || blocking.padded[0] != blocking.dims[0])
      return false;
    if (strided->stride[0] != strided->outer[1] * strided->stride[1]) return false;
    for (const auto& b : strided->blocks) {
      if (b.axis == 0) return false;
    }
  }
  const int from = depthwise ? 0 : 1;
  strided->stride[1] = strided->stride[from];
  strided->outer[1] = strided->outer[0] * strided->outer[1];
  for (auto& b : strided->blocks) b.axis = b.axis == from ? 1 : b.axis;
  strided->outer.erase(strided->outer.begin());
  strided->stride.erase(strided->stride.begin());
  for (auto& b : strided->blocks) --b.axis;
  return true;
}

// Axes from outermost to innermost. An axis of length one has no fixed place: it follows the axis
// before it.
std::vector<int> OrderOf(const StridedLayout& strided) {
  const int n = static_cast<int>(strided.outer.size());
  std::vector<int> order;
  for (int i = 0; i < n; ++i) {
    if (strided.outer[i] != 1) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return strided.stride[a] > strided.stride[b]; });
  for (int i = 0; i < n; ++i) {
    if (strided.outer[i] != 1) continue;
    auto at = i == 0 ? order.begin() : std::find(order.begin(), order.end(), i - 1) + 1;
    order.insert(at, i);
  }
  return order;
}

// Whether order and blocks alone determine the strides (no gaps).
bool Dense(const StridedLayout& strided, const std::vector<int>& order) {
  int64_t stride = 1;
  for (const auto& b : strided.blocks) stride *= b.size;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    if (strided.outer[*axis] == 1) continue;
    if (strided.stride[*axis] != stride) return false;
    stride *= strided.outer[*axis];
  }
  return true;
}

const BlockedLayout& Blocked(Layout layout) {
  const auto* blocked = dynamic_cast<const BlockedLayout*>(layout.desc());
  if (!blocked) Throw(ErrorKind::kBug, "oneDNN cannot read the layout {}", layout.Name());
  return *blocked;
}

// Strides of a dense array with `innermost` elements inside the blocks.
library::Dims StridesOf(const std::vector<int>& order, int64_t innermost,
                        const library::Dims& padded, const std::vector<int64_t>& block) {
  library::Dims strides(padded.size());
  int64_t stride = innermost;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    strides[*axis] = stride;
    stride *= std::max<int64_t>(padded[*axis] / block[*axis], 1);
  }
  return strides;
}

}  // namespace

dnnl::memory::data_type TypeOf(DType type) {
  return type == DType::kBfloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

dnnl::memory::dims DimsOf(const TShape& shape) {
  return {shape.begin(), shape.end()};
}

Memory MemoryOf(const Array& array, int64_t groups) {
  dnnl::memory::dims dims = DimsOf(array.shape);
  const int shift = groups == kNoGroups ? 0 : 1;
  if (shift) {
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
  }
  if (!array.layout) return Memory(dims, TypeOf(array.type), dnnl::memory::format_tag::any);

  std::vector<int> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<BlockedLayout::Block> blocks;
  if (!array.layout->plain()) {
    const BlockedLayout& layout = Blocked(*array.layout);
    for (int i = 0; i < layout.ndim(); ++i) order[i + shift] = layout.order()[i] + shift;
    // Depthwise weights are blocked along the groups, others along the outputs of a group.
    const bool depthwise = shift && dims[1] == 1;
    for (const auto& b : layout.blocks())
      blocks.push_back({depthwise && b.axis == 0 ? 0 : b.axis + shift, b.size});
    // In our layout groups and outputs are one axis; when split, the groups are directly around the
    // outputs.
    if (shift) {
      order.erase(order.begin());
      order.insert(std::find(order.begin(), order.end(), 1), 0);
    }
  }
  std::vector<int64_t> block(dims.size(), 1);
  int64_t innermost = 1;
  for (const auto& b : blocks) {
    block[b.axis] *= b.size;
    innermost *= b.size;
  }
  library::Dims padded = dims;
  for (size_t i = 0; i < padded.size(); ++i)
    padded[i] = (dims[i] + block[i] - 1) / block[i] * block[i];
  return library::MemoryOf({dims, padded, StridesOf(order, innermost, padded, block), blocks},
                           TypeOf(array.type));
}

std::optional<Layout> LayoutOf(const Memory& memory, const TShape& shape, int64_t groups,
                               Backend& backend) {
  const std::optional<Blocking> blocking = library::BlockingOf(memory);
  if (!blocking) return std::nullopt;
  StridedLayout strided = StridedLayoutOf(*blocking);
  if (groups != kNoGroups && !MergeGroups(*blocking, &strided)) return std::nullopt;
  MXTRAIN_ASSERT(static_cast<int>(strided.outer.size()) == shape.ndim());
  const std::vector<int> order = OrderOf(strided);
  if (!Dense(strided, order)) return std::nullopt;
  if (strided.blocks.empty() && std::is_sorted(order.begin(), order.end())) return Layout();
  return backend.Intern(std::make_unique<BlockedLayout>(order, strided.blocks));
}

}  // namespace mxtrain::onednn
