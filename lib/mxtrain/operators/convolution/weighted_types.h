// SPDX-License-Identifier: Apache-2.0
#pragma once
// Types of layers with data, a weight and an optional bias.
#include <vector>

#include "mxtrain/operator/channel_sums.h"
#include "mxtrain/operator/fast_divider.h"
#include "mxtrain/operator/property.h"

namespace mxtrain::weighted {

// InferType of Convolution and FullyConnected: one type for all, except that the bias of narrow
// data may be float32.
bool InferTypes(const OperatorProperty& property, bool has_bias, std::vector<DType>* in,
                std::vector<DType>* out);

// The gradients that a plan must provide.
struct Wanted {
  bool data = false, weight = false, bias = false;

  MXTRAIN_API explicit Wanted(const PlanRequest& request);
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
class BiasOfChannel {
 public:
  BiasOfChannel(const TBlob& bias, const ChannelView& view)
      : bias_(bias), inner_(view.inner), channels_(view.channels) {}
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    int64_t row = 0, within = 0, outer = 0, channel = 0;
    inner_.Divide(i, &row, &within);
    channels_.Divide(row, &outer, &channel);
    return BiasAt<T, AccumulatorOf<T>>(bias_, channel);
  }

 private:
  TBlob bias_;
  FastDivider inner_, channels_;
};

// The same for a pack of adjacent channels.
template <typename T>
struct BiasOfPack {
  static constexpr int kPack = kPackOf<T>;
  TBlob bias;
  FastDivider packs;  // of a row
  OpReqType req;
  T* out;
  MXTRAIN_HD void operator()(int64_t i) const {
    int64_t row = 0, pack = 0;
    packs.Divide(i, &row, &pack);
    ChannelPack<T, kPack> result{};
    T* const to = out + i * kPack;
    if (req == OpReqType::kAddTo) result = ChannelPack<T, kPack>::At(to);
    ForPack<kPack>([&](int k) {
      Assign(req, result.v, k, BiasAt<T, AccumulatorOf<T>>(bias, pack * kPack + k));
    });
    result.Put(to);
  }
};

// out = the bias of each element's channel, or += it.
template <typename T, typename Device>
void PutBias(const Device& device, const TBlob& bias, const ChannelView& view, const TBlob& out,
             OpReqType req) {
  if (req == OpReqType::kNullOp) return;
  if constexpr (Device::kType == DeviceType::kGPU) {
    constexpr int kPack = BiasOfPack<T>::kPack;
    if (InPacks(view, kPack) && TakesPacks(out.data)) {
      const int64_t packs = view.channels / kPack;
      return Launch(device, view.outer * packs,
                    BiasOfPack<T>{bias, FastDivider(packs), req, out.dptr<T>()});
    }
  }
  MapOn<T>(device, out, req, BiasOfChannel<T>(bias, view));
}

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
