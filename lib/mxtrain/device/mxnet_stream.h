// SPDX-License-Identifier: Apache-2.0
#pragma once
// Devices as template arguments and the stream of a running function, as MXNet's sources spell them
// (hence the names in lower case; docs/mxnet_forms.md):
//
//   template <typename xpu>
//   void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req,
//                RunContext ctx) {
//     mshadow::Stream<xpu>* s = ctx.get_stream<xpu>();
#include "mxtrain/device/context.h"

namespace mxtrain::mxnet {

struct cpu {
  static constexpr DeviceType kDevMask = DeviceType::kCPU;
};
struct gpu {
  static constexpr DeviceType kDevMask = DeviceType::kGPU;
};

// One class for all devices. CUDA sources get its handle from StreamOf (operator/mxnet_kernel.cuh).
template <typename xpu>
using Stream = mxtrain::Stream;

// Null on the CPU.
template <typename xpu>
Stream<xpu>* get_stream(const mxtrain::RunContext& ctx) {
  return ctx.stream;
}

// What the engine decides for a running function.
struct RunContext : mxtrain::RunContext {
  RunContext() = default;
  RunContext(const mxtrain::RunContext& other) : mxtrain::RunContext(other) {}
  RunContext(Context where, mxtrain::Stream* of_worker) : mxtrain::RunContext{where, of_worker} {}

  template <typename xpu>
  Stream<xpu>* get_stream() const {
    return stream;
  }
};

namespace mshadow {

using mxnet::cpu;
using mxnet::gpu;
template <typename xpu>
using Stream = mxnet::Stream<xpu>;

}  // namespace mshadow

}  // namespace mxtrain::mxnet
