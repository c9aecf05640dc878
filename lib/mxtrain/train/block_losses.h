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

// Whether nets that are trained in this way may be changed so: float32, or bfloat16 where the
// processor has it, on one CPU with fusion.
MXTRAIN_API bool AllowsLossesInBlocks(Context ctx, const ComputeModes& modes);

// `shapes`: of the arrays of a batch. A head is left as it is if its scores take less than 4 MiB,
// are read elsewhere too, have another loss than the plain cross entropy, or if a metric compares
// its probabilities.
MXTRAIN_API Symbol WithLossesInBlocks(const OperatorRegistry& operators, const Symbol& net,
                                      const std::map<std::string, TShape>& shapes,
                                      const std::vector<MetricSpec>& metrics);

}  // namespace mxtrain
