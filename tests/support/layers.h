// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layers of the nets of tests, with the operators that all tests of a process share.
#include <map>
#include <string>
#include <vector>

#include "mxtrain/symbol/symbol.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {

// `named`: inputs by the names of arguments, after those by position.
inline Symbol Layer(const std::string& op, const std::string& name,
                    const std::vector<Symbol>& inputs, const Kwargs& kwargs = {},
                    const std::map<std::string, Symbol>& named = {}) {
  return Symbol::Create(TestRegistry(), op, name, kwargs, inputs, named);
}

// A fully connected layer of `width` neurons.
inline Symbol Dense(const std::string& name, const Symbol& x, int width) {
  return Layer("FullyConnected", name, {x}, {{"num_hidden", std::to_string(width)}});
}

}  // namespace mxtrain::test
