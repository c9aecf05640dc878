// SPDX-License-Identifier: Apache-2.0
#pragma once
// Class weights in the loss, for imbalanced data.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mxtrain/symbol/symbol.h"

namespace mxtrain {

// The one SoftmaxOutput among the heads of a net.
struct ClassifierHead {
  int output = 0;     // index of the head
  std::string label;  // name of its label input; "" if the net computes it
  int64_t classes = 0;
};
// Throws kConfig if the net has none, or several.
MXTRAIN_API ClassifierHead FindClassifier(const Symbol& symbol,
                                          const std::map<std::string, TShape>& input_shapes);

// The net with these `class_weights` in its SoftmaxOutput. Throws kConfig if it already has
// weights.
MXTRAIN_API Symbol WithClassWeights(const OperatorRegistry& registry, const Symbol& symbol,
                                    const ClassifierHead& head, const std::vector<double>& weights);

// n / (classes * count) for counts of n examples: every class contributes equally to the loss and
// the mean over examples is 1 (scikit-learn's "balanced"). Classes without examples are not counted
// and get 1.
MXTRAIN_API std::vector<double> BalancedWeights(const std::vector<int64_t>& counts);

}  // namespace mxtrain
