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

  // Activations that are no clamps. Layers that take them do so without a sum.
  bool smooth() const { return act == kSilu || act == kHardSwish; }
  // Bounds of the result, unless the activation is smooth. NaN stays NaN.
  float low() const { return act == kNone ? -std::numeric_limits<float>::infinity() : 0; }
  float high() const { return act == kRelu6 ? 6 : std::numeric_limits<float>::infinity(); }

  using Words = std::vector<std::pair<std::string, int>>;
  // `smooth`: the layer takes smooth activations too.
  template <typename P>
  static void Declare(Fields<P>& f, bool smooth = false) {
    Words words = {{"none", kNone}, {"relu", kRelu}, {"relu6", kRelu6}};
    if (smooth) words.insert(words.end(), {{"silu", kSilu}, {"hard_swish", kHardSwish}});
    f.Add("act", &P::act).Enum(words).Default(kNone).Help("activation of the result");
    f.Add("with_sum", &P::with_sum)
        .Default(false)
        .Help("a last argument is added before the activation");
  }
};

// The patterns layer [+ elemwise_add or ElementWiseSum of two] [+ Activation relu or clip to 0 ..
// 6] -> `into` and, with `smooth`, layer + silu or hard_swish -> `into`. `accepts`, if given, says
// whether a layer may be fused at all; `pattern` carries the remaining settings (for_training,
// for_inference).
void AddEpiloguePatterns(OperatorRegistry& registry, const std::string& layer,
                         const std::string& into, bool sums, bool smooth = false,
                         FusePattern pattern = {},
                         std::function<bool(const OperatorProperty& layer)> accepts = nullptr);

}  // namespace mxtrain
