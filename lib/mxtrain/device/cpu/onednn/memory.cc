#include <algorithm>
#include <numeric>

#include "mxtrain/device/cpu/onednn/internal.h"

namespace mxtrain::onednn {
namespace {

using library::Blocking;

// Strides of the outer axes and inner blocks, in elements: what both sides have in common.
struct Form {
  std::vector<int64_t> outer;   // length of each axis in blocks
  std::vector<int64_t> stride;  // of a step of one block along each axis
  std::vector<BlockedLayout::Block> blocks;
};

Form FormOf(const Blocking& blocking) {
  Form form{{}, blocking.strides, blocking.blocks};
  for (size_t i = 0; i < blocking.dims.size(); ++i) {
    int64_t block = 1;
    for (const auto& b : form.blocks) {
      if (b.axis == static_cast<int>(i)) block *= b.size;
    }
    form.outer.push_back(blocking.padded[i] / block);
  }
  return form;
}

// [groups, O/groups, ...] -> [O, ...]. False where a group is padded or groups and outputs are both cut.
bool MergeGroups(const Blocking& blocking, Form* form) {
  const bool depthwise = blocking.padded[1] == 1;
  if (!depthwise) {
    if (blocking.padded[1] != blocking.dims[1] || blocking.padded[0] != blocking.dims[0]) return false;
    if (form->stride[0] != form->outer[1] * form->stride[1]) return false;
    for (const auto& b : form->blocks) {
      if (b.axis == 0) return false;
    }
  }
  const int from = depthwise ? 0 : 1;
  form->stride[1] = form->stride[from];
  form->outer[1] = form->outer[0] * form->outer[1];
  for (auto& b : form->blocks) b.axis = b.axis == from ? 1 : b.axis;
  form->outer.erase(form->outer.begin());
  form->stride.erase(form->stride.begin());
  for (auto& b : form->blocks) --b.axis;
  return true;
}

// Axes from the outermost to the innermost. An axis of length one may stand anywhere: it follows the axis before it.
std::vector<int> OrderOf(const Form& form) {
  const int n = static_cast<int>(form.outer.size());
  std::vector<int> order;
  for (int i = 0; i < n; ++i) {
    if (form.outer[i] != 1) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return form.stride[a] > form.stride[b]; });
  for (int i = 0; i < n; ++i) {
    if (form.outer[i] != 1) continue;
    auto at = i == 0 ? order.begin() : std::find(order.begin(), order.end(), i - 1) + 1;
    order.insert(at, i);
  }
  return order;
}

// Whether the strides follow from order and blocks alone (no gaps).
bool Dense(const Form& form, const std::vector<int>& order) {
  int64_t stride = 1;
  for (const auto& b : form.blocks) stride *= b.size;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    if (form.outer[*axis] == 1) continue;
    if (form.stride[*axis] != stride) return false;
    stride *= form.outer[*axis];
  }
  return true;
}

const BlockedLayout& Blocked(Layout layout) {
  const auto* blocked = dynamic_cast<const BlockedLayout*>(layout.desc());
  if (!blocked) Throw(ErrorKind::kBug, "oneDNN cannot read the layout {}", layout.Name());
  return *blocked;
}

// Strides of a dense array whose elements within the blocks number `innermost`.
library::Dims StridesOf(const std::vector<int>& order, int64_t innermost, const library::Dims& padded, const std::vector<int64_t>& block) {
  library::Dims strides(padded.size());
  int64_t stride = innermost;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    strides[*axis] = stride;
    stride *= std::max<int64_t>(padded[*axis] / block[*axis], 1);
  }
  return strides;
}

dnnl::memory::data_type TypeOf(DType type) {
  return type == DType::kBfloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

}  // namespace

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
    // Depthwise weights are cut along the groups, the rest along the outputs of a group.
    const bool depthwise = shift && dims[1] == 1;
    for (const auto& b : layout.blocks()) blocks.push_back({depthwise && b.axis == 0 ? 0 : b.axis + shift, b.size});
    // In our layout groups and outputs are one axis; split, the groups lie directly around the outputs.
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
  for (size_t i = 0; i < padded.size(); ++i) padded[i] = (dims[i] + block[i] - 1) / block[i] * block[i];
  return library::MemoryOf({dims, padded, StridesOf(order, innermost, padded, block), blocks}, TypeOf(array.type));
}

std::optional<Layout> LayoutOf(const Memory& memory, const TShape& shape, int64_t groups, Backend& backend) {
  const std::optional<Blocking> blocking = library::BlockingOf(memory);
  if (!blocking) return std::nullopt;
  Form form = FormOf(*blocking);
  if (groups != kNoGroups && !MergeGroups(*blocking, &form)) return std::nullopt;
  MXTRAIN_ASSERT(static_cast<int>(form.outer.size()) == shape.ndim());
  const std::vector<int> order = OrderOf(form);
  if (!Dense(form, order)) return std::nullopt;
  if (form.blocks.empty() && std::is_sorted(order.begin(), order.end())) return Layout();
  return backend.Intern(std::make_unique<BlockedLayout>(order, form.blocks));
}

Layout Canonical(const TShape& shape, Layout layout) {
  if (layout.plain() || layout.Padded(shape)) return layout;
  const BlockedLayout& blocked = Blocked(layout);
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    if (blocked.OffsetTable(shape, axis) != PlainOffsetTable(shape, axis)) return layout;
  }
  return Layout();
}

}  // namespace mxtrain::onednn
