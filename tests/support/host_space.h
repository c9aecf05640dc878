// SPDX-License-Identifier: Apache-2.0
#pragma once
// Temporary space of a size that is known only when an operator runs, without a pool: for operators
// that run without a Runtime.
#include <vector>

#include "mxtrain/resource/temp_space.h"

namespace mxtrain::test {

class HostSpace final : public GrowingSpace {
 public:
  void* Get(int64_t bytes, const char*) override {
    const size_t lines = (static_cast<size_t>(bytes) + sizeof(Line) - 1) / sizeof(Line);
    if (lines > lines_.size()) lines_.resize(lines);
    return lines_.data();
  }

 private:
  struct alignas(64) Line {
    char bytes[64];
  };
  // Enough for small requests: they allocate nothing.
  std::vector<Line> lines_ = std::vector<Line>(64);
};

}  // namespace mxtrain::test
