// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/depth_to_space/depth_to_space.h"

namespace mxtrain {
namespace {

void CheckImages(const TShape& data, const char* op) {
  if (data.ndim() == 4) return;
  Throw(ErrorKind::kConfig, "{}: data has shape {}, but images have 4 axes, [N, C, H, W]", op,
        data.ToString());
}

// The product, if an array can be so long.
int64_t Times(int64_t a, int64_t b) {
  return TShape{a, b}.Size();
}

// Both arrays by (n, i, j, c, h, w), with b x b places (i, j) in a block.
struct BlockViews {
  StridedView depth, space;
};
BlockViews ViewsOf(const TShape& depth, const TShape& space, int64_t b) {
  const int64_t channels = space[1], height = depth[2], width = depth[3];
  const int64_t plane = height * width;
  BlockViews views;
  const auto add = [&views](int64_t length, int64_t in_depth, int64_t in_space) {
    views.depth.Add(length, in_depth);
    views.space.Add(length, in_space);
  };
  const int64_t row = width * b;  // of space
  add(depth[0], depth[1] * plane, channels * b * b * plane);
  add(b, b * channels * plane, row);
  add(b, channels * plane, 1);
  add(channels, plane, b * b * plane);
  add(height, width, b * row);
  add(width, 1, b);
  return views;
}

}  // namespace

TShape DepthToSpaceProperty::OutShape(const std::vector<TShape>& in) const {
  const TShape& data = in[0];
  CheckImages(data, "depth_to_space");
  const int64_t b = param_.block_size;
  if (data[1] % (b * b) != 0) {
    Throw(ErrorKind::kConfig,
          "depth_to_space: the channels of data of shape {} are not a multiple of block_size^2 = "
          "{}",
          data.ToString(), b * b);
  }
  return {data[0], data[1] / (b * b), Times(data[2], b), Times(data[3], b)};
}

MoveList DepthToSpaceProperty::MovesOf(std::span<const TensorSpec> in,
                                       std::span<const TensorSpec> out) const {
  const BlockViews views = ViewsOf(in[0].shape, out[0].shape, param_.block_size);
  MoveList list;
  list.Add(0, views.depth, 0, views.space);
  return list;
}

TShape SpaceToDepthProperty::OutShape(const std::vector<TShape>& in) const {
  const TShape& data = in[0];
  CheckImages(data, "space_to_depth");
  const int64_t b = param_.block_size;
  if (data[2] % b != 0 || data[3] % b != 0) {
    Throw(ErrorKind::kConfig,
          "space_to_depth: height and width of data of shape {} are not multiples of block_size = "
          "{}",
          data.ToString(), b);
  }
  return {data[0], Times(data[1], b * b), data[2] / b, data[3] / b};
}

MoveList SpaceToDepthProperty::MovesOf(std::span<const TensorSpec> in,
                                       std::span<const TensorSpec> out) const {
  const BlockViews views = ViewsOf(out[0].shape, in[0].shape, param_.block_size);
  MoveList list;
  list.Add(0, views.space, 0, views.depth);
  return list;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(depth_to_space, registry) {
  registry.AddProperty("depth_to_space", {},
                       [] { return std::make_unique<mxtrain::DepthToSpaceProperty>(); });
  registry.AddProperty("space_to_depth", {},
                       [] { return std::make_unique<mxtrain::SpaceToDepthProperty>(); });
}
