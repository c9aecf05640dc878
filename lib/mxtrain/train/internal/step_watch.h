// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shows the arrays of a net's steps (train/watch.h). Used by the training thread.
#include <map>
#include <memory>
#include <set>
#include <string>

#include "mxtrain/executor/executor.h"
#include "mxtrain/train/watch.h"

namespace mxtrain {

class StepWatch {
 public:
  // Watches an executor and arrays that are updated after its steps. The executor must outlive it.
  StepWatch(const WatchOptions& options, Executor& executor,
            const std::map<std::string, NDArray>& args, const std::map<std::string, NDArray>& auxs);
  // Throws kConfig for a pattern that matches nothing which the executor shows.
  void RequireMatch() const;

  // Around the first forward and backward pass of a step; steps count from 1.
  void BeginBatch(int64_t step);
  void EndBatch();
  // When the step's updates have been pushed.
  void EndStep(int64_t step);

 private:
  bool IsDue(int64_t step) const { return (step - 1) % options_.every == 0 && step > shown_; }

  const WatchOptions& options_;
  Executor& executor_;
  std::shared_ptr<const std::set<std::string>> names_;  // of outputs and gradients that match
  std::map<std::string, NDArray> states_;               // that match
  int64_t shown_ = 0;  // the last step, since ranks may move back to their mean
};

}  // namespace mxtrain
