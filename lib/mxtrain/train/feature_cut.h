// SPDX-License-Identifier: Apache-2.0
#pragma once
// A net in two parts: layers that compute the same of an example in every step, since nothing in
// them learns, is drawn or depends on other examples, and the rest. The outputs of the first, the
// features, need be computed once.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "mxtrain/optimizer/optimizer.h"
#include "mxtrain/symbol/symbol.h"
#include "mxtrain/train/bind_request.h"

namespace mxtrain {

// The net with every batch norm whose beta (and gamma, unless it is fixed) has a learning rate of 0
// normalizing by its moving averages in training too (use_global_stats), which then do not change.
MXTRAIN_API Symbol WithFixedStatistics(const OperatorRegistry& operators, const Symbol& net,
                                       const LrPatterns& lr_mult);

struct MXTRAIN_API FeatureCut {
  Symbol trunk;                    // its outputs are the features
  Symbol head;                     // the net, with variables in place of the features
  std::vector<std::string> names;  // of these variables, one for each output of the trunk
  std::vector<TShape> shapes;      // of the features of one example
  // Inputs of numbers that layers of the head read themselves, beside the features.
  std::vector<std::string> inputs;
  std::vector<TShape> input_shapes;  // of one example
  int64_t layers = 0;                // operators of the trunk
  std::string last;                  // its last one
  // Frozen parameters after it, and what keeps their layers from being computed once: a layer that
  // draws random numbers. Empty if there are none.
  std::string held_up_by;

  int64_t Numbers() const;  // in what is kept of one example: the features, and those inputs
};

// Throws kConfig for options with which features cannot be computed once.
MXTRAIN_API void CheckFeatureOptions(const BindOptions& options);
// Throws kMemory if the features and labels of all examples take more than `limit` bytes; 0: more
// than half of the free memory.
MXTRAIN_API void CheckFeatureBytes(const FeatureCut& cut, int64_t bytes, int64_t limit);

// Of one example of the trunk's features, for other shapes than it was cut with. `shapes` as for
// CutAtFeatures. Throws kConfig if their first axis is not the batch.
MXTRAIN_API std::vector<TShape> FeatureShapes(const Symbol& trunk,
                                              const std::map<std::string, TShape>& shapes);

// `inputs` and `labels`: the variables that batches provide; the other ones are parameters.
// `shapes` as for Symbol::InferShape, of a batch. Cuts as late as possible. Throws kConfig if there
// is nothing to be computed once, with the layer that is in the way, for images that a layer reads
// which changes, and for features that are not float32 or whose first axis is not the batch.
MXTRAIN_API FeatureCut CutAtFeatures(const OperatorRegistry& operators, const Symbol& net,
                                     const std::map<std::string, TShape>& shapes,
                                     const std::set<std::string>& inputs,
                                     const std::set<std::string>& labels,
                                     const LrPatterns& lr_mult);

}  // namespace mxtrain
