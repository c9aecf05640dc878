// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scores of several classes that an example may all have, and from which score on each is
// predicted, as operators of ONNX.
#include <map>
#include <string>
#include <vector>

#include "mxtrain/onnx/model.h"

namespace mxtrain::onnx {

// By the name of an output of scores, [N, classes]: of each class.
using OutputThresholds = std::map<std::string, std::vector<double>>;

// Adds an output for each of these: `labels` or, of several, NAME_labels, int64 [N, classes], 1
// where the score is at least the threshold, else 0. Compared in double, as `infer` does. Returns
// their names, by output; all names that it takes are free. Throws kConfig for an output that the
// model lacks, and for one of another number of classes.
MXTRAIN_API std::map<std::string, std::string> AddThresholds(const OutputThresholds& thresholds,
                                                             Model* model);
// Undoes that in a file whose metadata `thresholds` hold them, as JSON of OutputThresholds; of
// other nodes, whatever their names, none is removed.
MXTRAIN_API void RemoveThresholds(Model* model);

}  // namespace mxtrain::onnx
