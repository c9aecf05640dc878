// SPDX-License-Identifier: Apache-2.0
#pragma once
// Outputs that are not finite although the parameters are: values that overflow, or a net that
// divides by zero. Such outputs are no predictions.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/base/log.h"
#include "mxtrain/io/data_iter.h"

namespace mxtrain::inference {

class FiniteCheck {
 public:
  // IsFinite; notes the example if not. The outputs of one example come one after another.
  bool Look(int64_t example, std::span<const float> values, const DataIter& iter);
  // 0 if all were finite; else reports how many were not, as an error, and returns the exit code.
  // `so`: what that means.
  int ExitCode(const std::string& so, const Logger& log) const;
  int64_t count() const { return count_; }  // of the examples noted

 private:
  int64_t count_ = 0, last_ = -1;
  std::vector<std::string> first_;
};

}  // namespace mxtrain::inference
