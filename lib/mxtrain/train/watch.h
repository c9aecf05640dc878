// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shows what a training run computes: outputs and gradients of layers, parameters and auxiliary
// states, each n-th step.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// Which arrays of a run are shown, and when. Names are those of Executor::SetMonitor (`fc_output`
// after forward, `fc_backward_weight` after backward) and of parameters and auxiliary states
// (`fc_weight`, `bn_moving_mean`: after the step's update). A step shows the first of its batches;
// of several workers, the first one's part of it. A layer that is fused into another has no output.
//
// Watching changes no result. It costs nothing in steps that show nothing.
struct WatchOptions {
  std::string pattern;  // of names (base/glob.h)
  int64_t every = 1;    // steps 1, 1 + every, ... of the run, also of a resumed one
  // With plain arrays on the host, from threads of the engine, several at a time. When the engine
  // has nothing left to do, all calls have been made. Empty: nothing is watched.
  std::function<void(int64_t step, const std::string& name, const TBlob& value)> show;
};

// "rms" (the Euclidean norm by the root of the number of elements), "norm", "mean", "std", "min",
// "max", "abs_mean" and "abs_max" of the finite elements; "zeros", the fraction of these that are
// 0; "nonfinite", how many are not finite.
MXTRAIN_API const std::vector<std::string>& StatisticNames();
// In that order, computed in double; nan where there is no finite element. Of an array of any type
// on the host.
MXTRAIN_API std::vector<double> StatisticsOf(const TBlob& value);

}  // namespace mxtrain
