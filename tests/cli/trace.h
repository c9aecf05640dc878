// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a trace of a training run must show.
#include <string>

namespace mxtrain::test {

struct TraceNames {
  std::string update = "sgd_mom_update";  // the operator of the optimizer
  int last_key = 0;  // of the weight of the last layer: its updates have the priority -last_key
  std::string last_backward, first_backward;
};

// Prints what the trace shows; false when it lacks a kind of work, when an update precedes its
// gradient, or when in most steps the last layer's update waits for the first layer's backward, or
// when few batches are decoded while an earlier one is computed.
bool CheckTrace(const std::string& file, const TraceNames& names);

// Spans with the name `a` during which one with the name `b` runs.
int CountOverlaps(const std::string& file, const std::string& a, const std::string& b);

}  // namespace mxtrain::test
