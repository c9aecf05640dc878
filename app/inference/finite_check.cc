// SPDX-License-Identifier: Apache-2.0
#include "app/inference/finite_check.h"

#include "app/tasks/prediction.h"
#include "mxtrain/base/error.h"

namespace mxtrain::inference {

bool FiniteCheck::Look(int64_t example, std::span<const float> values, const DataIter& iter) {
  constexpr size_t kNamed = 3;
  if (tasks::IsFinite(values)) return true;
  if (example == last_) return false;
  last_ = example;
  ++count_;
  if (first_.size() < kNamed) first_.push_back(iter.ExampleName(example));
  return false;
}

int FiniteCheck::ExitCode(const std::string& so, const Logger& log) const {
  if (count_ == 0) return 0;
  std::vector<std::string> named = first_;
  named.resize(static_cast<size_t>(count_));
  log.Write(LogLevel::kError,
            format("the net's output is not finite (NaN or infinite) for {}: {}; {}; check "
                   "the scale of its inputs, or use a checkpoint from before the training "
                   "diverged",
                   Counted(count_, "example"), FirstOf(std::move(named), first_.size()), so));
  return static_cast<int>(ErrorKind::kDiverged);
}

}  // namespace mxtrain::inference
