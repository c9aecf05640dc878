// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/onednn/internal/call.h"

namespace mxtrain::onednn {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;

int64_t WeightGroups(const Convolution& c) {
  return c.groups > 1 ? c.groups : kNoGroups;
}

Memory BiasOf(const Convolution& c) {
  return c.bias ? MemoryOf({TShape{c.weights.shape[0]}, Layout()}) : Memory();
}

library::Convolution LibraryOf(const Convolution& c, algorithm algorithm) {
  library::Dims gaps = DimsOf(c.dilate);
  for (int64_t& gap : gaps) --gap;
  return {algorithm, MemoryOf(c.src), MemoryOf(c.weights, WeightGroups(c)),
          BiasOf(c), MemoryOf(c.dst), DimsOf(c.stride),
          gaps,      DimsOf(c.pad),   DimsOf(c.pad_after.has_rank() ? c.pad_after : c.pad)};
}

std::vector<ArrayArg> WithBias(std::vector<ArrayArg> args, const Convolution& c, Arg bias) {
  if (c.bias) args.push_back({bias, {TShape{c.weights.shape[0]}, Layout()}});
  return args;
}

}  // namespace

Result ConvolutionForward(Backend& backend, const Convolution& c) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return Describe(
        backend, engine,
        library::Forward(LibraryOf(c, algorithm::convolution_direct),
                         c.training ? prop_kind::forward_training : prop_kind::forward_inference,
                         Attributes(c.accumulate, c.bounds), engine),
        WithBias(
            {{Arg::kSrc, c.src}, {Arg::kWeights, c.weights, WeightGroups(c)}, {Arg::kDst, c.dst}},
            c, Arg::kBias));
  });
}

Result ConvolutionBackwardData(Backend& backend, const Convolution& c) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return Describe(
        backend, engine,
        library::BackwardData(LibraryOf(c, algorithm::convolution_direct), Attributes(), engine),
        std::vector<ArrayArg>{{Arg::kDiffSrc, c.src},
                              {Arg::kWeights, c.weights, WeightGroups(c)},
                              {Arg::kDiffDst, c.dst}});
  });
}

Result ConvolutionBackwardWeights(Backend& backend, const Convolution& c) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const algorithm algorithm =
        c.winograd_weights ? algorithm::convolution_auto : algorithm::convolution_direct;
    return Describe(backend, engine,
                    library::BackwardWeights(LibraryOf(c, algorithm), Attributes(), engine),
                    WithBias({{Arg::kSrc, c.src},
                              {Arg::kDiffWeights, c.weights, WeightGroups(c)},
                              {Arg::kDiffDst, c.dst}},
                             c, Arg::kDiffBias));
  });
}

}  // namespace mxtrain::onednn
