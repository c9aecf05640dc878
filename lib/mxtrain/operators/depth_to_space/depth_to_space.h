// SPDX-License-Identifier: Apache-2.0
#pragma once
// Between the channels and the places of images, with b = block_size:
//   depth_to_space: y[n, c, h b + i, w b + j] = x[n, (i b + j) C / b^2 + c, h, w] for C channels;
//   space_to_depth: the inverse.
#include "mxtrain/operator/view_operator.h"

namespace mxtrain {

struct BlockSizeParam : Parameter<BlockSizeParam> {
  int block_size;
  static void Declare(Fields<BlockSizeParam>& f) {
    f.Add("block_size", &BlockSizeParam::block_size)
        .Required()
        .Range(1)
        .Help("side of the blocks of places");
  }
};

class DepthToSpaceProperty final : public ViewProperty<BlockSizeParam> {
 public:
  std::string TypeString() const override { return "depth_to_space"; }
  std::string Description() const override {
    return "moves blocks of channels to places: [N, C, H, W] -> [N, C / b^2, H b, W b]";
  }
  TShape OutShape(const std::vector<TShape>& in) const override;
  MoveList MovesOf(std::span<const TensorSpec> in, std::span<const TensorSpec> out) const override;
  bool IsIdentity() const override { return param_.block_size == 1; }
};

class SpaceToDepthProperty final : public ViewProperty<BlockSizeParam> {
 public:
  std::string TypeString() const override { return "space_to_depth"; }
  std::string Description() const override {
    return "moves blocks of places to channels: [N, C, H, W] -> [N, C b^2, H / b, W / b]";
  }
  TShape OutShape(const std::vector<TShape>& in) const override;
  MoveList MovesOf(std::span<const TensorSpec> in, std::span<const TensorSpec> out) const override;
  bool IsIdentity() const override { return param_.block_size == 1; }
};

}  // namespace mxtrain

MXTRAIN_KERNELS(depth_to_space, Device, registry) {
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::BlockSizeParam, Device>("depth_to_space"));
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::BlockSizeParam, Device>("space_to_depth"));
}
