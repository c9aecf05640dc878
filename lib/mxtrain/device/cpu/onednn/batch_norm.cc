#include "mxtrain/device/cpu/onednn/internal.h"

namespace mxtrain::onednn {
namespace {

using dnnl::normalization_flags;
using dnnl::prop_kind;

normalization_flags FlagsOf(const BatchNorm& b) {
  normalization_flags flags = normalization_flags::none;
  if (b.scale) flags |= normalization_flags::use_scale;
  if (b.shift) flags |= normalization_flags::use_shift;
  if (b.global_stats) flags |= normalization_flags::use_global_stats;
  if (b.relu) flags |= normalization_flags::fuse_norm_relu;
  return flags;
}

dnnl::batch_normalization_forward::primitive_desc ForwardOf(const BatchNorm& b, const dnnl::engine& engine) {
  const dnnl::batch_normalization_forward::desc desc(b.training ? prop_kind::forward_training : prop_kind::forward_inference,
                                                     MemoryOf(b.data), b.epsilon, FlagsOf(b));
  return {desc, Attributes(), engine};
}

// The per-channel arrays are plain, whatever the data are.
std::vector<ArrayArg> PerChannel(const BatchNorm& b, std::vector<ArrayArg> args, std::initializer_list<Arg> always) {
  const Array channel{TShape{b.data.shape[1]}, Layout()};
  for (Arg arg : always) args.push_back({arg, channel});
  if (b.scale) args.push_back({Arg::kScale, channel});
  if (b.shift) args.push_back({Arg::kShift, channel});
  return args;
}

}  // namespace

Result BatchNormForward(Backend& backend, const BatchNorm& b) {
  return Build(backend, [&](const dnnl::engine& engine) {
    std::vector<ArrayArg> args{{Arg::kSrc, b.data}, {Arg::kDst, b.data}};
    const bool stats = b.training || b.global_stats;
    args = stats ? PerChannel(b, args, {Arg::kMean, Arg::kVariance}) : PerChannel(b, args, {});
    return Describe(backend, engine, ForwardOf(b, engine), args);
  });
}

Result BatchNormBackward(Backend& backend, const BatchNorm& b) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const bool affine = b.scale || b.shift;
    const dnnl::batch_normalization_backward::desc desc(affine ? prop_kind::backward : prop_kind::backward_data, MemoryOf(b.data),
                                                        MemoryOf(b.data), b.epsilon, FlagsOf(b));
    std::vector<ArrayArg> args{{Arg::kSrc, b.data}, {Arg::kDiffSrc, b.data}, {Arg::kDiffDst, b.data}};
    const Array channel{TShape{b.data.shape[1]}, Layout()};
    if (b.scale) args.push_back({Arg::kDiffScale, channel});
    if (b.shift) args.push_back({Arg::kDiffShift, channel});
    return Describe(backend, engine, dnnl::batch_normalization_backward::primitive_desc(desc, Attributes(), engine, ForwardOf(b, engine)),
                    PerChannel(b, args, {Arg::kMean, Arg::kVariance}));
  });
}

}  // namespace mxtrain::onednn
