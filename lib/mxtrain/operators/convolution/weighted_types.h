// SPDX-License-Identifier: Apache-2.0
#pragma once
// Types of layers with data, a weight and an optional bias.
#include <vector>

#include "mxtrain/operator/channel_sums.h"
#include "mxtrain/operator/property.h"

namespace mxtrain::weighted {

// InferType of Convolution and FullyConnected: one type for all, except that the bias of narrow
// data may be float32.
bool InferTypes(const OperatorProperty& property, bool has_bias, std::vector<DType>* in,
                std::vector<DType>* out);

// The gradients that a plan must provide.
struct Wanted {
  bool data = false, weight = false, bias = false;

  explicit Wanted(const PlanRequest& request);
  bool weights() const { return weight || bias; }
};

// Nanoseconds of so many multiplications and additions: the cost model of these layers.
double ArithmeticCost(double products, int threads);
// Of a forward pass.
double ArithmeticCost(const OperatorProperty& property, const PlanRequest& request);

// Element i of a bias, or 0 without one (data == nullptr), as a T or as its accumulator type.
template <typename T, typename A>
MXTRAIN_HD A BiasAt(const TBlob& bias, int64_t i) {
  if (!bias.data) return 0;
  return bias.type == DTypeOf<T>::value ? A(bias.dptr<T>()[i]) : A(bias.dptr<float>()[i]);
}

// The initial value of element i of a layer's output: the bias of its channel, or 0.
template <typename T>
struct BiasOfChannel {
  TBlob bias;
  ChannelView view;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    return BiasAt<T, AccumulatorOf<T>>(bias, view.ChannelOf(i));
  }
};

// The gradient of a bias: the sums of the head gradient over its channels, in the type of the bias.
template <typename T>
struct HeadOfPlace {
  static constexpr int kPack = kPackOf<T>;
  using Pack = ChannelPack<T, kPack>;
  const T* head;
  MXTRAIN_HD int64_t Of(int64_t channel) const { return channel; }
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t place, int64_t) const {
    return AccumulatorOf<T>(head[place]);
  }
  bool Aligned() const { return TakesPacks(head); }
  MXTRAIN_HD Pack ReadPack(int64_t place) const { return Pack::At(head + place); }
  MXTRAIN_HD AccumulatorOf<T> Term(const Pack& pack, int k, int64_t) const {
    return AccumulatorOf<T>(pack.v[k]);
  }
};
template <typename A>
struct ElementOf {
  const A* from;
  MXTRAIN_HD A operator()(int64_t i) const { return from[i]; }
};
template <typename T, typename Device>
void SumToBias(const Device& device, const TBlob& head, const ChannelView& view,
               const TBlob& bias_grad, OpReqType req, const TBlob& workspace) {
  using A = AccumulatorOf<T>;
  if (req == OpReqType::kNullOp) return;
  const A* sums = SumChannels<A>(device, view, HeadOfPlace<T>{head.dptr<T>()}, workspace);
  if (bias_grad.type == DTypeOf<T>::value) {
    MapOn<T>(device, bias_grad, req, ElementOf<A>{sums});
  } else {
    MapOn<float>(device, bias_grad, req, ElementOf<A>{sums});
  }
}
// Size in bytes of its workspace, for the same view.
inline int64_t BytesOfBiasSums(DType type, const ChannelView& view) {
  return type == DType::kFloat64 ? BytesOfChannelSums<double>(view)
                                 : BytesOfChannelSums<float>(view);
}

}  // namespace mxtrain::weighted
