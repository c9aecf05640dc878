// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/task.h"

#include <algorithm>

#include "mxtrain/base/format.h"

namespace mxtrain::tasks {

std::optional<Finding> Task::RefuseSets() const {
  return Finding{LogLevel::kError,
                 format("label_delim makes the label '{}' a set of classes, but the loss '{}' does "
                        "not take one",
                        head_.label, head_.name),
                 "remove label_delim, or end the net with LogisticRegressionOutput"};
}

std::vector<std::string> OddLabels(const std::vector<std::unique_ptr<Task>>& tasks,
                                   const io::Source& data, bool training) {
  std::vector<std::string> all;
  for (const auto& task : tasks) {
    for (const std::string& odd : task->OddLabels(data, training)) {
      std::string text = format("{}: {}", training ? "data.train" : "data.val", odd);
      if (std::ranges::find(all, text) == all.end()) all.push_back(std::move(text));
    }
  }
  return all;
}

}  // namespace mxtrain::tasks
