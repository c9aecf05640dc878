// SPDX-License-Identifier: Apache-2.0
#pragma once
// --kvstore of commands that train, or plan it.
#include <string>

#include "app/commands/command.h"

namespace mxtrain::commands {

class KVStoreFlag {
 public:
  void Declare(Arguments& arguments);
  // Before the configuration is read: the flag comes after what `config` overrides.
  void AddTo(ConfigArguments* config) const;

 private:
  std::string type_;
};

}  // namespace mxtrain::commands
