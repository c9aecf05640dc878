// SPDX-License-Identifier: Apache-2.0
#pragma once
// The object in a file of PyTorch, and which of its dicts holds the tensors. Private to ndarray.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/ndarray/internal/pickle.h"

namespace mxtrain::torch_object {

inline constexpr std::string_view kParameter = "torch.nn.parameter.Parameter";
inline constexpr const char* kAdvice = "torch.save(model.state_dict(), FILE)";

// What a call is of; of a whole module in the older form it is the persistent id ("module", class,
// file, source). "": what another call gives.
std::string_view CalleeOf(const Pickle& pickle, const PickleValue& call);

// Whether it is a tensor, also of a kind that is not supported.
bool IsTensor(const Pickle& pickle, const PickleValue& value);

// A dict with tensors, and the keys that lead to it: "model.state_dict"; "" is the outermost.
struct State {
  std::string path;
  PickleValue dict;
};

// `wanted`: the keys that lead to it; "": the usual one, or the only one. Throws kData.
State StateOf(const Pickle& pickle, const std::string& wanted);

// The keys that lead to dicts with mostly the same names of tensors as the one that is read:
// averages, or another epoch's.
std::vector<std::string> OthersLike(const Pickle& pickle, const State& taken);

}  // namespace mxtrain::torch_object
