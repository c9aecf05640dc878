// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arrays that an operator reads and writes, for the operator reference.
#include <string>
#include <vector>

#include "mxtrain/operator/registry.h"

namespace mxtrain::commands {

struct OperatorArrays {
  std::vector<std::string> arguments, outputs, auxiliary_states;
  bool operator==(const OperatorArrays&) const = default;
};

// With another value of one parameter: "no_bias", "True".
struct ArraysVariant {
  std::string parameter, value;
  bool is_count = false;  // the parameter counts any number of arrays; `value` is one example
  OperatorArrays arrays;
};

struct ArraysReference {
  OperatorArrays base;                  // with default parameters; required ones have some value
  std::vector<ArraysVariant> variants;  // those that differ from the base
};

// Throws kConfig for a name that the registry does not have.
ArraysReference DescribeArrays(const OperatorRegistry& registry, const std::string& name);
// "Inputs: ...", "Outputs: ..." and "Auxiliary states: ...", each followed by its variants.
std::string TextOfArrays(const ArraysReference& arrays);

}  // namespace mxtrain::commands
