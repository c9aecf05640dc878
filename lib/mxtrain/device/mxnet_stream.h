// SPDX-License-Identifier: Apache-2.0
#pragma once
// Devices as template arguments and the stream of a running function, as MXNet's sources spell them
// (hence the names in lower case; docs/mxnet_forms.md):
//
//   template <typename xpu>
//   void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req,
//                RunContext ctx) {
//     Stream<xpu>* s = get_stream<xpu>(ctx);  // in MXNet ctx.get_stream<xpu>()
#include "mxtrain/device/context.h"

namespace mxtrain::mxnet {

struct cpu {
  static constexpr DeviceType kDevMask = DeviceType::kCPU;
};
struct gpu {
  static constexpr DeviceType kDevMask = DeviceType::kGPU;
};

// One class for all devices. CUDA sources get its handles from StreamOf(ctx) (device/cuda).
template <typename xpu>
using Stream = mxtrain::Stream;

// Null on the CPU.
template <typename xpu>
Stream<xpu>* get_stream(const RunContext& ctx) {
  return ctx.stream;
}

}  // namespace mxtrain::mxnet
