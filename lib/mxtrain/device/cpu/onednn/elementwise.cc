// LRN, softmax and eltwise: primitives whose arrays all have one shape and one layout.
#include "mxtrain/device/cpu/onednn/internal.h"

namespace mxtrain::onednn {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;

prop_kind Kind(bool training) {
  return training ? prop_kind::forward_training : prop_kind::forward_inference;
}

std::vector<ArrayArg> Same(const Array& data, std::initializer_list<Arg> args) {
  std::vector<ArrayArg> result;
  for (Arg arg : args) result.push_back({arg, data});
  return result;
}

dnnl::lrn_forward::primitive_desc ForwardOf(const LocalResponse& l, const dnnl::engine& engine) {
  return {{Kind(l.training), algorithm::lrn_across_channels, MemoryOf(l.data), l.size, l.alpha, l.beta, l.k}, Attributes(), engine};
}

// The log of softmax is a primitive of its own with the same descriptors.
template <typename Forward>
Result SoftmaxForwardOf(Backend& backend, const Softmax& s, const dnnl::engine& engine) {
  return Describe(backend, engine, typename Forward::primitive_desc({Kind(s.training), MemoryOf(s.data), s.axis}, Attributes(), engine),
                  Same(s.data, {Arg::kSrc, Arg::kDst}));
}

template <typename Forward, typename Backward>
Result SoftmaxBackwardOf(Backend& backend, const Softmax& s, const dnnl::engine& engine) {
  const Memory memory = MemoryOf(s.data);
  const typename Forward::primitive_desc hint({Kind(true), memory, s.axis}, Attributes(), engine);
  return Describe(backend, engine, typename Backward::primitive_desc({memory, memory, s.axis}, Attributes(), engine, hint),
                  Same(s.data, {Arg::kDst, Arg::kDiffDst, Arg::kDiffSrc}));
}

algorithm AlgorithmOf(Eltwise::Kind kind) {
  switch (kind) {
    case Eltwise::kRelu:
      return algorithm::eltwise_relu;
    case Eltwise::kTanh:
      return algorithm::eltwise_tanh;
    case Eltwise::kSigmoid:
      return algorithm::eltwise_logistic;
    case Eltwise::kElu:
      return algorithm::eltwise_elu;
    default:
      return algorithm::eltwise_soft_relu;
  }
}

dnnl::eltwise_forward::primitive_desc ForwardOf(const Eltwise& e, const dnnl::engine& engine) {
  return {{Kind(e.training), AlgorithmOf(e.kind), MemoryOf(e.data), e.alpha, 0.0f}, Attributes(), engine};
}

}  // namespace

Result LocalResponseForward(Backend& backend, const LocalResponse& l) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return Describe(backend, engine, ForwardOf(l, engine), Same(l.data, {Arg::kSrc, Arg::kDst}));
  });
}

Result LocalResponseBackward(Backend& backend, const LocalResponse& l) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const Memory memory = MemoryOf(l.data);
    const dnnl::lrn_backward::desc desc(algorithm::lrn_across_channels, memory, memory, l.size, l.alpha, l.beta, l.k);
    return Describe(backend, engine, dnnl::lrn_backward::primitive_desc(desc, Attributes(), engine, ForwardOf(l, engine)),
                    Same(l.data, {Arg::kSrc, Arg::kDiffDst, Arg::kDiffSrc}));
  });
}

Result SoftmaxForward(Backend& backend, const Softmax& s) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return s.log ? SoftmaxForwardOf<dnnl::logsoftmax_forward>(backend, s, engine)
                 : SoftmaxForwardOf<dnnl::softmax_forward>(backend, s, engine);
  });
}

Result SoftmaxBackward(Backend& backend, const Softmax& s) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return s.log ? SoftmaxBackwardOf<dnnl::logsoftmax_forward, dnnl::logsoftmax_backward>(backend, s, engine)
                 : SoftmaxBackwardOf<dnnl::softmax_forward, dnnl::softmax_backward>(backend, s, engine);
  });
}

Result EltwiseForward(Backend& backend, const Eltwise& e) {
  return Build(backend, [&](const dnnl::engine& engine) {
    return Describe(backend, engine, ForwardOf(e, engine), Same(e.data, {Arg::kSrc, Arg::kDst}));
  });
}

Result EltwiseBackward(Backend& backend, const Eltwise& e) {
  return Build(backend, [&](const dnnl::engine& engine) {
    const Memory memory = MemoryOf(e.data);
    const dnnl::eltwise_backward::desc desc(AlgorithmOf(e.kind), memory, memory, e.alpha, 0.0f);
    return Describe(backend, engine, dnnl::eltwise_backward::primitive_desc(desc, Attributes(), engine, ForwardOf(e, engine)),
                    Same(e.data, {Arg::kSrc, Arg::kDiffDst, Arg::kDiffSrc}));
  });
}

}  // namespace mxtrain::onednn
