// SPDX-License-Identifier: Apache-2.0
#pragma once
// The epilogue of a layer's kernel, applied before the result is written: result = act(layer [+
// sum]). Operators created by the fusion pass have these parameters in addition to those of the
// layer.
#include <functional>
#include <limits>
#include <span>
#include <string>

#include "mxtrain/operator/registry.h"

namespace mxtrain {

struct Epilogue {
  enum Act { kNone, kRelu, kRelu6, kSilu, kHardSwish };
  int act = kNone;        // kRelu6: clamps to 0 .. 6
  bool with_sum = false;  // one more argument, the last, of the shape of the result

  // The activations x times a function of x. Layers that take them do so without a sum.
  bool self_gated() const { return act == kSilu || act == kHardSwish; }
  // Bounds of the result, unless the activation is self-gated. NaN stays NaN.
  float low() const { return act == kNone ? -std::numeric_limits<float>::infinity() : 0; }
  float high() const { return act == kRelu6 ? 6 : std::numeric_limits<float>::infinity(); }

  using Words = std::vector<std::pair<std::string, int>>;
  // `self_gated`: the layer takes self-gated activations too.
  template <typename P>
  static void Declare(Fields<P>& f, bool self_gated = false) {
    Words words = {{"none", kNone}, {"relu", kRelu}, {"relu6", kRelu6}};
    if (self_gated) words.insert(words.end(), {{"silu", kSilu}, {"hard_swish", kHardSwish}});
    f.Add("act", &P::act).Enum(words).Default(kNone).Help("activation of the result");
    f.Add("with_sum", &P::with_sum)
        .Default(false)
        .Help("a last argument is added before the activation");
  }
};

// The patterns layer [+ elemwise_add or ElementWiseSum of two] [+ Activation relu or clip to 0 ..
// 6] -> `into` and, with `self_gated`, layer + silu or hard_swish -> `into`. `accepts`, if given,
// says whether a layer may be fused at all; `pattern` carries the remaining settings (for_training,
// for_inference).
void AddEpiloguePatterns(OperatorRegistry& registry, const std::string& layer,
                         const std::string& into, bool sums, bool self_gated = false,
                         FusePattern pattern = {},
                         std::function<bool(const OperatorProperty& layer)> accepts = nullptr);

}  // namespace mxtrain
