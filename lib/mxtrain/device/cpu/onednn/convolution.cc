#include "mxtrain/device/cpu/onednn/internal.h"

namespace mxtrain::onednn {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;

struct Geometry {
  dnnl::memory::dims stride, dilate, pad;
};

Geometry GeometryOf(const Convolution& c) {
  Geometry g{DimsOf(c.stride), DimsOf(c.dilate), DimsOf(c.pad)};
  for (int64_t& d : g.dilate) --d;  // oneDNN counts the gaps
  return g;
}

int64_t WeightGroups(const Convolution& c) {
  return c.groups > 1 ? c.groups : kNoGroups;
}

Memory BiasOf(const Convolution& c) {
  return c.bias ? MemoryOf({TShape{c.weights.shape[0]}, Layout()}) : Memory();
}

std::vector<ArrayArg> WithBias(std::vector<ArrayArg> args, const Convolution& c, Arg bias) {
  if (c.bias) args.push_back({bias, {TShape{c.weights.shape[0]}, Layout()}});
  return args;
}

}  // namespace

Result ConvolutionForward(Backend& backend, const Convolution& c) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const Geometry g = GeometryOf(c);
    const dnnl::convolution_forward::desc desc(c.training ? prop_kind::forward_training : prop_kind::forward_inference,
                                               algorithm::convolution_direct, MemoryOf(c.src), MemoryOf(c.weights, WeightGroups(c)),
                                               BiasOf(c), MemoryOf(c.dst), g.stride, g.dilate, g.pad, g.pad);
    return Describe(backend, engine, dnnl::convolution_forward::primitive_desc(desc, Attributes(c.accumulate, c.bounds), engine),
                    WithBias({{Arg::kSrc, c.src}, {Arg::kWeights, c.weights, WeightGroups(c)}, {Arg::kDst, c.dst}}, c, Arg::kBias));
  });
}

Result ConvolutionBackwardData(Backend& backend, const Convolution& c) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const Geometry g = GeometryOf(c);
    const dnnl::convolution_backward_data::desc desc(algorithm::convolution_direct, MemoryOf(c.src), MemoryOf(c.weights, WeightGroups(c)),
                                                     MemoryOf(c.dst), g.stride, g.dilate, g.pad, g.pad);
    const dnnl::primitive_attr attributes = Attributes();
    return Describe(backend, engine, dnnl::primitive_desc(&desc.data, &attributes, engine, nullptr),
                    std::vector<ArrayArg>{{Arg::kDiffSrc, c.src}, {Arg::kWeights, c.weights, WeightGroups(c)}, {Arg::kDiffDst, c.dst}});
  });
}

Result ConvolutionBackwardWeights(Backend& backend, const Convolution& c) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const Geometry g = GeometryOf(c);
    const dnnl::convolution_backward_weights::desc desc(c.winograd_weights ? algorithm::convolution_auto : algorithm::convolution_direct,
                                                        MemoryOf(c.src), MemoryOf(c.weights, WeightGroups(c)), BiasOf(c), MemoryOf(c.dst),
                                                        g.stride, g.dilate, g.pad, g.pad);
    const dnnl::primitive_attr attributes = Attributes();
    return Describe(
        backend, engine, dnnl::primitive_desc(&desc.data, &attributes, engine, nullptr),
        WithBias({{Arg::kSrc, c.src}, {Arg::kDiffWeights, c.weights, WeightGroups(c)}, {Arg::kDiffDst, c.dst}}, c, Arg::kDiffBias));
  });
}

}  // namespace mxtrain::onednn
