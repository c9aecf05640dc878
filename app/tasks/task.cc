// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/task.h"

#include <algorithm>

namespace mxtrain::tasks {

std::vector<std::string> OddLabels(const std::vector<std::unique_ptr<Task>>& tasks,
                                   const io::Source& training) {
  std::vector<std::string> all;
  for (const auto& task : tasks) {
    for (std::string& odd : task->OddLabels(training)) {
      if (std::ranges::find(all, odd) == all.end()) all.push_back(std::move(odd));
    }
  }
  return all;
}

}  // namespace mxtrain::tasks
