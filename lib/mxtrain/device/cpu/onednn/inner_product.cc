#include "mxtrain/device/cpu/onednn/internal.h"

namespace mxtrain::onednn {
namespace {

using dnnl::prop_kind;

Memory BiasOf(const InnerProduct& p) {
  return p.bias ? MemoryOf({TShape{p.weights.shape[0]}, Layout()}) : Memory();
}

std::vector<ArrayArg> WithBias(std::vector<ArrayArg> args, const InnerProduct& p, Arg bias) {
  if (p.bias) args.push_back({bias, {TShape{p.weights.shape[0]}, Layout()}});
  return args;
}

}  // namespace

Result InnerProductForward(Backend& backend, const InnerProduct& p) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const dnnl::inner_product_forward::desc desc(p.training ? prop_kind::forward_training : prop_kind::forward_inference, MemoryOf(p.src),
                                                 MemoryOf(p.weights), BiasOf(p), MemoryOf(p.dst));
    return Describe(backend, engine, dnnl::inner_product_forward::primitive_desc(desc, Attributes(p.accumulate, p.bounds), engine),
                    WithBias({{Arg::kSrc, p.src}, {Arg::kWeights, p.weights}, {Arg::kDst, p.dst}}, p, Arg::kBias));
  });
}

Result InnerProductBackwardData(Backend& backend, const InnerProduct& p) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const dnnl::inner_product_backward_data::desc desc(MemoryOf(p.src), MemoryOf(p.weights), MemoryOf(p.dst));
    const dnnl::primitive_attr attributes = Attributes();
    return Describe(backend, engine, dnnl::primitive_desc(&desc.data, &attributes, engine, nullptr),
                    std::vector<ArrayArg>{{Arg::kDiffSrc, p.src}, {Arg::kWeights, p.weights}, {Arg::kDiffDst, p.dst}});
  });
}

Result InnerProductBackwardWeights(Backend& backend, const InnerProduct& p) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const dnnl::inner_product_backward_weights::desc desc(MemoryOf(p.src), MemoryOf(p.weights), BiasOf(p), MemoryOf(p.dst));
    const dnnl::primitive_attr attributes = Attributes();
    return Describe(backend, engine, dnnl::primitive_desc(&desc.data, &attributes, engine, nullptr),
                    WithBias({{Arg::kSrc, p.src}, {Arg::kDiffWeights, p.weights}, {Arg::kDiffDst, p.dst}}, p, Arg::kDiffBias));
  });
}

}  // namespace mxtrain::onednn
