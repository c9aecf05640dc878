// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/onednn/internal/call.h"

namespace mxtrain::onednn {
namespace {

using dnnl::prop_kind;

// Whether a second thread would cost more than it saves: the product takes some microseconds.
bool IsSmall(const InnerProduct& p) {
  constexpr int64_t kProducts = int64_t{1} << 18;
  return p.src.shape[0] * p.weights.shape.Size() < kProducts;
}

Memory BiasOf(const InnerProduct& p) {
  return p.bias ? MemoryOf({TShape{p.weights.shape[0]}, Layout()}) : Memory();
}

library::InnerProduct LibraryOf(const InnerProduct& p) {
  return {MemoryOf(p.src), MemoryOf(p.weights), BiasOf(p), MemoryOf(p.dst)};
}

std::vector<ArrayArg> WithBias(std::vector<ArrayArg> args, const InnerProduct& p, Arg bias) {
  if (p.bias) args.push_back({bias, {TShape{p.weights.shape[0]}, Layout()}});
  return args;
}

}  // namespace

Result InnerProductForward(Backend& backend, const InnerProduct& p) {
  return Build(
      backend,
      [&](const dnnl::engine& engine) {
        return Describe(
            backend, engine,
            library::Forward(
                LibraryOf(p),
                p.training ? prop_kind::forward_training : prop_kind::forward_inference,
                Attributes(p.accumulate, p.bounds), engine),
            WithBias({{Arg::kSrc, p.src}, {Arg::kWeights, p.weights}, {Arg::kDst, p.dst}}, p,
                     Arg::kBias));
      },
      IsSmall(p));
}

Result InnerProductBackwardData(Backend& backend, const InnerProduct& p) {
  return Build(
      backend,
      [&](const dnnl::engine& engine) {
        return Describe(
            backend, engine, library::BackwardData(LibraryOf(p), Attributes(), engine),
            std::vector<ArrayArg>{
                {Arg::kDiffSrc, p.src}, {Arg::kWeights, p.weights}, {Arg::kDiffDst, p.dst}});
      },
      IsSmall(p));
}

Result InnerProductBackwardWeights(Backend& backend, const InnerProduct& p) {
  return Build(
      backend,
      [&](const dnnl::engine& engine) {
        return Describe(
            backend, engine, library::BackwardWeights(LibraryOf(p), Attributes(), engine),
            WithBias({{Arg::kSrc, p.src}, {Arg::kDiffWeights, p.weights}, {Arg::kDiffDst, p.dst}},
                     p, Arg::kDiffBias));
      },
      IsSmall(p));
}

}  // namespace mxtrain::onednn
