// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layouts that permute the axes and split some of them into inner blocks: NHWC ("acdb"), oneDNN's
// nChw8c ("aBcd8b"), OIhw8i8o ("ABcd8b8a"). An axis whose length is not a multiple of its block is
// padded with zeros.
//
// The offset of an element is a sum of one term per axis, so one table per axis (OffsetTable)
// describes the layout of a shape.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/device/layout.h"

namespace mxtrain {

class MXTRAIN_API BlockedLayout final : public LayoutDesc {
 public:
  struct Block {
    int axis;
    int64_t size;
    friend bool operator==(const Block&, const Block&) = default;
  };
  // `order`: axes from outermost to innermost. `blocks`: inner blocks from outermost to innermost;
  // an axis may be split more than once.
  BlockedLayout(std::vector<int> order, std::vector<Block> blocks);
  // From a name such as "aBcd8b"; throws kBug for a malformed one.
  static std::unique_ptr<BlockedLayout> FromName(std::string_view name);

  std::string Name() const override { return name_; }
  int64_t Bytes(const TShape& shape, DType type) const override;
  bool Padded(const TShape& shape) const override;

  int ndim() const { return static_cast<int>(order_.size()); }
  const std::vector<int>& order() const { return order_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  int64_t BlockOf(int axis) const;  // product of the blocks of an axis; 1 if it is not split
  TShape PaddedShape(const TShape& shape) const;

  // Entry i of table `axis`: what index i of that axis adds to the element offset. Length: the
  // padded length of the axis.
  std::vector<int64_t> OffsetTable(const TShape& shape, int axis) const;

 private:
  std::vector<int> order_;
  std::vector<Block> blocks_;
  std::string name_;
};

// Axis 1 moved to the end, the others in order: channels last, "acdb" for images.
MXTRAIN_API bool ChannelsLast(Layout layout);
// That layout for arrays with `ndim` axes, three or more.
MXTRAIN_API std::unique_ptr<BlockedLayout> NewChannelsLast(int ndim);

// How many channels (axis 1) lie side by side: 8 in "aBcd8b", all of them channels last, one in a
// plain array; 0 if the layout differs from a plain one in anything else.
MXTRAIN_API int64_t ChannelBlock(const TShape& shape, Layout layout);

// The same table for a plain array.
MXTRAIN_API std::vector<int64_t> PlainOffsetTable(const TShape& shape, int axis);

// The plain layout if the bytes are arranged as in a plain array: "aBcd8b" of [N, 8k, 1, 1] is
// plain.
MXTRAIN_API Layout Canonical(const TShape& shape, Layout layout);
// `offered` if the bytes are arranged as in `layout`, else `layout`: what a kernel that needs
// `layout` asks for, so that no array is copied for another name.
MXTRAIN_API Layout AsOffered(const TShape& shape, Layout layout, std::optional<Layout> offered);

}  // namespace mxtrain
