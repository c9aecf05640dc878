// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators as nets of their own, for what the export and the import of ONNX do with them.
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/base/dtype.h"
#include "mxtrain/base/params.h"
#include "mxtrain/base/shape.h"

namespace mxtrain::test {

using Values = std::vector<double>;

struct Input {
  TShape example;
  Values cycle = {};  // its values, repeated; none: between -1.9 and 1.9
  DType type = DType::kFloat32;
};
struct Step {
  std::string op;
  Kwargs params = {};
  std::vector<std::string> inputs = {};  // none: all inputs of the net
};
struct Case {
  std::string name;
  std::vector<Input> inputs;  // of the net, called x0, x1, ...
  std::vector<Step> steps;    // layers, called like their operators; parameters are added
  std::string output = {};    // of the last one; "": all
};

// Of one operator.
inline Case One(const std::string& op, const Kwargs& params, std::vector<Input> inputs,
                const std::string& variant = "") {
  return {variant.empty() ? op : op + " " + variant, std::move(inputs), {{op, params}}};
}

inline const Input kSequence{{4, 6}}, kImage{{4, 6, 7}}, kRow{{5}};
// Lengths of sequences, indices, and labels.
inline Input Numbers(const TShape& example, const Values& cycle) {
  return {example, cycle};
}

// Operators that need parameters, or inputs of a certain kind.
std::vector<Case> LayerCases();
std::vector<Case> ArrayCases();
std::vector<Case> BoxCases();

}  // namespace mxtrain::test
