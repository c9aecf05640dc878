// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks: their declarations, and the parameters and inputs of a use. Internal to app/config.
#include <string>
#include <vector>

#include "app/config/net_expansion.h"

namespace mxtrain::config {

// Checks the declarations. Uses are checked as they occur.
void CheckBlocks(Expansion* expansion);

// What a use of a block says.
struct BlockUse {
  std::map<std::string, Constant> constants;  // its parameters
  std::string name;                           // empty: none given
  Place name_place;
  std::vector<Reference> inputs;  // empty: the previous layer
};

// Reads the use at `place`, in `scope`, and the defaults of parameters that it does not give, which
// may refer to earlier parameters. False after an error; what was read is then still set.
bool ReadBlockUse(const Member& block, const Place& place, const Value& use, int scope,
                  Expansion* expansion, BlockUse* read);
// Declares the block's inputs in its scope `inside`: those given, or `before`, the previous layer.
// `first` is set to the input of its first layer. False after an error.
bool BindBlockInputs(const Member& block, const Place& place, int inside,
                     const std::vector<Reference>& given, const Entry& before, Expansion* expansion,
                     Entry* first);

}  // namespace mxtrain::config
