// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which of many are run where all take too long: in builds with sanitizers.
#include <algorithm>
#include <cstdlib>

namespace mxtrain::test {

// Every N-th has its turn, N from an environment variable: 1, all, without it.
class Turns {
 public:
  explicit Turns(const char* variable) {
    if (const char* every = std::getenv(variable)) period_ = std::max(1, std::atoi(every));
  }
  bool Next() { return count_++ % period_ == 0; }

 private:
  int period_ = 1;
  int count_ = 0;
};

}  // namespace mxtrain::test
