#pragma once
// Weights of classes in the loss, against data of uneven classes.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mxtrain/symbol/symbol.h"

namespace mxtrain {

// The one SoftmaxOutput among the heads of a net.
struct ClassifierHead {
  int output = 0;     // index of the head
  std::string label;  // name of its label input; "" when the net computes it
  int64_t classes = 0;
};
// Throws kConfig for a net that has none, or several.
MXTRAIN_API ClassifierHead FindClassifier(const Symbol& symbol, const std::map<std::string, TShape>& input_shapes);

// The net with these `class_weights` in its one SoftmaxOutput. Throws kConfig where it has weights already.
MXTRAIN_API Symbol WithClassWeights(const OperatorRegistry& registry, const Symbol& symbol, const ClassifierHead& head,
                                    const std::vector<double>& weights);

// n / (classes * count) for counts of n examples, so that every class has the same part of the loss and the mean over examples is 1;
// scikit-learn calls it "balanced". Classes without examples are not counted, and have 1.
MXTRAIN_API std::vector<double> BalancedWeights(const std::vector<int64_t>& counts);

}  // namespace mxtrain
