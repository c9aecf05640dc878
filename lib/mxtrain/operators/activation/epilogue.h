#pragma once
// What a layer's kernel can do to its result before it is written: result = act(layer [+ sum]). Operators that the fusion pass makes carry
// these parameters beside those of the layer.
#include <functional>
#include <limits>
#include <span>
#include <string>

#include "mxtrain/operator/registry.h"

namespace mxtrain {

struct Epilogue {
  enum Act { kNone, kRelu, kRelu6 };
  int act = kNone;        // kRelu6: at least 0 and at most 6
  bool with_sum = false;  // one argument more, the last, of the shape of the result

  // Every value of the result lies within. NaN stays.
  float low() const { return act == kNone ? -std::numeric_limits<float>::infinity() : 0; }
  float high() const { return act == kRelu6 ? 6 : std::numeric_limits<float>::infinity(); }

  template <typename P>
  static void Declare(Fields<P>& f) {
    f.Add("act", &P::act).Enum({{"none", kNone}, {"relu", kRelu}, {"relu6", kRelu6}}).Default(kNone).Help("activation of the result");
    f.Add("with_sum", &P::with_sum).Default(false).Help("one argument more, the last, is added before the activation");
  }
};

// The patterns layer [+ elemwise_add or ElementWiseSum of two] [+ Activation relu or clip to 0 .. 6] -> `into`. `accepts`, where given, says
// whether a layer may be fused at all; `pattern` carries what else is to be set (for_training, for_inference).
void AddEpiloguePatterns(OperatorRegistry& registry, const std::string& layer, const std::string& into, bool sums, FusePattern pattern = {},
                       std::function<bool(const OperatorProperty& layer)> accepts = nullptr);

}  // namespace mxtrain
