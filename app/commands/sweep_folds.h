// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cross-validation in a sweep: means and standard deviations (of a sample: n - 1) of the results of
// each point over its folds. `trials` are those of each point, `folds` of them, one after another;
// the fold is the last of their values. Points are ranked by the mean of the last epochs: best
// epochs are chosen on the examples that they are measured on.
#include <string>
#include <vector>

#include "app/commands/sweep_results.h"
#include "mxtrain/base/json.h"

namespace mxtrain::commands {

// The text of folds.csv. `axes`: those of the points.
std::string FoldTable(const std::vector<Trial>& trials, int folds,
                      const std::vector<SweepAxis>& axes);
// A line for each point with results.
std::string FoldText(const std::vector<Trial>& trials, int folds);
Json FoldsToJson(const std::vector<Trial>& trials, int folds);

}  // namespace mxtrain::commands
