// SPDX-License-Identifier: Apache-2.0
#pragma once
// Training without the scores of all classes in memory. In a language model the scores of the
// tokens, their softmax and its gradient are often larger than everything else: a head that is
// SoftmaxOutput of a FullyConnected layer then becomes linear_cross_entropy, which takes a block of
// rows at a time and outputs losses instead of probabilities. Parameters and their names, and the
// names of outputs, stay what they were. The net of checkpoints and models is not changed.
#include <map>
#include <string>
#include <vector>

#include "mxtrain/train/evaluation.h"

namespace mxtrain {

// How a net is trained, as far as it decides whether its losses are computed in blocks.
struct BlockLossRequest {
  Context ctx;  // of the first worker
  ComputeModes modes;
  std::map<std::string, TShape> shapes;  // of the arrays of a batch
  std::vector<MetricSpec> metrics;
  bool watched = false;  // outputs of nodes are shown while it trains
  bool weighed = false;  // examples have weights (io/example_weight.h)
};

// The net that a Trainer binds. It is `net` itself where blocks are not for it: on another device
// than the CPU or in a build without a kernel for it (oneDNN's), with float16, or with bfloat16 on
// a processor that lacks it, without fusion, with groups placed on devices, watched, or of examples
// with weights. A head is left as it is if its scores take less than 4 MiB, are read elsewhere too,
// have another loss than the plain cross entropy, or if a metric compares its probabilities.
MXTRAIN_API Symbol WithLossesInBlocks(const OperatorRegistry& operators, const Symbol& net,
                                      const BlockLossRequest& request);

}  // namespace mxtrain
