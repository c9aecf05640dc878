// SPDX-License-Identifier: Apache-2.0
#pragma once
// The cases of op_bench: operators with parameters and shapes, in three sizes. All arrays are
// float32 unless the operator says otherwise.
#include <string>
#include <vector>

#include "mxtrain/base/params.h"

namespace mxtrain::bench {

// What an array is filled with: uniform numbers in [low, high), or the integers of that range.
struct Values {
  double low = -1, high = 1;
  bool integers = false;
};

struct OpCase {
  std::string name;  // the operator, and what distinguishes its cases: "softmax/axis1"
  std::string size;  // small: within L1 or L2; medium: L2 or L3; large: beyond the caches
  std::string op;
  Kwargs kwargs;
  std::vector<TShape> shapes;  // of the leading arguments; the others are inferred
  std::vector<Values> values;  // of the arguments; the last one serves all further arguments
};

bool IsSize(const std::string& name);
std::vector<OpCase> OpCases();  // all, the sizes of each together

}  // namespace mxtrain::bench
