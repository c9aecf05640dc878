// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/blocked_layout.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"

namespace mxtrain {
namespace {

char Letter(int axis, bool blocked) {
  return static_cast<char>((blocked ? 'A' : 'a') + axis);
}

[[noreturn]] void Malformed(std::string_view name) {
  Throw(ErrorKind::kBug, "'{}' is not the name of a blocked layout", name);
}

}  // namespace

BlockedLayout::BlockedLayout(std::vector<int> order, std::vector<Block> blocks)
    : order_(std::move(order)), blocks_(std::move(blocks)) {
  std::vector<int> sorted = order_;
  std::sort(sorted.begin(), sorted.end());
  for (int axis = 0; axis < ndim(); ++axis) {
    if (ndim() > TShape::kMaxDims || sorted[static_cast<size_t>(axis)] != axis) {
      Throw(ErrorKind::kBug, "the axes ({}) of a layout are not a permutation", join(order_, ", "));
    }
  }
  for (const Block& block : blocks_) {
    if (block.axis < 0 || block.axis >= ndim() || block.size < 2) {
      Throw(ErrorKind::kBug, "a block of {} on axis {} in a layout of {} axes", block.size,
            block.axis, ndim());
    }
  }
  for (int axis : order_) name_ += Letter(axis, BlockOf(axis) > 1);
  for (const Block& block : blocks_)
    name_ += std::to_string(block.size) + Letter(block.axis, false);
}

std::unique_ptr<BlockedLayout> BlockedLayout::FromName(std::string_view name) {
  std::vector<int> order;
  std::vector<Block> blocks;
  size_t i = 0;
  for (; i < name.size() && std::isalpha(static_cast<unsigned char>(name[i])); ++i) {
    order.push_back(std::tolower(static_cast<unsigned char>(name[i])) - 'a');
  }
  while (i < name.size()) {
    int64_t size = 0;
    for (; i < name.size() && std::isdigit(static_cast<unsigned char>(name[i])) && size < 65536;
         ++i)
      size = size * 10 + (name[i] - '0');
    if (i == name.size() || !std::islower(static_cast<unsigned char>(name[i]))) Malformed(name);
    blocks.push_back({name[i++] - 'a', size});
  }
  auto layout = std::make_unique<BlockedLayout>(std::move(order), std::move(blocks));
  if (layout->Name() != name) Malformed(name);  // capitals inconsistent with the blocks
  return layout;
}

int64_t BlockedLayout::BlockOf(int axis) const {
  int64_t size = 1;
  for (const Block& block : blocks_) size *= block.axis == axis ? block.size : 1;
  return size;
}

TShape BlockedLayout::PaddedShape(const TShape& shape) const {
  if (shape.ndim() != ndim())
    Throw(ErrorKind::kBug, "layout {} on an array of shape {}", name_, shape.ToString());
  shape.KnownProduct(0, ndim());  // throws for lengths that cannot be rounded up
  TShape padded = shape;
  for (int axis = 0; axis < ndim(); ++axis) {
    const int64_t block = BlockOf(axis);
    padded[axis] = RoundUp(shape[axis], block);
  }
  return padded;
}

int64_t BlockedLayout::Bytes(const TShape& shape, DType type) const {
  return PaddedShape(shape).Size() * SizeOf(type);
}

bool BlockedLayout::Padded(const TShape& shape) const {
  return PaddedShape(shape) != shape;
}

std::vector<int64_t> BlockedLayout::OffsetTable(const TShape& shape, int axis) const {
  const TShape padded = PaddedShape(shape);
  int64_t outer_stride = 1;
  for (const Block& block : blocks_) outer_stride *= block.size;
  for (auto at = order_.rbegin(); at != order_.rend() && *at != axis; ++at)
    outer_stride *= padded[*at] / BlockOf(*at);

  const int64_t length = padded[axis], size = BlockOf(axis);
  std::vector<int64_t> table(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    int64_t offset = i / size * outer_stride, rest = i % size, stride = 1;
    // The innermost block takes the lowest digits.
    for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
      if (block->axis == axis) {
        offset += rest % block->size * stride;
        rest /= block->size;
      }
      stride *= block->size;
    }
    table[static_cast<size_t>(i)] = offset;
  }
  return table;
}

bool ChannelsLast(Layout layout) {
  const auto* blocked = dynamic_cast<const BlockedLayout*>(layout.desc());
  if (!blocked || blocked->ndim() < 3 || !blocked->blocks().empty()) return false;
  const std::vector<int>& order = blocked->order();
  for (size_t at = 1; at + 1 < order.size(); ++at) {
    if (order[at] != static_cast<int>(at) + 1) return false;
  }
  return order.front() == 0 && order.back() == 1;
}

std::unique_ptr<BlockedLayout> NewChannelsLast(int ndim) {
  std::vector<int> order(static_cast<size_t>(ndim));
  std::iota(order.begin() + 1, order.end() - 1, 2);
  order.back() = 1;
  return std::make_unique<BlockedLayout>(std::move(order), std::vector<BlockedLayout::Block>{});
}

int64_t ChannelBlock(const TShape& shape, Layout layout) {
  if (layout.plain()) return 1;
  if (ChannelsLast(layout)) return shape[1];
  const auto* blocked = dynamic_cast<const BlockedLayout*>(layout.desc());
  const bool in_blocks = blocked && blocked->blocks().size() == 1 &&
                         blocked->blocks()[0].axis == 1 &&
                         std::is_sorted(blocked->order().begin(), blocked->order().end());
  return in_blocks ? blocked->blocks()[0].size : 0;
}

std::vector<int64_t> PlainOffsetTable(const TShape& shape, int axis) {
  const int64_t stride = shape.Product(axis + 1, shape.ndim());
  std::vector<int64_t> table(static_cast<size_t>(shape[axis]));
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int64_t>(i) * stride;
  return table;
}

Layout Canonical(const TShape& shape, Layout layout) {
  const auto* blocked = dynamic_cast<const BlockedLayout*>(layout.desc());
  if (!blocked || blocked->Padded(shape)) return layout;
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    if (blocked->OffsetTable(shape, axis) != PlainOffsetTable(shape, axis)) return layout;
  }
  return Layout();
}

Layout AsOffered(const TShape& shape, Layout layout, std::optional<Layout> offered) {
  const bool same = offered && Canonical(shape, *offered) == Canonical(shape, layout);
  return same ? *offered : layout;
}

}  // namespace mxtrain
